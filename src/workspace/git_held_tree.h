/*
 * What was taken out of a work tree for a person to accept or reject: files, links and whole
 * directories that the host's tools would run or obey (sweep.h).
 *
 *	<state>/held/<task>/.tree/<id>		the object itself
 *	<state>/held/<task>/.tree/<id>.json	what is known of it
 *
 * It lies beside what is held of git directories (held/<task>/<id>). On one file system an object
 * is renamed, whatever its size; from another it is copied within limits, then removed. What it
 * holds is a task's: nothing here follows, opens or interprets it but regular files while they are
 * copied.
 *
 * A process that has the object open could go on writing to it. So it is accepted only where
 * nothing in it changed after it was held, which change times (ctime) tell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct arena;
struct error;

/* What is copied between file systems: settings and scripts are kilobytes, small repositories some
 * megabytes. */
#define GIT_HELD_TREE_LIMIT_BYTES (256ull * 1024 * 1024)
#define GIT_HELD_TREE_LIMIT_OBJECTS 100000u
#define GIT_HELD_TREE_LIMIT_DEPTH 64u
/* A path below the workspace; what lies deeper is held and cannot be accepted. */
#define GIT_HELD_TREE_LIMIT_PATH_BYTES 65536u
/* 12 digits and a NUL; as the ids of git_held.h. */
#define GIT_HELD_TREE_ID_BYTES 13

enum git_held_tree_kind {
	GIT_HELD_TREE_FILE,
	GIT_HELD_TREE_LINK,
	GIT_HELD_TREE_DIRECTORY,
	GIT_HELD_TREE_OTHER,
	GIT_HELD_TREE_KIND_COUNT,
};

struct git_held_tree {
	char id[GIT_HELD_TREE_ID_BYTES];
	const char *task;
	const char *directory; /* host path of the workspace, or of a git directory */
	const char *path;      /* below it; NULL where it is too long, "" for a whole layer of it */
	const char *reason;    /* words of ours */
	enum git_held_tree_kind kind;
	uint32_t mode; /* permissions that it had */
	uint64_t wall_ns;
	int64_t held_ns;  /* the latest change time that anything in it may have */
	uint64_t omitted; /* FIFOs, sockets and devices, which a copy leaves out */
};

/* Opens the task's place, made where that is wanted: a descriptor, or -ENOENT. */
int git_held_tree_open(int state_fd, const char *task, bool makes);

/*
 * Takes a name out of a directory, where it still is the object of this status: -ESTALE if not.
 * task, directory, path and reason are given, the rest is filled in. One of the same id is
 * replaced. -EFBIG: on another file system and too large. Where it fails, the name is there as
 * before; only what was copied and cannot be removed is there in part, and held as well.
 */
int git_held_tree_take(int store_fd, int directory_fd, const char *name, const struct stat *status,
		       struct git_held_tree *held, struct error *error)
	__attribute__((warn_unused_result));

/* All that is held, oldest first, in the arena. What cannot be read is counted in ret_bad. */
int git_held_tree_list(int state_fd, struct arena *arena, struct git_held_tree **ret_items,
		       size_t *ret_count, size_t *ret_bad, struct error *error);

/*
 * Puts it back where it was. -EOPNOTSUPP: it has no place of its own; -EEXIST: something is there
 * by now; -ENOENT: its directory is gone; -ESTALE: something in it changed after it was held. It
 * stays in the store where it fails, else it is gone from there.
 */
int git_held_tree_accept(int state_fd, const struct git_held_tree *held, struct error *error)
	__attribute__((warn_unused_result));

/* Removes it for good. */
int git_held_tree_reject(int state_fd, const struct git_held_tree *held, struct error *error)
	__attribute__((warn_unused_result));

/* "file", "link", "directory", "other". */
const char *git_held_tree_kind_name(enum git_held_tree_kind kind);
