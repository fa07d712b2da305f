/* The rows of the view as they become mounts: their order, and what stands above and below each. */
#include "plan/builder.h"

#include "base/arena.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

enum path_class builder_shown_class(const struct view_path *row)
{
	return row->class == PATH_COPY ? PATH_READ : row->class;
}

static bool is_mount(const struct view_path *row)
{
	enum path_class class = builder_shown_class(row);

	return class == PATH_READ || class == PATH_WRITE || class == PATH_CACHE ||
	       class == PATH_DEVICE || class == PATH_GIT || class == PATH_STAGE ||
	       class == PATH_PROGRAM;
}

/* True when a hide row stands at or above the target: deny beats allow. */
bool builder_is_hidden(const struct view *view, const char *target)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE &&
		    path_is_under(target, view->paths[i].target))
			return true;
	return false;
}

/* What had an overlay over its own directory is a copy of that directory. */
bool builder_is_duplicate(const struct builder *builder, const struct view_path *row)
{
	return builder->facts->copies && (row->class == PATH_GIT || row->class == PATH_STAGE);
}

/* In a copied workspace a git directory is a part of the copy: its mount is a pin. */
bool builder_is_in_copy(const struct builder *builder, const struct view_path *row)
{
	return builder_is_duplicate(builder, row) && row->class == PATH_GIT &&
	       path_is_under(row->target, builder->policy->workspace);
}

/* The deepest mounted row at or above the path, among the first `limit` rows. */
const struct view_path *builder_mount_above(const struct builder *builder, const char *path,
					    size_t limit)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < limit; i++) {
		const struct view_path *row = builder->rows[i];

		if (path_is_under(path, row->target) &&
		    (!best || strlen(row->target) >= strlen(best->target)))
			best = row;
	}
	return best;
}

static int by_depth(const void *left, const void *right)
{
	const struct view_path *a = *(const struct view_path *const *)left;
	const struct view_path *b = *(const struct view_path *const *)right;
	size_t depth_a = path_depth(a->target), depth_b = path_depth(b->target);

	if (depth_a != depth_b)
		return depth_a < depth_b ? -1 : 1;
	/* rows stand in one array: of equal depth the later one comes later */
	return a < b ? -1 : a > b;
}

/* Rows that become mounts, shallow first, without those that a hide row takes away. */
void builder_sort_rows(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	builder->rows = arena_array(builder->arena, view->count + 1, sizeof(void *));
	if (!builder->rows)
		return;
	for (size_t i = 0; i < view->count; i++)
		if (is_mount(&view->paths[i]) && !builder_is_hidden(view, view->paths[i].target))
			builder->rows[builder->row_count++] = &view->paths[i];
	qsort(builder->rows, builder->row_count, sizeof(void *), by_depth);
}

bool builder_is_redundant(const struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	const struct view_path *above = builder_mount_above(builder, row->target, index);

	return above && builder_shown_class(above) == builder_shown_class(row) &&
	       above->class != PATH_CACHE && above->class != PATH_GIT &&
	       above->class != PATH_STAGE &&
	       strcmp(path_below(row->target, above->target),
		      path_below(row->source, above->source)) == 0 &&
	       path_is_under(row->source, above->source);
}

/* The deepest row at or above the path that has a mount of its own. */
const struct view_path *builder_placed_above(const struct builder *builder, const char *path)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < builder->row_count; i++) {
		const struct view_path *row = builder->rows[i];

		if (path_is_under(path, row->target) && !builder_is_redundant(builder, i) &&
		    (!best || strlen(row->target) >= strlen(best->target)))
			best = row;
	}
	return best;
}

const struct view_path *builder_placed_before(const struct builder *builder, size_t index)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < index; i++) {
		const struct view_path *row = builder->rows[i];

		if (path_is_under(builder->rows[index]->target, row->target) &&
		    !builder_is_redundant(builder, i) &&
		    (!best || strlen(row->target) >= strlen(best->target)))
			best = row;
	}
	return best;
}

/*
 * A secret that git tracks, in a stage: absent it would look deleted, and the task's git would
 * commit that. What cannot be read it does not commit.
 */
bool builder_is_masked(const struct builder *builder, const struct view_path *hide,
		       const struct view_path *row)
{
	return row->class == PATH_STAGE && hide->class == PATH_HIDE &&
	       hide->kind == PATH_KIND_FILE && !builder->policy->rules[hide->rule].file;
}
