/*
 * The tier of a task and of its actions (policy/tier.h), with the facts of this host: what counts
 * when something is about to start.
 */
#pragma once

#include "policy/tier.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct decision;
struct denial_list;
struct effective;
struct error;
struct network_list;

/* What the host tells of the workspace: who may write there, and what the project proposes. */
uint32_t isolation_look(const struct effective *effective);

/* The tier of a decision (broker/decide.h): where none would be had, what was allowed is not. */
void isolation_decide(const struct effective *effective, struct decision *decision);

/*
 * Whether something with these facts, beyond the task's own, may start: 0, or -EPERM with the
 * denial and a sentence. The choice and its reason (the arena's) are set in both cases.
 */
int isolation_pass(const struct effective *effective, uint32_t facts, struct arena *arena,
		   struct tier_choice *ret_choice, const char **ret_reason,
		   struct denial_list *denials, struct error *error)
	__attribute__((warn_unused_result));
