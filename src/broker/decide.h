/*
 * What becomes of a command line before it runs: classification (policy/classify.h), its shell
 * strings read by bawn-parse (broker/parser.h), and the verdicts of a policy (policy/verdict.h).
 * Runs nothing and asks nobody. UX, not a boundary.
 */
#pragma once

#include "broker/parser.h"
#include "broker/program_file.h"
#include "policy/classify.h"
#include "policy/tier.h"
#include "policy/verdict.h"

#include <stddef.h>

struct arena;
struct caller;
struct policy;

/* More words than a person could look through are not looked at. */
#define DECIDE_LIMIT_WORDS 65536u

/* What a decision is made for. */
struct decide_place {
	const struct caller *host;
	const char *cwd;	     /* clean and real, or NULL: not known */
	const struct policy *policy; /* of a box, whose paths and programs are meant; NULL: none */
	const char *const *environ;  /* of the action in the box; NULL: the policy's */
};

struct decision {
	struct verdict_list verdicts;
	struct classify classify;
	struct classify_facts facts;
	struct verdict_facts judging;
	struct program_files files;
	struct tier_choice tier; /* in which it would run, by isolation_decide() */
	const char *tier_reason; /* NULL: there is no box */
	struct decision_links {
		struct arena *arena;
		const struct policy *policy;
	} links;
};

/*
 * Both fill a zeroed decision, which must stay where it is, and cannot fail: whatever goes wrong
 * asks. Words and text are borrowed. Paths are resolved by the file system as it is now; those of a
 * box where its view shows them.
 */
void decide_argv(struct decision *decision, struct arena *arena, struct parser *parser,
		 const struct decide_place *place, const char *const *argv, size_t argc);
void decide_shell(struct decision *decision, struct arena *arena, struct parser *parser,
		  const struct decide_place *place, const char *text, size_t length);

/*
 * Makes of a decision what a start makes of it: where no rule of the policy speaks of requests,
 * the gate looks at none (broker/gate.h), and the wall alone decides.
 */
void decide_as_gate(struct decision *decision);
