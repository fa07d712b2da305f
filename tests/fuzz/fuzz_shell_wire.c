/*
 * The edge supervisor-parse, both ways: messages that may be anything bring no more than the
 * limits, and what was put into messages is what is taken from them. Input: the first byte says
 * which way, then messages: type, length (two bytes), bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/shell_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The next message; false at the end. Its bytes are of their own, so that reading on is seen. */
static bool next(const uint8_t **data, size_t *size, uint32_t *type, uint8_t **bytes,
		 size_t *length)
{
	if (*size < 3)
		return false;
	*type = PARSE_TEXT + (*data)[0] % 4;
	*length = (size_t)(*data)[1] << 8 | (*data)[2];
	*data += 3;
	*size -= 3;
	*length = *length < *size ? *length : *size;
	*bytes = malloc(*length ? *length : 1);
	require(*bytes);
	memcpy(*bytes, *data, *length);
	*data += *length;
	*size -= *length;
	return true;
}

static void take_text(const uint8_t *data, size_t size)
{
	static struct shell_text text;
	uint32_t type;
	uint8_t *bytes;
	size_t length;
	int result = 0;

	text.begun = false;
	text.length = text.expected = 0;
	while (result == 0 && next(&data, &size, &type, &bytes, &length)) {
		result = shell_text_take(&text, type, bytes, length);
		free(bytes);
		require(text.length <= text.expected && text.expected <= SHELL_LIMIT_BYTES);
		require(result <= 0 || text.length == text.expected);
	}
}

static void take_tree(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct shell_answer answer = { 0 };
	uint32_t type;
	uint8_t *bytes;
	size_t length;
	int result = 0;

	while (result == 0 && next(&data, &size, &type, &bytes, &length)) {
		result = shell_answer_take(&answer, &arena, type, bytes, length);
		free(bytes);
		require(answer.count <= answer.expected && answer.expected <= SHELL_LIMIT_NODES);
		require(result <= 0 || answer.count == answer.expected);
	}
	arena_free(&arena);
}

/* Any text goes through, in messages that fit. */
static void carry_text(const uint8_t *data, size_t size)
{
	static struct shell_text text;
	unsigned char message[SHELL_WIRE_LIMIT_BYTES];
	size_t offset = 0, length;
	uint32_t type;
	int result;

	size = size > SHELL_LIMIT_BYTES ? SHELL_LIMIT_BYTES : size;
	text.begun = false;
	text.length = text.expected = 0;
	do {
		offset = shell_text_put((const char *)data, size, offset, message, &type, &length);
		require(length <= sizeof(message));
		result = shell_text_take(&text, type, message, length);
		require(result == (offset == size));
	} while (result == 0);
	require(text.length == size && (!size || memcmp(text.bytes, data, size) == 0));
}

static void carry_tree(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct shell_answer answer = { .code = PARSE_DONE }, taken = { 0 };
	unsigned char message[SHELL_WIRE_LIMIT_BYTES];
	size_t offset = 0, length;
	uint32_t type;
	int result;

	answer.count = size / sizeof(struct shell_node);
	answer.count = answer.count > SHELL_LIMIT_NODES ? SHELL_LIMIT_NODES : answer.count;
	answer.nodes = arena_array(&arena, answer.count + 1, sizeof(*answer.nodes));
	require(answer.nodes);
	memcpy(answer.nodes, data, answer.count * sizeof(*answer.nodes));
	do {
		offset = shell_answer_put(&answer, offset, message, &type, &length);
		require(length <= sizeof(message));
		result = shell_answer_take(&taken, &arena, type, message, length);
		require(result == (offset == answer.count));
	} while (result == 0);
	require(taken.count == answer.count &&
		memcmp(taken.nodes, answer.nodes, answer.count * sizeof(*answer.nodes)) == 0);
	arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(const uint8_t *data, size_t size) = { take_text, take_tree,
									  carry_text, carry_tree };

	if (size)
		ways[data[0] % 4](data + 1, size - 1);
	return 0;
}
