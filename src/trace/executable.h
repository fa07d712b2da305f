/*
 * SHA-256 of executables, computed once: trace/executables remembers what a file of this device,
 * inode, size, mtime and ctime (inode(7)) had. Nobody but the kernel sets a ctime, so whoever finds
 * the same finds the same bytes, with two exceptions: what is written through a shared mapping,
 * and what is changed twice within one tick of the kernel's clock. For the second, a file that
 * changed a moment ago is not remembered ("racily clean", as git calls it).
 *
 * The cache is one file of EXECUTABLE_ENTRIES entries with a checksum each: read and written at
 * their places without a lock. A torn or foreign entry has a wrong sum and is none; a full set of
 * entries gives one up. It may be removed at any time.
 *
 * Looking a file up costs some microseconds. Computing is for while the action runs, in steps,
 * so that a loop of events can go on between them. What is no regular file, is too large, cannot be
 * read or changes meanwhile has no digest but a reason; nothing of it blocks.
 */
#pragma once

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;
struct trace_store;

/* The largest usual ones are browsers and language servers of 200-300 MiB; a second of work. */
#define EXECUTABLE_LIMIT_BYTES (512ull * 1024 * 1024)
/* 4096 executables of one user; 384 KiB. */
#define EXECUTABLE_ENTRIES 4096u
/* Longer than a tick of any file system that has times of whole seconds. */
#define EXECUTABLE_SETTLED_NS (2ull * 1000 * 1000 * 1000)

struct executable_cache {
	int fd; /* owned; -1: there is none, everything is a miss */
};

#define EXECUTABLE_CACHE_NONE ((struct executable_cache){ .fd = -1 })

/* Opens or makes it. Where that fails nothing is remembered; the caller need not care. */
void executable_cache_open(const struct trace_store *store, struct executable_cache *ret_cache);
void executable_cache_close(struct executable_cache *cache);

#define CLEANUP_EXECUTABLE_CACHE __attribute__((cleanup(executable_cache_close)))

/* True where the digest of the file with this status (fstat(2)) is known. */
bool executable_lookup(const struct executable_cache *cache, const struct stat *status,
		       char ret_sha256[static SHA256_HEX_BYTES]);

/* A digest that is being computed. */
struct executable {
	int fd; /* owned */
	struct sha256 hash;
	uint64_t at, size;
	uint64_t begun_wall_ns;
	/* what it was when it was begun */
	uint64_t device, inode;
	int64_t mtime_ns, ctime_ns;
	const char *unhashed; /* why there is none (static); NULL: as long as there is no reason */
};

#define EXECUTABLE_NONE ((struct executable){ .fd = -1 })

/*
 * Begins with an open file, also one of O_PATH: it is opened anew, and the descriptor stays the
 * caller's. Where there will be no digest, `unhashed` says why at once.
 */
void executable_begin(int fd, struct executable *ret_executable);

/*
 * Reads at most about `bytes` more. True as long as there is more to do; then either ret_sha256 is
 * set and remembered, or `unhashed` says why there is none.
 */
bool executable_step(struct executable *executable, uint64_t bytes,
		     const struct executable_cache *cache,
		     char ret_sha256[static SHA256_HEX_BYTES]);

/* Closes; accepts EXECUTABLE_NONE. */
void executable_end(struct executable *executable);

#define CLEANUP_EXECUTABLE __attribute__((cleanup(executable_end)))

/* All steps at once. Returns NULL with ret_sha256 set, or why there is none. */
const char *executable_compute(int fd, const struct executable_cache *cache,
			       char ret_sha256[static SHA256_HEX_BYTES]);
