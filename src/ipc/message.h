/*
 * Typed, length-checked messages with descriptors over SOCK_SEQPACKET pairs (unix(7)).
 *
 * A message is {u32 type, u32 length} and `length` bytes in one packet. Receiving refuses what is
 * short, longer than the room, cut (MSG_TRUNC), or has lost descriptors (MSG_CTRUNC): -EBADMSG.
 * The caller kills the peer then. End of file is -EPIPE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MESSAGE_LIMIT_BYTES 4096
#define MESSAGE_LIMIT_FDS 4

struct message {
	uint32_t type;
	uint32_t length;
	unsigned char bytes[MESSAGE_LIMIT_BYTES];
	int fds[MESSAGE_LIMIT_FDS]; /* owned by the receiver */
	unsigned fd_count;
};

/* A connected pair, CLOEXEC. */
int message_pair(int ret_fds[static 2]);

/* Sends; descriptors stay the caller's. */
int message_send(int fd, uint32_t type, const void *bytes, size_t length, const int *fds,
		 unsigned fd_count);

int message_receive(int fd, struct message *ret_message);

void message_close_fds(struct message *message);
