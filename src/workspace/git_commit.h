/*
 * The commit engine: takes what a task did in a git directory to the host's, after its action.
 *
 * A covered git directory is an overlay inside of the box; what the task changed lies in the
 * upper directory. The engine reads that (hostile bytes), applies what executes nothing and what
 * the host did not change meanwhile, and holds the rest for a person (git_held.h):
 *
 *   references, HEAD    by value: only where the host's is still what it was at the start
 *   logs                with their reference; what both appended is appended
 *   index               where the host's has the same entries as at the start, after a look through
 *   configuration       key by key (git_config.h)
 *   messages and so on  where the host's file is the one of the start
 *   an unfinished rebase and its like: as a whole, only if no line of it runs anything
 *   new worktrees, new modules: git directories by the same rules, made aside and renamed
 *   everything else     held
 *   more than GIT_UPPER_LIMIT_ENTRIES changes, or than memory holds, at the task's end: the layer
 *                       as a whole is held (git_held_tree.h), to be looked into or dropped
 *
 * Every write goes by git's own locks, in an order in which the host's repository is whole at each
 * instant: log, reference, HEAD, then what is removed, then index, then the rest. Objects are not
 * its business (the box writes them in place), except those of new modules.
 *
 * A file is old or new at each instant, and running again with the same upper directory and
 * snapshot finishes what a kill interrupted; the journal in the task's directory says which locks
 * and directories were left behind. On an error (a full disk) nothing is lost: the upper directory
 * is to be kept, and the engine run again.
 *
 * Who may use it: the supervisor of a task, when all processes of the action are dead or frozen.
 */
#pragma once

#include "trace/change.h"
#include "workspace/git_held.h"
#include "workspace/git_snapshot.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct error;

/* A new module's objects: one file of them; what is larger, or has holes, is held. */
#define GIT_COMMIT_LIMIT_OBJECT_BYTES (4ull * 1024 * 1024 * 1024)

enum git_outcome_kind {
	GIT_OUTCOME_APPLIED,
	GIT_OUTCOME_HELD,
	GIT_OUTCOME_DEFERRED,	/* the whole directory: a git is in the middle of something */
	GIT_OUTCOME_UNFINISHED, /* a lock that a git left which was killed: not taken over */
};

struct git_outcome {
	enum git_outcome_kind kind;
	const char *directory; /* host path of the covered directory */
	const char *path;      /* below it; "" for the whole */
	const char *key;       /* of configuration; else NULL */
	const char *reason;    /* NULL for APPLIED; words of ours */
	enum change_kind change;
	/* of HELD: what `bawn review` calls it; "" beyond GIT_HELD_LIMIT_ITEMS: not kept */
	char id[GIT_HELD_ID_BYTES];
};

struct git_commit_result {
	struct git_outcome *outcomes; /* in the arena */
	size_t count, held;
	bool is_deferred;
	bool *deferred; /* one for each cover, in the arena */
};

struct git_commit {
	const struct git_cover *covers;
	size_t count;
	const struct git_snapshot *snapshot; /* of the same covers */
	const char *workspace;		     /* clean, real path of the host */
	const char *task;		     /* its id */
	int task_fd;			     /* its directory, for the journal */
	int state_fd;			     /* the state directory, for what is held */
	bool is_final; /* no process of the task will go on: locks are no reason to wait */
	/* the work tree was not looked through: an index may name a repository that the task made
	 * in it, which `git status` would go into */
	bool holds_index;
};

/*
 * 0, also where things are held. -ENOSPC and others: see above. A cover without a descriptor
 * (fd -1) is one that is lost: nothing is done with it.
 */
int git_commit_run(const struct git_commit *commit, struct arena *arena,
		   struct git_commit_result *ret_result, struct error *error)
	__attribute__((warn_unused_result));
