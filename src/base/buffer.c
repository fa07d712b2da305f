#include "base/buffer.h"

#include "base/arena.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What most texts fit in: growing costs more than what is not used. */
#define FIRST_BYTES 2048

static bool reserve(struct buffer *buffer, size_t more)
{
	size_t needed, capacity = buffer->capacity ? buffer->capacity : FIRST_BYTES;
	char *grown;

	if (buffer->failed || __builtin_add_overflow(buffer->length, more, &needed) ||
	    needed >= BUFFER_LIMIT_BYTES) {
		buffer->failed = true;
		return false;
	}
	if (needed < buffer->capacity)
		return true;
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

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
	if (!reserve(buffer, length))
		return;
	if (length)
		memcpy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
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
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0 || !reserve(buffer, (size_t)length)) {
		buffer->failed = true;
		return;
	}
	va_start(arguments, format);
	(void)vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	buffer->length += (size_t)length;
}

void buffer_visible(struct buffer *buffer, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		uint32_t point;
		size_t length = utf8_decode(text, left, &point);

		if (length && utf8_is_visible(point)) {
			buffer_append(buffer, text, length);
		} else {
			length = length ? length : 1;
			for (size_t i = 0; i < length; i++)
				buffer_format(buffer, "\\x%02x", (unsigned char)text[i]);
		}
		text += length;
		left -= length;
	}
}

void buffer_free(struct buffer *buffer)
{
	if (!buffer->arena)
		free(buffer->data);
	*buffer = (struct buffer){ 0 };
}
