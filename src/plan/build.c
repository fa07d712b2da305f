#include "plan/builder.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/place.h"

#include <errno.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>

struct plan_op *builder_emit(struct builder *builder, enum plan_kind kind, enum layer layer)
{
	static struct plan_op nowhere;
	struct plan_op *ops = arena_push(builder->arena, builder->plan.ops, builder->plan.count,
					 sizeof(struct plan_op));

	if (!ops) {
		nowhere = (struct plan_op){ 0 };
		return &nowhere;
	}
	builder->plan.ops = ops;
	ops += builder->plan.count++;
	*ops = (struct plan_op){ .kind = kind, .layer = layer };
	return ops;
}

struct plan_op *builder_emit_at(struct builder *builder, enum plan_kind kind, enum layer layer,
				const char *target)
{
	struct plan_op *op = builder_emit(builder, kind, layer);

	op->target = target;
	return op;
}

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
static bool is_hidden(const struct view *view, const char *target)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE &&
		    path_is_under(target, view->paths[i].target))
			return true;
	return false;
}

/* What had an overlay over its own directory is a copy of that directory. */
static bool is_duplicate(const struct builder *builder, const struct view_path *row)
{
	return builder->facts->copies && (row->class == PATH_GIT || row->class == PATH_STAGE);
}

/* In a copied workspace a git directory is a part of the copy: its mount is a pin. */
static bool is_in_copy(const struct builder *builder, const struct view_path *row)
{
	return is_duplicate(builder, row) && row->class == PATH_GIT &&
	       path_is_under(row->target, builder->policy->workspace);
}

/* The deepest mounted row at or above the path, among the first `limit` rows. */
static const struct view_path *mount_above(const struct builder *builder, const char *path,
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

static bool was_made(const struct builder *builder, const char *path)
{
	for (size_t i = 0; i < builder->made_count; i++)
		if (strcmp(builder->made[i], path) == 0)
			return true;
	return false;
}

static void note_made(struct builder *builder, const char *path)
{
	const char **made =
		arena_push(builder->arena, builder->made, builder->made_count, sizeof(*made));

	if (!made)
		return;
	builder->made = made;
	made[builder->made_count++] = path;
}

/* What lies in the root itself, and not below a private area, is part of the skeleton. */
static uint64_t kept(const struct builder *builder, const char *target)
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
static void make_directories(struct builder *builder, const char *path, size_t mounted, bool last)
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
		if (was_made(builder, part))
			continue;
		const struct view_path *above = mount_above(builder, part, mounted);

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
		op->flags = kept(builder, part);
		note_made(builder, part);
	}
}

static void emit_areas(struct builder *builder)
{
	struct plan_op *areas = builder_emit(builder, PLAN_AREAS, LAYER_MOUNT);

	areas->number = builder->policy->limits.values[LIMIT_AREA_SIZE];
	areas->flags = builder->policy->limits.values[LIMIT_AREA_INODES];
	for (size_t i = 0; i < builder->area_count; i++)
		builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT, builder->areas[i].name)
			->number = builder->areas[i].mode;
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
static void sort_rows(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	builder->rows = arena_array(builder->arena, view->count + 1, sizeof(void *));
	if (!builder->rows)
		return;
	for (size_t i = 0; i < view->count; i++)
		if (is_mount(&view->paths[i]) && !is_hidden(view, view->paths[i].target))
			builder->rows[builder->row_count++] = &view->paths[i];
	qsort(builder->rows, builder->row_count, sizeof(void *), by_depth);
}

bool builder_is_redundant(const struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	const struct view_path *above = mount_above(builder, row->target, index);

	return above && builder_shown_class(above) == builder_shown_class(row) &&
	       above->class != PATH_CACHE && above->class != PATH_GIT &&
	       above->class != PATH_STAGE &&
	       strcmp(path_below(row->target, above->target),
		      path_below(row->source, above->source)) == 0 &&
	       path_is_under(row->source, above->source);
}

/* The deepest row at or above the path that has a mount of its own. */
static const struct view_path *placed_above(const struct builder *builder, const char *path)
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

static bool is_hide_below(const struct view_path *hide, const struct view_path *row)
{
	return hide->class == PATH_HIDE && path_is_under(hide->target, row->target) &&
	       strcmp(hide->target, row->target) != 0;
}

