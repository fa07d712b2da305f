#include "workspace/git_commit_internal.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_config.h"
#include "workspace/git_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_same(struct git_text a, struct git_text b)
{
	return a.length == b.length && (!a.length || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* 0 and ret_exists; or why the host's file cannot be looked at. */
static int host_status(const struct git_area *area, const char *path, struct stat *ret_status,
		       bool *ret_exists)
{
	int result = git_file_status(area->target.fd, path, ret_status);

	*ret_exists = result == 0;
	return result == -ENOENT ? 0 : result;
}

/* Under the file's lock. */
static bool has_text(struct git_run *run, const struct git_area *area, const char *path,
		     const struct stat *status, struct git_text text)
{
	struct git_text now;

	return (uint64_t)status->st_size == text.length &&
	       git_file_read(area->target.fd, path, text.length, &run->scratch, &now, NULL) == 0 &&
	       is_same(now, text);
}

static int write_text(struct git_run *run, struct git_area *area, struct git_piece *item,
		      struct git_text text, struct git_lock *lock, bool exists)
{
	int result = git_lock_write(lock, text.bytes, text.length);

	if (result == 0)
		result = git_lock_commit(lock);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return git_run_applied(run, area, item->path, exists ? CHANGE_MODIFIED : CHANGE_CREATED);
}

/* A message whose commit has it: the host's later one stays, and nothing is lost. */
static bool is_draft(const char *path)
{
	static const char end[] = "_EDITMSG";
	size_t length = strlen(path);

	return length >= sizeof(end) && strcmp(path + length - sizeof(end) + 1, end) == 0;
}

int git_run_put(struct git_run *run, struct git_area *area, struct git_piece *item,
		struct git_text text)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct stat status;
	bool exists = false;
	int result = git_file_lock(&area->target, item->path, true, &lock);

	item->is_done = true;
	if (result == 0)
		result = host_status(area, item->path, &status, &exists);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	if (exists && has_text(run, area, item->path, &status, text))
		return 0;
	if (!git_run_is_unchanged(run, area, item->path, exists ? &status : NULL))
		return is_draft(item->path) ? 0 : git_run_hold(run, area, item, GIT_RUN_CHANGED);
	return write_text(run, area, item, text, &lock, exists);
}

int git_run_remove(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct stat status;
	bool exists = false;
	int result = host_status(area, item->path, &status, &exists);

	item->is_done = true;
	if (result == 0 && !exists)
		return 0;
	if (result == 0)
		result = git_file_lock(&area->target, item->path, false, &lock);
	if (result == 0)
		result = host_status(area, item->path, &status, &exists);
	if (result == 0 && exists &&
	    (!S_ISREG(status.st_mode) || !git_run_is_unchanged(run, area, item->path, &status)))
		return git_run_hold(run, area, item, GIT_RUN_CHANGED);
	if (result == 0)
		result = git_lock_remove(&lock);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return git_run_applied(run, area, item->path, CHANGE_REMOVED);
}

/* The host's index of the start, from the descriptor that was kept. */
static int read_start(struct git_run *run, const struct git_state *state, struct git_text *ret_text)
{
	char *bytes;
	ssize_t length;

	if (!state || state->fd < 0 || state->size > GIT_INDEX_LIMIT_BYTES)
		return -ESTALE;
	bytes = arena_allocate(&run->scratch, state->size + 1);
	length = bytes ? pread(state->fd, bytes, state->size, 0) : -1;
	if (length < 0)
		return bytes ? -errno : -ENOMEM;
	*ret_text = (struct git_text){ .bytes = bytes, .length = (size_t)length };
	return 0;
}

/*
 * A `git status` of the host writes the index anew, with other times and the same entries: that is
 * no reason to hold the task's.
 */
static bool is_index_unchanged(struct git_run *run, struct git_area *area, struct git_text now,
			       const struct stat *status)
{
	const struct git_state *state = git_run_state(run, area, "index");
	struct git_text start = { 0 };

	if (state && git_state_is(state, status))
		return true;
	return read_start(run, state, &start) == 0 &&
	       git_index_is_same(start.bytes, start.length, now.bytes, now.length, run->id_bytes);
}

struct question {
	struct git_run *run;
	struct git_area *area;
};

static bool has_object(void *context, const unsigned char *id)
{
	const struct question *question = context;
	char path[GIT_OBJECT_PATH_BYTES], digits[GIT_OBJECT_PATH_BYTES];

	git_object_path(id, question->run->id_bytes, path);
	(void)snprintf(digits, sizeof(digits), "%.2s%s", path, path + 3);
	return git_run_has_object(question->run, question->area, digits);
}

/* What would make of the host's index one that nothing can be committed from. */
static const char *missing_of(struct git_run *run, struct git_area *area, struct git_text text,
			      struct git_text now)
{
	struct question question = { run, area };

	if (git_run_is_commit_held(run, area))
		return "the commit that it goes with is held";
	return git_index_has_all(text.bytes, text.length, now.bytes, now.length, run->id_bytes,
				 has_object, &question) ?
		       NULL :
		       "an object that it names is missing";
}

static int replace_index(struct git_run *run, struct git_area *area, struct git_piece *item,
			 struct git_text text)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_text now = { 0 };
	struct stat status;
	const char *missing = NULL;
	int result = git_file_lock(&area->target, item->path, false, &lock);

	if (result == 0)
		result = git_file_read(area->target.fd, item->path, GIT_INDEX_LIMIT_BYTES,
				       &run->scratch, &now, &status);
	if ((result == 0 && !is_same(now, text)) || result == -ENOENT)
		missing = missing_of(run, area, text, now);
	if (missing)
		return git_run_hold(run, area, item, missing);
	if (result == -ENOENT && !git_run_state(run, area, item->path))
		return write_text(run, area, item, text, &lock, false);
	if (result == -ENOENT)
		return git_run_hold(run, area, item, GIT_RUN_CHANGED);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	if (is_same(now, text))
		return 0;
	if (!is_index_unchanged(run, area, now, &status))
		return git_run_hold(run, area, item, GIT_RUN_CHANGED);
	/* what a file system monitor saw: git looks at nothing else then */
	if (git_index_has(text.bytes, text.length, run->id_bytes, "FSMN") &&
	    !git_index_has(now.bytes, now.length, run->id_bytes, "FSMN"))
		return git_run_hold(run, area, item, "it says what a file system monitor saw");
	return write_text(run, area, item, text, &lock, true);
}

