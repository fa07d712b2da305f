#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/classify.h"
#include "policy/program.h"

#define WORDS 24

struct row {
	enum wanted_judgement judgement;
	const char *argv[WORDS];
};

#define ALLOW(...) { WANTED_ALLOWS, { __VA_ARGS__, NULL } },
#define ASK(...) { WANTED_ASKS, { __VA_ARGS__, NULL } },
#define DENY(...) { WANTED_DENIES, { __VA_ARGS__, NULL } },

static const struct row rows[] = {
#include "classify_rows.def"
};

static const char *resolve(void *context, const char *path)
{
	(void)context;
	return strcmp(path, "/work/p/link-to-shadow") == 0 ? "/etc/shadow" : NULL;
}

static const struct classify_facts facts = {
	.cwd = "/work/p",
	.home = "/home/u",
	.user = "u",
	.resolve = resolve,
};

static size_t count(const char *const *argv)
{
	size_t argc = 0;

	while (argv[argc])
		argc++;
	return argc;
}

static void print(const struct classify *classify)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };

	for (size_t i = 0; i < classify->wanted_count; i++) {
		buffer_text(&buffer, "\n    ");
		wanted_print(&classify->wanted[i], &buffer);
	}
	print_message("%s\n", buffer.data ? buffer.data : "");
}

static void test_rows(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct classify classify = { .arena = &arena, .facts = &facts };

		classify_argv(&classify, rows[i].argv, count(rows[i].argv));
		if (classify_judge(&classify) != rows[i].judgement) {
			wrong++;
			print_message("row %zu:", i);
			for (size_t j = 0; rows[i].argv[j]; j++)
				print_message(" %s", rows[i].argv[j]);
			print_message(": %d, not %d%s", (int)classify_judge(&classify),
				      (int)rows[i].judgement, classify.failed ? " (failed)" : "");
			print(&classify);
		}
		arena_reset(&arena);
	}
	assert_int_equal(wrong, 0);
}

static void test_empty_asks(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };

	(void)state;
	classify_argv(&classify, (const char *const[]){ NULL }, 0);
	assert_int_equal(classify_judge(&classify), WANTED_ASKS);
}

/* The request with the verb and the target; NULL where there is none. */
static const struct wanted *find(const struct classify *classify, enum wanted_verb verb,
				 const char *target)
{
	for (size_t i = 0; i < classify->wanted_count; i++)
		if (classify->wanted[i].verb == verb &&
		    strcmp(classify->wanted[i].target, target) == 0)
			return &classify->wanted[i];
	return NULL;
}

struct expectation {
	const char *argv[WORDS];
	enum wanted_verb verb;
	const char *target;
	uint32_t segment, position;
};