/*
 * A secret that git tracks, in a stage: absent it would look deleted, and the task's git would
 * commit that. What cannot be read it does not commit.
 */
static bool is_masked(const struct builder *builder, const struct view_path *hide,
		      const struct view_path *row)
{
	return row->class == PATH_STAGE && hide->class == PATH_HIDE &&
	       hide->kind == PATH_KIND_FILE && !builder->policy->rules[hide->rule].file;
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

		if (!is_hide_below(hide, row) || is_masked(builder, hide, row))
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

			if (!parent || was_made(builder, parent))
				continue;
			builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_HIDE, parent)->number =
				0755;
			note_made(builder, parent);
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
		    !is_masked(builder, &view->paths[i], row))
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
		make_directories(builder, row->target, index, true);
		return;
	}
	make_directories(builder, row->target, index, false);
	if (!mount_above(builder, row->target, index) && !was_made(builder, row->target)) {
		struct plan_op *op = builder_emit_at(builder, PLAN_FILE, LAYER_MOUNT, row->target);

		op->source = "";
		op->number = 0444;
		op->flags = kept(builder, row->target);
		note_made(builder, row->target);
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

	if (row->class != PATH_COPY || !kept(builder, row->target) ||
	    mount_above(builder, row->target, index))
		return false;
	for (size_t i = 0; i < view->count; i++)
		if (&view->paths[i] != row && path_is_under(view->paths[i].target, row->target))
			return false;
	return true;
}

static void emit_copy(struct builder *builder, const struct view_path *row, size_t index)
{
	struct plan_op *op;

	make_directories(builder, row->target, index, false);
	op = builder_emit_at(builder, PLAN_COPY, LAYER_MOUNT, row->target);
	op->flags = PLAN_KEPT;
	op->state = row->state;
	set_source(op, row);
	note_made(builder, row->target);
}

/* A bind of every directory between the writable root and the path, so that none is renamed. */
static void emit_pins(struct builder *builder, const struct view_path *row,
		      const struct view_path *root)
{
	const char *below = path_below(row->target, root->target);

	for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *parent = arena_copy_bytes(builder->arena, row->target,
						(size_t)(slash - row->target));

		if (!parent || was_made(builder, parent))
			continue;
		builder_emit_at(builder, PLAN_PIN, LAYER_PROTECT, parent)->rule = row->rule;
		note_made(builder, parent);
	}
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
		emit_pins(builder, builder->rows[index], above);
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

	if (is_in_copy(builder, row)) {
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
static void emit_stores(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i], *above;
		struct plan_op *op;

		if (row->class != PATH_OBJECTS || is_hidden(view, row->target))
			continue;
		above = placed_above(builder, row->target);
		if (!above || above->class != PATH_GIT || is_duplicate(builder, above))
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

static void emit_row(struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	struct plan_op *op;
	bool shaded = !is_duplicate(builder, row) && row->kind == PATH_KIND_DIRECTORY &&
		      row->class != PATH_WRITE && needs_shade(builder, row);

	if (is_copied(builder, index)) {
		emit_copy(builder, row, index);
		return;
	}

	if (builder_is_redundant(builder, index) && !shaded)
		return;
	emit_mount_point(builder, row, index);
	pin_git(builder, index);
	if (is_duplicate(builder, row))
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

static void emit_leases(struct builder *builder)
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
		if (is_duplicate(builder, builder->rows[i]) &&
		    !is_in_copy(builder, builder->rows[i]))
			emit_duplicate(builder, builder->rows[i]);
}

static void emit_namespaces(struct builder *builder)
{
	static const struct {
		uint64_t flag;
		enum layer layer;
	} namespaces[] = {
		{ CLONE_NEWUSER, LAYER_USER_NAMESPACE },
		{ CLONE_NEWNS, LAYER_MOUNT },
		{ CLONE_NEWPID, LAYER_PID },
		{ CLONE_NEWNET, LAYER_NETWORK },
		{ CLONE_NEWIPC, LAYER_IPC },
		{ CLONE_NEWUTS, LAYER_UTS },
		{ CLONE_NEWCGROUP, LAYER_CGROUP },
	};

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		builder_emit(builder, PLAN_NAMESPACE, namespaces[i].layer)->number =
			namespaces[i].flag;
}

static void emit_made_rows(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		struct plan_op *op;

		if (row->class != PATH_LINK && row->class != PATH_FILE)
			continue;
		if (is_hidden(view, row->target) || was_made(builder, row->target) ||
		    mount_above(builder, row->target, builder->row_count))
			continue;
		make_directories(builder, row->target, 0, false);
		op = builder_emit_at(builder, row->class == PATH_LINK ? PLAN_LINK : PLAN_FILE,
				     LAYER_MOUNT, row->target);
		op->source = row->source;
		op->number = row->class == PATH_FILE ? 0644 : 0;
		op->flags = kept(builder, row->target);
		op->rule = row->rule;
		note_made(builder, row->target);
	}
}

