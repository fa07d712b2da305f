/*
 * ClientHellos: read the same however they are cut into records and arrive, and refused where two
 * readers could see two names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/hello.h"

static unsigned char message[HELLO_LIMIT_BYTES + 64], stream[2 * HELLO_LIMIT_BYTES];
static size_t message_bytes, stream_bytes, extensions_at;
static struct hello hello;
static const char *why;

static void put(const void *bytes, size_t length)
{
	assert_true(message_bytes + length <= sizeof(message));
	memcpy(message + message_bytes, bytes, length);
	message_bytes += length;
}

#define PUT(text) put(text, sizeof(text) - 1)

static void set_u16(size_t at, size_t value)
{
	message[at] = (unsigned char)(value >> 8);
	message[at + 1] = (unsigned char)value;
}

/* Up to the extensions; a GREASE cipher is among them. */
static void begin(void)
{
	static const unsigned char random[32] = { 1 };

	message_bytes = 0;
	PUT("\1\0\0\0\3\3");
	put(random, sizeof(random));
	PUT("\40");
	put(random, sizeof(random));
	PUT("\0\4\x1a\x1a\x13\1\1\0");
	extensions_at = message_bytes;
	PUT("\0\0");
}

static void extension(unsigned type, const void *bytes, size_t length)
{
	size_t at = message_bytes;

	PUT("\0\0\0\0");
	set_u16(at, type);
	set_u16(at + 2, length);
	put(bytes, length);
}

static void name_extension(const char *name)
{
	unsigned char bytes[300] = { 0 };
	size_t length = strlen(name);

	bytes[1] = (unsigned char)(length + 3);
	bytes[0] = (unsigned char)((length + 3) >> 8);
	bytes[3] = (unsigned char)(length >> 8);
	bytes[4] = (unsigned char)length;
	memcpy(bytes + 5, name, length);
	extension(0, bytes, length + 5);
}

static void finish(void)
{
	size_t length = message_bytes - 4;

	set_u16(extensions_at, message_bytes - extensions_at - 2);
	message[1] = (unsigned char)(length >> 16);
	set_u16(2, length);
}

/* The message in records of this size. */
static void cut(size_t size)
{
	stream_bytes = 0;
	for (size_t at = 0; at < message_bytes; at += size) {
		size_t part = message_bytes - at < size ? message_bytes - at : size;
		const unsigned char header[] = { 22, 3, 1, (unsigned char)(part >> 8),
						 (unsigned char)part };

		memcpy(stream + stream_bytes, header, sizeof(header));
		memcpy(stream + stream_bytes + 5, message + at, part);
		stream_bytes += 5 + part;
	}
}

static int parse(size_t length)
{
	unsigned char *copy = malloc(length ? length : 1);
	int result;

	assert_non_null(copy);
	memcpy(copy, stream, length);
	why = NULL;
	result = hello_parse(copy, length, &hello, &why);
	free(copy);
	assert_int_equal(result < 0, why != NULL);
	return result;
}

static int parse_whole(void)
{
	finish();
	cut(16384);
	return parse(stream_bytes);
}

static void usual(void)
{
	begin();
	extension(0x2a2a, "", 0);
	name_extension("WWW.a.Example");
	extension(16, "\0\14\2h2\10http/1.1", 14);
	extension(43, "\2\3\4", 3);
}

static void a_name_is_found_in_any_pieces(void **state)
{
	(void)state;
	usual();
	finish();
	for (size_t size = (message_bytes + HELLO_LIMIT_RECORDS - 1) / HELLO_LIMIT_RECORDS;
	     size <= message_bytes; size++) {
		cut(size);
		for (size_t length = 0; length < stream_bytes; length++)
			assert_int_equal(parse(length), 0);
		assert_int_equal(parse(stream_bytes), stream_bytes);
		assert_true(hello.has_name);
		assert_string_equal(hello.host.name, "www.a.example");
		assert_int_equal(hello.alpn, HELLO_ALPN_HTTP1 | HELLO_ALPN_H2);
		assert_false(hello.has_ech || hello.has_early_data);
	}
	/* what comes behind is not its */
	memcpy(stream + stream_bytes, "\24\3\3\0\1\1", 6);
	assert_int_equal(parse(stream_bytes + 6), stream_bytes);
}

