#include "policy/view.h"

#include "base/arena.h"
#include "base/path.h"

#include <string.h>

bool view_add(struct view *view, struct arena *arena, struct view_path path)
{
	struct view_path *grown;

	if (view->count >= VIEW_LIMIT_PATHS)
		return false;
	grown = arena_push(arena, view->paths, view->count, sizeof(*view->paths));
	if (!grown)
		return false;
	view->paths = grown;
	view->paths[view->count++] = path;
	return true;
}

const struct view_path *view_lookup(const struct view *view, const char *path)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (!path_is_under(path, row->target))
			continue;
		if (row->class == PATH_HIDE)
			return row;
		/* of rows with one target the later one is the more special */
		if (!best || strlen(row->target) >= strlen(best->target))
			best = row;
	}
	return best;
}

bool view_is_input(const struct view_path *row)
{
	return row->class == PATH_READ && path_is_under(row->target, VIEW_INPUTS);
}

bool view_has_gpu(const struct view *view)
{
	/* sources are real paths: no link of /dev/dri/by-path. dxg is that of WSL */
	static const char *const gpus[] = { "/dev/dri/", "/dev/nvidia", "/dev/kfd", "/dev/dxg" };

	for (size_t i = 0; i < view->count; i++)
		for (size_t j = 0; j < sizeof(gpus) / sizeof(gpus[0]); j++)
			if (view->paths[i].class == PATH_DEVICE &&
			    strncmp(view->paths[i].source, gpus[j], strlen(gpus[j])) == 0)
				return true;
	return false;
}

const char *path_class_name(enum path_class class)
{
	static const char *const names[PATH_CLASS_COUNT] = {
		"read", "write", "hide", "protect", "cache", "device", "link",
		"file", "copy",	 "git",	 "objects", "stage", "program"
	};

	return names[class];
}
