#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/*
 * A start needs some 100 KiB, which the first block gives. Its pages come with it: a fault for
 * each of them costs ten times as much, and in a virtual machine a part of the start's time.
 */
#define FIRST_BLOCK_BYTES (128u * 1024)
#define BLOCK_BYTES (64u * 1024)
#define ALIGNMENT 16u

struct arena_block {
	struct arena_block *previous;
	size_t capacity;
	size_t used;
	/* 8 bytes of padding keep data aligned to 16 */
	size_t reserved;
	unsigned char data[];
};

/* Small blocks that no arena has. They stay: there are never more than were in use at once. */
#define SMALL_BLOCKS 4u
static struct arena_block *small_blocks;

static bool is_small(const struct arena_block *block)
{
	return block->capacity == ARENA_SMALL_BYTES - sizeof(*block);
}

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct arena_block *take_small(void)
{
	struct arena_block *block = small_blocks;
	char *memory = block ? NULL : map(SMALL_BLOCKS * ARENA_SMALL_BYTES);

	for (unsigned i = 0; memory && i < SMALL_BLOCKS; i++) {
		block = (struct arena_block *)(void *)(memory + i * ARENA_SMALL_BYTES);
		block->previous = small_blocks;
		small_blocks = block;
	}
	if (block)
		small_blocks = block->previous;
	return block;
}

/* Nothing of what it held stays in it. */
static void give_back(struct arena_block *block)
{
	if (!is_small(block)) {
		(void)munmap(block, sizeof(*block) + block->capacity);
		return;
	}
	memset(block->data, 0, block->used);
	block->used = 0;
	block->previous = small_blocks;
	small_blocks = block;
}

static void *fail(struct arena *arena)
{
	arena->failed = true;
	return NULL;
}

/* Zeroed, by the kernel or when it was given back. */
static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
	size_t least = arena->last	  ? BLOCK_BYTES :
		       arena->first_bytes ? arena->first_bytes :
					    FIRST_BLOCK_BYTES;
	size_t total = sizeof(struct arena_block) + bytes;
	struct arena_block *block;

	if (total < least)
		total = least;
	if (total <= ARENA_SMALL_BYTES)
		total = ARENA_SMALL_BYTES;
	block = total == ARENA_SMALL_BYTES ? take_small() : map(total);
	if (!block)
		return NULL;
	block->previous = arena->last;
	block->capacity = total - sizeof(*block);
	arena->last = block;
	return block;
}

void *arena_allocate(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->last;
	void *memory;

	if (bytes > ARENA_LIMIT_BYTES || arena->used_bytes > ARENA_LIMIT_BYTES - bytes)
		return fail(arena);
	bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!block || block->capacity - block->used < bytes) {
		block = add_block(arena, bytes);
		if (!block)
			return fail(arena);
	}
	memory = block->data + block->used;
	block->used += bytes;
	arena->used_bytes += bytes;
	return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total))
		return fail(arena);
	return arena_allocate(arena, total);
}

char *arena_copy_bytes(struct arena *arena, const void *bytes, size_t length)
{
	char *copy = length < SIZE_MAX ? arena_allocate(arena, length + 1) : fail(arena);

	if (copy && length)
		memcpy(copy, bytes, length);
	return copy;
}

char *arena_copy(struct arena *arena, const char *text)
{
	return arena_copy_bytes(arena, text, strlen(text));
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return fail(arena);
	text = arena_allocate(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(arguments, format);
	(void)vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}

void *arena_push(struct arena *arena, void *items, size_t count, size_t item_bytes)
{
	void *grown;

	/* capacity is the power of two at or above count: no field to keep for it */
	if (count && (count & (count - 1)))
		return items;
	grown = arena_array(arena, count ? count * 2 : 1, item_bytes);
	if (grown && count)
		memcpy(grown, items, count * item_bytes);
	return grown;
}

bool arena_failed(const struct arena *arena)
{
	return arena->failed;
}

void arena_reset(struct arena *arena)
{
	while (arena->last && arena->last->previous) {
		struct arena_block *block = arena->last;

		arena->last = block->previous;
		give_back(block);
	}
	if (arena->last) {
		memset(arena->last->data, 0, arena->last->used);
		arena->last->used = 0;
	}
	arena->used_bytes = 0;
	arena->failed = false;
}

void arena_free(struct arena *arena)
{
	while (arena->last) {
		struct arena_block *block = arena->last;

		arena->last = block->previous;
		give_back(block);
	}
	*arena = (struct arena){ 0 };
}
