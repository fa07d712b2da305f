/*
 * The first message of TLS, as a server sees it: for which name, and what a client offers
 * (RFC 8446, 4.1.2; RFC 6066, 3; RFC 7301; RFC 9849).
 *
 * The bytes are those of the connection from its start: the ClientHello may lie in several records,
 * and arrive in any pieces. It is read only whole, by a cursor that steps over records' headers;
 * nothing is copied but the name. Values that mean nothing (RFC 8701, GREASE) pass. Pure.
 */
#pragma once

#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The message; with keys of post-quantum groups it has some 2 KiB. */
#define HELLO_LIMIT_BYTES 65536u
/* Records that it lies in; clients send it in one or two. */
#define HELLO_LIMIT_RECORDS 64u
/* What a caller needs room for: the message and its records' headers. */
#define HELLO_LIMIT_BUFFER_BYTES (HELLO_LIMIT_BYTES + HELLO_LIMIT_RECORDS * 5)
#define HELLO_LIMIT_EXTENSIONS 128u

enum hello_alpn {
	HELLO_ALPN_HTTP1 = 1u << 0, /* http/1.1, http/1.0 */
	HELLO_ALPN_H2 = 1u << 1,
	HELLO_ALPN_OTHER = 1u << 2,
};

struct hello {
	bool has_name;
	struct host host; /* of server_name; a name, never an address */
	bool has_ech;	  /* encrypted_client_hello: the name may not be the one that counts */
	bool has_early_data;
	uint32_t alpn; /* set of enum hello_alpn; 0: none offered */
};

/*
 * The bytes that the message takes, records' headers included, 0 where more are needed, or -EBADMSG
 * with the reason: no TLS, no ClientHello, malformed, two names, a name that is none.
 */
int hello_parse(const unsigned char *bytes, size_t length, struct hello *ret_hello,
		const char **ret_why);

/* Whether bytes may begin a TLS connection: 1, 0 (more are needed), or negative. */
int hello_begins(const unsigned char *bytes, size_t length);

enum hello_alert {
	HELLO_CLOSE_NOTIFY = 0,
	HELLO_UNEXPECTED = 10,
	HELLO_ACCESS_DENIED = 49,
	HELLO_DECODE_ERROR = 50,
	HELLO_INTERNAL_ERROR = 80,
	HELLO_UNRECOGNISED_NAME = 112,
};

#define HELLO_ALERT_BYTES 7u

/* The record of a fatal alert (of a warning: CLOSE_NOTIFY). */
void hello_write_alert(enum hello_alert alert, unsigned char bytes[static HELLO_ALERT_BYTES]);
