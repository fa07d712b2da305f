/*
 * A stub resolver for the dialer: the addresses of a name, from the fixed servers of its order.
 *
 * Each question has a random id and goes out of a socket of its own, connected to the server, so
 * that its port is as random as the kernel makes it and no other sender is heard. What does not
 * answer exactly this question is passed over, and the right answer may still come. Both types are
 * asked at once; a cut answer is asked for again over TCP. Nothing is kept: a name is resolved once
 * for each connection.
 *
 * A lookup lies in the caller's table. It has descriptors in the caller's epoll, whose data is the
 * tag that the caller gave, plus the number of the source (enum resolver_source). Nothing blocks,
 * nothing allocates.
 */
#pragma once

#include "net/dns.h"
#include "net/edge.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a lookup, over all of its tries. */
#define RESOLVER_TIME_NS (UINT64_C(5) * 1000 * 1000 * 1000)
/* With one server it is asked twice, in halves of that time. */
#define RESOLVER_LIMIT_TRIES 2u
/* Answers over TCP that are being read, of all lookups; they are rare. */
#define RESOLVER_LIMIT_STREAMS 16u

enum resolver_source { RESOLVER_UDP, RESOLVER_TCP_FIRST, RESOLVER_TCP_SECOND, RESOLVER_SOURCES };

struct resolver_stream {
	bool is_used;
	uint16_t have; /* 0: the question is not sent yet; else bytes of the answer, and 1 */
	unsigned char bytes[2 + DNS_LIMIT_TCP_BYTES];
};

struct resolver {
	int epoll_fd;
	const struct egress_order *order;
	struct resolver_stream streams[RESOLVER_LIMIT_STREAMS];
};

struct lookup_question {
	uint16_t type; /* enum dns_type; 0: not asked */
	uint16_t id;
	bool is_answered;
	bool is_broken; /* this try has given what makes no sense, or SERVFAIL and the like */
	int stream_fd;
	struct resolver_stream *stream;
};

struct lookup {
	const struct host *host;
	uint64_t tag;
	int udp_fd;
	unsigned try;
	uint64_t try_end_ns; /* to be called by then */
	struct lookup_question questions[2];
	bool too_many; /* addresses */
	struct address addresses[EGRESS_LIMIT_ADDRESSES];
	uint32_t address_count;
};

enum lookup_state {
	LOOKUP_WAITS,
	LOOKUP_DONE,	/* has addresses */
	LOOKUP_NO_NAME, /* the name does not exist, or has no address of use */
	LOOKUP_FAILED,	/* no answer that makes sense */
};

/* An empty one, that lookup_end() may have. */
void lookup_clear(struct lookup *lookup);

/* Begins; the host, a name, stays where it is. */
enum lookup_state lookup_begin(struct resolver *resolver, struct lookup *lookup,
			       const struct host *host, uint64_t tag, uint64_t now_ns);

/* One of its descriptors has something. */
enum lookup_state lookup_read(struct resolver *resolver, struct lookup *lookup,
			      enum resolver_source source, uint64_t now_ns);

/* It is later than try_end_ns. */
enum lookup_state lookup_expire(struct resolver *resolver, struct lookup *lookup, uint64_t now_ns);

/* Gives back what it holds; its addresses stay. */
void lookup_end(struct lookup *lookup);
