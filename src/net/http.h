/*
 * Heads of HTTP/1.0 and 1.1 (RFC 9110, 9112), read strictly and written anew.
 *
 * What two programs could understand in two ways is refused, not repaired: Content-Length with
 * Transfer-Encoding, two of either, codings other than exactly `chunked`, two Host fields, folded
 * lines, bare CR or LF, control bytes, blanks before a colon, names that a gateway could take for
 * a framing field (Content_Length), user information, and targets of a wrong form or with bytes
 * that a target does not have. A head is never passed on as it came: http_write_request() and
 * http_write_response() make one from what was understood.
 *
 * A head is found by http_head_end() in whatever has arrived, which looks at each byte once, and
 * read whole then. Everything that is read lies in the caller's buffer. Nothing allocates. A
 * refusal is a negative errno, with the reason as a constant text; http_status() is the answer it
 * deserves. Pure.
 */
#pragma once

#include "net/span.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head with its empty line. Servers take 8 to 64 KiB. */
#define HTTP_LIMIT_HEAD_BYTES 65536u
/* As Apache and others have it. */
#define HTTP_LIMIT_FIELDS 100u
/* Of a field's name. */
#define HTTP_LIMIT_NAME_BYTES 256u
/* With what a record has room for (net/edge.h, EGRESS_METHOD_BYTES). */
#define HTTP_LIMIT_METHOD_BYTES 31u
/* What a head may grow by when it is written: Host, Connection, version. */
#define HTTP_HEAD_GROWTH_BYTES 512u

enum http_method {
	HTTP_OTHER, /* any other token of capital letters, digits, '-' and '_' */
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_TRACE,
	HTTP_CONNECT,
	HTTP_METHOD_COUNT,
};

enum http_form {
	HTTP_ORIGIN,	/* /path?query */
	HTTP_ABSOLUTE,	/* http://host/path?query; no other scheme */
	HTTP_AUTHORITY, /* host:port of CONNECT */
	HTTP_ASTERISK,	/* of OPTIONS */
	HTTP_FORM_COUNT,
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

/* Fields that something is known about; the rest is HTTP_FIELD_END_TO_END. */
enum http_field_kind {
	HTTP_FIELD_END_TO_END,
	HTTP_FIELD_FRAMING, /* Content-Length, Transfer-Encoding: written anew */
	HTTP_FIELD_HOST,    /* written anew */
	HTTP_FIELD_HOP,	    /* ends here: Connection and what it names, Keep-Alive, TE, Proxy-... */
	HTTP_FIELD_UPGRADE, /* goes on where that is allowed */
	HTTP_FIELD_OVERRIDE, /* asks some servers for another method, path or host than is said */
};

struct http_field {
	struct span name, value; /* without blanks around it */
	enum http_field_kind kind;
};

/* What a response has to be read with; kept when the request's buffer is gone. */
struct http_asked {
	enum http_method method;
	uint8_t minor;
	bool upgrade; /* another protocol was asked for, and 101 may come */
};

/* What requests and responses have in common. */
struct http_head {
	uint8_t minor; /* HTTP/1.minor; what is above 1 is read as 1 */
	enum http_framing framing;
	uint64_t content_length; /* of HTTP_LENGTH */
	bool keep_alive;	 /* as far as this side goes */
	bool trailers;		 /* TE: trailers */
	struct span upgrade;	 /* value of the one Upgrade that Connection names; else empty */
	struct http_field fields[HTTP_LIMIT_FIELDS];
	size_t field_count;
};

struct http_request {
	struct http_head head;
	struct http_asked asked;
	struct span method;
	enum http_form form;
	/*
	 * Canonical, of the target or of Host, which agree: the port, too. False only for HTTP/1.0
	 * without Host.
	 */
	bool has_host;
	struct host host;
	uint16_t port;	       /* 80 where none is said; CONNECT has to say it */
	struct span path;      /* with its query, for net/http_path.h; "*"; empty for CONNECT */
	bool expects_continue; /* Expect: 100-continue; any other is refused */
	bool overrides;	       /* has fields of HTTP_FIELD_OVERRIDE */
	/*
	 * A body where many servers expect none: what is left of it would be read as a request. The
	 * connection to the server has to end with it; http_write_request() says so to it.
	 */
	bool ends_connection;
};

struct http_response {
	struct http_head head;
	uint16_t status; /* 100 to 599. Below 200, 101 excepted: another head follows */
	struct span reason;
	bool has_length; /* a Content-Length that says nothing of this body (HEAD, 304) */
};

/*
 * Where the head ends that begins the bytes: its length with the empty line, or 0 where more is
 * needed. `scanned` is 0 for a new head and kept between calls, whose bytes only grow.
 */
int http_head_end(const char *bytes, size_t length, size_t *scanned, const char **ret_why);

/* `length` is exactly what http_head_end() gave. 0, or a refusal. */
int http_parse_request(const char *bytes, size_t length, struct http_request *ret_request,
		       const char **ret_why);
int http_parse_response(const char *bytes, size_t length, const struct http_asked *asked,
			struct http_response *ret_response, const char **ret_why);

/* For a client whose request was refused: 400, 431, 501 or 505. */
unsigned http_status(int refusal);

/* Whether the list in `value` has this word, in lower case. */
bool http_lists(struct span value, const char *word);

/* The first field of this name, in lower case; NULL: none. */
const struct http_field *http_find(const struct http_head *head, const char *name);

enum http_write_flag {
	HTTP_WRITE_CLOSE = 1u << 0,	/* Connection: close */
	HTTP_WRITE_UPGRADE = 1u << 1,	/* Upgrade goes on */
	HTTP_WRITE_OVERRIDES = 1u << 2, /* fields of HTTP_FIELD_OVERRIDE go on */
	HTTP_WRITE_EXPECT = 1u << 3,	/* Expect goes on */
};

/*
 * A request for its server: origin form, one Host that is host and port, no field that ends here.
 * `path` replaces the target's where its bytes are not NULL. The length, or -ENOBUFS: with
 * HTTP_HEAD_GROWTH_BYTES more than the head that was read, there always is room.
 */
int http_write_request(const struct http_request *request, const struct host *host, uint16_t port,
		       struct span path, unsigned flags, char *room, size_t room_bytes);

/* A response for the client that asked so. */
int http_write_response(const struct http_response *response, const struct http_asked *asked,
			unsigned flags, char *room, size_t room_bytes);
