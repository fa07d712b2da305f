/* The test cases of RFC 4231. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hmac.h"

static void expect(const void *key_bytes, size_t key_length, const void *bytes, size_t length,
		   const char *wanted)
{
	unsigned char digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	struct hmac_key key;
	struct sha256 hash;

	hmac_key_set(&key, key_bytes, key_length);
	/* twice: a key is not used up */
	for (int i = 0; i < 2; i++) {
		hmac_begin(&key, &hash);
		sha256_update(&hash, bytes, length / 2);
		sha256_update(&hash, (const char *)bytes + length / 2, length - length / 2);
		hmac_end(&key, &hash, digest);
		sha256_hex(digest, text);
		text[strlen(wanted)] = '\0'; /* case 5 is cut */
		assert_string_equal(text, wanted);
	}
}

#define TEXT(text) text, sizeof(text) - 1

static void test_short_keys(void **state)
{
	unsigned char key[25], data[50];

	(void)state;
	memset(key, 0x0b, sizeof(key));
	expect(key, 20, TEXT("Hi There"),
	       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	expect(TEXT("Jefe"), TEXT("what do ya want for nothing?"),
	       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	expect(key, 20, data, 50,
	       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	for (unsigned char i = 0; i < 25; i++)
		key[i] = (unsigned char)(i + 1);
	memset(data, 0xcd, sizeof(data));
	expect(key, 25, data, 50,
	       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
	memset(key, 0x0c, sizeof(key));
	expect(key, 20, TEXT("Test With Truncation"), "a3b6167473100ee06e0c796c2955552b");
}

static void test_keys_longer_than_a_block(void **state)
{
	unsigned char key[131];

	(void)state;
	memset(key, 0xaa, sizeof(key));
	expect(key, sizeof(key), TEXT("Test Using Larger Than Block-Size Key - Hash Key First"),
	       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	expect(key, sizeof(key),
	       TEXT("This is a test using a larger than block-size key and a larger than "
		    "block-size data. The key needs to be hashed before being used by the HMAC "
		    "algorithm."),
	       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_keys),
		cmocka_unit_test(test_keys_longer_than_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
