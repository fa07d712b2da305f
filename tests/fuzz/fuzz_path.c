/* Paths as text against their definition. Input: base, newline, path. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* The definition of the header in other words. */
static bool is_clean(const char *path)
{
	if (strcmp(path, "/") == 0)
		return true;
	return path[0] == '/' && strlen(path) < PATH_LIMIT_BYTES && !strstr(path, "//") &&
	       !strstr(path, "/./") && !strstr(path, "/../") && !ends_with(path, "/") &&
	       !ends_with(path, "/.") && !ends_with(path, "/..");
}

static bool has_parent_component(const char *path)
{
	return strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 || strstr(path, "/../") ||
	       ends_with(path, "/..");
}

/* Parent, name and depth take a clean path apart so that it can be put together again. */
static void check_parts(struct arena *arena, const char *path)
{
	const char *parent = path_parent(arena, path), *name = path_name(path);

	require(parent && path_is_clean(parent) && path_is_under(path, parent));
	require(!strchr(name, '/') && strcmp(path_below(path, parent), name) == 0);
	if (strcmp(path, "/") == 0) {
		require(!*name && path_depth(path) == 0);
		return;
	}
	require(*name && path_depth(path) == path_depth(parent) + 1);
	require(strcmp(path_clean(arena, parent, name), path) == 0);
	require(!path_is_under(parent, path));
}

static void check_pair(struct arena *arena, const char *path, const char *root)
{
	size_t length = strlen(root);
	bool under = strcmp(root, "/") == 0 || strcmp(path, root) == 0 ||
		     (strncmp(path, root, length) == 0 && path[length] == '/');

	require(path_is_under(path, root) == under);
	if (under && strcmp(path, root) != 0)
		require(strcmp(path_clean(arena, root, path_below(path, root)), path) == 0);
	else if (under)
		require(!*path_below(path, root));
}

static void check_clean(struct arena *arena, const char *base, const char *path)
{
	const char *clean = path_clean(arena, base, path);

	require(!arena_failed(arena));
	if (!clean) {
		require(!*path || has_parent_component(path) ||
			strlen(base) + strlen(path) + 1 >= PATH_LIMIT_BYTES);
		return;
	}
	require(*path && !has_parent_component(path) && is_clean(clean));
	require(path_is_absolute(path) || path_is_under(clean, base));
	require(strcmp(path_clean(arena, base, clean), clean) == 0);
	check_parts(arena, clean);
	check_pair(arena, clean, base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
	size_t base_length = newline ? (size_t)(newline - data) : 0;
	const uint8_t *rest = newline ? newline + 1 : data;
	char *base = strndup((const char *)data, base_length);
	char *path = strndup((const char *)rest, size - (size_t)(rest - data));

	require(base && path);
	require(path_is_clean(path) == is_clean(path));
	require(path_is_clean(base) == is_clean(base));
	check_clean(&arena, is_clean(base) ? base : "/", path);
	if (is_clean(base) && is_clean(path)) {
		check_pair(&arena, path, base);
		check_pair(&arena, base, path);
	}
	free(base);
	free(path);
	return 0;
}
