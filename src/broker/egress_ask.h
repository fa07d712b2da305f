/*
 * Connections of a task that wait for a person's answer (approval.h).
 *
 * An answer may take minutes, and the supervisor has other work meanwhile: a question is kept here
 * until approval_ask() calls back, at once or later, and then given to whoever asked. When the
 * network of the task has ended nobody wants the answers any more; what comes then is dropped.
 */
#pragma once

#include "net/edge.h"
#include "policy/host.h"
#include "policy/rule.h"

#include <stdbool.h>
#include <stdint.h>

/* A host in brackets, a colon and a port. */
#define EGRESS_TARGET_BYTES (HOST_NAME_BYTES + 12)

/* With the request that is asked about: a method, and a path as it came. */
#define EGRESS_SHOWN_BYTES (EGRESS_TARGET_BYTES + EGRESS_METHOD_BYTES + EGRESS_PATH_BYTES + 16)

struct egress_asked {
	uint32_t id; /* the proxy's, of the connection */
	uint32_t rule;
	uint16_t port;
	unsigned job; /* its number; 0: the task's */
	char host[HOST_NAME_BYTES];
	char target[EGRESS_TARGET_BYTES];
	char shown[EGRESS_SHOWN_BYTES];
	bool is_unclear; /* servers differ about what its path names */
	uint64_t asked_ns;
};

/* The answer, once for each question. */
typedef void egress_answered(const struct egress_asked *asked, bool yes, void *context);

/* All zero: none. */
struct egress_asks {
	struct egress_waiting *first;
	unsigned count;
	egress_answered *answered;
	void *context;
};

/* Asks about it; `rule` is the one that wants an answer. False: too many wait, or no memory. */
bool egress_ask(struct egress_asks *asks, const struct egress_asked *question,
		const struct rule_ref *rule);

/* Nobody waits for the answers any more. */
void egress_ask_end(struct egress_asks *asks);
