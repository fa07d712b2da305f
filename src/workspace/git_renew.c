#include "workspace/git_renew.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_file.h"
#include "workspace/git_index.h"
#include "workspace/git_ref.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct renewal {
	const struct git_cover *cover;
	const struct git_snapshot_part *previous;
	struct git_snapshot_part *part;
	struct git_upper upper;
	bool *is_gone; /* of the part's states */
	struct git_state *added;
	size_t added_count;
	struct arena *arena, scratch;
};

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* In the git directory itself, or in that of a worktree or module. */
static bool is_ref(const char *path)
{
	return strncmp(path, "refs/", 5) == 0 || strstr(path, "/refs/");
}

static bool is_config(const char *path)
{
	const char *name = last_name(path);

	return !is_ref(path) &&
	       (strcmp(name, "config") == 0 || strcmp(name, "config.worktree") == 0);
}

/* In its place later on: each path comes once. */
static struct git_state *find_or_add(struct renewal *renewal, const char *path)
{
	const struct git_state *state = git_snapshot_find(renewal->part, path);
	struct git_state *added;

	if (state)
		return (struct git_state *)state;
	added = arena_push(renewal->arena, renewal->added, renewal->added_count, sizeof(*added));
	if (!added)
		return NULL;
	renewal->added = added;
	added += renewal->added_count++;
	*added = (struct git_state){ .path = path, .fd = -1 };
	return added;
}

static int set_text(struct renewal *renewal, const char *path, const char *text, size_t length)
{
	struct git_state *state = find_or_add(renewal, path);

	if (!state)
		return -ENOMEM;
	state->text = text;
	state->length = length;
	return 0;
}

static int take_value(struct renewal *renewal, const char *path)
{
	struct git_text text;
	int result = git_file_read(renewal->cover->upper_fd, path, GIT_REF_LIMIT_BYTES,
				   renewal->arena, &text, NULL);

	if (result < 0)
		return result == -ENOMEM ? result : 0;
	return set_text(renewal, path, text.bytes, text.length);
}

static int take_config(struct renewal *renewal, const char *path)
{
	const struct git_state *previous = git_snapshot_find(renewal->previous, path);
	const char *text = NULL;

	if (previous && previous->text) {
		text = arena_copy_bytes(renewal->arena, previous->text, previous->length);
		if (!text)
			return -ENOMEM;
	}
	return set_text(renewal, path, text, text ? previous->length : 0);
}

