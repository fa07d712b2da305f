#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "policy/document.h"
#include "policy/policy.h"
#include "policy/program.h"
#include "policy/toolset.h"
#include "policy/verdict.h"

#define WORDS 16
#define TODAY 20000u /* 2024-10-04 */

static struct ruling exec_allow[] = { { .kind = RULING_EXEC_ALLOW, .text = "git", .rule = 1 },
				      { .kind = RULING_EXEC_ALLOW, .text = "sh", .rule = 2 } };
static struct ruling exec_deny[] = {
	{ .kind = RULING_EXEC_DENY, .text = "curl", .rule = 1 },
	{ .kind = RULING_EXEC_DENY, .text = "/opt/x", .rule = 1 },
	{ .kind = RULING_EXEC_SET, .text = "no-user-management", .rule = 2 },
};
static struct ruling asks[] = {
	{ .kind = RULING_ASK, .text = "destructive", .rule = 1 },
	{ .kind = RULING_ASK, .text = "package-installation", .rule = 1 },
	{ .kind = RULING_ASK, .text = "sensitive-reads", .rule = 1 },
	{ .kind = RULING_ASK, .text = "unknown-domains", .rule = 1 },
	{ .kind = RULING_ASK_METHOD, .text = "DELETE", .rule = 2 },
};
static struct ruling places[] = {
	{ .kind = RULING_TARGET_PATH, .text = "deploy/**", .label = "production", .rule = 1 },
	{ .kind = RULING_TARGET_PATH, .text = "/data/customers", .label = "customers", .rule = 1 },
	{ .kind = RULING_TARGET_HOST,
	  .text = "*.prod.example.org",
	  .label = "production",
	  .rule = 1 },
	{ .kind = RULING_HIDE, .text = "**/*.key", .rule = 2 },
	{ .kind = RULING_PROTECT, .text = "Makefile", .rule = 2 },
};
#define EXCEPTION(command, id, last)                                                       \
	{                                                                                  \
		.kind = RULING_EXCEPTION, .text = command, .label = "anna", .note = "why", \
		.rule = id, .until = last                                                  \
	}
static struct ruling exceptions[] = {
	{ .kind = RULING_ASK, .text = "destructive", .rule = 1 },
	{ .kind = RULING_EXEC_DENY, .text = "curl", .rule = 3 },
	EXCEPTION("rm -rf build", 2, TODAY),
	EXCEPTION("rm -rf old", 2, TODAY - 1),
	EXCEPTION("rm one *", 2, TODAY),
	EXCEPTION("nice * rm x", 2, TODAY),
	EXCEPTION("nice rm x", 2, TODAY),
	EXCEPTION("sudo ls", 2, TODAY),
	EXCEPTION("curl x", 2, TODAY),
	EXCEPTION("rm -rf twice", 2, TODAY - 9),
	EXCEPTION("rm -rf twice", 2, TODAY + 9),
};
static struct ruling digests[] = {
	{ .kind = RULING_EXEC_DENY, .text = "curl", .rule = 1 },
	{ .kind = RULING_EXCEPTION,
	  .text = "curl x",
	  .label = "anna",
	  .note = "why",
	  .digest = "00000000000000000000000000000000000000000000000000000000000000aa",
	  .rule = 1,
	  .until = TODAY },
};

enum set { NONE, ALWAYS, ALLOW_LIST, DENY_LIST, ASKS, NEVER, PLACES, EXCEPTIONS, DIGESTS };

static const struct {
	struct ruling *rows;
	size_t count;
	enum ruling_approval approval;
} sets[] = {
#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])
	[NONE] = { NULL, 0, RULING_ON_REQUEST },
	[ALWAYS] = { NULL, 0, RULING_ALWAYS },
	[ALLOW_LIST] = { ROWS(exec_allow), RULING_ON_REQUEST },
	[DENY_LIST] = { ROWS(exec_deny), RULING_ON_REQUEST },
	[ASKS] = { ROWS(asks), RULING_ON_REQUEST },
	[NEVER] = { ROWS(asks), RULING_NEVER },
	[PLACES] = { ROWS(places), RULING_ON_REQUEST },
	[EXCEPTIONS] = { ROWS(exceptions), RULING_ON_REQUEST },
	[DIGESTS] = { ROWS(digests), RULING_ON_REQUEST },
};

#define ALLOW(set, ...) { set, WANTED_ALLOWS, { __VA_ARGS__, NULL } },
#define ASK(set, ...) { set, WANTED_ASKS, { __VA_ARGS__, NULL } },
#define DENY(set, ...) { set, WANTED_DENIES, { __VA_ARGS__, NULL } },

static const struct {
	enum set set;
	enum wanted_judgement judgement;
	const char *argv[WORDS];
} rows[] = {
#include "verdict_rows.def"
};

