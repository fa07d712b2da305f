/*
 * What looks like a secret by its form: tokens of well-known services, private keys, credentials in
 * URLs and headers, values behind names such as `password=`. Pure.
 *
 * A text is either the bytes of a stream or JSON as base/json.h writes it; there a string's
 * content is read through its escapes, and nothing that was found reaches beyond its string.
 *
 * Whoever looks calls token_at() only where three bytes stand of which one of the tables of
 * triggers tells; so most positions of a text cost one look at a table (trace/mask.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token_text {
	const char *bytes;
	size_t length;
	bool is_json;
};

struct token_hit {
	size_t start, end;
	const char *kind; /* static */
};

/* token_at() looks at most at this many bytes before and behind the trigger. */
#define TOKEN_REACH_BACK 256u
#define TOKEN_REACH 17000u

/* The three-byte texts that token_at() is to be called at. NULL behind the last one. */
const char *token_trigger(size_t index);

/* A secret that is told by the three bytes at `at` (at + 3 <= length). */
bool token_at(const struct token_text *text, size_t at, struct token_hit *ret_hit);

/* True for a kind of the tables, `length` bytes without a NUL. */
bool token_is_kind(const char *kind, size_t length);

/*
 * The unit of the text at `at`: a byte of a stream, one escape or byte of a JSON string's content.
 * Returns its length; 0 at the end of the text or the string. ret_value: the byte, or a code point.
 */
size_t token_unit(const struct token_text *text, size_t at, uint32_t *ret_value);
