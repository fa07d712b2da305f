/*
 * Capture: what makes every connection of a box end at a socket of ours (design section 7).
 *
 * The box's network namespace has its loopback and nothing else: no packet leaves it, whatever
 * these rules say. They are how a program's connection is *answered*, and by whom:
 *
 *   routes     every address of both families is the box's own (`local default dev lo`), with a
 *              source address of its own, so that nothing connects to itself
 *   rules      nft: TCP goes to one listener by tproxy, port 53 of UDP passes to a socket, all
 *              else is refused at once; 127/8, ::1 and the box's own addresses are left alone
 *   sockets    one listener for all TCP, which sees where a program wanted to go
 *              (getsockname(2)); one socket for the box's DNS datagrams
 *
 * Where the kernel has no nft, a listener on each port that a rule names takes the place of the
 * rules: other ports are refused by the kernel, and are not on record.
 *
 * To be called in the box's network namespace, with CAP_NET_ADMIN over it, before its payload is
 * there; the loopback is up. Addresses are those of policy/place.h. Errors are negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Addresses and routes. ret_v6: version 6 is among them, which a host can be without. */
int capture_routes(bool *ret_v6);

/*
 * The kernel's refusals (ICMP) come for each datagram, not for some of them: their limits protect
 * networks, and here is none. proc_fd: /proc, where its sysctl files can be written.
 */
int capture_refuse_each(int proc_fd);

/* The rules. -EOPNOTSUPP: this kernel has no nft, or not all of it that they need. */
int capture_rules(void);

/* Listens for what the rules send to PLACE_LISTENER_PORT, from any address to any. */
int capture_listener(int *ret_fd);

/* Without the rules: what comes for one port of any address. */
int capture_port_listener(uint16_t port, int *ret_fd);

/*
 * DNS datagrams to any address. Each comes with the address it was sent to (IP_PKTINFO,
 * IPV6_PKTINFO), and an answer may come from that.
 */
int capture_datagrams(int *ret_fd);
