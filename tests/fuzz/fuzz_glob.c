/*
 * Globs against a naive matcher (recursive, exponential, obvious) on small input, and against
 * their own laws on input of every size. Input: pattern, newline, path.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/glob.h"

/* The naive matcher takes exponential time. */
#define NAIVE_PATTERN_BYTES 20
#define NAIVE_PATH_BYTES 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The set that opens at p: a table of its bytes. Returns what follows it. */
static const char *naive_set(const char *p, bool table[static 256])
{
	bool negated = false, first = true;

	memset(table, 0, 256);
	p++;
	if (*p == '!' || *p == '^') {
		negated = true;
		p++;
	}
	for (; first || *p != ']'; first = false) {
		unsigned low, high;

		if (*p == '\\')
			p++;
		low = (unsigned char)*p++;
		high = low;
		if (p[0] == '-' && p[1] != ']') {
			p++;
			if (*p == '\\')
				p++;
			high = (unsigned char)*p++;
		}
		for (unsigned byte = low; byte <= high; byte++)
			table[byte] = true;
	}
	for (unsigned byte = 0; byte < 256; byte++)
		table[byte] ^= negated;
	table['/'] = false;
	return p + 1;
}

static bool is_end(const char *p)
{
	return *p == '\0' || *p == '/';
}

static bool naive_name(const char *p, const char *s)
{
	bool table[256];

	if (is_end(p))
		return is_end(s);
	if (*p == '*')
		return naive_name(p + 1, s) || (!is_end(s) && naive_name(p, s + 1));
	if (is_end(s))
		return false;
	if (*p == '?')
		return naive_name(p + 1, s + 1);
	if (*p == '[') {
		p = naive_set(p, table);
		return table[(unsigned char)*s] && naive_name(p, s + 1);
	}
	if (*p == '\\')
		p++;
	return *p == *s && naive_name(p + 1, s + 1);
}

/* The component after the one at p; NULL for none. */
static const char *following(const char *p)
{
	p = strchr(p, '/');
	return p ? p + 1 : NULL;
}

static bool naive_match(const char *p, const char *s)
{
	if (!p)
		return !s;
	if (p[0] == '*' && p[1] == '*' && is_end(p + 2))
		return naive_match(following(p), s) || (s && naive_match(p, following(s)));
	return s && naive_name(p, s) && naive_match(following(p), following(s));
}

/* Some pattern component is left when all of the directory's are used up. */
static bool naive_below(const char *p, const char *s)
{
	if (!p)
		return false;
	if (!s)
		return true;
	if (p[0] == '*' && p[1] == '*' && is_end(p + 2))
		return naive_below(following(p), s) || naive_below(p, following(s));
	return naive_name(p, s) && naive_below(following(p), following(s));
}

static bool is_clean(const char *path)
{
	while (path) {
		size_t length = strcspn(path, "/");

		if (length == 0 || (length <= 2 && strncmp(path, "..", length) == 0))
			return false;
		path = following(path);
	}
	return true;
}

/* Whoever matches a path must let a walk into each of the directories above it. */
static void check_ancestors(const char *pattern, char *path)
{
	require(!*path || glob_can_match_below(pattern, ""));
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		require(glob_can_match_below(pattern, path));
		*slash = '/';
	}
}

/* A path with every byte escaped is a pattern for this path alone. */
static void check_escaped(const char *path)
{
	char pattern[GLOB_LIMIT_BYTES + 1], *end = pattern;

	if (strlen(path) > GLOB_LIMIT_BYTES / 2)
		return;
	for (const char *at = path; *at; at++) {
		if (*at != '/')
			*end++ = '\\';
		*end++ = *at;
	}
	*end = '\0';
	if (glob_check(pattern) == 0)
		require(glob_match(pattern, path) && !glob_can_match_below(pattern, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
	size_t pattern_length = newline ? (size_t)(newline - data) : size;
	char *pattern = strndup((const char *)data, pattern_length);
	char *path = newline ? strndup((const char *)newline + 1, size - pattern_length - 1) :
			       strdup("");
	bool match, below;

	require(pattern && path);
	match = glob_match(pattern, path);
	below = glob_can_match_below(pattern, path);
	if (glob_check(pattern) < 0) {
		require(!match && !below);
	} else if (!*path || is_clean(path)) {
		if (!glob_is_pattern(pattern))
			require(match == (strcmp(pattern, path) == 0));
		if (match)
			check_ancestors(pattern, path);
		if (strlen(pattern) <= NAIVE_PATTERN_BYTES && strlen(path) <= NAIVE_PATH_BYTES) {
			const char *s = *path ? path : NULL;

			require(match == naive_match(pattern, s));
			require(below == naive_below(pattern, s));
		}
	}
	if (*path && is_clean(path))
		check_escaped(path);
	free(pattern);
	free(path);
	return 0;
}
