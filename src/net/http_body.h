/*
 * Bodies of HTTP/1 on their way through: which of the bytes that arrive belong to one, and what is
 * to be written on (RFC 9112, 7). A body of any size takes this struct and nothing else.
 *
 * Chunked bodies are read strictly and written anew, chunk for chunk: sizes in plain hexadecimal,
 * extensions dropped, trailers only where they are no field that a head has to have. What is bare
 * payload may go by unseen: http_body_payload() says how much of it comes next.
 *
 *     while (!http_body_is_done(&body) && result > 0) {
 *             result = http_body_next(&body, at, left, &piece, &why);
 *             write piece.out; at += piece.used; left -= piece.used;
 *     }
 *
 * Pure; nothing allocates.
 */
#pragma once

#include "net/http.h"
#include "net/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one chunk. Nothing is known that uses any. */
#define HTTP_BODY_LIMIT_EXTENSION_BYTES 256u
/* All of the trailers of a body, and their number. */
#define HTTP_BODY_LIMIT_TRAILER_BYTES 8192u
#define HTTP_BODY_LIMIT_TRAILERS 32u
/* Of a trailer's name: no known one is half as long. */
#define HTTP_BODY_LIMIT_NAME_BYTES 64u

struct http_body {
	enum http_framing framing;
	uint8_t state;	   /* of http_body.c */
	uint64_t left;	   /* payload that comes next */
	uint64_t payload;  /* all that has passed */
	uint32_t count;	   /* bytes of what is being read */
	uint32_t trailers; /* bytes of all trailers */
	uint32_t trailer_count;
	char text[HTTP_BODY_LIMIT_NAME_BYTES + 8]; /* our own bytes that are to be written */
};

struct http_piece {
	size_t used; /* of the bytes given */
	struct span
		out; /* to be written: in the bytes given, or in the body, until the next call */
};

void http_body_begin(struct http_body *body, enum http_framing framing, uint64_t content_length);

/*
 * The next piece: 1, or 0 when all bytes are used and more are needed. A refusal is -EBADMSG with
 * the reason: both connections have to end, with nothing more written.
 */
int http_body_next(struct http_body *body, const char *bytes, size_t length,
		   struct http_piece *ret_piece, const char **ret_why);

/* How many bytes from here on pass as they are; UINT64_MAX for a body until close. */
uint64_t http_body_payload(const struct http_body *body);

/* So many of them, at most http_body_payload(), went by another way. */
void http_body_passed(struct http_body *body, uint64_t length);

/* The body is complete. One until close never is: see http_body_close(). */
bool http_body_is_done(const struct http_body *body);

/* The connection has ended here: 0 where that is the body's end, -EBADMSG for a cut one. */
int http_body_close(struct http_body *body);
