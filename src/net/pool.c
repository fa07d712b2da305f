#include "net/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Free chunks that keep their pages for good: as many as a few connections use. */
#define WARM_CHUNKS 16u
#define PAGE_BYTES 4096u

int pool_make(struct pool *pool)
{
	size_t chunk_bytes = POOL_LIMIT_CHUNKS * sizeof(struct chunk);
	size_t bytes = chunk_bytes + POOL_LIMIT_CHUNKS * sizeof(*pool->free);
	unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*pool = (struct pool){ .chunks = (void *)memory, .free = (void *)(memory + chunk_bytes) };
	return 0;
}

struct chunk *pool_take(struct pool *pool)
{
	struct chunk *chunk;

	if (pool->free_count > 0)
		chunk = &pool->chunks[pool->free[--pool->free_count]];
	else if (pool->unused < POOL_LIMIT_CHUNKS)
		chunk = &pool->chunks[pool->unused++];
	else
		return NULL;
	if (pool->least > pool->free_count)
		pool->least = pool->free_count;
	if (pool->cold > pool->free_count)
		pool->cold = pool->free_count;
	chunk->start = chunk->end = 0;
	return chunk;
}

uint32_t pool_left(const struct pool *pool)
{
	return pool->free_count + POOL_LIMIT_CHUNKS - pool->unused;
}

/* The whole pages of it; what it shares with its neighbours stays. */
static void cool(struct chunk *chunk)
{
	uintptr_t first = ((uintptr_t)chunk + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t end = (uintptr_t)(chunk + 1) & ~(uintptr_t)(PAGE_BYTES - 1);

	(void)madvise((void *)first, end - first, MADV_DONTNEED);
}

void pool_give(struct pool *pool, struct chunk **chunk)
{
	if (*chunk == NULL)
		return;
	pool->free[pool->free_count++] = (uint16_t)(*chunk - pool->chunks);
	pool->is_given = true;
	*chunk = NULL;
}

bool pool_is_warm(const struct pool *pool)
{
	return pool->free_count > pool->cold + WARM_CHUNKS;
}

void pool_rest(struct pool *pool)
{
	/* the last given back is the first taken: the lowest ones rest for the longest time */
	while (pool->cold + WARM_CHUNKS < pool->least)
		cool(&pool->chunks[pool->free[pool->cold++]]);
	pool->least = pool->free_count;
}

void chunk_skip(struct chunk *chunk, size_t length)
{
	chunk->start += (uint32_t)length;
	if (chunk->start == chunk->end)
		chunk->start = chunk->end = 0;
}

void chunk_compact(struct chunk *chunk, size_t room)
{
	if (chunk_room(chunk) >= room || chunk->start == 0)
		return;
	memmove(chunk->bytes, chunk->bytes + chunk->start, chunk->end - chunk->start);
	chunk->end -= chunk->start;
	chunk->start = 0;
}

bool chunk_add(struct chunk *chunk, const void *bytes, size_t length)
{
	chunk_compact(chunk, length);
	if (length > chunk_room(chunk))
		return false;
	memcpy(chunk->bytes + chunk->end, bytes, length);
	chunk->end += (uint32_t)length;
	return true;
}
