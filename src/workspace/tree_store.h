/*
 * The pictures of workspaces between their tasks: <state>/trees/<project>, where <project> is made
 * of the workspace's path (workspace/cache.h). A picture is a cache; losing one loses what was
 * there before a change, and nothing else.
 *
 * Whoever keeps the first of a workspace looks at the others: those of workspaces that are gone go,
 * too, with what else is remembered of them alone (<state>/secrets/<project>), and beyond
 * TREE_STORE_LIMIT those that were written longest ago.
 */
#pragma once

#include "workspace/tree_picture.h"

/* One person's projects; each takes 70 bytes for each of its names. */
#define TREE_STORE_LIMIT 256u
/* Of the names that are looked at for that: 10 us each. */
#define TREE_STORE_LIMIT_NAMES 1024u

/* To be read: a descriptor, or a negative errno. */
int tree_store_open(int state_fd, const char *workspace);

/* Instead of the one that there was. */
int tree_store_save(const struct tree_picture *picture, int state_fd, const char *workspace);
