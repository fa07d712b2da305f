/*
 * `bawn apply`: brings what a task changed in a workspace that was staged for it to the host, all
 * of it or some paths, and then what its git did, by the rules of workspace/git_commit.h.
 */
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "broker/landing.h"
#include "cli/decide.h"
#include "cli/page.h"
#include "cli/stages.h"
#include "cli/verbs.h"
#include "workspace/stage_apply.h"
#include "workspace/stage_undo.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPTION_DRY_RUN,
	OPTION_OVERWRITE,
	OPTION_MERGE,
	OPTION_RESUME,
	OPTION_UNDO,
	OPTION_NO_UNDO,
	OPTION_JSON,
	OPTION_STATE_DIR
};

static const struct option options[] = {
	{ "--dry-run", NULL, "say what would be done, and do nothing", false, false,
	  OPTION_DRY_RUN },
	{ "--overwrite", NULL, "apply also what the host changed meanwhile, over its changes",
	  false, false, OPTION_OVERWRITE },
	{ "--merge", NULL,
	  "merge what the host changed meanwhile, where git has what both began with", false, false,
	  OPTION_MERGE },
	{ "--resume", NULL, "go on with an apply that was killed, as it was asked for", false,
	  false, OPTION_RESUME },
	{ "--undo", NULL, "take back what was applied; the stage has it again", false, false,
	  OPTION_UNDO },
	{ "--no-undo", NULL, "keep nothing of what is replaced", false, false, OPTION_NO_UNDO },
	{ "--json", NULL, "print JSON, one object a line", false, false, OPTION_JSON },
	STAGES_STATE_DIR_ROW(OPTION_STATE_DIR),
};

struct apply {
	struct stages stages;
	struct stage_kept kept;
	const char *task;
	bool is_dry, is_resumed, has_json;
	struct stage_asked asked;
	struct stage_applied applied;
	struct decision decision;
	struct decision_list plan;
	struct change *git;
	size_t git_count;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct apply *apply = context;

	switch (option->id) {
	case OPTION_DRY_RUN:
		apply->is_dry = true;
		return 0;
	case OPTION_OVERWRITE:
		apply->asked.overwrites = true;
		return 0;
	case OPTION_MERGE:
		apply->asked.merges = true;
		return 0;
	case OPTION_RESUME:
		apply->is_resumed = true;
		return 0;
	case OPTION_UNDO:
		apply->asked.is_undo = true;
		return 0;
	case OPTION_NO_UNDO:
		apply->asked.drops = true;
		return 0;
	case OPTION_JSON:
		apply->has_json = true;
		return 0;
	default:
		return stages_take_state(&apply->stages, option, value, error);
	}
}

/* ---- which paths ---- */

/*
 * The same path in the workspace, of one that came there over a link outside of it, as a shell's
 * $PWD does: the first directory on its way that is the workspace. NULL: none is.
 */
static const char *over_links(struct apply *apply, const char *clean)
{
	const struct stage_about *about = &apply->kept.about;

	for (const char *end = clean; *end;) {
		struct stat status;
		char *above;

		end = strchrnul(end + 1, '/');
		above = arena_copy_bytes(&apply->stages.arena, clean, (size_t)(end - clean));
		if (!above || stat(above, &status) < 0)
			return NULL;
		if (status.st_dev == about->device && status.st_ino == about->inode)
			return arena_format(&apply->stages.arena, "%s%s", about->workspace, end);
	}
	return NULL;
}

/* As one types it: from the current directory where that is in the workspace, else from its top. */
static int add_path(struct apply *apply, const char **paths, const char *word, const char *here,
		    struct error *error)
{
	const char *workspace = apply->kept.about.workspace;
	const char *base = path_is_under(here, workspace) ? here : workspace;
	const char *clean = path_clean(&apply->stages.arena, base, word);

	if (clean && !path_is_under(clean, workspace))
		clean = over_links(apply, clean);
	if (!clean)
		return error_set(error, EINVAL,
				 "%.200s is no path in the workspace %s (without \"..\")", word,
				 workspace);
	/* the workspace itself is all of it */
	if (clean[strlen(workspace)])
		paths[apply->asked.path_count++] = path_below(clean, workspace);
	return 0;
}