static const struct expectation expectations[] = {
	{ { "curl", "-sS", "https://registry.npmjs.org/left-pad" },
	  WANTED_NET_CONNECT,
	  "registry.npmjs.org:443",
	  0,
	  2 },
	{ { "curl", "https://u:p@h.example:8443/x" }, WANTED_NET_CONNECT, "h.example:8443", 0, 1 },
	{ { "curl", "https://u:p@h.example:8443/x" },
	  WANTED_CREDENTIAL_USE,
	  "https://u:p@h.example:8443/x",
	  0,
	  1 },
	{ { "curl", "-d@/work/p/a", "http://h" }, WANTED_FS_READ, "/work/p/a", 0, 1 },
	{ { "curl", "-d@/work/p/a", "http://h" }, WANTED_EXTERNAL_WRITE, "curl", 0, 0 },
	{ { "sort", "--outp=x", "y" }, WANTED_FS_WRITE, "x", 0, 1 },
	{ { "sort", "-uox", "y" }, WANTED_FS_WRITE, "x", 0, 1 },
	{ { "sort", "-o", "x", "y" }, WANTED_FS_WRITE, "x", 0, 2 },
	{ { "cp", "a", "b", "c" }, WANTED_FS_WRITE, "c", 0, 3 },
	{ { "cp", "a", "b", "c" }, WANTED_FS_READ, "a", 0, 1 },
	{ { "timeout", "5", "git", "push", "origin" }, WANTED_EXEC_WRAPPED, "timeout", 0, 0 },
	{ { "timeout", "5", "git", "push", "origin" }, WANTED_EXTERNAL_WRITE, "origin", 1, 4 },
	{ { "find", ".", "-exec", "rm", "-f", "{}", ";", "-print" },
	  WANTED_FS_REMOVE,
	  "./*",
	  1,
	  5 },
	{ { "xargs", "-n1", "kill" }, WANTED_PROCESS_CONTROL, "(words read later)", 1, 0 },
	{ { "sed", "-n", "w /work/p/o", "f" }, WANTED_FS_WRITE, "/work/p/o", 0, 2 },
	{ { "awk", "{print > \"o\"}", "f" }, WANTED_FS_WRITE, "o", 0, 1 },
	{ { "dd", "if=/dev/zero", "of=disk.img" }, WANTED_FS_REMOVE, "disk.img", 0, 2 },
	{ { "rm", "-rf", "/home/u/..//u" }, WANTED_FS_RUIN, "/home/u/..//u", 0, 2 },
	{ { "tee", "/home/u/.bashrc" }, WANTED_FS_PERSIST, "/home/u/.bashrc", 0, 1 },
	{ { "npm", "install", "left-pad" }, WANTED_PACKAGE_INSTALL, "npm install", 0, 0 },
	{ { "nosuch" }, WANTED_EXEC_UNKNOWN, "nosuch", 0, 0 },
	{ { "git", "-c", "core.fsmonitor=x", "status" },
	  WANTED_EXEC_CODE,
	  "core.fsmonitor=x",
	  0,
	  2 },
	{ { "scp", "a", "u@h:b" }, WANTED_NET_CONNECT, "h:22", 0, 2 },
};

static void test_requests(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
		const struct expectation *expected = &expectations[i];
		struct classify classify = { .arena = &arena, .facts = &facts };
		const struct wanted *wanted;

		classify_argv(&classify, expected->argv, count(expected->argv));
		wanted = find(&classify, expected->verb, expected->target);
		if (!wanted) {
			print_message("expectation %zu", i);
			print(&classify);
		}
		assert_non_null(wanted);
		assert_int_equal(wanted->segment, expected->segment);
		assert_int_equal(wanted->position, expected->position);
	}
}

static void test_shell_text_waits(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	const char *const argv[] = { "env", "-S", "sh -c id", NULL };
	const char *const shell[] = { "sudo", "bash", "-ec", "ls; rm x", "zero", NULL };

	(void)state;
	classify_argv(&classify, argv, 3);
	assert_int_equal(classify.text_count, 1);
	assert_string_equal(classify.texts[0].text, "sh -c id");
	assert_int_equal(classify_judge(&classify), WANTED_ASKS);
	memset(&classify, 0, sizeof(classify));
	classify.arena = &arena;
	classify.facts = &facts;
	classify_argv(&classify, shell, 5);
	assert_int_equal(classify.text_count, 1);
	assert_string_equal(classify.texts[0].text, "ls; rm x");
	assert_int_equal(classify.texts[0].segment, 1);
}

