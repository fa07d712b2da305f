/* Hide and protect where the host's own directory is writable in place: masks and pins. */
#include "plan/builder.h"

#include "base/arena.h"
#include "base/path.h"

#include <string.h>

/* A bind of every directory between the writable root and the path, so that none is renamed. */
void builder_emit_pins(struct builder *builder, const struct view_path *row,
		       const struct view_path *root)
{
	const char *below = path_below(row->target, root->target);

	for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *parent = arena_copy_bytes(builder->arena, row->target,
						(size_t)(slash - row->target));

		if (!parent || builder_was_made(builder, parent))
			continue;
		builder_emit_at(builder, PLAN_PIN, LAYER_PROTECT, parent)->rule = row->rule;
		builder_note_made(builder, parent);
	}
}

/* In an overlay names are hidden by whiteouts, but protected as anywhere. */
static bool is_in_place(const struct view_path *row, const struct view_path *above)
{
	return above->class == PATH_WRITE ||
	       ((above->class == PATH_GIT || above->class == PATH_STAGE) &&
		row->class == PATH_PROTECT);
}

/* Hide and protect where the host's own directory is writable in place. */
void builder_emit_in_place(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		const struct view_path *above;
		struct plan_op *op;

		if (row->class != PATH_HIDE && row->class != PATH_PROTECT)
			continue;
		above = builder_placed_above(builder, row->target);
		if (!above || !(is_in_place(row, above) || builder_is_masked(builder, row, above)))
			continue;
		if (row->class == PATH_HIDE && row->kind != PATH_KIND_MISSING) {
			builder_emit_pins(builder, row, above);
			op = builder_emit_at(builder, PLAN_MASK, LAYER_HIDE, row->target);
			op->number = row->kind;
			op->rule = row->rule;
		} else if (row->class == PATH_PROTECT && !builder_is_hidden(view, row->target)) {
			builder_emit_pins(builder, row, above);
			op = builder_emit_at(builder, PLAN_PIN, LAYER_PROTECT, row->target);
			op->flags = PLAN_READ_ONLY |
				    (row->kind == PATH_KIND_LINK ? PLAN_LINK_KIND : 0);
			op->rule = row->rule;
		}
	}
}
