/*
 * Watching hidden and protected names in trees that are written in place.
 *
 * There a name is covered by a mount, which goes when the host renames over it, and a name that
 * appears later was never covered. So is what is shown read-only, or by an overlay, inside of a
 * tree that is written. The supervisor watches, from outside of the box, the parent
 * directory of each such name and all directories between it and the writable tree's root
 * (inotify(7)); a parent that does not exist is watched for in the deepest directory that does.
 * What changed is given as rows of the view; who covers them again looks for itself (box_mask()).
 *
 * A window stays: from the host's change to the new mask. It is measured, never denied.
 */
#pragma once

#include "base/arena.h"
#include "policy/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* Each costs one of the user's inotify watches (fs.inotify.max_user_watches). */
#define WATCH_LIMIT_DIRECTORIES 4096u

enum watch_event {
	WATCH_CREATED,	/* the name is there, and was not */
	WATCH_REPLACED, /* another object stands, or may stand, under the name */
	WATCH_REMOVED,	/* the name is free */
};

struct watch_change {
	size_t row; /* index into the view */
	enum watch_event event;
	const char *root; /* target of the writable row that it lies in */
};

struct watch_directory;
struct watch_name;
struct watch_root;

struct watch {
	int fd; /* for poll(2): readable when watch_read() has something; -1: nothing to watch */
	struct arena arena;
	struct watch_root *roots;
	struct watch_directory *directories; /* parents before children */
	struct watch_name *names;
	size_t root_count, directory_count, name_count;
	size_t next; /* the name from which watch_next() goes on */
};

#define WATCH_NONE ((struct watch){ .fd = -1 })

/*
 * Begins to watch; a view without such rows costs nothing. A missing name that has appeared since
 * the view was made is given by watch_next() at once. -E2BIG for the limit; -EACCES where a
 * directory cannot be watched because the caller may not read it.
 */
int watch_open(const struct view *view, struct watch *ret, struct error *error)
	__attribute__((warn_unused_result));

/* Takes one bounded batch of what has happened; never waits. */
int watch_read(struct watch *watch, struct error *error) __attribute__((warn_unused_result));

/* The next changed row, each once; false when there is none. */
bool watch_next(struct watch *watch, struct watch_change *ret_change);

void watch_close(struct watch *watch);
