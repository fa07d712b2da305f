#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/egress.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A rule of tests: HOST as a policy file has it, or a prefix as ADDRESS/BITS. */
static struct egress_rule rule_of(enum egress_verdict verdict, const char *text)
{
	static struct egress_ports web[] = { { 443, 443 } };
	struct egress_rule rule = {
		.ref = { .id = "r", .file = "p.yaml", .line = 1 },
		.verdict = verdict,
		.name = "",
		.ports = web,
		.port_count = 1,
		.protocols = EGRESS_PROTOCOLS_DEFAULT,
		.tool = "",
		.purpose = "",
	};
	const char *slash = strchr(text, '/');

	if (strcmp(text, "*") == 0) {
		rule.kind = EGRESS_ANY;
	} else if (slash) {
		rule.kind = EGRESS_NETWORK;
		rule.prefix_bits = (uint32_t)strtoul(slash + 1, NULL, 10);
		assert_int_equal(address_parse(text, (size_t)(slash - text), &rule.network), 0);
	} else if (strncmp(text, "*.", 2) == 0) {
		rule.kind = EGRESS_BELOW;
		rule.name = text + 2;
	} else {
		rule.name = text;
	}
	return rule;
}

static struct egress_policy policy_of(struct egress_rule *rules, size_t count)
{
	return (struct egress_policy){
		.mode = EGRESS_POLICY, .purpose = "", .rules = rules, .rule_count = count
	};
}

static struct host host_of(const char *text)
{
	struct host host;
	const char *why = "";

	if (host_parse(text, strlen(text), &host, &why) < 0)
		fail_msg("%s %s", text, why);
	return host;
}

/* Everything is known: TLS to a web server, from a program that no rule is about. */
static struct egress_question known(const struct host *host, uint16_t port)
{
	return (struct egress_question){
		.host = host,
		.port = port,
		.wall_s = 1000,
		.known = EGRESS_FACT_PROTOCOL | EGRESS_FACT_TOOL,
		.protocol = EGRESS_HTTPS,
	};
}

static struct egress_answer ask(const struct egress_policy *policy,
				const struct egress_question *question)
{
	struct egress_answer answer;

	egress_decide(policy, question, &answer);
	return answer;
}

/* The rows of egress.tsv that hosts and addresses by themselves decide. */
static void names_and_ports(void **state)
{
	static const struct {
		const char *rule; /* NULL: no rule at all */
		const char *host;
		uint16_t port;
		bool allowed;
	} rows[] = {
		{ NULL, "example.com", 443, false },
		{ "example.com", "example.com", 443, true },
		{ "example.com", "EXAMPLE.COM.", 443, true },
		{ "example.com", "www.example.com", 443, false },
		{ "example.com", "example.com.evil.example", 443, false },
		{ "google.com", "google.com", 22, false },
		{ "google.com", "google.com", 80, false },
		{ "*.google.com", "www.google.com", 443, true },
		{ "*.google.com", "a.b.google.com", 443, true },
		{ "*.google.com", "google.com", 443, false },
		{ "*.google.com", "evilgoogle.com", 443, false },
		{ "*.google.com", "google.com.evil.example", 443, false },
		{ "*", "anything.example", 443, true },
		{ "*", "8.8.8.8", 443, false },
		{ "*", "localhost", 443, false },
		{ "*", "metadata.google.internal", 443, false },
		{ "*.internal", "metadata.google.internal", 443, true },
		{ "*.google.internal", "metadata.google.internal", 443, true },
		{ "localhost", "localhost", 443, true },
		{ "example.com", "93.184.216.34", 443, false },
		{ "93.184.216.34/32", "93.184.216.34", 443, true },
		{ "93.184.216.34/32", "93.184.216.35", 443, false },
		{ "93.184.216.0/24", "93.184.216.35", 443, true },
		{ "93.184.216.34/32", "example.com", 443, false },
		{ "93.184.216.34/32", "::ffff:93.184.216.34", 443, false },
		{ "0.0.0.0/0", "8.8.8.8", 443, true },
		{ "0.0.0.0/0", "10.0.0.1", 443, false },
		{ "0.0.0.0/0", "127.0.0.1", 443, false },
		{ "0.0.0.0/0", "169.254.169.254", 443, false },
		{ "8.0.0.0/6", "10.0.0.1", 443, false },
		{ "10.0.0.0/8", "10.0.0.1", 443, true },
		{ "10.0.0.1/32", "10.0.0.1", 443, true },
		{ "10.0.0.0/8", "::ffff:10.0.0.1", 443, false },
		{ "169.254.0.0/16", "169.254.169.254", 443, false },
		{ "169.254.0.0/16", "169.254.1.1", 443, true },
		{ "169.254.169.254/32", "169.254.169.254", 443, true },
		{ "100.64.0.0/10", "100.100.100.200", 443, false },
		{ "::/0", "2606:4700::1111", 443, true },
		{ "::/0", "::1", 443, false },
		{ "::/0", "::ffff:8.8.8.8", 443, false },
		{ "::/0", "64:ff9b::7f00:1", 443, false },
		{ "64:ff9b::/96", "64:ff9b::7f00:1", 443, false },
		{ "64:ff9b::/96", "64:ff9b::808:808", 443, true },
		{ "fc00::/7", "fd00:ec2::254", 443, false },
		{ "fc00::/7", "fd12::1", 443, true },
		{ "fd00:ec2::254/128", "fd00:ec2::254", 443, true },
		{ "fc00::/7", "fd00:c1::a9fe:a9fe", 443, false },
		{ "fd00:c1::/32", "fd00:c1::a9fe:a9fe", 443, false },
		{ "fc00::/7", "fd00:a9fe:a9fe::1", 443, false },
		{ "fd00:a9fe:a9fe::1/128", "fd00:a9fe:a9fe::1", 443, true },
		{ "::1/128", "::1", 443, true },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct egress_rule rule = rule_of(EGRESS_ALLOW, rows[i].rule ? rows[i].rule : "x");
		struct egress_policy policy = policy_of(&rule, rows[i].rule ? 1 : 0);
		struct host host = host_of(rows[i].host);
		struct egress_question question = known(&host, rows[i].port);
		struct egress_answer answer = ask(&policy, &question);

		if ((answer.verdict == EGRESS_ALLOW) != rows[i].allowed)
			fail_msg("row %zu: %s for %s", i, rows[i].rule, rows[i].host);
		assert_int_equal(answer.needs, 0);
		assert_true((answer.rule == &rule) == rows[i].allowed);
	}
}

