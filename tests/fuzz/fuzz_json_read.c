/*
 * The JSON reader: whatever the bytes are, it ends, within them, and every way of reading agrees
 * about them. What it accepts, base/json.h can write again, and that reads the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void require_inside(const struct json_reader *reader, struct json_view view)
{
	require(!view.bytes || (view.bytes >= reader->bytes &&
				view.bytes + view.length <= reader->bytes + reader->at));
}

/* The bytes that a string stands for, in memory of their own. */
static char *bytes_of(struct json_view view, size_t *ret_length)
{
	char *bytes = malloc(view.length + 1);

	require(bytes && json_view_bytes(view, bytes, view.length + 1, ret_length) == 0);
	require(*ret_length <= view.length && bytes[*ret_length] == '\0');
	require(!view.bytes || strlen(bytes) < *ret_length || json_view_is(view, bytes));
	return bytes;
}

/* Pulls one value and writes it again. */
static void copy_scalar(struct json_reader *reader, struct json *json, const char *name)
{
	struct json_view view;
	int64_t integer;
	uint64_t number;
	size_t length;
	char *bytes;

	switch (json_read_type(reader)) {
	case JSON_STRING:
		view = json_read_string(reader);
		require_inside(reader, view);
		bytes = bytes_of(view, &length);
		json_bytes(json, name, bytes, length);
		free(bytes);
		break;
	case JSON_NUMBER:
		view = json_read_number(reader);
		if (json_view_unsigned(view, &number))
			json_unsigned(json, name, number);
		else if (json_view_integer(view, &integer))
			json_integer(json, name, integer);
		else
			json_bytes(json, name, view.bytes ? view.bytes : "", view.length);
		break;
	case JSON_BOOL:
		json_bool(json, name, json_read_bool(reader));
		break;
	default:
		json_read_null(reader);
		json_null(json, name);
	}
}

static void copy_value(struct json_reader *reader, struct json *json, const char *name)
{
	enum json_type type = json_read_type(reader);

	if (type == JSON_OBJECT) {
		json_read_object(reader);
		json_object(json, name);
	} else if (type == JSON_ARRAY) {
		json_read_array(reader);
		json_array(json, name);
	} else {
		copy_scalar(reader, json, name);
	}
}

/* A name with a NUL cannot be written; such a text is read only. */
static bool copy(struct json_reader *reader, struct json *json)
{
	bool is_whole = true;

	copy_value(reader, json, NULL);
	while (reader->depth && !reader->fault) {
		struct json_view name;
		size_t length;
		char *bytes;

		if (!(reader->kind >> (reader->depth - 1) & 1)) {
			if (json_read_item(reader))
				copy_value(reader, json, NULL);
			else
				json_array_end(json);
			continue;
		}
		if (!json_read_member(reader, &name)) {
			json_object_end(json);
			continue;
		}
		bytes = bytes_of(name, &length);
		is_whole &= strlen(bytes) == length;
		copy_value(reader, json, bytes);
		free(bytes);
	}
	return is_whole;
}

static void check_members(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "a", "seq", "" };
	struct json_view values[3];
	struct json_reader reader;

	json_read_begin(&reader, data, size, JSON_DEPTH);
	(void)json_read_members(&reader, names, 3, values);
	for (size_t i = 0; i < 3; i++)
		require_inside(&reader, values[i]);
	(void)json_read_end(&reader);
	require(reader.at <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json_reader reader, other;
	struct json json;
	struct json_view whole;
	bool is_whole;

	json_read_begin(&reader, data, size, JSON_DEPTH);
	whole = json_read_skip(&reader);
	require_inside(&reader, whole);
	(void)json_read_end(&reader);
	require(reader.at <= size);
	check_members(data, size);

	json_read_begin(&other, data, size, JSON_DEPTH);
	json_begin(&json, &buffer);
	is_whole = copy(&other, &json);
	(void)json_read_end(&other);
	require(other.fault == reader.fault && other.at == reader.at);
	if (other.fault || !is_whole)
		return 0;
	require(!buffer.failed);
	json_read_begin(&reader, buffer.data, buffer.length, JSON_DEPTH);
	(void)json_read_skip(&reader);
	require(json_read_end(&reader));
	return 0;
}
