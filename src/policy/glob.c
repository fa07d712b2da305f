/*
 * Theory of operation: a pattern is cut into components, and the path is fed to them one component
 * at a time as to a nondeterministic automaton: state i means "component i comes next", state
 * `count` means "all matched". "**" stays in its state and may be skipped. Each component of the
 * pattern meets each component of the path at most once, and their bytes are compared with one
 * point of return (the last '*'), so that the whole is bounded by pattern x path.
 */
#include "policy/glob.h"

#include "base/path.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct component {
	const char *text;
	size_t length;
	bool any; /* "**" */
};

struct components {
	struct component items[GLOB_LIMIT_COMPONENTS];
	size_t count;
};

struct states {
	bool on[GLOB_LIMIT_COMPONENTS + 1];
};

/* One byte of a set, at `at`: itself or the one behind a backslash. Returns what follows. */
static const char *set_byte(const char *at, const char *end, unsigned char *ret_byte)
{
	if (*at == '\\' && at + 1 < end)
		at++;
	*ret_byte = (unsigned char)*at;
	return at + 1;
}

/*
 * Reads the set that opens at `at`; returns what follows it, or NULL where it is malformed.
 * *ret_match tells whether it holds the byte.
 */
static const char *set_read(const char *at, const char *end, unsigned char byte, bool *ret_match)
{
	bool negated = ++at < end && (*at == '!' || *at == '^');
	bool match = false;

	at += negated;
	for (const char *first = at; at < end && (*at != ']' || at == first);) {
		unsigned char low, high;

		if (*at == '[' && at + 1 < end && strchr(":.=", at[1]))
			return NULL;
		at = set_byte(at, end, &low);
		high = low;
		if (at + 1 < end && at[0] == '-' && at[1] != ']')
			at = set_byte(at + 1, end, &high);
		if (low > high)
			return NULL;
		match |= low <= byte && byte <= high;
	}
	if (at >= end)
		return NULL;
	*ret_match = match != negated;
	return at + 1;
}

static bool component_is_valid(const struct component *component)
{
	const char *at = component->text, *end = at + component->length;
	bool ignored;

	if (component->length == 0 || strncmp(at, "..", component->length) == 0)
		return false;
	while (!component->any && at < end) {
		if (*at == '[') {
			at = set_read(at, end, 0, &ignored);
			if (!at)
				return false;
		} else if (*at == '\\') {
			if (at + 1 == end)
				return false;
			at += 2;
		} else if (*at == '*' && at + 1 < end && at[1] == '*') {
			return false;
		} else {
			at++;
		}
	}
	return true;
}

static int split(const char *pattern, struct components *components)
{
	if (!pattern[0] || strlen(pattern) > GLOB_LIMIT_BYTES)
		return -EINVAL;
	components->count = 0;
	for (;;) {
		struct component component = { .text = pattern, .length = strcspn(pattern, "/") };

		component.any = component.length == 2 && memcmp(pattern, "**", 2) == 0;
		if (components->count == GLOB_LIMIT_COMPONENTS || !component_is_valid(&component))
			return -EINVAL;
		components->items[components->count++] = component;
		pattern += component.length;
		if (!*pattern)
			return 0;
		pattern++;
	}
}

/* Matches one element that is not '*' against one byte; returns what follows it, or NULL. */
static const char *element_match(const char *at, const char *end, unsigned char byte)
{
	bool match = true;

	if (*at == '[') {
		at = set_read(at, end, byte, &match);
		return match ? at : NULL;
	}
	if (*at == '?')
		return at + 1;
	if (*at == '\\')
		at++;
	return (unsigned char)*at == byte ? at + 1 : NULL;
}

static bool component_match(const struct component *component, const char *name, size_t length)
{
	const char *at = component->text, *end = at + component->length;
	const char *name_end = name + length;
	const char *star = NULL, *star_name = NULL; /* where to return to */

	while (name < name_end) {
		const char *next = NULL;

		if (at < end && *at == '*') {
			star = ++at;
			star_name = name;
			continue;
		}
		if (at < end)
			next = element_match(at, end, (unsigned char)*name);
		if (next) {
			at = next;
			name++;
		} else if (star) {
			at = star;
			name = ++star_name;
		} else {
			return false;
		}
	}
	while (at < end && *at == '*')
		at++;
	return at == end;
}

/* Switches on a state and those that follow it when each "**" stands for nothing. */
static void enter(struct states *states, const struct components *components, size_t i)
{
	states->on[i] = true;
	while (i < components->count && components->items[i].any)
		states->on[++i] = true;
}

static struct states feed(const struct components *components, const char *path)
{
	struct states states = { 0 };

	enter(&states, components, 0);
	while (*path) {
		size_t length = strcspn(path, "/");
		struct states next = { 0 };

		for (size_t i = 0; i < components->count; i++) {
			if (!states.on[i])
				continue;
			if (components->items[i].any)
				enter(&next, components, i);
			else if (component_match(&components->items[i], path, length))
				enter(&next, components, i + 1);
		}
		states = next;
		path += length;
		path += *path == '/';
	}
	return states;
}

bool glob_is_pattern(const char *text)
{
	return strpbrk(text, "?*[\\") != NULL;
}

int glob_check(const char *pattern)
{
	struct components components;

	return split(pattern, &components);
}

bool glob_match(const char *pattern, const char *path)
{
	struct components components;

	if (split(pattern, &components) < 0)
		return false;
	return feed(&components, path).on[components.count];
}

bool glob_can_match_below(const char *pattern, const char *path)
{
	struct components components;
	struct states states;

	if (split(pattern, &components) < 0)
		return false;
	states = feed(&components, path);
	for (size_t i = 0; i < components.count; i++)
		if (states.on[i])
			return true;
	return false;
}

bool glob_covers(const char *pattern, const char *path)
{
	char above[PATH_LIMIT_BYTES];
	size_t length = strlen(path);

	if (length >= sizeof(above))
		return false;
	memcpy(above, path, length + 1);
	for (char *slash; above[0]; *slash = '\0') {
		if (glob_is_pattern(pattern) ? glob_match(pattern, above) :
					       strcmp(pattern, above) == 0)
			return true;
		slash = strrchr(above, '/');
		if (!slash)
			break;
	}
	return false;
}
