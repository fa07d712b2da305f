/*
 * A request under the policies of its place (workspace/policy_layers.h) and those that it names:
 * what they say becomes part of the request, with the rule of each thing, and what they forbid and
 * a flag asks for is refused.
 *
 * Then flags, the caller's own word: they add what may be seen, and narrow; what the policies hide
 * stays hidden, a limit is not raised, "false" stays false, and of what is locked nothing is added.
 * What a policy asks for and this build lacks is refused by name.
 */
#pragma once

#include "broker/effective.h"
#include "workspace/policy_layers.h"

struct arena;
struct denial_list;
struct error;

struct binding {
	struct policy_layers layers;
	struct request request; /* the whole of it; strings are the arena's or the caller's */
	struct rule_ref limit_rules[LIMIT_COUNT]; /* id NULL: a flag's, or built in */
	uint64_t idle_ns, lifetime_ns;		  /* of a live task; 0: nothing is said */
	struct rule_ref live_rule;		  /* which allows no live task; id NULL: none */
	enum tier floor;
	enum tier_change change;
	struct rule_ref floor_rule, change_rule; /* id NULL: nothing is said */
};

/* What a flag asked for and a policy forbids. */
struct binding_refusal {
	const char *target;
	struct rule_ref rule;
};

/*
 * -EPERM with the refusal where a policy says no; other errors are of the file, or of what this
 * build lacks (-EOPNOTSUPP). workspace: the real one.
 */
int binding_make(const struct caller *host, int state_fd, const struct request *request,
		 const char *workspace, struct arena *arena, struct binding *ret_binding,
		 struct binding_refusal *refusal, struct error *error);

/*
 * A file may not lie where the task can write, nor be named by a way through there; and the task
 * may write no file that a later start would read. -EPERM.
 */
int binding_check_place(const struct binding *binding, const struct policy *policy,
			struct arena *arena, struct error *error);
