#include "policy/toml_tree.h"

#include "base/arena.h"

#include <errno.h>
#include <string.h>

#define NO_MEMORY "out of memory"

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

static struct toml_item *find(const struct toml_item *map, const char *key)
{
	uint32_t hash = hash_of(key);

	for (struct toml_item *item = map->first; item; item = item->next)
		if (item->hash == hash && strcmp(item->key, key) == 0)
			return item;
	return NULL;
}

/* How deep what is added to it would lie. */
static size_t depth_of(const struct toml_item *item)
{
	size_t depth = 0;

	for (; item; item = item->parent)
		depth++;
	return depth;
}

/* Adds an item to a map (with a key) or a list (NULL); NULL with *ret_why where it cannot be. */
static struct toml_item *add(struct toml_tree *tree, struct toml_item *parent, const char *key,
			     const struct toml_item *like, const char **ret_why)
{
	struct toml_item *item;

	*ret_why = NULL;
	if (like->kind != OUTLINE_TEXT && depth_of(parent) == OUTLINE_LIMIT_DEPTH)
		*ret_why = "nested deeper than any setting";
	else if (tree->node_count > OUTLINE_LIMIT_TOML_NODES - 2)
		*ret_why = "more than 16384 keys and values";
	if (*ret_why)
		return NULL;
	item = arena_allocate(tree->arena, sizeof(*item));
	if (!item) {
		*ret_why = NO_MEMORY;
		return NULL;
	}
	*item = *like;
	item->key = key;
	item->hash = key ? hash_of(key) : 0;
	item->parent = parent;
	item->first = item->last = item->next = NULL;
	if (parent->last)
		parent->last->next = item;
	else
		parent->first = item;
	parent->last = item;
	tree->node_count += key ? 2 : 1;
	return item;
}

static struct toml_item made_at(enum outline_kind kind, enum toml_made made,
				struct toml_place place)
{
	return (struct toml_item){
		.kind = kind, .made = made, .line = place.line, .column = place.column, .text = ""
	};
}

int toml_begin(struct toml_tree *tree, struct arena *arena)
{
	*tree = (struct toml_tree){ .arena = arena, .node_count = 1 };
	tree->root = arena_allocate(arena, sizeof(*tree->root));
	if (!tree->root)
		return -ENOMEM;
	*tree->root = made_at(OUTLINE_MAP, TOML_HEADER, (struct toml_place){ 1, 1 });
	tree->table = tree->inside = tree->root;
	return 0;
}

const char *toml_key(struct toml_tree *tree, const char *part, struct toml_place place)
{
	if (tree->part_count == OUTLINE_LIMIT_DEPTH)
		return "a key with more parts than any setting has";
	tree->parts[tree->part_count] = part;
	tree->places[tree->part_count++] = place;
	return NULL;
}

/* The table that a header's next part is in: of a list the last entry. */
static struct toml_item *enter(struct toml_item *item)
{
	if (item->kind == OUTLINE_LIST && item->made == TOML_ENTRIES)
		return item->last;
	return item->kind == OUTLINE_MAP && item->made != TOML_VALUE ? item : NULL;
}

/* The table that the header's last part is in. */
static const char *find_table(struct toml_tree *tree, struct toml_item **ret_table)
{
	struct toml_item *at = tree->root;

	for (size_t i = 0; i + 1 < tree->part_count; i++) {
		const struct toml_item above = made_at(OUTLINE_MAP, TOML_ABOVE, tree->places[i]);
		struct toml_item *item = find(at, tree->parts[i]);
		const char *why = NULL;

		at = item ? enter(item) : add(tree, at, tree->parts[i], &above, &why);
		if (!at)
			return why ? why : "a table in what is none";
	}
	*ret_table = at;
	return NULL;
}

/* Begins the next key. */
static void end_key(struct toml_tree *tree)
{
	tree->key_place = tree->places[0];
	tree->part_count = 0;
}

static const char *use_table(struct toml_tree *tree, struct toml_item *table, const char *why)
{
	end_key(tree);
	if (table)
		tree->table = tree->inside = table;
	return table ? NULL : why;
}

const char *toml_open_table(struct toml_tree *tree)
{
	const char *why = tree->part_count ? NULL : "a header without a name";
	size_t last = tree->part_count - 1;
	struct toml_item *above = NULL, *table;
	struct toml_item made;

	if (!why)
		why = find_table(tree, &above);
	if (why)
		return why;
	table = find(above, tree->parts[last]);
	if (table && (table->kind != OUTLINE_MAP || table->made != TOML_ABOVE))
		return "a table that was given before";
	made = made_at(OUTLINE_MAP, TOML_HEADER, tree->places[last]);
	if (table)
		table->made = TOML_HEADER;
	else
		table = add(tree, above, tree->parts[last], &made, &why);
	return use_table(tree, table, why);
}

