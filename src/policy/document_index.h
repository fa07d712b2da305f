/*
 * Statements by the hash of a text of theirs, so that a thousand rules are not held against a
 * thousand others. Whoever looks one up compares: a hash that is the same says nothing. Texts that
 * were made to have one hash cost no more than such a comparison of all with all. Pure; all memory
 * is the arena's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct document_statement;

struct document_index_row {
	const struct document_statement *statement;
	uint32_t hash;
	uint32_t next; /* 1 + number of the row before it in its slot, 0: none */
};

struct document_index {
	struct document_index_row *rows;
	uint32_t *slots;
	size_t count, capacity, slot_count; /* a power of two */
};

#define DOCUMENT_INDEX_SEED 2166136261u

/* The hash of the text from its end on, going on from another one. */
uint32_t document_index_hash(uint32_t hash, const char *text);

/* For at most so many rows; -ENOMEM. */
int document_index_begin(struct document_index *index, size_t capacity, struct arena *arena);

void document_index_add(struct document_index *index, uint32_t hash,
			const struct document_statement *statement);

/* By its text, and by each end of it that begins with a dot, without its own "*". */
void document_index_add_host(struct document_index *index,
			     const struct document_statement *statement);

/* How many rows the statement needs then. */
size_t document_index_host_rows(const struct document_statement *statement);

/* The latest row of the hash, or the one before `row`; NULL. */
const struct document_index_row *document_index_find(const struct document_index *index,
						     uint32_t hash,
						     const struct document_index_row *row);
