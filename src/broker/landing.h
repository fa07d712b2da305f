/*
 * Landing: what a task did in git directories, which are overlaid in its box, is brought to the
 * host's by the commit engine (workspace/git_commit.h) when none of its processes runs: at the end
 * of a run, at the end of each action of a live task, and once more at that task's end.
 *
 * What it takes for that (which directories, and what the host's were like at the start) is also
 * kept in the task's directory, so that the next start can finish the work of a supervisor that was
 * killed (landing_resume()). It is written while the first action runs, which is soon enough.
 */
#pragma once

#include "base/arena.h"
#include "trace/change.h"
#include "workspace/git_snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct box;
struct effective;
struct error;
struct state;

struct landing {
	const struct effective *effective; /* borrowed */
	struct arena arena;
	struct git_cover *covers; /* their descriptors are owned */
	size_t count;
	struct arena snapshot_arena; /* of the snapshot alone: there is one after each action */
	struct git_snapshot snapshot;
	int64_t *stamps; /* of the covers: when the host's was changed, as far as it is looked at */
	int git_fd;	 /* the task's git directory; -1: there is nothing to land */
	bool is_kept;
	bool holds_index; /* the workspace was not looked through (broker/sweeping.h) */
};

#define LANDING_NONE ((struct landing){ .git_fd = -1 })

/* The box is made and nothing of the task has run in it. */
int landing_begin(struct landing *landing, const struct effective *effective, int task_fd,
		  struct error *error) __attribute__((warn_unused_result));

/* For idle moments: keeps what a later start would need. False: there is nothing to do any more. */
bool landing_work(struct landing *landing);

/* The same, and what a stage needs, of which the host's git may have another by its apply. */
void landing_keep(struct landing *landing);

/* True where the task did something since the last time, or it cannot be told. */
bool landing_has_news(struct landing *landing);

enum landing_moment {
	LANDING_NOT_NOW, /* something of the task runs: nothing is brought over */
	LANDING_BETWEEN, /* the task goes on: what is half done waits for its next action's end */
	LANDING_LAST,
};

/*
 * Brings it over. ret_changes are the arena's. On an error nothing is lost: the task's directory
 * must stay, for the next start to try again.
 */
int landing_run(struct landing *landing, enum landing_moment moment, struct arena *arena,
		struct change **ret_changes, size_t *ret_count, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Before an action of a live task, while nothing of the task runs: where the host changed a git
 * directory since the last one, the box's overlay looks at it again, and what the task does from
 * here on is compared with what the host has now. It changes nothing where it cannot be done.
 */
void landing_look_again(struct landing *landing, struct box *box);

void landing_end(struct landing *landing);

/* What was kept of a task's git directories, for who goes on. */
struct landing_left {
	const char *workspace, *task;
	struct landing_place {
		const char *path; /* of the host's git directory */
		uint32_t layer;	  /* its number in the task's directory */
		uint32_t is_worktree;
		uint64_t device, inode;
	} * places;
	size_t count;
};

/* -ENOENT: nothing was kept; the descriptor is that of the task's directory. */
int landing_load(int task_fd, const char *task, struct arena *arena, struct landing_left *ret_left);

/*
 * Lands what waits in a stage, whose directory it is: 0 also where nothing waits. What is landed
 * is gone from the stage afterwards; what is held lies where `bawn review` finds it.
 */
int landing_apply(const struct state *state, int task_fd, const char *task, struct arena *arena,
		  struct change **ret_changes, size_t *ret_count, struct error *error)
	__attribute__((warn_unused_result));

/*
 * For the directory of a task whose supervisor died. 0 also where it had nothing to land; what
 * fails is to be tried again. 0 with an error that is set: it will never come, and this is why.
 */
int landing_resume(const struct state *state, const char *task, bool holds_index,
		   struct error *error) __attribute__((warn_unused_result));
