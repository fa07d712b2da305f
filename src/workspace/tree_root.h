/*
 * What an action changed in a place outside of the workspace that it wrote in place (`--write`): a
 * directory, or one file. By the same pictures as in the workspace (workspace/tree.h), on a walk of
 * its own, which changes no mode and looks for nothing else.
 *
 * Who may use it: the supervisor of a task, when nothing of the action runs.
 */
#pragma once

#include "workspace/tree.h"

struct tree_root {
	struct tree tree;
	int fd;		    /* owned: the directory, or the one that the file is in */
	const char *parent; /* of a file, clean; NULL: it is a directory */
	const char *path;   /* borrowed */
	int64_t begin_ns, wall_offset_ns;
};

#define TREE_ROOT_NONE ((struct tree_root){ .tree = TREE_EMPTY, .fd = -1 })

/*
 * Before the action. The place's path is clean and real, its identity what was decided about;
 * root_fd is ours to set. -ESTALE where something else stands there; the root is none then.
 */
int tree_root_begin(struct tree_root *root, const struct tree_place *place,
		    const struct sweep_known *identity, bool is_file, struct arena *arena)
	__attribute__((warn_unused_result));

/*
 * After the action, and what changed; not looked for beyond the time (monotonic), which is told.
 * What is told is not told again. -ENOMEM and others.
 */
int tree_root_look(struct tree_root *root, uint64_t deadline_ns, struct arena *arena,
		   struct tree_list *ret_list) __attribute__((warn_unused_result));

void tree_root_end(struct tree_root *root);