static bool is_program(void *context, const char *named, const char *word, bool surely)
{
	const char *name = program_name(word);

	(void)context;
	if (surely && word[0] == '.')
		return false;
	return strcmp(named, word) == 0 || strcmp(named, name) == 0;
}

static const char *digest(void *context, const char *word)
{
	(void)context;
	return strcmp(word, "curl") == 0 ?
		       "00000000000000000000000000000000000000000000000000000000000000aa" :
		       NULL;
}

static struct policy policy_of(enum set set)
{
	static struct rule_ref rules[] = { { "zero", NULL, 0 },
					   { "one", "/etc/p.yaml", 1 },
					   { "two", "/etc/p.yaml", 2 },
					   { "three", "/etc/other.yaml", 3 } };
	static struct view_path shown[] = {
		{ .class = PATH_READ, .source = "/usr", .target = "/usr" },
		{ .class = PATH_WRITE, .source = "/work/p", .target = "/work/p" },
	};

	return (struct policy){
		.home = "/home/u",
		.workspace = "/work/p",
		.cwd = "/work/p",
		.rules = rules,
		.rule_count = 4,
		.view = { shown, 2 },
		.approval = sets[set].approval,
		.approval_rule = 1,
		.rulings = sets[set].rows,
		.ruling_count = sets[set].count,
	};
}

static const struct classify_facts facts = { .cwd = "/work/p", .home = "/home/u", .user = "u" };

static void test_rows(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct classify classify = { .arena = &arena, .facts = &facts };
		struct policy policy = policy_of(rows[i].set);
		struct verdict_facts judging = {
			.policy = &policy, .day = TODAY, .is_program = is_program, .digest = digest
		};
		struct verdict_list list;
		size_t argc = 0;

		while (rows[i].argv[argc])
			argc++;
		classify_argv(&classify, rows[i].argv, argc);
		verdict_make(&classify, &judging, &list);
		assert_non_null(list.whole.rule.id);
		assert_non_null(list.whole.reason);
		if (list.whole.judgement == rows[i].judgement)
			continue;
		wrong++;
		print_message("row %zu:", i);
		for (size_t j = 0; j < argc; j++)
			print_message(" %s", rows[i].argv[j]);
		print_message(": %s (%s: %s)\n", verdict_word(list.whole.judgement),
			      list.whole.rule.id, list.whole.reason);
	}
	assert_int_equal(wrong, 0);
}

static void test_rules_are_named(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	struct policy policy = policy_of(ASKS);
	struct verdict_facts judging = { .policy = &policy, .day = TODAY };
	const char *argv[] = { "rm", "x" };
	struct verdict_list list;

	(void)state;
	classify_argv(&classify, argv, 2);
	verdict_make(&classify, &judging, &list);
	assert_string_equal(list.whole.rule.file, "/etc/p.yaml");
	assert_int_equal(list.whole.rule.line, 1);
	assert_int_equal(classify.wanted[list.request].verb, WANTED_FS_REMOVE);
	assert_string_equal(list.whole.reason, "destructive: removes or overwrites for good");
	assert_string_equal(list.rows[0].rule.id, "run.allowed");
}

static void test_what_is_not_read_asks(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	struct policy policy = policy_of(DENY_LIST);
	struct verdict_facts judging = { .policy = &policy, .day = TODAY };
	const char *argv[] = { "sh", "-c", "ls" };
	struct verdict_list list;

	(void)state;
	classify_argv(&classify, argv, 3);
	verdict_make(&classify, &judging, &list);
	assert_int_equal(list.whole.judgement, WANTED_ASKS);
	assert_int_equal(list.request, classify.wanted_count);
}

/* A yes to what was seen is none to what was not: the two are asked about apart. */
static void test_what_is_not_read_is_no_request(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct policy policy = policy_of(ASKS);
	struct verdict_facts judging = { .policy = &policy, .day = TODAY };
	const char *argv[] = { "find", ".", "-delete", "-exec", "sh", "-c", "ls", ";" };
	struct verdict_list list;

	(void)state;
	for (size_t argc = 3; argc <= 8; argc += 5) {
		struct classify classify = { .arena = &arena, .facts = &facts };

		classify_argv(&classify, argv, argc);
		verdict_make(&classify, &judging, &list);
		assert_int_equal(list.whole.judgement, WANTED_ASKS);
		assert_int_equal(classify.wanted[list.request].verb, WANTED_FS_REMOVE);
		assert_int_equal(list.unread.judgement, argc == 3 ? WANTED_ALLOWS : WANTED_ASKS);
	}
}

