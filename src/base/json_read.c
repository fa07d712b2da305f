/*
 * Theory of operation: the levels that are open are a stack of bits (object or array), so that
 * passing over a value needs no recursion. `is_first` belongs to the innermost level: what encloses
 * it has had an item, this one.
 */
#include "base/json_read.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

void json_read_begin(struct json_reader *reader, const void *bytes, size_t length,
		     unsigned depth_limit)
{
	*reader = (struct json_reader){
		.bytes = bytes,
		.length = length,
		.depth_limit = depth_limit < JSON_READ_LIMIT_DEPTH ? depth_limit :
								     JSON_READ_LIMIT_DEPTH,
	};
}

void json_read_fail(struct json_reader *reader, enum json_fault fault)
{
	if (!reader->fault)
		reader->fault = fault;
}

static void fail_at(struct json_reader *reader, size_t at, enum json_fault fault)
{
	if (!reader->fault)
		reader->at = at;
	json_read_fail(reader, fault);
}

static inline int peek(const struct json_reader *reader)
{
	return reader->at < reader->length ? (unsigned char)reader->bytes[reader->at] : -1;
}

static inline void skip_white(struct json_reader *reader)
{
	while (reader->at < reader->length) {
		char byte = reader->bytes[reader->at];

		/* what we wrote has none */
		if (byte > ' ')
			return;
		if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')
			return;
		reader->at++;
	}
}

/* Of a byte that does not belong here; or none. */
static void fail_here(struct json_reader *reader)
{
	json_read_fail(reader, reader->at < reader->length ? JSON_SYNTAX : JSON_SHORT);
}

static inline bool take(struct json_reader *reader, char byte)
{
	if (reader->fault)
		return false;
	if (peek(reader) != (unsigned char)byte) {
		fail_here(reader);
		return false;
	}
	reader->at++;
	return true;
}

enum json_type json_read_type(struct json_reader *reader)
{
	if (reader->fault)
		return JSON_NOTHING;
	skip_white(reader);
	switch (peek(reader)) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		return JSON_NUMBER;
	case -1:
		return JSON_NOTHING;
	default:
		fail_here(reader);
		return JSON_NOTHING;
	}
}

/* A value comes: the outermost is one alone. */
static inline bool begin_value(struct json_reader *reader)
{
	if (reader->fault)
		return false;
	if (!reader->depth && reader->has_value)
		json_read_fail(reader, JSON_BEHIND);
	reader->has_value = true;
	return !reader->fault;
}

/* Goes to a value of this type. */
static inline bool expect(struct json_reader *reader, enum json_type type)
{
	enum json_type found = json_read_type(reader);

	if (begin_value(reader) && found != type)
		json_read_fail(reader, found == JSON_NOTHING ? JSON_SHORT : JSON_TYPE);
	return !reader->fault;
}

/* Levels */

static inline bool is_object(const struct json_reader *reader)
{
	return reader->kind >> (reader->depth - 1) & 1;
}

static void enter(struct json_reader *reader, enum json_type type)
{
	if (reader->depth == reader->depth_limit) {
		json_read_fail(reader, JSON_DEEP);
		return;
	}
	reader->kind &= ~(UINT64_C(1) << reader->depth);
	reader->kind |= (uint64_t)(type == JSON_OBJECT) << reader->depth;
	reader->depth++;
	reader->at++;
	reader->is_first = true;
}

/* Goes to the next item of the innermost level; false when it is left. */
static inline bool next(struct json_reader *reader, bool object)
{
	if (!reader->fault && (!reader->depth || is_object(reader) != object))
		json_read_fail(reader, JSON_TYPE);
	if (reader->fault)
		return false;
	skip_white(reader);
	if (peek(reader) == (object ? '}' : ']')) {
		reader->at++;
		reader->depth--;
		reader->is_first = false;
		return false;
	}
	if (!reader->is_first && !take(reader, ','))
		return false;
	reader->is_first = false;
	return true;
}

void json_read_object(struct json_reader *reader)
{
	if (expect(reader, JSON_OBJECT))
		enter(reader, JSON_OBJECT);
}

void json_read_array(struct json_reader *reader)
{
	if (expect(reader, JSON_ARRAY))
		enter(reader, JSON_ARRAY);
}

bool json_read_item(struct json_reader *reader)
{
	return next(reader, false);
}

/* Strings */

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if ((digit >= 'a' && digit <= 'f') || (digit >= 'A' && digit <= 'F'))
		return (digit | 0x20) - 'a' + 10;
	return -1;
}

