/* Heads and public keys as text: what is written is read back, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trace/sign.h"

#define INSTALLATION "0123456789abcdef0123456789abcdef"
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* RFC 8032, 7.1, test 1; the PEM is what openssl pkey -pubout makes of it. */
static const unsigned char public[SIGN_PUBLIC_BYTES] = {
	0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
	0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
	0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
};
static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
			  "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
			  "-----END PUBLIC KEY-----\n";

static struct sign_claim claim(uint64_t seq)
{
	struct sign_claim claim = { .installation = INSTALLATION, .seq = seq, .hash = HASH };

	memcpy(claim.public, public, sizeof(public));
	for (size_t i = 0; i < SIGN_SIGNATURE_BYTES; i++)
		claim.signature[i] = (unsigned char)(i * 7);
	return claim;
}

static void reads_back(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 9, 10, UINT32_MAX, UINT64_MAX };
	char line[SIGN_LINE_BYTES], again[SIGN_LINE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sign_claim written = claim(numbers[i]), read;

		sign_line(&written, line);
		assert_int_equal(sign_line_read(line, strlen(line), &read), 0);
		sign_line(&read, again);
		assert_string_equal(line, again);
		assert_int_equal(read.seq, numbers[i]);
	}
}

/* One byte more, less or another one is no head; another digit may be one of another claim. */
static void reads_nothing_else(void **state)
{
	char line[SIGN_LINE_BYTES + 1], bad[SIGN_LINE_BYTES + 1], again[SIGN_LINE_BYTES];
	struct sign_claim written = claim(120), read;
	size_t length;

	(void)state;
	sign_line(&written, line);
	length = strlen(line);
	for (size_t i = 0; i < length; i++) {
		assert_int_equal(sign_line_read(line, i, &read), -EBADMSG);
		for (unsigned byte = 0; byte < 256; byte++) {
			memcpy(bad, line, length + 1);
			bad[i] = (char)byte;
			if (sign_line_read(bad, length, &read) < 0)
				continue;
			sign_line(&read, again);
			assert_memory_equal(bad, again, length + 1);
		}
	}
	line[length] = '\n';
	assert_int_equal(sign_line_read(line, length + 1, &read), -EBADMSG);
}

static void numbers_have_one_form(void **state)
{
	static const char *const bad[] = {
		"",
		"01",
		"00",
		"-1",
		"+1",
		"1.0",
		"0x1",
		"1e3",
		" 1",
		"18446744073709551616",
		"99999999999999999999999999",
	};
	char line[SIGN_LINE_BYTES], whole[2 * SIGN_LINE_BYTES];
	struct sign_claim written = claim(5), read;
	const char *rest;

	(void)state;
	sign_line(&written, line);
	rest = strstr(line, " 5 ") + 2;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(whole, sizeof(whole), "bawn-head-v1 " INSTALLATION " %s%s", bad[i], rest);
		assert_int_equal(sign_line_read(whole, strlen(whole), &read), -EBADMSG);
	}
}

static void a_failure_leaves_the_result(void **state)
{
	struct sign_claim read = { .seq = 77 };
	unsigned char key[SIGN_PUBLIC_BYTES] = { 77 };

	(void)state;
	assert_int_equal(sign_line_read("bawn-head-v1 ", 13, &read), -EBADMSG);
	assert_int_equal(read.seq, 77);
	assert_int_equal(sign_pem_read(pem, 50, key), -EBADMSG);
	assert_int_equal(key[0], 77);
}

static void public_keys(void **state)
{
	char text[SIGN_PEM_BYTES], bad[SIGN_PEM_BYTES];
	unsigned char key[SIGN_PUBLIC_BYTES];
	size_t length = sizeof(pem) - 1;

	(void)state;
	sign_pem(public, text);
	assert_string_equal(text, pem);
	for (size_t less = 0; less < 2; less++) {
		memset(key, 0, sizeof(key));
		assert_int_equal(sign_pem_read(pem, length - less, key), 0);
		assert_memory_equal(key, public, sizeof(key));
	}
	for (size_t i = 0; i < length - 1; i++)
		assert_int_equal(sign_pem_read(pem, i, key), -EBADMSG);
	/* a changed byte is refused or is another key's, in its one form */
	for (size_t i = 0; i < length; i++)
		for (unsigned byte = 0; byte < 256; byte++) {
			memcpy(bad, pem, length + 1);
			bad[i] = (char)byte;
			if (sign_pem_read(bad, length, key) < 0)
				continue;
			sign_pem(key, text);
			assert_memory_equal(text, bad, length);
		}
}

/* The claims of a request fit its message (ipc/message.h). */
static void a_request_fits(void **state)
{
	(void)state;
	assert_int_equal(SIGN_CLAIM_BYTES, 200);
	assert_true(SIGN_LIMIT_CLAIMS * SIGN_CLAIM_BYTES <= 4096);
	assert_true(SIGN_LIMIT_CLAIMS >= 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back),
		cmocka_unit_test(reads_nothing_else),
		cmocka_unit_test(numbers_have_one_form),
		cmocka_unit_test(a_failure_leaves_the_result),
		cmocka_unit_test(public_keys),
		cmocka_unit_test(a_request_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
