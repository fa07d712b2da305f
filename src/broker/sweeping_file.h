/*
 * What a look through a workspace needs of the start, as a file of the task's directory: for the
 * start that finds the directory of a supervisor that was killed.
 *
 * It is written over an earlier one in place, since a new inode for each task costs more than all
 * the rest; a digest tells one that was not written whole, and the task's id one of another task.
 */
#pragma once

#include "workspace/sweep.h"

#include <stddef.h>

struct arena;

#define SWEEPING_FILE "sweep"
/* A UUID and a NUL. */
#define SWEEPING_BOOT_BYTES 37

struct sweeping_kept {
	const char *task, *workspace;
	char boot[SWEEPING_BOOT_BYTES]; /* of the kernel's boot; "" where it does not say */
	struct sweep sweep;		/* its descriptor is not kept: -1 */
	struct sweep_known *covered;
	size_t covered_count;
	const char **absent, **gits;
	size_t absent_count, git_count;
	struct sweep_link *links;
	size_t link_count;
};

/*
 * Where it does not fit (a full disk, a tree of too many names) what it leaves reads as -EBADMSG; a
 * negative errno where not even that could be left.
 */
int sweeping_file_write(int task_fd, const struct sweeping_kept *kept);

/* The present boot (random(4), boot_id). */
void sweeping_file_boot(char ret_boot[static SWEEPING_BOOT_BYTES]);

/* -ENOENT, also where nothing was written of it; -EBADMSG: none that was written whole. */
int sweeping_file_read(int task_fd, struct arena *arena, struct sweeping_kept *ret_kept);
