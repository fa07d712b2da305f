/* What becomes of an item, and is told: it is applied, or held with its content for a person. */
#include "workspace/git_commit_internal.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

/* What went wrong with one thing alone; all else is the system's, and ends the run. */
static const struct {
	int code;
	const char *reason;
} reasons[] = {
	{ ENOENT, "its place is not there" },
	{ ENOTDIR, "something else stands in its place" },
	{ EISDIR, "a directory stands in its place" },
	{ ENOTEMPTY, "a directory stands in its place" },
	{ EEXIST, "the host made one of its name meanwhile" },
	{ ELOOP, "a link stands on the way to it" },
	{ EXDEV, "it lies elsewhere" },
	{ EINVAL, "it is no plain file" },
	{ EFBIG, "it is too large" },
	{ EACCES, "it may not be read or written" },
	{ EPERM, "it may not be written" },
	{ ENAMETOOLONG, "its name is too long" },
	{ EBADMSG, "what the host has there is not git's" },
	{ ESTALE, "the host changed it meanwhile" },
	{ EBUSY, "a git of the host is at work on it" },
};

const char *git_run_reason(int code)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].code == -code)
			return reasons[i].reason;
	return NULL;
}

int git_run_add_outcome(struct git_run *run, struct git_outcome outcome)
{
	struct git_commit_result *result = run->result;
	struct git_outcome *outcomes =
		arena_push(run->arena, result->outcomes, result->count, sizeof(*outcomes));

	if (!outcomes || !outcome.path)
		return error_errno(run->error, ENOMEM, "%s", run->cover->path);
	outcome.directory = run->cover->path;
	result->outcomes = outcomes;
	outcomes[result->count++] = outcome;
	result->held += outcome.kind == GIT_OUTCOME_HELD;
	return 0;
}

int git_run_applied(struct git_run *run, const struct git_area *area, const char *path,
		    enum change_kind kind)
{
	/* a new directory counts as one */
	if (area->is_new)
		return 0;
	return git_run_add_outcome(
		run,
		(struct git_outcome){ .kind = GIT_OUTCOME_APPLIED,
				      .path = arena_format(run->arena, "%s%s", area->prefix, path),
				      .change = kind });
}

int git_run_hold_value(struct git_run *run, struct git_area *area, struct git_held held)
{
	struct git_outcome outcome = { .kind = GIT_OUTCOME_HELD, .reason = held.reason };
	int result = 0;

	held.task = run->commit->task;
	held.directory = run->cover->path;
	held.path = arena_format(run->arena, "%s%s", area->prefix, held.path);
	outcome.path = held.path;
	if (held.key) {
		held.is_cut |= strlen(held.key) > GIT_HELD_LIMIT_KEY_BYTES;
		held.key = outcome.key =
			arena_format(run->arena, "%.*s", (int)GIT_HELD_LIMIT_KEY_BYTES, held.key);
	}
	outcome.change = held.after.bytes ? held.before.bytes ? CHANGE_MODIFIED : CHANGE_CREATED :
					    CHANGE_REMOVED;
	if (arena_failed(run->arena))
		return error_errno(run->error, ENOMEM, "%s", run->cover->path);
	if (run->result->held < GIT_HELD_LIMIT_ITEMS) {
		git_held_name(&held, outcome.id);
		result = git_held_put(run->commit->state_fd, &held, run->error);
	}
	return result < 0 ? result : git_run_add_outcome(run, outcome);
}

/* What the host has in its place; too large, or no file: nothing is kept of it. */
static struct git_text host_text(struct git_run *run, const struct git_area *area, const char *path)
{
	struct git_text text = { 0 };

	if (git_file_read(area->target.fd, path, GIT_HELD_LIMIT_BYTES, &run->scratch, &text, NULL) <
	    0)
		return (struct git_text){ 0 };
	return text;
}

static struct git_text task_text(struct git_run *run, const struct git_area *area,
				 const struct git_piece *item, struct git_held *held)
{
	struct git_text text = { 0 };
	int result = git_run_read(run, area, item, GIT_HELD_LIMIT_BYTES, &text);

	held->is_cut = result < 0;
	held->is_executable = item->entry->mode & 0111;
	/* removal is what has no text; this is one that could not be kept */
	if (result < 0)
		text.bytes = "";
	return text;
}

static bool is_there(const struct git_area *area, const char *path)
{
	struct stat status;

	return git_file_status(area->target.fd, path, &status) == 0;
}

int git_run_hold(struct git_run *run, struct git_area *area, struct git_piece *item,
		 const char *reason)
{
	struct git_held held = { .path = item->path, .kind = GIT_HELD_FILE, .reason = reason };
	enum git_upper_kind kind = item->entry->kind;

	item->is_done = true;
	arena_reset(&run->scratch);
	if (kind == GIT_UPPER_FILE)
		held.after = task_text(run, area, item, &held);
	else if (kind != GIT_UPPER_GONE)
		held.kind = GIT_HELD_OTHER;
	/* what the host never had, or has anew, the task cannot take away */
	if ((kind == GIT_UPPER_GONE || kind == GIT_UPPER_OPAQUE) && !is_there(area, item->path))
		return 0;
	held.before = host_text(run, area, item->path);
	if (kind == GIT_UPPER_GONE && !held.before.bytes)
		held.kind = GIT_HELD_OTHER;
	if (kind == GIT_UPPER_FILE && !held.is_cut && held.before.bytes &&
	    held.before.length == held.after.length &&
	    memcmp(held.before.bytes, held.after.bytes, held.after.length) == 0)
		return 0;
	return git_run_hold_value(run, area, held);
}

int git_run_failed(struct git_run *run, struct git_area *area, struct git_piece *item, int code)
{
	const char *reason = git_run_reason(code);

	item->is_done = true;
	if (run->error->code)
		return run->error->code;
	if (!reason)
		return error_errno(run->error, code, "%s/%s%s", run->cover->path, area->prefix,
				   item->path);
	return git_run_hold(run, area, item, reason);
}
