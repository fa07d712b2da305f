/*
 * What an action changed in a work tree that it wrote in place: by pictures of the tree
 * (workspace/tree_picture.h) before and after.
 *
 *   before	the *survey*: a few names as the action begins, the rest in idle moments while it
 *		runs. What had a change time from before the action is as it was then.
 *   earlier	what an earlier look saw, of this task or an earlier one: for what the action
 *		touched before the survey came there.
 *   now	taken on the walk of the sweep (workspace/sweep.h) after the action.
 *
 * Something changed where its change time (ctime) says so, which keeps neither size nor mtime from
 * telling: no process without privilege sets it back. Where another machine stamps files, what is
 * not exactly as it was has changed. A rename is the same inode under another name, unless it was
 * born since. What nobody saw before is created or modified by the time of its birth alone, and
 * marked so. Whoever else wrote at the same time is not told apart.
 *
 * Content is read of regular files only, without waiting, as far as the limits: what is not read
 * has no digest.
 *
 * Who may use it: the supervisor of a task. The pictures stay for the next action.
 */
#pragma once

#include "base/arena.h"
#include "base/walk.h"
#include "trace/change.h"
#include "workspace/tree_picture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sweep_known;

/* As the action begins: 50 us at the most. What has more is surveyed while the action runs. */
#define TREE_LIMIT_START 64u
/* While it runs, of each action: 20 ms on another processor. */
#define TREE_LIMIT_SURVEY 20000u
/* Files that are hashed while it runs, of each action, and how large they are: 30 ms. */
#define TREE_LIMIT_HASHES 1024u
#define TREE_LIMIT_HASH_FILE_BYTES (256u * 1024)
#define TREE_LIMIT_HASH_BYTES (16u * 1024 * 1024)
/* What changed, one by one; the rest is counted. */
#define TREE_LIMIT_CHANGES 65536u
/* A changed file that is larger has no digest, and so has what comes after so many bytes. */
#define TREE_LIMIT_FILE_BYTES (256ull * 1024 * 1024)
#define TREE_LIMIT_READ_BYTES (512ull * 1024 * 1024)
/* Of what is told: a directory in which more changed is told as one, with how many. */
#define TREE_LIMIT_BELOW 256u

/*
 * Of a look after an action, over a tree and all places that are looked at with it: another
 * machine's file system that answers slowly must not keep the caller from the result. What is
 * looked through for other reasons on the same walk (workspace/sweep.h) has no such limit.
 */
#define TREE_LIMIT_LOOK_NS (5ull * 1000 * 1000 * 1000)
/* Between two looks at the clock. */
#define TREE_CLOCK_NAMES 16u

enum tree_phase { TREE_IDLE, TREE_SURVEY, TREE_HASH };

/* Borrowed, from a beginning to the next. */
struct tree_place {
	int root_fd, state_fd;
	const char *workspace;		   /* clean, real path */
	const char *kept;		   /* the path that its picture is kept by */
	const struct sweep_known *covered; /* what the task cannot write, sorted */
	size_t covered_count;
	bool is_stamped; /* change times are this kernel's */
};

struct tree {
	struct tree_place place;
	struct tree_picture before, earlier, now;
	int64_t since_ns;
	bool is_begun;
	bool is_loaded;		       /* `earlier` was looked for in the state directory */
	bool is_whole;		       /* the last look came to its end */
	bool is_skipping, has_skipped; /* a directory too deep for a path */
	enum tree_phase phase;
	struct walk walk; /* of the survey */
	struct arena scratch;
	uint32_t at; /* hashing: the next entry */
	uint32_t folder;
	uint64_t hashed, hashed_bytes;
	uint64_t deadline_ns; /* of the look */
	bool is_starting;     /* nothing of the task has run since since_ns */
};

#define TREE_EMPTY ((struct tree){ .walk = { .fd = -1 } })

enum tree_beginning {
	TREE_BEGIN_BARE, /* no action follows at once */
	TREE_BEGIN_SURVEY,
};

/* From now on; nothing of the task has run since since_ns. */
void tree_begin(struct tree *tree, const struct tree_place *place, int64_t since_ns,
		enum tree_beginning beginning);

/* Of a place that is one file: it is seen as it is now, and after the action. */
void tree_begin_name(struct tree *tree, const char *name);
void tree_look_one(struct tree *tree, const char *name);

/* A slice of the survey, some 0.1 ms. False: there is nothing to do any more. */
bool tree_work(struct tree *tree);

/* The action is over: the survey ends as far as it came. */
void tree_stop(struct tree *tree);

/* The sweep's walk hands over what it sees; begin also where it begins again. */
void tree_look_begin(struct tree *tree);
/* As that, with what is left of a time that others share. */
void tree_look_begin_until(struct tree *tree, uint64_t deadline_ns);
void tree_look_enter(struct tree *tree, const struct walk *walk);
void tree_look_name(struct tree *tree, const struct walk *walk);
void tree_look_again(struct tree *tree);
void tree_look_end(struct tree *tree, bool is_whole);

struct tree_list {
	struct change *changes; /* the arena's */
	size_t count;
	uint64_t unlisted; /* changes that are neither told nor counted in a row */
	const char *cut;   /* nor is it known what they are: why, static; NULL: it is known */
};

/* After the look. What is told is not told again. -ENOMEM. */
int tree_tell(struct tree *tree, struct arena *arena, struct tree_list *ret_list)
	__attribute__((warn_unused_result));

/* Keeps what the last look saw for later tasks in this workspace. */
void tree_keep(struct tree *tree);

void tree_end(struct tree *tree);