/* The other rows: an address that is denied, in every spelling that is an address at all. */
static void denied_addresses(void **state)
{
	static const struct {
		const char *rule, *host;
	} rows[] = {
		{ "10.0.0.0/8", "10.0.0.1" },
		{ "10.0.0.0/8", "::ffff:10.0.0.1" },
		{ "127.0.0.0/8", "::127.0.0.1" },
		{ "127.0.0.0/8", "64:ff9b::7f00:1" },
		{ "127.0.0.0/8", "2002:7f00:1::" },
		{ "::1/128", "0:0:0:0:0:0:0:1" },
		{ "169.254.169.254/32", "64:ff9b::a9fe:a9fe" },
		{ "93.184.216.34/32", "64:ff9b::5db8:d822" },
		{ "*", "93.184.216.34" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "::/0"),
					       rule_of(EGRESS_ALLOW, "0.0.0.0/0"),
					       rule_of(EGRESS_DENY, rows[i].rule) };
		struct egress_policy policy = policy_of(rules, LENGTH(rules));
		struct host host = host_of(rows[i].host);
		struct egress_question question = known(&host, 443);
		struct egress_answer answer = ask(&policy, &question);

		assert_int_equal(answer.verdict, EGRESS_DENY);
		assert_ptr_equal(answer.rule, &rules[2]);
		assert_string_equal(egress_answer_rule(&answer).id, "r");
	}
}

static void order(void **state)
{
	static const enum egress_verdict all[] = { EGRESS_DENY, EGRESS_ASK, EGRESS_ALLOW };
	struct host host = host_of("a.example");
	struct egress_question question = known(&host, 443);

	(void)state;
	/* deny beats ask beats allow, whichever comes first */
	for (unsigned set = 1; set < 8; set++) {
		for (unsigned turn = 0; turn < 3; turn++) {
			struct egress_rule rules[3];
			struct egress_policy policy = policy_of(rules, 0);
			enum egress_verdict wanted = set & 1 ? EGRESS_DENY :
						     set & 2 ? EGRESS_ASK :
							       EGRESS_ALLOW;

			for (unsigned i = 0; i < 3; i++) {
				unsigned which = (i + turn) % 3;

				if (set & 1u << which)
					rules[policy.rule_count++] = rule_of(
						all[which], which == 0 ? "*.example" : "a.example");
			}
			assert_int_equal(ask(&policy, &question).verdict, wanted);
		}
	}
}

static void built_in(void **state)
{
	struct egress_rule rule = rule_of(EGRESS_ALLOW, "*");
	struct egress_policy policy = policy_of(&rule, 1), none = { 0 };
	struct host name = host_of("a.example"), local = host_of("localhost"),
		    address = host_of("8.8.8.8");
	struct egress_question question = known(&local, 443);
	struct egress_answer answer = ask(&policy, &question);

	(void)state;
	assert_int_equal(answer.verdict, EGRESS_DENY);
	assert_null(answer.rule);
	assert_non_null(answer.special);
	assert_string_equal(egress_answer_rule(&answer).id, "egress.special");
	question.host = &address;
	answer = ask(&policy, &question);
	assert_null(answer.special);
	assert_string_equal(egress_answer_rule(&answer).id, "egress.default");
	/* no mode, no network, whatever the rules say */
	policy.mode = EGRESS_NONE;
	question.host = &name;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	assert_int_equal(ask(&none, &question).verdict, EGRESS_DENY);
}

