#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t value, unsigned count)
{
	return value << count | value >> (32 - count);
}

static uint32_t load(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store(unsigned char *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* FIPS 180-4, 4.1.1 and 4.2.1: function and constant of a round. */
static uint32_t mixed(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round / 20) {
	case 0:
		return ((b & c) | (~b & d)) + 0x5a827999u;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1u;
	case 2:
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
	default:
		return (b ^ c ^ d) + 0xca62c1d6u;
	}
}

static void add_block(uint32_t state[static 5], const unsigned char *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
	uint32_t words[80];

	for (unsigned i = 0; i < 16; i++)
		words[i] = load(block + 4 * i);
	for (unsigned i = 16; i < 80; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		uint32_t sum = rotate(a, 5) + mixed(i, b, c, d) + e + words[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = sum;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1_begin(struct sha1 *hash)
{
	*hash = (struct sha1){ .state = { 0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u,
					  0xc3d2e1f0u } };
}

void sha1_update(struct sha1 *hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	size_t used = hash->length_bytes % SHA1_BLOCK_BYTES;

	hash->length_bytes += length;
	while (length) {
		size_t step = SHA1_BLOCK_BYTES - used;

		if (!used && length >= SHA1_BLOCK_BYTES) {
			add_block(hash->state, at);
			step = SHA1_BLOCK_BYTES;
		} else {
			step = step < length ? step : length;
			memcpy(hash->block + used, at, step);
			used += step;
			if (used == SHA1_BLOCK_BYTES) {
				add_block(hash->state, hash->block);
				used = 0;
			}
		}
		at += step;
		length -= step;
	}
}

void sha1_end(struct sha1 *hash, unsigned char digest[static SHA1_BYTES])
{
	static const unsigned char padding[SHA1_BLOCK_BYTES] = { 0x80 };
	uint64_t bits = hash->length_bytes * 8;
	size_t used = hash->length_bytes % SHA1_BLOCK_BYTES;
	unsigned char length[8];

	store(length, (uint32_t)(bits >> 32));
	store(length + 4, (uint32_t)bits);
	sha1_update(hash, padding, (used < 56 ? 56 : 120) - used);
	sha1_update(hash, length, sizeof(length));
	for (unsigned i = 0; i < 5; i++)
		store(digest + 4 * i, hash->state[i]);
}

void sha1(const void *bytes, size_t length, unsigned char digest[static SHA1_BYTES])
{
	struct sha1 hash;

	sha1_begin(&hash);
	sha1_update(&hash, bytes, length);
	sha1_end(&hash, digest);
}
