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
#include "base/buffer.h"
#include "policy/shell.h"

/* Each line: verdict, text (\n \t \r \xNN \\), nodes as grammar's-name:start:end:parent. */
#define ROWS "tests/unit/shell_trees.tsv"
#define LINE_BYTES 65536
#define NODES 4096

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

static struct shell_node nodes[NODES];
static char line[LINE_BYTES];

static char hexadecimal(const char *digits)
{
	char text[3] = { digits[0], digits[1], '\0' };

	return (char)strtol(text, NULL, 16);
}

static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at != '\\') {
			*to++ = *at;
			continue;
		}
		at++;
		*to++ = *at == 'n' ? '\n' :
			*at == 't' ? '\t' :
			*at == 'r' ? '\r' :
			*at == 'x' ? hexadecimal(at + 1) :
				     *at;
		at += *at == 'x' ? 2 : 0;
	}
	*to = '\0';
}

static size_t read_nodes(char *text)
{
	size_t count = 0;
	char *save = NULL;

	for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		char *colon = strchr(word, ':');

		assert_true(count < NODES && colon);
		*colon = '\0';
		nodes[count].kind = shell_kind(word, strcmp(word, "=") != 0);
		assert_int_equal(sscanf(colon + 1, "%u:%u:%u", &nodes[count].start,
					&nodes[count].end, &nodes[count].parent),
				 3);
		count++;
	}
	return count;
}

/* The next row; false at the end. The tree's text is in `line`. */
static bool next_row(FILE *file, const char **verdict, struct shell_tree *tree)
{
	char *text, *trees;

	if (!fgets(line, sizeof(line), file))
		return false;
	text = strchr(line, '\t');
	assert_non_null(text);
	*text++ = '\0';
	trees = strchr(text, '\t');
	assert_non_null(trees);
	*trees++ = '\0';
	tree->count = read_nodes(trees);
	unescape(text);
	*verdict = line;
	tree->text = text;
	tree->length = strlen(text);
	tree->nodes = nodes;
	return true;
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

static enum wanted_judgement judgement_of(const char *verdict)
{
	return strcmp(verdict, "allow") == 0 ? WANTED_ALLOWS :
	       strcmp(verdict, "ask") == 0   ? WANTED_ASKS :
					       WANTED_DENIES;
}

static void test_rows(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	FILE *file = fopen(ROWS, "re");
	struct shell_tree tree;
	const char *verdict;
	int wrong = 0, rows = 0;

	(void)state;
	assert_non_null(file);
	while (next_row(file, &verdict, &tree)) {
		struct classify classify = { .arena = &arena, .facts = &facts };

		shell_classify(&classify, &tree);
		rows++;
		if (classify_judge(&classify) != judgement_of(verdict)) {
			wrong++;
			print_message("%s: is %d, not %s", tree.text,
				      (int)classify_judge(&classify), verdict);
			print(&classify);
		}
		arena_reset(&arena);
	}
	fclose(file);
	assert_true(rows > 200);
	assert_int_equal(wrong, 0);
}

static enum wanted_judgement judge(const char *text, const struct shell_node *tree, size_t count)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };

	shell_classify(&classify, &(struct shell_tree){ text, strlen(text), tree, count });
	return classify_judge(&classify);
}

/* Trees that tell less than the text has in it, or that are none. */
static void test_trees_are_not_believed(void **state)
{
	static const struct shell_node good[] = {
		{ SHELL_PROGRAM, 0, 2, 0 },
		{ SHELL_COMMAND, 0, 2, 0 },
		{ SHELL_COMMAND_NAME, 0, 2, 1 },
		{ SHELL_WORD, 0, 2, 2 },
	};
	struct shell_node bad[4];

	(void)state;
	assert_int_equal(judge("ls", good, 4), WANTED_ALLOWS);
	assert_int_equal(judge("ls \n", good, 4), WANTED_ALLOWS);
	assert_int_equal(judge("ls;rm x", good, 4), WANTED_ASKS);
	assert_int_equal(judge("ls", good, 0), WANTED_ASKS);
	assert_int_equal(judge("ls", good + 1, 3), WANTED_ASKS);
	for (size_t i = 0; i < 4; i++) {
		static const struct shell_node wrong[] = {
			{ SHELL_UNKNOWN, 0, 2, 0 },	   { SHELL_WORD, 0, 3, 0 },
			{ SHELL_WORD, 2, 1, 0 },	   { SHELL_WORD, 0, 2, 9 },
			{ SHELL_KIND_COUNT + 5, 0, 2, 0 }, { SHELL_COMMENT, 0, 2, 0 },
			{ SHELL_REGEX, 0, 2, 0 },
		};

		for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++) {
			memcpy(bad, good, sizeof(bad));
			bad[i] = wrong[j];
			assert_int_equal(judge("ls", bad, 4), WANTED_ASKS);
		}
	}
}

