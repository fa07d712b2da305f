/*
 * Whether the host removed what the task changed. A file or directory of the stage that was copied
 * up says so ("user.overlay.origin"; overlayfs.rst), but not from what, in an overlay that a user
 * mounted. Where the host has nothing under its path, either the host removed it, or the task
 * renamed it to there. So the second kind is noted when the task has ended; what is of it later and
 * was not noted, the host removed since. What it removed while the task ran is not told apart.
 */
#pragma once

#include "workspace/stage.h"

struct arena;

/* The names together; a stage with more is not told of. */
#define STAGE_ORIGIN_LIMIT_BYTES (16u * 1024 * 1024)

bool stage_origin_is_marked(const struct stage_change *change);

/* Marks it as an overlay would, as far as its file system can. A descriptor, also one of O_PATH. */
int stage_mark_origin(int fd);

/* Notes it in the task's directory. 0, or a negative errno: then nothing is told of. */
int stage_origin_note(int task_fd, int upper_fd, int workspace_fd);

/* What was noted, for stage_origin_is_renamed(), in the arena. -ENOENT: nothing can be told. */
struct stage_origins {
	const char *const *paths;
	size_t count;
};

int stage_origin_load(int task_fd, struct arena *arena, struct stage_origins *ret_origins);

bool stage_origin_is_renamed(const struct stage_origins *origins, const char *path);
