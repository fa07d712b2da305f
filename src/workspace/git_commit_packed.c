/*
 * Many references at once: as lines of packed-refs, by its lock, where the host has none of them in
 * a file of its own. A file for each, as git would write them, makes each later look at the
 * repository slow.
 *
 * A git of the host that had a reference's lock before packed-refs was changed may write its file
 * afterwards, which then counts: so the files are looked at once more. One that takes the lock
 * later sees what is packed.
 */
#include "workspace/git_commit_ref.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer are set one by one. */
#define PACKED_LEAST 500
/* It says nothing about peeled tags: what a task peeled is not believed. */
#define HEADER "# pack-refs with: sorted \n"

int git_run_host_packed(struct git_run *run, struct git_area *area,
			const struct git_packed **ret_packed)
{
	struct git_text text = { 0 };
	struct stat status = { 0 };
	int result = git_file_status(area->target.fd, "packed-refs", &status);

	*ret_packed = &area->host_packed;
	/* git renames another file to it, and never writes into one */
	if (result == 0 && area->has_host_packed &&
	    status.st_ino == area->host_packed_status.st_ino &&
	    status.st_size == area->host_packed_status.st_size &&
	    memcmp(&status.st_ctim, &area->host_packed_status.st_ctim, sizeof(status.st_ctim)) == 0)
		return 0;
	area->has_host_packed = false;
	area->host_packed = (struct git_packed){ 0 };
	if (result == 0)
		result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES,
				       run->arena, &text, &status);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = git_packed_parse(run->arena, text.bytes, text.length, &area->host_packed);
	if (result < 0)
		return result;
	area->has_host_packed = true;
	area->host_packed_status = status;
	return 0;
}

static bool is_candidate(const struct git_area *area, const struct ref_change *change)
{
	return !change->is_over &&
	       change->new &&git_ref_id_length(change->new, strlen(change->new)) &&
	       git_name_class(change->name, !area->is_worktree) == GIT_REF;
}

static int by_name(const void *a, const void *b)
{
	const struct ref_change *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Those of the changes, sorted; NULL: no memory. */
static struct ref_change **candidates_of(struct git_run *run, const struct git_area *area,
					 const struct git_ref_changes *changes, size_t *ret_count)
{
	struct ref_change **found = arena_array(run->arena, changes->count + 1, sizeof(*found));
	size_t count = 0;

	for (size_t i = 0; found && i < changes->count; i++)
		if (is_candidate(area, &changes->changes[i]))
			found[count++] = &changes->changes[i];
	if (count)
		qsort(found, count, sizeof(*found), by_name);
	*ret_count = count;
	return found;
}

static bool has_below(const struct git_packed *packed, const char *name)
{
	size_t length = strlen(name), low = 0, high = packed->count;
	char below[PATH_MAX];

	if (snprintf(below, sizeof(below), "%s/", name) >= (int)sizeof(below))
		return true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(packed->refs[middle].name, below) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < packed->count && strncmp(packed->refs[low].name, below, length + 1) == 0;
}

bool git_run_has_room(const struct git_packed *packed, const char *name)
{
	char above[PATH_MAX];

	if (has_below(packed, name) || strlen(name) >= sizeof(above))
		return false;
	(void)snprintf(above, sizeof(above), "%s", name);
	for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (git_packed_find(packed, above))
			return false;
	}
	return true;
}

/* Nor two of the task's: what is above comes first among them. */
static bool has_company(struct ref_change **candidates, size_t count, const char *name)
{
	char above[PATH_MAX];
	struct ref_change key = { .name = above }, *pointer = &key;

	(void)snprintf(above, sizeof(above), "%s", name);
	for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (bsearch(&pointer, candidates, count, sizeof(pointer), by_name))
			return true;
	}
	return false;
}

/* By the reference's own lock, as ever. */
static int take_log(struct git_run *run, struct git_area *area, const struct ref_change *change)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_piece *log = git_run_log_of(run, area, change->name);
	int result;

	if (!log)
		return 0;
	result = git_file_lock(&area->target, change->name, true, &lock);
	if (result == 0)
		result = git_run_take_log(run, area, log);
	git_lock_drop(&lock);
	git_file_prune(area->target.fd, change->name, 2);
	return result;
}

/* The host has what the task started from, in packed-refs or not at all. */
static bool may_pack(struct git_run *run, struct git_area *area,
		     const struct git_ref_changes *changes, const struct git_packed *packed,
		     const struct ref_change *change)
{
	const char *now = git_run_packed_value(run, packed, change->name);
	struct stat status;

	return git_file_status(area->target.fd, change->name, &status) == -ENOENT &&
	       (changes->is_start_known || change->old) &&
	       git_run_is_same_value(now, change->old) &&
	       !git_run_is_same_value(now, change->new) &&
	       git_run_has_object(run, area, change->new);
}

