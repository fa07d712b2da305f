/* The door of SOCKS5: CONNECT to a name or an address; every other wish is refused in its words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/socks.h"

static struct socks_request request;
static struct socks_reply reply;

static int greet(const char *bytes, size_t length)
{
	unsigned char *copy = malloc(length ? length : 1);
	const char *why = NULL;
	int result;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	result = socks_parse_greeting(copy, length, &reply, &why);
	free(copy);
	assert_int_equal(result < 0, why != NULL);
	return result;
}

static int ask(const char *bytes, size_t length)
{
	unsigned char *copy = malloc(length ? length : 1);
	const char *why = NULL;
	int result;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	result = socks_parse_request(copy, length, &request, &reply, &why);
	free(copy);
	assert_int_equal(result < 0, why != NULL);
	assert_int_equal(result<0, reply.length> 0);
	return result;
}

#define ASK(text) ask(text, sizeof(text) - 1)
#define GREET(text) greet(text, sizeof(text) - 1)

static void greetings(void **state)
{
	(void)state;
	assert_int_equal(GREET(""), 0);
	assert_int_equal(GREET("\5"), 0);
	assert_int_equal(GREET("\5\2\0"), 0);
	assert_int_equal(reply.length, 0);
	assert_int_equal(GREET("\5\1\0more"), 3);
	assert_int_equal(reply.length, 2);
	assert_memory_equal(reply.bytes, "\5\0", 2);
	assert_int_equal(GREET("\5\3\2\1\0"), 5);
	assert_int_equal(GREET("\5\1\2"), -EBADMSG);
	assert_memory_equal(reply.bytes, "\5\xff", 2);
	assert_int_equal(GREET("\5\0"), -EBADMSG);
	assert_memory_equal(reply.bytes, "\5\xff", 2);
	assert_int_equal(GREET("\4\1"), -EBADMSG);
	assert_int_equal(reply.length, 8);
	assert_memory_equal(reply.bytes, "\0\x5b", 2);
	assert_int_equal(GREET("\6"), -EBADMSG);
	assert_int_equal(reply.length, 0);
}

static void requests(void **state)
{
	static const char name[] = "\5\1\0\3\11A.Example\1\273rest";

	(void)state;
	for (size_t length = 0; length < sizeof(name) - 5; length++)
		assert_int_equal(ask(name, length), 0);
	assert_int_equal(ASK(name), sizeof(name) - 5);
	assert_int_equal(request.host.kind, HOST_NAME);
	assert_string_equal(request.host.name, "a.example");
	assert_int_equal(request.port, 443);
	assert_int_equal(ASK("\5\1\0\1\12\0\0\1\0\120"), 10);
	assert_int_equal(request.host.kind, HOST_ADDRESS);
	assert_string_equal(request.host.name, "10.0.0.1");
	assert_int_equal(request.port, 80);
	assert_int_equal(ASK("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120"), 22);
	assert_string_equal(request.host.name, "::1");
	/* an address as a name is one: it is judged as an address */
	assert_int_equal(ASK("\5\1\0\3\11"
			     "127.0.0.1\0\120"),
			 16);
	assert_int_equal(request.host.kind, HOST_ADDRESS);
}

static void expect_refused(const char *bytes, size_t length, int code)
{
	assert_int_equal(ask(bytes, length), -EBADMSG);
	assert_int_equal(reply.length, 10);
	assert_int_equal(reply.bytes[0], 5);
	assert_int_equal(reply.bytes[1], code);
	assert_int_equal(reply.bytes[3], 1);
}

#define REFUSED(text, code) expect_refused(text, sizeof(text) - 1, code)

static void what_is_refused(void **state)
{
	(void)state;
	REFUSED("\5\2", SOCKS_NOT_SUPPORTED);		      /* BIND */
	REFUSED("\5\3\0\1\0\0\0\0\0\0", SOCKS_NOT_SUPPORTED); /* UDP ASSOCIATE */
	REFUSED("\5\0", SOCKS_NOT_SUPPORTED);
	REFUSED("\4\1\0\1", SOCKS_FAILED);
	REFUSED("\5\1\1\1", SOCKS_NO_ADDRESS);
	REFUSED("\5\1\0\2", SOCKS_NO_ADDRESS);
	REFUSED("\5\1\0\1\12\0\0\1\0\0", SOCKS_NOT_ALLOWED); /* port 0 */
	REFUSED("\5\1\0\3\0\0\120", SOCKS_NOT_ALLOWED);
	/* a NUL: what stands before it is another name to other readers */
	REFUSED("\5\1\0\3\32attacker.example\0a.example\0\120", SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\12a\r\nexample\0\120", SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\11a example\0\120", SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\11a@example\0\120", SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\11\xc3\xa9.exampl\0\120", SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\12"
		"2130706433\0\120",
		SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\5"
		"127.1\0\120",
		SOCKS_NOT_ALLOWED);
	REFUSED("\5\1\0\3\12"
		"0x7f000001\0\120",
		SOCKS_NOT_ALLOWED);
}

static void the_longest_name(void **state)
{
	unsigned char bytes[SOCKS_LIMIT_BYTES] = { 5, 1, 0, 3, 255 };

	(void)state;
	memset(bytes + 5, 'a', 255);
	bytes[261] = 80;
	assert_int_equal(ask((const char *)bytes, sizeof(bytes)), -EBADMSG);
	for (int i = 63; i < 255; i += 64)
		bytes[5 + i] = '.';
	bytes[4] = 253;
	bytes[5 + 253] = 0;
	bytes[5 + 254] = 80;
	assert_int_equal(ask((const char *)bytes, 260), 260);
	assert_int_equal(strlen(request.host.name), 253);
}

static void answers(void **state)
{
	(void)state;
	socks_answer(SOCKS_HOST_UNREACHABLE, &reply);
	assert_int_equal(reply.length, 10);
	assert_memory_equal(reply.bytes, "\5\4\0\1\0\0\0\0\0\0", 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings),	   cmocka_unit_test(requests),
		cmocka_unit_test(what_is_refused), cmocka_unit_test(the_longest_name),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
