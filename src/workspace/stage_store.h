/*
 * Where a staged workspace waits when its task has ended, for a person to look at it, apply it or
 * drop it:
 *
 *   <state>/stages/<task>/about        what it is a stage of
 *   <state>/stages/<task>/stage/upper  what the task changed (workspace/stage.h); a task's bytes
 *   <state>/stages/<task>/git/         the layers of git directories, with what landing them takes
 *   <state>/stages/<task>/renamed      what the task renamed (workspace/stage_origin.h)
 *   <state>/stages/<task>/pending      what an apply is in the middle of (workspace/stage_apply.h)
 *   <state>/stages/<task>/undo/        what was applied of it, and what that took the place of
 *                                      (workspace/stage_undo.h)
 *   <state>/applied/<task>/            the same when all of it was applied: for an undo alone
 *
 * It is the task's directory, renamed: what is kept survives the kill of any process, since a task
 * whose supervisor died is found by the next start and kept as well. Whoever reads or changes a
 * stage holds a flock(2) on its directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define STAGE_STORE_DIRECTORY "stages"
#define STAGE_STORE_APPLIED "applied"
/* Of those; the oldest go when one more comes. */
#define STAGE_STORE_LIMIT_APPLIED 32u

struct stage_about {
	const char *task;
	const char *workspace; /* clean, real path of the host */
	uint64_t device, inode;
	int64_t started_ns; /* by the clock of files; what changed later has a later ctime */
	uint64_t wall_ns;
	/* clean paths below the workspace: what the task did not see, and what git runs or obeys */
	const char *const *hidden, *const *obeyed;
	size_t hidden_count, obeyed_count;
};

/* Nothing of the task has run. started_ns 0: what is written has the time of now. */
int stage_store_begin(int task_fd, const struct stage_about *about, struct error *error)
	__attribute__((warn_unused_result));

/* -ENOENT: it is none, or not of this task; -EBADMSG: it is damaged. */
int stage_store_read(int task_fd, const char *task, struct arena *arena,
		     struct stage_about *ret_about);

/* Whether anything lies in a layer of the task's. */
bool stage_store_has_changes(int task_fd);

/* Whether what its git did waits there. */
bool stage_store_has_git(int task_fd);

/* Makes the task's directory, of which the caller holds the lock, a stage: task and workspace. */
int stage_store_keep(int state_fd, int tasks_fd, int task_fd, const struct stage_about *about)
	__attribute__((warn_unused_result));

/* One that was opened. */
struct stage_kept {
	struct stage_about about;
	int fd;		  /* stages/<task>, locked */
	int upper_fd;	  /* owned, as is what follows */
	int workspace_fd; /* -1 where it is not there any more: `missing` says why */
	const char *missing;
};

#define STAGE_KEPT_NONE ((struct stage_kept){ .fd = -1, .upper_fd = -1, .workspace_fd = -1 })

enum stage_store_use {
	STAGE_STORE_PEEK, /* what it is a stage of, and no more: without the lock */
	STAGE_STORE_LOOK, /* others may look, too */
	STAGE_STORE_CHANGE,
};

/*
 * shelf: STAGE_STORE_DIRECTORY or STAGE_STORE_APPLIED, in all of these. -EBUSY: another process is
 * at it; -ENOENT; -EBADMSG: it is damaged, fd is open where it could be
 * locked, so that it can be dropped all the same.
 */
int stage_store_open(int state_fd, const char *shelf, const char *task, enum stage_store_use use,
		     struct arena *arena, struct stage_kept *ret_kept);

void stage_store_close(struct stage_kept *kept);

#define CLEANUP_STAGE_KEPT __attribute__((cleanup(stage_store_close)))

/* At most; what lies there beyond has to go first. */
#define STAGE_STORE_LIMIT 4096u

/* The names, sorted, in the arena. */
int stage_store_list(int state_fd, const char *shelf, struct arena *arena, const char ***ret_tasks,
		     size_t *ret_count);

/* Removes it, locked for a change; what a kill leaves of it is removed by the next. */
int stage_store_remove(int state_fd, const char *shelf, const char *task)
	__attribute__((warn_unused_result));

/* From one shelf to the other, locked for a change. */
int stage_store_retire(int state_fd, const char *task) __attribute__((warn_unused_result));
int stage_store_return(int state_fd, const char *task) __attribute__((warn_unused_result));