static void unknown_facts(void **state)
{
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "a.example"),
				       rule_of(EGRESS_DENY, "a.example"),
				       rule_of(EGRESS_ASK, "a.example") };
	struct egress_policy policy = policy_of(rules, 1);
	struct host host = host_of("a.example");
	struct egress_question question = { .host = &host, .port = 443 };
	struct egress_answer answer = ask(&policy, &question);

	(void)state;
	/* it may be allowed, once the protocol is known to be one of the rule's */
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, EGRESS_FACT_PROTOCOL);
	question.known = EGRESS_FACT_PROTOCOL;
	question.protocol = EGRESS_TCP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	question.protocol = EGRESS_SSH;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, 0);
	/* a rule for any bytes waits for none */
	rules[0].protocols = EGRESS_TCP;
	question.known = 0;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, 0);
	/* a denial that may come makes nothing final */
	rules[1].tool = "curl", rules[1].tool_inode = 7;
	policy.rule_count = 2;
	rules[1].protocols = EGRESS_TCP;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, EGRESS_FACT_TOOL);
	/* nor does a question to a person that may come */
	rules[1].verdict = EGRESS_ASK;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, EGRESS_FACT_TOOL);
	/* a question that is sure is not asked while a denial may come */
	rules[1].verdict = EGRESS_DENY;
	policy.rule_count = 3;
	rules[2].protocols = EGRESS_TCP;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ASK);
	assert_int_equal(answer.needs, EGRESS_FACT_TOOL);
	/* a denial alone that may come: nothing allows it, so it is denied */
	rules[0] = rules[1];
	policy.rule_count = 1;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_DENY);
	assert_int_equal(answer.needs, 0);
}

static void tools(void **state)
{
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "a.example"),
				       rule_of(EGRESS_DENY, "a.example") };
	struct egress_policy policy = policy_of(rules, 1);
	struct egress_tool curl = { 1, 7, "/usr/bin/curl" }, other = { 1, 8, "/usr/bin/wget" };
	struct host host = host_of("a.example");
	struct egress_question question = known(&host, 443);

	(void)state;
	rules[0].tool = "curl", rules[0].tool_device = 1, rules[0].tool_inode = 7;
	question.tool = &curl;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	question.tool = &other;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* not to be told: nothing that is for one tool */
	question.tool = NULL;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* a tool that the box lacks is nobody */
	rules[0].tool_device = rules[0].tool_inode = 0;
	other = (struct egress_tool){ 0, 0, "" };
	question.tool = &other;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* a denial for one tool holds for what cannot be told */
	rules[0].tool = "";
	policy.rule_count = 2;
	rules[1].tool = "curl", rules[1].tool_device = 1, rules[1].tool_inode = 7;
	question.tool = NULL;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	other = (struct egress_tool){ 1, 8, "" };
	question.tool = &other;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
}

static void purposes_and_times(void **state)
{
	struct egress_rule rule = rule_of(EGRESS_ALLOW, "a.example");
	struct egress_policy policy = policy_of(&rule, 1);
	struct host host = host_of("a.example");
	struct egress_question question = known(&host, 443);

	(void)state;
	rule.purpose = "release";
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	policy.purpose = "release";
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rule.purpose = "";
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rule.from_wall_s = 1000, rule.until_wall_s = 1001;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	question.wall_s = 999;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	question.wall_s = 1001;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
}

static void requests(void **state)
{
	static const char *const methods[] = { "GET", "HEAD" };
	static const char *const paths[] = { "/", "/api/**", "/a/*.json" };
	static const struct {
		const char *method, *path;
		bool matches;
	} rows[] = {
		{ "GET", "/", true },	       { "GET", "/api", true },
		{ "GET", "/api/", true },      { "GET", "/api/a/b", true },
		{ "GET", "/api/a/b/", true },  { "GET", "/apix", false },
		{ "GET", "/a/b.json", true },  { "GET", "/a/b/c.json", false },
		{ "GET", "/A/b.json", false }, { "GET", "/other", false },
		{ "GET", "*", false },	       { "GET", "", false },
		{ "get", "/", false },	       { "HEAD", "/", true },
		{ "POST", "/", false },
	};
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "a.example"),
				       rule_of(EGRESS_ALLOW, "a.example") };
	struct egress_policy policy = policy_of(rules, 1);
	struct host host = host_of("a.example");
	struct egress_question question = { .host = &host, .port = 443 };
	struct egress_answer answer;
	char *giant;

	(void)state;
	rules[0].protocols = EGRESS_HTTP;
	rules[0].methods = methods, rules[0].method_count = LENGTH(methods);
	rules[0].paths = paths, rules[0].path_count = LENGTH(paths);
	answer = ask(&policy, &question);
	assert_int_equal(answer.needs, EGRESS_FACT_PROTOCOL | EGRESS_FACT_REQUEST);
	question.known = EGRESS_FACT_PROTOCOL;
	question.protocol = EGRESS_HTTPS;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	question.protocol = EGRESS_HTTP;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_int_equal(answer.needs, EGRESS_FACT_REQUEST);
	question.known |= EGRESS_FACT_REQUEST;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		question.method = rows[i].method;
		question.path = rows[i].path;
		answer = ask(&policy, &question);
		assert_int_equal(answer.needs, 0);
		if ((answer.verdict == EGRESS_ALLOW) != rows[i].matches)
			fail_msg("%s %s", rows[i].method, rows[i].path);
		/* a denial of the same is one of exactly these, and of the server as a whole */
		rules[0].verdict = EGRESS_DENY;
		rules[1].protocols = EGRESS_HTTP;
		policy.rule_count = 2;
		answer = ask(&policy, &question);
		if ((answer.verdict == EGRESS_DENY) != (rows[i].matches || rows[i].path[0] != '/'))
			fail_msg("deny %s %s", rows[i].method, rows[i].path);
		rules[0].verdict = EGRESS_ALLOW;
		policy.rule_count = 1;
	}
	/* what servers differ about is not allowed by a path, and denied and asked about by any */
	question.method = "GET";
	question.path = NULL;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	policy.rule_count = 2;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rules[0].verdict = EGRESS_ASK;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ASK);
	rules[0].verdict = EGRESS_DENY;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	rules[0].verdict = EGRESS_ALLOW;
	policy.rule_count = 1;
	/* what is too long to be looked at is not allowed by a path, and denied by any */
	giant = malloc(EGRESS_LIMIT_PATH + 1);
	assert_non_null(giant);
	memset(giant, 'a', EGRESS_LIMIT_PATH);
	memcpy(giant, "/api/", 5);
	giant[EGRESS_LIMIT_PATH] = '\0';
	question.method = "GET";
	question.path = giant;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	rules[0].verdict = EGRESS_DENY;
	policy.rule_count = 2;
	memcpy(giant, "/xyz/", 5);
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	giant[100] = '\0';
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	free(giant);
}

