/*
 * The projects' own layers of package caches as a person sees them: what there is, and throwing it
 * away, for instance when a task has poisoned it. What lies in a layer is a task's: it is counted
 * and removed by descriptor, no link followed (base/walk.h, base/directory.h).
 *
 * A layer that a box uses is locked by its supervisor, and is not touched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct caller;

/* Of one layer at most this many names are counted; with more the count is a part. */
#define CACHE_LIMIT_NAMES 2000000u
/* A person has some hundred projects, each with a few caches. */
#define CACHE_LIMIT_LISTED 65536u

struct cache_entry {
	const char *project;   /* its directory: 16 hexadecimal digits */
	const char *workspace; /* whose it is; NULL: not on record */
	const char *name;      /* "npm" */
	uint64_t bytes;	       /* on the disk */
	uint64_t files;
	uint64_t used_wall_ns; /* when a box began to use it last */
	bool is_cut;	       /* there is more of it than was counted */
	bool is_used;	       /* by a box, now */
};

/*
 * All that have something in them, by project and name; no caches at all is no error. The memory is
 * the arena's.
 */
int cache_list(int state_fd, struct arena *arena, struct cache_entry **ret_entries,
	       size_t *ret_count, struct error *error);

/*
 * Empties a layer, and leaves it as a new one. -EBUSY where a box uses it; where something could
 * not be removed, the error names the directory that it lies in.
 */
int cache_discard(const struct caller *host, int state_fd, const struct cache_entry *entry,
		  struct error *error);
