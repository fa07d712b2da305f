/*
 * SHA-1 (FIPS 180-4) without a library, for git's own checksums and for nothing that must resist
 * anybody. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20
#define SHA1_BLOCK_BYTES 64

struct sha1 {
	uint32_t state[5];
	uint64_t length_bytes;
	unsigned char block[SHA1_BLOCK_BYTES];
};

void sha1_begin(struct sha1 *hash);
void sha1_update(struct sha1 *hash, const void *bytes, size_t length);
/* Ends the hash; it must begin again before the next use. */
void sha1_end(struct sha1 *hash, unsigned char digest[static SHA1_BYTES]);
/* All at once. */
void sha1(const void *bytes, size_t length, unsigned char digest[static SHA1_BYTES]);
