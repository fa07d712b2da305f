#include "policy/shell_wire.h"

#include "base/arena.h"

#include <errno.h>
#include <string.h>

struct tree_head {
	uint32_t code, count;
};

#define NODE_BYTES sizeof(struct shell_node)

_Static_assert(NODE_BYTES == 4 * sizeof(uint32_t), "a node has no gaps that would travel");

static int add_text(struct shell_text *text, const char *bytes, size_t length)
{
	if (length > text->expected - text->length)
		return -EBADMSG;
	if (length)
		memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	return text->length == text->expected;
}

int shell_text_take(struct shell_text *text, uint32_t type, const void *bytes, size_t length)
{
	const char *at = bytes;
	uint32_t expected;

	if (text->begun)
		return type == PARSE_MORE && length ? add_text(text, at, length) : -EBADMSG;
	if (type != PARSE_TEXT || length < sizeof(expected))
		return -EBADMSG;
	memcpy(&expected, at, sizeof(expected));
	if (expected > SHELL_LIMIT_BYTES)
		return -EBADMSG;
	text->expected = expected;
	text->begun = true;
	return add_text(text, at + sizeof(expected), length - sizeof(expected));
}

static int add_nodes(struct shell_answer *answer, const unsigned char *bytes, size_t length)
{
	size_t count = length / NODE_BYTES;

	if (length % NODE_BYTES || count > answer->expected - answer->count)
		return -EBADMSG;
	if (count)
		memcpy(answer->nodes + answer->count, bytes, length);
	answer->count += count;
	return answer->count == answer->expected;
}

int shell_answer_take(struct shell_answer *answer, struct arena *arena, uint32_t type,
		      const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	struct tree_head head;

	if (answer->begun)
		return type == PARSE_MORE && length ? add_nodes(answer, at, length) : -EBADMSG;
	if (type != PARSE_TREE || length < sizeof(head))
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	if (head.code >= PARSE_CODE_COUNT || head.count > SHELL_LIMIT_NODES ||
	    (head.code != PARSE_DONE && head.count))
		return -EBADMSG;
	answer->nodes = arena_array(arena, head.count + 1, NODE_BYTES);
	if (!answer->nodes)
		return -ENOMEM;
	answer->code = (enum parse_code)head.code;
	answer->expected = head.count;
	answer->begun = true;
	return add_nodes(answer, at + sizeof(head), length - sizeof(head));
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t shell_text_put(const char *text, size_t length, size_t offset,
		      unsigned char message[static SHELL_WIRE_LIMIT_BYTES], uint32_t *ret_type,
		      size_t *ret_length)
{
	uint32_t whole = (uint32_t)length;
	size_t head = offset ? 0 : sizeof(whole);
	size_t part = least(length - offset, SHELL_WIRE_LIMIT_BYTES - head);

	memcpy(message, &whole, head);
	if (part)
		memcpy(message + head, text + offset, part);
	*ret_type = offset ? PARSE_MORE : PARSE_TEXT;
	*ret_length = head + part;
	return offset + part;
}

size_t shell_answer_put(const struct shell_answer *answer, size_t offset,
			unsigned char message[static SHELL_WIRE_LIMIT_BYTES], uint32_t *ret_type,
			size_t *ret_length)
{
	const struct tree_head whole = { answer->code, (uint32_t)answer->count };
	size_t head = offset ? 0 : sizeof(whole);
	size_t part = least(answer->count - offset, (SHELL_WIRE_LIMIT_BYTES - head) / NODE_BYTES);

	memcpy(message, &whole, head);
	if (part)
		memcpy(message + head, answer->nodes + offset, part * NODE_BYTES);
	*ret_type = offset ? PARSE_MORE : PARSE_TREE;
	*ret_length = head + part * NODE_BYTES;
	return offset + part;
}
