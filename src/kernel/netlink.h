/*
 * Requests to the kernel over netlink(7): messages put together in a fixed room, sent in one
 * packet, and one answer for each that asks for it. Only for sockets of our own namespaces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest request of ours, the rules of kernel/capture.c, has some 1,700 bytes. */
#define NETLINK_LIMIT_BYTES 4096u

struct netlink {
	_Alignas(4) unsigned char bytes[NETLINK_LIMIT_BYTES];
	size_t used;
	size_t message;	   /* where the last message begins */
	uint32_t sequence; /* of the last message */
	unsigned asked;	   /* messages that are answered */
	bool is_full;	   /* latched: nothing of it is sent */
};

/* CLOEXEC; protocol: NETLINK_*. Negative errno; -EPROTONOSUPPORT: the kernel has no such thing. */
int netlink_open(int protocol);

/* Begins a message with its fixed part. NLM_F_REQUEST is added; NLM_F_ACK asks for an answer. */
void netlink_begin(struct netlink *netlink, unsigned type, unsigned flags, const void *head,
		   size_t length);

/* Attributes of the last message; the lengths of what they are in follow by themselves. */
void netlink_put(struct netlink *netlink, unsigned attribute, const void *bytes, size_t length);
void netlink_put_text(struct netlink *netlink, unsigned attribute, const char *text);
void netlink_put_u32_be(struct netlink *netlink, unsigned attribute, uint32_t value);

/* An attribute of attributes: those up to its end are in it. */
size_t netlink_nest(struct netlink *netlink, unsigned attribute);
void netlink_nest_end(struct netlink *netlink, size_t nest);

/*
 * Sends all of it and takes the answers: 0, or the first error (negative errno) that the kernel
 * gives. accepted: an error that is none here (a positive errno), or 0.
 */
int netlink_call(int fd, const struct netlink *netlink, int accepted);