static int take_packed(struct renewal *renewal, const char *path)
{
	struct git_state *state = find_or_add(renewal, path);
	struct stat status;

	if (!state)
		return -ENOMEM;
	fd_close(&state->fd);
	state->fd =
		fd_open_beneath(renewal->cover->upper_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (state->fd < 0 || fstat(state->fd, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	state->size = (uint64_t)status.st_size;
	return 0;
}

static bool is_same(struct git_text a, struct git_text b)
{
	return a.length == b.length && (!a.length || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* The host's git status may have refreshed what the task's git wrote. */
static bool has_same_content(struct renewal *renewal, const char *path)
{
	struct git_text host, task;

	arena_reset(&renewal->scratch);
	if (git_file_read(renewal->cover->fd, path, GIT_INDEX_LIMIT_BYTES, &renewal->scratch, &host,
			  NULL) < 0 ||
	    git_file_read(renewal->cover->upper_fd, path, GIT_INDEX_LIMIT_BYTES, &renewal->scratch,
			  &task, NULL) < 0)
		return false;
	if (is_same(host, task))
		return true;
	return strcmp(last_name(path), "index") == 0 &&
	       (git_index_is_same(host.bytes, host.length, task.bytes, task.length, 20) ||
		git_index_is_same(host.bytes, host.length, task.bytes, task.length, 32));
}

static int take_other(struct renewal *renewal, const char *path)
{
	struct git_state *state;

	if (has_same_content(renewal, path))
		return 0;
	state = find_or_add(renewal, path);
	if (!state)
		return -ENOMEM;
	fd_close(&state->fd);
	state->is_diverged = true;
	return 0;
}

static int take_file(struct renewal *renewal, const char *path)
{
	if (is_ref(path) || strcmp(last_name(path), "HEAD") == 0)
		return take_value(renewal, path);
	if (is_config(path))
		return take_config(renewal, path);
	if (strcmp(last_name(path), "packed-refs") == 0)
		return take_packed(renewal, path);
	return take_other(renewal, path);
}

static void forget_one(struct renewal *renewal, const struct git_upper_entry *entry, size_t at)
{
	struct git_state *state = &renewal->part->states[at];

	if (entry->kind == GIT_UPPER_OPAQUE && git_upper_find(&renewal->upper, state->path))
		return;
	fd_close(&state->fd);
	renewal->is_gone[at] = true;
}

/* What the task does not see was not there for it: the path itself, and what lay below. */
static int forget(struct renewal *renewal, const struct git_upper_entry *entry)
{
	const struct git_snapshot_part *part = renewal->part;
	char *below = arena_format(renewal->arena, "%s/", entry->path);
	size_t at = git_snapshot_first(part, entry->path);

	if (!below)
		return -ENOMEM;
	if (at < part->count && strcmp(part->states[at].path, entry->path) == 0)
		forget_one(renewal, entry, at);
	for (at = git_snapshot_first(part, below);
	     at < part->count && strncmp(part->states[at].path, below, strlen(below)) == 0; at++)
		forget_one(renewal, entry, at);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct git_state *left = a, *right = b;

	return strcmp(left->path, right->path);
}

/* What was there and is not forgotten, and what came. */
static int merge(struct renewal *renewal)
{
	struct git_snapshot_part *part = renewal->part;
	struct git_state *states =
		arena_array(renewal->arena, part->count + renewal->added_count, sizeof(*states));
	size_t count = 0;

	if (!states)
		return -ENOMEM;
	for (size_t i = 0; i < part->count; i++)
		if (!renewal->is_gone[i])
			states[count++] = part->states[i];
	for (size_t i = 0; i < renewal->added_count; i++)
		states[count++] = renewal->added[i];
	if (count)
		qsort(states, count, sizeof(*states), by_path);
	part->states = states;
	part->count = count;
	return 0;
}

static int take_seen(struct renewal *renewal)
{
	struct git_snapshot_part *part = renewal->part;
	const struct git_upper *upper = &renewal->upper;

	part->seen = arena_array(renewal->arena, upper->count, sizeof(*part->seen));
	if (!part->seen)
		return -ENOMEM;
	for (size_t i = 0; i < upper->count; i++) {
		const struct git_upper_entry *entry = &upper->entries[i];
		bool is_gone = entry->kind == GIT_UPPER_GONE;

		part->seen[part->seen_count++] = (struct git_seen){
			.path = entry->path,
			.inode = is_gone ? 0 : entry->inode,
			.changed_ns = is_gone ? 0 : entry->changed_ns,
		};
	}
	return 0;
}

static int renew_part(struct renewal *renewal, struct error *error)
{
	int result =
		git_upper_read(renewal->cover->upper_fd, renewal->arena, &renewal->upper, error);

	renewal->is_gone =
		arena_array(renewal->arena, renewal->part->count, sizeof(*renewal->is_gone));
	if (result == 0 && !renewal->is_gone)
		result = -ENOMEM;
	for (size_t i = 0; result == 0 && i < renewal->upper.count; i++) {
		const struct git_upper_entry *entry = &renewal->upper.entries[i];

		/* in the host's store by now, or not: neither is compared again */
		if (git_upper_is_object(entry->path))
			continue;
		if (entry->kind == GIT_UPPER_FILE)
			result = take_file(renewal, entry->path);
		else if (entry->kind == GIT_UPPER_GONE || entry->kind == GIT_UPPER_OPAQUE)
			result = forget(renewal, entry);
	}
	if (result == 0)
		result = merge(renewal);
	if (result == 0)
		result = take_seen(renewal);
	arena_free(&renewal->scratch);
	return result < 0 && !error->code ? error_errno(error, result, "%s", renewal->cover->path) :
					    result;
}

/* In memory of this snapshot, the descriptors moved over. */
static int move_part(struct git_snapshot_part *from, struct arena *arena,
		     struct git_snapshot_part *ret_part)
{
	struct git_snapshot_part part = *from;

	part.states = arena_array(arena, from->count, sizeof(*part.states));
	part.seen = arena_array(arena, from->seen_count, sizeof(*part.seen));
	for (size_t i = 0; part.states && i < from->count; i++) {
		struct git_state *state = &from->states[i];

		part.states[i] = *state;
		part.states[i].path = arena_copy(arena, state->path);
		if (state->text)
			part.states[i].text = arena_copy_bytes(arena, state->text, state->length);
	}
	for (size_t i = 0; part.seen && i < from->seen_count; i++) {
		part.seen[i] = from->seen[i];
		part.seen[i].path = arena_copy(arena, from->seen[i].path);
	}
	if (from->fault)
		part.fault = arena_copy(arena, from->fault);
	if (arena_failed(arena))
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++)
		from->states[i].fd = -1;
	*ret_part = part;
	return 0;
}

/* What was taken anew for those goes. */
static int keep_deferred(struct git_snapshot *snapshot, struct git_snapshot *previous,
			 const bool *deferred, struct arena *arena)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < snapshot->count; i++) {
		struct git_snapshot_part *fresh = &snapshot->parts[i];

		if (!deferred[i])
			continue;
		for (size_t j = 0; j < fresh->count; j++)
			fd_close(&fresh->states[j].fd);
		result = move_part(&previous->parts[i], arena, fresh);
	}
	return result;
}

int git_renew(const struct git_cover *covers, size_t count, struct git_snapshot *previous,
	      const bool *deferred, struct arena *arena, struct git_snapshot *ret_snapshot,
	      struct error *error)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	int result = git_snapshot_take(covers, count, arena, &snapshot, error);

	for (size_t i = 0; result == 0 && i < count; i++) {
		struct renewal renewal = { .cover = &covers[i],
					   .previous = &previous->parts[i],
					   .part = &snapshot.parts[i],
					   .arena = arena };

		if (!deferred[i])
			result = renew_part(&renewal, error);
	}
	if (result < 0)
		return result;
	if (keep_deferred(&snapshot, previous, deferred, arena) < 0)
		return error_errno(error, ENOMEM, "git directories");
	*ret_snapshot = snapshot;
	snapshot = GIT_SNAPSHOT_NONE;
	return 0;
}
