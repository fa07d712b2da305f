/* The box's own loopback. Negative errno. */
#pragma once

#include <stdint.h>

/* Brings lo of the current network namespace up (netdevice(7)). */
int network_loopback_up(void);

/*
 * A bound (and for SOCK_STREAM listening) socket on the loopback address of the family.
 * Port 0 = any free one. Descriptor is CLOEXEC and non-blocking.
 */
int network_listener(uint32_t family, uint32_t type, uint32_t port, int *ret_fd);
