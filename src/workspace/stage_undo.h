/*
 * Takes back what an apply of a stage (workspace/stage_apply.h) brought to the host: each path has
 * again what it had, and what the task made of it is in the stage again, to be looked at, applied
 * or dropped. By the same rules: every file is old or new at each instant, a kill is gone on with,
 * and what the host changed since the apply (or what stands where something was) is a conflict,
 * which the host keeps.
 *
 * What is replaced or removed by an apply goes to "undo" in the stage's directory: the object
 * itself, where the state lies on the workspace's file system, so that hard links, owners and
 * attributes come back with it; else a copy, for which there is a limit. What git did is not taken
 * back: its reflog has that.
 */
#pragma once

#include "workspace/stage_apply.h"

struct arena;
struct error;

/* Copies of one apply's, where the state lies on another file system than the workspace. */
#define STAGE_UNDO_LIMIT_COPY_BYTES (1024ull * 1024 * 1024)

struct stage_undo {
	const struct stage_kept *kept;
	/* clean, below the workspace; count 0: all */
	const char *const *paths;
	size_t path_count;
	bool is_dry;
	/* as of struct stage_apply */
	int (*begin)(void *context, const struct stage_applied *applied, struct error *error);
	void *context;
};

/*
 * As stage_apply(); of the items "applied" is what was taken back, and before and after are those
 * of the apply. -ENOENT: nothing of the stage was applied, or nothing was kept.
 */
int stage_undo(const struct stage_undo *undo, struct arena *arena,
	       struct stage_applied *ret_applied, struct error *error)
	__attribute__((warn_unused_result));

/* Whether something of it was applied that could be taken back. */
bool stage_undo_is_possible(const struct stage_kept *kept);

/* What came back, for the judgement of a later apply: that is no change of the host's. */
struct stage_returned;

int stage_returned_load(int stage_fd, struct arena *arena, struct stage_returned **ret_returned);
bool stage_returned_is(const struct stage_returned *returned, const char *path, uint64_t device,
		       uint64_t inode, int64_t ctime_ns);