static void upgrades(void **state)
{
	struct egress_rule rule = rule_of(EGRESS_ALLOW, "a.example");
	struct egress_policy policy = policy_of(&rule, 1);
	struct host host = host_of("a.example");
	struct egress_question question = known(&host, 443);

	(void)state;
	question.protocol = EGRESS_HTTP;
	assert_int_equal(ask(&policy, &question).needs, EGRESS_FACT_REQUEST);
	question.known |= EGRESS_FACT_REQUEST;
	question.method = "GET";
	question.path = "/";
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	question.upgrade = true;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	rule.flags = EGRESS_UPGRADE;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	question.known &= ~(uint32_t)EGRESS_FACT_REQUEST;
	assert_int_equal(ask(&policy, &question).needs, 0);
	rule.verdict = EGRESS_DENY;
	rule.flags = 0;
	question.known |= EGRESS_FACT_REQUEST;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
}

/* Why not, with the facts that are still to be known in the opening. */
static struct egress_opening opening;

static const char *fault_of(const struct egress_policy *policy,
			    const struct egress_question *question,
			    const struct egress_answer *answer, const struct address *address)
{
	return egress_check_address(policy, question, answer, address, &opening);
}

/* egress.tsv, "DNS answer": what a name resolves to. */
static void resolved(void **state)
{
	static const struct {
		const char *rule, *second; /* `second`: "" none; "-PREFIX" denies, "?PREFIX" asks */
		bool is_private;
		const char *address;
		bool may;
	} rows[] = {
		{ "google.com", "", false, "8.8.8.8", true },
		{ "google.com", "", false, "2606:4700::1", true },
		{ "google.com", "", false, "127.0.0.1", false },
		{ "google.com", "", false, "0.0.0.0", false },
		{ "google.com", "", false, "::1", false },
		{ "google.com", "", false, "169.254.169.254", false },
		{ "google.com", "", false, "fd00:ec2::254", false },
		{ "google.com", "", false, "100.100.100.200", false },
		{ "google.com", "", false, "10.0.0.1", false },
		{ "google.com", "", false, "::ffff:10.0.0.1", false },
		{ "google.com", "", false, "64:ff9b::a00:1", false },
		{ "google.com", "", false, "64:ff9b::808:808", true },
		{ "google.com", "", true, "10.0.0.1", true },
		{ "google.com", "", true, "fd12::1", true },
		{ "google.com", "", true, "127.0.0.1", true },
		{ "google.com", "", true, "169.254.169.254", false },
		{ "google.com", "", true, "fe80::1", false },
		{ "google.com", "", true, "224.0.0.1", false },
		{ "*.com", "", true, "10.0.0.1", true },
		{ "*.com", "", true, "127.0.0.1", false },
		{ "*", "", true, "10.0.0.1", false },
		{ "google.com", "10.0.0.0/8", false, "10.0.0.1", true },
		{ "google.com", "0.0.0.0/0", false, "10.0.0.1", false },
		{ "google.com", "169.254.0.0/16", false, "169.254.169.254", false },
		{ "google.com", "169.254.169.254/32", false, "169.254.169.254", true },
		{ "google.com", "-8.8.8.0/24", false, "8.8.8.8", false },
		{ "google.com", "-8.8.8.0/24", false, "64:ff9b::808:808", false },
		{ "google.com", "-8.8.8.0/24", false, "8.8.9.8", true },
		{ "google.com", "-10.0.0.0/8", true, "10.0.0.1", false },
		{ "google.com", "?8.8.8.0/24", false, "8.8.8.8", false },
	};
	struct host host = host_of("google.com");
	struct egress_question question = known(&host, 443);

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *second = rows[i].second;
		enum egress_verdict verdict = second[0] == '-' ? EGRESS_DENY :
					      second[0] == '?' ? EGRESS_ASK :
								 EGRESS_ALLOW;
		struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, rows[i].rule),
					       rule_of(EGRESS_ALLOW, "x") };
		struct egress_policy policy = policy_of(rules, second[0] ? 2 : 1);
		struct egress_answer answer;
		struct address address;

		rules[0].flags = rows[i].is_private ? EGRESS_PRIVATE : 0;
		if (second[0])
			rules[1] = rule_of(verdict, second + (verdict != EGRESS_ALLOW));
		assert_int_equal(address_parse(rows[i].address, strlen(rows[i].address), &address),
				 0);
		answer = ask(&policy, &question);
		assert_int_equal(answer.verdict, EGRESS_ALLOW);
		assert_int_equal(answer.is_private, rows[i].is_private);
		if ((fault_of(&policy, &question, &answer, &address) == NULL) != rows[i].may)
			fail_msg("row %zu", i);
		/* other ports and denied names have no addresses */
		question.port = 22;
		answer = ask(&policy, &question);
		assert_non_null(fault_of(&policy, &question, &answer, &address));
		question.port = 443;
	}
}

