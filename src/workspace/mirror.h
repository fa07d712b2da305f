/*
 * A second tree that follows a walk (base/walk.h) through a first one: directories of the same
 * names, made when something is to stand in them, and finished with the mode and the times of the
 * first tree's when the walk has left them.
 *
 * One descriptor, whatever the depth: the second tree is nobody's but ours meanwhile, so that ".."
 * leads back.
 */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct mirror {
	int fd;	     /* the directory of the second tree at depth `at`; owned */
	int root_fd; /* where a path below leads from; borrowed */
	unsigned at, depth;
	struct mirror_level {
		size_t end; /* of its path */
		struct stat status;
		bool is_made; /* by us, or it is to be as the first tree's: it gets the state */
	} * levels;
	size_t room;
	struct buffer path; /* of the walk's directory below its root */
	bool gives_owners;
};

#define MIRROR_NONE ((struct mirror){ .fd = -1 })
#define CLEANUP_MIRROR __attribute__((cleanup(mirror_end)))

/* Takes the second tree's root, open to be read. */
void mirror_begin(struct mirror *mirror, int fd);

/* With the walk's ENTER, at its depth; status is the first tree's directory. */
int mirror_enter(struct mirror *mirror, unsigned depth, const char *name, const struct stat *status)
	__attribute__((warn_unused_result));

/*
 * The second tree's directory for where the walk is, made where it is missing; what stands there
 * and is none is removed. A borrowed descriptor, good until the walk goes on, or a negative errno.
 */
int mirror_make(struct mirror *mirror);

/*
 * The path of a name in the walk's directory, below its root; "" for the directory itself. Good
 * until the next call. NULL without memory.
 */
const char *mirror_path(struct mirror *mirror, const char *name);

/* After the walk: the directories that are left get their state. */
int mirror_finish(struct mirror *mirror) __attribute__((warn_unused_result));

void mirror_end(struct mirror *mirror);
