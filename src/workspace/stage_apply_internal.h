/* What the parts of applying a stage share. For them alone. */
#pragma once

#include "workspace/stage_apply.h"
#include "workspace/stage_internal.h"

#include <time.h>

struct stat;

/* Whether a path is another one, or lies below it; both below the workspace. */
bool stage_is_under(const char *path, const char *root);

/* All changes, each with what is to become of it. */
int stage_apply_judge(const struct stage_apply *apply, struct arena *arena,
		      struct stage_applied *ret_applied, struct error *error);

/* ---- the log of what was done, and what it took the place of: stage_undo_log.c ---- */

/* One step, as an apply wrote it down before it and behind it. */
struct stage_step {
	uint64_t number;
	const char *path;
	enum stage_kind kind;
	struct stage_side before, after;
	/* what was to be put there; inode 0: nothing, or a mode alone */
	uint64_t device, inode, size;
	int64_t mtime_ns;
	bool is_done; /* and ctime_ns is that of what was put there; else it is not known */
	int64_t ctime_ns;
	uint64_t kept_inode; /* of what is kept under its number; 0: nothing */
	bool is_undone;
	/* undone: what came back, as the host has it then */
	uint64_t back_device, back_inode;
	int64_t back_ctime_ns;
};

struct stage_undo_log {
	int directory_fd; /* "undo" of the stage */
	int log_fd;	  /* for appending; -1: nothing is written down */
	uint64_t next;	  /* number */
};

#define STAGE_UNDO_LOG_NONE ((struct stage_undo_log){ .directory_fd = -1, .log_fd = -1 })

/* Opens it for more, made where there is none. A torn end goes. */
int stage_undo_log_open(int stage_fd, struct stage_undo_log *ret_log);
void stage_undo_log_close(struct stage_undo_log *log);
#define CLEANUP_STAGE_UNDO_LOG __attribute__((cleanup(stage_undo_log_close)))

/* Before a step and behind it; status: of what is put there, or was; NULL: nothing. */
int stage_undo_log_begin(struct stage_undo_log *log, const struct stage_item *item,
			 const struct stat *status, uint64_t *ret_number);
int stage_undo_log_done(struct stage_undo_log *log, uint64_t number, const struct stat *status);
int stage_undo_log_undone(struct stage_undo_log *log, uint64_t number, const struct stat *status);

/*
 * Keeps an object of the host's under a number: moved, or copied where the state lies on another
 * file system. What was there under that number goes. -EXDEV: of a kind that cannot be copied.
 */
int stage_undo_keep(int undo_fd, uint64_t number, int from_fd, const char *name);

/* All steps of the paths (count 0: all), in the arena, in their order. -ENOENT: no log. */
int stage_undo_log_read(int stage_fd, const char *const *paths, size_t path_count,
			struct arena *arena, struct stage_step **ret_steps, size_t *ret_count);

/* The name that a number has. */
#define STAGE_UNDO_NAME_BYTES 24
void stage_undo_name(uint64_t number, char ret_name[static STAGE_UNDO_NAME_BYTES]);

/* Copies a file, link or FIFO; -EXDEV: another kind. What has the name goes first. */
int stage_copy(int from_fd, const char *from, int to_fd, const char *to);
/*
 * Extended attributes and ACLs, those that are wanted (NULL: all), of what an O_PATH descriptor may
 * lead to. A negative errno for the last that was not taken; the others are there.
 */
int stage_copy_attributes(int from_fd, int to_fd, bool (*is_wanted)(const char *name));
/* Moves an object, or copies it and removes the original. A name that is taken is taken over. */
int stage_move(int from_fd, const char *from, int to_fd, const char *to);

/* ---- the journal of what is in the middle of being done: stage_apply_journal.c ---- */

#define STAGE_OWN_NEW "new"
#define STAGE_OWN_OLD "old"
#define STAGE_OWN_BYTES 64

