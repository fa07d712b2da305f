/*
 * A JSON writer (RFC 8259), pure. Produces one compact value into a buffer; commas are its own
 * business. Strings (names too) are bytes: visible UTF-8 goes out as it is; what utf8_is_visible()
 * hides is written as \uNNNN, so that the output is safe to show; an invalid byte 0xNN is written
 * as the lone surrogate \udcNN (as Python's "surrogateescape" reads it back). So the bytes can be
 * restored exactly.
 *
 * Failure is latched in the buffer. Faults of the caller latch it too: nesting deeper than
 * JSON_DEPTH, an end without its begin, a name where none belongs or none where one does, a
 * second outermost value (json_begin() starts the next one).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;

#define JSON_DEPTH 16

struct json {
	struct buffer *buffer; /* borrowed */
	unsigned depth;
	bool comma[JSON_DEPTH + 1]; /* an item has been written at this depth */
	bool named[JSON_DEPTH + 1]; /* the items of this depth have names: it is an object */
};

void json_begin(struct json *json, struct buffer *buffer);

/* name is NULL inside of arrays and for the outermost value. */
void json_object(struct json *json, const char *name);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *name);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *name, const char *text); /* NULL text = null */
void json_bytes(struct json *json, const char *name, const char *bytes, size_t length);
void json_integer(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);
/* Text that is one JSON value already, checked by the caller (base/json_read.h). */
void json_raw(struct json *json, const char *name, const char *text, size_t length);