static void test_unknown_words(void **state)
{
	static const struct {
		struct classify_word words[4];
		size_t count;
		enum wanted_judgement judgement;
	} cases[] = {
		{ { { "cat", CLASSIFY_LITERAL, 0 }, { "*.c", CLASSIFY_GLOB, 1 } },
		  2,
		  WANTED_ALLOWS },
		{ { { "cat", CLASSIFY_LITERAL, 0 }, { ".e*", CLASSIFY_GLOB, 1 } }, 2, WANTED_ASKS },
		{ { { "cat", CLASSIFY_LITERAL, 0 }, { "/etc/sh?dow", CLASSIFY_GLOB, 1 } },
		  2,
		  WANTED_ASKS },
		{ { { "cat", CLASSIFY_LITERAL, 0 }, { "/e*/[s]hadow", CLASSIFY_GLOB, 1 } },
		  2,
		  WANTED_ASKS },
		{ { { "cat", CLASSIFY_LITERAL, 0 }, { "$x", CLASSIFY_UNKNOWN, 1 } },
		  2,
		  WANTED_ASKS },
		{ { { "echo", CLASSIFY_LITERAL, 0 }, { "$x", CLASSIFY_UNKNOWN, 1 } },
		  2,
		  WANTED_ALLOWS },
		{ { { "sort", CLASSIFY_LITERAL, 0 }, { "*", CLASSIFY_GLOB, 1 } }, 2, WANTED_ASKS },
		{ { { "sort", CLASSIFY_LITERAL, 0 },
		    { "--", CLASSIFY_LITERAL, 1 },
		    { "*", CLASSIFY_GLOB, 2 } },
		  3,
		  WANTED_ALLOWS },
		{ { { "sort", CLASSIFY_LITERAL, 0 }, { "-*", CLASSIFY_GLOB, 1 } }, 2, WANTED_ASKS },
		{ { { "less", CLASSIFY_LITERAL, 0 }, { "+*", CLASSIFY_GLOB, 1 } }, 2, WANTED_ASKS },
		{ { { "head", CLASSIFY_LITERAL, 0 }, { "-*", CLASSIFY_GLOB, 1 } },
		  2,
		  WANTED_ALLOWS },
		{ { { "sort", CLASSIFY_LITERAL, 0 }, { "./*", CLASSIFY_GLOB, 1 } },
		  2,
		  WANTED_ALLOWS },
		{ { { "$x", CLASSIFY_ONE, 0 } }, 1, WANTED_ASKS },
		{ { { "find", CLASSIFY_LITERAL, 0 },
		    { ".", CLASSIFY_LITERAL, 1 },
		    { "$x", CLASSIFY_ONE, 2 } },
		  3,
		  WANTED_ASKS },
		{ { { "grep", CLASSIFY_LITERAL, 0 },
		    { "$x", CLASSIFY_ONE, 1 },
		    { "a.c", CLASSIFY_LITERAL, 2 } },
		  3,
		  WANTED_ALLOWS },
		{ { { "git", CLASSIFY_LITERAL, 0 }, { "$x", CLASSIFY_ONE, 1 } }, 2, WANTED_ASKS },
		{ { { "git", CLASSIFY_LITERAL, 0 },
		    { "log", CLASSIFY_LITERAL, 1 },
		    { "--author=$x", CLASSIFY_ONE, 2 } },
		  3,
		  WANTED_ALLOWS },
	};
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct classify classify = { .arena = &arena, .facts = &facts };

		classify_words(&classify, cases[i].words, cases[i].count);
		if (classify_judge(&classify) != cases[i].judgement) {
			print_message("case %zu", i);
			print(&classify);
		}
		assert_int_equal(classify_judge(&classify), cases[i].judgement);
	}
}

/* Wrappers in wrappers, and operands without end, stop at the named limits. */
static void test_limits(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	static const char *argv[10000];

	(void)state;
	for (size_t i = 0; i < 10000; i++)
		argv[i] = "nice";
	classify_argv(&classify, argv, 10000);
	assert_true(classify.failed);
	assert_true(classify.segment_count <= CLASSIFY_LIMIT_SEGMENTS);
	for (size_t i = 0; i < 10000; i++)
		argv[i] = "cat";
	memset(&classify, 0, sizeof(classify));
	classify.arena = &arena;
	classify.facts = &facts;
	classify_argv(&classify, argv, 10000);
	assert_int_equal(classify_judge(&classify), WANTED_ASKS);
	assert_int_equal(classify.wanted_count, CLASSIFY_LIMIT_WANTED);
}

