/*
 * Copies and removals of trees that a task made: bounded, nothing followed, nothing opened but
 * directories and regular files. The store of what is held is who uses it.
 */
#pragma once

#include <stdint.h>

/*
 * Copies an object to a free name: contents with their holes, links, permissions without set-id
 * bits, times, and owners where the caller may give them. Hard links become files of their own;
 * what is neither file, link nor directory is left out and counted. -EFBIG for what is larger than
 * the limits of git_held_tree.h. On failure nothing is left of the copy.
 */
int git_held_tree_copy(int from_fd, const char *from, int to_fd, const char *to,
		       uint64_t *ret_omitted) __attribute__((warn_unused_result));

/* Removes an object with all that is below it. -ENOTEMPTY: somebody puts new names there. */
int git_held_tree_remove(int parent_fd, const char *name);

/* -ESTALE where something in it has a later change time; what cannot be looked at, too. */
int git_held_tree_check(int parent_fd, const char *name, int64_t held_ns);
