#include "base/json_tree.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <errno.h>
#include <string.h>

/* The open objects and arrays, and where the next item of each is linked to. */
struct builder {
	struct json_reader reader;
	struct arena *arena;
	const struct json_node **end[JSON_READ_LIMIT_DEPTH + 1];
	bool is_object[JSON_READ_LIMIT_DEPTH + 1];
	unsigned depth;
};

static const char *copy(struct builder *builder, struct json_view view, size_t *ret_length)
{
	char *bytes = arena_allocate(builder->arena, view.length + 1);

	*ret_length = 0;
	if (!bytes || json_view_bytes(view, bytes, view.length + 1, ret_length) < 0)
		return NULL;
	return bytes;
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
	node->type = json_read_type(reader);
	switch (node->type) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		builder->depth++;
		builder->end[builder->depth] = &node->first;
		builder->is_object[builder->depth] = node->type == JSON_OBJECT;
		if (node->type == JSON_OBJECT)
			json_read_object(reader);
		else
			json_read_array(reader);
		break;
	case JSON_STRING:
		node->text = copy(builder, json_read_string(reader), &node->length);
		break;
	case JSON_NUMBER:
		view = json_read_number(reader);
		node->text = arena_copy_bytes(builder->arena, view.bytes, view.length);
		node->length = view.length;
		break;
	case JSON_BOOL:
		node->is_true = json_read_bool(reader);
		break;
	default:
		(void)json_read_skip(reader);
		break;
	}
}

int json_tree_read(const void *bytes, size_t length, struct arena *arena,
		   const struct json_node **ret_root, enum json_fault *ret_fault, size_t *ret_at)
{
	struct builder builder = { .arena = arena };
	const struct json_node *root = NULL;

	json_read_begin(&builder.reader, bytes, length, JSON_READ_DEPTH);
	builder.end[0] = &root;
	add(&builder, NULL);
	while (builder.depth && !builder.reader.fault && !arena_failed(arena)) {
		struct json_view name;
		const char *text = NULL;
		bool goes_on = builder.is_object[builder.depth] ?
				       json_read_member(&builder.reader, &name) :
				       json_read_item(&builder.reader);

		if (!goes_on) {
			builder.depth--;
			continue;
		}
		if (builder.is_object[builder.depth]) {
			size_t ignored;

			text = copy(&builder, name, &ignored);
		}
		add(&builder, text);
	}
	if (arena_failed(arena))
		return -ENOMEM;
	if (!json_read_end(&builder.reader)) {
		*ret_fault = builder.reader.fault;
		*ret_at = builder.reader.at;
		return -EBADMSG;
	}
	*ret_root = root;
	return 0;
}

const struct json_node *json_tree_get(const struct json_node *node, const char *path)
{
	while (node && path[0]) {
		size_t length = strcspn(path, ".");
		const struct json_node *item = node->type == JSON_OBJECT ? node->first : NULL;

		while (item &&
		       (strncmp(item->name, path, length) != 0 || item->name[length] != '\0'))
			item = item->next;
		node = item;
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
	const char *text = node ? node->text : NULL;
	const char *end = text ? text + node->length : NULL;

	while (text && text < end) {
		buffer_visible(buffer, text);
		text += strlen(text);
		if (text < end) {
			buffer_text(buffer, "\\x00");
			text++;
		}
	}
}
