/*
 * Approvals: a person's answer to a request that no rule decided.
 *
 * This build has no channel to a person yet, so the answer is the default of every approval: deny.
 * Callers are written against the callback and the deadline all the same.
 */
#pragma once

#include "policy/rule.h"

#include <stdint.h>

enum approval_answer { APPROVAL_DENY, APPROVAL_ONCE };

struct approval_request {
	const char *verb;     /* "fs.write" */
	const char *target;   /* exact */
	const char *shown;    /* of it to a person, one visible line; NULL: the target */
	struct rule_ref rule; /* which asked */
	const char *reason;   /* why a person is needed; ours, not the agent's */
};

typedef void approval_callback(const struct approval_request *request, enum approval_answer answer,
			       const char *why, void *context);

/*
 * Asks and calls back exactly once, with APPROVAL_DENY when nobody answers before the deadline
 * (monotonic, ns; 0 = do not wait). Returns 0, or a negative errno when it could not even ask
 * (the callback has been called with a denial then too).
 */
int approval_ask(const struct approval_request *request, uint64_t deadline_ns,
		 approval_callback *callback, void *context);
