/*
 * The edges of egress: supervisor-proxy, supervisor-dialer, proxy-dialer.
 *
 * Both roles have the rules (policy/egress.h, egress_encode()) behind a struct egress_order in
 * their sealed memfd. Descriptors from ROLE_FIRST on:
 *
 *   proxy   EGRESS_FD_PEER   its end of the pair with the dialer
 *           EGRESS_FD_TCP    the listener of all captured connections (accept4(2) alone)
 *           EGRESS_FD_UDP    the socket that gets the box's DNS datagrams
 *           EGRESS_FD_DOOR   a listening unix socket; only where the order says so
 *   dialer  EGRESS_FD_PEER
 *
 * Messages are ipc/message.h's; their bodies the structs below, exactly as long, in the host's
 * order. Whoever gets one that is unknown, has another length, an id that is not in use, or a value
 * out of range ends; the supervisor then ends both and the task has no network any more.
 *
 * proxy -> dialer   EGRESS_DIAL      connect to a host; the dialer decides by its own copy of the
 *                                    rules, resolves, checks all addresses
 *                   EGRESS_CANCEL    nobody waits for it any more
 * dialer -> proxy   EGRESS_DIALED    what became of it; one descriptor where it is EGRESS_DONE
 * proxy -> super    EGRESS_FLOW      a connection or request was decided or has ended; up to
 *                                    EGRESS_LIMIT_FLOWS of them, in their order
 *                   EGRESS_QUESTION  a rule asks a person, or wants to know who connects
 *                   EGRESS_MARKED    all that was there when a mark came has been seen and told,
 *                                    but for what waits for an answer or an upstream
 * super -> proxy    end of file      the task has ended: what is still to be told comes, and then
 *                                    the proxy's end; nothing is asked any more
 *                   EGRESS_REPLY     the answer
 *                   EGRESS_MARK      an action has ended: what it left at the listeners is to be
 *                                    told before its result; the last one alone is answered
 *                   EGRESS_LISTENER  a descriptor, and nothing else: one more listener, of another
 *                                    port; only where the kernel has no rules that capture all
 * dialer -> super   EGRESS_TRIED     names and addresses that it really tried: its own word, so
 *                                    that a proxy that lies is seen in the record
 * either -> super   EGRESS_READY     it is in its jail; nothing foreign was looked at before
 */
#pragma once

#include "policy/address.h"
#include "policy/host.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text in a message: cut where there is no room for it, with a NUL. NULL counts as "". */
static inline void egress_text(char *room, size_t room_bytes, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length > room_bytes - 1)
		length = room_bytes - 1;
	if (length > 0)
		memcpy(room, text, length);
	room[length] = '\0';
}

enum { EGRESS_FD_PEER = 5, EGRESS_FD_TCP, EGRESS_FD_UDP, EGRESS_FD_DOOR };

enum egress_message {
	EGRESS_READY = 1,
	EGRESS_DIAL,
	EGRESS_CANCEL,
	EGRESS_DIALED,
	EGRESS_TRIED,
	EGRESS_FLOW,
	EGRESS_QUESTION,
	EGRESS_REPLY,
	EGRESS_LISTENER,
	EGRESS_MARK,
	EGRESS_MARKED,
};

/* In front of the rules in the sealed memfd. */
struct egress_order {
	uint32_t version; /* EGRESS_ORDER_VERSION */
	uint32_t flags;	  /* enum egress_order_flag */
	uint32_t resolver_count;
	struct {
		struct address address;
		uint16_t port;
	} resolvers[3]; /* of the host; of the dialer's copy alone */
	uint32_t rules_bytes;
};

#define EGRESS_ORDER_VERSION 1u

enum egress_order_flag {
	EGRESS_ORDER_DOOR = 1u << 0,
	EGRESS_ORDER_V6 = 1u << 1,
	EGRESS_ORDER_LIVE = 1u << 2, /* of many actions: whose a denial is has to be found */
};

/* Resolvers that the dialer asks, in this order; of more the first. */
#define EGRESS_LIMIT_RESOLVERS 3u

/* Connections of a task at once; what comes beyond is reset and recorded. */
#define EGRESS_LIMIT_CONNECTIONS 4096u

/* Of those, connections that wait for a person's answer; what comes beyond is refused. */
#define EGRESS_LIMIT_HELD 256u

/* How long such a one waits. */
#define EGRESS_LIMIT_ASK_S 600u

/* Addresses of one name that are looked at; a name with more is refused. */
#define EGRESS_LIMIT_ADDRESSES 32u

struct egress_dial {
	uint32_t id; /* the proxy's */
	uint16_t port;
	uint16_t reserved;
	uint32_t host_bytes;		/* of the text, without NUL */
	char host[HOST_NAME_BYTES + 2]; /* canonical, zero-filled */
};

struct egress_cancel {
	uint32_t id;
};

