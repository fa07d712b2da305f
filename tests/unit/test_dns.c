/*
 * DNS packets of both sides: exact, or refused; an answer is one to our question, and its addresses
 * are those of the name at the end of its aliases.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/dns.h"

/* header, "a.example" A IN */
#define QUESTION "\1a\7example\0\0\1\0\1"
#define HEADER(flags, qd, an, ns, ar) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar

static unsigned char packet[DNS_LIMIT_TCP_BYTES];
static size_t packet_bytes;
static struct dns_query query;
static struct dns_result result;
static unsigned char answer[DNS_LIMIT_ANSWER_BYTES];

static struct host host_of(const char *name)
{
	struct host host;
	const char *why;

	assert_int_equal(host_parse(name, strlen(name), &host, &why), 0);
	return host;
}

static int ask_bytes(const char *bytes, size_t length)
{
	static unsigned char *copy;

	/* the question lies in it afterwards */
	free(copy);
	copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	return dns_parse_query(copy, length, &query);
}

#define ASK(text) ask_bytes(text, sizeof(text) - 1)

static void a_question_is_read(void **state)
{
	(void)state;
	assert_int_equal(ASK(HEADER("\1\0", "\1", "\0", "\0", "\0") "\1A\7ExamplE\0\0\1\0\1"), 0);
	assert_int_equal(query.id, 0x1234);
	assert_int_equal(query.code, DNS_NOERROR);
	assert_int_equal(query.type, DNS_A);
	assert_true(query.recursion && query.has_host && !query.has_edns);
	assert_string_equal(query.host.name, "a.example");
	assert_int_equal(query.question_bytes, 15);
	/* EDNS with a cookie */
	assert_int_equal(ASK(HEADER("\0\0", "\1", "\0", "\0", "\1") QUESTION
			     "\0\0\51\20\0\0\0\0\0\0\4\0\12\0\0"),
			 0);
	assert_int_equal(query.code, DNS_NOERROR);
	assert_true(query.has_edns && !query.recursion);
}

static void names_that_are_none(void **state)
{
	static const struct {
		const char *name;
		size_t length;
	} names[] = {
		{ "\0", 1 },
		{ "\1*\0", 3 },
		{ "\3a b\0", 5 },
		{ "\2\xc3\xa9\0", 4 },
		{ "\3a\0b\0", 5 },
		{ "\3"
		  "127\1"
		  "0\1"
		  "0\1"
		  "1\0",
		  11 },
		{ "\3"
		  "0x7\0",
		  5 },
		{ "\2-a\0", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char bytes[64] = HEADER("\1\0", "\1", "\0", "\0", "\0");

		memcpy(bytes + 12, names[i].name, names[i].length);
		memcpy(bytes + 12 + names[i].length, "\0\1\0\1", 4);
		assert_int_equal(ask_bytes(bytes, 16 + names[i].length), 0);
		assert_int_equal(query.code, DNS_NOERROR);
		assert_false(query.has_host);
		assert_int_equal(query.question_bytes, names[i].length + 4);
	}
}

static void questions_that_are_refused(void **state)
{
	(void)state;
	/* nothing is sent */
	assert_int_equal(ASK(""), -EBADMSG);
	assert_int_equal(ASK("\x12\x34\1\0\0\1\0\0\0\0\0"), -EBADMSG);
	assert_int_equal(ASK(HEADER("\x81\0", "\1", "\0", "\0", "\0") QUESTION), -EBADMSG);
	/* FORMERR */
#define FORMERR(text)                                      \
	do {                                               \
		assert_int_equal(ASK(text), 0);            \
		assert_int_equal(query.code, DNS_FORMERR); \
		assert_false(query.has_host);              \
	} while (0)
	FORMERR(HEADER("\1\0", "\0", "\0", "\0", "\0"));
	FORMERR(HEADER("\1\0", "\2", "\0", "\0", "\0") QUESTION QUESTION);
	FORMERR(HEADER("\1\0", "\1", "\1", "\0", "\0") QUESTION);
	FORMERR(HEADER("\1\0", "\1", "\0", "\1", "\0") QUESTION);
	FORMERR(HEADER("\3\0", "\1", "\0", "\0", "\0") QUESTION);
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") QUESTION "x");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\1a\7example\0\0\1\0");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\1a\7examp");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\xc0\x0c\0\1\0\1");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\xc0\0\0\1\0\1");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\xff\xff\0\1\0\1");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\x41\1\0\0\1\0\1");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\0") "\3a.b\0\0\1\0\1");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\1") QUESTION);
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\1") QUESTION "\0\0\1\0\1\0\0\0\0\0\0");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\1") QUESTION "\0\0\51\20\0\0\1\0\0\0\0");
	FORMERR(HEADER("\1\0", "\1", "\0", "\0", "\1") QUESTION "\0\0\51\20\0\0\0\0\0\0\1");
	assert_int_equal(ASK(HEADER("\x29\0", "\1", "\0", "\0", "\0") QUESTION), 0);
	assert_int_equal(query.code, DNS_NOTIMP);
	assert_int_equal(ASK(HEADER("\1\0", "\1", "\0", "\0", "\0") "\1a\7example\0\0\1\0\3"), 0);
	assert_int_equal(query.code, DNS_REFUSED);
	assert_false(query.has_host);
}

