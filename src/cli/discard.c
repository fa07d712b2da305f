/* `bawn discard`: drops what a task changed in a workspace that was staged for it. */
#include "base/error.h"
#include "cli/confirm.h"
#include "cli/decide.h"
#include "cli/stages.h"
#include "cli/verbs.h"
#include "workspace/stage_apply.h"
#include "workspace/stage_undo.h"

#include <errno.h>
#include <stdio.h>

enum { OPTION_YES, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	STAGES_STATE_DIR_ROW(OPTION_STATE_DIR),
};

struct discard {
	struct stages stages;
	const char *shelf; /* of the store: what waits, or what was applied */
	bool is_yes;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct discard *discard = context;

	if (option->id != OPTION_YES)
		return stages_take_state(&discard->stages, option, value, error);
	discard->is_yes = true;
	return 0;
}

/* Drops it, on record before and after. */
static int drop_recorded(struct discard *discard, const struct stage_kept *kept, const char *task,
			 struct error *error)
{
	const struct decision_asked asked = { .task = task,
					      .verb = "discard",
					      .workspace = kept->about.workspace };
	struct decision CLEANUP_DECISION decision = DECISION_NONE;
	struct error own = ERROR_NONE;
	struct decision_list list;
	int state_fd = discard->stages.effective.state.fd, told;
	int result = decide_drop(kept, &discard->stages.arena, &list);

	if (result < 0)
		return error_errno(error, result, "what is dropped");
	result = decision_open(state_fd, &asked, &decision, error);
	if (result == 0)
		result = decision_intend(&decision, &list, error);
	if (result < 0)
		return result;
	result = stage_store_remove(state_fd, discard->shelf, task);
	if (result < 0)
		error_errno(error, result, "dropping the stage of %s", task);
	decide_outcome(&list, result < 0 ? "failed" : "dropped");
	told = decision_settle(&decision, &list, result < 0 ? error->message : NULL, &own);
	if (told < 0 && result == 0)
		return error_set(error, -told, "it is dropped, but that is not on record: %s",
				 own.message);
	return result;
}

/* One that is damaged can be dropped, too. */
static int drop(struct discard *discard, const char *word, int *ret_status, struct error *error)
{
	struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;
	char asked[128];
	bool can_undo;
	const char *task = NULL;
	bool is_applied = word && stages_is_applied(&discard->stages, word);
	int result = is_applied ? stages_open_applied(&discard->stages, word, &kept, &task, error) :
				  stages_open(&discard->stages, word, STAGE_STORE_CHANGE, &kept,
					      &task, error);

	discard->shelf = is_applied ? STAGE_STORE_APPLIED : STAGE_STORE_DIRECTORY;
	if (result < 0 && (result != -EBADMSG || kept.fd < 0))
		return result;
	*error = ERROR_NONE;
	(void)snprintf(asked, sizeof(asked),
		       is_applied ? "Drop what an undo of %s needs?" :
				    "Drop the stage of %s for good?",
		       task);
	if (!confirm(asked, discard->is_yes, ret_status))
		return 0;
	if (kept.workspace_fd >= 0 && stage_apply_recover(&kept, error) < 0)
		return error->code;
	can_undo = kept.fd >= 0 && stage_undo_is_possible(&kept);
	result = drop_recorded(discard, &kept, task, error);
	if (result < 0)
		return result;
	(void)printf("dropped: %s%s\n", task,
		     can_undo ? "; what was applied of it can be undone no more" : "");
	return 0;
}

static int discard_verb(int argc, char **argv)
{
	struct discard discard = { .stages = STAGES_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_discard, argc, argv, take, &discard, &error);
	int result, status = 0;

	if (first >= 0 && argc - first > 1)
		first = error_set(&error, EINVAL, "bawn discard takes one task");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	result = stages_begin(&discard.stages, &error);
	if (result == 0)
		result = drop(&discard, first < argc ? argv[first] : NULL, &status, &error);
	if (result < 0)
		complain(error.message);
	stages_end(&discard.stages);
	return result == 0 ? status : stages_status(result);
}

const struct verb verb_discard = {
	.name = "discard",
	.synopsis = "[TASK]",
	.summary = "Drop what a task changed in a staged workspace, or what an undo of it needs.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 dropped; 1 there is no such stage, it is in use, or the answer was no; 2 "
		       "wrong use, or nobody to ask; 125 bawn itself failed",
	.run = discard_verb,
};
