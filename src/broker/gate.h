/*
 * The gate before the start of an action: where a policy has rules about requests, the command is
 * classified and judged by them (broker/decide.h), and what they ask for goes to a person
 * (broker/approval.h). Without such rules nothing is looked at and nothing costs: what is not
 * refused here is the wall's to refuse.
 */
#pragma once

#include "trace/result.h"

#include <stddef.h>

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
};

/* What was judged, for the record: the action as a whole, then its requests; count 0: nothing. */
struct gate_verdicts {
	const struct event_verdict *rows;
	size_t count;
};

/* 0, or -EPERM with the denial and a sentence, and nothing may start. Verdicts are set always. */
int gate_pass(const struct gate *gate, const struct action *action,
	      struct gate_verdicts *ret_verdicts, struct denial_list *denials, struct error *error)
	__attribute__((warn_unused_result));
