#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

#define PATTERN_BYTES 200003u

/* How the input is handed over: at once, or in chunks of this many bytes. */
static void digest_hex(const void *bytes, size_t length, size_t chunk, bool plain,
		       char text[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	const char *at = bytes;
	struct sha256 hash;

	sha256_begin(&hash);
	hash.plain |= plain;
	while (length) {
		size_t part = chunk && chunk < length ? chunk : length;

		sha256_update(&hash, at, part);
		at += part;
		length -= part;
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
}

static void expect(const void *bytes, size_t length, const char *wanted)
{
	static const size_t chunks[] = { 0, 1, 3, 55, 63, 64, 65, 127, 128, 4096 };
	char text[SHA256_HEX_BYTES];

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		digest_hex(bytes, length, chunks[i], true, text);
		assert_string_equal(text, wanted);
		digest_hex(bytes, length, chunks[i], false, text);
		assert_string_equal(text, wanted);
	}
}

/* FIPS 180-4's own examples (NIST's "SHA256.pdf" and the byte vectors of SHAVS). */
static void standard(void **state)
{
	static const struct {
		const char *text, *wanted;
	} vectors[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
		{ "\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b" },
		{ "\xc9\x8c\x8e\x55",
		  "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		expect(vectors[i].text, strlen(vectors[i].text), vectors[i].wanted);
}

static void million(void **state)
{
	size_t length = 1000000;
	char *bytes = malloc(length);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'a', length);
	expect(bytes, length, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(bytes);
}

/* All lengths around the padding's borders; digests of the digests, as sha256sum gives them. */
static void lengths(void **state)
{
	unsigned char bytes[300];
	char plain[SHA256_HEX_BYTES], extended[SHA256_HEX_BYTES];
	char all[(sizeof(bytes) + 1) * (SHA256_HEX_BYTES - 1)];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	for (size_t length = 0; length <= sizeof(bytes); length++) {
		digest_hex(bytes, length, 0, true, plain);
		digest_hex(bytes, length, 0, false, extended);
		assert_string_equal(plain, extended);
		memcpy(all + length * (SHA256_HEX_BYTES - 1), plain, SHA256_HEX_BYTES - 1);
	}
	expect(all, sizeof(all),
	       "9ab015b3431ba48c0f99e81c5bb7d903f6bfea343d7d7b190120d07cc51e653b");
}

/* Unaligned starts, and more than 64 KiB at once. */
static void unaligned(void **state)
{
	unsigned char *bytes = malloc(PATTERN_BYTES + 16);

	(void)state;
	assert_non_null(bytes);
	for (size_t shift = 0; shift < 16; shift += 5) {
		for (size_t i = 0; i < PATTERN_BYTES; i++)
			bytes[shift + i] = (unsigned char)(i * i >> 3);
		expect(bytes + shift, PATTERN_BYTES,
		       "a220a640439c604d85bb24f32f5046452b66d4e9a3dc6d79ca7984dc347630ef");
	}
	free(bytes);
}

/* A length of 2^32 bits and more needs the upper word of the length. */
static void long_length(void **state)
{
	size_t part = 1 << 20;
	unsigned char digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	struct sha256 hash;
	char *bytes = calloc(1, part);

	(void)state;
	assert_non_null(bytes);
	sha256_begin(&hash);
	for (unsigned i = 0; i < 513; i++)
		sha256_update(&hash, bytes, part);
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
	assert_string_equal(text,
			    "a3e2acbb469e4e59dde406f912e754c933c1ac0fb0092a3634d61d5073309c0c");
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(standard),    cmocka_unit_test(million),
		cmocka_unit_test(lengths),     cmocka_unit_test(unaligned),
		cmocka_unit_test(long_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
