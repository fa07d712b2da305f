/* Network rules in words, for explanations. Pure. */
#pragma once

struct buffer;
struct egress_rule;

/* "*.example.org, ports 443, 8000-8010, https; GET, HEAD of /a; private; by psql; ..." */
void egress_rule_print(const struct egress_rule *rule, struct buffer *buffer);
