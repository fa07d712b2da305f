/* What the plan has made in the new root so far, and directories of ours that lead somewhere. */
#include "plan/builder.h"

#include "base/arena.h"
#include "base/path.h"

#include <string.h>

bool builder_was_made(const struct builder *builder, const char *path)
{
	for (size_t i = 0; i < builder->made_count; i++)
		if (strcmp(builder->made[i], path) == 0)
			return true;
	return false;
}

void builder_note_made(struct builder *builder, const char *path)
{
	const char **made =
		arena_push(builder->arena, builder->made, builder->made_count, sizeof(*made));

	if (!made)
		return;
	builder->made = made;
	made[builder->made_count++] = path;
}

/* What lies in the root itself, and not below a private area, is part of the skeleton. */
uint64_t builder_kept_flag(const struct builder *builder, const char *target)
{
	for (size_t i = 0; i < builder->area_count; i++)
		if (strcmp(target, builder->areas[i].target) != 0 &&
		    path_is_under(target, builder->areas[i].target))
			return 0;
	return PLAN_KEPT;
}

/*
 * Directories of ours that lead to `path` (and the path itself where `last`). Under a mounted row
 * the host's own directories are there already.
 */
void builder_make_directories(struct builder *builder, const char *path, size_t mounted, bool last)
{
	size_t length = path ? strlen(path) : 0;

	for (size_t end = 1; path && end <= length; end++) {
		char *part;

		if (path[end] != '/' && path[end] != '\0')
			continue;
		if (path[end] == '\0' && !last)
			break;
		part = arena_copy_bytes(builder->arena, path, end);
		if (!part)
			return;
		if (builder_was_made(builder, part))
			continue;
		const struct view_path *above = builder_mount_above(builder, part, mounted);

		if (above) {
			/* what is shown from the host at the same place brings its own names */
			if (above->kind == PATH_KIND_DIRECTORY &&
			    strcmp(above->source, above->target) == 0)
				continue;
			builder->fault = path;
			return;
		}
		struct plan_op *op = builder_emit_at(builder, PLAN_DIRECTORY, LAYER_MOUNT, part);

		op->number = 0755;
		op->flags = builder_kept_flag(builder, part);
		builder_note_made(builder, part);
	}
}
