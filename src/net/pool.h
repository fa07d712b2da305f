/*
 * Memory of the proxy: chunks of one size from one mapping, taken once at the start.
 *
 * A chunk holds bytes that have come and cannot go on yet. Which are free is noted outside of them,
 * so that a page that was never used stays one that does not exist. Those that are given back keep
 * their pages as long as they are taken again soon, since a page costs more than a request; what a
 * burst leaves is given to the kernel by pool_rest(), but for a few.
 * No allocation happens afterwards: when all are in use, pool_take() gives NULL, and whoever wanted
 * one waits until one is given back. Connections that are not open yet cannot take the last ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head of 64 KiB (http.h), and what rewriting it adds. */
#define CHUNK_BYTES (72u * 1024)
/* Chunks at once: 72 MiB at the worst, where each is full. */
#define POOL_LIMIT_CHUNKS 1024u

/* Of those, what only connections that are open can have. */
#define POOL_LIMIT_RESERVED 256u

struct chunk {
	uint32_t start, end; /* what is in it */
	unsigned char bytes[CHUNK_BYTES - 8];
};

struct pool {
	struct chunk *chunks;
	uint16_t *free; /* a stack of indices: the last given back is the first taken */
	uint32_t free_count, unused; /* unused: the first index that was never taken */
	uint32_t cold;		     /* of the free ones, from the bottom: those without pages */
	uint32_t least; /* free ones since the last rest: what lies below was not needed */
	bool is_given;	/* one was given back; whoever waits for that sets it to false */
};

/* -ENOMEM. The mapping is the process's for its life. */
int pool_make(struct pool *pool);

struct chunk *pool_take(struct pool *pool);

/* How many there are to take. */
uint32_t pool_left(const struct pool *pool);

/* Accepts NULL; sets *chunk to NULL. */
void pool_give(struct pool *pool, struct chunk **chunk);

/* Whether there is something to rest from. */
bool pool_is_warm(const struct pool *pool);

/* Gives the pages of what was not needed since the last time back; called now and then. */
void pool_rest(struct pool *pool);

static inline size_t chunk_length(const struct chunk *chunk)
{
	return chunk ? chunk->end - chunk->start : 0;
}

static inline size_t chunk_room(const struct chunk *chunk)
{
	return sizeof(chunk->bytes) - chunk->end;
}

/* Forgets the first bytes of it. */
void chunk_skip(struct chunk *chunk, size_t length);

/* Moves what is in it to its front, where there is less room behind it than that. */
void chunk_compact(struct chunk *chunk, size_t room);

/* False where they do not fit; nothing is added then. */
bool chunk_add(struct chunk *chunk, const void *bytes, size_t length);
