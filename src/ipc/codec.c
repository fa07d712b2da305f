#include "ipc/codec.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <errno.h>
#include <string.h>

void codec_put_u32(struct buffer *buffer, uint32_t value)
{
	buffer_append(buffer, &value, sizeof(value));
}

void codec_put_u64(struct buffer *buffer, uint64_t value)
{
	buffer_append(buffer, &value, sizeof(value));
}

void codec_put_prefix(struct buffer *buffer, const char *text, size_t limit_bytes)
{
	size_t length = text ? strnlen(text, limit_bytes) : 0;

	codec_put_u32(buffer, (uint32_t)length);
	buffer_append(buffer, text ? text : "", length);
	buffer_append(buffer, "", 1);
}

void codec_put_string(struct buffer *buffer, const char *text)
{
	codec_put_prefix(buffer, text, UINT32_MAX - 1);
}

void codec_begin(struct codec_cursor *cursor, const void *bytes, size_t length, struct arena *arena)
{
	*cursor = (struct codec_cursor){ .at = bytes,
					 .end = (const unsigned char *)bytes + length,
					 .arena = arena };
}

void codec_fail(struct codec_cursor *cursor, int code)
{
	if (!cursor->failure)
		cursor->failure = code;
}

static size_t left(const struct codec_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* The one door to the bytes: `length` of them, or NULL. */
static const unsigned char *take(struct codec_cursor *cursor, size_t length)
{
	const unsigned char *taken = cursor->at;

	if (cursor->failure)
		return NULL;
	if (left(cursor) < length) {
		codec_fail(cursor, -EBADMSG);
		return NULL;
	}
	cursor->at += length;
	return taken;
}

uint32_t codec_u32(struct codec_cursor *cursor)
{
	const unsigned char *bytes = take(cursor, sizeof(uint32_t));
	uint32_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

uint64_t codec_u64(struct codec_cursor *cursor)
{
	const unsigned char *bytes = take(cursor, sizeof(uint64_t));
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

const char *codec_string(struct codec_cursor *cursor, size_t limit_bytes)
{
	size_t length = codec_u32(cursor);
	const unsigned char *bytes;
	const char *copy;

	if (!cursor->failure && length >= limit_bytes)
		codec_fail(cursor, -E2BIG);
	bytes = take(cursor, length + 1);
	if (!bytes)
		return "";
	if (memchr(bytes, '\0', length + 1) != bytes + length) {
		codec_fail(cursor, -EBADMSG);
		return "";
	}
	copy = arena_copy_bytes(cursor->arena, bytes, length);
	if (!copy)
		codec_fail(cursor, -ENOMEM);
	return copy ? copy : "";
}

size_t codec_count(struct codec_cursor *cursor, size_t limit, size_t item_bytes)
{
	size_t count = codec_u32(cursor);

	if (count > limit)
		codec_fail(cursor, -E2BIG);
	/* before memory is taken for what cannot be there */
	else if (count > left(cursor) / item_bytes)
		codec_fail(cursor, -EBADMSG);
	return cursor->failure ? 0 : count;
}

void *codec_array(struct codec_cursor *cursor, size_t count, size_t item_bytes)
{
	void *array = cursor->failure ? NULL : arena_array(cursor->arena, count + 1, item_bytes);

	if (!array)
		codec_fail(cursor, -ENOMEM);
	return array;
}

const char *const *codec_strings(struct codec_cursor *cursor, size_t count, size_t limit_bytes)
{
	const char **strings = codec_array(cursor, count, sizeof(*strings));

	for (size_t i = 0; strings && i < count; i++)
		strings[i] = codec_string(cursor, limit_bytes);
	return cursor->failure ? NULL : strings;
}

uint32_t codec_enum(struct codec_cursor *cursor, uint32_t count)
{
	uint32_t value = codec_u32(cursor);

	if (value < count)
		return value;
	codec_fail(cursor, -EBADMSG);
	return 0;
}

int codec_end(struct codec_cursor *cursor)
{
	if (left(cursor))
		codec_fail(cursor, -EBADMSG);
	return cursor->failure;
}