/* An address of which it is not yet known whether it is denied is not dialled. */
static void resolved_too_early(void **state)
{
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "a.example"),
				       rule_of(EGRESS_DENY, "8.8.8.0/24"),
				       rule_of(EGRESS_ALLOW, "a.example") };
	struct egress_policy policy = policy_of(rules, 2);
	struct host host = host_of("a.example");
	struct egress_question question = { .host = &host, .port = 443 };
	struct egress_answer answer;
	struct address address, private;

	(void)state;
	assert_int_equal(address_parse("8.8.8.8", 7, &address), 0);
	assert_int_equal(address_parse("10.0.0.1", 8, &private), 0);
	rules[1].protocols = EGRESS_SSH;
	answer = ask(&policy, &question);
	assert_int_equal(answer.verdict, EGRESS_ALLOW);
	assert_non_null(fault_of(&policy, &question, &answer, &address));
	question.known = EGRESS_FACT_PROTOCOL;
	question.protocol = EGRESS_HTTPS;
	answer = ask(&policy, &question);
	assert_null(fault_of(&policy, &question, &answer, &address));
	/* what may be private is so until it is known */
	rules[1] = rules[2];
	rules[1].flags = EGRESS_PRIVATE;
	rules[1].tool = "psql", rules[1].tool_inode = 3;
	answer = ask(&policy, &question);
	assert_int_equal(answer.needs, 0);
	assert_null(fault_of(&policy, &question, &answer, &private));
	assert_int_equal(opening.needs, EGRESS_FACT_TOOL);
	rules[0] = rules[1];
	policy.rule_count = 1;
	answer = ask(&policy, &question);
	assert_int_equal(answer.needs, EGRESS_FACT_TOOL);
	assert_null(fault_of(&policy, &question, &answer, &private));
}

/* A private service is open as far as its rule goes, whatever wider rules allow of its name. */
static void opened_by_one_rule(void **state)
{
	static const char *const get[] = { "GET" };
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "*.example"),
				       rule_of(EGRESS_ALLOW, "a.example") };
	struct egress_policy policy = policy_of(rules, 2);
	struct host host = host_of("a.example");
	struct egress_question question = { .host = &host, .port = 443 };
	struct egress_answer answer;
	struct address private, public;

	(void)state;
	assert_int_equal(address_parse("10.0.0.1", 8, &private), 0);
	assert_int_equal(address_parse("8.8.8.8", 7, &public), 0);
	for (int is_network = 0; is_network < 2; is_network++) {
		if (is_network)
			rules[1] = rule_of(EGRESS_ALLOW, "10.0.0.1/32");
		rules[0].protocols = rules[1].protocols = EGRESS_HTTP;
		rules[1].methods = get, rules[1].method_count = 1;
		rules[1].flags = is_network ? 0 : EGRESS_PRIVATE;
		question.known = 0;
		answer = ask(&policy, &question);
		assert_null(fault_of(&policy, &question, &answer, &private));
		assert_int_equal(opening.needs, EGRESS_FACT_PROTOCOL | EGRESS_FACT_REQUEST);
		assert_null(fault_of(&policy, &question, &answer, &public));
		assert_int_equal(opening.needs, 0);
		question.known = EGRESS_FACT_PROTOCOL | EGRESS_FACT_REQUEST;
		question.protocol = EGRESS_HTTP;
		question.method = "GET", question.path = "/";
		answer = ask(&policy, &question);
		assert_ptr_equal(answer.rule, &rules[0]);
		assert_null(fault_of(&policy, &question, &answer, &private));
		assert_ptr_equal(opening.rule, is_network ? NULL : &rules[1]);
		question.method = "POST";
		answer = ask(&policy, &question);
		assert_int_equal(answer.verdict, EGRESS_ALLOW);
		assert_non_null(fault_of(&policy, &question, &answer, &private));
		assert_null(fault_of(&policy, &question, &answer, &public));
		assert_null(opening.rule);
	}
	/* what such a rule counts would be counted nowhere */
	question.method = "GET";
	rules[1].bytes_up = 1;
	answer = ask(&policy, &question);
	assert_non_null(fault_of(&policy, &question, &answer, &private));
	host = host_of("10.0.0.1");
	answer = ask(&policy, &question);
	assert_null(fault_of(&policy, &question, &answer, &private));
}

