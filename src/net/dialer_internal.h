/* The parts of the dialer, for dialer*.c alone. */
#pragma once

#include "net/dialer.h"
#include "net/resolver.h"

enum dial_state { DIAL_FREE, DIAL_RESOLVES, DIAL_CONNECTS };

/* Descriptors of a dial in the epoll: those of its lookup, and these. */
enum { DIAL_ATTEMPT_FIRST = RESOLVER_SOURCES };

struct dial_attempt {
	int fd;		 /* -1: none */
	bool is_settled; /* connected at once, and not in the epoll */
	uint64_t begun_ns;
	struct address address;
};

struct dial {
	enum dial_state state;
	uint32_t id;	     /* the proxy's */
	uint32_t generation; /* events of a dial before it in the same place are not its */
	uint16_t port;
	struct host host;
	struct lookup lookup; /* with the addresses, in the order in which they are tried */
	struct dial_attempt attempts[DIALER_LIMIT_ATTEMPTS];
	uint32_t next; /* address to try; all before it were */
	uint64_t stagger_ns, end_ns;
	uint64_t begun_ns, resolved_ns;
	enum egress_outcome failure; /* the worst that became of an address */
	struct address last;
};

struct dialer {
	int peer_fd, supervisor_fd, epoll_fd;
	uint64_t wall_s; /* of this turn */
	const struct egress_policy *policy;
	const struct egress_order *order;
	struct resolver resolver;
	struct dial dials[DIALER_LIMIT_DIALS];
	uint32_t end; /* all from here on are free: the first that is free is taken */
};

/* What the epoll gives for a descriptor of a dial, without its source. */
uint64_t dial_tag(const struct dialer *dialer, const struct dial *dial);

/* Puts the addresses of the lookup into the order in which they are tried, and tries the first. */
int dial_connect(struct dialer *dialer, struct dial *dial, uint64_t now_ns);

/* An attempt has something. Negative: an edge broke. */
int dial_attempt_event(struct dialer *dialer, struct dial *dial, unsigned index, uint64_t now_ns);

/* It is later than dial_deadline(). */
int dial_expire(struct dialer *dialer, struct dial *dial, uint64_t now_ns);
uint64_t dial_deadline(const struct dial *dial);

/*
 * The end of a dial: told to the supervisor, then to the proxy, with the descriptor of
 * EGRESS_DONE, which stays the caller's. Negative: an edge broke.
 */
int dial_finish(struct dialer *dialer, struct dial *dial, enum egress_outcome outcome,
		const struct address *address, int fd, uint64_t now_ns);
