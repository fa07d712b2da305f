/*
 * The six questions about one run, and its layers, answered from its policy and plan. Pure.
 *
 * An explanation is a list of answers: how well each is in force (enum enforcement), by which
 * layer, in words, about which paths or names, by which rule. `bawn explain` prints it, and
 * `bawn verify` measures what it claims. What this build does not do is an answer too: "absent".
 */
#pragma once

#include "policy/layer.h"
#include "policy/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;
struct error;
struct held;
struct json;
struct limit_facts;
struct plan;
struct policy;
struct tier_choice;
struct view_path;

enum explain_question {
	EXPLAIN_COMMAND,
	EXPLAIN_READ,
	EXPLAIN_WRITE,
	EXPLAIN_CONNECT,
	EXPLAIN_IDENTITY,
	EXPLAIN_RECORD,
	EXPLAIN_RESOURCES,
	EXPLAIN_LAYERS,
	EXPLAIN_QUESTION_COUNT,
};

struct explain_answer {
	enum explain_question question;
	enum enforcement enforcement;
	enum layer layer;
	const char *text;
	const char **items; /* paths or names that the text speaks of */
	size_t item_count;
	struct rule_ref rule;
	const struct held *held; /* EXPLAIN_RESOURCES: the limit; NULL where it speaks of none */
};

struct explanation {
	struct explain_answer *answers; /* by question */
	size_t count;
};

/* What the policy does not say; strings are borrowed. */
struct explain_facts {
	bool host_root;		     /* as in struct plan_facts */
	const char *hash;	     /* of the compiled policy */
	const char *const *argv;     /* the command, NULL-ended; argv[0] may be missing */
	const char *const *withheld; /* names of variables that are not passed */
	size_t withheld_count;
	const char *const *tracked; /* files named like secrets that git has, and are shown */
	size_t tracked_count;
	bool secrets_are_cut;		  /* the workspace was too large to look for all of them */
	const struct limit_facts *limits; /* what this host offers to hold limits with */
	bool is_unrecorded;		  /* --no-trace */
	const struct tier_choice *tier;	  /* in which it runs */
	const char *tier_reason;
	uint32_t absent_layers; /* bits of enum layer: this host lacks them */
};

/* All memory is the arena's; -ENOMEM. */
int explain_build(const struct policy *policy, const struct plan *plan,
		  const struct explain_facts *facts, struct arena *arena,
		  struct explanation *ret_explanation, struct error *error);

/* How well a row of the view is in force: a name in a directory of the host's is watched. */
enum enforcement explain_row(const struct policy *policy, const struct plan *plan,
			     const struct view_path *row);

void explain_print(const struct explanation *explanation, struct buffer *buffer);
/* The answers by question, as members of an object that is open. */
void explain_json(const struct explanation *explanation, struct json *json);
