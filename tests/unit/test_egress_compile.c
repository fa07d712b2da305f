#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/document.h"
#include "policy/egress_compile.h"
#include "policy/suffix.h"

#define DETAILS 6

struct row {
	enum document_key key;
	const char *host;
	struct document_detail details[DETAILS]; /* ended by an empty one */
};

static struct document_statement statement_of(const struct row *row)
{
	size_t count = 0;

	while (count < DETAILS && row->details[count].field)
		count++;
	return (struct document_statement){ .key = row->key,
					    .text = row->host,
					    .rule = { "r", "p.yaml", 3 },
					    .column = 5,
					    .details = row->details,
					    .detail_count = count };
}

static int compile(struct row *rows, size_t count, struct arena *arena,
		   struct egress_policy *policy, struct error *error)
{
	struct document_statement statements[4];
	struct document document = { "p.yaml", statements, count };

	for (size_t i = 0; i < count; i++)
		statements[i] = statement_of(&rows[i]);
	return egress_compile(&document, arena, policy, error);
}

/* HH02: nothing said is nothing allowed, and a denial alone is no network either. */
static void nothing(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct row rows[] = { { DOCUMENT_NET_DENY, "a.example", { { 0 } } } };
	struct error error = ERROR_NONE;
	struct egress_policy policy;

	(void)state;
	assert_int_equal(compile(rows, 0, &arena, &policy, &error), 0);
	assert_int_equal(policy.mode, EGRESS_NONE);
	assert_int_equal(compile(rows, 1, &arena, &policy, &error), 0);
	assert_int_equal(policy.mode, EGRESS_NONE);
	assert_int_equal(policy.rule_count, 1);
	assert_int_equal(policy.rules[0].protocols, EGRESS_PROTOCOLS_ALL);
	assert_int_equal(policy.rules[0].ports[0].first, 1);
	assert_int_equal(policy.rules[0].ports[0].last, 65535);
}

static void whole_rule(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct row rows[] = {
		{ DOCUMENT_NET_ALLOW,
		  "*.example.org",
		  { { "ports", "443" },
		    { "ports", "8000-8010" },
		    { "protocols", "https" },
		    { "from", "2026-03-01" },
		    { "until", "2028-02-29" },
		    { "max-bytes", "10M" } } },
		{ DOCUMENT_NET_ASK,
		  "db.corp.example",
		  { { "private", "true" },
		    { "once", "true" },
		    { "tool", "psql" },
		    { "purpose", "release" },
		    { "connections", "3" },
		    { "upgrade", "false" } } },
		{ DOCUMENT_NET_ALLOW, "2001:db8::/32", { { "protocol", "git" } } },
		{ DOCUMENT_NET_ALLOW,
		  "www.example.org",
		  { { "protocol", "http" }, { "methods", "GET" }, { "paths", "/a/**" } } },
	};
	struct error error = ERROR_NONE;
	const struct egress_rule *rule;
	struct egress_policy policy;

	(void)state;
	assert_int_equal(compile(rows, 4, &arena, &policy, &error), 0);
	assert_int_equal(policy.mode, EGRESS_POLICY);
	rule = &policy.rules[0];
	assert_int_equal(rule->kind, EGRESS_BELOW);
	assert_string_equal(rule->name, "example.org");
	assert_int_equal(rule->port_count, 2);
	assert_int_equal(rule->ports[1].first, 8000);
	assert_int_equal(rule->ports[1].last, 8010);
	assert_int_equal(rule->protocols, EGRESS_HTTPS);
	assert_true(rule->from_wall_s == 1772323200);
	assert_true(rule->until_wall_s == 1835481600);
	assert_true(rule->bytes_up == 10 * 1024 * 1024 && rule->bytes_down == rule->bytes_up);
	rule = &policy.rules[1];
	assert_int_equal(rule->verdict, EGRESS_ASK);
	assert_int_equal(rule->kind, EGRESS_EXACT);
	assert_int_equal(rule->flags, EGRESS_PRIVATE | EGRESS_ONCE);
	assert_string_equal(rule->tool, "psql");
	assert_string_equal(rule->purpose, "release");
	assert_true(rule->connections == 3);
	assert_int_equal(rule->protocols, EGRESS_PROTOCOLS_DEFAULT);
	assert_int_equal(rule->ports[0].first, 443);
	rule = &policy.rules[2];
	assert_int_equal(rule->kind, EGRESS_NETWORK);
	assert_int_equal(rule->prefix_bits, 32);
	assert_int_equal(rule->protocols, EGRESS_TCP);
	rule = &policy.rules[3];
	assert_int_equal(rule->method_count, 1);
	assert_string_equal(rule->paths[0], "/a/**");
}