/* The unit of a \uNNNN of which `left` bytes are there, or -1. */
static int unit_of(const char *at, size_t left)
{
	int value = 0;

	if (left < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (unsigned i = 2; i < 6; i++) {
		int digit = hex_value(at[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/*
 * One escape: how long it is, what it stands for: a code point, or a byte that is none
 * (0x110000 + NN, for \udcNN). 0: it is no escape, or (ret_point 0) a surrogate that stands alone.
 */
#define BYTE_POINT 0x110000u

static size_t decode_escape(const char *at, size_t left, uint32_t *ret_point)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter = left > 1 && at[1] ? strchr(letters, at[1]) : NULL;
	int unit, low;

	if (letter) {
		*ret_point = (unsigned char)meanings[letter - letters];
		return 2;
	}
	*ret_point = 1;
	unit = unit_of(at, left);
	if (unit < 0)
		return 0;
	*ret_point = (uint32_t)unit;
	if (unit < 0xd800 || unit > 0xdfff)
		return 6;
	low = unit <= 0xdbff ? unit_of(at + 6, left - 6) : -1;
	if (low >= 0xdc00 && low <= 0xdfff) {
		*ret_point = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
		return 12;
	}
	*ret_point = unit >= 0xdc80 && unit <= 0xdcff ? BYTE_POINT + (uint32_t)unit - 0xdc00 : 0;
	return *ret_point ? 6 : 0;
}

/* How many bytes from `at` on are ASCII that stands for itself. */
static inline size_t plain_length(const char *at, size_t left)
{
	size_t done = 0;

	for (; left - done >= sizeof(bytes16); done += sizeof(bytes16)) {
		bytes16 some = bytes16_load(at + done);
		unsigned found = bytes16_mask((some < 0x20) | (some == '"') | (some == '\\'));

		if (found)
			return done + (unsigned)__builtin_ctz(found);
	}
	for (; done < left; done++) {
		unsigned char byte = (unsigned char)at[done];

		if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\')
			break;
	}
	return done;
}

/* What is no plain ASCII: an escape or a longer code point. Its length, or 0 and a fault. */
static size_t special_length(const char *at, size_t left, enum json_fault *ret_fault)
{
	uint32_t point;
	size_t step;

	if (*at == '\\') {
		step = decode_escape(at, left, &point);
		*ret_fault = point ? JSON_SYNTAX : JSON_SURROGATE;
		/* an escape that the end of the text cuts is no wrong one */
		if (!step && point && left < 6 && (left < 2 || at[1] == 'u'))
			*ret_fault = JSON_SHORT;
		return step;
	}
	if ((unsigned char)*at < 0x20) {
		*ret_fault = JSON_CONTROL;
		return 0;
	}
	*ret_fault = JSON_UTF8;
	return utf8_decode(at, left, &point);
}

/* The string whose quote is next. */
static struct json_view scan_string(struct json_reader *reader)
{
	size_t start = reader->at + 1, at = start;

	reader->has_escape = false;
	while (at < reader->length) {
		enum json_fault fault = JSON_FINE;
		size_t step;

		at += plain_length(reader->bytes + at, reader->length - at);
		if (at == reader->length)
			break;
		if (reader->bytes[at] == '"') {
			reader->at = at + 1;
			return (struct json_view){ reader->bytes + start, at - start };
		}
		step = special_length(reader->bytes + at, reader->length - at, &fault);
		if (!step) {
			fail_at(reader, at, fault);
			return (struct json_view){ 0 };
		}
		reader->has_escape |= reader->bytes[at] == '\\';
		at += step;
	}
	fail_at(reader, reader->length, JSON_SHORT);
	return (struct json_view){ 0 };
}

struct json_view json_read_string(struct json_reader *reader)
{
	return expect(reader, JSON_STRING) ? scan_string(reader) : (struct json_view){ 0 };
}

struct json_view json_read_optional_string(struct json_reader *reader)
{
	if (json_read_type(reader) != JSON_NULL)
		return json_read_string(reader);
	json_read_null(reader);
	return (struct json_view){ 0 };
}

bool json_read_member(struct json_reader *reader, struct json_view *ret_name)
{
	if (!next(reader, true))
		return false;
	skip_white(reader);
	if (peek(reader) != '"') {
		fail_here(reader);
		return false;
	}
	*ret_name = scan_string(reader);
	if (reader->fault)
		return false;
	skip_white(reader);
	return take(reader, ':');
}

/* Numbers and words */

static bool digits(struct json_reader *reader)
{
	size_t start = reader->at;

	while (peek(reader) >= '0' && peek(reader) <= '9')
		reader->at++;
	if (reader->at == start)
		fail_here(reader);
	return !reader->fault;
}

static struct json_view scan_number(struct json_reader *reader)
{
	size_t start = reader->at;

	reader->at += peek(reader) == '-';
	if (peek(reader) == '0')
		reader->at++;
	else if (!digits(reader))
		return (struct json_view){ 0 };
	if (peek(reader) == '.') {
		reader->at++;
		if (!digits(reader))
			return (struct json_view){ 0 };
	}
	if (peek(reader) == 'e' || peek(reader) == 'E') {
		reader->at++;
		reader->at += peek(reader) == '+' || peek(reader) == '-';
		if (!digits(reader))
			return (struct json_view){ 0 };
	}
	return (struct json_view){ reader->bytes + start, reader->at - start };
}

struct json_view json_read_number(struct json_reader *reader)
{
	return expect(reader, JSON_NUMBER) ? scan_number(reader) : (struct json_view){ 0 };
}

bool json_view_unsigned(struct json_view view, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!view.length)
		return false;
	for (size_t i = 0; i < view.length; i++)
		if (view.bytes[i] < '0' || view.bytes[i] > '9' ||
		    __builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(view.bytes[i] - '0'), &value))
			return false;
	*ret_value = value;
	return true;
}

bool json_view_integer(struct json_view view, int64_t *ret_value)
{
	bool negative = view.length && view.bytes[0] == '-';
	uint64_t value;

	if (negative)
		view = (struct json_view){ view.bytes + 1, view.length - 1 };
	if (!json_view_unsigned(view, &value) || value > (uint64_t)INT64_MAX + negative)
		return false;
	*ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

uint64_t json_read_unsigned(struct json_reader *reader)
{
	struct json_view view = json_read_number(reader);
	uint64_t value = 0;

	if (!reader->fault && !json_view_unsigned(view, &value))
		fail_at(reader, reader->at - view.length, JSON_RANGE);
	return value;
}

int64_t json_read_integer(struct json_reader *reader)
{
	struct json_view view = json_read_number(reader);
	int64_t value = 0;

	if (!reader->fault && !json_view_integer(view, &value))
		fail_at(reader, reader->at - view.length, JSON_RANGE);
	return value;
}

static bool word(struct json_reader *reader, const char *text)
{
	for (; *text; text++)
		if (!take(reader, *text))
			return false;
	return true;
}

static bool scan_bool(struct json_reader *reader)
{
	return peek(reader) == 't' ? word(reader, "true") : word(reader, "false") && false;
}

bool json_read_bool(struct json_reader *reader)
{
	return expect(reader, JSON_BOOL) && scan_bool(reader);
}

void json_read_null(struct json_reader *reader)
{
	if (expect(reader, JSON_NULL))
		(void)word(reader, "null");
}

/* Whole values */

enum json_type json_read_any(struct json_reader *reader, struct json_view *ret_view)
{
	enum json_type type = json_read_type(reader);
	size_t start = reader->at;

	*ret_view = (struct json_view){ 0 };
	if (!begin_value(reader))
		return JSON_NOTHING;
	switch (type) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		enter(reader, type);
		break;
	case JSON_STRING:
		*ret_view = scan_string(reader);
		break;
	case JSON_NUMBER:
		*ret_view = scan_number(reader);
		break;
	case JSON_BOOL:
		(void)scan_bool(reader);
		*ret_view = (struct json_view){ reader->bytes + start, reader->at - start };
		break;
	case JSON_NULL:
		(void)word(reader, "null");
		break;
	default:
		json_read_fail(reader, JSON_SHORT);
	}
	return reader->fault ? JSON_NOTHING : type;
}

struct json_view json_read_skip(struct json_reader *reader)
{
	unsigned outside = reader->depth;
	struct json_view name;
	size_t start;

	if (json_read_type(reader) == JSON_NOTHING)
		json_read_fail(reader, JSON_SHORT);
	start = reader->at;
	(void)json_read_any(reader, &name);
	while (reader->depth > outside && !reader->fault)
		if (is_object(reader) ? json_read_member(reader, &name) : json_read_item(reader))
			(void)json_read_any(reader, &name);
	if (reader->fault)
		return (struct json_view){ 0 };
	return (struct json_view){ reader->bytes + start, reader->at - start };
}

size_t json_read_members(struct json_reader *reader, const char *const *names, size_t count,
			 struct json_view *values)
{
	struct json_view name;
	size_t others = 0;

	for (size_t i = 0; i < count; i++)
		values[i] = (struct json_view){ 0 };
	json_read_object(reader);
	while (json_read_member(reader, &name)) {
		size_t at = (size_t)(name.bytes - reader->bytes), i = 0;

		while (i < count && !json_view_is(name, names[i]))
			i++;
		if (i < count && values[i].bytes)
			fail_at(reader, at, JSON_TWICE);
		if (i < count)
			values[i] = json_read_skip(reader);
		else
			(void)json_read_skip(reader);
		others += i == count;
	}
	return others;
}

bool json_read_end(struct json_reader *reader)
{
	if (reader->fault)
		return false;
	skip_white(reader);
	if (reader->depth || !reader->has_value)
		json_read_fail(reader, JSON_SHORT);
	else if (reader->at < reader->length)
		json_read_fail(reader, JSON_BEHIND);
	return !reader->fault;
}

const char *json_fault_text(enum json_fault fault)
{
	static const char *const texts[JSON_FAULT_COUNT] = {
		[JSON_FINE] = "no fault",
		[JSON_SYNTAX] = "not JSON",
		[JSON_SHORT] = "it ends too early",
		[JSON_UTF8] = "not UTF-8",
		[JSON_CONTROL] = "a control character in a string",
		[JSON_SURROGATE] = "half of a surrogate pair",
		[JSON_DEEP] = "nested too deep",
		[JSON_TYPE] = "a value of another type",
		[JSON_RANGE] = "a number that is no integer in range",
		[JSON_TWICE] = "a name twice in an object",
		[JSON_BEHIND] = "something behind the value",
	};

	return fault < JSON_FAULT_COUNT ? texts[fault] : "an unknown fault";
}

/* Views */

/* The bytes of a code point; those that stand for no code point have one of their own. */
static size_t put_point(uint32_t point, char bytes[static 4])
{
	size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	if (point >= BYTE_POINT) {
		bytes[0] = (char)(point - BYTE_POINT);
		return 1;
	}
	for (size_t i = length; i-- > 1; point >>= 6)
		bytes[i] = (char)(0x80 | (point & 0x3f));
	bytes[0] = (char)(length == 1 ? point : (0xf00u >> length | point));
	return length;
}

/* One step of a string that was scanned: how many bytes of the view, and what they stand for. */
static size_t undo_step(struct json_view view, char bytes[static 4], size_t *ret_length)
{
	uint32_t point;
	size_t step;

	if (view.bytes[0] != '\\') {
		bytes[0] = view.bytes[0];
		*ret_length = 1;
		return 1;
	}
	step = decode_escape(view.bytes, view.length, &point);
	*ret_length = step ? put_point(point, bytes) : 0;
	/* a view that no reader gave goes by as nothing */
	return step ? step : 1;
}

int json_view_bytes(struct json_view view, char *bytes, size_t size, size_t *ret_length)
{
	size_t used = 0;

	if (!size)
		return -ENOBUFS;
	while (view.length) {
		const char *escape = memchr(view.bytes, '\\', view.length);
		size_t length = escape ? (size_t)(escape - view.bytes) : view.length, step = length;
		char some[4];
		const char *from = view.bytes;

		/* most strings have no escape at all: one copy */
		if (!length) {
			step = undo_step(view, some, &length);
			from = some;
		}
		if (length >= size - used)
			return -ENOBUFS;
		memcpy(bytes + used, from, length);
		used += length;
		view = (struct json_view){ view.bytes + step, view.length - step };
	}
	bytes[used] = '\0';
	*ret_length = used;
	return 0;
}

bool json_view_is(struct json_view view, const char *text)
{
	size_t length = strlen(text);

	/* an escape is longer than what it stands for */
	if (!view.bytes || view.length < length)
		return false;
	if (view.length == length)
		return bytes_same(view.bytes, text, length) && !memchr(text, '\\', length);
	while (view.length) {
		char some[4];
		size_t taken, step = undo_step(view, some, &taken);

		if (taken > length || memcmp(some, text, taken) != 0)
			return false;
		text += taken;
		length -= taken;
		view = (struct json_view){ view.bytes + step, view.length - step };
	}
	return !length;
}
