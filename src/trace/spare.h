/*
 * Empty files kept for the chains of later tasks: a new inode costs a start 50 us on a quiet ext4,
 * and 200 to 600 on one without a journal where much was removed in the last minutes (it looks at
 * each inode freed since, find_inode_bit()); another name for one that is there costs 20.
 *
 * A spare is made while the action of a task runs and nothing else is to be done. Who takes one
 * does so by the rename, which one process wins. Errors: negative errno.
 */
#pragma once

struct trace_store;

/* As many as start at a time where much is started; further ones make their own. */
#define SPARE_COUNT 8

/* An empty file of that name among the chains, open for appending. -EEXIST: there is one. */
int spare_take(const struct trace_store *store, const char *name)
	__attribute__((warn_unused_result));

/* Sees to it that there is one more, if there are not enough. That it fails matters to nobody. */
void spare_make(const struct trace_store *store);
