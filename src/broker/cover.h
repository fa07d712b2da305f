/*
 * Keeping hidden and protected names covered in trees that are written in place, while a task runs:
 * the host may put another object under such a name at any moment.
 *
 * What an option names is watched (workspace/watch.h). What built-in rules keep in nearly every
 * workspace, git directories and settings of editors, is *guarded*: looked at from time to time
 * while an action runs. To end a watch costs ten milliseconds and more of waiting for the kernel
 * (fsnotify_destroy_group() waits for a grace period), which is more than all else of a start.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct box;
struct error;
struct policy;
struct view;
struct watch;
struct watch_change;

/* Told of each name that was found open and is covered now; negative ends it all. */
typedef int cover_told(void *context, const struct watch_change *seen, uint64_t window_ns,
		       struct error *error);

/*
 * Covers again what the watch has seen. `started` is false before the first action: nothing can
 * have seen what lay open then. Negative where a name may lie open; the box must end then.
 */
int cover_names(struct watch *names, struct box *box, const struct policy *policy, int started,
		cover_told *told, void *context, struct error *error);

/* As long as another object may stand under a guarded name before it is covered. */
#define COVER_GRAIN_NS (250ull * 1000 * 1000)

struct cover_guard {
	struct cover_guarded {
		size_t row;
		uint64_t device, inode; /* as last seen; 0: no such name */
	} * names;			/* in the arena */
	size_t count;
};

/* The guarded names of a policy, and a view of the same rows in which only the others are left. */
int cover_guard(const struct policy *policy, struct arena *arena, struct cover_guard *ret_guard,
		struct view *ret_watched, struct error *error);

/* Looks at the guarded names, and covers again what changed; as cover_names(). */
int cover_look(struct cover_guard *guard, struct box *box, const struct policy *policy, int started,
	       cover_told *told, void *context, struct error *error);
