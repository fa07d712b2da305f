/*
 * Bodies on their way: whatever pieces they arrive in, what goes on is one spelling of what came,
 * and what could be read in two ways ends both connections.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http_body.h"

static char out[65536];
static size_t out_length, used;

/* All of `bytes`, in pieces of at most `step`; what http_body_next() gave last. */
static int pass(struct http_body *body, const char *bytes, size_t length, size_t step)
{
	const char *why = NULL;
	int result = 1;

	out_length = used = 0;
	while (used < length && !http_body_is_done(body)) {
		size_t part = length - used < step ? length - used : step;
		/* as long as it is, so that a read beyond it is seen by ASan */
		char *copy = malloc(part);
		size_t at = 0;

		assert_non_null(copy);
		memcpy(copy, bytes + used, part);
		do {
			struct http_piece piece;

			result = http_body_next(body, copy + at, part - at, &piece, &why);
			assert_true(piece.used <= part - at);
			assert_true(piece.out.length <= sizeof(out) - out_length);
			memcpy(out + out_length, piece.out.bytes, piece.out.length);
			out_length += piece.out.length;
			at += piece.used;
		} while (result > 0 && !http_body_is_done(body));
		free(copy);
		used += at;
		if (result < 0) {
			assert_non_null(why);
			return result;
		}
		assert_true(at == part || http_body_is_done(body));
	}
	return result;
}

static void expect_chunked(const char *bytes, const char *expected, size_t behind)
{
	for (size_t step = 1; step <= strlen(bytes); step++) {
		struct http_body body;

		http_body_begin(&body, HTTP_CHUNKED, 0);
		assert_true(pass(&body, bytes, strlen(bytes), step) >= 0);
		assert_true(http_body_is_done(&body));
		assert_int_equal(used, strlen(bytes) - behind);
		assert_int_equal(out_length, strlen(expected));
		assert_memory_equal(out, expected, out_length);
		assert_int_equal(http_body_close(&body), 0);
	}
}

static void a_length_is_kept(void **state)
{
	struct http_body body;

	(void)state;
	http_body_begin(&body, HTTP_LENGTH, 5);
	assert_int_equal(http_body_payload(&body), 5);
	assert_int_equal(pass(&body, "abc", 3, 2), 0);
	assert_int_equal(http_body_payload(&body), 2);
	assert_int_equal(http_body_close(&body), -EBADMSG);
	assert_int_equal(pass(&body, "deGET", 5, 5), 1);
	assert_int_equal(used, 2);
	assert_memory_equal(out, "de", 2);
	assert_true(http_body_is_done(&body));
	assert_int_equal(http_body_payload(&body), 0);
	assert_int_equal(body.payload, 5);
	assert_int_equal(http_body_close(&body), 0);
}

static void nothing_is_done_at_once(void **state)
{
	struct http_body body;

	(void)state;
	http_body_begin(&body, HTTP_NO_BODY, 7);
	assert_true(http_body_is_done(&body));
	assert_int_equal(http_body_payload(&body), 0);
	http_body_begin(&body, HTTP_LENGTH, 0);
	assert_true(http_body_is_done(&body));
}

static void until_close_ends_with_the_connection(void **state)
{
	struct http_body body;

	(void)state;
	http_body_begin(&body, HTTP_UNTIL_CLOSE, 0);
	assert_int_equal(http_body_payload(&body), UINT64_MAX);
	assert_int_equal(pass(&body, "abc", 3, 3), 0);
	assert_memory_equal(out, "abc", 3);
	assert_false(http_body_is_done(&body));
	http_body_passed(&body, 1u << 30);
	assert_int_equal(http_body_payload(&body), UINT64_MAX);
	assert_int_equal(body.payload, 3 + (1u << 30));
	assert_int_equal(http_body_close(&body), 0);
	assert_true(http_body_is_done(&body));
}

static void chunks_are_written_anew(void **state)
{
	(void)state;
	expect_chunked("0\r\n\r\n", "0\r\n\r\n", 0);
	expect_chunked("5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", 0);
	expect_chunked("0005\r\nhello\r\n000\r\n\r\nGET / H", "5\r\nhello\r\n0\r\n\r\n", 7);
	expect_chunked("A\r\n\r\n0\r\n\r\nxyz\r\n0\r\n\r\n", "a\r\n\r\n0\r\n\r\nxyz\r\n0\r\n\r\n",
		       0);
	expect_chunked("1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n", "1\r\nx\r\n0\r\n\r\n", 0);
	expect_chunked("1\r\nx\r\n0\r\nGrpc-Status: 0\r\nX:\r\nY:  a\tb \r\n\r\n",
		       "1\r\nx\r\n0\r\nGrpc-Status: 0\r\nX:\r\nY:  a\tb \r\n\r\n", 0);
}

static void expect_refused(const char *bytes, size_t length)
{
	for (size_t step = 1; step <= length; step++) {
		struct http_body body;
		const char *why;
		struct http_piece piece;

		http_body_begin(&body, HTTP_CHUNKED, 0);
		if (pass(&body, bytes, length, step) != -EBADMSG)
			fail_msg("taken: %s", bytes);
		/* and stays so */
		assert_int_equal(http_body_next(&body, "0\r\n\r\n", 5, &piece, &why), -EBADMSG);
		assert_int_equal(piece.used, 0);
		assert_false(http_body_is_done(&body));
		assert_int_equal(http_body_close(&body), -EBADMSG);
	}
}

