#include "base/json.h"

#include "base/buffer.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

void json_begin(struct json *json, struct buffer *buffer)
{
	*json = (struct json){ .buffer = buffer };
}

static void unit(struct buffer *buffer, uint32_t value)
{
	buffer_format(buffer, "\\u%04" PRIx32, value);
}

/* A code point that is not written as it is; above 0xffff JSON wants a pair of surrogates. */
static void escape(struct buffer *buffer, uint32_t point)
{
	static const char letters[] = "\b\f\n\r\t\"\\";
	const char *letter = point && point < 0x80 ? strchr(letters, (int)point) : NULL;

	if (letter) {
		buffer_append(buffer, (char[]){ '\\', "bfnrt\"\\"[letter - letters] }, 2);
	} else if (point > 0xffff) {
		unit(buffer, 0xd800 + ((point - 0x10000) >> 10));
		unit(buffer, 0xdc00 + ((point - 0x10000) & 0x3ff));
	} else {
		unit(buffer, point);
	}
}

/* Most of all bytes: visible ASCII that stands for itself. */
static bool is_plain(char byte)
{
	return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
}

static void quote(struct buffer *buffer, const char *bytes, size_t length)
{
	const char *end = bytes + length, *plain = bytes;

	buffer_byte(buffer, '"');
	for (const char *at = bytes; at < end;) {
		uint32_t point;
		size_t step;

		while (at < end && is_plain(*at))
			at++;
		if (at == end)
			break;
		step = utf8_decode(at, (size_t)(end - at), &point);

		if (step && utf8_is_visible(point) && point != '"' && point != '\\') {
			at += step;
			continue;
		}
		buffer_append(buffer, plain, (size_t)(at - plain));
		escape(buffer, step ? point : 0xdc00u + (unsigned char)*at);
		at += step ? step : 1;
		plain = at;
	}
	buffer_append(buffer, plain, (size_t)(end - plain));
	buffer_byte(buffer, '"');
}

/* What stands before a value: the comma and the name. False when no value belongs here. */
static bool item(struct json *json, const char *name)
{
	struct buffer *buffer = json->buffer;

	if (json->named[json->depth] != (name != NULL) || (!json->depth && json->comma[0]))
		buffer->failed = true;
	if (buffer->failed)
		return false;
	if (json->comma[json->depth])
		buffer_byte(buffer, ',');
	json->comma[json->depth] = true;
	if (name) {
		quote(buffer, name, strlen(name));
		buffer_byte(buffer, ':');
	}
	return true;
}

static void open_level(struct json *json, const char *name, bool named)
{
	if (!item(json, name))
		return;
	if (json->depth == JSON_DEPTH) {
		json->buffer->failed = true;
		return;
	}
	json->depth++;
	json->comma[json->depth] = false;
	json->named[json->depth] = named;
	buffer_byte(json->buffer, named ? '{' : '[');
}

static void close_level(struct json *json, bool named)
{
	if (json->buffer->failed)
		return;
	if (!json->depth || json->named[json->depth] != named) {
		json->buffer->failed = true;
		return;
	}
	json->depth--;
	buffer_byte(json->buffer, named ? '}' : ']');
}

void json_object(struct json *json, const char *name)
{
	open_level(json, name, true);
}

void json_object_end(struct json *json)
{
	close_level(json, true);
}

void json_array(struct json *json, const char *name)
{
	open_level(json, name, false);
}

void json_array_end(struct json *json)
{
	close_level(json, false);
}

void json_bytes(struct json *json, const char *name, const char *bytes, size_t length)
{
	if (item(json, name))
		quote(json->buffer, bytes, length);
}

void json_string(struct json *json, const char *name, const char *text)
{
	if (text)
		json_bytes(json, name, text, strlen(text));
	else
		json_null(json, name);
}

void json_integer(struct json *json, const char *name, int64_t value)
{
	if (!item(json, name))
		return;
	if (value < 0)
		buffer_byte(json->buffer, '-');
	buffer_unsigned(json->buffer, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_unsigned(struct json *json, const char *name, uint64_t value)
{
	if (item(json, name))
		buffer_unsigned(json->buffer, value);
}

void json_bool(struct json *json, const char *name, bool value)
{
	if (item(json, name))
		buffer_text(json->buffer, value ? "true" : "false");
}

void json_null(struct json *json, const char *name)
{
	if (item(json, name))
		buffer_text(json->buffer, "null");
}

void json_raw(struct json *json, const char *name, const char *text, size_t length)
{
	if (item(json, name))
		buffer_append(json->buffer, text, length);
}