enum egress_outcome {
	EGRESS_DONE,
	EGRESS_DENIED,	    /* by the dialer's own rules */
	EGRESS_SPECIAL,	    /* an address of the name may not be dialled */
	EGRESS_NO_NAME,	    /* the name does not exist, or has no address */
	EGRESS_NO_RESOLVER, /* no answer that makes sense in time, or none is configured */
	EGRESS_REFUSED,	    /* ECONNREFUSED */
	EGRESS_UNREACHABLE, /* no route, or other errors of connect(2) */
	EGRESS_TIMEOUT,
	EGRESS_BUSY,	  /* more dials at once than its limit */
	EGRESS_CANCELLED, /* nobody waited for it any more: in EGRESS_TRIED alone */
	EGRESS_OUTCOME_COUNT,
};

struct egress_dialed {
	uint32_t id;
	uint32_t outcome;
	struct address address; /* connected to, or the last that was tried; ADDRESS_NONE: none */
	uint8_t reserved[3];
	uint64_t resolve_ns, connect_ns;
};

struct egress_tried {
	uint32_t id;
	uint32_t outcome;
	uint16_t port;
	uint16_t address_count; /* that the name has */
	uint32_t tried_count;
	struct address addresses[EGRESS_LIMIT_ADDRESSES];
	uint64_t resolve_ns, connect_ns;
	char host[HOST_NAME_BYTES + 2];
};

/* Where in its life a flow is when it is told. */
enum egress_phase {
	EGRESS_OPENED,	/* allowed, and connected */
	EGRESS_CLOSED,	/* it was open, and has ended */
	EGRESS_STOPPED, /* denied, malformed, or the upstream could not be reached */
	EGRESS_PHASE_COUNT,
};

/* How a connection came in. */
enum egress_door {
	EGRESS_CAPTURED,
	EGRESS_CONNECT,	 /* HTTP CONNECT */
	EGRESS_ABSOLUTE, /* HTTP with an absolute target */
	EGRESS_SOCKS,
	EGRESS_LOOKUP, /* a DNS question */
	EGRESS_DOOR_COUNT,
};

#define EGRESS_METHOD_BYTES 32
#define EGRESS_PATH_BYTES 512
#define EGRESS_REASON_BYTES 128
#define EGRESS_NO_RULE UINT32_MAX

struct egress_flow {
	uint32_t id; /* of the connection; a kept one has several flows, numbered by `request` */
	uint32_t request;
	uint32_t phase, door;
	uint32_t verdict;  /* enum egress_verdict */
	uint32_t rule;	   /* index of the rules; EGRESS_NO_RULE: built in */
	uint32_t protocol; /* enum egress_protocol; 0: not known */
	uint32_t outcome;  /* of the dial; EGRESS_DONE where there was none */
	uint16_t port;	   /* upstream's */
	uint16_t status;   /* of the response; 0: none seen */
	/* of the task's socket, and of ours that it is connected to */
	uint16_t peer_port, local_port;
	struct address peer, local, address; /* both; the address connected to */
	/* EGRESS_CLOSED: what it was opened by, which a quota or its content may have ended */
	uint8_t opened_verdict;
	uint8_t upgrade; /* 1: its request asked for another protocol */
	uint8_t padding[3];
	uint32_t opened_rule, reserved;
	uint64_t bytes_up, bytes_down, duration_ns;
	uint64_t repeated;		/* how many like it were left out before it */
	char host[HOST_NAME_BYTES + 2]; /* canonical; of what was not one "" */
	char method[EGRESS_METHOD_BYTES];
	char path[EGRESS_PATH_BYTES];	  /* as far as it goes */
	char reason[EGRESS_REASON_BYTES]; /* of a denial or failure: one of our own texts */
};

/* In one message: as many as it has room for. */
#define EGRESS_LIMIT_FLOWS 3u

enum egress_question_kind {
	EGRESS_WHO,   /* which program has the other end */
	EGRESS_MAY,   /* a person's answer to an ask rule */
	EGRESS_HEARD, /* nothing: what was told before has been taken, while the other end waits */
	EGRESS_QUESTION_KIND_COUNT,
};

struct egress_question_message {
	uint32_t id;
	uint32_t kind;
	uint32_t rule;
	uint32_t protocol;
	uint16_t port, peer_port;
	struct address peer, local; /* of the connection as it was captured */
	uint16_t local_port;
	char host[HOST_NAME_BYTES + 2];
	char method[EGRESS_METHOD_BYTES];
	char path[EGRESS_PATH_BYTES];
};

enum egress_who {
	EGRESS_WHO_UNCLEAR, /* nobody, or several programs have it */
	EGRESS_WHO_KNOWN,
	EGRESS_WHO_TOO_MANY, /* the task has more open files than are looked through */
	EGRESS_WHO_COUNT,
};

/* Of EGRESS_MARK, and of its EGRESS_MARKED. */
struct egress_mark {
	uint32_t number; /* from 1 on, each one more than the last */
};

struct egress_reply {
	uint32_t id;
	uint32_t kind;
	uint32_t yes;	 /* WHO: enum egress_who. MAY: 1: allowed. HEARD: 1 */
	uint32_t action; /* WHO: a number of the action, the same for the same one; 0: not known */
	uint64_t tool_device, tool_inode;
};
