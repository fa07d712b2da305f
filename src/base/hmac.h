/*
 * HMAC-SHA256 (RFC 2104): a digest that nobody can compute, or check a guess against, without the
 * key. Pure.
 */
#pragma once

#include "base/sha256.h"

/* A key that has been taken in, to be used any number of times. Wipe it as the key itself. */
struct hmac_key {
	struct sha256 inner, outer;
};

/* Keys longer than a block of 64 bytes are hashed first, as the RFC says. */
void hmac_key_set(struct hmac_key *key, const void *bytes, size_t length);

/* Begins the digest of one message: sha256_update() with its bytes, then hmac_end(). */
void hmac_begin(const struct hmac_key *key, struct sha256 *ret_hash);
void hmac_end(const struct hmac_key *key, struct sha256 *hash,
	      unsigned char digest[static SHA256_BYTES]);
