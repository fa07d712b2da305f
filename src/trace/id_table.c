#include "trace/id_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64
#define LIMIT_SLOTS (1u << 31)

/*
 * FNV-1a: enough for ids, which are random. A file that is made to collide makes its own reading
 * slow.
 */
static size_t hash(const char *id)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);

	for (; *id; id++)
		value = (value ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
	return (size_t)(value ^ value >> 32);
}

static const char *id_of(const void *rows, size_t row_bytes, size_t number)
{
	return (const char *)rows + number * row_bytes;
}

static uint32_t *slot(const struct id_table *table, const void *rows, size_t row_bytes,
		      const char *id)
{
	size_t at = hash(id) & (table->slot_count - 1);

	while (table->slots[at] && strcmp(id_of(rows, row_bytes, table->slots[at] - 1), id) != 0)
		at = (at + 1) & (table->slot_count - 1);
	return &table->slots[at];
}

size_t id_table_find(const struct id_table *table, const void *rows, size_t row_bytes,
		     const char *id)
{
	uint32_t found = table->slot_count ? *slot(table, rows, row_bytes, id) : 0;

	return found ? found - 1 : SIZE_MAX;
}

void id_table_rebuild(struct id_table *table, const void *rows, size_t row_bytes, size_t count)
{
	if (table->slots)
		memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
	for (size_t i = 0; i < count; i++)
		*slot(table, rows, row_bytes, id_of(rows, row_bytes, i)) = (uint32_t)i + 1;
}

int id_table_add(struct id_table *table, const void *rows, size_t row_bytes, size_t count)
{
	size_t wanted = table->slot_count ? table->slot_count : FIRST_SLOTS;
	uint32_t *grown;

	while (count > wanted / 2)
		wanted *= 2;
	if (wanted > LIMIT_SLOTS)
		return -E2BIG;
	if (wanted != table->slot_count) {
		grown = realloc(table->slots, wanted * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		table->slots = grown;
		table->slot_count = wanted;
		id_table_rebuild(table, rows, row_bytes, count);
		return 0;
	}
	*slot(table, rows, row_bytes, id_of(rows, row_bytes, count - 1)) = (uint32_t)count;
	return 0;
}

void id_table_free(struct id_table *table)
{
	free(table->slots);
	*table = (struct id_table){ 0 };
}