static void what_else_is_said(void **state)
{
	(void)state;
	begin();
	assert_true(parse_whole() > 0);
	assert_false(hello.has_name);
	assert_int_equal(hello.alpn, 0);
	/* TLS 1.2 without any extension */
	message_bytes -= 2;
	message[3] = (unsigned char)(message_bytes - 4);
	cut(16384);
	assert_true(parse(stream_bytes) > 0);
	begin();
	name_extension("a.example");
	extension(0xfe0d, "\0anything", 9);
	extension(42, "", 0);
	extension(16, "\0\6\2\x1a\x1a\2me", 8);
	assert_true(parse_whole() > 0);
	assert_true(hello.has_ech && hello.has_early_data);
	assert_int_equal(hello.alpn, HELLO_ALPN_OTHER);
	begin();
	extension(16, "\0\3\2\x1a\x1a", 5);
	assert_true(parse_whole() > 0);
	assert_int_equal(hello.alpn, 0);
}

static void names_that_are_refused(void **state)
{
	static const char *const names[] = { "",	   "a b",   "a_b@c",	  "10.0.0.1",
					     "::1",	   "[::1]", "2130706433", "a..b",
					     "\xc3\xa9.a", "a\r\n", ".",	  "a/b" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		begin();
		name_extension(names[i]);
		if (parse_whole() >= 0)
			fail_msg("taken: %s", names[i]);
	}
	/* NUL */
	begin();
	extension(0, "\0\6\0\0\3a\0b", 8);
	assert_int_equal(parse_whole(), -EBADMSG);
	/* two in one list, two lists, another type, cut, behind the list */
	begin();
	extension(0, "\0\10\0\0\1a\0\0\1b", 10);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	name_extension("a.example");
	name_extension("b.example");
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(0, "\0\4\1\0\1a", 6);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(0, "\0\4\0\0\2a", 6);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(0, "\0\4\0\0\1ab", 7);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(0, "", 0);
	assert_int_equal(parse_whole(), -EBADMSG);
	/* the longest, and one byte more */
	begin();
	{
		char name[HOST_NAME_BYTES + 8];

		memset(name, 'a', sizeof(name));
		for (size_t i = 63; i < sizeof(name); i += 64)
			name[i] = '.';
		name[253] = '\0';
		name_extension(name);
		assert_true(parse_whole() > 0);
		begin();
		name[253] = 'a';
		name[254] = '\0';
		name_extension(name);
		assert_int_equal(parse_whole(), -EBADMSG);
	}
}

static void extensions_that_are_refused(void **state)
{
	(void)state;
	begin();
	extension(16, "\0\0", 2);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(16, "\0\1\0", 3);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(16, "\0\3\3h2", 5);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(16, "\0\3\2h2x", 6);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(42, "x", 1);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	extension(0xfe0d, "", 0);
	extension(0xfe0d, "", 0);
	assert_int_equal(parse_whole(), -EBADMSG);
	begin();
	for (unsigned i = 0; i < HELLO_LIMIT_EXTENSIONS; i++)
		extension(1000 + i, "", 0);
	assert_true(parse_whole() > 0);
	extension(999, "", 0);
	assert_int_equal(parse_whole(), -EBADMSG);
	/* one that is longer than all of them, and all longer than the message */
	begin();
	extension(1000, "abc", 3);
	finish();
	message[message_bytes - 4]++;
	cut(16384);
	assert_int_equal(parse(stream_bytes), -EBADMSG);
	message[message_bytes - 4] -= 2;
	cut(16384);
	assert_int_equal(parse(stream_bytes), -EBADMSG);
	message[message_bytes - 4]++;
	message[extensions_at + 1]++;
	cut(16384);
	assert_int_equal(parse(stream_bytes), -EBADMSG);
	message[extensions_at + 1] -= 2;
	cut(16384);
	assert_int_equal(parse(stream_bytes), -EBADMSG);
}

/* The usual one with one byte changed. */
static int with(size_t at, unsigned char byte)
{
	usual();
	finish();
	message[at] = byte;
	cut(16384);
	return parse(stream_bytes);
}

