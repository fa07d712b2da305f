/*
 * The planner's own state, for its parts alone: build.c and the build_*.c that it calls (HOST and
 * BOX operations), build_enter.c (ENTER operations) and strict.c (what a policy that executes
 * listed programs alone adds).
 */
#pragma once

#include "plan/plan.h"

/* The private areas: directories of one tmpfs, each mounted at its place. */
struct area {
	const char *name, *target;
	unsigned mode;
	uint64_t flags;
};

struct builder {
	const struct policy *policy;
	const struct plan_facts *facts;
	struct arena *arena;
	struct plan plan;
	const char **made; /* directories that exist in the new root already */
	size_t made_count;
	const struct view_path **rows; /* mounts, shallow first */
	size_t row_count;
	uint64_t idmap; /* PLAN_IDMAP where the caller is the host's root */
	unsigned shades;
	const struct area *areas; /* the private areas */
	size_t area_count;
	const char *fault; /* the first row that could not be placed */
};

/* --- build.c: the order of the operations */

/* A new operation at the plan's end; never NULL: the arena latches that memory ran out. */
struct plan_op *builder_emit(struct builder *builder, enum plan_kind kind, enum layer layer);
struct plan_op *builder_emit_at(struct builder *builder, enum plan_kind kind, enum layer layer,
				const char *target);

/* --- build_rows.c: the rows that become mounts */

/* Fills builder->rows: shallow first, without those that a hide row takes away. */
void builder_sort_rows(struct builder *builder);
/* A copy stands for the host's own object, which is bound where a copy has no place. */
enum path_class builder_shown_class(const struct view_path *row);
/* True when a hide row stands at or above the target: deny beats allow. */
bool builder_is_hidden(const struct view *view, const char *target);
/* What had an overlay over its own directory is a copy of that directory. */
bool builder_is_duplicate(const struct builder *builder, const struct view_path *row);
/* In a copied workspace a git directory is a part of the copy: its mount is a pin. */
bool builder_is_in_copy(const struct builder *builder, const struct view_path *row);
/* Hidden below a stage by a mask, not by its absence. */
bool builder_is_masked(const struct builder *builder, const struct view_path *hide,
		       const struct view_path *row);
/* A row that shows again what a row above it shows in the same way. */
bool builder_is_redundant(const struct builder *builder, size_t index);
/* The deepest row at or above the path, among the first `limit` rows; NULL: there is none. */
const struct view_path *builder_mount_above(const struct builder *builder, const char *path,
					    size_t limit);
/* The deepest row at or above the path that has a mount of its own; NULL: there is none. */
const struct view_path *builder_placed_above(const struct builder *builder, const char *path);
/* The same for this row's path, of the rows before it. */
const struct view_path *builder_placed_before(const struct builder *builder, size_t index);

/* --- build_made.c: what exists in the new root */

bool builder_was_made(const struct builder *builder, const char *path);
void builder_note_made(struct builder *builder, const char *path);
/* PLAN_KEPT for what lies in the root itself, and so in the skeleton; else 0. */
uint64_t builder_kept_flag(const struct builder *builder, const char *target);
/*
 * Directories of ours that lead to the path (and itself where `last`), where the first `mounted`
 * rows are mounts already. Sets builder->fault where there can be none.
 */
void builder_make_directories(struct builder *builder, const char *path, size_t mounted, bool last);

/* --- build_mount.c: rows are shown */

/* What the host has for them: leases, layers, copies. */
void builder_emit_leases(struct builder *builder);
void builder_emit_row(struct builder *builder, size_t index);
/* Packs of git directories, in the overlays that are there by now. */
void builder_emit_stores(struct builder *builder);

/* --- build_in_place.c: masks and pins */

/* A bind of every directory between the writable root and the path, so that none is renamed. */
void builder_emit_pins(struct builder *builder, const struct view_path *row,
		       const struct view_path *root);
/* Hide and protect where the host's own directory is writable in place. */
void builder_emit_in_place(struct builder *builder);

/* --- build_evidence.c */

/* The evidence of being inside, and what masks and inputs are mounted from and on. */
void builder_emit_evidence(struct builder *builder);

/* --- build_enter.c */

/* What each action's process does before its exec. */
void builder_emit_enter(struct builder *builder);

/* --- strict.c */

/* Of a strict policy: what shows anything but a program becomes no place to execute from. */
void builder_make_strict(struct builder *builder);
