/*
 * The class of a path in a git directory: whatever it is, what goes to the host unheld does not
 * lead out of its place, and is spelled as git spells it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/git_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static void check(const char *path, bool is_common)
{
	enum git_class class = git_name_class(path, is_common);
	size_t length = strlen(path);

	require(git_class_name(class));
	if (class == GIT_OTHER)
		return;
	require(length && length < 4096 && path[0] != '/' && path[length - 1] != '/');
	require(!strstr(path, "//") && !starts_with(path, "../") && !strstr(path, "/../"));
	require(strcmp(path, "..") != 0 &&
		strcmp(path + (length > 3 ? length - 3 : 0), "/..") != 0);
	if (class == GIT_REF)
		require(starts_with(path, "refs/") && !strstr(path, "..") &&
			!strpbrk(path, " :\\*?[^~"));
	if (class == GIT_LOG)
		require(starts_with(path, "logs/"));
	if (class == GIT_HOOK_SAMPLE)
		require(starts_with(path, "hooks/") && !strchr(path + 6, '/') &&
			strcmp(path + length - 7, ".sample") == 0);
	if (class == GIT_CONFIG)
		require(strcmp(path, "config") == 0 || strcmp(path, "config.worktree") == 0);
	if (class == GIT_MESSAGE || class == GIT_HEAD || class == GIT_INDEX)
		require(!strchr(path, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = strndup((const char *)data, size);
	const char *inner;

	require(path);
	check(path, true);
	check(path, false);
	inner = git_name_in_worktree(path);
	require(!inner || (inner > path && inner < path + strlen(path) && inner[-1] == '/'));
	free(path);
	return 0;
}
