/*
 * What a ledger tells of its tasks, as little of it as can be: where in the ledger a task's first
 * and last records stand, 64 bytes for each task. What they say is read there again. So the ledger
 * of a million tasks takes some 80 MB, and no chain takes any.
 *
 * Names are kept as digests with a random key, so that a ledger from elsewhere cannot be made in a
 * way that makes finding slow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROSTER_KEY_BYTES 16
#define ROSTER_DIGEST_BYTES 16
/* 2^31 rows would not fit the slots' numbers. */
#define ROSTER_LIMIT_ROWS (1u << 30)

struct roster_place {
	uint64_t offset, line; /* line 0: there is no such record */
};

struct roster_row {
	unsigned char digest[ROSTER_DIGEST_BYTES];
	struct roster_place start;
	struct roster_place end; /* task.end, task.lost or task.removed: the last of them */
	bool is_removed;
	bool is_seen; /* its chain was looked at; of a decision: its outcome was read */
};

struct roster {
	unsigned char key[ROSTER_KEY_BYTES];
	struct roster_row *rows; /* owned; in the order of the ledger */
	uint32_t *slots;	 /* owned; 1 + number of a row, 0: free */
	size_t count, capacity, slot_count;
};

/* -EIO and the like where the kernel gives no random bytes. */
int roster_begin(struct roster *ret_roster) __attribute__((warn_unused_result));

/* The row of a name (any bytes), or NULL. */
struct roster_row *roster_find(struct roster *roster, const void *name, size_t length);

/* A new row for a name that has none. Rows move: pointers to others are no longer good. */
int roster_add(struct roster *roster, const void *name, size_t length, struct roster_row **ret_row)
	__attribute__((warn_unused_result));

void roster_free(struct roster *roster);

#define CLEANUP_ROSTER __attribute__((cleanup(roster_free)))
