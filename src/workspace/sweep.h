/*
 * The look through a work tree after an action: what in it the host's tools would run later and was
 * not there at the start is taken out and held for review (git_held_tree.h).
 *
 *   a new .git of any kind and depth	a repository: its configuration and hooks are run
 *   a directory that became a bare one	its HEAD is held: without it git sees no repository
 *   names of sweep_name.def		settings of editors and agents, .envrc and their kin
 *   names that git was told to obey	targets of core.hooksPath, include.path that were absent
 *   what a repository obeys		changed in one deep in the tree, that no overlay covers
 *
 * Changed is what has a change time (ctime) not before the start: no process without privilege sets
 * it back, and a rename sets it too. Both sides of the comparison are of the clock that stamps
 * files, whose tick is some milliseconds: what the caller made within the tick before the start
 * counts as new. Where another machine or a program stamps files (network file systems, FUSE) the
 * tree is looked through at the start as well, and what is exactly as it was then is old.
 *
 * A directory that is not new may have been given its name since, where the directory above it
 * changed too; unless it is among those that were known, it is held as a whole.
 *
 * At the workspace's top small files and links of such names are copied at the start: the old one
 * is put back when the new one is held, and one that was written anew with the same content stays.
 *
 * A new git file that leads to a worktree or module of a git directory under an overlay
 * (sweep_link.h) is what `git worktree add` and `git submodule update` leave: it is neither held
 * nor old, but listed, and sweep_settle() decides when what it leads to has come to the host, or
 * has not.
 *
 * What cannot be held (no space, too large for another file system) loses its name where it is, so
 * that no tool finds it; what cannot even be renamed is said, as is a tree that was not looked
 * through to its end. The caller must treat both as a fault.
 *
 * Who may use it: the supervisor of a task, when all processes of the action are dead or frozen.
 * Other tasks and the host may go on meanwhile; whoever made what came too late answers for it.
 */
#pragma once

#include "trace/change.h"
#include "workspace/git_held_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct error;
struct caller;
struct tree;

/* Names at the workspace's top that are looked at before the start: a few dozen are usual. */
#define SWEEP_LIMIT_TOP 1024u
/* Configuration; what is larger has no copy. */
#define SWEEP_LIMIT_COPY_BYTES (64u * 1024)
/* A task that leaves more has no settings in mind; the rest loses its name where it is. */
#define SWEEP_LIMIT_HELD 10000u
/* New worktrees and submodules; no person makes more at once. */
#define SWEEP_LIMIT_LINKS 1024u

/* An object that was there. */
struct sweep_known {
	uint64_t device, inode;
	int64_t changed_ns; /* only of what a look through the tree at the start found */
};

/* A small file or a link at the top, as it was. */
struct sweep_copy {
	const char *name;
	bool is_link;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	int64_t modified_ns;
	const char *bytes;
	size_t length;
};

enum sweep_clock {
	SWEEP_CLOCK_KERNEL, /* stamps are compared */
	SWEEP_CLOCK_OTHER,  /* with the look at the start */
};

/* From before the action. Memory is the arena's. */
struct sweep {
	int root_fd; /* owned */
	enum sweep_clock clock;
	int64_t begin_ns;	   /* by the clock that stamps files */
	int64_t until_ns;	   /* later stamps are of others; 0: none is too late */
	int64_t wall_offset_ns;	   /* of it to the one that nobody sets */
	struct sweep_known *known; /* sorted by device and inode */
	size_t known_count;
	struct sweep_copy *copies;
	size_t copy_count;
};

#define SWEEP_NONE ((struct sweep){ .root_fd = -1 })
#define CLEANUP_SWEEP __attribute__((cleanup(sweep_close)))

struct sweep_start {
	const char *workspace; /* clean, real path of the host */
	/* what sweep_end() saw in this workspace the last time, or none */
	const struct sweep_known *seen;
	size_t seen_count;
	/* OTHER: the tree is looked through now, also where stamps would do */
	enum sweep_clock clock;
};

/* By device and inode. */
void sweep_sort(struct sweep_known *known, size_t count);

/* As late before the action as can be. */
int sweep_begin(const struct sweep_start *start, struct arena *arena, struct sweep *ret_sweep,
		struct error *error) __attribute__((warn_unused_result));

/* What any file is stamped with from now on is not before this. */
int64_t sweep_stamp_now_ns(void);

/* When the kernel booted, by the wall clock as it is now. */
int64_t sweep_booted_ns(void);

/* The directory, to be read: a descriptor. For who goes on with a look that another began. */
int sweep_open_root(const char *workspace);

enum sweep_fate {
	SWEEP_HELD,
	SWEEP_DISARMED, /* not held, but without its name: see `now` */
	SWEEP_LEFT,	/* it is there still */
};

struct sweep_found {
	struct change change; /* HELD, or APPLIED where it was left */
	enum sweep_fate fate;
	const char *reason;		 /* words of ours */
	const char *fault;		 /* why it is not held; else NULL */
	const char *now;		 /* DISARMED: its name now, in the same directory */
	bool is_restored;		 /* the one of the start is there again */
	char id[GIT_HELD_TREE_ID_BYTES]; /* HELD: what `bawn review` calls it */
};

/* A new git file whose target is to be looked at. */
struct sweep_link {
	const char *path; /* below the workspace; its last component is ".git" */
};

struct sweep_result {
	struct sweep_found *items; /* in the arena */
	size_t count;
	uint64_t found;		  /* beyond SWEEP_LIMIT_HELD they are counted here alone */
	uint64_t left;		  /* of them are there still */
	struct sweep_link *links; /* for sweep_settle() */
	size_t link_count;
	const char *unfinished; /* why the tree was not looked through to its end; NULL: it was */
	/* repositories and settings that are not new, for the next sweep_begin() */
	struct sweep_known *seen;
	size_t seen_count;
	uint64_t names, directories;
};

struct sweep_order {
	const struct sweep *sweep;
	const char *workspace; /* clean, real path of the host; also inside of the box */
	const char *task;      /* its id */
	int state_fd;	       /* the state directory, for what is held */
	/* objects that are not looked at: git directories under an overlay, what the box showed
	 * read-only, the state directory if it lies in the workspace */
	const struct sweep_known *covered;
	size_t covered_count;
	/* clean paths in the workspace that did not exist and that git was told to obey */
	const char *const *absent;
	size_t absent_count;
	/* host paths of git directories under an overlay, and who asks; NULL: git files are held */
	const char *const *gits;
	size_t git_count;
	const struct caller *host;
	uint64_t limit_names; /* 0: WALK_LIMIT_NAMES */
	struct tree *tree;    /* looks along, for what changed; NULL: nobody does */
};

/* 0, also where something is held, left or unfinished: see the result. -ENOMEM and others. */
int sweep_end(const struct sweep_order *order, struct arena *arena, struct sweep_result *ret_result,
	      struct error *error) __attribute__((warn_unused_result));

enum sweep_settling {
	SWEEP_WAITING, /* what is not there yet may come: such a link is listed again */
	SWEEP_SETTLED, /* it does not */
};

/*
 * Holds the links that do not lead to a git directory of the host's which names their place as its
 * work tree, and those in whose place git is configured to run something. The result is of these
 * alone.
 */
int sweep_settle(const struct sweep_order *order, const struct sweep_link *links, size_t count,
		 enum sweep_settling settling, struct arena *arena, struct sweep_result *ret_result,
		 struct error *error) __attribute__((warn_unused_result));

void sweep_close(struct sweep *sweep);