static void what_two_readers_differ_about_is_refused(void **state)
{
	static const char *const bodies[] = {
		"\r\n",
		";a\r\n",
		" 5\r\nhello\r\n",
		"5 \r\nhello\r\n",
		"5\t;a\r\nhello\r\n",
		"+5\r\nhello\r\n",
		"-1\r\n",
		"0x5\r\nhello\r\n",
		"5g\r\n",
		"5\nhello\r\n",
		"5\r\r\nhello",
		"5\rhello",
		"5;a\nhello",
		"5;a\x01\r\n",
		"5;a\r\r\n",
		"5\r\nhello0\r\n",
		"5\r\nhello\n0\r\n",
		"5\r\nhello\rX",
		"5\r\nhelloX\r\n0\r\n\r\n",
		"0000000000000001\r\n",
		"ffffffffffffffff\r\n",
		"10000000000000000\r\n",
		"0\r\n\n",
		"0\r\n\rX",
		"0\r\n X: a\r\n\r\n",
		"0\r\nX : a\r\n\r\n",
		"0\r\nX\r\n\r\n",
		"0\r\n: a\r\n\r\n",
		"0\r\nX: a\nY: b\r\n\r\n",
		"0\r\nX: a\x01\r\n\r\n",
		"0\r\nX: a\rb\r\n\r\n",
		"0\r\nX: a\r\n folded\r\n\r\n",
		"0\r\nContent-Length: 5\r\n\r\n",
		"0\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
		"0\r\ntransfer_encoding: chunked\r\n\r\n",
		"0\r\nHost: b\r\n\r\n",
		"0\r\nAuthorization: x\r\n\r\n",
		"0\r\nIf-Match: x\r\n\r\n",
		"0\r\nProxy-Anything: x\r\n\r\n",
		"0\r\nX-HTTP-Method-Override: PUT\r\n\r\n",
		"0\r\nSet-Cookie: x\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		expect_refused(bodies[i], strlen(bodies[i]));
	expect_refused("0\r\nX: \0\r\n\r\n", 12);
	expect_refused("5;\0\r\n", 5);
}

/* "<before><count times fill><behind>" as a chunked body. */
static int passes(const char *before, char fill, size_t count, const char *behind)
{
	static char bytes[32768];
	struct http_body body;
	size_t length = strlen(before);

	memcpy(bytes, before, length);
	memset(bytes + length, fill, count);
	length += count;
	memcpy(bytes + length, behind, strlen(behind));
	length += strlen(behind);
	http_body_begin(&body, HTTP_CHUNKED, 0);
	return pass(&body, bytes, length, length);
}

static void limits_hold(void **state)
{
	(void)state;
	assert_int_equal(passes("0;", 'x', HTTP_BODY_LIMIT_EXTENSION_BYTES, "\r\n\r\n"), 1);
	assert_int_equal(passes("0;", 'x', HTTP_BODY_LIMIT_EXTENSION_BYTES + 1, "\r\n\r\n"),
			 -EBADMSG);
	assert_int_equal(passes("0\r\n", 'x', HTTP_BODY_LIMIT_NAME_BYTES, ":\r\n\r\n"), 1);
	assert_int_equal(passes("0\r\n", 'x', HTTP_BODY_LIMIT_NAME_BYTES + 1, ":\r\n\r\n"),
			 -EBADMSG);
	assert_int_equal(passes("0\r\nx:", 'x', HTTP_BODY_LIMIT_TRAILER_BYTES - 1, "\r\n\r\n"), 1);
	assert_int_equal(passes("0\r\nx:", 'x', HTTP_BODY_LIMIT_TRAILER_BYTES, "\r\n\r\n"),
			 -EBADMSG);
}

static void trailers_are_counted(void **state)
{
	struct http_body body;
	int result;

	(void)state;
	http_body_begin(&body, HTTP_CHUNKED, 0);
	assert_int_equal(pass(&body, "0\r\n", 3, 3), 0);
	for (unsigned i = 0; i < HTTP_BODY_LIMIT_TRAILERS; i++) {
		result = pass(&body, "x: y\r\n", 6, 6);
		assert_int_equal(result, 0);
	}
	assert_int_equal(pass(&body, "x: y\r\n", 6, 6), -EBADMSG);
}

static void payload_goes_another_way(void **state)
{
	static const uint64_t size = UINT64_C(1) << 40;
	struct http_body body;
	char line[32];

	(void)state;
	http_body_begin(&body, HTTP_CHUNKED, 0);
	(void)snprintf(line, sizeof(line), "%llX\r\n", (unsigned long long)size);
	assert_int_equal(pass(&body, line, strlen(line), 32), 0);
	assert_int_equal(http_body_payload(&body), size);
	http_body_passed(&body, size - 1);
	assert_int_equal(http_body_payload(&body), 1);
	assert_int_equal(pass(&body, "x\r\n0\r\n\r\n", 8, 8), 1);
	assert_int_equal(out_length, 8);
	assert_int_equal(body.payload, size);
	assert_true(http_body_is_done(&body));
	/* more than there is is not believed */
	http_body_begin(&body, HTTP_LENGTH, 5);
	http_body_passed(&body, 6);
	assert_int_equal(body.payload, 5);
	assert_true(http_body_is_done(&body));
	http_body_passed(&body, 6);
	assert_int_equal(body.payload, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_length_is_kept),
		cmocka_unit_test(nothing_is_done_at_once),
		cmocka_unit_test(until_close_ends_with_the_connection),
		cmocka_unit_test(chunks_are_written_anew),
		cmocka_unit_test(what_two_readers_differ_about_is_refused),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(trailers_are_counted),
		cmocka_unit_test(payload_goes_another_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
