#include "trace/roster.h"

#include "base/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_ROWS 64u

int roster_begin(struct roster *ret_roster)
{
	*ret_roster = (struct roster){ 0 };
	return getrandom(ret_roster->key, ROSTER_KEY_BYTES, 0) == ROSTER_KEY_BYTES ? 0 : -EIO;
}

static void digest_of(const struct roster *roster, const void *name, size_t length,
		      unsigned char ret_digest[static ROSTER_DIGEST_BYTES])
{
	unsigned char whole[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, roster->key, ROSTER_KEY_BYTES);
	sha256_update(&hash, name, length);
	sha256_end(&hash, whole);
	memcpy(ret_digest, whole, ROSTER_DIGEST_BYTES);
}

/* The slot that has the digest, or the free one where it belongs; half of them are free. */
static size_t slot_of(const struct roster *roster, const unsigned char *digest)
{
	uint64_t start;
	size_t slot;

	memcpy(&start, digest, sizeof(start));
	slot = (size_t)start & (roster->slot_count - 1);
	while (roster->slots[slot] && memcmp(roster->rows[roster->slots[slot] - 1].digest, digest,
					     ROSTER_DIGEST_BYTES) != 0)
		slot = (slot + 1) & (roster->slot_count - 1);
	return slot;
}

struct roster_row *roster_find(struct roster *roster, const void *name, size_t length)
{
	unsigned char digest[ROSTER_DIGEST_BYTES];
	uint32_t found;

	if (!roster->count)
		return NULL;
	digest_of(roster, name, length, digest);
	found = roster->slots[slot_of(roster, digest)];
	return found ? &roster->rows[found - 1] : NULL;
}

static int grow(struct roster *roster)
{
	size_t capacity = roster->capacity ? 2 * roster->capacity : FIRST_ROWS;
	struct roster_row *rows;
	uint32_t *slots;

	if (capacity > ROSTER_LIMIT_ROWS)
		return -E2BIG;
	rows = realloc(roster->rows, capacity * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	roster->rows = rows;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(roster->slots);
	roster->slots = slots;
	roster->slot_count = 2 * capacity;
	roster->capacity = capacity;
	for (size_t i = 0; i < roster->count; i++)
		slots[slot_of(roster, rows[i].digest)] = (uint32_t)i + 1;
	return 0;
}

int roster_add(struct roster *roster, const void *name, size_t length, struct roster_row **ret_row)
{
	struct roster_row row = { .is_removed = false };
	int result = roster->count == roster->capacity ? grow(roster) : 0;

	if (result < 0)
		return result;
	digest_of(roster, name, length, row.digest);
	roster->rows[roster->count++] = row;
	roster->slots[slot_of(roster, row.digest)] = (uint32_t)roster->count;
	*ret_row = &roster->rows[roster->count - 1];
	return 0;
}

void roster_free(struct roster *roster)
{
	free(roster->rows);
	free(roster->slots);
	*roster = (struct roster){ 0 };
}