static void test_natures(void **state)
{
	static const struct {
		const char *word;
		enum program_nature nature;
	} words[] = {
		{ "cat", PROGRAM_TAKES_DATA },
		{ "/usr/bin/ls", PROGRAM_TAKES_DATA },
		{ "grep", PROGRAM_TAKES_DATA },
		{ "sh", PROGRAM_TAKES_CODE },
		{ "/bin/bash", PROGRAM_TAKES_CODE },
		{ "python3.11", PROGRAM_TAKES_CODE },
		{ "python3", PROGRAM_TAKES_CODE },
		{ "perl", PROGRAM_TAKES_CODE },
		{ "node", PROGRAM_TAKES_CODE },
		{ "awk", PROGRAM_TAKES_CODE },
		{ "make", PROGRAM_TAKES_CODE },
		{ "vim", PROGRAM_TAKES_CODE },
		{ "gdb", PROGRAM_TAKES_CODE },
		{ "frobnicate", PROGRAM_IS_NOT_KNOWN },
		{ "frobnicate-1.2", PROGRAM_IS_NOT_KNOWN },
		{ "7", PROGRAM_IS_NOT_KNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (program_nature(words[i].word) != words[i].nature)
			fail_msg("%s", words[i].word);
}

/* A row that names a letter or a subcommand that does not exist would be silently weak. */
static void test_table_is_sound(void **state)
{
	static const char objects[] = "trwduxpqkvcieslaygf@hSAJFMmnzbjoGV1/#^";
	static const char plain[] = "XNIEKPYLCUTBDWROHQZ1";

	(void)state;
	for (size_t i = 0; program_at(i); i++) {
		const struct program *program = program_at(i);

		assert_ptr_equal(program_find(program->name), program);
		if (program->way == WAY_ALIAS) {
			assert_non_null(program_find(program->base));
			assert_int_not_equal(program_find(program->base)->way, WAY_ALIAS);
			continue;
		}
		for (const char *at = program->base; *at; at++)
			assert_non_null(strchr(plain, *at));
		for (const char *at = program->operands; *at; at++)
			if (!strchr("*=>$+", *at))
				assert_non_null(strchr(objects, *at));
		if (program->way == WAY_COMMANDS)
			assert_non_null(strstr(program->options, "!stop"));
		if (strpbrk(program->operands, ">$="))
			assert_non_null(strstr(program->options, "!stop"));
	}
}

static void check_letters(const struct program *program, const char *item, size_t length)
{
	static const char objects[] = "trwduxpqkcieslaygf@hSAJFMmnzbjovGV%/,>";
	static const char all[] = "trwduxpqkvcieslaygf@hSAJFMmnzbjoGV%/1,>+XNIEKPYLCUTBDWROHQZ02";
	size_t names = strcspn(item, ":?! ");

	if (item[0] != '-')
		return;
	for (size_t i = names + 1; i < length; i++) {
		if (!strchr(all, item[i]) || (item[names] == '!' && strchr(objects, item[i])))
			print_message("%s: %.*s\n", program->name, (int)length, item);
		assert_non_null(strchr(all, item[i]));
		assert_false(item[names] == '!' && strchr(objects, item[i]));
	}
}

static void test_options_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; program_at(i); i++) {
		const struct program *program = program_at(i);
		bool options = false;

		for (const char *at = program->options; *at;) {
			size_t length = strcspn(at, " ");

			options |= at[0] == '-';
			if (options && at[0] != '-')
				print_message("%s: a setting behind an option\n", program->name);
			assert_true(at[0] == '-' || !options);

			check_letters(program, at, length);
			if (at[0] != '-' && at[0] != '!' && strncmp(at, "* ", 2) != 0 &&
			    strcmp(at, "*") != 0)
				print_message("%s: %.*s\n", program->name, (int)length, at);
			assert_true(at[0] == '-' || at[0] == '!' || at[0] == '*');
			at += length;
			at += strspn(at, " ");
		}
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* docs/SPECIFICATION.md promises 50 us; the sanitizers and a busy host get ten times that. */
static void test_is_fast(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	size_t n = sizeof(rows) / sizeof(rows[0]);
	uint64_t start = now_ns(), mean_ns;

	(void)state;
	for (int round = 0; round < 20; round++)
		for (size_t i = 0; i < n; i++) {
			struct classify classify = { .arena = &arena, .facts = &facts };

			classify_argv(&classify, rows[i].argv, count(rows[i].argv));
			arena_reset(&arena);
		}
	mean_ns = (now_ns() - start) / (20 * n);
	print_message("mean of a decision: %llu ns\n", (unsigned long long)mean_ns);
	assert_true(mean_ns < 500000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_empty_asks),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_shell_text_waits),
		cmocka_unit_test(test_unknown_words),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_natures),
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_options_are_sound),
		cmocka_unit_test(test_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