static void the_longest_names(void **state)
{
	char bytes[1024] = HEADER("\1\0", "\1", "\0", "\0", "\0");
	size_t at;

	(void)state;
	/* 253 bytes of text: 3 labels of 63 and one of 61 */
	for (at = 12; at < 12 + 3 * 64; at += 64) {
		bytes[at] = 63;
		memset(bytes + at + 1, 'a', 63);
	}
	bytes[at] = 61;
	memset(bytes + at + 1, 'a', 61);
	memcpy(bytes + at + 62, "\0\0\1\0\1", 5);
	assert_int_equal(ask_bytes(bytes, at + 67), 0);
	assert_true(query.has_host);
	assert_int_equal(strlen(query.host.name), 253);
	bytes[at] = 62;
	memcpy(bytes + at + 62, "a\0\0\1\0\1", 6);
	assert_int_equal(ask_bytes(bytes, at + 68), 0);
	assert_int_equal(query.code, DNS_FORMERR);
	/* 255 labels */
	for (at = 12; at < 12 + 2 * 255; at += 2)
		memcpy(bytes + at, "\1a", 2);
	assert_int_equal(ask_bytes(bytes, sizeof(bytes)), 0);
	assert_int_equal(query.code, DNS_FORMERR);
}

static void answers_are_written(void **state)
{
	static const struct address both[] = {
		{ ADDRESS_V4, { 198, 18, 0, 1 } },
		{ ADDRESS_V6, { 0xfd, 0x77, [15] = 1 } },
	};
	size_t length;

	(void)state;
	assert_int_equal(ASK(HEADER("\1\0", "\1", "\0", "\0", "\0") QUESTION), 0);
	length = dns_write_answer(&query, DNS_NOERROR, both, 2, 60, answer);
	assert_int_equal(length, 12 + 15 + 16);
	assert_memory_equal(answer,
			    HEADER("\x81\x80", "\1", "\1", "\0", "\0") QUESTION
			    "\xc0\x0c\0\1\0\1\0\0\0\74\0\4\306\22\0\1",
			    length);
	/* the other type, with OPT */
	assert_int_equal(ASK(HEADER("\0\0", "\1", "\0", "\0", "\1") "\1a\7example\0\0\34\0\1"
								    "\0\0\51\20\0\0\0\0\0\0\0"),
			 0);
	length = dns_write_answer(&query, DNS_NOERROR, both, 2, 60, answer);
	assert_int_equal(length, 12 + 15 + 28 + 11);
	assert_memory_equal(answer, HEADER("\x80\x80", "\1", "\1", "\0", "\1"), 12);
	assert_memory_equal(answer + 12 + 15 + 12, both[1].bytes, 16);
	/* none left: NOERROR and the SOA */
	length = dns_write_answer(&query, DNS_NOERROR, both, 1, 60, answer);
	assert_memory_equal(answer, HEADER("\x80\x80", "\1", "\0", "\1", "\1"), 12);
	assert_true(length > 12 + 15 + 11);
	length = dns_write_answer(&query, DNS_NXDOMAIN, NULL, 0, 60, answer);
	assert_memory_equal(answer, HEADER("\x80\x83", "\1", "\0", "\1", "\1"), 12);
	assert_int_equal(length, 12 + 15 + 10 + 2 + 12 + 14 + 20 + 11);
	length = dns_write_answer(&query, DNS_REFUSED, both, 2, 60, answer);
	assert_memory_equal(answer, HEADER("\x80\x85", "\1", "\0", "\0", "\1"), 12);
	assert_int_equal(length, 12 + 15 + 11);
	/* of a question that could not be read, the header alone */
	assert_int_equal(ASK(HEADER("\1\0", "\0", "\0", "\0", "\0")), 0);
	length = dns_write_answer(&query, query.code, NULL, 0, 60, answer);
	assert_int_equal(length, 12);
	assert_memory_equal(answer, HEADER("\x81\x81", "\0", "\0", "\0", "\0"), 12);
}

