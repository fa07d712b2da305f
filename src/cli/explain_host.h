/* `bawn explain --host` and `--url`: the matcher's answer about a connection, and why. */
#pragma once

#include "policy/egress.h"
#include "policy/host.h"

#include <stdbool.h>

struct arena;
struct buffer;
struct effective;
struct error;

/* One of host (NAME:PORT) and url is NULL. */
struct explain_target {
	const char *host, *url;
	bool json;
};

struct explain_asking {
	const struct explain_target *target; /* with the arena the caller's to set */
	struct host host;
	struct egress_question question;
	struct egress_answer answer;
	const char *unclear; /* why the path of the URL is one that servers differ about; or NULL */
	struct arena *arena;
};

/* The answer of egress_decide() to what target and arena say. -EINVAL: the target is none. */
int explain_host_decide(const struct egress_policy *policy, struct explain_asking *asking,
			struct error *error);

/* "deny", "ask", "allow" */
const char *explain_host_verdict(enum egress_verdict verdict);

/*
 * Appends what egress_decide() answers now; nothing is resolved or sent. 0: it is allowed or may
 * be, 1: it is denied, negative: the target is none (-EINVAL).
 */
int explain_host(const struct effective *effective, const struct explain_target *target,
		 struct arena *arena, struct buffer *text, struct error *error);
