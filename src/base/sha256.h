/*
 * SHA-256 (FIPS 180-4) without a library: loading libcrypto costs the start 2 ms. Uses the
 * processor's SHA extensions where they exist, as libc found them at the start of the program: a
 * CPUID of our own would trap in a virtual machine (30-100 us). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX_BYTES 65 /* with the NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t length_bytes;
	unsigned char block[64];
	bool plain; /* without the extensions; tests set it after sha256_begin() */
};

void sha256_begin(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *bytes, size_t length);
/* Ends the hash; it must begin again before the next use. */
void sha256_end(struct sha256 *hash, unsigned char digest[static SHA256_BYTES]);
/* All at once, as text. */
void sha256_text(const void *bytes, size_t length, char text[static SHA256_HEX_BYTES]);
/* 64 lower-case digits and a NUL. */
void sha256_hex(const unsigned char digest[static SHA256_BYTES],
		char text[static SHA256_HEX_BYTES]);