/* What is refused, and whether it is a fault of the file, or needs what this build lacks. */
static void refused(void **state)
{
	static struct row rows[] = {
		{ DOCUMENT_NET_ALLOW, "*", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.com", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.co.uk", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.github.io", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.amazonaws.com", { { 0 } } },
		{ DOCUMENT_NET_ASK, "*.com", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "0.0.0.0/0", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "::/0", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "127.1", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "10.0.0.1/8", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "10.0.0.0/33", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "10.0.0.0/", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.10.0.0.1", { { 0 } } },
		{ DOCUMENT_NET_ALLOW,
		  "b\xc3\xbc"
		  "cher.example",
		  { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "purpose", "two words" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "connections", "0" } } },
		{ DOCUMENT_NET_ALLOW, "10.0.0.0/8", { { "private", "true" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "tool", "curl" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "max-bytes", "1" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "connections", "1" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "once", "true" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "private", "true" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "upgrade", "true" } } },
		{ DOCUMENT_NET_ALLOW,
		  "a.example",
		  { { "protocol", "ssh" }, { "upgrade", "true" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "protocol", "http" }, { "paths", "/a/" } } },
	};
	static struct row lacking[] = {
		{ DOCUMENT_NET_ALLOW, "a.example", { { "methods", "GET" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "paths", "/a" }, { "protocol", "https" } } },
		{ DOCUMENT_NET_DENY, "a.example", { { "paths", "/a" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "inspect", "true" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "protocol", "udp" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "max-requests", "3" } } },
		{ DOCUMENT_NET_ALLOW, "a.example", { { "requests-per-minute", "3" } } },
		{ DOCUMENT_NET_ASK,
		  "a.example",
		  { { "protocol", "https" }, { "requests-per-minute", "3" } } },
		{ DOCUMENT_NET_ALLOW,
		  "a.example",
		  { { "protocols", "http" },
		    { "protocols", "https" },
		    { "requests-per-minute", "3" } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct document_statement statement = statement_of(&rows[i]);
		struct error error = ERROR_NONE;
		struct egress_policy policy;

		if (compile(&rows[i], 1, &arena, &policy, &error) != -EINVAL)
			fail_msg("row %zu: %s", i, rows[i].host);
		assert_non_null(strstr(error.message, "p.yaml:3:5: network."));
		assert_non_null(egress_compile_fault(&statement, &arena));
	}
	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct document_statement statement = statement_of(&lacking[i]);
		struct error error = ERROR_NONE;
		struct egress_policy policy;

		if (compile(&lacking[i], 1, &arena, &policy, &error) != -EOPNOTSUPP)
			fail_msg("row %zu", i);
		assert_null(egress_compile_fault(&statement, &arena));
	}
}

/* What is over-broad passes where it is marked, and where it denies. */
static void marked(void **state)
{
	static struct row rows[] = {
		{ DOCUMENT_NET_ALLOW, "*", { { "dangerous", "true" } } },
		{ DOCUMENT_NET_ALLOW, "*.github.io", { { "dangerous", "true" } } },
		{ DOCUMENT_NET_ALLOW, "0.0.0.0/0", { { "dangerous", "true" } } },
		{ DOCUMENT_NET_DENY, "*", { { 0 } } },
		{ DOCUMENT_NET_DENY, "*.com", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "*.example.com", { { 0 } } },
		{ DOCUMENT_NET_ALLOW, "10.0.0.0/8", { { 0 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct error error = ERROR_NONE;
		struct egress_policy policy;

		if (compile(&rows[i], 1, &arena, &policy, &error) < 0)
			fail_msg("row %zu: %s", i, error.message);
	}
}

static void flags(void **state)
{
	static const struct {
		const char *text;
		enum egress_host_kind kind;
		size_t ports;
		uint16_t last;
	} rows[] = {
		{ "example.com", EGRESS_EXACT, 2, 443 },
		{ "Example.com:8443", EGRESS_EXACT, 1, 8443 },
		{ "*.example.com:443,8000-8010", EGRESS_BELOW, 2, 8010 },
		{ "10.0.0.1:22", EGRESS_NETWORK, 1, 22 },
		{ "10.0.0.0/8:22", EGRESS_NETWORK, 1, 22 },
		{ "[2001:db8::1]:22", EGRESS_NETWORK, 1, 22 },
		{ "[2001:db8::1]", EGRESS_NETWORK, 2, 443 },
	};
	static const char *const refused_texts[] = {
		"",
		"*",
		"*.com",
		"a.example:",
		"a.example:0",
		"a.example:1-",
		":443",
		"a.example:443,",
		"a b",
		"a.example:x",
		"http://a.example",
		"2001:db8::1",
		"a.example:9-8",
	};
	struct rule_ref ref = { "flag.allow-host", "--allow-host", 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct error error = ERROR_NONE;
		struct egress_rule rule;

		if (egress_compile_host(rows[i].text, &ref, &arena, &rule, &error) < 0)
			fail_msg("%s: %s", rows[i].text, error.message);
		assert_int_equal(rule.kind, rows[i].kind);
		assert_int_equal(rule.port_count, rows[i].ports);
		assert_int_equal(rule.ports[rule.port_count - 1].last, rows[i].last);
		assert_int_equal(rule.verdict, EGRESS_ALLOW);
	}
	for (size_t i = 0; i < sizeof(refused_texts) / sizeof(refused_texts[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct error error = ERROR_NONE;
		struct egress_rule rule;

		if (egress_compile_host(refused_texts[i], &ref, &arena, &rule, &error) != -EINVAL)
			fail_msg("%s", refused_texts[i]);
		assert_non_null(strstr(error.message, "--allow-host"));
	}
}

static void suffixes(void **state)
{
	(void)state;
	assert_true(suffix_is_public("com"));
	assert_true(suffix_is_public("anything"));
	assert_true(suffix_is_public("co.uk"));
	assert_true(suffix_is_public("github.io"));
	assert_true(suffix_is_public("amazonaws.com"));
	assert_true(suffix_is_public("anything.ck"));
	assert_false(suffix_is_public("www.ck"));
	assert_false(suffix_is_public("example.com"));
	assert_false(suffix_is_public("github.com"));
	assert_false(suffix_is_public("a.github.io"));
	assert_true(suffix_is_public("xn--p1ai"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing), cmocka_unit_test(whole_rule), cmocka_unit_test(refused),
		cmocka_unit_test(marked),  cmocka_unit_test(flags),	 cmocka_unit_test(suffixes),
	};

	return cmocka_run_group_tests_name("egress_compile", tests, NULL, NULL);
}
