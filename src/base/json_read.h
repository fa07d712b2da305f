/*
 * A JSON reader (RFC 8259), pure: it pulls one value after another out of a byte view, without
 * allocation and without recursion. For foreign bytes: strict where the standard is (UTF-8, control
 * characters, numbers, nothing behind the value), nested at most as deep as the caller allows.
 *
 * The first failure is latched with the offset of its byte; from then on every call does nothing,
 * gives false, 0 or an empty view, and no loop goes on. Its owner asks once, by json_read_end().
 *
 *	json_read_begin(&reader, bytes, length, JSON_READ_DEPTH);
 *	json_read_object(&reader);
 *	while (json_read_member(&reader, &name))
 *		if (json_view_is(name, "seq"))
 *			seq = json_read_unsigned(&reader);
 *		else
 *			json_read_skip(&reader);
 *	if (!json_read_end(&reader)) ... json_read_fault(&reader), reader.at
 *
 * Each member and each item must be read, or skipped, before the next is asked for.
 *
 * Views point into the bytes of the reader. One of a string is what stands between its quotes, with
 * the escapes; json_view_bytes() undoes them. A lone surrogate \udcNN (NN from 80 on) is the byte
 * NN that base/json.h wrote so; any other lone surrogate is a fault.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As deep as base/json.h writes, and as much again for what it writes into. */
#define JSON_READ_DEPTH 32
/* One bit per level is kept. */
#define JSON_READ_LIMIT_DEPTH 64

struct json_view {
	const char *bytes; /* NULL: nothing, or null */
	size_t length;
};

enum json_type {
	JSON_NOTHING, /* after a failure, and at the end of the text */
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_BOOL,
	JSON_NULL,
};

enum json_fault {
	JSON_FINE,
	JSON_SYNTAX,	/* not the grammar's */
	JSON_SHORT,	/* the text ends within the value */
	JSON_UTF8,	/* bytes that are not UTF-8 */
	JSON_CONTROL,	/* a control character inside of a string */
	JSON_SURROGATE, /* a lone surrogate that is no byte of ours */
	JSON_DEEP,	/* deeper than allowed */
	JSON_TYPE,	/* another type than the one that was asked for */
	JSON_RANGE,	/* a number that is no integer of the type asked for */
	JSON_TWICE,	/* a name twice in an object that is read by name */
	JSON_BEHIND,	/* something behind the value */
	JSON_FAULT_COUNT,
};

struct json_reader {
	const char *bytes; /* borrowed */
	size_t length;
	size_t at;     /* after a failure: the byte of the fault */
	uint64_t kind; /* a bit per open level: it is an object */
	unsigned depth, depth_limit;
	bool is_first;	 /* the innermost level has had no item yet */
	bool has_value;	 /* the outermost value has begun */
	bool has_escape; /* the string that was read last is not as its view */
	enum json_fault fault;
};

/* depth_limit: at most JSON_READ_LIMIT_DEPTH. */
void json_read_begin(struct json_reader *reader, const void *bytes, size_t length,
		     unsigned depth_limit);

/* The type of the value that comes; nothing is read. */
enum json_type json_read_type(struct json_reader *reader);

/* Enters an object. */
void json_read_object(struct json_reader *reader);
/* Goes to the next member, whose value is to be read then; false when the object is left. */
bool json_read_member(struct json_reader *reader, struct json_view *ret_name);

/* Enters an array; goes to its next item; false when it is left. */
void json_read_array(struct json_reader *reader);
bool json_read_item(struct json_reader *reader);

struct json_view json_read_string(struct json_reader *reader);
/* As above, and null gives a view of NULL. */
struct json_view json_read_optional_string(struct json_reader *reader);
/* Exactly, or JSON_RANGE: no fraction, no exponent, nothing beyond the type. */
uint64_t json_read_unsigned(struct json_reader *reader);
int64_t json_read_integer(struct json_reader *reader);
/* Any number, as its text. */
struct json_view json_read_number(struct json_reader *reader);
bool json_read_bool(struct json_reader *reader);
void json_read_null(struct json_reader *reader);

/*
 * Reads what comes: an object or array is entered. ret_view is the text of a string (as of
 * json_read_string()), number or bool, else empty. JSON_NOTHING after a failure.
 */
enum json_type json_read_any(struct json_reader *reader, struct json_view *ret_view);

/* Reads any value, checks all of it, and gives its text. */
struct json_view json_read_skip(struct json_reader *reader);

/*
 * Reads an object by name: values[i] is the text of the member names[i], or NULL where there is
 * none. A name that is asked for and stands there twice is JSON_TWICE; members that are not asked
 * for are checked and passed over. At most 64 names. Returns how many other members there were.
 */
size_t json_read_members(struct json_reader *reader, const char *const *names, size_t count,
			 struct json_view *values);

/* Latches a failure at the byte where the reader stands; the first one stays. */
void json_read_fail(struct json_reader *reader, enum json_fault fault);

/* True when one whole value was read, with nothing but white space behind it and all is well. */
bool json_read_end(struct json_reader *reader);

/* What a fault is, in words: "a control character in a string". */
const char *json_fault_text(enum json_fault fault);

/* True where the string that a view holds is exactly this text. */
bool json_view_is(struct json_view view, const char *text);

/*
 * Undoes the escapes of a string that was read. The result may hold NULs; one more is behind it.
 * Returns 0, or -ENOBUFS where `size` bytes are not enough (view.length + 1 always are).
 */
int json_view_bytes(struct json_view view, char *bytes, size_t size, size_t *ret_length)
	__attribute__((warn_unused_result));

/* The text of a number that was read, as an integer: false where it is none of the type. */
bool json_view_unsigned(struct json_view view, uint64_t *ret_value);
bool json_view_integer(struct json_view view, int64_t *ret_value);
