/*
 * A shell's text through the real parser and the walk: whatever the text is, the grammar's code and
 * ours read nothing beyond it, the tree is whole and in order, and nothing that substitutes is let
 * pass unasked. Input: the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/shell_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct classify_facts facts = { .cwd = "/w/p", .home = "/h/u", .user = "u" };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_tree(const struct shell_answer *answer, size_t length)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct shell_node *node = &answer->nodes[i];

		require(node->kind < SHELL_KIND_COUNT);
		require(node->start <= node->end && node->end <= length);
		require(i ? node->parent < i : node->parent == 0);
	}
}

/* What is never allowed, whatever stands in it. */
static bool is_beyond(const struct shell_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		if (answer->nodes[i].kind == SHELL_UNKNOWN ||
		    answer->nodes[i].kind == SHELL_FUNCTION)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shell_parser *parser = shell_parser_get();
	struct arena arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	struct shell_answer answer;
	char *text = malloc(size ? size : 1);

	require(parser && text);
	if (size)
		memcpy(text, data, size);
	answer = shell_parse(parser, text, size);
	if (answer.code == PARSE_DONE) {
		require(answer.count > 0);
		check_tree(&answer, size);
		shell_classify(&classify,
			       &(struct shell_tree){ text, size, answer.nodes, answer.count });
		require(classify_judge(&classify) != WANTED_ALLOWS || !is_beyond(&answer));
	}
	arena_free(&arena);
	free(text);
	return 0;
}
