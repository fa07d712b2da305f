#include "workspace/git_commit_ref.h"

#include <errno.h>
#include <string.h>

/* Locks that are held at once, two descriptors each. */
#define GONE_BATCH 64

/* The host's HEAD, or that of one of its worktrees, names the branch. */
static bool is_checked_out(struct git_run *run, struct git_area *area, const char *name)
{
	size_t length = strlen(area->prefix);

	for (size_t i = git_snapshot_first(run->before, area->prefix); i < run->before->count;
	     i++) {
		const char *path = run->before->states[i].path, *value;
		struct git_text text;

		if (strncmp(path, area->prefix, length) != 0)
			break;
		path += length;
		if (strcmp(path, "HEAD") != 0 &&
		    (strncmp(path, "worktrees/", 10) != 0 || !git_run_is_head(path)))
			continue;
		if (git_file_read(area->target.fd, path, GIT_REF_LIMIT_BYTES, run->arena, &text,
				  NULL) < 0)
			continue;
		value = git_ref_value(run->arena, text.bytes, text.length, true);
		if (value && strncmp(value, "ref: ", 5) == 0 && strcmp(value + 5, name) == 0)
			return true;
	}
	return false;
}

struct gone {
	struct ref_change *change;
	struct git_lock lock;
};

static int lock_gone(struct git_run *run, struct git_area *area,
		     const struct git_ref_changes *changes, struct ref_change *change,
		     struct gone *ret_gone, bool *ret_may)
{
	int result;

	*ret_may = false;
	ret_gone->change = change;
	ret_gone->lock = GIT_LOCK_NONE;
	if (is_checked_out(run, area, change->name))
		return git_run_hold_ref(run, area, change, "it is checked out");
	result = git_file_lock(&area->target, change->name, true, &ret_gone->lock);
	if (result < 0)
		return git_run_ref_failed(run, area, change, result);
	result = git_run_may_change(run, area, changes, change, ret_may);
	if (*ret_may)
		return result;
	git_lock_drop(&ret_gone->lock);
	git_file_prune(area->target.fd, change->name, 2);
	return result;
}

static bool is_among(const struct gone *gone, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(gone[i].change->name, name) == 0)
			return true;
	return false;
}

/* The text without the lines of those; all else stays byte for byte. */
static int write_packed(struct git_lock *lock, const struct git_packed *packed,
			const struct gone *gone, size_t count, struct arena *scratch)
{
	char *text = arena_copy_bytes(scratch, packed->bytes, packed->length);
	size_t used = 0;

	if (!text)
		return -ENOMEM;
	/* the header says that the rest is sorted, which it stays */
	if (packed->length && text[0] == '#')
		used = (size_t)((const char *)memchr(text, '\n', packed->length) - text) + 1;
	for (size_t i = 0; i < packed->count; i++) {
		const struct git_packed_ref *ref = &packed->refs[i];

		if (is_among(gone, count, ref->name))
			continue;
		memcpy(text + used, packed->bytes + ref->begin, ref->end - ref->begin);
		used += ref->end - ref->begin;
	}
	return git_lock_write(lock, text, used);
}

static int unpack_gone(struct git_run *run, struct git_area *area, const struct gone *gone,
		       size_t count)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_packed packed = { 0 };
	struct git_text text = { 0 };
	bool is_needed = false;
	int result = git_file_lock(&area->target, "packed-refs", false, &lock);

	arena_reset(&run->scratch);
	if (result == 0)
		result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES,
				       &run->scratch, &text, NULL);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = git_packed_parse(&run->scratch, text.bytes, text.length, &packed);
	for (size_t i = 0; result == 0 && i < count; i++)
		is_needed |= git_packed_find(&packed, gone[i].change->name) != NULL;
	if (result < 0 || !is_needed)
		return result;
	result = write_packed(&lock, &packed, gone, count, &run->scratch);
	return result < 0 ? result : git_lock_commit(&lock);
}

static int remove_log(struct git_run *run, struct git_area *area, const char *name)
{
	const char *path = arena_format(run->arena, "logs/%s", name);
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_piece *item = path ? git_run_item(area, path) : NULL;
	struct stat status;
	int result;

	if (!path)
		return -ENOMEM;
	if (item)
		item->is_done = true;
	if (git_file_status(area->target.fd, path, &status) < 0)
		return 0;
	result = git_file_lock(&area->target, path, false, &lock);
	if (result == 0)
		result = git_lock_remove(&lock);
	git_file_prune(area->target.fd, path, 3);
	return result;
}

static int remove_gone(struct git_run *run, struct git_area *area, struct gone *gone)
{
	const char *name = gone->change->name;
	int result = remove_log(run, area, name);

	if (result == 0)
		result = git_lock_remove(&gone->lock);
	git_lock_drop(&gone->lock);
	if (result < 0)
		return git_run_ref_failed(run, area, gone->change, result);
	git_file_prune(area->target.fd, name, 2);
	gone->change->is_over = true;
	return git_run_applied(run, area, name, CHANGE_REMOVED);
}

/* As git does: out of packed-refs first, lest an old value come back. */
static int remove_batch(struct git_run *run, struct git_area *area, struct gone *gone, size_t count)
{
	int packed = count ? unpack_gone(run, area, gone, count) : 0, result = 0;

	for (size_t i = 0; i < count; i++) {
		if (packed == 0 && result == 0) {
			result = remove_gone(run, area, &gone[i]);
			continue;
		}
		git_lock_drop(&gone[i].lock);
		if (result == 0)
			result = git_run_ref_failed(run, area, gone[i].change, packed);
	}
	return result;
}

int git_run_gone_refs(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct gone gone[GONE_BATCH];
	size_t count = 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i < changes->count; i++) {
		struct ref_change *change = &changes->changes[i];
		bool may;

		if (change->is_over || change->new)
			continue;
		result = lock_gone(run, area, changes, change, &gone[count], &may);
		count += may;
		if (count == GONE_BATCH && result == 0) {
			result = remove_batch(run, area, gone, count);
			count = 0;
		}
	}
	if (result < 0)
		for (size_t i = 0; i < count; i++)
			git_lock_drop(&gone[i].lock);
	else
		result = remove_batch(run, area, gone, count);
	/* what had to wait for the name of one that is gone now */
	return result < 0 ? result : git_run_set_refs(run, area, changes);
}
