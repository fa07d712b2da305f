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

/*
 * The same of a stream that was just begun, without waiting: 0, -EINPROGRESS or another. By another
 * connect(2), which tells of the first where that did not wait for what came at once.
 */
int socket_settled(int fd, const struct address *address, uint16_t port);

/* In an epoll, level-triggered, with this data; and another event for one that is in it. */
int socket_watch(int epoll_fd, int fd, enum socket_event event, uint64_t data);
int socket_rewatch(int epoll_fd, int fd, enum socket_event event, uint64_t data);
/* Out of it: a descriptor that another process holds as well stays in it when it is closed. */
int socket_unwatch(int epoll_fd, int fd);