static int find_paths(struct apply *apply, int argc, char **argv, struct error *error)
{
	const char **paths = arena_array(&apply->stages.arena, (size_t)argc + 1, sizeof(*paths));
	char here[PATH_LIMIT_BYTES];
	size_t given = 0;
	int result = 0;

	if (!paths)
		return error_errno(error, ENOMEM, "applying a stage");
	if ((unsigned)argc > STAGE_APPLY_LIMIT_PATHS)
		return error_set(error, E2BIG, "more than %u paths", STAGE_APPLY_LIMIT_PATHS);
	if (!getcwd(here, sizeof(here)) || here[0] != '/')
		(void)memcpy(here, "/", 2);
	for (; (int)given < argc && result == 0; given++)
		result = add_path(apply, paths, argv[given], here, error);
	/* one of them was the workspace itself */
	if (apply->asked.path_count < given)
		apply->asked.path_count = 0;
	apply->asked.paths = paths;
	return result;
}

static int find_asked(struct apply *apply, int argc, struct error *error)
{
	int result;

	if (argc)
		return error_set(error, EINVAL, "--resume goes on with the paths of before");
	result = stage_apply_asked(&apply->kept, &apply->stages.arena, &apply->asked);
	return result == -ENOENT ?
		       error_set(error, ENOENT, "no apply of %s was interrupted", apply->task) :
	       result < 0 ? error_errno(error, result, "what was asked for") :
			    0;
}

/* ---- the work ---- */

/* Git's part comes with all of it, or where a path names it. */
static bool is_git_asked(const struct apply *apply)
{
	for (size_t i = 0; i < apply->asked.path_count; i++)
		if (strcmp(path_name(arena_format((struct arena *)&apply->stages.arena, "/%s",
						  apply->asked.paths[i])),
			   ".git") == 0)
			return true;
	return !apply->asked.path_count;
}

/* On record before anything is done, or nothing is. */
static int begin_record(void *context, const struct stage_applied *applied, struct error *error)
{
	struct apply *apply = context;
	const struct decision_asked asked = { .task = apply->task,
					      .verb = apply->asked.is_undo ? "undo" : "apply",
					      .workspace = apply->kept.about.workspace,
					      .paths = apply->asked.paths,
					      .path_count = apply->asked.path_count,
					      .overwrites = apply->asked.overwrites,
					      .is_resumed = apply->is_resumed };
	int result = decide_plan(&apply->kept, applied, &apply->stages.arena, &apply->plan);

	if (result < 0)
		return error_errno(error, result, "what is to be applied");
	result = decision_open(apply->stages.effective.state.fd, &asked, &apply->decision, error);
	if (result == 0)
		result = decision_intend(&apply->decision, &apply->plan, error);
	return result;
}

static int add_git(const struct apply *apply, struct arena *arena, struct decision_list *list)
{
	int result = 0;

	for (size_t i = 0; i < apply->git_count && result == 0; i++) {
		const struct change *change = &apply->git[i];
		const struct decision_item item = { .path = change->path,
						    .kind = change_kind_name(change->kind),
						    .outcome = change_state_name(change->state),
						    .reason = change->reason,
						    .review = change->review,
						    .key = change->key };

		result = decision_list_add(list, arena, &item);
	}
	return result;
}

/* What became of it; `result` and its error are those of the work, which come first. */
static int end_record(struct apply *apply, int result, struct error *error)
{
	struct error own = ERROR_NONE;
	struct arena *arena = &apply->stages.arena;
	struct decision_list list;
	int told;

	if (!apply->decision.intent[0])
		return result;
	told = decide_done(&apply->kept, &apply->applied, &apply->plan, arena, &list);
	if (told == 0)
		told = add_git(apply, arena, &list);
	if (told < 0)
		error_errno(&own, told, "what was applied");
	else
		told = decision_settle(&apply->decision, &list, result < 0 ? error->message : NULL,
				       &own);
	if (told < 0 && result == 0)
		return error_set(error, -told, "it was done, but its end is not on record: %s",
				 own.message);
	return result;
}

/* Where nothing is left, what an undo needs stays, and no more. */
static int put_aside(struct apply *apply)
{
	int state_fd = apply->stages.effective.state.fd;

	if (apply->applied.is_left || stage_store_has_git(apply->kept.fd))
		return 0;
	return stage_undo_is_possible(&apply->kept) ?
		       stage_store_retire(state_fd, apply->task) :
		       stage_store_remove(state_fd, STAGE_STORE_DIRECTORY, apply->task);
}

