#include "workspace/git_name.h"

#include "base/path.h"
#include "workspace/git_value.h"

#include <stddef.h>
#include <string.h>

#define LOCK_END ".lock"
#define SAMPLE_END ".sample"

enum where { WHERE_COMMON, WHERE_OWN, WHERE_ANY };

static const struct {
	const char *pattern;
	enum where where;
	enum git_class class;
} names[] = {
#define GIT_NAME(pattern, where, class) { pattern, WHERE_##where, GIT_##class },
#include "workspace/git_name.def"
#undef GIT_NAME
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length > strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* No empty name, "." or "..", no '/' at either end, and nothing but printable bytes and UTF-8. */
static bool is_clean(const char *path)
{
	if (strlen(path) >= PATH_LIMIT_BYTES)
		return false;
	for (const char *at = path; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return false;
	for (;;) {
		size_t length = strcspn(path, "/");

		if (!length || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
			return false;
		if (!path[length])
			return true;
		path += length + 1;
	}
}

static bool fits(const char *pattern, const char *path)
{
	for (;;) {
		size_t wanted = strcspn(pattern, "/"), length = strcspn(path, "/");

		if (strcmp(pattern, "**") == 0)
			return true;
		if (!(wanted == 1 && pattern[0] == '*') &&
		    (wanted != length || memcmp(pattern, path, length) != 0))
			return false;
		if (!pattern[wanted] || !path[length])
			return pattern[wanted] == path[length];
		pattern += wanted + 1;
		path += length + 1;
	}
}

static enum git_class find(const char *path, bool is_common)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].where != (is_common ? WHERE_OWN : WHERE_COMMON) &&
		    fits(names[i].pattern, path))
			return names[i].class;
	return GIT_OTHER;
}

/* What has to hold of a name beyond its row. */
static enum git_class refine(enum git_class class, const char *path)
{
	const char *name = strrchr(path, '/');

	switch (class) {
	case GIT_REF:
		return git_value_is_ref(path) ? class : GIT_OTHER;
	case GIT_LOG:
		return git_value_is_ref(path + strlen("logs/")) ? class : GIT_OTHER;
	case GIT_HOOK:
		/* directly in hooks/, and no end that some system leaves out */
		return name == path + strlen("hooks") && ends_with(name + 1, SAMPLE_END) &&
				       git_value_is_remote(name + 1) ?
			       GIT_HOOK_SAMPLE :
			       class;
	default:
		return class;
	}
}

/* What git writes beside the file and renames to it. */
static bool is_locked(enum git_class class)
{
	switch (class) {
	case GIT_REF:
	case GIT_PACKED_REFS:
	case GIT_HEAD:
	case GIT_INDEX:
	case GIT_CONFIG:
	case GIT_SEQUENCE:
	case GIT_MESSAGE:
	case GIT_INFO_SAFE:
	case GIT_SHALLOW:
	case GIT_LOCK: /* gc.pid.lock */
		return true;
	default:
		return false;
	}
}

enum git_class git_name_class(const char *path, bool is_common)
{
	char locked[PATH_LIMIT_BYTES];
	enum git_class class;

	if (!is_clean(path))
		return GIT_OTHER;
	class = find(path, is_common);
	if ((class != GIT_REF && class != GIT_SEQUENCE && class != GIT_OTHER) ||
	    !ends_with(path, LOCK_END))
		return refine(class, path);
	(void)memcpy(locked, path, strlen(path) + 1);
	locked[strlen(path) - strlen(LOCK_END)] = '\0';
	class = is_clean(locked) ? refine(find(locked, is_common), locked) : GIT_OTHER;
	return is_locked(class) ? GIT_LOCK : GIT_OTHER;
}

const char *git_name_in_worktree(const char *path)
{
	static const char start[] = "worktrees/";
	const char *rest;

	if (strncmp(path, start, sizeof(start) - 1) != 0 || !is_clean(path))
		return NULL;
	rest = strchr(path + sizeof(start) - 1, '/');
	return rest ? rest + 1 : NULL;
}

const char *git_class_name(enum git_class class)
{
	static const char *const words[GIT_CLASSES] = {
		[GIT_OBJECT] = "object",
		[GIT_REF] = "ref",
		[GIT_PACKED_REFS] = "packed-refs",
		[GIT_HEAD] = "head",
		[GIT_INDEX] = "index",
		[GIT_LOG] = "log",
		[GIT_CONFIG] = "config",
		[GIT_MESSAGE] = "message",
		[GIT_SEQUENCE] = "sequence",
		[GIT_LOCK] = "lock",
		[GIT_COMMONDIR] = "commondir",
		[GIT_GITDIR_LINK] = "gitdir",
		[GIT_WORKTREE] = "worktree",
		[GIT_MODULE] = "module",
		[GIT_HOOK] = "hook",
		[GIT_HOOK_SAMPLE] = "sample",
		[GIT_INFO_SAFE] = "info",
		[GIT_SHALLOW] = "shallow",
		[GIT_OTHER] = "other",
	};

	return words[class];
}
