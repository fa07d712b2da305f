/*
 * Brings a stage (workspace/stage_store.h) to the host's workspace, path by path. Every file is old
 * or new at each instant: what is new is made whole in a directory of its own in the workspace
 * (".bawn-apply-" and the task's id, gone at the end) and takes its place by one rename, as an
 * exchange, so that what it replaced is seen before it goes. What is applied leaves the stage at
 * once. So the stage itself says what is left to do: whoever applies it again goes on where a kill
 * or a full disk ended it.
 *
 * Not applied, and still in the stage afterwards:
 *
 *   conflict  what the host changed after the task's start, by its change time, or removed; or
 *             something changed while it was applied. Nothing of the host's is lost
 *   held      what the host's tools would run or obey (workspace/sweep_name.h, what git runs here,
 *             git repositories of any name), unless a path names it, or something in it
 *   refused   what has no place on the host: FIFOs, sockets and devices; what could not be read;
 *             names that were hidden from the task
 *   failed    what the host's file system refused
 *
 * Set-id bits, capabilities, ACLs and attributes of the task's are not brought over, and hard links
 * become files of their own; the item says so. Times of files come, and a file that takes the place
 * of another has the host's ACL and attributes (user.*).
 *
 * Both trees are hostile: paths are opened beneath their roots, no link followed, no mount entered.
 * Who may use it: a verb that holds the stage's lock for a change.
 */
#pragma once

#include "workspace/stage.h"
#include "workspace/stage_store.h"

struct arena;
struct error;

/* Changes of one stage, some hundred bytes each; what has more is applied in parts. */
#define STAGE_APPLY_LIMIT_ITEMS 2000000u
/* Paths of one call. */
#define STAGE_APPLY_LIMIT_PATHS 4096u

enum stage_outcome {
	STAGE_WAITING, /* no path names it */
	STAGE_READY,   /* it would be applied; after the work: it was not reached */
	STAGE_APPLIED,
	STAGE_CONFLICT,
	STAGE_HELD,
	STAGE_REFUSED,
	STAGE_FAILED,
	STAGE_OUTCOME_COUNT,
};

struct stage_item {
	const char *path;
	enum stage_kind kind;
	struct stage_side before, after;
	enum stage_outcome outcome;
	/* of what is or will be applied: what does not come with it; NULL: all comes */
	const char *reason;
	/* the host's object as it was judged; inode 0: none */
	uint64_t device, inode, size;
	int64_t mtime_ns;
	uint64_t links;	 /* how many names it has */
	unsigned merged; /* the number of what was merged (workspace/stage_merge.h); 0: nothing */
};

struct stage_applied;

struct stage_apply {
	const struct stage_kept *kept;
	/* clean, below the workspace; count 0: all */
	const char *const *paths;
	size_t path_count;
	bool is_dry;
	bool overwrites; /* conflicts, too */
	bool merges;	 /* conflicts, where that is possible */
	bool drops;	 /* what is replaced is not kept for an undo (workspace/stage_undo.h) */
	/*
	 * When it is known what is to be done, before any of it is; not for a dry run. Negative
	 * errno, with the error set: nothing is done. NULL: nobody wants to know.
	 */
	int (*begin)(void *context, const struct stage_applied *applied, struct error *error);
	void *context;
};

struct stage_applied {
	struct stage_item *items; /* in the arena; directories before what is in them */
	size_t count;
	size_t outcomes[STAGE_OUTCOME_COUNT];
	bool is_left; /* something is still in the stage */
};

/*
 * 0, also where something was not applied. -ENOSPC and others that concern everything end the work:
 * the error is set, and ret_applied tells how far it came.
 */
int stage_apply(const struct stage_apply *apply, struct arena *arena,
		struct stage_applied *ret_applied, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Settles what an apply that was killed was in the middle of; stage_apply() does so first. 1: there
 * was one, 0: there was none.
 */
int stage_apply_recover(const struct stage_kept *kept, struct error *error)
	__attribute__((warn_unused_result));

/* What was asked for, of an apply or an undo. */
struct stage_asked {
	const char *const *paths;
	size_t path_count;
	bool overwrites, merges, drops, is_undo;
};

/* It is kept, so that a killed one is gone on with in the same way. -ENOENT: none was killed. */
int stage_apply_asked(const struct stage_kept *kept, struct arena *arena,
		      struct stage_asked *ret_asked);

const char *stage_outcome_name(enum stage_outcome outcome);
