/*
 * What a policy file and the command line say about the network, as rules of policy/egress.h. Pure;
 * memory is the arena's.
 *
 * A rule that cannot be enforced as it stands is refused, never taken in part: what can only be
 * seen inside of TLS (methods and paths of anything but plain HTTP, `inspect`), UDP, quotas that
 * nothing counts. So is one that is over-broad and not marked as `dangerous: true`.
 */
#pragma once

#include "policy/egress.h"

struct arena;
struct document;
struct document_statement;
struct error;

/*
 * The rules of network.deny, network.ask and network.allow, in the order of the file; the mode is
 * EGRESS_POLICY where a rule allows or asks. -EINVAL or -EOPNOTSUPP with FILE:LINE:COLUMN and the
 * reason.
 */
int egress_compile(const struct document *document, struct arena *arena,
		   struct egress_policy *ret_policy, struct error *error);

/* What is wrong with a statement of these keys; NULL: nothing, or it needs more than this build
 * has, or is of another key. */
const char *egress_compile_fault(const struct document_statement *statement, struct arena *arena);

/* The rule of such a statement; false where it is of another key, or there is no rule of it. */
bool egress_compile_statement(const struct document_statement *statement, struct arena *arena,
			      struct egress_rule *ret_rule);

/* What such a statement has that this build lacks, as "needs ..."; NULL: nothing. */
const char *egress_compile_missing(const struct document_statement *statement, struct arena *arena);

/*
 * NAME[:PORTS[/tcp]] of --allow-host, where NAME may begin with "*.", or be an address (version 6
 * in brackets), and PORTS is like 443,8000-8010; without: 80 and 443. "/tcp": any bytes. -EINVAL.
 */
int egress_compile_host(const char *text, const struct rule_ref *ref, struct arena *arena,
			struct egress_rule *ret_rule, struct error *error);

/* Adds a rule; -ENOMEM, or -E2BIG above EGRESS_LIMIT_RULES. */
int egress_add(struct egress_policy *policy, const struct egress_rule *rule, struct arena *arena);