const char *toml_open_entry(struct toml_tree *tree)
{
	const char *why = tree->part_count ? NULL : "a header without a name";
	size_t last = tree->part_count - 1;
	struct toml_item *above = NULL, *list;
	struct toml_item made;

	if (!why)
		why = find_table(tree, &above);
	if (why)
		return why;
	list = find(above, tree->parts[last]);
	if (list && (list->kind != OUTLINE_LIST || list->made != TOML_ENTRIES))
		return "an entry of what is no list of tables";
	made = made_at(OUTLINE_LIST, TOML_ENTRIES, tree->places[last]);
	if (!list)
		list = add(tree, above, tree->parts[last], &made, &why);
	made = made_at(OUTLINE_MAP, TOML_HEADER, tree->places[last]);
	/* of a list that could not be made the reason is told already */
	if (list)
		list = add(tree, list, NULL, &made, &why);
	return use_table(tree, list, why);
}

const char *toml_assign(struct toml_tree *tree)
{
	struct toml_item *at = tree->inside;

	if (!tree->part_count || at->kind != OUTLINE_MAP)
		return "a value without a key";
	for (size_t i = 0; i + 1 < tree->part_count; i++) {
		const struct toml_item dots = made_at(OUTLINE_MAP, TOML_DOTS, tree->places[i]);
		struct toml_item *item = find(at, tree->parts[i]);
		const char *why = NULL;

		if (item && (item->kind != OUTLINE_MAP || item->made != TOML_DOTS))
			return "a key in what was given before";
		at = item ? item : add(tree, at, tree->parts[i], &dots, &why);
		if (!at)
			return why;
	}
	tree->key = tree->parts[tree->part_count - 1];
	if (find(at, tree->key))
		return "a key that was given before";
	tree->keyed = at;
	end_key(tree);
	return NULL;
}

/* Where the next value goes: to its key, or to the list that it is in. */
static struct toml_item *add_value(struct toml_tree *tree, const struct toml_item *value,
				   const char **ret_why)
{
	struct toml_item *item = NULL;

	*ret_why = "a value without a key";
	if (tree->key)
		item = add(tree, tree->keyed, tree->key, value, ret_why);
	else if (tree->inside->kind == OUTLINE_LIST)
		item = add(tree, tree->inside, NULL, value, ret_why);
	tree->key = NULL;
	return item;
}

const char *toml_text(struct toml_tree *tree, const char *text, bool is_plain,
		      struct toml_place place)
{
	struct toml_item value = made_at(OUTLINE_TEXT, TOML_VALUE, place);
	const char *why;

	value.text = text;
	value.is_plain = is_plain;
	return add_value(tree, &value, &why) ? NULL : why;
}

const char *toml_open(struct toml_tree *tree, enum outline_kind kind, struct toml_place place)
{
	const struct toml_item value = made_at(kind, TOML_VALUE, place);
	const char *why;
	struct toml_item *item = add_value(tree, &value, &why);

	if (item)
		tree->inside = item;
	return item ? NULL : why;
}

/* The map or list around it, or the header's table: keys with dots made what lies between. */
void toml_close(struct toml_tree *tree)
{
	struct toml_item *at = tree->inside->parent;

	while (at && at->made == TOML_DOTS && at != tree->table)
		at = at->parent;
	tree->inside = at ? at : tree->root;
}

/* Parents first, a key before its value; each ends where what follows it begins. */
int toml_outline(const struct toml_tree *tree, struct outline *ret_outline)
{
	struct outline_node *nodes = arena_array(tree->arena, tree->node_count, sizeof(*nodes));
	const struct toml_item *item = tree->root;
	uint32_t open[OUTLINE_LIMIT_DEPTH] = { 0 }, count = 0;
	size_t depth = 0;

	while (nodes && item) {
		if (item->key) {
			nodes[count] = (struct outline_node){ OUTLINE_TEXT, false,     item->line,
							      item->column, count + 1, item->key };
			count++;
		}
		nodes[count] = (struct outline_node){ item->kind,   item->is_plain, item->line,
						      item->column, count + 1,	    item->text };
		if (item->first) {
			open[depth++] = count;
			item = item->first;
			count++;
			continue;
		}
		count++;
		while (item && !item->next) {
			item = item->parent;
			if (item)
				nodes[open[--depth]].end = count;
		}
		item = item ? item->next : NULL;
	}
	*ret_outline = (struct outline){ .nodes = nodes, .count = count };
	return nodes ? 0 : -ENOMEM;
}
