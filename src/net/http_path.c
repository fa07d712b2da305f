#include "net/http_path.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define ESCAPE_BYTES 3u
/* Digits behind an escaped '%' are counted from 0; this is far enough below. */
#define NO_PERCENT (-2 * (int)HTTP_PATH_LIMIT_BYTES)

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

static int digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The byte of an escape; -1: it is none. */
static int unescape(const char *at, size_t left)
{
	if (left < 3 || digit(at[1]) < 0 || digit(at[2]) < 0)
		return -1;
	return digit(at[1]) * 16 + digit(at[2]);
}

/* What has a meaning of its own in a path and is no text in it. */
static const char *why_not(int byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return "the path has an escaped control byte";
	if (byte == '/')
		return "the path has an escaped '/'";
	if (byte == '\\')
		return "the path has a '\\', which some take for '/'";
	if (byte == ';')
		return "the path has a ';', behind which some see no path";
	return NULL;
}

/* Bytes that stand for themselves: '/' and pchar of RFC 3986, 3.3, without ';'. */
static bool is_plain(int byte)
{
	static const char others[] = "/-._~!$&'()*+,=:@";

	if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
	    (byte >= 'a' && byte <= 'z'))
		return true;
	return byte && memchr(others, byte, sizeof(others) - 1);
}

/* '.' is no step: every reader leaves it out (RFC 3986, 5.2.4). */
static size_t drop_dots(char *text)
{
	char *to = text + 1;

	for (const char *at = text + 1; *at;) {
		size_t length = strcspn(at, "/");
		bool is_dot = length == 1 && *at == '.';

		length += at[length] == '/';
		if (!is_dot) {
			memmove(to, at, length);
			to += length;
		}
		at += length;
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* Text with '/' between its segments; a last empty one is a directory's. */
static const char *why_not_segments(const char *text, size_t length)
{
	size_t begin = 1;

	for (size_t at = 1; at <= length; at++) {
		size_t bytes = at - begin;

		if (at < length && text[at] != '/')
			continue;
		if (bytes == 0 && at < length)
			return "the path has an empty segment";
		if (bytes == 2 && memcmp(text + begin, "..", bytes) == 0)
			return "the path has a '..'";
		begin = at + 1;
	}
	return NULL;
}

/* Writes a byte of the path as it is in the text; how many it takes. */
static size_t write_byte(int byte, char *out)
{
	static const char digits[] = "0123456789ABCDEF";

	if (is_plain(byte)) {
		out[0] = (char)byte;
		return 1;
	}
	out[0] = '%';
	out[1] = digits[byte >> 4];
	out[2] = digits[byte & 15];
	return 3;
}

/* UTF-8 that is longer than it has to be, in which '/' can hide (RFC 3629, 10), or none. */
static bool is_overlong(int before, int byte)
{
	return byte == 0xc0 || byte == 0xc1 || byte > 0xf4 || (before == 0xe0 && byte < 0xa0) ||
	       (before == 0xf0 && byte < 0x90);
}

/* One byte or escape of the path: how many bytes it takes there, and what it is. */
static int read_byte(const char *at, size_t left, int *ret_byte, const char **ret_why)
{
	int byte = (unsigned char)at[0];
	const char *why = NULL;

	if (byte != '%') {
		why = byte == '/' ? NULL : why_not(byte);
		if (byte == ' ' || byte > 0x7e)
			why = "the path has a byte that has to be escaped";
		*ret_byte = byte;
		return why ? refuse(ret_why, why) : 1;
	}
	byte = unescape(at, left);
	if (byte < 0)
		return refuse(ret_why, "the path has a '%' that escapes nothing");
	why = why_not(byte);
	*ret_byte = byte;
	return why ? refuse(ret_why, why) : 3;
}

/* The path without its query, segment for segment as it is; how long the text is. */
static int write_text(const char *path, size_t length, char *room, size_t room_bytes,
		      const char **ret_why)
{
	size_t at = 0, written = 0;
	int byte = 0, before, digits = NO_PERCENT;

	while (at < length) {
		int used;

		if (room_bytes - written <= ESCAPE_BYTES) {
			*ret_why = "the path is too long";
			return -E2BIG;
		}
		before = byte;
		used = read_byte(path + at, length - at, &byte, ret_why);
		if (used < 0)
			return used;
		if (is_overlong(before, byte))
			return refuse(ret_why, "the path has bytes that are not UTF-8");
		/* %25 alone is a '%'; with digits behind it, it is an escape for who reads twice */
		if (byte == '%')
			digits = 0;
		else
			digits = digit((char)byte) >= 0 ? digits + 1 : NO_PERCENT;
		if (digits == 2)
			return refuse(ret_why, "the path has an escaped escape");
		at += (size_t)used;
		written += write_byte(byte, room + written);
	}
	room[written] = '\0';
	return (int)written;
}

int http_path_normalise(const char *path, size_t length, char *room, size_t room_bytes,
			const char **ret_why)
{
	const char *query = length ? memchr(path, '?', length) : NULL;
	size_t end = query ? (size_t)(query - path) : length;
	const char *why;
	int written;

	if (length == 1 && path[0] == '*' && room_bytes > 1) {
		memcpy(room, "*", 2);
		return 1;
	}
	if (end == 0 || path[0] != '/')
		return refuse(ret_why, "the path does not begin with '/'");
	if (room_bytes > HTTP_PATH_LIMIT_BYTES + 1)
		room_bytes = HTTP_PATH_LIMIT_BYTES + 1;
	written = write_text(path, end, room, room_bytes, ret_why);
	if (written < 0)
		return written;
	why = why_not_segments(room, (size_t)written);
	return why ? refuse(ret_why, why) : (int)drop_dots(room);
}