static void messages_that_are_refused(void **state)
{
	enum { VERSION = 4, SESSION = 6 + 32, CIPHERS = SESSION + 33, COMPRESSIONS = CIPHERS + 6 };

	(void)state;
	assert_true(with(VERSION, 3) > 0);
	assert_int_equal(with(0, 2), -EBADMSG);
	assert_int_equal(with(VERSION, 2), -EBADMSG);
	assert_int_equal(with(SESSION, 33), -EBADMSG);
	assert_int_equal(with(SESSION, 31), -EBADMSG);
	assert_int_equal(with(CIPHERS + 1, 0), -EBADMSG);
	assert_int_equal(with(CIPHERS + 1, 3), -EBADMSG);
	assert_int_equal(with(CIPHERS, 0xff), -EBADMSG);
	assert_int_equal(with(COMPRESSIONS, 0), -EBADMSG);
	assert_int_equal(with(COMPRESSIONS, 0xff), -EBADMSG);
	/* a length that is too short or too long for its record */
	assert_int_equal(with(3, (unsigned char)(message[3] - 1)), -EBADMSG);
	usual();
	finish();
	message[3]++;
	cut(16384);
	assert_int_equal(parse(stream_bytes), 0);
}

static void records_that_are_refused(void **state)
{
	(void)state;
	usual();
	finish();
	cut(16384);
	stream[0] = 23;
	for (size_t length = 1; length <= stream_bytes; length++)
		assert_int_equal(parse(length), -EBADMSG);
	cut(16384);
	stream[1] = 2;
	for (size_t length = 2; length <= stream_bytes; length++)
		assert_int_equal(parse(length), -EBADMSG);
	cut(16384);
	stream[3] = 0x40;
	stream[4] = 1;
	assert_int_equal(parse(5), -EBADMSG);
	stream[3] = stream[4] = 0;
	assert_int_equal(parse(5), -EBADMSG);
	/* something else between two records of it */
	cut(50);
	stream[55] = 21;
	assert_int_equal(parse(56), -EBADMSG);
	cut(1);
	assert_int_equal(parse(stream_bytes), -EBADMSG);
	/* SSL 2, HTTP */
	memcpy(stream, "\x80\x2e\1\0\2GET / ", 11);
	assert_int_equal(parse(11), -EBADMSG);
	memcpy(stream, "GET / ", 6);
	assert_int_equal(parse(1), -EBADMSG);
}

static void the_longest_message(void **state)
{
	static const unsigned char padding[HELLO_LIMIT_BYTES];
	size_t rest;

	(void)state;
	usual();
	rest = HELLO_LIMIT_BYTES - message_bytes - 4;
	/* the extensions' own length is of two bytes: two of them */
	extension(21, padding, rest);
	finish();
	cut(16384);
	assert_true(message_bytes == HELLO_LIMIT_BYTES);
	assert_true(stream_bytes <= HELLO_LIMIT_BUFFER_BYTES);
	assert_int_equal(parse(stream_bytes), stream_bytes);
	usual();
	finish();
	message[1] = 1;
	message[2] = 0;
	message[3] = 1;
	cut(16384);
	assert_int_equal(parse(9), -EBADMSG);
}

static void beginnings(void **state)
{
	(void)state;
	assert_int_equal(hello_begins((const unsigned char *)"", 0), 0);
	assert_int_equal(hello_begins((const unsigned char *)"\26", 1), 0);
	assert_int_equal(hello_begins((const unsigned char *)"\26\3\1\0\5", 5), 0);
	assert_int_equal(hello_begins((const unsigned char *)"\26\3\1\0\5\1", 6), 1);
	assert_int_equal(hello_begins((const unsigned char *)"\26\3\1\0\5\2", 6), -EBADMSG);
	assert_int_equal(hello_begins((const unsigned char *)"\26\2", 2), -EBADMSG);
	assert_int_equal(hello_begins((const unsigned char *)"S", 1), -EBADMSG);
}

static void alerts(void **state)
{
	unsigned char bytes[HELLO_ALERT_BYTES];

	(void)state;
	hello_write_alert(HELLO_ACCESS_DENIED, bytes);
	assert_memory_equal(bytes, "\25\3\3\0\2\2\61", 7);
	hello_write_alert(HELLO_CLOSE_NOTIFY, bytes);
	assert_memory_equal(bytes, "\25\3\3\0\2\1\0", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_found_in_any_pieces),
		cmocka_unit_test(what_else_is_said),
		cmocka_unit_test(names_that_are_refused),
		cmocka_unit_test(extensions_that_are_refused),
		cmocka_unit_test(messages_that_are_refused),
		cmocka_unit_test(records_that_are_refused),
		cmocka_unit_test(the_longest_message),
		cmocka_unit_test(beginnings),
		cmocka_unit_test(alerts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
