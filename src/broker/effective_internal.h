/*
 * The inside of effective.c, for effective*.c alone: a maker is one effective policy being made,
 * and each of the files adds its part to it. Functions return 0 or a negative errno, with
 * maker->error set.
 */
#pragma once

#include "broker/effective.h"
#include "workspace/root.h"

struct maker {
	const struct request *request;
	struct arena *arena;
	struct effective *effective;
	struct root root;     /* the workspace */
	struct policy policy; /* before it is encoded */
	struct denial_list *denials;
	enum effective_failure failure;
	bool host_suspect; /* what failed may be for want of something in the host's kernel */
	struct error *error;
	bool state_is_exposed; /* to what was asked for: nothing is written there */
};

/* --- effective.c */

/* A request that no rule allows: a person would have to; denied where nobody can be asked. */
int maker_ask(struct maker *maker, enum denial_kind kind, enum rule_builtin rule,
	      const char *target, const char *reason);
/* A refusal is on record, but not where a task that was let in before could write. */
int maker_refuse_danger(struct maker *maker, const char *path, const char *danger);
/* The rule of a flag; position: in argv, 0: not told. */
uint32_t maker_flag_rule(struct maker *maker, const char *flag, uint32_t position);
int maker_add_row(struct maker *maker, struct view_path row);

/* --- effective_path.c */

/* names: of those that hide and protect, or of the others. */
int maker_add_flag_paths(struct maker *maker, bool names);
/* --hide-strict: refuses where hiding is a mask that the host can lift by a rename. */
int maker_check_strict(struct maker *maker);

/* --- effective_environment.c */

int maker_add_environment(struct maker *maker);

/* --- effective_workspace.c */

/* The workspace and the directory to start in. */
int maker_find_root(struct maker *maker);
int maker_add_workspace(struct maker *maker);
/* What the workspace has that the host's tools, or nobody else, is to be kept from. */
int maker_look_into_workspace(struct maker *maker);

/* --- effective_diagnose.c */

/* To an error that is set: what of the host it comes from; directory NULL: the current one. */
void effective_diagnose_at(const struct effective *effective, const char *directory,
			   struct error *error);
