/*
 * The gate before the start of an action: where a policy has rules about requests, the command is
 * classified and judged by them (broker/decide.h), and what they ask for goes to a person
 * (broker/approval.h). Where it says what becomes of facts (isolation.on-change), so is the tier
 * that they call for (broker/isolation.h). Without either nothing is looked at and nothing costs:
 * what is not refused here is the wall's to refuse.
 */
#pragma once

#include "trace/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct action;
struct arena;
struct denial_list;
struct effective;
struct error;
struct parser;

/* More rows are not kept with the action; those that are no "allow" come first. */
#define GATE_LIMIT_VERDICTS 64u

struct gate {
	const struct effective *effective;
	struct parser *parser; /* starts when a shell string is there, and stays with its owner */
	struct arena *arena;   /* of verdicts, and of reasons in denials */
	uint32_t facts;	       /* enum tier_fact: what the task's actions have brought so far */
};

/* What was judged, for the record: the action as a whole, then its requests; count 0: nothing. */
struct gate_verdicts {
	const struct event_verdict *rows;
	size_t count;
	uint32_t facts; /* those, and what this action leaves for later ones */
	bool stops;	/* refused by facts that end a live task */
};

/* 0, or -EPERM with the denial and a sentence, and nothing may start. Verdicts are set always. */
int gate_pass(const struct gate *gate, const struct action *action,
	      struct gate_verdicts *ret_verdicts, struct denial_list *denials, struct error *error)
	__attribute__((warn_unused_result));