static void what_is_written_is_read(void **state)
{
	static const struct address address = { ADDRESS_V6, { 0x20, 1, [15] = 7 } };
	const struct host host = host_of("a-b_c.example");
	unsigned char question[DNS_LIMIT_QUERY_BYTES];
	size_t length = dns_write_query(0xabcd, &host, DNS_AAAA, question);

	(void)state;
	assert_true(length > 0);
	assert_int_equal(ask_bytes((const char *)question, length), 0);
	assert_int_equal(query.code, DNS_NOERROR);
	assert_int_equal(query.id, 0xabcd);
	assert_int_equal(query.type, DNS_AAAA);
	assert_true(query.recursion && query.has_edns && host_equal(&query.host, &host));
	length = dns_write_answer(&query, DNS_NOERROR, &address, 1, 60, answer);
	assert_int_equal(dns_parse_answer(answer, length, 0xabcd, &host, DNS_AAAA, &result), 0);
	assert_int_equal(result.address_count, 1);
	assert_true(address_equal(&result.addresses[0], &address));
	length = dns_write_answer(&query, DNS_NXDOMAIN, NULL, 0, 60, answer);
	assert_int_equal(dns_parse_answer(answer, length, 0xabcd, &host, DNS_AAAA, &result), 0);
	assert_int_equal(result.code, DNS_NXDOMAIN);
}

static void put(const void *bytes, size_t length)
{
	assert_true(packet_bytes + length <= sizeof(packet));
	memcpy(packet + packet_bytes, bytes, length);
	packet_bytes += length;
}

#define PUT(text) put(text, sizeof(text) - 1)
#define OWNER "\xc0\x0c" /* the question's name */
#define A(address) "\0\1\0\1\0\0\0\74\0\4" address
#define CNAME(bytes) "\0\5\0\1\0\0\0\74\0" bytes

static void begin(unsigned answers, unsigned others)
{
	packet_bytes = 0;
	PUT("\x12\x34\x81\x80\0\1");
	put((const unsigned char[]){ 0, (unsigned char)answers, 0, (unsigned char)others, 0, 0 },
	    6);
	PUT(QUESTION);
}

static int parse(void)
{
	const struct host host = host_of("a.example");
	unsigned char *copy = malloc(packet_bytes);
	int code;

	assert_non_null(copy);
	memcpy(copy, packet, packet_bytes);
	code = dns_parse_answer(copy, packet_bytes, 0x1234, &host, DNS_A, &result);
	free(copy);
	return code;
}

static void addresses_are_the_names_own(void **state)
{
	(void)state;
	begin(4, 1);
	PUT(OWNER A("\1\2\3\4"));
	PUT(OWNER A("\1\2\3\5"));
	PUT(OWNER A("\1\2\3\4")); /* twice */
	PUT("\1b"
	    "\xc0\x0e" A("\7\7\7\7")); /* b.example */
	PUT(OWNER A("\1\2\3\6"));      /* not in the answer section */
	assert_int_equal(parse(), 0);
	assert_int_equal(result.address_count, 2);
	assert_int_equal(result.addresses[1].bytes[3], 5);
	/* another class, another type */
	begin(2, 0);
	PUT(OWNER "\0\1\0\3\0\0\0\74\0\4\1\2\3\4");
	PUT(OWNER "\0\20\0\1\0\0\0\74\0\2\1x");
	assert_int_equal(parse(), 0);
	assert_int_equal(result.address_count, 0);
}

