#include "base/sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/platform/x86.h>
#endif

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static uint32_t read_word(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static void write_word(unsigned char *bytes, uint32_t word)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

/* FIPS 180-4, 6.2.2; the names are those of the standard. */
static void compress_block(uint32_t state[static 8], const unsigned char *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t w[64] = { 0 }; /* for gcc's analyzer, which does not follow the loops */

	for (unsigned t = 0; t < 16; t++)
		w[t] = read_word(block + 4 * t);
	for (unsigned t = 16; t < 64; t++) {
		uint32_t sigma0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t sigma1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;

		w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
	}
	for (unsigned t = 0; t < 64; t++) {
		uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
		uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
		uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
		uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));

		h = g, g = f, f = e, e = d + t1;
		d = c, c = b, b = a, a = t1 + t2;
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
	state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void compress_plain(uint32_t state[static 8], const unsigned char *block, size_t count)
{
	for (; count; count--, block += 64)
		compress_block(state, block);
}

#if defined(__x86_64__)
/* Asked once: CPUID is a trap in a virtual machine, dearer than the hash of a kilobyte. */
static bool has_extensions(void)
{
	static enum { UNKNOWN, ABSENT, PRESENT } extensions;

	if (extensions == UNKNOWN)
		extensions = CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1) ? PRESENT :
										     ABSENT;
	return extensions == PRESENT;
}

/* Four big-endian words. */
__attribute__((target("sha,sse4.1"))) static __m128i read_words(const unsigned char *bytes)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

	return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes), swap);
}

/*
 * Intel's SHA extensions keep the state as {A, B, E, F} and {C, D, G, H}; sha256rnds2 does two
 * rounds, so that each step of the loop does four. schedule[] holds the last 16 words of w.
 */
__attribute__((target("sha,sse4.1"))) static void
compress_extended(uint32_t state[static 8], const unsigned char *block, size_t count)
{
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8);
	__m128i cdgh = _mm_blend_epi16(high, low, 0xf0);

	for (; count; count--, block += 64) {
		__m128i schedule[4] = { read_words(block), read_words(block + 16),
					read_words(block + 32), read_words(block + 48) };
		__m128i abef_before = abef, cdgh_before = cdgh;

#pragma GCC unroll 16
		for (unsigned i = 0; i < 16; i++) {
			__m128i now = schedule[i % 4];
			__m128i sum = _mm_add_epi32(
				now, _mm_loadu_si128((const __m128i *)(constants + 4 * i)));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			if (i < 12) {
				__m128i last = schedule[(i + 3) % 4];
				__m128i middle = _mm_alignr_epi8(last, schedule[(i + 2) % 4], 4);

				now = _mm_sha256msg1_epu32(now, schedule[(i + 1) % 4]);
				now = _mm_add_epi32(now, middle);
				schedule[i % 4] = _mm_sha256msg2_epu32(now, last);
			}
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#else
static bool has_extensions(void)
{
	return false;
}

static void compress_extended(uint32_t state[static 8], const unsigned char *block, size_t count)
{
	compress_plain(state, block, count);
}
#endif

static void compress(struct sha256 *hash, const unsigned char *block, size_t count)
{
	if (hash->plain)
		compress_plain(hash->state, block, count);
	else
		compress_extended(hash->state, block, count);
}

void sha256_begin(struct sha256 *hash)
{
	*hash = (struct sha256){
		.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
			   0x1f83d9ab, 0x5be0cd19 },
		.plain = !has_extensions(),
	};
}

void sha256_update(struct sha256 *hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	size_t used = hash->length_bytes % 64;

	hash->length_bytes += length;
	if (used) {
		size_t part = length < 64 - used ? length : 64 - used;

		if (part)
			memcpy(hash->block + used, at, part);
		if (used + part < 64)
			return;
		compress(hash, hash->block, 1);
		at += part;
		length -= part;
	}
	if (length / 64)
		compress(hash, at, length / 64);
	if (length % 64)
		memcpy(hash->block, at + length / 64 * 64, length % 64);
}

void sha256_end(struct sha256 *hash, unsigned char digest[static SHA256_BYTES])
{
	uint64_t length_bits = hash->length_bytes * 8;
	size_t used = hash->length_bytes % 64;

	hash->block[used++] = 0x80;
	if (used > 56) {
		memset(hash->block + used, 0, 64 - used);
		compress(hash, hash->block, 1);
		used = 0;
	}
	memset(hash->block + used, 0, 56 - used);
	write_word(hash->block + 56, (uint32_t)(length_bits >> 32));
	write_word(hash->block + 60, (uint32_t)length_bits);
	compress(hash, hash->block, 1);
	for (unsigned i = 0; i < 8; i++)
		write_word(digest + 4 * i, hash->state[i]);
}

void sha256_hex(const unsigned char digest[static SHA256_BYTES], char text[static SHA256_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[2 * SHA256_BYTES] = '\0';
}

void sha256_text(const void *bytes, size_t length, char text[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, bytes, length);
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
}
