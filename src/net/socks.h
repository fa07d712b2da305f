/*
 * The server's side of SOCKS5 (RFC 1928), as far as it is a door: CONNECT without authentication.
 *
 * Names are judged by host_parse(), so that no byte that is not of a name gets anywhere: with a NUL
 * in one, two readers have two names. Parsers give the bytes used, 0 where more are needed, or
 * -EBADMSG with the reason; what to send before closing is then in the reply. Pure.
 */
#pragma once

#include "policy/host.h"

#include <stddef.h>
#include <stdint.h>

/* The longest of what we send and take: a request with a name of 255 bytes. */
#define SOCKS_LIMIT_BYTES 262u
#define SOCKS_REPLY_BYTES 22u

enum socks_code {
	SOCKS_DONE = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_NETWORK_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_NOT_SUPPORTED = 7, /* command: BIND, UDP ASSOCIATE */
	SOCKS_NO_ADDRESS = 8,	 /* address type */
};

struct socks_reply {
	unsigned char bytes[SOCKS_REPLY_BYTES];
	size_t length; /* 0: nothing is to be sent */
};

struct socks_request {
	struct host host;
	uint16_t port;
};

/* The greeting; the reply is to be sent in either case. Version 4 gets its own refusal. */
int socks_parse_greeting(const unsigned char *bytes, size_t length, struct socks_reply *ret_reply,
			 const char **ret_why);

/* The request. Nothing is to be sent where it is taken: socks_reply() says what became of it. */
int socks_parse_request(const unsigned char *bytes, size_t length,
			struct socks_request *ret_request, struct socks_reply *ret_reply,
			const char **ret_why);

/* The end of a request; the address is always 0.0.0.0:0, since a task has no use for ours. */
void socks_answer(enum socks_code code, struct socks_reply *ret_reply);
