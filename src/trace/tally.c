#include "trace/tally.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tally_row *row_of(struct tally *tally, const char *name)
{
	struct tally_row made = { .name = "" }, *grown;
	size_t found;

	(void)snprintf(made.name, sizeof(made.name), "%s", name);
	found = id_table_find(&tally->by_name, tally->rows, sizeof(*tally->rows), made.name);
	if (found != SIZE_MAX)
		return &tally->rows[found];
	if (tally->row_count == TALLY_LIMIT_NAMES)
		return NULL;
	grown = arena_push(tally->arena, tally->rows, tally->row_count, sizeof(*grown));
	if (!grown)
		return NULL;
	tally->rows = grown;
	grown[tally->row_count] = made;
	if (id_table_add(&tally->by_name, grown, sizeof(*grown), tally->row_count + 1) < 0)
		return NULL;
	return &grown[tally->row_count++];
}

void tally_add(struct tally *tally, const char *name, uint64_t count, uint64_t of)
{
	struct tally_row *row = row_of(tally, name);

	tally->total += count;
	if (row) {
		row->count += count;
		row->of += of;
	} else {
		tally->others += count;
	}
}

static int compare(const void *first, const void *second)
{
	const struct tally_row *one = first, *other = second;

	if (one->count != other->count)
		return one->count > other->count ? -1 : 1;
	return strcmp(one->name, other->name);
}

void tally_sort(struct tally *tally)
{
	if (tally->row_count)
		qsort(tally->rows, tally->row_count, sizeof(*tally->rows), compare);
}

void tally_free(struct tally *tally)
{
	id_table_free(&tally->by_name);
}
