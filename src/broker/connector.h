/*
 * Which program of a box has a connection: found from outside, by the socket's inode among the
 * descriptors of the box's processes. What cannot be told apart is not known.
 */
#pragma once

#include "kernel/sockets.h"

#include <stdint.h>

struct box;

/*
 * Processes and descriptors that one search looks at, some tenths of a second of them: the
 * supervisor does nothing else meanwhile, and a task may have millions.
 */
#define CONNECTOR_LOOKS 65536u

struct connector {
	uint64_t device, inode; /* of its executable; 0: of several, of one action */
	uint64_t family;	/* of its action (isolate/box.h); 0: not known */
};

/*
 * Who has the end `here` of a connection to `there`. -ENOENT: nobody, several actions, or perhaps
 * somebody who lets nobody look at it. -E2BIG: there is too much to look through.
 */
int connector_find(const struct box *box, const struct sockets_end *here,
		   const struct sockets_end *there, struct connector *ret_connector);
