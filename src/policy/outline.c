#include "policy/outline.h"

#include "base/arena.h"
#include "ipc/codec.h"

#include <errno.h>
#include <string.h>

/* Numbers of a node: kind, plainness, line, column, end. */
#define NODE_BYTES 20u

static void read_node(struct codec_cursor *cursor, struct outline_node *node)
{
	node->kind = codec_enum(cursor, OUTLINE_KIND_COUNT);
	node->is_plain = codec_enum(cursor, 2) == 1;
	node->line = codec_u32(cursor);
	node->column = codec_u32(cursor);
	node->end = codec_u32(cursor);
	node->text = node->kind == OUTLINE_TEXT ? codec_string(cursor, OUTLINE_LIMIT_BYTES + 1) :
						  "";
	if (!node->line || !node->column)
		codec_fail(cursor, -EBADMSG);
}

/* Every node ends within the one that it lies in, and keys are text. */
static bool is_sound(const struct outline *outline)
{
	uint32_t open[OUTLINE_LIMIT_DEPTH];
	bool wants_key[OUTLINE_LIMIT_DEPTH];
	size_t depth = 0;

	for (uint32_t i = 0; i < outline->count; i++) {
		const struct outline_node *node = &outline->nodes[i];

		while (depth && outline->nodes[open[depth - 1]].end == i) {
			if (outline->nodes[open[depth - 1]].kind == OUTLINE_MAP &&
			    !wants_key[depth - 1])
				return false;
			depth--;
		}
		if (depth ? node->end > outline->nodes[open[depth - 1]].end :
			    i > 0 || node->end != outline->count)
			return false;
		if (node->end <= i || (node->kind == OUTLINE_TEXT && node->end != i + 1))
			return false;
		if (depth && outline->nodes[open[depth - 1]].kind == OUTLINE_MAP) {
			if (wants_key[depth - 1] && node->kind != OUTLINE_TEXT)
				return false;
			wants_key[depth - 1] = !wants_key[depth - 1];
		}
		if (node->kind == OUTLINE_TEXT)
			continue;
		if (depth == OUTLINE_LIMIT_DEPTH)
			return false;
		open[depth] = i;
		wants_key[depth++] = true;
	}
	while (depth && outline->nodes[open[depth - 1]].end == outline->count) {
		if (outline->nodes[open[depth - 1]].kind == OUTLINE_MAP && !wants_key[depth - 1])
			return false;
		depth--;
	}
	return depth == 0;
}

int outline_read(const void *bytes, size_t length, struct arena *arena, struct outline *ret_outline)
{
	struct outline outline = { 0 };
	struct codec_cursor cursor;

	if (length > OUTLINE_LIMIT_RESULT_BYTES)
		return -EBADMSG;
	codec_begin(&cursor, bytes, length, arena);
	outline.fault.line = codec_u32(&cursor);
	outline.fault.column = codec_u32(&cursor);
	if (outline.fault.line)
		outline.fault.text = codec_string(&cursor, OUTLINE_LIMIT_BYTES);
	outline.count = codec_count(&cursor, OUTLINE_LIMIT_NODES, NODE_BYTES);
	outline.nodes = codec_array(&cursor, outline.count, sizeof(*outline.nodes));
	for (size_t i = 0; i < outline.count && outline.nodes && !cursor.failure; i++)
		read_node(&cursor, &outline.nodes[i]);
	if (codec_end(&cursor) < 0)
		return codec_end(&cursor) == -ENOMEM ? -ENOMEM : -EBADMSG;
	if ((outline.fault.text == NULL) != (outline.count > 0) || !is_sound(&outline))
		return -EBADMSG;
	*ret_outline = outline;
	return 0;
}

const struct outline_node *outline_first(const struct outline *outline,
					 const struct outline_node *parent)
{
	uint32_t first = (uint32_t)(parent - outline->nodes) + 1;

	return first < parent->end ? &outline->nodes[first] : NULL;
}

const struct outline_node *outline_next(const struct outline *outline,
					const struct outline_node *parent,
					const struct outline_node *node)
{
	return node->end < parent->end ? &outline->nodes[node->end] : NULL;
}

const struct outline_node *outline_find(const struct outline *outline,
					const struct outline_node *map, const char *key)
{
	const struct outline_node *node = outline_first(outline, map);

	while (node) {
		const struct outline_node *value = outline_next(outline, map, node);

		if (!value || strcmp(node->text, key) == 0)
			return value;
		node = outline_next(outline, map, value);
	}
	return NULL;
}
