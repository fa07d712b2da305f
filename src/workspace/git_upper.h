/*
 * What a task changed below a covered git directory: the upper directory of its overlay, read from
 * the host. The task wrote it; it is walked by descriptors, no link followed, in bounded time and
 * memory, and only named here: contents are read elsewhere. What a task's modes would keep from
 * being read is made readable to its owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct error;

/* A repository of 100,000 references, packed, has as many whiteouts. */
#define GIT_UPPER_LIMIT_ENTRIES 200000u
#define GIT_UPPER_LIMIT_DEPTH 64u

enum git_upper_kind {
	GIT_UPPER_FILE,
	GIT_UPPER_GONE,	   /* removed, a file or a whole directory */
	GIT_UPPER_OPAQUE,  /* a directory that replaces the host's */
	GIT_UPPER_LINK,	   /* a symbolic link */
	GIT_UPPER_SPECIAL, /* FIFO, socket, device */
	GIT_UPPER_UNREAD,  /* a directory that cannot be read, or is nested too deep */
};

struct git_upper_entry {
	const char *path; /* below the upper directory */
	enum git_upper_kind kind;
	mode_t mode;
	uint64_t inode;
	int64_t changed_ns;
};

struct git_upper {
	struct git_upper_entry *entries; /* sorted by path; directories as such are not named */
	size_t count;
};

/*
 * Opens a directory in the layer, or the layer itself, to be read: also one whose mode keeps the
 * caller out, where it is the caller's. A descriptor or a negative errno.
 */
int git_upper_open(int directory_fd, const char *path);

/* Unlocks what it meets, likewise. -E2BIG for more than GIT_UPPER_LIMIT_ENTRIES. */
int git_upper_read(int upper_fd, struct arena *arena, struct git_upper *ret_upper,
		   struct error *error);

/* NULL where the task left the path alone. */
const struct git_upper_entry *git_upper_find(const struct git_upper *upper, const char *path);

/* A path of a store of objects: the git directory's own, or a module's. */
bool git_upper_is_object(const char *path);

/*
 * Takes the marks away by which a task's layer hides objects of the host's, or directories of them:
 * what a task removes stays for the host, and what the host adds there the task is to see. For a
 * layer that nothing of the task uses at the moment; the overlay is to look at it anew.
 */
int git_upper_show_objects(int upper_fd, struct arena *arena, struct error *error);
