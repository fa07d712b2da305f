/* The operations that show a row: bind, overlay, copy; and those of the host that they stand on. */
#include "plan/builder.h"

#include "base/arena.h"
#include "base/path.h"

#include <string.h>

static bool is_hide_below(const struct view_path *hide, const struct view_path *row)
{
	return hide->class == PATH_HIDE && path_is_under(hide->target, row->target) &&
	       strcmp(hide->target, row->target) != 0;
}

/*
 * Hidden names below an overlay: whiteouts in a directory ("shade") that becomes its topmost
 * lower layer. They hide by name, whatever the host puts there later.
 */
static const char *emit_shade(struct builder *builder, const struct view_path *row)
{
	const struct view *view = &builder->policy->view;
	const char *shade = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *hide = &view->paths[i];
		const char *below;

		if (!is_hide_below(hide, row) || builder_is_masked(builder, hide, row))
			continue;
		if (!shade) {
			shade = arena_format(builder->arena, "shade%u", builder->shades++);
			builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_HIDE, shade)->number =
				0755;
		}
		below = path_below(hide->target, row->target);
		for (const char *slash = strchr(below, '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			char *parent = arena_format(builder->arena, "%s/%.*s", shade,
						    (int)(slash - below), below);

			if (!parent || builder_was_made(builder, parent))
				continue;
			builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_HIDE, parent)->number =
				0755;
			builder_note_made(builder, parent);
		}
		struct plan_op *op =
			builder_emit_at(builder, PLAN_WHITEOUT, LAYER_HIDE,
					arena_format(builder->arena, "%s/%s", shade, below));

		op->rule = hide->rule;
	}
	return shade;
}

static bool needs_shade(const struct builder *builder, const struct view_path *row)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++)
		if (is_hide_below(&view->paths[i], row) &&
		    !builder_is_masked(builder, &view->paths[i], row))
			return true;
	return false;
}

static void set_source(struct plan_op *op, const struct view_path *row)
{
	op->source = row->source;
	op->device = row->device;
	op->inode = row->inode;
	op->rule = row->rule;
	op->flags |= row->kind == PATH_KIND_FILE ? PLAN_FILE_KIND : 0;
}

/* A mount target of ours: a directory, or an empty file to mount a file on. */
static void emit_mount_point(struct builder *builder, const struct view_path *row, size_t index)
{
	if (row->kind == PATH_KIND_DIRECTORY) {
		builder_make_directories(builder, row->target, index, true);
		return;
	}
	builder_make_directories(builder, row->target, index, false);
	if (!builder_mount_above(builder, row->target, index) &&
	    !builder_was_made(builder, row->target)) {
		struct plan_op *op = builder_emit_at(builder, PLAN_FILE, LAYER_MOUNT, row->target);

		op->source = "";
		op->number = 0444;
		op->flags = builder_kept_flag(builder, row->target);
		builder_note_made(builder, row->target);
	}
}

/*
 * A copy lies in the root itself, and nobody else speaks of its path or of what is in it: not what
 * hides a name there, and not a flag, which asks for the host's own.
 */
static bool is_copied(const struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	const struct view *view = &builder->policy->view;

	if (row->class != PATH_COPY || !builder_kept_flag(builder, row->target) ||
	    builder_mount_above(builder, row->target, index))
		return false;
	for (size_t i = 0; i < view->count; i++)
		if (&view->paths[i] != row && path_is_under(view->paths[i].target, row->target))
			return false;
	return true;
}

static void emit_copy(struct builder *builder, const struct view_path *row, size_t index)
{
	struct plan_op *op;

	builder_make_directories(builder, row->target, index, false);
	op = builder_emit_at(builder, PLAN_COPY, LAYER_MOUNT, row->target);
	op->flags = PLAN_KEPT;
	op->state = row->state;
	set_source(op, row);
	builder_note_made(builder, row->target);
}

/* The layers of a git directory: numbered as its row is among those of its class. */
static const char *git_layers(const struct builder *builder, const struct view_path *row)
{
	const struct view_path *paths = builder->policy->view.paths;
	unsigned number = 0;

	for (const struct view_path *at = paths; at < row; at++)
		number += at->class == PATH_GIT;
	return arena_format(builder->arena, "%s/" PLAN_GIT_LAYERS "/%u",
			    builder->facts->task_directory, number);
}

static const char *stage_layers(const struct builder *builder)
{
	return arena_format(builder->arena, "%s/" PLAN_STAGE_LAYERS,
			    builder->facts->task_directory);
}

/* Overlays whose upper layer is the task's own; the first two kinds are in its directory. */
static const char *upper_of(const struct builder *builder, const struct view_path *row)
{
	return row->class == PATH_GIT	? git_layers(builder, row) :
	       row->class == PATH_STAGE ? stage_layers(builder) :
					  row->upper;
}

/* Whoever could move a directory above a git directory would have the host find another there. */
static void pin_git(struct builder *builder, size_t index)
{
	const struct view_path *above = builder_placed_before(builder, index);

	if (builder->rows[index]->class == PATH_GIT && above && above->class == PATH_WRITE)
		builder_emit_pins(builder, builder->rows[index], above);
}

