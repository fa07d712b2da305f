/* What the files of workspace/sweep share. */
#pragma once

#include "base/walk.h"
#include "workspace/sweep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum sweep_mode {
	SWEEP_SURVEY, /* before the action: all is old, and noted */
	SWEEP_STAMPS, /* what has a later stamp than since_ns is new */
	SWEEP_NOTES,  /* what is not noted exactly so is new */
};

/* What is told about one name in a directory. */
struct sweep_spot {
	int fd;		  /* the directory */
	const char *name; /* in it */
	const char *path; /* below the workspace; NULL where it is too long */
	const char *reason;
	bool is_git;		       /* a directory of this name is a git repository */
	const struct sweep_copy *copy; /* what there was at the start; NULL: not known */
	bool was_there;
	struct stat status; /* of the name */
};

struct sweeper {
	const struct sweep_order *order; /* NULL with SURVEY */
	const struct sweep *sweep;	 /* NULL with SURVEY */
	enum sweep_mode mode;
	int64_t since_ns, until_ns;
	struct arena *arena;
	struct error *error;
	struct walk walk;
	int store_fd; /* owned; opened when something is held */
	struct sweep_result result;

	/* the directory that is being listed */
	unsigned parts;	  /* of a repository, that were seen in it: a bit per class */
	bool is_inexact;  /* one of them by another spelling only */
	bool is_part_new; /* one of them is new */
};

int64_t sweep_stamp_ns(const struct stat *status);

/* Who stamps the files there. */
enum sweep_clock sweep_clock_of(int fd);

/* The wall clock less the one that nobody sets, within bounds. It falls when the first is set. */
struct sweep_offset {
	int64_t least_ns, most_ns;
};

struct sweep_offset sweep_wall_offset(void);

/* By device and inode; NULL where it is not in the sorted array. */
const struct sweep_known *sweep_find(const struct sweep_known *known, size_t count,
				     const struct stat *status);

/* Walks through the tree below the descriptor, which it takes. */
int sweep_look(struct sweeper *sweeper, int fd);

/* Holds a name, or does what else can be done, and tells so in the result. */
int sweep_hold(struct sweeper *sweeper, const struct sweep_spot *spot);
