/*
 * What a task changed in a workspace that was staged for it: an overlay whose lower directory is
 * the host's tree and whose upper directory is the task's. Only the upper one is walked, and of the
 * lower one what it hides; so the cost is that of the changes, not of the tree.
 *
 * The upper directory is read as the kernel reads it for an overlay with "userxattr"
 * (overlayfs.rst): whiteouts are character devices 0:0, or empty files marked
 * "user.overlay.whiteout" in a directory whose "user.overlay.opaque" is "x"; "y" there hides all of
 * the lower directory. Inodes with a redirect or only metadata are none that the kernel makes with
 * that option: -EUCLEAN.
 *
 * Both sides are hostile: objects are found beneath the two descriptors, no link followed, no mount
 * entered; nothing but regular files is opened, and those without waiting. What could not be looked
 * at has a row that says so. Memory is bounded whatever the tree (STAGE_POOL_BYTES), so rows are
 * handed over one by one: those of a directory before those of what is in it, sorted by name
 * unless a directory's names do not fit.
 *
 * Who may use it: the supervisor, or a verb, when no process of the task runs any more.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Real trees have some dozens; a level costs some hundred bytes. */
#define STAGE_LIMIT_DEPTH 8192u
/* A path of the deepest tree with short names; what is longer is not looked into. */
#define STAGE_LIMIT_PATH_BYTES 65536u
/* Names of all directories on the way together; a directory of 100,000 files is sorted whole. */
#define STAGE_POOL_BYTES (16u * 1024 * 1024)
/* Two files of one size are compared as far, a second of work; beyond it they are different. */
#define STAGE_LIMIT_COMPARE_BYTES (1024ull * 1024 * 1024)

enum stage_type {
	STAGE_NONE, /* nothing stands there */
	STAGE_FILE,
	STAGE_LINK,
	STAGE_DIRECTORY,
	STAGE_FIFO,
	STAGE_SOCKET,
	STAGE_CHARACTER,
	STAGE_BLOCK,
	STAGE_TYPE_COUNT,
};

enum stage_kind {
	STAGE_CREATED,
	STAGE_MODIFIED, /* another content, or another target of a link */
	STAGE_REMOVED,
	STAGE_REPLACED, /* an object of another type */
	STAGE_MODE,	/* mode bits, an ACL or attributes alone */
	STAGE_RENAMED,	/* by stage_changes() only: the content was under another name before */
	STAGE_UNREAD,	/* only that it could not be looked into */
	STAGE_KIND_COUNT,
};

/* What is worth a person's look. The last three are told by stage_look() only. */
enum stage_mark {
	STAGE_MARK_EXECUTABLE = 1u << 0, /* a file that became executable */
	STAGE_MARK_LATER = 1u << 1,	 /* a host's tool executes it: workspace/later.h */
	STAGE_MARK_SET_ID = 1u << 2,
	STAGE_MARK_CAPABILITY = 1u << 3,
	STAGE_MARK_ACL = 1u << 4,
	STAGE_MARK_ATTRIBUTE = 1u << 5, /* other extended attributes */
	STAGE_MARK_LINKED = 1u << 6,	/* the new file has more than one name */
	STAGE_MARK_CREDENTIAL = 1u << 7,
	STAGE_MARK_BINARY = 1u << 8,
	STAGE_MARK_PARTLY = 1u << 9, /* too large to be looked through */
};

#define STAGE_MARK_COUNT 10

struct stage_side {
	enum stage_type type;
	mode_t mode; /* 07777 */
	uint64_t size;
};

struct stage_change {
	const char *path; /* below the workspace, clean; good during the call */
	const char *from; /* RENAMED: the path before; else NULL */
	enum stage_kind kind;
	struct stage_side before, after;
	unsigned marks;
	const char *later;  /* who executes it, static; NULL without STAGE_MARK_LATER */
	const char *unread; /* what could not be looked at, static; NULL: nothing */
	/* for stage_open() and stage_link() */
	int lower_fd, before_fd, after_fd; /* borrowed */
	const char *name;
};

struct stage {
	int upper_fd, lower_fd; /* borrowed; directories, not O_PATH */
	bool is_names_only;	/* nothing is read: rows of files on both sides say little then */
	/* clean paths that the task did not see: what it has there is UNREAD */
	const char *const *hidden;
	size_t hidden_count;
	/* 0, or a negative errno that ends the walk; one of its own is no error to be told. */
	int (*take)(void *context, const struct stage_change *change);
	void *context;
};

/* Hands every change over, each path once. 0 or a negative errno. */
int stage_walk(const struct stage *stage, struct error *error) __attribute__((warn_unused_result));

enum stage_which { STAGE_BEFORE, STAGE_AFTER };

/*
 * Opens a regular file of a change for reading, during the call. -EINVAL where that side is none,
 * -ESTALE where something else stands there by now.
 */
int stage_open(const struct stage_change *change, enum stage_which which);

/* The target of a link, NUL-ended. Returns its length. */
int stage_link(const struct stage_change *change, enum stage_which which,
	       char ret_target[static PATH_MAX]);

/* "created", "file", "set-id": words of ours, for JSON and people. */
const char *stage_kind_name(enum stage_kind kind);
const char *stage_type_name(enum stage_type type);
const char *stage_mark_name(unsigned index);
