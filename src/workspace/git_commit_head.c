#include "workspace/git_commit_ref.h"

#include "workspace/git_value.h"

#include <errno.h>
#include <string.h>

static int hold_head(struct git_run *run, struct git_area *area, struct git_piece *item,
		     const char *reason)
{
	area->is_head_held = true;
	return git_run_hold(run, area, item, reason);
}

static int set_head(struct git_run *run, struct git_area *area, struct git_piece *item,
		    const char *value)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const char *old = git_run_state_value(run, git_run_state(run, area, "HEAD"));
	struct git_text text = { 0 };
	const char *now;
	int result = git_file_lock(&area->target, "HEAD", false, &lock);

	if (result == 0)
		result = git_file_read(area->target.fd, "HEAD", GIT_REF_LIMIT_BYTES, run->arena,
				       &text, NULL);
	if (result < 0 && !(result == -ENOENT && area->is_new))
		return git_run_failed(run, area, item, result);
	now = text.bytes ? git_ref_value(run->arena, text.bytes, text.length, true) : NULL;
	if (git_run_is_same_value(now, value))
		return 0;
	if (!git_run_is_same_value(now, old))
		return hold_head(run, area, item, GIT_RUN_CHANGED);
	if (strncmp(value, "ref: ", 5) == 0 && git_run_is_ref_held(run, "", value + 5))
		return hold_head(run, area, item, "the branch that it names is held");
	if (!git_run_has_object(run, area, value))
		return hold_head(run, area, item, GIT_RUN_MISSING);
	result = git_run_write_value(run, area, "HEAD", value, &lock);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return git_run_applied(run, area, "HEAD", CHANGE_MODIFIED);
}

int git_run_head(struct git_run *run, struct git_area *area)
{
	struct git_piece *item = git_run_item(area, "HEAD");
	const char *value;
	struct git_text text;
	int result;

	if (!item || item->is_done)
		return 0;
	item->is_done = true;
	if (item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "a repository is none without it");
	result = git_run_read(run, area, item, GIT_REF_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	value = git_ref_value(run->arena, text.bytes, text.length, true);
	if (!value)
		return hold_head(run, area, item, "it is no reference");
	/* also where there is no such branch: its name is given to git by scripts and aliases */
	if (strncmp(value, "ref: ", 5) == 0 && !git_value_is_ref(value + 5))
		return hold_head(run, area, item, "it names no branch that git would make");
	return set_head(run, area, item, value);
}

/* A linked worktree's branches are the repository's. */
static bool is_branch_held(const struct git_run *run, const struct git_area *area,
			   const char *value)
{
	return value && strncmp(value, "ref: ", 5) == 0 &&
	       git_run_is_ref_held(run, area->is_worktree ? "" : area->prefix, value + 5);
}

bool git_run_is_head_held(struct git_run *run, struct git_area *area)
{
	struct git_text text;

	if (area->is_head_held)
		return true;
	if (git_file_read(area->target.fd, "HEAD", GIT_REF_LIMIT_BYTES, run->arena, &text, NULL) <
	    0)
		return false;
	return is_branch_held(run, area, git_ref_value(run->arena, text.bytes, text.length, true));
}

/* The host may have another branch checked out by now; the task's is what its index goes with. */
bool git_run_is_commit_held(struct git_run *run, struct git_area *area)
{
	const struct git_piece *item = git_run_item(area, "HEAD");
	const char *value = git_run_state_value(run, git_run_state(run, area, "HEAD"));
	struct git_text text;

	if (item && item->entry->kind == GIT_UPPER_FILE &&
	    git_file_read(run->cover->upper_fd, item->entry->path, GIT_REF_LIMIT_BYTES, run->arena,
			  &text, NULL) == 0)
		value = git_ref_value(run->arena, text.bytes, text.length, true);
	return git_run_is_head_held(run, area) || is_branch_held(run, area, value);
}