/* What becomes of the two objects of an exchange that a kill ended. */
enum stage_way {
	STAGE_WAY_APPLY, /* what is new goes, what was replaced is kept under the number */
	STAGE_WAY_UNDO,	 /* what was kept goes back under its number, what was put leaves for the
			    stage */
	STAGE_WAY_COUNT,
};

struct stage_pending {
	const char *path;
	enum stage_way way;
	uint64_t number;	  /* of the step; 0: nothing is kept */
	uint64_t new_inode;	  /* 0: a removal */
	struct stage_item judged; /* its identity alone */
};

int stage_pending_note(int pending_fd, const struct stage_pending *pending);
/* An old word about a new object would be taken for true: without this nothing goes on. */
int stage_pending_forget(int pending_fd);
int stage_pending_open(int stage_fd);
void stage_pending_remove(int stage_fd);

/* The name of the directory of our own in the workspace. */
void stage_own_name(const struct stage_kept *kept, char ret_name[static STAGE_OWN_BYTES]);

int stage_exchange(int left_fd, const char *left, int right_fd, const char *right);
/* A file, or an empty directory; where there is none that is well. */
int stage_remove_any(int directory_fd, const char *name);

/* A rename changes neither of these. */
bool stage_is_judged(const struct stage_item *item, const struct stat *status);
int64_t stage_file_ns(struct timespec at);

/* Puts an object of the host's back into the stage, at its path; the stage's directory is there. */
int stage_take_back(const struct stage_kept *kept, int from_fd, const char *name, const char *path,
		    char *parent);

/* ---- writing to the host: stage_apply_write.c ---- */

struct stage_writer {
	const struct stage_kept *kept;
	int temporary_fd; /* the directory of its own; -1: not yet */
	int pending_fd;	  /* the journal */
	char *parent;	  /* STAGE_LIMIT_PATH_BYTES */
	char *opened;	  /* the same: where stage_prune() was last */
	bool has_opened;
	struct stage_undo_log log;
};

#define STAGE_WRITER_NONE \
	((struct stage_writer){ .temporary_fd = -1, .pending_fd = -1, .log = STAGE_UNDO_LOG_NONE })

/* keeps: what is replaced is kept for an undo. */
int stage_writer_begin(struct stage_writer *writer, const struct stage_kept *kept, bool keeps,
		       struct error *error);

/*
 * One item: a directory is made, everything else is made or replaced, or removed. 0 with the
 * item's outcome set, or what ends the work: -ENOSPC, -EDQUOT, -EROFS, -EIO, -ENOMEM.
 */
int stage_writer_put(struct stage_writer *writer, struct stage_item *item);
int stage_writer_remove(struct stage_writer *writer, struct stage_item *item);

/* A directory's permissions, when all that is in it is done. */
int stage_writer_set_mode(struct stage_writer *writer, struct stage_item *item);

/* -EIO and others: something of ours lies in the workspace still, and the next settles it. */
int stage_writer_end(struct stage_writer *writer);

/* Takes the step of an apply back (stage_undo_write.c); the item's identity is what was put. */
int stage_writer_undo(struct stage_writer *writer, const struct stage_step *step,
		      struct stage_item *item);

/* Sets the outcome for a failure. 0, or what ends the work. */
int stage_writer_fail(struct stage_item *item, int code);

/* Takes what was applied out of the stage; what cannot go is the host's already. */
void stage_prune(struct stage_writer *writer, const struct stage_item *item);

/* How long the way of two paths of directories is that they have in common, in whole names. */
size_t stage_common_length(const char *left, const char *right, size_t right_length);

/* The directory of a path, opened beneath the root; the path's last name. */
int stage_open_parent(int root_fd, const char *path, char *parent, const char **ret_name);

/* What was asked for is kept until it is done. */
int stage_asked_keep(int stage_fd, const struct stage_asked *asked);
void stage_asked_forget(int stage_fd);

/* Whether something is in the stage; where it cannot be told there is. */
bool stage_has_more(const struct stage_kept *kept);
