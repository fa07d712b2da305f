/*
 * Sockets to addresses of the world, for the dialer alone: nothing blocks, all are close-on-exec.
 * Negative errno.
 */
#pragma once

#include "policy/address.h"

#include <stdint.h>

enum socket_event { SOCKET_READ, SOCKET_WRITE };

/* A socket (SOCK_STREAM or SOCK_DGRAM) that is connected, or being connected. Owned. */
int socket_connect(int type, const struct address *address, uint16_t port);

/* What became of connecting: 0, or a negative errno. */
int socket_error(int fd);

/* Small writes go out at once. */
int socket_no_delay(int fd);

/* In an epoll, level-triggered, with this data; and another event for one that is in it. */
int socket_watch(int epoll_fd, int fd, enum socket_event event, uint64_t data);
int socket_rewatch(int epoll_fd, int fd, enum socket_event event, uint64_t data);