static struct egress_rule full_rule(void)
{
	static const char *const methods[] = { "GET", "M-SEARCH" };
	static const char *const paths[] = { "/", "/a/**" };
	static struct egress_ports ports[] = { { 1, 1 }, { 8000, 65535 } };
	struct egress_rule rule = rule_of(EGRESS_ASK, "*.example.com");

	rule.ports = ports, rule.port_count = LENGTH(ports);
	rule.protocols = EGRESS_PROTOCOLS_ALL;
	rule.flags = EGRESS_RULE_FLAGS_ALL;
	rule.methods = methods, rule.method_count = LENGTH(methods);
	rule.paths = paths, rule.path_count = LENGTH(paths);
	rule.tool = "/usr/bin/git", rule.tool_device = UINT64_MAX, rule.tool_inode = 2;
	rule.purpose = "release-1.0";
	rule.from_wall_s = 1, rule.until_wall_s = UINT64_MAX;
	rule.bytes_up = 1, rule.bytes_down = 2, rule.bytes_per_second = 3;
	rule.connections = 4, rule.requests_per_minute = 5;
	return rule;
}

static void assert_rule(const struct egress_rule *a, const struct egress_rule *b)
{
	assert_string_equal(a->ref.id, b->ref.id);
	assert_int_equal(a->ref.file == NULL, b->ref.file == NULL);
	if (a->ref.file)
		assert_string_equal(a->ref.file, b->ref.file);
	assert_int_equal(a->ref.line, b->ref.line);
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->name, b->name);
	assert_memory_equal(&a->network, &b->network, sizeof(a->network));
	assert_int_equal(a->prefix_bits, b->prefix_bits);
	assert_int_equal(a->port_count, b->port_count);
	assert_memory_equal(a->ports, b->ports, a->port_count * sizeof(*a->ports));
	assert_int_equal(a->protocols, b->protocols);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->method_count, b->method_count);
	for (size_t i = 0; i < a->method_count; i++)
		assert_string_equal(a->methods[i], b->methods[i]);
	assert_int_equal(a->path_count, b->path_count);
	for (size_t i = 0; i < a->path_count; i++)
		assert_string_equal(a->paths[i], b->paths[i]);
	assert_string_equal(a->tool, b->tool);
	assert_true(a->tool_device == b->tool_device && a->tool_inode == b->tool_inode);
	assert_string_equal(a->purpose, b->purpose);
	assert_true(a->from_wall_s == b->from_wall_s && a->until_wall_s == b->until_wall_s);
	assert_true(a->bytes_up == b->bytes_up && a->bytes_down == b->bytes_down);
	assert_true(a->bytes_per_second == b->bytes_per_second);
	assert_true(a->connections == b->connections);
	assert_true(a->requests_per_minute == b->requests_per_minute);
}

/* A copy of exactly its length, so that a read beyond it is seen by ASan. */
static unsigned char *encoded(struct arena *arena, const struct egress_policy *policy,
			      size_t *ret_length)
{
	const unsigned char *bytes;
	unsigned char *copy;

	assert_int_equal(egress_encode(policy, arena, &bytes, ret_length), 0);
	copy = malloc(*ret_length);
	assert_non_null(copy);
	memcpy(copy, bytes, *ret_length);
	return copy;
}

static int decode(const unsigned char *bytes, size_t length)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct error error = ERROR_NONE;
	struct egress_policy policy;
	int r = egress_decode(bytes, length, &arena, &policy, &error);

	if (r < 0) {
		assert_int_equal(r, -EBADMSG);
		assert_int_equal(error.code, -EBADMSG);
		assert_non_null(strstr(error.message, "the compiled network rules "));
	}
	return r;
}

static void round_trip(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct egress_rule rules[] = { full_rule(), rule_of(EGRESS_DENY, "10.0.0.0/8"),
				       rule_of(EGRESS_ALLOW, "*"),
				       rule_of(EGRESS_ALLOW, "2001:db8::/32") };
	struct egress_policy policy = policy_of(rules, LENGTH(rules)), none = { 0 }, back;
	struct error error = ERROR_NONE;
	size_t length, again_length;
	unsigned char *bytes, *again;

	(void)state;
	rules[1].ref.file = NULL;
	policy.purpose = "release";
	bytes = encoded(&arena, &policy, &length);
	assert_int_equal(egress_decode(bytes, length, &arena, &back, &error), 0);
	assert_int_equal(back.mode, EGRESS_POLICY);
	assert_string_equal(back.purpose, "release");
	assert_int_equal(back.rule_count, LENGTH(rules));
	for (size_t i = 0; i < LENGTH(rules); i++)
		assert_rule(&rules[i], &back.rules[i]);
	again = encoded(&arena, &back, &again_length);
	assert_int_equal(length, again_length);
	assert_memory_equal(bytes, again, length);
	free(again);
	/* cut short it is nothing, nor when the length that it says is made to fit */
	for (size_t n = 0; n < length; n++) {
		unsigned char *cut = malloc(n ? n : 1);

		assert_non_null(cut);
		memcpy(cut, bytes, n);
		assert_int_equal(decode(cut, n), -EBADMSG);
		if (n >= 16) {
			cut[12] = (unsigned char)n;
			cut[13] = (unsigned char)(n >> 8);
			assert_int_equal(decode(cut, n), -EBADMSG);
		}
		free(cut);
	}
	free(bytes);
	bytes = encoded(&arena, &none, &length);
	assert_int_equal(egress_decode(bytes, length, &arena, &back, &error), 0);
	assert_int_equal(back.mode, EGRESS_NONE);
	assert_string_equal(back.purpose, "");
	free(bytes);
}

