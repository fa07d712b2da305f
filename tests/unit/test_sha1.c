#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha1.h"

static void expect(const void *bytes, size_t length, const char *wanted)
{
	unsigned char digest[SHA1_BYTES];
	char text[2 * SHA1_BYTES + 1];

	sha1(bytes, length, digest);
	for (size_t i = 0; i < SHA1_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, wanted);
}

/* FIPS 180-4's own examples. */
static void standard(void **state)
{
	static char many[1000000];

	(void)state;
	expect("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	expect("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	       "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	memset(many, 'a', sizeof(many));
	expect(many, sizeof(many), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Around the ends of blocks, by sha1sum(1). */
static void edges(void **state)
{
	static const char bytes[119] = { 0 };

	(void)state;
	expect(bytes, 55, "8e8832c642a6a38c74c17fc92ccedc266c108e6c");
	expect(bytes, 63, "0b8bf9fc37ad802cefa6733ec62b09d5f43a1b75");
	expect(bytes, 64, "c8d7d0ef0eedfa82d2ea1aa592845b9a6d4b02b7");
	expect(bytes, 119, "85634f17f58bda0e4f0515dfb68bc1af922a031f");
}

/* Piece by piece it is the same. */
static void pieces(void **state)
{
	static unsigned char bytes[1000];
	unsigned char whole[SHA1_BYTES], parts[SHA1_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	sha1(bytes, sizeof(bytes), whole);
	for (size_t step = 1; step < 200; step++) {
		struct sha1 hash;

		sha1_begin(&hash);
		for (size_t at = 0; at < sizeof(bytes); at += step)
			sha1_update(&hash, bytes + at,
				    sizeof(bytes) - at < step ? sizeof(bytes) - at : step);
		sha1_end(&hash, parts);
		assert_memory_equal(parts, whole, sizeof(whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(standard),
		cmocka_unit_test(edges),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
