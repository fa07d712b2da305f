/*
 * DNS packets (RFC 1035, 2308, 6891, 8020): the server that a task asks, and the client that the
 * dialer is. One question each; names only as policy/host.h has them. Packets have to be exact:
 * pointers lead backwards only and a bounded number of times, counts are what is there, nothing is
 * left behind the last record. Pure; nothing allocates.
 */
#pragma once

#include "net/edge.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of what we send; answers of one question, no name but the question's. */
#define DNS_LIMIT_ANSWER_BYTES 512u
/* What a resolver may send: over UDP as much as we tell it, over TCP what its frame can say. */
#define DNS_LIMIT_UDP_BYTES 1232u
#define DNS_LIMIT_TCP_BYTES 16384u
/* A question, from us or to us; over TCP with two bytes in front. */
#define DNS_LIMIT_QUERY_BYTES 512u
/* Pointers in a name, aliases that are followed, records of an answer. */
#define DNS_LIMIT_POINTERS 16u
#define DNS_LIMIT_ALIASES 8u
#define DNS_LIMIT_RECORDS 128u

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_HTTPS = 65,
};

enum dns_code {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

/* Two bytes in front of a packet over TCP: all bytes of the frame, or 0 where more are needed. */
size_t dns_frame(const unsigned char *bytes, size_t length);

/* ---- the server's side ---- */

struct dns_query {
	uint16_t id;
	uint16_t type, class;
	bool recursion; /* desired, and echoed */
	bool has_edns;
	enum dns_code
		code;  /* that the question deserves by itself; DNS_NOERROR: look at the host */
	bool has_host; /* the name is one; without, the answer is NXDOMAIN */
	struct host host;
	const unsigned char *question; /* in the packet: sent back byte for byte */
	size_t question_bytes;	       /* 0: it could not be read */
};

/*
 * 0, also for what deserves FORMERR or NOTIMP, which dns_write_answer() then says. -EBADMSG:
 * nothing is to be sent, since it is no question, or has not even an id.
 */
int dns_parse_query(const unsigned char *bytes, size_t length, struct dns_query *ret_query);

/*
 * The answer: addresses of the type that was asked for, others are left out; where none is left,
 * the SOA that lets a negative answer be kept for ttl_s. Its length, at most
 * DNS_LIMIT_ANSWER_BYTES. At most 2 addresses.
 */
size_t dns_write_answer(const struct dns_query *query, enum dns_code code,
			const struct address *addresses, size_t address_count, uint32_t ttl_s,
			unsigned char room[static DNS_LIMIT_ANSWER_BYTES]);

/* ---- the client's side ---- */

struct dns_result {
	enum dns_code code;
	bool truncated;	      /* ask again over TCP; nothing else of it is set */
	bool too_many;	      /* more addresses than the limit: the name is refused */
	uint32_t alias_count; /* that were followed */
	struct address addresses[EGRESS_LIMIT_ADDRESSES];
	size_t address_count;
};

/* A question of type A or AAAA; its length. The host is a name. */
size_t dns_write_query(uint16_t id, const struct host *host, enum dns_type type,
		       unsigned char room[static DNS_LIMIT_QUERY_BYTES]);

/*
 * The answer to it. Addresses are those of the name at the end of its aliases alone, whatever else
 * the packet has. -ENOMSG: not an answer to this question (another id, name, type), and the right
 * one may still come. -EBADMSG: an answer to it that is malformed.
 */
int dns_parse_answer(const unsigned char *bytes, size_t length, uint16_t id,
		     const struct host *host, enum dns_type type, struct dns_result *ret_result);
