/*
 * A copy of a workspace, for a task whose workspace cannot have a layer (an overlay): the task
 * works in the copy, and what it changed there is told by a picture of the copy (tree_picture.h)
 * from before it ran. stage_settle() makes the layer of that which an overlay would have been: so
 * whoever reads, applies or drops a stage finds the same (workspace/stage.h).
 *
 *   <task>/stage/copy   what the task works in
 *   <task>/stage/seen   the picture of it from before
 *   <task>/stage/parts  the git directories in it
 *   <task>/git/<n>/     the same of a git directory that lies elsewhere, as if it were a workspace
 *   <task>/stage/upper  the layer; what was changed has a hard link there while the task lives. Of
 *                       a git directory it is the one that its overlay would have had
 *
 * The tree is a task's, and others may change it meanwhile. It is walked by descriptor, no link
 * followed, no mount entered; nothing but regular files is opened, and those without waiting. Data
 * is shared where the file system can (FICLONE), else copied with its holes. Files keep their mode
 * but for set-id bits, their times, their attributes and their other names. What is hidden from
 * the task is not copied. Sockets, devices and what cannot be read are left out and named, as
 * what the task did not see. Time, memory and disk are bounded: -EFBIG with the limit's name.
 *
 * Who may use it: the supervisor, before anything of the task runs, and between its actions.
 */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* Where a source tree of that size is copied in some ten seconds. */
#define STAGE_COPY_LIMIT_NAMES 100000u
/* Of data that is not shared; a quarter of a minute of a slow disk. */
#define STAGE_COPY_LIMIT_BYTES (1024ull * 1024 * 1024)
/* A file system that answers slowly (another machine's) must not make a start without end. */
#define STAGE_COPY_LIMIT_NS (60ull * 1000 * 1000 * 1000)
/* Named, of what is left out. */
#define STAGE_COPY_LIMIT_LEFT 1024u
/* Kept until a start is over: first names of files that have more; other names of more files are
 * files of their own. */
#define STAGE_COPY_LIMIT_LINKS 20000u
#define STAGE_COPY_LIMIT_LINK_BYTES (4u * 1024 * 1024)

struct stage_copy_hidden {
	const char *path; /* clean, below the workspace */
	bool has_mask;	  /* something is mounted on it: an empty file that nobody reads */
};

/* A git directory in the workspace: its layer is another one, with which it lands. */
struct stage_part {
	const char *below; /* below the workspace */
	unsigned layer;	   /* its number among the task's (PLAN_GIT_LAYERS) */
};

/* As many as a task has. */
#define STAGE_COPY_LIMIT_PARTS 4096u

struct stage_copy {
	const char *workspace;		  /* for messages, and for the picture */
	int workspace_fd, stage_fd;	  /* borrowed; <task>/stage, or a git directory's */
	struct stage_copy_hidden *hidden; /* is sorted */
	size_t hidden_count;
	const struct stage_part *parts;
	size_t part_count;
	bool gives_owners; /* the caller is root: files keep their owners */
};

struct stage_copied {
	uint64_t names, bytes;
	uint64_t shared;   /* files whose data was */
	const char **left; /* paths below the workspace that were left out; the arena's */
	size_t left_count;
};

/* stage/copy is there, and empty; it stays so where the workspace has too many names. */
int stage_copy_make(const struct stage_copy *copy, struct arena *arena,
		    struct stage_copied *ret_copied, struct error *error)
	__attribute__((warn_unused_result));

enum stage_settle_moment {
	STAGE_SETTLE_BETWEEN, /* the task goes on in the copy */
	STAGE_SETTLE_LAST,    /* nothing of it will run: the copy goes */
};

/* In the task's directory. 0 where its workspace is no copy, or is none any more. */
int stage_settle(int task_fd, enum stage_settle_moment moment, struct error *error)
	__attribute__((warn_unused_result));
