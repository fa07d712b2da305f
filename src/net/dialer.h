/*
 * The dialer: connects to hosts for the proxy of one task, and hands the sockets over.
 *
 * It never sees a byte of the task's, and believes the proxy, which does, nothing: it decides by
 * its own copy of the rules, resolves the name once, checks *all* addresses that the name has, and
 * connects to what it checked. One address that may not be dialled refuses the whole name
 * (EGRESS_SPECIAL): a name with public and private addresses is an attempt at rebinding, or a
 * private service that a rule has to name. What it really did is told to the supervisor
 * (EGRESS_TRIED) before the proxy has the socket.
 *
 * What it cannot prevent is said here, too: it is the only process of a task with socket(2), and a
 * dialer that is taken over can connect to any host, by TCP or UDP, without telling. It has no
 * file, no program, no other socket and none of the task's bytes to send there; so it parses
 * nothing but the proxy's messages of fixed form and DNS answers of the host's own resolvers.
 *
 * One loop over epoll, one table, nothing allocated while it runs.
 */
#pragma once

#include "net/edge.h"
#include "policy/egress.h"

/* Dials at once; more are EGRESS_BUSY. With two sockets each it stays below 1,024 descriptors. */
#define DIALER_LIMIT_DIALS 256u
/* Connections that are tried at once for one dial: two families. */
#define DIALER_LIMIT_ATTEMPTS 2u
/* When the next address is tried beside one that does not answer (RFC 8305, 5). */
#define DIALER_STAGGER_NS (UINT64_C(250) * 1000 * 1000)
/* How long one address has while others wait. */
#define DIALER_ATTEMPT_NS (UINT64_C(3) * 1000 * 1000 * 1000)
/* All of connecting. */
#define DIALER_CONNECT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

/*
 * Works until the proxy or the supervisor closes its edge (0). Negative: a message that is none, or
 * an edge that broke; the process has to end. The order has been checked by dialer_check().
 */
int dialer_run(int peer_fd, int supervisor_fd, const struct egress_order *order,
	       const struct egress_policy *policy);

/* Whether the order is one that it can work by. */
bool dialer_check(const struct egress_order *order);
