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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
