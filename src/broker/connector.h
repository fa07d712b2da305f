/*
 * Which program of a box has a connection: found from outside, by the socket's inode among the
 * descriptors of the box's processes. What cannot be told apart is not known.
 */
#pragma once

#include "kernel/sockets.h"

#include <stdint.h>

struct box;

struct connector {
	uint64_t device, inode; /* of its executable */
	uint64_t family;	/* of its action (isolate/box.h); 0: not known */
};

/*
 * Who has the end `here` of a connection to `there`. -ENOENT: nobody, or several processes of
 * different programs or actions have it.
 */
int connector_find(const struct box *box, const struct sockets_end *here,
		   const struct sockets_end *there, struct connector *ret_connector);