/* One set of rules has one encoding: changed bytes that are accepted encode to themselves. */
static void flipped_bytes(void **state)
{
	static const unsigned char masks[] = { 0x01, 0x04, 0x20, 0x80, 0xff };
	CLEANUP_ARENA struct arena outer = { 0 };
	struct egress_rule rules[] = { full_rule(), rule_of(EGRESS_DENY, "10.0.0.0/8") };
	struct egress_policy policy = policy_of(rules, LENGTH(rules));
	size_t length, refused = 0, accepted = 0;
	unsigned char *bytes = encoded(&outer, &policy, &length);

	(void)state;
	for (size_t i = 0; i < length * sizeof(masks); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		unsigned char *byte = &bytes[i / sizeof(masks)], mask = masks[i % sizeof(masks)];
		struct error error = ERROR_NONE;
		struct egress_policy back;

		*byte ^= mask;
		if (egress_decode(bytes, length, &arena, &back, &error) == 0) {
			size_t again_length;
			unsigned char *again = encoded(&arena, &back, &again_length);

			assert_int_equal(length, again_length);
			assert_memory_equal(bytes, again, length);
			free(again);
			accepted++;
		} else {
			refused++;
		}
		*byte ^= mask;
	}
	free(bytes);
	assert_true(refused > accepted / 4 && accepted > 0);
}

static void refused_values(void **state)
{
	static struct egress_ports backwards[] = { { 2, 1 } }, zero[] = { { 0, 1 } };
	static const char *const lower[] = { "get" };
	static const char *const relative[] = { "a" };
	static const char *const unclean[] = { "/a/../b" };
	CLEANUP_ARENA struct arena arena = { 0 };
	struct egress_rule rule;
	struct egress_policy policy;
	size_t length;
	unsigned char *bytes;

	(void)state;
#define REFUSED(text, change)                                      \
	do {                                                       \
		rule = rule_of(EGRESS_ALLOW, text);                \
		policy = policy_of(&rule, 1);                      \
		bytes = encoded(&arena, &policy, &length);         \
		assert_int_equal(decode(bytes, length), 0);        \
		free(bytes);                                       \
		change;                                            \
		bytes = encoded(&arena, &policy, &length);         \
		assert_int_equal(decode(bytes, length), -EBADMSG); \
		free(bytes);                                       \
	} while (0)
	REFUSED("a.example", policy.mode = EGRESS_MODE_COUNT);
	REFUSED("a.example", policy.purpose = "two words");
	REFUSED("a.example", rule.ref.id = "");
	REFUSED("a.example", rule.verdict = EGRESS_VERDICT_COUNT);
	REFUSED("a.example", rule.kind = EGRESS_HOST_KIND_COUNT);
	REFUSED("a.example", rule.kind = EGRESS_NETWORK);
	REFUSED("a.example", rule.kind = EGRESS_ANY);
	REFUSED("a.example", rule.name = "");
	REFUSED("a.example", rule.name = "A.example");
	REFUSED("a.example", rule.name = "a.example.");
	REFUSED("a.example", rule.name = "*.example");
	REFUSED("a.example", rule.name = "10.0.0.1");
	REFUSED("a.example", rule.name = "127.1");
	REFUSED("*.example", rule.name = ".example");
	REFUSED("*", rule.name = "a.example");
	REFUSED("a.example", rule.prefix_bits = 1);
	REFUSED("a.example", rule.network.family = ADDRESS_V4);
	REFUSED("a.example", rule.network.bytes[0] = 1);
	REFUSED("10.0.0.0/8", rule.name = "a");
	REFUSED("10.0.0.0/8", rule.network.family = ADDRESS_NONE);
	REFUSED("10.0.0.0/8", rule.network.family = 3);
	REFUSED("10.0.0.0/8", rule.prefix_bits = 33);
	REFUSED("10.0.0.0/8", rule.prefix_bits = 6);
	REFUSED("10.0.0.0/8", rule.network.bytes[1] = 1);
	REFUSED("10.0.0.0/8", rule.network.bytes[15] = 1);
	REFUSED("fc00::/7", rule.prefix_bits = 129);
	REFUSED("a.example", rule.port_count = 0);
	REFUSED("a.example", rule.ports = backwards);
	REFUSED("a.example", rule.ports = zero);
	REFUSED("a.example", rule.protocols = 0);
	REFUSED("a.example", rule.protocols = EGRESS_PROTOCOLS_ALL + 1);
	REFUSED("a.example", rule.flags = EGRESS_RULE_FLAGS_ALL + 1);
	REFUSED("a.example", (rule.methods = lower, rule.method_count = 1));
	REFUSED("a.example", (rule.paths = relative, rule.path_count = 1));
	REFUSED("a.example", (rule.paths = unclean, rule.path_count = 1));
	REFUSED("a.example", rule.tool_inode = 1);
	REFUSED("a.example", rule.purpose = "Upper");
	REFUSED("a.example", (rule.from_wall_s = 2, rule.until_wall_s = 2));
#undef REFUSED
}

