/*
 * Bytes sixteen at a time, and copies of a few: for the inner loops that read and write the record.
 * The C library of the installed program copies by `rep movs`, whose beginning alone costs more
 * than most strings of a record, and looks for a byte by words of eight. Pure; all is inline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Signed, so that one comparison (< 0x20) tells controls and what is not ASCII. */
typedef signed char bytes16 __attribute__((vector_size(16)));

static inline bytes16 bytes16_load(const void *at)
{
	bytes16 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A bit for each byte of a comparison's result (0 or all ones), the first byte's lowest. */
static inline unsigned bytes16_mask(bytes16 found)
{
#if defined(__SSE2__)
	return (unsigned)_mm_movemask_epi8((__m128i)found);
#else
	unsigned mask = 0;

	for (unsigned i = 0; i < sizeof(found); i++)
		mask |= (unsigned)(found[i] < 0) << i;
	return mask;
#endif
}

/* memchr(3) as an index: `length` where there is none. */
static inline size_t bytes_find(const char *bytes, size_t length, char byte)
{
	size_t at = 0;

	for (; length - at >= sizeof(bytes16); at += sizeof(bytes16)) {
		unsigned mask = bytes16_mask(bytes16_load(bytes + at) == (signed char)byte);

		if (mask)
			return at + (unsigned)__builtin_ctz(mask);
	}
	while (at < length && bytes[at] != byte)
		at++;
	return at;
}

/* memcpy(3), quick for less than a line: two pieces that may overlap. */
static inline void bytes_copy(void *restrict to, const void *restrict from, size_t length)
{
	char *out = to;
	const char *in = from;

	if (length > 64) {
		memcpy(out, in, length);
	} else if (length > 32) {
		memcpy(out, in, 32);
		memcpy(out + length - 32, in + length - 32, 32);
	} else if (length >= 16) {
		memcpy(out, in, 16);
		memcpy(out + length - 16, in + length - 16, 16);
	} else if (length >= 8) {
		memcpy(out, in, 8);
		memcpy(out + length - 8, in + length - 8, 8);
	} else if (length >= 4) {
		memcpy(out, in, 4);
		memcpy(out + length - 4, in + length - 4, 4);
	} else if (length) {
		out[0] = in[0];
		out[length / 2] = in[length / 2];
		out[length - 1] = in[length - 1];
	}
}

/* memcmp(3) for equality, quick for some bytes. */
static inline bool bytes_same(const void *one, const void *other, size_t length)
{
	const char *left = one, *right = other;
	uint64_t a, b;

	for (; length >= sizeof(a); left += sizeof(a), right += sizeof(b), length -= sizeof(a)) {
		memcpy(&a, left, sizeof(a));
		memcpy(&b, right, sizeof(b));
		if (a != b)
			return false;
	}
	for (; length; left++, right++, length--)
		if (*left != *right)
			return false;
	return true;
}