static int bring(struct apply *apply, struct error *error)
{
	const struct stage_apply stage = { .kept = &apply->kept,
					   .paths = apply->asked.paths,
					   .path_count = apply->asked.path_count,
					   .is_dry = apply->is_dry,
					   .overwrites = apply->asked.overwrites,
					   .merges = apply->asked.merges,
					   .drops = apply->asked.drops,
					   .begin = begin_record,
					   .context = apply };
	int result = stage_apply(&stage, &apply->stages.arena, &apply->applied, error);

	if (apply->is_dry)
		return result;
	if (result == 0 && is_git_asked(apply))
		result = landing_apply(&apply->stages.effective.state, apply->kept.fd, apply->task,
				       &apply->stages.arena, &apply->git, &apply->git_count, error);
	if (result == 0)
		result = put_aside(apply);
	return end_record(apply, result, error);
}

static int take_back(struct apply *apply, struct error *error)
{
	const struct stage_undo undo = { .kept = &apply->kept,
					 .paths = apply->asked.paths,
					 .path_count = apply->asked.path_count,
					 .is_dry = apply->is_dry,
					 .begin = begin_record,
					 .context = apply };
	int result = stage_undo(&undo, &apply->stages.arena, &apply->applied, error);

	/* one whose stage has nothing goes back to where it was */
	if (result == 0 || result == -ENOENT) {
		int put = put_aside(apply);

		result = result < 0 || apply->is_dry ? result : put;
	}
	return apply->is_dry ? result : end_record(apply, result, error);
}

/* ---- what became of it ---- */

static const char *outcome_name(const struct apply *apply, enum stage_outcome outcome)
{
	return apply->asked.is_undo && outcome == STAGE_APPLIED ? "undone" :
								  stage_outcome_name(outcome);
}

static void print_item(const struct apply *apply, const struct stage_item *item,
		       struct buffer *text)
{
	struct json json;

	if (!apply->has_json) {
		buffer_format(text, "%-9s", outcome_name(apply, item->outcome));
		buffer_visible(text, item->path);
		if (item->reason && item->reason[0])
			buffer_format(text, ": %s", item->reason);
	} else {
		json_begin(&json, text);
		json_object(&json, NULL);
		json_string(&json, "path", item->path);
		json_string(&json, "kind", stage_kind_name(item->kind));
		json_string(&json, "outcome", outcome_name(apply, item->outcome));
		json_string(&json, "reason", item->reason);
		json_object_end(&json);
	}
	buffer_byte(text, '\n');
}

static void print_git(const struct apply *apply, const struct change *change, struct buffer *text)
{
	struct json json;

	if (!apply->has_json) {
		if (change->state == CHANGE_APPLIED)
			return;
		buffer_text(text, change->state == CHANGE_HELD ? "held     " : "not yet  ");
		buffer_visible(text, change->path);
		buffer_format(text, "%s%s: %s", change->key ? " " : "",
			      change->key ? change->key : "", change->reason ? change->reason : "");
		if (change->review)
			buffer_format(text, " (bawn review show %s)", change->review);
	} else {
		json_begin(&json, text);
		json_object(&json, NULL);
		change_members(change, &json);
		json_object_end(&json);
	}
	buffer_byte(text, '\n');
}

/* Of an apply only what did not come, or not whole, is told one by one; --json tells all. */
static bool is_told(const struct apply *apply, const struct stage_item *item)
{
	return item->outcome != STAGE_WAITING &&
	       (apply->has_json || apply->is_dry || item->outcome != STAGE_APPLIED || item->reason);
}

static void sum_up(const struct apply *apply, struct buffer *text)
{
	const size_t *outcomes = apply->applied.outcomes;
	bool has_more = false;

	if (apply->has_json)
		return;
	for (size_t i = apply->is_dry ? STAGE_READY : STAGE_APPLIED; i < STAGE_OUTCOME_COUNT; i++) {
		if (!outcomes[i] && i > STAGE_APPLIED)
			continue;
		if (i == STAGE_APPLIED && apply->is_dry)
			continue;
		buffer_format(text, "%s%zu %s", has_more ? ", " : "", outcomes[i],
			      i != STAGE_READY	   ? outcome_name(apply, (enum stage_outcome)i) :
			      apply->asked.is_undo ? "would be undone" :
						     "would be applied");
		has_more = true;
	}
	if (outcomes[STAGE_WAITING])
		buffer_format(text, ", %zu left in the stage", outcomes[STAGE_WAITING]);
	buffer_byte(text, '\n');
	if (outcomes[STAGE_HELD])
		buffer_text(text, "what is held is run or obeyed by tools of the host: look at it "
				  "with `bawn diff`, and name its path to apply it\n");
	if (outcomes[STAGE_CONFLICT] && apply->asked.is_undo)
		buffer_text(text, "what the host changed since stays as it is; where it is moved "
				  "away, an undo brings back what was there\n");
	else if (outcomes[STAGE_CONFLICT])
		buffer_text(text, "conflicts are what the host changed, too: it has what it had; "
				  "--merge puts both together where it can, --overwrite takes the "
				  "task's\n");
}