static void limits(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct egress_rule *rules = calloc(EGRESS_LIMIT_RULES + 1, sizeof(*rules));
	struct egress_policy policy = policy_of(rules, EGRESS_LIMIT_RULES + 1);
	char *text = calloc(1, EGRESS_LIMIT_BYTES + 1);
	const unsigned char *bytes;
	size_t length;

	(void)state;
	assert_non_null(rules);
	assert_non_null(text);
	for (size_t i = 0; i <= EGRESS_LIMIT_RULES; i++)
		rules[i] = rule_of(EGRESS_ALLOW, "a.example");
	assert_int_equal(egress_encode(&policy, &arena, &bytes, &length), -E2BIG);
	policy.rule_count--;
	assert_int_equal(egress_encode(&policy, &arena, &bytes, &length), 0);
	assert_int_equal(decode(bytes, length), 0);
	memset(text, 'x', EGRESS_LIMIT_BYTES);
	rules[0].ref.id = text;
	assert_int_equal(egress_encode(&policy, &arena, &bytes, &length), -E2BIG);
	free(text);
	free(rules);
}

static void words(void **state)
{
	(void)state;
	assert_true(egress_purpose_check("release-1.0_x"));
	assert_false(egress_purpose_check(""));
	assert_false(egress_purpose_check("a b"));
	assert_false(egress_purpose_check("A"));
	assert_false(egress_purpose_check("abcdefghijklmnopqrstuvwxyzabcdef"));
	assert_true(egress_purpose_check("abcdefghijklmnopqrstuvwxyzabcde"));
	assert_true(egress_method_check("GET"));
	assert_false(egress_method_check("get"));
	assert_false(egress_method_check("GET "));
	assert_true(egress_path_check("/"));
	assert_true(egress_path_check("/a/**"));
	assert_false(egress_path_check("a"));
	assert_false(egress_path_check("//"));
	assert_false(egress_path_check("/a/"));
	assert_false(egress_path_check(""));
	for (uint32_t bit = 0; bit < 5; bit++)
		assert_string_not_equal(egress_protocol_name(1u << bit), "unknown");
}

/* Where denials close every way, nothing has to be known, resolved or sent for the no. */
static void closed_ways(void **state)
{
	static const char *const get[] = { "GET" }, *const both[] = { "GET", "POST" },
				 *const path[] = { "/a" };
	struct host host = host_of("x.example");
	struct egress_question question = { .host = &host, .port = 443 };
	struct egress_rule rules[] = { rule_of(EGRESS_ALLOW, "x.example"),
				       rule_of(EGRESS_DENY, "x.example"),
				       rule_of(EGRESS_DENY, "*.example") };
	struct egress_policy policy = policy_of(rules, 2);

	(void)state;
	/* one protocol of several */
	rules[1].protocols = EGRESS_HTTP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	/* the only one */
	rules[0].protocols = EGRESS_HTTP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	assert_int_equal(ask(&policy, &question).needs, 0);
	assert_ptr_equal(ask(&policy, &question).rule, &rules[1]);
	/* TLS may be the web's */
	rules[0].protocols = EGRESS_HTTPS;
	rules[1].protocols = EGRESS_TLS;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* two denials together */
	policy.rule_count = 3;
	rules[0].protocols = EGRESS_HTTP | EGRESS_SSH;
	rules[1].protocols = EGRESS_SSH;
	rules[2].protocols = EGRESS_HTTP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* some methods, or paths, are left */
	rules[2].methods = get;
	rules[2].method_count = 1;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rules[0].protocols = EGRESS_HTTP;
	rules[0].methods = both;
	rules[0].method_count = 2;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rules[2].methods = both;
	rules[2].method_count = 2;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	rules[2].paths = path;
	rules[2].path_count = 1;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	rules[0].paths = path;
	rules[0].path_count = 1;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_DENY);
	/* what takes any bytes has other ways */
	rules[0] = rule_of(EGRESS_ALLOW, "x.example");
	rules[0].protocols = EGRESS_TCP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ALLOW);
	/* another rule opens one */
	rules[0].protocols = EGRESS_SSH;
	rules[2] = rule_of(EGRESS_ASK, "x.example");
	rules[2].protocols = EGRESS_HTTP;
	assert_int_equal(ask(&policy, &question).verdict, EGRESS_ASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_ports),
		cmocka_unit_test(denied_addresses),
		cmocka_unit_test(order),
		cmocka_unit_test(built_in),
		cmocka_unit_test(unknown_facts),
		cmocka_unit_test(tools),
		cmocka_unit_test(purposes_and_times),
		cmocka_unit_test(requests),
		cmocka_unit_test(upgrades),
		cmocka_unit_test(resolved),
		cmocka_unit_test(resolved_too_early),
		cmocka_unit_test(opened_by_one_rule),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(flipped_bytes),
		cmocka_unit_test(refused_values),
		cmocka_unit_test(limits),
		cmocka_unit_test(words),
		cmocka_unit_test(closed_ways),
	};

	return cmocka_run_group_tests_name("egress", tests, NULL, NULL);
}
