/*
 * The JSON writer, driven by a program of one-byte steps: what it calls finished is JSON to a
 * strict reader, free of control bytes. And a string of any bytes can be read back exactly.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static unsigned hex4(const char *at)
{
	unsigned value = 0;

	for (unsigned i = 0; i < 4; i++) {
		const char *digit = strchr("0123456789abcdef", at[i]);

		require(digit && at[i]);
		value = value << 4 | (unsigned)(digit - "0123456789abcdef");
	}
	return value;
}

static void put_point(struct buffer *out, uint32_t point)
{
	char bytes[4];
	size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (size_t i = length; i-- > 1; point >>= 6)
		bytes[i] = (char)(0x80 | (point & 0x3f));
	bytes[0] = (char)(length == 1 ? point : (0xf00u >> length | point));
	buffer_append(out, bytes, length);
}

/* Reads one \ escape; appends what it stands for. */
static const char *read_escape(const char *at, struct buffer *out)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	unsigned unit, low;

	if (at[1] != 'u') {
		const char *letter = strchr(letters, at[1]);

		require(letter && at[1]);
		buffer_append(out, meanings + (letter - letters), 1);
		return at + 2;
	}
	unit = hex4(at + 2);
	at += 6;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		require(at[0] == '\\' && at[1] == 'u');
		low = hex4(at + 2);
		require(low >= 0xdc00 && low <= 0xdfff);
		put_point(out, 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00)));
		return at + 6;
	}
	if (unit >= 0xdc00 && unit <= 0xdfff) {
		require(unit >= 0xdc80 && unit <= 0xdcff);
		buffer_append(out, (char[]){ (char)(unit - 0xdc00) }, 1);
	} else {
		put_point(out, unit);
	}
	return at;
}

static const char *read_string(const char *at, const char *end, struct buffer *out)
{
	require(at < end && *at == '"');
	for (at++; *at != '"';) {
		uint32_t point;
		size_t step;

		require(at < end);
		if (*at == '\\') {
			at = read_escape(at, out);
			continue;
		}
		step = utf8_decode(at, (size_t)(end - at), &point);
		require(step && utf8_is_visible(point));
		buffer_append(out, at, step);
		at += step;
	}
	return at + 1;
}

static const char *read_scalar(const char *at, const char *end)
{
	static const char *const words[] = { "true", "false", "null" };
	CLEANUP_BUFFER struct buffer ignored = { 0 };
	size_t digits;

	if (*at == '"')
		return read_string(at, end, &ignored);
	for (size_t i = 0; i < 3; i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return at + strlen(words[i]);
	at += *at == '-';
	digits = strspn(at, "0123456789");
	require(digits && (digits == 1 || *at != '0'));
	return at + digits;
}

/* A strict reader without recursion: one value and nothing behind it. */
static void check_value(const char *at, const char *end)
{
	char closers[JSON_DEPTH];
	size_t depth = 0;

	for (;;) {
		bool opened = false;

		if (depth && closers[depth - 1] == '}' && *at != '}') {
			CLEANUP_BUFFER struct buffer name = { 0 };

			at = read_string(at, end, &name);
			require(*at++ == ':');
		}
		if (*at == '{' || *at == '[') {
			require(depth < JSON_DEPTH);
			closers[depth++] = *at++ == '{' ? '}' : ']';
			opened = true;
		} else {
			at = read_scalar(at, end);
		}
		while (depth && *at == closers[depth - 1]) {
			at++;
			depth--;
			opened = false;
		}
		if (!depth)
			break;
		if (!opened)
			require(*at++ == ',' && *at != closers[depth - 1]);
	}
	require(at == end);
}

static void check_round_trip(const char *bytes, size_t size)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 }, back = { 0 };
	struct json json;
	const char *end;

	json_begin(&json, &buffer);
	json_bytes(&json, NULL, bytes, size);
	require(!buffer.failed);
	end = buffer.data + buffer.length;
	require(read_string(buffer.data, end, &back) == end);
	require(back.length == size && (size == 0 || memcmp(back.data, bytes, size) == 0));
}

static void step(struct json *json, const char *name, uint8_t code, const char *rest, size_t left)
{
	size_t length = left < (code >> 4) ? left : (size_t)(code >> 4);

	switch (code & 7) {
	case 0:
		json_object(json, name);
		break;
	case 1:
		json_array(json, name);
		break;
	case 2:
		json_object_end(json);
		break;
	case 3:
		json_array_end(json);
		break;
	case 4:
		json_bytes(json, name, rest, length);
		break;
	case 5:
		json_integer(json, name, (int64_t)(UINT64_C(0x8000000000000000) >> (code >> 4)));
		break;
	case 6:
		json_unsigned(json, name, UINT64_MAX >> (code >> 4) * 4);
		break;
	default:
		json_bool(json, name, code >> 4 & 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	check_round_trip((const char *)data, size);
	json_begin(&json, &buffer);
	for (size_t i = 0; i < size; i++) {
		char name[] = { (char)data[size - 1 - i], 'n', '\0' };

		step(&json, data[i] & 8 ? name : NULL, data[i], (const char *)data + i, size - i);
		if (!buffer.failed && json.depth == 0)
			check_value(buffer.data, buffer.data + buffer.length);
	}
	return 0;
}