int git_run_index(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	const char *fault;
	struct git_text text;
	int result;

	item->is_done = true;
	if (item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "the index would be empty without it");
	if (run->commit->holds_index)
		return git_run_hold(run, area, item, "the work tree was not looked through");
	result = git_run_read(run, area, item, GIT_INDEX_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	fault = git_index_fault(text.bytes, text.length, run->id_bytes);
	return fault ? git_run_hold(run, area, item, fault) : replace_index(run, area, item, text);
}

static struct git_text start_config(struct git_run *run, struct git_area *area, const char *path)
{
	const struct git_state *state = git_run_state(run, area, path);

	return state && state->text ? (struct git_text){ state->text, state->length } :
				      (struct git_text){ 0 };
}

/* core.worktree of a module: where it stands in the superproject. */
static bool is_own_worktree(struct git_run *run, struct git_area *area,
			    const struct git_config_held *held)
{
	return *area->prefix && !area->is_worktree && strcmp(held->key, "core.worktree") == 0 &&
	       held->after && git_run_is_inside(run, area, held->after);
}

/* A new repository says what it would be without saying it. */
static bool is_default(const struct git_area *area, const struct git_config_held *held)
{
	return area->is_new && strcmp(held->key, "core.bare") == 0 && held->after &&
	       strcmp(held->after, "false") == 0;
}

static int hold_keys(struct git_run *run, struct git_area *area, struct git_piece *item,
		     const struct git_config_merge *merge, const char **ret_worktree)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < merge->held_count; i++) {
		const struct git_config_held *key = &merge->held[i];
		struct git_held held = {
			.path = item->path,
			.key = key->key,
			.kind = GIT_HELD_CONFIG,
			.reason = git_config_reason_text(key->reason),
			.before = { key->before, key->before ? strlen(key->before) : 0 },
			.after = { key->after, key->after ? strlen(key->after) : 0 },
		};

		if (is_own_worktree(run, area, key) && !*ret_worktree)
			*ret_worktree = key->after;
		else if (!is_default(area, key))
			result = git_run_hold_value(run, area, held);
	}
	return result;
}

/* Quoted, since a path may have any byte; those that need more than that are not taken. */
static int add_worktree(struct git_run *run, struct git_config_merge *merge, struct git_text now,
			const char *worktree)
{
	struct git_text text = merge->text ? (struct git_text){ merge->text, merge->length } : now;
	const char *end = text.length && text.bytes[text.length - 1] != '\n' ? "\n" : "";

	merge->text = arena_format(&run->scratch, "%.*s%s[core]\n\tworktree = \"%s\"\n",
				   (int)text.length, text.length ? text.bytes : "", end, worktree);
	merge->length = merge->text ? strlen(merge->text) : 0;
	return merge->text ? 0 : -ENOMEM;
}

static int merge_config(struct git_run *run, struct git_area *area, struct git_piece *item,
			struct git_text after)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_config_merge merge = { 0 };
	struct error error = ERROR_NONE;
	const char *worktree = NULL;
	struct git_text now = { 0 };
	int result = git_file_lock(&area->target, item->path, true, &lock);
	bool exists;

	if (result == 0)
		result = git_file_read(area->target.fd, item->path, GIT_SNAPSHOT_LIMIT_CONFIG_BYTES,
				       &run->scratch, &now, NULL);
	exists = result == 0;
	if (result < 0 && result != -ENOENT)
		return git_run_failed(run, area, item, result);
	result = git_config_merge(&run->scratch, start_config(run, area, item->path), after, now,
				  &merge, &error);
	if (result == -EBADMSG || result == -EFBIG)
		return git_run_hold(run, area, item, "git could not read it");
	if (result == 0)
		result = hold_keys(run, area, item, &merge, &worktree);
	if (result == 0 && worktree)
		result = add_worktree(run, &merge, now, worktree);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	if (!merge.text || is_same(now, (struct git_text){ merge.text, merge.length }))
		return 0;
	return write_text(run, area, item, (struct git_text){ merge.text, merge.length }, &lock,
			  exists);
}

int git_run_config(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct git_text text;
	int result;

	item->is_done = true;
	if (item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "git works differently without it");
	result = git_run_read(run, area, item, GIT_SNAPSHOT_LIMIT_CONFIG_BYTES, &text);
	return result < 0 ? git_run_failed(run, area, item, result) :
			    merge_config(run, area, item, text);
}
