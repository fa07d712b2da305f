/* Network rules in words, for explanations. Pure. */
#pragma once

#include "policy/egress.h"

struct buffer;
struct json;

/* "deny", "ask", "allow" */
const char *egress_verdict_word(enum egress_verdict verdict);

/* "*.example.org, ports 443, 8000-8010, https; GET, HEAD of /a; private; by psql; ..." */
void egress_rule_print(const struct egress_rule *rule, struct buffer *buffer);

/* The array `network_rules`: verdict, text and id of those with this verdict or a milder one. */
void egress_rules_json(const struct egress_policy *policy, enum egress_verdict least,
		       struct json *json);
