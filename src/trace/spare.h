/*
 * Empty files kept for the chains of later tasks: a new inode costs a start 50 us on a quiet ext4,
 * and 200 to 600 where much was removed in the last seconds (it looks at each inode freed since); a
 * new name for one that is there costs 20. They lie beside the chains, in trace/tasks, so that the
 * rename is one within a directory, under names that are no chain's.
 *
 * A spare is made while the action of a task runs and nothing else is to be done. Who takes one does
 * so by the rename, which one process wins. Descriptors are borrowed; errors: negative errno.
 */
#pragma once

/* As many as start at a time where much is started; further ones make their own. */
#define SPARE_COUNT 8

/* Gives one the name and opens it for appending. -ENOENT: there is none; -EEXIST: the name is. */
int spare_take(int directory_fd, const char *name) __attribute__((warn_unused_result));

/* Sees to it that there is one more, if there are not enough. That it fails matters to nobody. */
void spare_make(int directory_fd);
