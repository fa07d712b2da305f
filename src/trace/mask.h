/*
 * Secrets are replaced before anything is written (docs/TRACE.md, "Secrets"): values that were
 * given to us as secret, and what looks like a common token (trace/token.h). Works on a finished
 * JSON line and on the bytes of a stream in chunks of any size. Pure.
 *
 * A replaced value is "[masked:<kind>:<16 hex digits>]": HMAC-SHA256 over its bytes with the
 * installation's key, so that equal ones are seen to be equal and none can be guessed by trying.
 * Masking what is masked already changes nothing.
 *
 * A mask owns copies of the values, wiped by mask_end(). One that was never begun masks nothing and
 * says so: the buffer is marked failed, the stream refused.
 */
#pragma once

#include "base/buffer.h"
#include "base/hmac.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_KEY_BYTES 32
#define MASK_DIGEST_DIGITS 16
/* Shorter values are no secrets but words; replacing them would make everything unreadable. */
#define MASK_SHORTEST_BYTES 6
/* A longer value is looked for in pieces of this size. */
#define MASK_PIECE_BYTES 2048u
/* Pieces of values, and the names of their kinds. */
#define MASK_LIMIT_VALUES 256u
#define MASK_NAME_BYTES 65
/*
 * Three bytes that a secret may be told by: one bit for their hash. Few pages, of which each
 * costs.
 */
#define MASK_TABLE_BITS 14

/* One form in which a value may appear. */
struct mask_form {
	const char *bytes; /* owned */
	uint32_t length;
	uint16_t value;	       /* its kind, and the value that is digested */
	uint16_t anchor;       /* where its rarest three bytes are */
	bool in_text, in_json; /* where it is looked for */
};

struct mask_value {
	char kind[MASK_NAME_BYTES + 4]; /* "env.NAME" */
	const char *bytes;		/* owned */
	uint32_t length;
};

struct mask {
	bool is_begun;
	struct hmac_key key;
	struct mask_value *values; /* owned, as all below */
	struct mask_form *forms;
	size_t value_count, form_count;
	uint32_t table[(1u << MASK_TABLE_BITS) / 32], second[(1u << MASK_TABLE_BITS) / 32];
};

#define MASK_NONE ((struct mask){ 0 })

/*
 * True where a variable's name says that its value is secret: TOKEN, SECRET, PASSWORD, API_KEY and
 * their kin as words of it; SSH_AUTH_SOCK, TOKENIZERS_PARALLELISM or KEYBOARD are none.
 */
bool mask_is_secret_name(const char *name);

/* The key is copied. Other members must be as in MASK_NONE. */
void mask_begin(struct mask *mask, const unsigned char key[static MASK_KEY_BYTES]);

/*
 * Adds a secret value, of a variable of this name. Also found: its JSON-escaped and its
 * percent-encoded form. 0; -ERANGE for a value that is too short; -E2BIG beyond the limit, -ENOMEM.
 */
int mask_add(struct mask *mask, const char *name, const char *value)
	__attribute__((warn_unused_result));

/* True where the value was added before (as one piece). */
bool mask_has(const struct mask *mask, const char *value);

/* Wipes and frees; accepts MASK_NONE. */
void mask_end(struct mask *mask);

#define CLEANUP_MASK __attribute__((cleanup(mask_end)))

/*
 * Replaces in a JSON text of the writer in base/json.h, from `from` on (outside of a string; best
 * where the body begins, since a line's head holds our own words alone). The text stays valid JSON:
 * only content of strings is replaced. Returns how many were. The buffer is marked failed where
 * there is no memory for the result.
 */
size_t mask_buffer(const struct mask *mask, struct buffer *buffer, size_t from);

/*
 * A stream of bytes in chunks: what comes out does not depend on how they were cut. Bytes are held
 * back until it is clear that no secret begins in them.
 */
struct mask_stream {
	const struct mask *mask; /* borrowed */
	/*
	 * Takes bytes that are done; 0 or a negative errno, which ends the call. As long as count
	 * is 0 they are as they were fed.
	 */
	int (*take)(void *context, const void *bytes, size_t length);
	void *context;
	uint64_t count;	    /* how many secrets were replaced */
	struct buffer held; /* owned; bytes of which some were handed on already */
	size_t given;	    /* how many of them */
	size_t looked;	    /* no secret begins before; at least `given` */
	uint8_t *wide;	    /* owned; the mask's table in another form; NULL: none */
};

/*
 * What is looked at behind a place before it is handed on: a name's value, a private key in it, and
 * a known value in its longest form that begins at its end.
 */
#define MASK_REACH_BYTES 40000u

/* -EINVAL for a mask that was never begun. */
int mask_stream_begin(struct mask_stream *stream, const struct mask *mask,
		      int (*take)(void *context, const void *bytes, size_t length), void *context)
	__attribute__((warn_unused_result));
int mask_stream_feed(struct mask_stream *stream, const void *bytes, size_t length)
	__attribute__((warn_unused_result));
/* What was held back comes out. */
int mask_stream_finish(struct mask_stream *stream) __attribute__((warn_unused_result));
/* Frees; accepts one that is all zero. */
void mask_stream_free(struct mask_stream *stream);

#define CLEANUP_MASK_STREAM __attribute__((cleanup(mask_stream_free)))
