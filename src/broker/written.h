/*
 * Places outside of the workspace that a task writes in place (`--write`): what it changed there is
 * part of the list of changes (workspace/tree_root.h). Nothing there is looked at for what the
 * host's tools would run, and nothing is taken out.
 *
 * Who may use it: broker/sweeping.
 */
#pragma once

#include "base/arena.h"
#include "workspace/tree_root.h"

#include <stdbool.h>
#include <stddef.h>

struct effective;

/* Of those that are named in one task; the changes in more are not known. */
#define WRITTEN_LIMIT 16u

struct written {
	const struct effective *effective; /* NULL: it was not looked for any */
	struct arena arena;
	struct sweep_known *covered; /* nested places, what is hidden or read-only, the workspace */
	size_t covered_count;
	struct tree_root *roots;
	size_t count;
	const char *cut; /* why not all of them are looked at; NULL: all are */
};

/* Before an action that nothing of the task runs beside. -ENOMEM. */
int written_begin(struct written *written, const struct effective *effective)
	__attribute__((warn_unused_result));

/* In idle moments. False: there is nothing to do. */
bool written_work(struct written *written);

/* Appended to what was told of the workspace; at the last moment it is kept for later tasks. */
int written_look(struct written *written, bool is_last, struct arena *arena, struct tree_list *list)
	__attribute__((warn_unused_result));

void written_end(struct written *written);
