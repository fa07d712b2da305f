#include "workspace/later.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct row {
	const char *pattern, *who;
	bool is_below;
} rows[] = {
#define LATER(pattern, who) { pattern, who, false },
#define LATER_BELOW(pattern, who) { pattern, who, true },
#include "workspace/later.def"
#undef LATER
#undef LATER_BELOW
};

static bool is_row(const struct row *row, const char *text, size_t length)
{
	const char *pattern = row->pattern;
	size_t pattern_length;

	/* most rows by their first byte: letters differ in one bit by their case */
	if (pattern[0] != '*' && (!length || ((pattern[0] ^ text[0]) & ~0x20)))
		return false;
	pattern_length = strlen(pattern);
	if (pattern[0] == '*') {
		pattern++;
		pattern_length--;
		if (length < pattern_length)
			return false;
		text += length - pattern_length;
		length = pattern_length;
	}
	return length == pattern_length && strncasecmp(text, pattern, length) == 0;
}

/* By the last name of the first `length` bytes of a path, and by its last two. */
static const char *of_last(const char *path, size_t length, bool is_directory)
{
	const char *name = memrchr(path, '/', length), *two = path;

	if (name)
		two = memrchr(path, '/', (size_t)(name - path));
	two = two && *two == '/' ? two + 1 : path;
	name = name ? name + 1 : path;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *from = strchr(rows[i].pattern, '/') ? two : name;

		if (is_directory && !rows[i].is_below)
			continue;
		if (is_row(&rows[i], from, (size_t)(path + length - from)))
			return rows[i].who;
	}
	return NULL;
}

const char *later_of_last(const char *path, bool is_directory)
{
	return of_last(path, strlen(path), is_directory);
}

const char *later_of_path(const char *path)
{
	const char *who = NULL;

	for (size_t at = strcspn(path, "/"); !who; at += 1 + strcspn(path + at + 1, "/")) {
		who = of_last(path, at, path[at]);
		if (!path[at])
			break;
	}
	return who;
}
