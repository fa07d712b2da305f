/*
 * Room in the record for what the roles of a task's network tell: a task must neither fill the
 * disk with it, nor hide a thing that counts behind a thousand that do not.
 *
 * Each kind has room of its own: so many records at once, and so many a second. What was refused
 * beyond it is counted. What was allowed, dialled or asked for is never lost: beyond its room it is
 * added up by name, port, rule, address, outcome and reason, to be told with exact counts some
 * moments later (EGRESS_FLOOD_NS); where there are more different ones than rows, each is told
 * after all.
 *
 * Pure but for the memory of the rows, which is taken at the first flood.
 */
#pragma once

#include "net/edge.h"
#include "policy/address.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum egress_told {
	EGRESS_TOLD_REFUSED, /* connections, requests and lookups */
	EGRESS_TOLD_ALLOWED, /* the same; also what was not reached then */
	EGRESS_TOLD_DIALED,
	EGRESS_TOLD_ASKED, /* of a person: each such record waits for the disk */
	EGRESS_TOLD_COUNT,
};

/* Different ones of a second that are added up. */
#define EGRESS_FLOOD_ROWS 256u
/* How long they wait. */
#define EGRESS_FLOOD_NS (1000u * 1000 * 1000)

struct egress_room {
	uint64_t left, since_ns;
};

/* The first part tells rows apart. */
struct egress_row {
	char host[HOST_NAME_BYTES];
	char reason[EGRESS_REASON_BYTES];
	struct address address; /* connected to, or tried last */
	uint16_t port;
	uint8_t told; /* enum egress_told */
	uint8_t phase, door, verdict, outcome;
	uint32_t protocol, rule;
	unsigned job; /* its number; 0: the task's */
	uint64_t count;
	uint64_t bytes_up, bytes_down;	/* together */
	uint64_t longest_ns, second_ns; /* of each: a flow's duration; a dial's two parts; asking */
	uint64_t addresses;		/* of a dialled name, at the most */
};

struct egress_flood {
	struct egress_room rooms[EGRESS_TOLD_COUNT];
	uint64_t left_out; /* refusals without a record since the last one with one */
	struct egress_row *rows;
	size_t row_count;
};

void egress_flood_begin(struct egress_flood *flood, uint64_t now_ns);

/* Takes the room of one record; false: there is none now. */
bool egress_flood_room(struct egress_flood *flood, enum egress_told told, uint64_t now_ns);

/* Adds it to its row; false: there are no more rows, and it has to be told by itself. */
bool egress_flood_add(struct egress_flood *flood, const struct egress_row *row);

void egress_flood_end(struct egress_flood *flood);
