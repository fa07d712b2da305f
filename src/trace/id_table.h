/*
 * Finding one of many rows by its id: a table of their numbers, open addressing, half of it free.
 * The rows are the caller's array, whose elements begin with the id (NUL-ended). Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct id_table {
	uint32_t *slots;   /* owned; 1 + number of the row, 0: free */
	size_t slot_count; /* a power of two, or 0 */
};

/* The number of the row, or SIZE_MAX. */
size_t id_table_find(const struct id_table *table, const void *rows, size_t row_bytes,
		     const char *id);

/*
 * Adds the last of `count` rows, whose id is not there yet. -ENOMEM, or -E2BIG beyond 2^30 rows;
 * the table is as before then.
 */
int id_table_add(struct id_table *table, const void *rows, size_t row_bytes, size_t count)
	__attribute__((warn_unused_result));

/* Makes it anew after rows have moved. */
void id_table_rebuild(struct id_table *table, const void *rows, size_t row_bytes, size_t count);

void id_table_free(struct id_table *table);
