#include "base/buffer.h"

#include "base/arena.h"
#include "base/bytes.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What most texts fit in: growing costs more than what is not used. */
#define FIRST_BYTES 2048

static bool grow(struct buffer *buffer, size_t more)
{
	size_t needed, capacity = buffer->capacity ? buffer->capacity : FIRST_BYTES;
	char *grown;

	if (buffer->failed || __builtin_add_overflow(buffer->length, more, &needed) ||
	    needed >= BUFFER_LIMIT_BYTES) {
		buffer->failed = true;
		return false;
	}
	while (capacity <= needed)
		capacity *= 2;
	grown = buffer->arena ? arena_allocate(buffer->arena, capacity) :
				realloc(buffer->data, capacity);
	if (grown && buffer->arena && buffer->length)
		memcpy(grown, buffer->data, buffer->length + 1);
	if (!grown) {
		buffer->failed = true;
		return false;
	}
	buffer->data = grown;
	buffer->capacity = capacity;
	return true;
}

/* Room for `more` bytes and a NUL. */
static inline bool reserve(struct buffer *buffer, size_t more)
{
	return (!buffer->failed && more < buffer->capacity - buffer->length) || grow(buffer, more);
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
	if (!reserve(buffer, length))
		return;
	bytes_copy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

void buffer_byte(struct buffer *buffer, char byte)
{
	buffer_append(buffer, &byte, 1);
}

/* By hand: what printf(3) takes for it is most of a record. */
void buffer_unsigned(struct buffer *buffer, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	buffer_append(buffer, at, (size_t)(digits + sizeof(digits) - at));
}

void buffer_format(struct buffer *buffer, const char *format, ...)
{
	/* most texts fit: then they are made once */
	size_t room = buffer->failed ? 0 : buffer->capacity - buffer->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(room ? buffer->data + buffer->length : NULL, room, format, arguments);
	va_end(arguments);
	if (length < 0 || !reserve(buffer, (size_t)length)) {
		buffer->failed = true;
		/* without what fitted of it */
		if (room)
			buffer->data[buffer->length] = '\0';
		return;
	}
	if ((size_t)length >= room) {
		va_start(arguments, format);
		(void)vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format,
				arguments);
		va_end(arguments);
	}
	buffer->length += (size_t)length;
}

/* How many bytes from `text` on are ASCII that is seen. */
static size_t seen_length(const char *text, size_t left)
{
	size_t done = 0;

	for (; left - done >= sizeof(bytes16); done += sizeof(bytes16)) {
		bytes16 some = bytes16_load(text + done);
		unsigned hidden = bytes16_mask((some < 0x20) | (some == 0x7f));

		if (hidden)
			return done + (unsigned)__builtin_ctz(hidden);
	}
	while (done < left && text[done] >= 0x20 && text[done] < 0x7f)
		done++;
	return done;
}

/* As \xNN. */
static void put_hidden(struct buffer *buffer, const char *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		const char text[] = { '\\', 'x', digits[byte >> 4], digits[byte & 15] };

		buffer_append(buffer, text, sizeof(text));
	}
}

void buffer_visible_bytes(struct buffer *buffer, const char *bytes, size_t length)
{
	while (length) {
		size_t step = seen_length(bytes, length);
		bool is_seen = step > 0;
		uint32_t point;

		if (!is_seen) {
			step = utf8_decode(bytes, length, &point);
			is_seen = step && utf8_is_visible(point);
			step = step ? step : 1;
		}
		if (is_seen)
			buffer_append(buffer, bytes, step);
		else
			put_hidden(buffer, bytes, step);
		bytes += step;
		length -= step;
	}
}

void buffer_visible(struct buffer *buffer, const char *text)
{
	buffer_visible_bytes(buffer, text, strlen(text));
}

void buffer_free(struct buffer *buffer)
{
	if (!buffer->arena)
		free(buffer->data);
	*buffer = (struct buffer){ 0 };
}
