/*
 * The bytes of blobs that travel in sealed memfds: numbers in the host's order (both ends are on
 * one host) and counted strings with a NUL behind them, and a cursor that reads them back. Pure.
 *
 * A cursor latches its first failure and gives 0, "" and NULL from then on; its owner asks once, at
 * the end. Strings are copied into the arena: the blob may go afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;

void codec_put_u32(struct buffer *buffer, uint32_t value);
void codec_put_u64(struct buffer *buffer, uint64_t value);
/* NULL counts as "". At most 2^32 - 2 bytes, which no buffer reaches. */
void codec_put_string(struct buffer *buffer, const char *text);
/* No more than the first bytes of it. */
void codec_put_prefix(struct buffer *buffer, const char *text, size_t limit_bytes);

struct codec_cursor {
	const unsigned char *at, *end; /* borrowed */
	struct arena *arena;	       /* borrowed */
	int failure;		       /* negative errno: -EBADMSG, -E2BIG, -ENOMEM; 0: none */
};

void codec_begin(struct codec_cursor *cursor, const void *bytes, size_t length,
		 struct arena *arena);
uint32_t codec_u32(struct codec_cursor *cursor);
uint64_t codec_u64(struct codec_cursor *cursor);

/* A string of less than limit_bytes, else -E2BIG; one with a NUL inside is -EBADMSG. */
const char *codec_string(struct codec_cursor *cursor, size_t limit_bytes);

/* A number of items of at least item_bytes each: at most `limit`, and no more than can follow. */
size_t codec_count(struct codec_cursor *cursor, size_t limit, size_t item_bytes);

/* An array of that many strings, NULL-ended; NULL after a failure. */
const char *const *codec_strings(struct codec_cursor *cursor, size_t count, size_t limit_bytes);

/* A value below `count`, for enumerators; else -EBADMSG. */
uint32_t codec_enum(struct codec_cursor *cursor, uint32_t count);

/* A zeroed array of the arena for items that follow; NULL (and -ENOMEM) where it has no room. */
void *codec_array(struct codec_cursor *cursor, size_t count, size_t item_bytes);

/* Latches a failure; the first one stays. */
void codec_fail(struct codec_cursor *cursor, int code);

/* The failure, or -EBADMSG where bytes are left over, or 0. */
int codec_end(struct codec_cursor *cursor);
