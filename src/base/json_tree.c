#include "base/json_tree.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <errno.h>
#include <string.h>

/*
 * The open objects and arrays, and where the next item of each is linked to. The bytes are copied
 * in one piece: what stands behind a string or number in the text, its quote or a comma, is read
 * from the original, so that its place in the copy is free for a NUL.
 */
struct builder {
	struct json_reader reader;
	struct arena *arena;
	char *copy;
	const struct json_node **end[JSON_READ_LIMIT_DEPTH + 1];
	bool is_object[JSON_READ_LIMIT_DEPTH + 1];
	unsigned depth;
};

/* The view's bytes with a NUL behind; a string's escapes become shorter where they stand. */
static const char *text_of(struct builder *builder, struct json_view view, bool has_escape,
			   size_t *ret_length)
{
	char *text = builder->copy + (view.bytes - builder->reader.bytes);

	*ret_length = view.length;
	if (!has_escape)
		text[view.length] = '\0';
	else if (json_view_bytes(view, text, view.length + 1, ret_length) < 0)
		return NULL;
	return text;
}

/* Adds the value that comes to the innermost level, and enters it where it has items. */
static void add(struct builder *builder, const char *name)
{
	struct json_node *node = arena_allocate(builder->arena, sizeof(*node));
	struct json_reader *reader = &builder->reader;
	struct json_view view;

	if (!node)
		return;
	*builder->end[builder->depth] = node;
	builder->end[builder->depth] = &node->next;
	node->name = name;
	node->type = json_read_any(reader, &view);
	switch (node->type) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		builder->depth++;
		builder->end[builder->depth] = &node->first;
		builder->is_object[builder->depth] = node->type == JSON_OBJECT;
		break;
	case JSON_STRING:
		node->text = text_of(builder, view, reader->has_escape, &node->length);
		break;
	case JSON_NUMBER:
		node->text = text_of(builder, view, false, &node->length);
		break;
	case JSON_BOOL:
		node->is_true = view.bytes[0] == 't';
		break;
	default:
		break;
	}
}

static void build(struct builder *builder)
{
	add(builder, NULL);
	while (builder->depth && !builder->reader.fault && !arena_failed(builder->arena)) {
		struct json_view name;
		const char *text = NULL;
		bool is_object = builder->is_object[builder->depth];
		size_t ignored;

		if (is_object ? !json_read_member(&builder->reader, &name) :
				!json_read_item(&builder->reader)) {
			builder->depth--;
			continue;
		}
		if (is_object)
			text = text_of(builder, name, builder->reader.has_escape, &ignored);
		add(builder, text);
	}
}

int json_tree_read(const void *bytes, size_t length, unsigned depth_limit, struct arena *arena,
		   const struct json_node **ret_root, size_t *ret_length,
		   enum json_fault *ret_fault)
{
	struct builder builder = { .arena = arena };
	const struct json_node *root = NULL;

	builder.copy = arena_copy_bytes(arena, bytes, length);
	if (!builder.copy)
		return -ENOMEM;
	json_read_begin(&builder.reader, bytes, length, depth_limit);
	builder.end[0] = &root;
	build(&builder);
	if (arena_failed(arena))
		return -ENOMEM;
	*ret_length = builder.reader.at;
	*ret_fault = builder.reader.fault;
	if (builder.reader.fault)
		return -EBADMSG;
	*ret_root = root;
	return 0;
}

/* The length of the path's first name where that is the node's, or -1. */
static int named(const struct json_node *node, const char *path)
{
	int at = 0;

	while (node->name[at] && node->name[at] == path[at] && path[at] != '.')
		at++;
	return !node->name[at] && (!path[at] || path[at] == '.') ? at : -1;
}

const struct json_node *json_tree_get(const struct json_node *node, const char *path)
{
	while (node && path[0]) {
		int length = -1;

		node = node->type == JSON_OBJECT ? node->first : NULL;
		while (node && (length = named(node, path)) < 0)
			node = node->next;
		if (node)
			path += length + (path[length] == '.');
	}
	return node;
}

const char *json_tree_text(const struct json_node *node, const char *path)
{
	const struct json_node *found = json_tree_get(node, path);

	return found && found->type == JSON_STRING ? found->text : NULL;
}

uint64_t json_tree_unsigned(const struct json_node *node, const char *path, uint64_t otherwise)
{
	const struct json_node *found = json_tree_get(node, path);
	uint64_t value;

	if (!found || found->type != JSON_NUMBER ||
	    !json_view_unsigned((struct json_view){ found->text, found->length }, &value))
		return otherwise;
	return value;
}

size_t json_tree_count(const struct json_node *node)
{
	size_t count = 0;

	for (const struct json_node *item = node ? node->first : NULL; item; item = item->next)
		count++;
	return count;
}

void json_tree_visible(const struct json_node *node, struct buffer *buffer)
{
	if (node && node->text)
		buffer_visible_bytes(buffer, node->text, node->length);
}