static void emit_overlay(struct builder *builder, const struct view_path *row)
{
	const char *shade = emit_shade(builder, row);
	const char *upper = upper_of(builder, row);
	enum layer layer = shade		  ? LAYER_HIDE :
			   row->class == PATH_GIT ? LAYER_PROTECT :
						    LAYER_MOUNT;
	struct plan_op *op = builder_emit_at(builder, PLAN_OVERLAY, layer, row->target);

	op->shade = shade;
	op->upper = upper;
	if (row->class == PATH_STAGE && builder->policy->flags & POLICY_EMPTY) {
		/* the task's own layer alone */
		op->source = "";
		op->rule = row->rule;
		return;
	}
	/* a user's home may be shown with its owner's modes only through an id map */
	op->flags = builder->idmap | (upper ? 0 : PLAN_READ_ONLY);
	/* where the workspace's layer is refused, that of a cache may be as well */
	if (builder->facts->copies && row->class == PATH_CACHE)
		op->flags |= PLAN_OPTIONAL;
	set_source(op, row);
}

static void emit_bind(struct builder *builder, const struct view_path *row)
{
	struct plan_op *op = builder_emit_at(builder, PLAN_BIND, LAYER_MOUNT, row->target);

	op->flags = row->class == PATH_WRITE  ? builder->idmap :
		    row->class == PATH_DEVICE ? PLAN_DEVICE | PLAN_NO_EXEC :
						builder->idmap | PLAN_READ_ONLY;
	set_source(op, row);
}

static const char *copy_of(const struct builder *builder, const struct view_path *row)
{
	return arena_format(builder->arena, "%s/" PLAN_STAGE_COPY, upper_of(builder, row));
}

/* What is hidden in it was not copied; the rest is the task's own. */
static void emit_duplicate_mount(struct builder *builder, const struct view_path *row)
{
	struct plan_op *op;

	if (builder_is_in_copy(builder, row)) {
		builder_emit_at(builder, PLAN_PIN, LAYER_PROTECT, row->target)->rule = row->rule;
		return;
	}
	op = builder_emit_at(builder, PLAN_BIND,
			     row->class == PATH_GIT ? LAYER_PROTECT : LAYER_MOUNT, row->target);
	op->source = copy_of(builder, row);
	op->flags = builder->idmap;
	op->rule = row->rule;
}

/* Packs of git directories, in the overlays that are there by now. */
void builder_emit_stores(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i], *above;
		struct plan_op *op;

		if (row->class != PATH_OBJECTS || builder_is_hidden(view, row->target))
			continue;
		above = builder_placed_above(builder, row->target);
		if (!above || above->class != PATH_GIT || builder_is_duplicate(builder, above))
			continue;
		op = builder_emit_at(builder, PLAN_OBJECTS, LAYER_PROTECT, row->target);
		op->flags = builder->idmap | PLAN_READ_ONLY;
		set_source(op, row);
	}
}

/* System files are world-readable: they need no map, and their file system may lack it. */
static bool is_systems(const struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];

	/* a program is listed by a file, but is of the kind of what it lies in */
	if (row->class == PATH_PROGRAM)
		row = builder_placed_before(builder, index);
	return !row || (builder_shown_class(row) == PATH_READ &&
			!path_is_under(row->source, builder->policy->home) &&
			builder->policy->rules[row->rule].file == NULL);
}

void builder_emit_row(struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	struct plan_op *op;
	bool shaded = !builder_is_duplicate(builder, row) && row->kind == PATH_KIND_DIRECTORY &&
		      row->class != PATH_WRITE && needs_shade(builder, row);

	if (is_copied(builder, index)) {
		emit_copy(builder, row, index);
		return;
	}

	if (builder_is_redundant(builder, index) && !shaded)
		return;
	emit_mount_point(builder, row, index);
	pin_git(builder, index);
	if (builder_is_duplicate(builder, row))
		emit_duplicate_mount(builder, row);
	else if (row->class == PATH_CACHE || row->class == PATH_GIT || row->class == PATH_STAGE ||
		 shaded)
		emit_overlay(builder, row);
	else
		emit_bind(builder, row);
	op = &builder->plan.ops[builder->plan.count - 1];
	if (is_systems(builder, index))
		op->flags &= ~(uint64_t)PLAN_IDMAP;
}

static void emit_layers(struct builder *builder, const struct view_path *row)
{
	struct plan_op *op =
		builder_emit_at(builder, PLAN_LAYERS, LAYER_PROTECT, upper_of(builder, row));

	op->rule = row->rule;
	/* the overlay's own directory has the mode of the upper one */
	op->source = row->class == PATH_STAGE ? row->source : NULL;
}

static void emit_duplicate(struct builder *builder, const struct view_path *row)
{
	struct plan_op *op = builder_emit_at(builder, PLAN_DUPLICATE,
					     needs_shade(builder, row) ? LAYER_HIDE : LAYER_MOUNT,
					     copy_of(builder, row));

	set_source(op, row);
}

void builder_emit_leases(struct builder *builder)
{
	for (size_t i = 0; i < builder->row_count; i++) {
		struct plan_op *op;

		if (builder->rows[i]->class != PATH_CACHE)
			continue;
		op = builder_emit_at(builder, PLAN_LEASE, LAYER_MOUNT, builder->rows[i]->upper);
		op->rule = builder->rows[i]->rule;
	}
	for (size_t i = 0; i < builder->row_count; i++)
		if (builder->rows[i]->class == PATH_GIT || builder->rows[i]->class == PATH_STAGE)
			emit_layers(builder, builder->rows[i]);
	/* last: it is seen with them (broker/staging.h) */
	for (size_t i = 0; builder->facts->copies && i < builder->row_count; i++)
		if (builder_is_duplicate(builder, builder->rows[i]) &&
		    !builder_is_in_copy(builder, builder->rows[i]))
			emit_duplicate(builder, builder->rows[i]);
}
