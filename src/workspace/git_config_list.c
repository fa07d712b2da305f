#include "workspace/git_config_list.h"

#include "base/arena.h"
#include "base/error.h"
#include "workspace/git_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the reading of a document has to remember between items. */
struct state {
	size_t item_end;  /* of the last header or entry */
	bool has_comment; /* since then */
};

static char *copy(struct arena *arena, const struct buffer *buffer)
{
	return arena_copy_bytes(arena, git_config_text(buffer), buffer->length + 1);
}

static int add_block(struct arena *arena, struct git_document *document,
		     const struct git_config_reader *reader, struct state *state)
{
	struct git_block *block;

	document->blocks = arena_push(arena, document->blocks, document->block_count,
				      sizeof(*document->blocks));
	if (!document->blocks)
		return -ENOMEM;
	block = &document->blocks[document->block_count++];
	*block = (struct git_block){
		.section = copy(arena, &reader->section),
		.gap = state->item_end,
		.begin = reader->begin,
		.end = reader->end,
		.first = (uint32_t)document->count,
		.has_comment = state->has_comment,
	};
	*state = (struct state){ .item_end = reader->end };
	return block->section ? 0 : -ENOMEM;
}

static int add_entry(struct arena *arena, struct git_document *document, uint32_t number,
		     const struct git_config_reader *reader, struct state *state)
{
	struct git_block *block = &document->blocks[document->block_count - 1];
	struct git_entry *entry;

	if (document->count == GIT_CONFIG_LIMIT_ENTRIES)
		return -EFBIG;
	document->entries =
		arena_push(arena, document->entries, document->count, sizeof(*document->entries));
	if (!document->entries)
		return -ENOMEM;
	entry = &document->entries[document->count];
	*entry = (struct git_entry){
		.section = block->section,
		.key = copy(arena, &reader->key),
		.value = reader->has_value ? copy(arena, &reader->value) : NULL,
		.spelled = { document->text.bytes + reader->begin,
			     reader->key_end - reader->begin },
		.begin = reader->begin,
		.key_end = reader->key_end,
		.value_end = reader->value_end,
		.end = reader->end,
		.document = number,
		.order = (uint32_t)document->count++,
		.block = (uint32_t)document->block_count - 1,
	};
	block->count++;
	*state = (struct state){ .item_end = reader->end };
	return entry->key && (entry->value || !reader->has_value) ? 0 : -ENOMEM;
}

static void add_comment(struct git_document *document, struct state *state)
{
	document->blocks[document->block_count - 1].has_comment = true;
	state->has_comment = true;
}

static unsigned int line_of(struct git_text text, size_t at)
{
	unsigned int line = 1;

	for (size_t i = 0; i < at; i++)
		line += text.bytes[i] == '\n';
	return line;
}

static int read_items(struct arena *arena, struct git_document *document, uint32_t number,
		      struct git_config_reader *reader)
{
	struct state state = { 0 };
	int result = add_block(arena, document, reader, &state);

	while (result == 0) {
		switch (git_config_next(reader)) {
		case GIT_ITEM_SECTION:
			result = add_block(arena, document, reader, &state);
			break;
		case GIT_ITEM_ENTRY:
			result = add_entry(arena, document, number, reader, &state);
			break;
		case GIT_ITEM_COMMENT:
			add_comment(document, &state);
			break;
		case GIT_ITEM_END:
			document->closing = reader->closing;
			return 0;
		case GIT_ITEM_BAD:
			return arena_failed(arena) ? -ENOMEM : -EBADMSG;
		}
	}
	return result;
}

int git_document_read(struct arena *arena, struct git_text text, uint32_t number, const char *what,
		      struct git_document *ret, struct error *error)
{
	struct git_document document = { .text = text };
	struct git_config_reader CLEANUP_GIT_CONFIG reader;
	int result;

	git_config_begin(&reader, text, arena);
	result = text.length > GIT_CONFIG_LIMIT_BYTES ?
			 -EFBIG :
			 read_items(arena, &document, number, &reader);
	if (result == -EFBIG)
		return error_set(error, EFBIG,
				 "%s is larger than %u bytes or has more than %u keys", what,
				 GIT_CONFIG_LIMIT_BYTES, GIT_CONFIG_LIMIT_ENTRIES);
	if (result == -EBADMSG)
		return error_set(error, EBADMSG, "%s: git could not read line %u", what,
				 line_of(text, reader.begin));
	if (result < 0)
		return error_errno(error, result, "%s", what);
	*ret = document;
	return 0;
}

static int compare_blocks(const void *left, const void *right)
{
	const struct git_block *const *a = left, *const *b = right;

	return strcmp((*a)->section, (*b)->section);
}

