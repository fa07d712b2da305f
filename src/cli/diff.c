/*
 * `bawn diff`: what a task changed in a workspace that was staged for it, and which names its git
 * wrote; nothing of it is on the host.
 */
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/landing.h"
#include "cli/page.h"
#include "cli/stage_show.h"
#include "cli/stages.h"
#include "cli/verbs.h"
#include "plan/plan.h"
#include "workspace/git_upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_STAT, OPTION_JSON, OPTION_LIST, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--stat", NULL, "print a line for each file, with counts", false, false, OPTION_STAT },
	{ "--json", NULL, "print JSON, one object a line", false, false, OPTION_JSON },
	{ "--list", NULL, "list the tasks that have a stage, with their workspace", false, false,
	  OPTION_LIST },
	STAGES_STATE_DIR_ROW(OPTION_STATE_DIR),
};

struct diff {
	struct stages stages;
	bool has_stat, has_json, is_list;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct diff *diff = context;

	switch (option->id) {
	case OPTION_STAT:
		diff->has_stat = true;
		return 0;
	case OPTION_JSON:
		diff->has_json = true;
		return 0;
	case OPTION_LIST:
		diff->is_list = true;
		return 0;
	default:
		return stages_take_state(&diff->stages, option, value, error);
	}
}

/* ---- the list ---- */

static void list_one(const struct diff *diff, const char *task, const struct stage_about *about,
		     struct buffer *text)
{
	struct json json;

	if (!diff->has_json) {
		buffer_format(text, "%s  ", task);
		buffer_visible(text, about ? about->workspace : "(damaged)");
		buffer_byte(text, '\n');
		return;
	}
	json_begin(&json, text);
	json_object(&json, NULL);
	json_string(&json, "task", task);
	json_string(&json, "workspace", about ? about->workspace : NULL);
	json_unsigned(&json, "wall_ns", about ? about->wall_ns : 0);
	json_object_end(&json);
	buffer_byte(text, '\n');
}

static int list(struct diff *diff, struct page *page)
{
	int result = 0;

	for (size_t i = 0; i < diff->stages.count && result == 0; i++) {
		struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;
		int opened = stage_store_open(diff->stages.effective.state.fd,
					      STAGE_STORE_DIRECTORY, diff->stages.tasks[i],
					      STAGE_STORE_PEEK, &diff->stages.arena, &kept);

		list_one(diff, diff->stages.tasks[i], opened == 0 ? &kept.about : NULL,
			 &page->text);
		result = page_put(page);
	}
	return result;
}

/* ---- what git wrote ---- */

static const char *const kinds[] = {
	[GIT_UPPER_FILE] = "written",	 [GIT_UPPER_GONE] = "removed",
	[GIT_UPPER_OPAQUE] = "replaced", [GIT_UPPER_LINK] = "a link",
	[GIT_UPPER_SPECIAL] = "special", [GIT_UPPER_UNREAD] = "unreadable",
};

static void put_git(const struct diff *diff, const char *directory,
		    const struct git_upper_entry *entry, struct buffer *text)
{
	struct json json;

	if (diff->has_json) {
		json_begin(&json, text);
		json_object(&json, NULL);
		json_string(&json, "git", directory);
		json_string(&json, "path", entry->path);
		json_string(&json, "kind", kinds[entry->kind]);
		json_object_end(&json);
	} else {
		buffer_format(text, "bawn: git: %s: ", kinds[entry->kind]);
		buffer_visible(text, directory);
		buffer_byte(text, '/');
		buffer_visible(text, entry->path);
	}
	buffer_byte(text, '\n');
}

static int show_git_of(const struct diff *diff, const struct stage_kept *kept,
		       const struct landing_place *place, struct page *page, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_upper upper;
	char name[sizeof(PLAN_GIT_LAYERS "/4294967295/upper")];
	int CLEANUP_FD fd = -1;
	int result;

	(void)snprintf(name, sizeof(name), PLAN_GIT_LAYERS "/%u/upper", place->layer);
	fd = git_upper_open(kept->fd, name);
	if (fd < 0)
		return 0;
	result = git_upper_read(fd, &arena, &upper, error);
	for (size_t i = 0; result == 0 && i < upper.count; i++) {
		put_git(diff, place->path, &upper.entries[i], &page->text);
		result = page_put(page);
	}
	return result;
}

static int show_git(struct diff *diff, const struct stage_kept *kept, struct page *page,
		    struct error *error)
{
	struct landing_left left;
	int result = landing_load(kept->fd, kept->about.task, &diff->stages.arena, &left);

	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return error_errno(error, result, "what git did in the stage");
	for (size_t i = 0; i < left.count && result == 0; i++)
		result = show_git_of(diff, kept, &left.places[i], page, error);
	return result;
}

/* ---- the verb ---- */

static int show(struct diff *diff, const char *word, struct page *page, struct error *error)
{
	struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;
	struct stage_totals totals;
	struct stage stage;
	const char *task;
	int result = stages_open(&diff->stages, word, STAGE_STORE_LOOK, &kept, &task, error);

	if (result < 0)
		return result;
	if (kept.workspace_fd < 0)
		return error_set(error, ESTALE, "the workspace %s: %s", kept.about.workspace,
				 kept.missing);
	stage = (struct stage){ .upper_fd = kept.upper_fd,
				.lower_fd = kept.workspace_fd,
				.hidden = kept.about.hidden,
				.hidden_count = kept.about.hidden_count };
	result = stage_show(&stage,
			    diff->has_json ? STAGE_JSON :
			    diff->has_stat ? STAGE_STAT :
					     STAGE_PATCH,
			    page, &totals, error);
	return result < 0 ? result : show_git(diff, &kept, page, error);
}

static int run(struct diff *diff, int argc, char **argv, struct error *error)
{
	struct page page = PAGE_NONE;
	int result;

	page_open(&page, !diff->has_json);
	result = diff->is_list ? list(diff, &page) :
				 show(diff, argc ? argv[0] : NULL, &page, error);
	result = page_close(&page, result);
	if (result < 0 && !error->code)
		error_errno(error, result, "what is staged could not be printed");
	return result;
}

static int diff_verb(int argc, char **argv)
{
	struct diff diff = { .stages = STAGES_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_diff, argc, argv, take, &diff, &error), result;

	if (first >= 0 && argc - first > (diff.is_list ? 0 : 1))
		first = error_set(&error, EINVAL, "bawn diff takes one task");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	result = stages_begin(&diff.stages, &error);
	if (result == 0)
		result = run(&diff, argc - first, argv + first, &error);
	if (result < 0)
		complain(error.message);
	stages_end(&diff.stages);
	return result == 0 ? 0 : stages_status(result);
}

const struct verb verb_diff = {
	.name = "diff",
	.synopsis = "[TASK]",
	.summary = "Show what a task changed in a staged workspace.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 shown; 1 there is no such stage, or it is in use; 2 wrong use; 125 bawn "
		       "itself failed",
	.run = diff_verb,
};
