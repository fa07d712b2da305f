/*
 * Masking: whatever the bytes, a record stays JSON of the same shape, a stream does not depend on
 * how it is cut, masking twice is masking once, and no known value is left. The first byte is how
 * many of what follows are a known value.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "trace/mask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static int gather(void *context, const void *bytes, size_t length)
{
	buffer_append(context, bytes, length);
	return 0;
}

static uint64_t stream(const struct mask *mask, const char *bytes, size_t length, size_t chunk,
		       struct buffer *out)
{
	struct mask_stream CLEANUP_MASK_STREAM stream;

	out->length = 0;
	require(mask_stream_begin(&stream, mask, gather, out) == 0);
	while (length) {
		size_t part = chunk < length ? chunk : length;

		require(mask_stream_feed(&stream, bytes, part) == 0);
		bytes += part;
		length -= part;
	}
	require(mask_stream_finish(&stream) == 0);
	return stream.count;
}

/* Quotes that are no content: what makes the shape of a text. Strings end where they should. */
static size_t shape(const struct buffer *buffer)
{
	bool is_inside = false;
	size_t quotes = 0;

	for (size_t i = 0; i < buffer->length; i++) {
		require(!is_inside || (unsigned char)buffer->data[i] >= 0x20);
		if (is_inside && buffer->data[i] == '\\') {
			require(i + 1 < buffer->length);
			require(buffer->data[i + 1] && strchr("bfnrtu\"\\", buffer->data[i + 1]));
			if (buffer->data[i + 1] == 'u')
				require(i + 5 < buffer->length &&
					strspn(buffer->data + i + 2, "0123456789abcdef") >= 4);
			i++;
		} else if (buffer->data[i] == '"') {
			is_inside = !is_inside;
			quotes++;
		}
	}
	require(!is_inside);
	return quotes;
}

static void write_record(const char *bytes, size_t length, struct buffer *buffer)
{
	struct json json;

	buffer->length = 0;
	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_array(&json, "argv");
	/* in three arguments */
	json_bytes(&json, NULL, bytes, length / 3);
	json_bytes(&json, NULL, bytes + length / 3, length / 3);
	json_bytes(&json, NULL, bytes + 2 * (length / 3), length - 2 * (length / 3));
	json_array_end(&json);
	json_unsigned(&json, "number", 1234567890123456789u);
	json_object_end(&json);
	require(!buffer->failed);
}

static void check_record(const struct mask *mask, const char *bytes, size_t length)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	size_t quotes;

	write_record(bytes, length, &text);
	quotes = shape(&text);
	(void)mask_buffer(mask, &text, 0);
	require(!text.failed);
	require(shape(&text) == quotes);
	require(strncmp(text.data, "{\"argv\":[\"", 10) == 0);
	require(strstr(text.data, "],\"number\":1234567890123456789}") != NULL);
}

/* Nowhere between the marks, which name kinds and digests. */
static void check_gone(const struct buffer *text, const char *value, size_t length)
{
	const char *at = text->data ? text->data : "", *end = at + text->length;

	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "[masked:", 8);
		const char *stop = mark ? mark : end;

		require(!memmem(at, (size_t)(stop - at), value, length));
		at = mark ? memchr(mark, ']', (size_t)(end - mark)) : NULL;
		at = at ? at + 1 : end;
	}
}

static void check_stream(const struct mask *mask, const char *bytes, size_t length)
{
	struct buffer CLEANUP_BUFFER whole = { 0 }, CLEANUP_BUFFER parts = { 0 };
	uint64_t count = stream(mask, bytes, length, length + 1, &whole);

	require(stream(mask, bytes, length, 1 + (length ? (unsigned char)bytes[0] : 0), &parts) ==
		count);
	require(whole.length == parts.length);
	require(!whole.length || memcmp(whole.data, parts.data, whole.length) == 0);
	if (!count)
		require(whole.length == length &&
			(!length || memcmp(whole.data, bytes, length) == 0));
	for (size_t i = 0; i < mask->value_count; i++)
		check_gone(&whole, mask->values[i].bytes, mask->values[i].length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char key[MASK_KEY_BYTES] = "fuzz";
	struct mask CLEANUP_MASK mask = MASK_NONE;
	char *bytes = malloc(size + 1);
	size_t known = size ? data[0] : 0;
	char value[256];

	require(bytes);
	if (size)
		memcpy(bytes, data + 1, size - 1);
	size -= size > 0;
	bytes[size] = '\0';
	mask_begin(&mask, key);
	known = known < size ? known : size;
	memcpy(value, bytes, known);
	value[known] = '\0';
	/* a value that marks are made of would be found in them */
	if (strlen(value) >= MASK_SHORTEST_BYTES &&
	    !strstr("[masked:env.V:0123456789abcdef]", value))
		(void)!mask_add(&mask, "V", value);
	check_record(&mask, bytes, size);
	check_stream(&mask, bytes, size);
	free(bytes);
	return 0;
}
