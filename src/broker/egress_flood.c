#include "broker/egress_flood.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

/* A record of a flow has some 700 bytes: 100 a second are 250 MB an hour, if it goes on so long. */
static const struct {
	uint64_t burst, rate;
} rooms[EGRESS_TOLD_COUNT] = {
	[EGRESS_TOLD_REFUSED] = { 500, 100 },
	[EGRESS_TOLD_ALLOWED] = { 500, 100 },
	[EGRESS_TOLD_DIALED] = { 500, 100 },
	[EGRESS_TOLD_ASKED] = { 50, 10 },
};

void egress_flood_begin(struct egress_flood *flood, uint64_t now_ns)
{
	*flood = (struct egress_flood){ .rows = NULL };
	for (size_t i = 0; i < EGRESS_TOLD_COUNT; i++)
		flood->rooms[i] = (struct egress_room){ rooms[i].burst, now_ns };
}

bool egress_flood_room(struct egress_flood *flood, enum egress_told told, uint64_t now_ns)
{
	struct egress_room *room = &flood->rooms[told];
	uint64_t gone_ns = now_ns - room->since_ns, each_ns = SECOND_NS / rooms[told].rate;
	uint64_t more = gone_ns / each_ns;

	if (more >= rooms[told].burst - room->left) {
		room->left = rooms[told].burst;
		room->since_ns = now_ns;
	} else {
		room->left += more;
		room->since_ns += more * each_ns;
	}
	if (!room->left)
		return false;
	room->left--;
	return true;
}

static bool is_alike(const struct egress_row *a, const struct egress_row *b)
{
	return a->told == b->told && a->port == b->port && a->phase == b->phase &&
	       a->door == b->door && a->verdict == b->verdict && a->outcome == b->outcome &&
	       a->protocol == b->protocol && a->rule == b->rule && a->job == b->job &&
	       memcmp(&a->address, &b->address, sizeof(a->address)) == 0 &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->reason, b->reason) == 0;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool egress_flood_add(struct egress_flood *flood, const struct egress_row *row)
{
	if (!flood->rows)
		flood->rows = calloc(EGRESS_FLOOD_ROWS, sizeof(*flood->rows));
	if (!flood->rows)
		return false;
	for (size_t i = 0; i < flood->row_count; i++) {
		struct egress_row *at = &flood->rows[i];

		if (!is_alike(at, row))
			continue;
		at->count += row->count;
		at->bytes_up += row->bytes_up;
		at->bytes_down += row->bytes_down;
		at->longest_ns = greater(at->longest_ns, row->longest_ns);
		at->second_ns = greater(at->second_ns, row->second_ns);
		at->addresses = greater(at->addresses, row->addresses);
		return true;
	}
	if (flood->row_count == EGRESS_FLOOD_ROWS)
		return false;
	flood->rows[flood->row_count++] = *row;
	return true;
}

void egress_flood_end(struct egress_flood *flood)
{
	free(flood->rows);
	flood->rows = NULL;
	flood->row_count = 0;
}
