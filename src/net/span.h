/*
 * Views into foreign bytes, and the one way through which they are read: a cursor that latches.
 *
 * A span borrows. A cursor gives 0 and empty spans once it has been asked for more than there is;
 * its user goes on and asks cursor_end() at the end. Numbers are in network order. Pure, inline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *bytes; /* not NUL-terminated */
	size_t length;
};

static inline bool span_is(struct span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}

static inline char span_lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* Without regard to the case of ASCII; `text` is in lower case. */
static inline bool span_is_word(struct span span, const char *text)
{
	if (span.length != strlen(text))
		return false;
	for (size_t i = 0; i < span.length; i++)
		if (span_lower(span.bytes[i]) != text[i])
			return false;
	return true;
}

struct cursor {
	const unsigned char *at;
	size_t left;
	bool failed;
};

static inline struct cursor cursor_of(const void *bytes, size_t length)
{
	return (struct cursor){ .at = bytes, .left = length };
}

/* NULL where there are not so many. */
static inline const unsigned char *cursor_take(struct cursor *cursor, size_t length)
{
	const unsigned char *at = cursor->at;

	if (cursor->failed || length > cursor->left) {
		cursor->failed = true;
		return NULL;
	}
	cursor->at += length;
	cursor->left -= length;
	return at;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	const unsigned char *at = cursor_take(cursor, 1);

	return at ? at[0] : 0;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
	const unsigned char *at = cursor_take(cursor, 2);

	return at ? (uint16_t)(at[0] << 8 | at[1]) : 0;
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
	uint32_t high = cursor_u16(cursor);

	return high << 16 | cursor_u16(cursor);
}

/* The next `length` bytes as a cursor of their own; a failed one where they are not there. */
static inline struct cursor cursor_part(struct cursor *cursor, size_t length)
{
	const unsigned char *at = cursor_take(cursor, length);

	return (struct cursor){ .at = at, .left = at ? length : 0, .failed = !at };
}

/* True where everything asked for was there, and nothing is left. */
static inline bool cursor_end(const struct cursor *cursor)
{
	return !cursor->failed && cursor->left == 0;
}