static void aliases_are_followed(void **state)
{
	(void)state;
	/* in any order: a -> b -> c, whose address it is */
	begin(4, 0);
	PUT("\1c"
	    "\xc0\x0e" A("\1\2\3\4"));
	PUT("\1b"
	    "\xc0\x0e" CNAME("\4\1c\xc0\x0e"));
	PUT("\1d"
	    "\xc0\x0e" A("\7\7\7\7"));
	PUT(OWNER CNAME("\4\1b\xc0\x0e"));
	assert_int_equal(parse(), 0);
	assert_int_equal(result.address_count, 1);
	assert_int_equal(result.alias_count, 2);
	assert_int_equal(result.addresses[0].bytes[3], 4);
	/* one that leads nowhere has no address; the server did not follow it */
	begin(1, 0);
	PUT(OWNER CNAME("\4\1b\xc0\x0e"));
	assert_int_equal(parse(), 0);
	assert_int_equal(result.address_count, 0);
}

static void aliases_that_are_refused(void **state)
{
	(void)state;
	/* a loop */
	begin(2, 0);
	PUT(OWNER CNAME("\4\1b\xc0\x0e"));
	PUT("\1b"
	    "\xc0\x0e" CNAME("\2\xc0\x0c"));
	assert_int_equal(parse(), -EBADMSG);
	/* two, and one beside an address */
	begin(2, 0);
	PUT(OWNER CNAME("\4\1b\xc0\x0e"));
	PUT(OWNER CNAME("\4\1c\xc0\x0e"));
	assert_int_equal(parse(), -EBADMSG);
	begin(2, 0);
	PUT(OWNER CNAME("\4\1b\xc0\x0e"));
	PUT(OWNER A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	/* to what is no name, and longer than its record */
	begin(1, 0);
	PUT(OWNER CNAME("\5\3a\0b\0"));
	assert_int_equal(parse(), -EBADMSG);
	begin(1, 0);
	PUT(OWNER CNAME("\5\1b\xc0\x0e\0"));
	assert_int_equal(parse(), -EBADMSG);
	/* more than is followed: n0 -> n1 -> ... */
	begin(DNS_LIMIT_ALIASES + 1, 0);
	PUT(OWNER CNAME("\2\1"
			"0"));
	packet[packet_bytes - 3] = 3;
	PUT("\0");
	for (unsigned i = 0; i < DNS_LIMIT_ALIASES; i++) {
		put((const unsigned char[]){ 1, (unsigned char)('0' + i), 0 }, 3);
		PUT(CNAME("\3\1"));
		put((const unsigned char[]){ (unsigned char)('1' + i), 0 }, 2);
	}
	assert_int_equal(parse(), -EBADMSG);
}

static void answers_that_are_not_ours(void **state)
{
	static const struct {
		size_t at;
		unsigned char byte;
	} changes[] = {
		{ 0, 0x13 }, /* id */
		{ 2, 0x01 }, /* a question */
		{ 2, 0x91 }, /* opcode */
		{ 5, 2 },    /* two questions */
		{ 13, 'b' }, /* name */
		{ 24, 28 },  /* type */
		{ 26, 3 },   /* class */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		begin(1, 0);
		PUT(OWNER A("\1\2\3\4"));
		assert_int_equal(parse(), 0);
		packet[changes[i].at] = changes[i].byte;
		if (parse() != -ENOMSG)
			fail_msg("taken with byte %zu changed", changes[i].at);
	}
	begin(1, 0);
	packet_bytes = 11;
	assert_int_equal(parse(), -ENOMSG);
}

static void answers_that_are_malformed(void **state)
{
	(void)state;
	begin(1, 0);
	PUT(OWNER A("\1\2\3\4"));
	while (--packet_bytes > 27)
		assert_int_equal(parse(), -EBADMSG);
	/* behind the last record */
	begin(0, 0);
	PUT("x");
	assert_int_equal(parse(), -EBADMSG);
	begin(0, 0);
	PUT(OWNER A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	/* an address of another length */
	begin(1, 0);
	PUT(OWNER "\0\1\0\1\0\0\0\74\0\5\1\2\3\4\5");
	assert_int_equal(parse(), -EBADMSG);
	/* names that lead to themselves, forward, in a ring, behind the packet */
	begin(1, 0);
	PUT("\xc0\x1b" A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	begin(1, 0);
	PUT("\xc0\x20" A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	begin(1, 0);
	PUT("\1x\xc0\x1b" A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	begin(1, 0);
	PUT("\xff\xff" A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
	begin(DNS_LIMIT_RECORDS + 1, 0);
	for (unsigned i = 0; i <= DNS_LIMIT_RECORDS; i++)
		PUT(OWNER A("\1\2\3\4"));
	assert_int_equal(parse(), -EBADMSG);
}

static void pointers_are_counted(void **state)
{
	(void)state;
	/* a text record with a ladder of pointers, then a name that climbs it */
	for (unsigned count = DNS_LIMIT_POINTERS - 1; count <= DNS_LIMIT_POINTERS; count++) {
		size_t at;

		begin(2, 0);
		PUT(OWNER "\0\20\0\1\0\0\0\74\0");
		put((const unsigned char[]){ (unsigned char)(2 * count) }, 1);
		at = packet_bytes;
		PUT("\xc0\x0c");
		for (unsigned i = 1; i < count; i++) {
			put((const unsigned char[]){ 0xc0, (unsigned char)at }, 2);
			at += 2;
		}
		put((const unsigned char[]){ 0xc0, (unsigned char)at }, 2);
		PUT(A("\1\2\3\4"));
		assert_int_equal(parse(), count < DNS_LIMIT_POINTERS ? 0 : -EBADMSG);
		assert_int_equal(result.address_count, count < DNS_LIMIT_POINTERS);
	}
}

static void too_many_addresses(void **state)
{
	(void)state;
	begin(EGRESS_LIMIT_ADDRESSES + 1, 0);
	for (unsigned i = 0; i <= EGRESS_LIMIT_ADDRESSES; i++) {
		PUT(OWNER A("\1\2\3"));
		put((const unsigned char[]){ (unsigned char)i }, 1);
		if (i + 1 == EGRESS_LIMIT_ADDRESSES) {
			packet[7] = (unsigned char)(i + 1);
			assert_int_equal(parse(), 0);
			assert_false(result.too_many);
			assert_int_equal(result.address_count, i + 1);
			packet[7]++;
		}
	}
	assert_int_equal(parse(), 0);
	assert_true(result.too_many);
}

static void cut_answers_say_so(void **state)
{
	(void)state;
	begin(1, 0);
	packet[2] |= 2;
	assert_int_equal(parse(), 0);
	assert_true(result.truncated);
	assert_int_equal(result.address_count, 0);
}

static void frames(void **state)
{
	(void)state;
	assert_int_equal(dns_frame((const unsigned char *)"", 0), 0);
	assert_int_equal(dns_frame((const unsigned char *)"\0", 1), 0);
	assert_int_equal(dns_frame((const unsigned char *)"\0\2a", 3), 0);
	assert_int_equal(dns_frame((const unsigned char *)"\0\2ab", 4), 4);
	assert_int_equal(dns_frame((const unsigned char *)"\0\2abc", 5), 4);
	assert_int_equal(dns_frame((const unsigned char *)"\0\0", 2), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(questions_that_are_refused),
		cmocka_unit_test(the_longest_names),
		cmocka_unit_test(answers_are_written),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(addresses_are_the_names_own),
		cmocka_unit_test(aliases_are_followed),
		cmocka_unit_test(aliases_that_are_refused),
		cmocka_unit_test(answers_that_are_not_ours),
		cmocka_unit_test(answers_that_are_malformed),
		cmocka_unit_test(pointers_are_counted),
		cmocka_unit_test(too_many_addresses),
		cmocka_unit_test(cut_answers_say_so),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
