/*
 * A bump allocator: everything that is built for one start (policy, view, plan) lives in one
 * arena and is freed at once. Single owner, not thread safe.
 *
 * Allocation fails (NULL) when memory or the arena's named limit is used up; the failure is
 * latched, so that a builder may check arena_failed() once at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a hostile tree of globs, arguments and environment could make us hold at the most. */
#define ARENA_LIMIT_BYTES (64u * 1024 * 1024)

/*
 * A first block of at most this is taken from few pages that are mapped together and given back to
 * them: to map and unmap one of its own costs as much as fifty small system calls.
 */
#define ARENA_SMALL_BYTES 16384u

struct arena_block;

struct arena {
	struct arena_block *last;
	size_t used_bytes;
	size_t first_bytes; /* of the first block; 0: what a start needs */
	bool failed;
};

/* Zeroed memory, aligned for any object; NULL (and latched) on failure. */
void *arena_allocate(struct arena *arena, size_t bytes);

/* Zeroed array with overflow-checked size. */
void *arena_array(struct arena *arena, size_t count, size_t bytes);

char *arena_copy(struct arena *arena, const char *text);
char *arena_copy_bytes(struct arena *arena, const void *bytes, size_t length);
char *arena_format(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Grows an array of `count` items held in the arena by one; returns the (possibly moved) array. */
void *arena_push(struct arena *arena, void *items, size_t count, size_t item_bytes);

bool arena_failed(const struct arena *arena);

/*
 * Forgets everything in it and keeps the first block, for a loop that builds one small thing after
 * another: a block that is made anew costs 30 us.
 */
void arena_reset(struct arena *arena);

void arena_free(struct arena *arena);

#define CLEANUP_ARENA __attribute__((cleanup(arena_free)))
