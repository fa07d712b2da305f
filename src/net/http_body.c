#include "net/http_body.h"

#include "net/http_internal.h"

#include <errno.h>
#include <stdio.h>

/* Digits of a chunk's size: more than any has, and no overflow. */
#define LIMIT_SIZE_DIGITS 15u

enum state {
	DONE,
	PAYLOAD,   /* of a length, of a chunk, until close */
	SIZE,	   /* the digits of a chunk's size */
	EXTENSION, /* behind them, until CR */
	SIZE_LF,
	CHUNK_CR, /* behind a chunk's payload */
	CHUNK_LF,
	NAME,  /* of a trailer; or the CR of the end */
	VALUE, /* from the colon on */
	VALUE_LF,
	END_LF,
	BROKEN, /* refused, and stays so */
};

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EBADMSG;
}

void http_body_begin(struct http_body *body, enum http_framing framing, uint64_t content_length)
{
	static const uint8_t first[] = {
		[HTTP_NO_BODY] = DONE,
		[HTTP_LENGTH] = PAYLOAD,
		[HTTP_CHUNKED] = SIZE,
		[HTTP_UNTIL_CLOSE] = PAYLOAD,
	};

	memset(body, 0, sizeof(*body));
	body->framing = framing;
	body->state = first[framing];
	if (framing == HTTP_UNTIL_CLOSE)
		body->left = UINT64_MAX;
	if (framing == HTTP_LENGTH)
		body->left = content_length;
	if (framing == HTTP_LENGTH && content_length == 0)
		body->state = DONE;
}

uint64_t http_body_payload(const struct http_body *body)
{
	return body->state == PAYLOAD ? body->left : 0;
}

void http_body_passed(struct http_body *body, uint64_t length)
{
	if (body->state != PAYLOAD)
		return;
	if (length > body->left)
		length = body->left;
	body->payload += length;
	if (body->framing == HTTP_UNTIL_CLOSE)
		return;
	body->left -= length;
	if (body->left == 0)
		body->state = body->framing == HTTP_CHUNKED ? CHUNK_CR : DONE;
}

bool http_body_is_done(const struct http_body *body)
{
	return body->state == DONE;
}

int http_body_close(struct http_body *body)
{
	if (body->framing == HTTP_UNTIL_CLOSE)
		body->state = DONE;
	return body->state == DONE ? 0 : -EBADMSG;
}

/* Our own bytes as what is to be written. */
static void say(struct http_body *body, size_t length, struct http_piece *piece)
{
	piece->out = (struct span){ body->text, length };
}

static int take_payload(struct http_body *body, const char *bytes, size_t length,
			struct http_piece *piece)
{
	if (length > body->left)
		length = (size_t)body->left;
	piece->used = length;
	piece->out = (struct span){ bytes, length };
	http_body_passed(body, length);
	return 1;
}

static int hex(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte = span_lower(byte);
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static int take_size(struct http_body *body, char byte, const char **ret_why)
{
	int digit = hex(byte);

	if (digit < 0 && body->count == 0)
		return refuse(ret_why, "a chunk has no size");
	if (digit >= 0) {
		if (body->count++ == LIMIT_SIZE_DIGITS)
			return refuse(ret_why, "the size of a chunk is too large");
		body->left = body->left << 4 | (unsigned)digit;
		return 1;
	}
	body->count = 0;
	body->state = byte == '\r' ? SIZE_LF : EXTENSION;
	return byte == '\r' || byte == ';' ?
		       1 :
		       refuse(ret_why, "the size of a chunk has other bytes than digits");
}

/* Dropped, but no place to hide what another reader would find in it. */
static int take_extension(struct http_body *body, char byte, const char **ret_why)
{
	if (byte == '\r') {
		body->state = SIZE_LF;
		return 1;
	}
	if (!http_is_text_byte(byte))
		return refuse(ret_why, "an extension of a chunk has control bytes");
	return ++body->count > HTTP_BODY_LIMIT_EXTENSION_BYTES ?
		       refuse(ret_why, "a chunk has too long extensions") :
		       1;
}

static int want_lf(struct http_body *body, char byte, enum state next, const char **ret_why)
{
	if (byte != '\n')
		return refuse(ret_why, "a CR without LF");
	body->count = 0;
	body->state = (uint8_t)next;
	return 1;
}

/* The line of a chunk is complete, and written anew. */
static int end_size(struct http_body *body, char byte, struct http_piece *piece,
		    const char **ret_why)
{
	int result = want_lf(body, byte, body->left ? PAYLOAD : NAME, ret_why);

	if (result > 0)
		say(body,
		    (size_t)snprintf(body->text, sizeof(body->text), "%llx\r\n",
				     (unsigned long long)body->left),
		    piece);
	return result;
}

static int end_chunk(struct http_body *body, char byte, struct http_piece *piece,
		     const char **ret_why)
{
	int result = want_lf(body, byte, SIZE, ret_why);

	if (result > 0)
		piece->out = (struct span){ "\r\n", 2 };
	return result;
}

/* Fields that a head has to have: to heed them here changes what was judged (RFC 9110, 6.5.1). */
static bool is_of_heads(struct span name)
{
	static const char *const names[] = {
		"trailer",
		"authorization",
		"cookie",
		"set-cookie",
		"content-type",
		"content-encoding",
		"content-range",
		"cache-control",
		"max-forwards",
		"location",
		"range",
		"age",
		"date",
		"expires",
		"pragma",
		"retry-after",
		"vary",
		"www-authenticate",
		"forwarded",
		"x-forwarded-for",
		"x-forwarded-host",
	};
	char text[HTTP_BODY_LIMIT_NAME_BYTES];

	if (http_kind(name) != HTTP_FIELD_END_TO_END)
		return true;
	for (size_t i = 0; i < name.length; i++)
		text[i] = name.bytes[i] == '_' ? '-' : name.bytes[i];
	name.bytes = text;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_is_word(name, names[i]))
			return true;
	/* preconditions */
	return name.length > 3 && span_is_word((struct span){ text, 3 }, "if-");
}

