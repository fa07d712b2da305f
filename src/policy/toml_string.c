#include "policy/toml_string.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct string {
	const char *at, *end;
	char *out;
	size_t length;
	const char *fault;
	unsigned run; /* of quotes so far: three of them end the string */
};

static const struct {
	char name, byte;
} escapes[] = {
	{ 'b', '\b' }, { 't', '\t' }, { 'n', '\n' },  { 'f', '\f' },
	{ 'r', '\r' }, { '"', '"' },  { '\\', '\\' },
};

static void put(struct string *string, uint32_t byte)
{
	string->out[string->length++] = (char)byte;
}

/* The form of more than seven bits: the lead's bits say how many bytes follow it. */
static void put_point(struct string *string, uint32_t point)
{
	if (point < 0x80) {
		put(string, point);
		return;
	}
	if (point < 0x800) {
		put(string, 0xc0 | point >> 6);
	} else {
		if (point < 0x10000) {
			put(string, 0xe0 | point >> 12);
		} else {
			put(string, 0xf0 | point >> 18);
			put(string, 0x80 | (point >> 12 & 0x3f));
		}
		put(string, 0x80 | (point >> 6 & 0x3f));
	}
	put(string, 0x80 | (point & 0x3f));
}

static int digit_value(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)((found - digits) % 16) : -1;
}

/* The digits of "\uXXXX", which takes more bytes than the code point does. */
static void take_point(struct string *string, size_t digits)
{
	uint64_t point = 0;

	for (size_t i = 0; i < digits; i++) {
		int value = string->at < string->end ? digit_value(*string->at++) : -1;

		if (value < 0)
			string->fault = "an escape that is no code point";
		point = point << 4 | (unsigned)(value & 0xf);
	}
	if (!string->fault && !point)
		string->fault = "a NUL byte in a value";
	if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		string->fault = "an escape that is no code point";
	if (!string->fault)
		put_point(string, (uint32_t)point);
}

/* What is behind a backslash. */
static void take_escape(struct string *string)
{
	char name = string->at < string->end ? *string->at++ : '\0';

	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (name && escapes[i].name == name) {
			put(string, (unsigned char)escapes[i].byte);
			return;
		}
	if (name == 'u' || name == 'U')
		take_point(string, name == 'u' ? 4 : 8);
	else if (name && strchr(" \t\r\n", name))
		while (string->at < string->end && strchr(" \t\r\n", *string->at))
			string->at++;
	else
		string->fault = "an escape that TOML does not have";
}

static bool begins(const char *bytes, size_t length, const char *with)
{
	size_t n = strlen(with);

	return length >= n && memcmp(bytes, with, n) == 0;
}

/* The quotes are taken off, and of three the first newline. */
static bool open_string(struct string *string, const char *bytes, size_t length)
{
	bool in_threes = begins(bytes, length, "\"\"\"") || begins(bytes, length, "'''");
	size_t quotes = in_threes ? 3 : 1;

	if (length < 2 * quotes || (bytes[0] != '"' && bytes[0] != '\'') ||
	    memcmp(bytes, bytes + length - quotes, quotes) != 0)
		return false;
	string->at = bytes + quotes;
	string->end = bytes + length - quotes;
	if (in_threes && begins(string->at, (size_t)(string->end - string->at), "\r\n"))
		string->at += 2;
	else if (in_threes && string->at < string->end && *string->at == '\n')
		string->at++;
	return true;
}

char *toml_string(struct arena *arena, const char *bytes, size_t length, const char **ret_fault)
{
	struct string string = { 0 };

	*ret_fault = "quotes that do not fit";
	if (!length || !open_string(&string, bytes, length))
		return NULL;
	string.out = arena_allocate(arena, length + 1);
	while (string.out && string.at < string.end && !string.fault) {
		char c = *string.at++;

		string.run = c == bytes[0] ? string.run + 1 : 0;
		if (string.run == 3)
			string.fault = "quotes that do not fit";
		else if (c == '\\' && bytes[0] == '"')
			take_escape(&string);
		else
			put(&string, (unsigned char)c);
	}
	*ret_fault = string.fault;
	return string.fault ? NULL : string.out;
}