static int compare_entries(const void *left, const void *right)
{
	const struct git_entry *a = *(const struct git_entry *const *)left;
	const struct git_entry *b = *(const struct git_entry *const *)right;
	int result;

	if (a->section_id != b->section_id)
		return a->section_id < b->section_id ? -1 : 1;
	result = strcmp(a->key, b->key);
	if (result)
		return result;
	if (a->document != b->document)
		return a->document < b->document ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Names of sections are compared here alone, once a block: entries have their numbers, or many keys
 * below a few long names would take minutes.
 */
static void number_sections(struct git_index *index)
{
	uint32_t id = 0;

	qsort(index->blocks, index->block_count, sizeof(*index->blocks), compare_blocks);
	for (size_t i = 0; i < index->block_count; i++) {
		if (i && strcmp(index->blocks[i - 1]->section, index->blocks[i]->section) != 0)
			id++;
		index->blocks[i]->section_id = id;
	}
}

int git_index_make(struct arena *arena, struct git_document *documents, size_t count,
		   struct git_index *ret)
{
	struct git_index index = { 0 };
	size_t entries = 0, blocks = 0;

	for (size_t i = 0; i < count; i++) {
		entries += documents[i].count;
		blocks += documents[i].block_count;
	}
	index.entries = arena_array(arena, entries + 1, sizeof(struct git_entry *));
	index.blocks = arena_array(arena, blocks + 1, sizeof(struct git_block *));
	if (!index.entries || !index.blocks)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < documents[i].block_count; j++)
			index.blocks[index.block_count++] = &documents[i].blocks[j];
	number_sections(&index);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < documents[i].count; j++) {
			struct git_entry *entry = &documents[i].entries[j];

			entry->section_id = documents[i].blocks[entry->block].section_id;
			index.entries[index.count++] = entry;
		}
	qsort(index.entries, index.count, sizeof(struct git_entry *), compare_entries);
	*ret = index;
	return 0;
}

/* The id of a section; false when no document has it. */
static bool find_section(const struct git_index *index, const char *section, uint32_t *ret_id)
{
	const struct git_block key = { .section = section }, *wanted = &key;
	struct git_block **found = bsearch(&wanted, index->blocks, index->block_count,
					   sizeof(*index->blocks), compare_blocks);

	if (found)
		*ret_id = (*found)->section_id;
	return found;
}

struct git_values git_index_next(const struct git_index *index, size_t at)
{
	struct git_values values = { .items = index->entries + at };
	const struct git_entry *first;

	if (at >= index->count)
		return values;
	first = index->entries[at];
	while (at + values.count < index->count) {
		const struct git_entry *entry = values.items[values.count];

		if (entry->section_id != first->section_id || entry->document != first->document ||
		    strcmp(entry->key, first->key) != 0)
			break;
		values.count++;
	}
	return values;
}

struct git_values git_index_find(const struct git_index *index, const char *section,
				 const char *key, uint32_t document)
{
	struct git_entry wanted = { .key = key, .document = document }, *pointer = &wanted;
	size_t low = 0, high = index->count;

	if (!find_section(index, section, &wanted.section_id))
		return (struct git_values){ 0 };
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_entries(&index->entries[middle], &pointer) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	/* the first that is not before the wanted; order 0 is before none of its own */
	if (low == index->count || index->entries[low]->section_id != wanted.section_id ||
	    index->entries[low]->document != document || strcmp(index->entries[low]->key, key) != 0)
		return (struct git_values){ 0 };
	return git_index_next(index, low);
}

bool git_value_is_equal(const char *left, const char *right)
{
	return left && right ? strcmp(left, right) == 0 : left == right;
}

bool git_values_are_equal(struct git_values left, struct git_values right)
{
	if (left.count != right.count)
		return false;
	for (size_t i = 0; i < left.count; i++)
		if (!git_value_is_equal(left.items[i]->value, right.items[i]->value))
			return false;
	return true;
}

static bool is_same_at(struct git_values left, size_t i, struct git_values right, size_t j)
{
	return git_value_is_equal(left.items[i]->value, right.items[j]->value);
}

struct git_difference git_values_differ(struct git_values left, struct git_values right)
{
	struct git_difference difference = { .left = left.count, .right = right.count };
	size_t first = 0;

	while (first < left.count && first < right.count && is_same_at(left, first, right, first))
		first++;
	while (difference.left > first && difference.right > first &&
	       is_same_at(left, difference.left - 1, right, difference.right - 1)) {
		difference.left--;
		difference.right--;
	}
	difference.first = first;
	difference.left -= first;
	difference.right -= first;
	return difference;
}