static int count_trailers(struct http_body *body, const char **ret_why)
{
	return ++body->trailers > HTTP_BODY_LIMIT_TRAILER_BYTES ?
		       refuse(ret_why, "the trailers are too long") :
		       1;
}

/* A name is kept until its colon; then all of it is known. */
static int take_name(struct http_body *body, char byte, struct http_piece *piece,
		     const char **ret_why)
{
	if (byte == '\r' && body->count == 0) {
		body->state = END_LF;
		return 1;
	}
	if (byte == ':' && body->count) {
		if (is_of_heads((struct span){ body->text, body->count }))
			return refuse(ret_why, "a trailer is what only a head may have");
		if (body->trailer_count++ == HTTP_BODY_LIMIT_TRAILERS)
			return refuse(ret_why, "there are too many trailers");
		body->text[body->count] = ':';
		say(body, body->count + 1, piece);
		body->state = VALUE;
		return 1;
	}
	if (!http_is_token_byte(byte))
		return refuse(ret_why, "a trailer has no proper name");
	if (body->count == HTTP_BODY_LIMIT_NAME_BYTES)
		return refuse(ret_why, "the name of a trailer is too long");
	body->text[body->count++] = byte;
	return count_trailers(body, ret_why);
}

/* As it is, up to its CR. */
static int take_value(struct http_body *body, const char *bytes, size_t length,
		      struct http_piece *piece, const char **ret_why)
{
	size_t at = 0;

	while (at < length && bytes[at] != '\r') {
		if (!http_is_text_byte(bytes[at]))
			return refuse(ret_why, "a trailer has control bytes");
		if (count_trailers(body, ret_why) < 0)
			return -EBADMSG;
		at++;
	}
	piece->out = (struct span){ bytes, at };
	piece->used = at;
	if (at < length) {
		piece->used++;
		body->state = VALUE_LF;
	}
	return 1;
}

static int take_byte(struct http_body *body, char byte, struct http_piece *piece,
		     const char **ret_why)
{
	int result;

	switch (body->state) {
	case SIZE:
		return take_size(body, byte, ret_why);
	case EXTENSION:
		return take_extension(body, byte, ret_why);
	case SIZE_LF:
		return end_size(body, byte, piece, ret_why);
	case CHUNK_CR:
		body->state = CHUNK_LF;
		return byte == '\r' ? 1 : refuse(ret_why, "a chunk is longer than its size says");
	case CHUNK_LF:
		return end_chunk(body, byte, piece, ret_why);
	case NAME:
		return take_name(body, byte, piece, ret_why);
	case VALUE_LF:
	case END_LF:
		result = want_lf(body, byte, body->state == END_LF ? DONE : NAME, ret_why);
		piece->out = (struct span){ "\r\n", result > 0 ? 2 : 0 };
		return result;
	default:
		return refuse(ret_why, "the body was refused before");
	}
}

/* Up to the first byte behind which something is to be written, or goes as a whole. */
static int take_bytes(struct http_body *body, const char *bytes, size_t length,
		      struct http_piece *piece, const char **ret_why)
{
	while (piece->used < length) {
		int result = take_byte(body, bytes[piece->used], piece, ret_why);

		if (result < 0)
			return result;
		piece->used++;
		if (piece->out.length || body->state == PAYLOAD || body->state == VALUE ||
		    body->state == DONE)
			return 1;
	}
	return 0;
}

int http_body_next(struct http_body *body, const char *bytes, size_t length,
		   struct http_piece *ret_piece, const char **ret_why)
{
	int result;

	*ret_piece = (struct http_piece){ .out = { bytes, 0 } };
	if (body->state == DONE || length == 0)
		return 0;
	if (body->state == PAYLOAD)
		return take_payload(body, bytes, length, ret_piece);
	if (body->state == VALUE)
		result = take_value(body, bytes, length, ret_piece, ret_why);
	else
		result = take_bytes(body, bytes, length, ret_piece, ret_why);
	if (result < 0) {
		*ret_piece = (struct http_piece){ .out = { bytes, 0 } };
		body->state = BROKEN;
	}
	return result;
}
