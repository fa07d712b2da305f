/*
 * Sweeping: the workspace of a task, where it is written in place, is looked through
 * (workspace/sweep.h) for what the host's tools would run later, when none of the task's processes
 * runs: at the end of a run, at the end of each action of a live task, once more at that task's
 * end. It comes before the landing of git, so that no index that names a nested repository reaches
 * the host earlier than that repository is gone.
 *
 * A look while something of the task runs takes out what it finds and counts for nothing more: the
 * next one judges again from the same moment on. So it is after a look that failed, did not come to
 * the end of the tree, or could not take out what it found. What a git file leads to comes with the
 * landing; sweeping_settle() is called after it.
 *
 * On the same walk it is seen what changed there (workspace/tree.h). Before the action a few names
 * are looked at for that; the rest in idle moments while it runs (sweeping_work()). In places
 * outside of it that the task writes, that alone is done (broker/written.h).
 *
 * What it takes for that is kept in the task's directory, in case that the supervisor is killed.
 */
#pragma once

#include "base/arena.h"
#include "broker/landing.h"
#include "broker/written.h"
#include "trace/change.h"
#include "workspace/sweep.h"
#include "workspace/tree.h"

#include <stdbool.h>
#include <stddef.h>

struct effective;
struct error;
struct caller;
struct state;

struct sweeping {
	const struct effective *effective; /* borrowed; NULL: there is nothing to look through */
	struct arena arena;		   /* of what follows */
	struct sweep_known *covered;
	size_t covered_count;
	const char **gits;
	size_t git_count;
	struct arena round; /* of what follows: anew when it begins again */
	struct sweep sweep;
	struct tree tree;	  /* what changed in it */
	struct written written;	  /* and in places outside of it */
	struct sweep_link *links; /* that wait for a landing */
	size_t link_count;
	bool is_begun;
	bool is_writing; /* what is written elsewhere is looked at, too */
	bool is_kept;	 /* in the task's directory, as it is */
	bool is_idle;	 /* nothing of the task runs */
	bool is_clean; /* the last look came to its end, and all that it found is out of the way */
	/* between sweeping_look() and sweeping_settle(), the caller's arena's */
	struct sweep_result found;
};

#define SWEEPING_NONE \
	((struct sweeping){ .sweep = { .root_fd = -1 }, .tree = { .walk = { .fd = -1 } } })

/*
 * Before an action starts. Where nothing of the task ran since the last one, and its look left
 * nothing to be looked at again, what was made meanwhile is the caller's.
 */
int sweeping_begin(struct sweeping *sweeping, const struct effective *effective,
		   struct error *error) __attribute__((warn_unused_result));

/*
 * Before an action, and in idle moments: keeps what a later start would need, where it is new. A
 * negative errno where that start would not even know that there was something.
 */
int sweeping_keep(struct sweeping *sweeping, int task_fd);

/* For idle moments while an action runs. False: there is nothing to do any more. */
bool sweeping_work(struct sweeping *sweeping);

/* Appended to; the arena's. */
struct sweeping_list {
	struct change *changes;
	size_t count;
	bool looked; /* sweeping_settle() must follow */
	struct tree_list tree;
	/* why the workspace may hold what the host's tools run; NULL: it was looked through */
	const char *fault;
};

int sweeping_look(struct sweeping *sweeping, enum landing_moment moment, struct arena *arena,
		  struct sweeping_list *list, struct error *error)
	__attribute__((warn_unused_result));

/* After the landing of the same moment. The task may go on from here. */
int sweeping_settle(struct sweeping *sweeping, enum landing_moment moment, struct arena *arena,
		    struct sweeping_list *list, struct error *error)
	__attribute__((warn_unused_result));

/* Where the task's directory is kept although all was looked through. */
void sweeping_forget(const struct sweeping *sweeping, int task_fd);

void sweeping_end(struct sweeping *sweeping);

/*
 * For the directory of a task whose supervisor died: looks, lands (landing_resume()), settles.
 * Returns as landing_resume() does.
 */
int sweeping_resume(const struct caller *host, const struct state *state, const char *task,
		    struct error *error);
