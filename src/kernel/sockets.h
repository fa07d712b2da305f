/*
 * Whose socket it is: sock_diag(7), asked through a descriptor of the network namespace that the
 * socket is in. Errors are negative errno.
 */
#pragma once

#include "policy/address.h"

#include <stddef.h>
#include <stdint.h>

/* One end of a TCP connection, as its owner sees it. */
struct sockets_end {
	struct address address;
	uint16_t port;
};

/* The inode of the socket that is connected from `here` to `there`; -ENOENT: there is none. */
int sockets_find(int diag_fd, const struct sockets_end *here, const struct sockets_end *there,
		 uint64_t *ret_inode);

/* An answer's bytes (pure). -EAGAIN: it answers another question; -EBADMSG: it is none. */
int sockets_read(const unsigned char *bytes, size_t length, uint32_t sequence, uint64_t *ret_inode);
