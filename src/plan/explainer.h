/*
 * The explainer's own state, for its parts alone: explain.c and explain_strict.c.
 */
#pragma once

#include "plan/explain.h"
#include "plan/plan.h"
#include "policy/policy.h"

struct maker {
	const struct policy *policy;
	const struct plan *plan;
	const struct explain_facts *facts;
	struct arena *arena;
	struct explanation explanation;
	bool failed; /* memory, beyond the arena's */
};

enum row_state {
	ROW_EXACT,
	ROW_MASK,  /* a mask of one name in a directory that the host writes too */
	ROW_LATER, /* no such name now; covered when it appears */
};

/* A new answer at the end; never NULL: the arena latches that memory ran out. */
struct explain_answer *explainer_answer(struct maker *maker, enum explain_question question,
					enum enforcement enforcement, enum layer layer,
					struct rule_ref rule);
void explain_item(struct maker *maker, struct explain_answer *to, const char *item);

/* One answer per rule for the rows of a class (and, for names, of a state). */
void explain_rows(struct maker *maker, enum explain_question question, enum path_class class,
		  enum row_state state, enum enforcement enforcement, enum layer layer,
		  const char *text);

/* Of a policy that executes listed programs alone; else nothing. */
void explainer_strict(struct maker *maker);
