#include "policy/input.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "base/utf8.h"
#include "policy/view.h"

#include <errno.h>
#include <string.h>

#define INPUT_LIMIT_NAME_BYTES 255u

bool input_is_name(const char *name)
{
	size_t length = strlen(name), step;

	if (!length || length > INPUT_LIMIT_NAME_BYTES || strchr(name, '/') ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (size_t at = 0; at < length; at += step) {
		uint32_t point;

		step = utf8_decode(name + at, length - at, &point);
		if (!step || !utf8_is_visible(point))
			return false;
	}
	return true;
}

int input_split(const char *given, struct arena *arena, const char **ret_path,
		const char **ret_name, struct error *error)
{
	const char *colon = strrchr(given, ':');
	const char *path = given;

	if (colon && strchr(colon, '/'))
		colon = NULL;
	if (colon && !input_is_name(colon + 1))
		return error_set(error, EINVAL,
				 "option --input %.200s: what follows the colon is no name: one "
				 "component, without control characters",
				 given);
	if (colon)
		path = arena_copy_bytes(arena, given, (size_t)(colon - given));
	if (!path)
		return error_errno(error, ENOMEM, "option --input");
	if (!path[0])
		return error_set(error, EINVAL, "option --input %.200s: it takes PATH or PATH:NAME",
				 given);
	*ret_path = path;
	*ret_name = colon ? colon + 1 : "";
	return 0;
}

int input_place(const struct view *view, const char *real, const char *name, struct arena *arena,
		const char **ret_target, struct error *error)
{
	char *target;

	name = name[0] ? name : path_name(real);
	if (!input_is_name(name))
		return error_set(error, EINVAL,
				 "--input %s: it has no name to be shown by; give one: "
				 "--input PATH:NAME",
				 real);
	target = path_clean(arena, VIEW_INPUTS, name);
	if (!target)
		return error_errno(error, ENOMEM, "--input %s", real);
	for (size_t i = 0; i < view->count; i++)
		if (strcmp(view->paths[i].target, target) == 0)
			return error_set(error, EEXIST,
					 "--input %s: another input is called %s; give this one a "
					 "name of its own: --input PATH:NAME",
					 real, name);
	*ret_target = target;
	return 0;
}