/* What inputs are mounted on: the area that they lie in is shown read-only afterwards. */
static void emit_inputs(struct builder *builder)
{
	const char *names = &VIEW_INPUTS[sizeof("/run/") - 1];

	for (size_t i = 0; i < builder->row_count; i++) {
		const struct view_path *row = builder->rows[i];
		bool is_file = row->kind == PATH_KIND_FILE;
		struct plan_op *op;

		if (!view_is_input(row))
			continue;
		if (!was_made(builder, VIEW_INPUTS)) {
			builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT, names)->number =
				0755;
			note_made(builder, VIEW_INPUTS);
		}
		op = builder_emit_at(builder, is_file ? PLAN_AREA_FILE : PLAN_AREA_DIRECTORY,
				     LAYER_MOUNT, row->target + sizeof("/run/") - 1);
		op->source = is_file ? "" : NULL;
		op->number = is_file ? 0444 : 0755;
		note_made(builder, row->target);
	}
}

/* Only where it is used: each new inode costs. */
static void emit_mask_link(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE && view->paths[i].kind == PATH_KIND_LINK) {
			builder_emit_at(builder, PLAN_AREA_LINK, LAYER_HIDE,
					&PLAN_MASK_LINK[sizeof("/run/") - 1])
				->source = PLAN_MASK_LINK_TEXT;
			return;
		}
}

/* The evidence of being inside, and what masks are made of: in an area shown read-only. */
static void emit_evidence(struct builder *builder)
{
	const struct {
		const char *path, *content;
		unsigned mode;
	} files[] = {
		{ PLAN_EVIDENCE "/policy.txt", builder->facts->summary_text, 0444 },
		{ PLAN_EVIDENCE "/policy.json", builder->facts->summary_json, 0444 },
		{ PLAN_CANARY, "readable only without Landlock\n", 0444 },
		{ PLAN_MASK_FILE, "", 0 },
		{ PLAN_MASK_EMPTY, "", 0444 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct plan_op *op = builder_emit_at(builder, PLAN_AREA_FILE, LAYER_MOUNT,
						     files[i].path + sizeof("/run/") - 1);

		op->source = files[i].content;
		op->number = files[i].mode;
	}
	builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT,
			&PLAN_MASK_DIRECTORY[sizeof("/run/") - 1]);
	emit_inputs(builder);
	emit_mask_link(builder);
}

static void emit_proc(struct builder *builder)
{
	/* world-readable facts about the host, or oracles for attacks on its kernel */
	static const char *const masked[] = { "/proc/kallsyms", "/proc/config.gz", "/proc/keys",
					      "/proc/cmdline", "/proc/modules" };
	bool nested = builder->policy->flags & POLICY_NESTED_USERNS;
	struct plan_op *op = builder_emit_at(builder, PLAN_PROC, LAYER_PROC, "/proc");

	if (nested)
		/* a nested sandbox mounts its own proc only where this one is wholly visible */
		return;
	op->flags = PLAN_READ_ONLY;
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++)
		builder_emit_at(builder, PLAN_MASK, LAYER_PROC, masked[i])->flags = PLAN_OPTIONAL |
										    PLAN_EMPTY;
}

/* In an overlay names are hidden by whiteouts, but protected as anywhere. */
static bool is_in_place(const struct view_path *row, const struct view_path *above)
{
	return above->class == PATH_WRITE ||
	       ((above->class == PATH_GIT || above->class == PATH_STAGE) &&
		row->class == PATH_PROTECT);
}

