/*
 * A growable byte buffer for text that is built up: JSON, explanations, messages.
 *
 * Failure (no memory, named limit) is latched in `failed` and checked once by the one who uses
 * the content. The content is always NUL-ended when data is not NULL. The buffer owns its memory,
 * which buffer_free() (or CLEANUP_BUFFER) releases; one with an arena has it from there and leaves
 * it there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A result or an explanation is at most this long; more is a fault of the builder. */
#define BUFFER_LIMIT_BYTES (64u * 1024 * 1024)

struct arena;

struct buffer {
	struct arena *arena; /* borrowed; NULL: memory of its own */
	char *data;
	size_t length;
	size_t capacity;
	bool failed;
};

void buffer_append(struct buffer *buffer, const void *bytes, size_t length);
/* Inline, so that the length of a constant is one. */
static inline void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}
void buffer_byte(struct buffer *buffer, char byte);
void buffer_unsigned(struct buffer *buffer, uint64_t value);
void buffer_format(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends bytes for a person's terminal: control, bidi and invalid UTF-8 bytes come as \xNN. */
void buffer_visible(struct buffer *buffer, const char *text);
/* The same for bytes with a length, NULs among them. */
void buffer_visible_bytes(struct buffer *buffer, const char *bytes, size_t length);

void buffer_free(struct buffer *buffer);

#define CLEANUP_BUFFER __attribute__((cleanup(buffer_free)))
