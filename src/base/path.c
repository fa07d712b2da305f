#include "base/path.h"

#include "base/arena.h"

#include <string.h>

bool path_is_absolute(const char *path)
{
	return path[0] == '/';
}

/* Length of the component at `at`, which points behind a slash. */
static size_t component(const char *at)
{
	return strcspn(at, "/");
}

static bool is_dots(const char *at, size_t length)
{
	return (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.');
}

bool path_is_clean(const char *path)
{
	if (!path_is_absolute(path) || strlen(path) >= PATH_LIMIT_BYTES)
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *at = path; *at;) {
		size_t length = component(at + 1);

		if (length == 0 || is_dots(at + 1, length))
			return false;
		at += 1 + length;
	}
	return true;
}

bool path_is_under(const char *path, const char *root)
{
	size_t i = 0;

	/* asked some thousands of times in a start, and most paths differ soon */
	while (root[i] && root[i] == path[i])
		i++;
	return !root[i] && (path[i] == '/' || path[i] == '\0' || i == 1);
}

const char *path_below(const char *path, const char *root)
{
	const char *rest = path + (root[1] ? strlen(root) : 0);

	return *rest == '/' ? rest + 1 : rest;
}

char *path_clean(struct arena *arena, const char *base, const char *path)
{
	bool absolute = path_is_absolute(path);
	size_t room = strlen(path) + (absolute ? 0 : strlen(base)) + 3;
	char *clean, *end;

	if (!path[0] || room > PATH_LIMIT_BYTES + 2)
		return NULL;
	clean = arena_allocate(arena, room);
	if (!clean)
		return NULL;
	end = clean;
	if (!absolute && base[1]) {
		memcpy(clean, base, strlen(base));
		end += strlen(base);
	}
	while (*path) {
		size_t length = component(path);

		if (length == 2 && is_dots(path, 2))
			return NULL;
		if (length && !is_dots(path, length)) {
			*end++ = '/';
			memcpy(end, path, length);
			end += length;
		}
		path += length;
		path += *path == '/';
	}
	if (end == clean)
		*end++ = '/';
	*end = '\0';
	return (size_t)(end - clean) < PATH_LIMIT_BYTES ? clean : NULL;
}

char *path_clean_up(struct arena *arena, const char *base, const char *path)
{
	while (base && strncmp(path, "..", 2) == 0 && (path[2] == '/' || !path[2])) {
		base = path_parent(arena, base);
		path += 2;
		path += strspn(path, "/");
	}
	return base ? path_clean(arena, base, path[0] ? path : ".") : NULL;
}

char *path_parent(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? arena_copy(arena, "/") :
			       arena_copy_bytes(arena, path, (size_t)(slash - path));
}

const char *path_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

size_t path_depth(const char *path)
{
	size_t depth = 0;

	if (!path[1])
		return 0;
	for (; *path; path++)
		depth += *path == '/';
	return depth;
}
