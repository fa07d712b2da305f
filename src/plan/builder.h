/*
 * The planner's own state, for its parts alone: build.c (HOST and BOX operations), build_enter.c
 * (ENTER operations) and strict.c (what a policy that executes listed programs alone adds).
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

/* A new operation at the plan's end; never NULL: the arena latches that memory ran out. */
struct plan_op *builder_emit(struct builder *builder, enum plan_kind kind, enum layer layer);
struct plan_op *builder_emit_at(struct builder *builder, enum plan_kind kind, enum layer layer,
				const char *target);

/* A copy stands for the host's own object, which is bound where a copy has no place. */
enum path_class builder_shown_class(const struct view_path *row);

/* A row that shows again what a row above it shows in the same way. */
bool builder_is_redundant(const struct builder *builder, size_t index);

/* The deepest row at or above this one's path that has a mount of its own, of those before it. */
const struct view_path *builder_placed_before(const struct builder *builder, size_t index);

/* What each action's process does before its exec. */
void builder_emit_enter(struct builder *builder);

/* Of a strict policy: what shows anything but a program becomes no place to execute from. */
void builder_make_strict(struct builder *builder);