/* The whole text as one word, the name of a command. */
static enum wanted_judgement judge_word(const char *text)
{
	uint32_t end = (uint32_t)strlen(text);
	const struct shell_node tree[] = {
		{ SHELL_PROGRAM, 0, end, 0 },
		{ SHELL_COMMAND, 0, end, 0 },
		{ SHELL_WORD, 0, end, 1 },
	};

	return judge(text, tree, 3);
}

/* A word that holds what a shell would not take for a word's. */
static void test_leaves_are_checked(void **state)
{
	static const char *const texts[] = {
		"l;s", "l s", "l\ns", "l`s",  "l$s", "l>s",  "l|s",
		"l&s", "l(s", "l'\"", "ls\\", "#ls", "ls\r",
	};

	(void)state;
	assert_int_equal(judge_word("ls"), WANTED_ALLOWS);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(judge_word(texts[i]), WANTED_ASKS);
}

static void test_limits(void **state)
{
	static char text[SHELL_LIMIT_BYTES + 2];
	static struct shell_node deep[SHELL_LIMIT_NESTING + 8];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	deep[0] = (struct shell_node){ SHELL_PROGRAM, 0, SHELL_LIMIT_BYTES + 1, 0 };
	assert_int_equal(judge(text, deep, 1), WANTED_ASKS);
	text[2] = '\0';
	for (uint32_t i = 0; i < SHELL_LIMIT_NESTING + 8; i++)
		deep[i] = (struct shell_node){ i ? SHELL_SUBSHELL : SHELL_PROGRAM, 0, 2,
					       i ? i - 1 : 0 };
	assert_int_equal(judge(text, deep, SHELL_LIMIT_NESTING + 8), WANTED_ASKS);
}

/* Text that a command hands to a shell is read into the same requests, where it stands. */
static void test_text_in_a_command(void **state)
{
	static const struct shell_node tree[] = {
		{ SHELL_PROGRAM, 0, 4, 0 },	 { SHELL_COMMAND, 0, 4, 0 },
		{ SHELL_COMMAND_NAME, 0, 2, 1 }, { SHELL_WORD, 0, 2, 2 },
		{ SHELL_WORD, 3, 4, 1 },
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	const char *const argv[] = { "sh", "-c", "rm x", NULL };

	(void)state;
	classify_argv(&classify, argv, 3);
	assert_int_equal(classify.text_count - classify.texts_read, 1);
	shell_classify_text(&classify, 0,
			    &(struct shell_tree){ classify.texts[0].text, 4, tree, 5 });
	assert_int_equal(classify.text_count - classify.texts_read, 0);
	assert_int_equal(classify.segment_count, 2);
	assert_int_equal(classify.wanted[classify.wanted_count - 1].verb, WANTED_FS_REMOVE);
	assert_string_equal(classify.wanted[classify.wanted_count - 1].target, "x");
	assert_int_equal(classify.wanted[classify.wanted_count - 1].segment, 1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* 150 us are promised for parsing and all; the sanitizers and a busy host get more. */
static void test_is_fast(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	FILE *file = fopen(ROWS, "re");
	struct shell_tree tree;
	const char *verdict;
	uint64_t spent_ns = 0, rows = 0;

	(void)state;
	assert_non_null(file);
	while (next_row(file, &verdict, &tree)) {
		uint64_t start = now_ns();

		for (int round = 0; round < 10; round++, rows++) {
			struct classify classify = { .arena = &arena, .facts = &facts };

			shell_classify(&classify, &tree);
			arena_reset(&arena);
		}
		spent_ns += now_ns() - start;
	}
	fclose(file);
	print_message("mean of a walk: %llu ns\n", (unsigned long long)(spent_ns / rows));
	assert_true(spent_ns / rows < 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_trees_are_not_believed),
		cmocka_unit_test(test_leaves_are_checked),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_text_in_a_command),
		cmocka_unit_test(test_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
