/*
 * What a task changed below a covered git directory: the upper directory of its overlay, read from
 * the host. The task wrote it; it is walked by descriptors, no link followed, in bounded time and
 * memory, and only named here: contents are read elsewhere.
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

/* -E2BIG for more than GIT_UPPER_LIMIT_ENTRIES. */
int git_upper_read(int upper_fd, struct arena *arena, struct git_upper *ret_upper,
		   struct error *error);

/* NULL where the task left the path alone. */
const struct git_upper_entry *git_upper_find(const struct git_upper *upper, const char *path);
