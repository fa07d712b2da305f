/*
 * The inside of token.c, for token*.c alone: each of token_form.c, token_name.c, token_option.c and
 * token_credential.c has a table of triggers and the functions that look at one; token_read.c reads
 * for all of them. A function that matches sets ret_hit and returns true, or leaves it alone.
 */
#pragma once

#include "trace/token.h"

#include <string.h>
#include <strings.h>

/* Classes of bytes. */
enum {
	DIGIT = 1,
	UPPER = 2,
	LOWER = 4,
	UNDERLINE = 8,
	DASH = 16,
	DOT = 32,
	BASE64 = 64, /* + / = */
	TILDE = 128,
	ALNUM = DIGIT | UPPER | LOWER,
	WORD = ALNUM | UNDERLINE,
	DASHED = WORD | DASH,
	DOTTED = DASHED | DOT,
	TOKEN68 = DOTTED | BASE64 | TILDE, /* RFC 7235 */
};

/* What the bytes behind a prefix must have. */
enum {
	A_DIGIT = 1,
	BOTH_CASES = 2,
	A_LONG_PART = 4, /* 20 letters and digits in a row */
	A_FIGURE = 8,	 /* a digit or both cases */
};

/* Of what is told by its class alone; longer ones are cut there. */
#define LONGEST 4096

/* Kinds of what has no prefix; their words are in token_kinds. */
enum { KIND_JWT, KIND_KEY, KIND_URL, KIND_AUTHORIZATION, KIND_AWS, KIND_PASSWORD, KIND_COOKIE };

extern const char *const token_kinds[];

/* What a part of the text is made of. */
struct look {
	size_t digits, uppers, lowers, longest; /* longest run of letters and digits */
};

/*
 * Lengths are of what stands behind the prefix. Its trigger is where it has its rarest three bytes:
 * "sk_" is in every "task_id".
 */
struct form {
	const char *prefix;
	const char *kind;
	uint16_t shortest, longest;
	uint8_t class, needs, trigger;
	uint8_t before_shortest, before_longest, before_class; /* 0: it begins with the prefix */
};

/* --- token_read.c */

extern const uint8_t token_classes[256];

/* 0 behind the text's end. */
static inline unsigned char byte_at(const struct token_text *text, size_t at)
{
	return at < text->length ? (unsigned char)text->bytes[at] : 0;
}

static inline bool is_of(const struct token_text *text, size_t at, unsigned class)
{
	return token_classes[byte_at(text, at)] & class;
}

static inline bool says(const struct token_text *text, size_t at, const char *word)
{
	size_t length = strlen(word);

	return at <= text->length && text->length - at >= length &&
	       memcmp(text->bytes + at, word, length) == 0;
}

static inline bool says_caseless(const struct token_text *text, size_t at, const char *word)
{
	size_t length = strlen(word);

	return at <= text->length && text->length - at >= length &&
	       strncasecmp(text->bytes + at, word, length) == 0;
}

/* Where the bytes of the class end, at most `limit` of them. */
static inline size_t run(const struct token_text *text, size_t at, unsigned class, size_t limit)
{
	size_t end = text->length - at < limit ? text->length : at + limit;

	while (at < end && (token_classes[(unsigned char)text->bytes[at]] & class))
		at++;
	return at;
}

static inline bool is_quote(uint32_t value)
{
	return value == '"' || value == '\'' || value == '`';
}

static inline bool hit(struct token_hit *ret_hit, size_t start, size_t end, const char *kind)
{
	*ret_hit = (struct token_hit){ start, end, kind };
	return true;
}

/* A letter or digit before `at` that belongs to an escape (\n, %20) and not to a word. */
bool token_is_escape_before(const struct token_text *text, size_t at);
/* No token of the class begins in the middle of a word. */
bool token_begins_word(const struct token_text *text, size_t at, unsigned class);
struct look token_look(const struct token_text *text, size_t from, size_t to);
/* needs: A_DIGIT and others. */
bool token_has(const struct look *look, unsigned needs);
/* Skips what may stand between a name, its sign and a value; at most `limit` units. */
size_t token_skip(const struct token_text *text, size_t at, const char *of, unsigned limit);

/* --- token_form.c; the triggers are in the forms */

extern const struct form token_forms[];
extern const size_t token_form_count;

/* Those whose trigger is at `at`. */
bool token_match_forms(const struct token_text *text, size_t at, struct token_hit *ret_hit);
/* One of them begins at `at`, which may be near the text's end. */
bool token_begins_form(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_jwt(const struct token_text *text, size_t at, struct token_hit *ret_hit);
/* at: behind the first five dashes. */
bool token_match_pem(const struct token_text *text, size_t at, struct token_hit *ret_hit);

/* --- token_name.c */

extern const char *const token_name_triggers[];
extern const size_t token_name_trigger_count;

bool token_match_name(const struct token_text *text, size_t at, struct token_hit *ret_hit);
/* What stands for a value and is none. */
bool token_is_placeholder(const struct token_text *text, size_t from, size_t to);
/* The end of a value that begins at `at`, behind this quote, or behind none (0). */
size_t token_value_end(const struct token_text *text, size_t at, uint32_t quote);

/* --- token_option.c */

extern const char *const token_option_triggers[];
extern const size_t token_option_trigger_count;

/* at: of the option's first dash. */
bool token_match_option(const struct token_text *text, size_t at, struct token_hit *ret_hit);

/* --- token_credential.c */

/* at: of base64 of name:password. */
bool token_match_encoded(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_netrc(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_basic(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_bearer(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_url(const struct token_text *text, size_t at, struct token_hit *ret_hit);
bool token_match_aws(const struct token_text *text, size_t at, struct token_hit *ret_hit);
