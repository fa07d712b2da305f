/*
 * The isolation tier of a task and of each of its actions: by the policy's floor, raised by facts
 * where it says `isolation.on-change`. One function from facts to a tier and its reason; what is
 * known of the host and of commands is its input. Pure.
 *
 * Without on-change facts raise nothing: the choice then tells what they would call for.
 */
#pragma once

#include "policy/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct classify;
struct document;
struct json;
struct policy;

enum tier {
#define TIER(name, word, built) TIER_##name,
#include "policy/tier.def"
#undef TIER
	TIER_COUNT,
};

enum tier_fact {
#define FACT(name, word, text) TIER_FACT_##name,
#include "policy/tier.def"
#undef FACT
	TIER_FACT_COUNT,
};

/* How much of the os tier this build sets up: all of it, or nothing starts. */
#define TIER_RUNG "full"

/* A set of facts: TIER_HAS(...) | ... */
#define TIER_HAS(fact) (UINT32_C(1) << TIER_FACT_##fact)
#define TIER_FACTS_ALL ((UINT32_C(1) << TIER_FACT_COUNT) - 1)
/* What an action leaves for those after it; the rest is about itself alone. */
#define TIER_FACTS_LASTING (TIER_HAS(PACKAGES) | TIER_HAS(CREDENTIAL) | TIER_HAS(RECEIVED))

/* What becomes of an action whose facts call for more than the task has. */
enum tier_change {
	TIER_KEEP,  /* nothing is said: the floor counts alone */
	TIER_RAISE, /* it runs in the tier that they call for */
	TIER_ASK,   /* a person is asked */
	TIER_STOP,  /* it does not run, and a live task ends */
	TIER_CHANGE_COUNT,
};

/* What a policy says of isolation; rules are indices into its table, 0: it says nothing. */
struct tier_policy {
	enum tier floor;
	enum tier_change change;
	uint32_t floor_rule, change_rule;
};

enum tier_verdict {
	TIER_RUNS,
	TIER_IS_MISSING, /* the tier is not built */
	TIER_ASKS,
	TIER_STOPS,
};

struct tier_choice {
	enum tier tier;	      /* that counts */
	enum tier called_for; /* by the facts */
	enum tier_verdict verdict;
	uint32_t facts;
	const char *why; /* of called_for; static */
};

struct tier_choice tier_choose(const struct tier_policy *policy, uint32_t facts);

/* Of the policy and of what the host tells of its workspace (SHARED, UNREVIEWED). */
uint32_t tier_facts(const struct policy *policy, uint32_t of_workspace);

/* What the classification of a command adds. */
uint32_t tier_facts_of(const struct classify *classify);

/* Of a compiled policy; false for values that it cannot have. */
bool tier_is_valid(const struct tier_policy *tier);

bool tier_is_built(enum tier tier);
const char *tier_name(enum tier tier);
const char *tier_fact_name(enum tier_fact fact);
const char *tier_change_name(enum tier_change change);

/* TIER_COUNT and TIER_KEEP for other words. */
enum tier tier_find(const char *word);
enum tier_change tier_change_find(const char *word);

/* One sentence, the arena's; NULL when memory ran out. */
const char *tier_reason(const struct tier_policy *policy, const struct tier_choice *choice,
			struct arena *arena);

/* The rule that the choice goes by, of the policy; a built-in one where it says nothing. */
struct rule_ref tier_rule(const struct policy *policy, const struct tier_choice *choice);

/* An object of this name: name, rung, called_for, reason, rule, facts. */
void tier_json(const struct policy *policy, const struct tier_choice *choice, const char *reason,
	       const char *name, struct json *json);