/* Leaves those among the candidates that can be packed. */
static int select_some(struct git_run *run, struct git_area *area,
		       const struct git_ref_changes *changes, const struct git_packed *packed,
		       struct ref_change **candidates, size_t *count)
{
	struct ref_change **kept = arena_array(run->arena, *count + 1, sizeof(*kept));
	size_t used = 0;
	int result = 0;

	for (size_t i = 0; kept && result == 0 && i < *count; i++) {
		struct ref_change *change = candidates[i];

		if (!may_pack(run, area, changes, packed, change) ||
		    !git_run_has_room(packed, change->name) ||
		    has_company(candidates, *count, change->name))
			continue;
		result = take_log(run, area, change);
		if (result < 0 && !git_run_reason(result))
			return result;
		/* it is looked at by itself, and held then */
		if (result == 0)
			kept[used++] = change;
		result = 0;
	}
	if (!kept)
		return -ENOMEM;
	memcpy(candidates, kept, used * sizeof(*kept));
	*count = used;
	return 0;
}

/* Both sorted; what the task changed takes the place of the host's line, and of its peeled one. */
static int write_merged(struct git_run *run, struct git_lock *lock, const struct git_packed *packed,
			struct ref_change **changes, size_t count)
{
	size_t room = sizeof(HEADER) + packed->length, used = sizeof(HEADER) - 1, at = 0;
	char *text;

	for (size_t i = 0; i < count; i++)
		room += strlen(changes[i]->new) + strlen(changes[i]->name) + 2;
	/* nobody here could read it again */
	if (room > GIT_PACKED_LIMIT_BYTES)
		return -EFBIG;
	text = arena_allocate(run->arena, room + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, HEADER, used);
	for (size_t i = 0; i < packed->count || at < count;) {
		const struct git_packed_ref *ref = i < packed->count ? &packed->refs[i] : NULL;
		int order = !ref ? 1 : at == count ? -1 : strcmp(ref->name, changes[at]->name);

		if (order < 0) {
			memcpy(text + used, packed->bytes + ref->begin, ref->end - ref->begin);
			used += ref->end - ref->begin;
		} else {
			used += (size_t)snprintf(text + used, room + 1 - used, "%s %s\n",
						 changes[at]->new, changes[at]->name);
			at++;
		}
		i += order <= 0;
	}
	return git_lock_write(lock, text, used);
}

/* No file of its own came meanwhile, or one with the same value. */
static bool is_alone(struct git_run *run, struct git_area *area, const char *name)
{
	const char *lock = arena_format(run->arena, "%s.lock", name);
	struct stat status;

	return lock && git_file_status(area->target.fd, lock, &status) < 0 &&
	       git_file_status(area->target.fd, name, &status) < 0;
}

static int conclude(struct git_run *run, struct git_area *area, struct ref_change *change)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const char *now = change->new;
	int result = 0;

	if (!is_alone(run, area, change->name)) {
		result = git_file_lock(&area->target, change->name, true, &lock);
		if (result == 0)
			result = git_run_host_value(run, area, change->name, &now);
		git_lock_drop(&lock);
		git_file_prune(area->target.fd, change->name, 2);
	}
	if (result < 0)
		return git_run_ref_failed(run, area, change, result);
	if (!git_run_is_same_value(now, change->new))
		return git_run_hold_ref(run, area, change, GIT_RUN_CHANGED);
	change->is_over = true;
	return git_run_applied(run, area, change->name,
			       change->old ? CHANGE_MODIFIED : CHANGE_CREATED);
}

int git_run_set_packed(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const struct git_packed *packed;
	struct ref_change **candidates;
	size_t count = 0;
	int result;

	if (area->is_worktree || changes->count < PACKED_LEAST)
		return 0;
	candidates = candidates_of(run, area, changes, &count);
	if (!candidates)
		return -ENOMEM;
	/* where it cannot be done at once, each is set by itself, and says why not */
	if (count < PACKED_LEAST || git_file_lock(&area->target, "packed-refs", false, &lock) < 0 ||
	    git_run_host_packed(run, area, &packed) < 0)
		return 0;
	result = select_some(run, area, changes, packed, candidates, &count);
	if (result == 0 && count)
		result = write_merged(run, &lock, packed, candidates, count);
	if (result == -EFBIG || (result == 0 && !count))
		return 0;
	if (result == 0)
		result = git_lock_commit(&lock);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = conclude(run, area, candidates[i]);
	return result;
}