/* So many rules and requests that nobody waits for an end: asked about. */
static void test_steps_are_limited(void **state)
{
	static struct ruling many[RULING_LIMIT];
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	struct policy policy = policy_of(NONE);
	struct verdict_facts judging = { .policy = &policy, .day = TODAY };
	const char *argv[100] = { "cat" };
	struct verdict_list list;

	(void)state;
	for (size_t i = 0; i < RULING_LIMIT; i++)
		many[i] = places[0];
	for (size_t i = 1; i < 100; i++)
		argv[i] = "x";
	policy.rulings = many;
	policy.ruling_count = RULING_LIMIT;
	classify_argv(&classify, argv, 100);
	verdict_make(&classify, &judging, &list);
	assert_null(list.rows);
	assert_int_equal(list.whole.judgement, WANTED_ASKS);
}

/* What the network's rules say of a connection whose host and port stand in the words. */
static void test_network(void **state)
{
	static struct egress_ports web[] = { { 443, 443 } };
	static struct egress_rule egress[] = {
		{ .ref = { "listed", "/etc/p.yaml", 7 },
		  .verdict = EGRESS_ALLOW,
		  .name = "listed.example" },
		{ .ref = { "asked", "/etc/p.yaml", 8 },
		  .verdict = EGRESS_ASK,
		  .name = "asked.example" },
		{ .ref = { "no", "/etc/p.yaml", 9 }, .verdict = EGRESS_DENY, .name = "no.example" },
	};
	static const struct {
		const char *url, *rule;
		enum wanted_judgement judgement;
	} cases[] = {
		/* "unknown-domains" is asked for: a listed one is none */
		{ "https://listed.example/x", "listed", WANTED_ALLOWS },
		{ "http://listed.example/x", "egress.default", WANTED_DENIES },
		{ "https://listed.example:8443/x", "egress.default", WANTED_DENIES },
		{ "https://other.example/x", "egress.default", WANTED_DENIES },
		{ "https://asked.example/x", "one", WANTED_ASKS },
		{ "https://no.example/x", "no", WANTED_DENIES },
		{ "https://169.254.169.254/", "egress.special", WANTED_DENIES },
		{ "http://localhost:8000/", "run.allowed", WANTED_ALLOWS },
	};
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		egress[i].ports = web;
		egress[i].port_count = 1;
		egress[i].protocols = egress[i].verdict == EGRESS_DENY ? EGRESS_PROTOCOLS_ALL :
									 EGRESS_PROTOCOLS_DEFAULT;
		egress[i].tool = egress[i].purpose = "";
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct classify classify = { .arena = &arena, .facts = &facts };
		struct policy policy = policy_of(ASKS);
		struct verdict_facts judging = { .policy = &policy, .day = TODAY };
		const char *argv[] = { "curl", "-s", cases[i].url };
		struct verdict_list list;
		size_t row = 0;

		policy.egress = (struct egress_policy){
			.mode = EGRESS_POLICY, .purpose = "", .rules = egress, .rule_count = 3
		};
		classify_argv(&classify, argv, 3);
		verdict_make(&classify, &judging, &list);
		while (row < classify.wanted_count &&
		       classify.wanted[row].verb != WANTED_NET_CONNECT)
			row++;
		assert_true(row < classify.wanted_count);
		assert_int_equal(list.rows[row].judgement, cases[i].judgement);
		assert_string_equal(list.rows[row].rule.id, cases[i].rule);
	}
}

static void test_days(void **state)
{
	static const struct {
		const char *date;
		uint64_t day;
	} days[] = { { "1970-01-01", 0 },     { "1970-01-02", 1 },     { "2000-02-29", 11016 },
		     { "2000-03-01", 11017 }, { "2024-10-04", 20000 }, { "2026-12-01", 20788 },
		     { "2100-03-01", 47541 }, { "1960-05-05", 0 },     { "0000-01-01", 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++)
		assert_int_equal(ruling_day(days[i].date), days[i].day);
}

/* The tables say the same of the words that a policy may have. */
static void test_words(void **state)
{
	static const struct {
		enum document_key key;
		enum ruling_kind kind;
	} pairs[] = { { DOCUMENT_EXEC_SETS, RULING_EXEC_SET },
		      { DOCUMENT_ASK, RULING_ASK },
		      { DOCUMENT_ASK_METHODS, RULING_ASK_METHOD } };
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		size_t count = 0;
		const char *const *words =
			document_split(&arena, document_key(pairs[i].key)->words, &count);

		assert_true(count >= 4);
		for (size_t j = 0; j < count; j++) {
			struct ruling ruling = { .kind = pairs[i].kind, .text = words[j] };

			assert_true(ruling_is_valid(&ruling));
			if (pairs[i].kind == RULING_EXEC_SET)
				assert_true(strlen(toolset_programs(words[j])) > 50);
		}
	}
	assert_string_equal(toolset_programs("no-such-set"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rules_are_named),
		cmocka_unit_test(test_what_is_not_read_asks),
		cmocka_unit_test(test_what_is_not_read_is_no_request),
		cmocka_unit_test(test_steps_are_limited),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