/* Hide and protect where the host's own directory is writable in place. */
static void emit_in_place(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		const struct view_path *above;
		struct plan_op *op;

		if (row->class != PATH_HIDE && row->class != PATH_PROTECT)
			continue;
		above = placed_above(builder, row->target);
		if (!above || !(is_in_place(row, above) || is_masked(builder, row, above)))
			continue;
		if (row->class == PATH_HIDE && row->kind != PATH_KIND_MISSING) {
			emit_pins(builder, row, above);
			op = builder_emit_at(builder, PLAN_MASK, LAYER_HIDE, row->target);
			op->number = row->kind;
			op->rule = row->rule;
		} else if (row->class == PATH_PROTECT && !is_hidden(view, row->target)) {
			emit_pins(builder, row, above);
			op = builder_emit_at(builder, PLAN_PIN, LAYER_PROTECT, row->target);
			op->flags = PLAN_READ_ONLY |
				    (row->kind == PATH_KIND_LINK ? PLAN_LINK_KIND : 0);
			op->rule = row->rule;
		}
	}
}

/* The base directories of the home (XDG Base Directory Specification), which programs expect. */
static void emit_home(struct builder *builder)
{
	static const char *const names[] = { ".cache", ".config", ".local/share" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make_directories(
			builder,
			arena_format(builder->arena, "%s/%s", builder->policy->home, names[i]), 0,
			true);
}

static void emit_count(struct builder *builder, const char *name, enum limit limit)
{
	struct plan_op *op = builder_emit_at(builder, PLAN_COUNT, LAYER_USER_NAMESPACE, name);

	op->number = builder->policy->limits.values[limit];
}

/* What the kernel counts by user namespace, and by the user around it (user_namespaces(7)). */
static void emit_counts(struct builder *builder)
{
	static const char *const kinds[] = {
		"max_cgroup_namespaces", "max_ipc_namespaces", "max_mnt_namespaces",
		"max_net_namespaces",	 "max_pid_namespaces", "max_time_namespaces",
		"max_user_namespaces",	 "max_uts_namespaces",
	};

	emit_count(builder, "max_inotify_instances", LIMIT_WATCHERS);
	emit_count(builder, "max_inotify_watches", LIMIT_WATCHES);
	/* the filter lets nobody else make one */
	if (!(builder->policy->flags & POLICY_NESTED_USERNS))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		emit_count(builder, kinds[i], LIMIT_NAMESPACES);
}

static void emit_view(struct builder *builder)
{
	struct plan_op *root;
	struct plan_op *terminals;

	emit_areas(builder);
	emit_evidence(builder);
	root = builder_emit(builder, PLAN_ROOT, LAYER_MOUNT);
	root->flags = PLAN_READ_ONLY;
	for (size_t i = 0; i < builder->area_count; i++) {
		struct plan_op *op;

		make_directories(builder, builder->areas[i].target, 0, true);
		op = builder_emit_at(builder, PLAN_AREA, LAYER_MOUNT, builder->areas[i].target);
		op->source = builder->areas[i].name;
		op->flags = builder->areas[i].flags;
	}
	emit_home(builder);
	emit_made_rows(builder);
	for (size_t i = 0; i < builder->row_count; i++)
		emit_row(builder, i);
	emit_stores(builder);
	make_directories(builder, "/proc", 0, true);
	emit_proc(builder);
	make_directories(builder, "/dev/pts", 0, true);
	terminals = builder_emit_at(builder, PLAN_DEVPTS, LAYER_SESSION, "/dev/pts");
	terminals->number = builder->policy->limits.values[LIMIT_TERMINALS];
	terminals->flags = builder->policy->flags & POLICY_TTY ? PLAN_HANDED : 0;
	emit_in_place(builder);
	builder_emit(builder, PLAN_PIVOT, LAYER_MOUNT);
}

/* The name of the skeleton is the hash of what it is made of. */
static const char *skeleton_path(const struct builder *builder)
{
	unsigned char digest[SHA256_BYTES];
	char hex[SHA256_HEX_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	for (size_t i = 0; i < builder->plan.count; i++) {
		const struct plan_op *op = &builder->plan.ops[i];
		const unsigned char head[] = { (unsigned char)op->kind, (unsigned char)op->number,
					       (unsigned char)(op->number >> 8) };

		if (!plan_is_kept(op))
			continue;
		/* with their NULs, so that no two lists read the same */
		sha256_update(&hash, head, sizeof(head));
		sha256_update(&hash, op->target, strlen(op->target) + 1);
		if (op->source)
			sha256_update(&hash, op->source, strlen(op->source) + 1);
		if (op->kind == PLAN_COPY)
			sha256_update(&hash, &op->state, sizeof(op->state));
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, hex);
	return arena_format(builder->arena, "%s/%.32s", builder->facts->skeletons, hex);
}

static void name_skeleton(struct builder *builder)
{
	const char *path = skeleton_path(builder);

	for (size_t i = 0; i < builder->plan.count; i++) {
		struct plan_op *op = &builder->plan.ops[i];

		if (op->kind == PLAN_SKELETON)
			op->target = path;
		else if (op->kind == PLAN_ROOT)
			op->source = path;
	}
}

static void emit_identity(struct builder *builder, enum plan_kind kind)
{
	struct plan_op *op = builder_emit(builder, kind, LAYER_USER_NAMESPACE);

	op->number = builder->policy->uid;
	op->flags = builder->policy->gid;
}

static void emit_box(struct builder *builder)
{
	const struct policy *policy = builder->policy;

	emit_namespaces(builder);
	emit_identity(builder, PLAN_IDENTITY);
	builder_emit(builder, PLAN_HOSTNAME, LAYER_UTS)->source = PLAN_BOX_HOSTNAME;
	builder_emit(builder, PLAN_LOOPBACK, LAYER_NETWORK);
	for (size_t i = 0; i < policy->listener_count; i++)
		builder_emit(builder, PLAN_LISTENER, LAYER_NETWORK)->number = i;
	if (policy->egress.mode == EGRESS_POLICY) {
		builder_emit(builder, PLAN_ROUTES, LAYER_NETWORK);
		builder_emit(builder, PLAN_CAPTURE, LAYER_NETWORK)->number = PLACE_LISTENER_PORT;
	}
	emit_view(builder);
	emit_counts(builder);
	emit_identity(builder, PLAN_NESTED_USER);
	/* who owns one mounts cgroupfs, and could write to the caller's groups there */
	if ((policy->flags & POLICY_NESTED_USERNS) && builder->facts->owns_cgroup)
		builder_emit(builder, PLAN_NO_CGROUP_NAMESPACES, LAYER_CGROUP);
	builder_emit(builder, PLAN_INIT_CAPABILITIES, LAYER_CAPABILITIES);
	builder_emit(builder, PLAN_INIT_NO_NEW_PRIVS, LAYER_NO_NEW_PRIVS);
	builder_emit(builder, PLAN_INIT_LANDLOCK, LAYER_LANDLOCK);
	builder_emit(builder, PLAN_INIT_SECCOMP, LAYER_SECCOMP);
	builder_emit(builder, PLAN_INIT, LAYER_INIT);
}

int plan_build(const struct policy *policy, const struct plan_facts *facts, struct arena *arena,
	       struct plan *ret_plan, struct error *error)
{
	const struct area areas[] = {
		{ "home", policy->home, 0700, 0 },
		{ "tmp", "/tmp", 01777, 0 },
		{ "vartmp", "/var/tmp", 01777, 0 },
		{ "shm", "/dev/shm", 01777, PLAN_NO_EXEC },
		{ "runtime", arena_format(arena, "/run/user/%u", policy->uid), 0700, 0 },
		{ "bawn", PLAN_EVIDENCE, 0755, PLAN_READ_ONLY | PLAN_NO_EXEC },
	};
	struct builder builder = {
		.policy = policy,
		.facts = facts,
		.arena = arena,
		.idmap = facts->host_root ? PLAN_IDMAP : 0,
		.areas = areas,
		.area_count = sizeof(areas) / sizeof(areas[0]),
	};

	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "planning");

	sort_rows(&builder);
	if (builder.rows) {
		builder_emit_at(&builder, PLAN_TASK_DIRECTORY, LAYER_MOUNT, facts->task_directory)
			->source = facts->spares;
		emit_leases(&builder);
		builder_emit(&builder, PLAN_SKELETON, LAYER_MOUNT);
		emit_box(&builder);
		builder_emit_enter(&builder);
		if (policy->flags & POLICY_EXEC_STRICT)
			builder_make_strict(&builder);
		name_skeleton(&builder);
	}
	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "planning");
	if (builder.fault)
		return error_set(error, EINVAL,
				 "%s lies inside of another shown path and has no place there; "
				 "show it alone, or the path above it",
				 builder.fault);
	*ret_plan = builder.plan;
	return 0;
}
