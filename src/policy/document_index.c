#include "policy/document_index.h"

#include "base/arena.h"
#include "policy/document.h"

#include <errno.h>
#include <string.h>

static uint32_t add_byte(uint32_t hash, char c)
{
	return (hash ^ (unsigned char)c) * 16777619u;
}

uint32_t document_index_hash(uint32_t hash, const char *text)
{
	for (const char *at = text + strlen(text); at > text;)
		hash = add_byte(hash, *--at);
	return hash;
}

int document_index_begin(struct document_index *index, size_t capacity, struct arena *arena)
{
	size_t slots = 16;

	while (slots < capacity)
		slots *= 2;
	*index = (struct document_index){
		.rows = arena_array(arena, capacity + 1, sizeof(*index->rows)),
		.slots = arena_array(arena, slots, sizeof(*index->slots)),
		.capacity = capacity,
		.slot_count = slots,
	};
	return index->rows && index->slots ? 0 : -ENOMEM;
}

void document_index_add(struct document_index *index, uint32_t hash,
			const struct document_statement *statement)
{
	uint32_t *slot = &index->slots[hash & (index->slot_count - 1)];

	if (index->count == index->capacity)
		return;
	index->rows[index->count++] = (struct document_index_row){ statement, hash, *slot };
	*slot = (uint32_t)index->count;
}

static const char *host_of(const struct document_statement *statement)
{
	return statement->text + (strncmp(statement->text, "*.", 2) == 0);
}

size_t document_index_host_rows(const struct document_statement *statement)
{
	size_t rows = 1;

	for (const char *at = statement->text; *at; at++)
		rows += *at == '.';
	return rows;
}

void document_index_add_host(struct document_index *index,
			     const struct document_statement *statement)
{
	const char *host = host_of(statement);
	uint32_t hash = DOCUMENT_INDEX_SEED;

	for (const char *at = host + strlen(host); at > host;) {
		hash = add_byte(hash, *--at);
		if (*at == '.' && at > host)
			document_index_add(index, hash, statement);
	}
	document_index_add(index, document_index_hash(DOCUMENT_INDEX_SEED, statement->text),
			   statement);
}

const struct document_index_row *document_index_find(const struct document_index *index,
						     uint32_t hash,
						     const struct document_index_row *row)
{
	uint32_t at = row ? row->next : index->slots[hash & (index->slot_count - 1)];

	while (at && index->rows[at - 1].hash != hash)
		at = index->rows[at - 1].next;
	return at ? &index->rows[at - 1] : NULL;
}
