/*
 * A shell's text with a tree that may be anything: the walk reads nothing beyond either, keeps its
 * limits, and what it lets pass unasked has no substitution in it. Input: text, NUL, then 7 bytes a
 * node: kind, start, length, how far back its parent is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/shell.h"

#define NODE_BYTES 7
#define NODES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct classify_facts facts = { .cwd = "/w/p", .home = "/h/u", .user = "u" };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static uint32_t number(const uint8_t *data)
{
	return (uint32_t)(data[0] << 8 | data[1]);
}

static size_t read_nodes(const uint8_t *data, size_t size, struct shell_node *nodes)
{
	size_t count = 0;

	while (size >= NODE_BYTES && count < NODES) {
		uint32_t start = number(data + 1), back = number(data + 5);

		nodes[count] = (struct shell_node){
			.kind = data[0],
			.start = start,
			.end = start + number(data + 3),
			.parent = (uint32_t)count - back,
		};
		count++;
		data += NODE_BYTES;
		size -= NODE_BYTES;
	}
	return count;
}

static void check(const struct classify *classify, const struct shell_tree *tree)
{
	require(classify->segment_count <= CLASSIFY_LIMIT_SEGMENTS);
	for (size_t i = 0; i < classify->wanted_count; i++) {
		require(classify->wanted[i].target && classify->wanted[i].why);
		require(classify->wanted[i].position <= tree->length);
	}
	if (classify_judge(classify) == WANTED_ALLOWS)
		for (size_t i = 0; i < tree->count; i++)
			require(tree->nodes[i].kind != SHELL_COMMAND_SUBSTITUTION &&
				tree->nodes[i].kind != SHELL_PROCESS_SUBSTITUTION &&
				tree->nodes[i].kind != SHELL_ARITHMETIC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct shell_node nodes[NODES];
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t length = end ? (size_t)(end - data) : size;
	struct shell_tree tree = { .length = length, .nodes = nodes };
	struct arena arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	char *text = malloc(length ? length : 1);

	require(text);
	if (length)
		memcpy(text, data, length);
	tree.text = text;
	if (end)
		tree.count = read_nodes(end + 1, size - length - 1, nodes);
	shell_classify(&classify, &tree);
	check(&classify, &tree);
	arena_free(&arena);
	free(text);
	return 0;
}