static int report(const struct apply *apply)
{
	struct page page = PAGE_NONE;
	int result = 0;

	page_open(&page, apply->is_dry && !apply->has_json);
	for (size_t i = 0; i < apply->applied.count && result == 0; i++)
		if (is_told(apply, &apply->applied.items[i])) {
			print_item(apply, &apply->applied.items[i], &page.text);
			result = page_put(&page);
		}
	for (size_t i = 0; i < apply->git_count; i++)
		print_git(apply, &apply->git[i], &page.text);
	sum_up(apply, &page.text);
	return page_close(&page, result);
}

/* 1 where something that was asked for did not come. */
static int status_of(const struct apply *apply)
{
	const size_t *outcomes = apply->applied.outcomes;
	bool is_short = outcomes[STAGE_CONFLICT] || outcomes[STAGE_HELD] ||
			outcomes[STAGE_REFUSED] || outcomes[STAGE_FAILED];

	for (size_t i = 0; i < apply->git_count; i++)
		is_short |= apply->git[i].state != CHANGE_APPLIED;
	return is_short;
}

static int open_stage(struct apply *apply, const char *word, struct error *error)
{
	if (apply->asked.is_undo)
		return stages_open_undo(&apply->stages, word, &apply->kept, &apply->task, error);
	return stages_open(&apply->stages, word, STAGE_STORE_CHANGE, &apply->kept, &apply->task,
			   error);
}

static int run(struct apply *apply, int argc, char **argv, struct error *error)
{
	bool has_task = argc && stages_is_task(argv[0]);
	int result = open_stage(apply, has_task ? argv[0] : NULL, error);

	if (result < 0)
		return result;
	if (apply->kept.workspace_fd < 0)
		return error_set(error, ESTALE, "the workspace %s: %s", apply->kept.about.workspace,
				 apply->kept.missing);
	result = apply->is_resumed ? find_asked(apply, argc - has_task, error) :
				     find_paths(apply, argc - has_task, argv + has_task, error);
	if (result == 0)
		result = apply->asked.is_undo ? take_back(apply, error) : bring(apply, error);
	/* what came before a failure is told, too */
	if ((result == 0 || apply->applied.count) && report(apply) < 0)
		complain("what was applied could not be printed");
	return result;
}

static int check_words(const struct apply *apply, struct error *error)
{
	const struct stage_asked *asked = &apply->asked;

	if (asked->is_undo && (asked->overwrites || asked->merges || asked->drops))
		return error_set(error, EINVAL,
				 "--undo goes without --overwrite, --merge and --no-undo: what the "
				 "host changed since is never taken");
	if (asked->overwrites && asked->merges)
		return error_set(error, EINVAL, "--merge and --overwrite exclude each other");
	return 0;
}

static int apply_verb(int argc, char **argv)
{
	struct apply apply = { .stages = STAGES_NONE,
			       .kept = STAGE_KEPT_NONE,
			       .decision = DECISION_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_apply, argc, argv, take, &apply, &error);
	int result, status;

	if (first >= 0 && check_words(&apply, &error) < 0)
		first = -1;
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	result = stages_begin(&apply.stages, &error);
	if (result == 0)
		result = run(&apply, argc - first, argv + first, &error);
	if (result < 0)
		complain(error.message);
	status = result == -EINVAL ? 2 : result < 0 ? stages_status(result) : status_of(&apply);
	decision_close(&apply.decision);
	stage_store_close(&apply.kept);
	stages_end(&apply.stages);
	return status;
}

const struct verb verb_apply = {
	.name = "apply",
	.synopsis = "[TASK] [PATH...]",
	.summary = "Bring what a task changed in a staged workspace to the host.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 all of it is on the host; 1 something was not applied, or there is no such "
		"stage, or it is in use; 2 wrong use; 125 bawn itself failed, or the trace "
		"cannot be written: what is left waits in the stage",
	.run = apply_verb,
};
