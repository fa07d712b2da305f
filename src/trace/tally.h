/*
 * Counting by name: which rules deny most, which commands time out. A bounded table, so that a file
 * with a million names costs what one with a thousand does: of more names than TALLY_LIMIT_NAMES
 * only the sum is kept, and said. Pure; names are copied into the caller's arena.
 */
#pragma once

#include "trace/id_table.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

#define TALLY_LIMIT_NAMES 4096u
/* Longer names are cut: they are for lists. */
#define TALLY_NAME_BYTES 160

struct tally_row {
	char name[TALLY_NAME_BYTES]; /* first: trace/id_table.h */
	uint64_t count, of;	     /* of: how often it could have been */
};

struct tally {
	struct arena *arena; /* borrowed */
	struct tally_row *rows;
	size_t row_count;
	struct id_table by_name; /* owned */
	uint64_t total, others;	 /* others: counted, but not by name */
};

/* Adds to a name; `of` without `count` says that it could have been and was not. */
void tally_add(struct tally *tally, const char *name, uint64_t count, uint64_t of);

/* Puts the rows in order, the largest count first; then by name. Nothing is added behind it. */
void tally_sort(struct tally *tally);

void tally_free(struct tally *tally);
