#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/host.h"

static void accepted(void **state)
{
	static const struct {
		const char *text, *name;
		enum host_kind kind;
	} rows[] = {
		{ "example.com", "example.com", HOST_NAME },
		{ "EXAMPLE.Com.", "example.com", HOST_NAME },
		{ "a", "a", HOST_NAME },
		{ "_dmarc.example.com", "_dmarc.example.com", HOST_NAME },
		{ "r3---sn-x.example", "r3---sn-x.example", HOST_NAME },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", HOST_NAME },
		{ "1.example", "1.example", HOST_NAME },
		{ "1e3", "1e3", HOST_NAME },
		{ "0x7fg", "0x7fg", HOST_NAME },
		{ "0x7f.example", "0x7f.example", HOST_NAME },
		{ "localhost.", "localhost", HOST_NAME },
		{ "169.254.169.254.nip.io", "169.254.169.254.nip.io", HOST_NAME },
		{ "10.0.0.1", "10.0.0.1", HOST_ADDRESS },
		{ "::1", "::1", HOST_ADDRESS },
		{ "[::1]", "::1", HOST_ADDRESS },
		{ "[0:0:0:0:0:0:0:1]", "::1", HOST_ADDRESS },
		{ "[2001:DB8::1]", "2001:db8::1", HOST_ADDRESS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = "";
		struct host host;

		if (host_parse(rows[i].text, strlen(rows[i].text), &host, &why) < 0)
			fail_msg("%s %s", rows[i].text, why);
		assert_string_equal(host.name, rows[i].name);
		assert_int_equal(host.kind, rows[i].kind);
	}
}

#define TEN "aaaaaaaaaa"
#define LABEL TEN TEN TEN TEN TEN TEN "aaa"

/* egress.tsv: NUL, CR LF, userinfo, backslash, numbers of every base, zones; HH03 of hostile.tsv */
static void refused(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} rows[] = {
#define ROW(text) { text, sizeof(text) - 1 }
		ROW(""),
		ROW("."),
		ROW(".."),
		ROW(".example.com"),
		ROW("example..com"),
		ROW("example.com.."),
		ROW("attacker.example\0.google.com"),
		ROW("google.com\0"),
		ROW("google.com\r\nHost: evil.example"),
		ROW("google.com\n"),
		ROW("google.com "),
		ROW(" google.com"),
		ROW("goo gle.com"),
		ROW("google.com\t"),
		ROW("google.com@evil.example"),
		ROW("evil.example\\@google.com"),
		ROW("evil.example\\.google.com"),
		ROW("google.com/"),
		ROW("google.com#x"),
		ROW("google.com?x"),
		ROW("google.com%00.evil.example"),
		ROW("google%2ecom"),
		ROW("*.google.com"),
		ROW("b\xc3\xbc"
		    "cher.example"),
		ROW("google\xe3\x80\x82"
		    "com"),
		ROW("\xff.example"),
		ROW("a\x7f.example"),
		ROW("-a.example"),
		ROW("a-.example"),
		ROW("-"),
		ROW(LABEL "a.example"),
		ROW(LABEL "." LABEL "." LABEL "." LABEL),
		ROW("0x0a000001"),
		ROW("0x"),
		ROW("0X7F"),
		ROW("0x7f.0x1"),
		ROW("0177.0.0.1"),
		ROW("127.1"),
		ROW("127.0.0.1."),
		ROW("0"),
		ROW("2130706433"),
		ROW("example.1"),
		ROW("1.2.3.4.5"),
		ROW("256.1.1.1"),
		ROW("[10.0.0.1]"),
		ROW("[example.com]"),
		ROW("[::1%25lo]"),
		ROW("[::1%lo]"),
		ROW("fe80::1%lo"),
		ROW("[::1"),
		ROW("::1]"),
		ROW("[]"),
		ROW("["),
		ROW("[[::1]]"),
		ROW("::g"),
		ROW("example.com:443"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = NULL;
		struct host host;

		if (host_parse(rows[i].text, rows[i].length, &host, &why) == 0)
			fail_msg("row %zu: %s", i, rows[i].text);
		assert_non_null(why);
	}
}

static void at_the_limit(void **state)
{
	char text[] = LABEL "." LABEL "." LABEL "." TEN TEN TEN TEN TEN TEN "a.";
	const char *why;
	struct host host;

	(void)state;
	assert_int_equal(strlen(text), 254);
	assert_int_equal(host_parse(text, 254, &host, &why), 0);
	assert_int_equal(strlen(host.name), 253);
	text[253] = 'a';
	assert_int_equal(host_parse(text, 254, &host, &why), -EINVAL);
}

static void ports(void **state)
{
	static const struct {
		const char *text;
		uint16_t fallback;
		const char *host; /* NULL: refused */
		uint16_t port;
	} rows[] = {
		{ "example.com:443", 0, "example.com", 443 },
		{ "example.com", 80, "example.com", 80 },
		{ "example.com", 0, NULL, 0 },
		{ "example.com:65535", 80, "example.com", 65535 },
		{ "example.com:1", 0, "example.com", 1 },
		{ "example.com:0", 80, NULL, 0 },
		{ "example.com:65536", 80, NULL, 0 },
		{ "example.com:", 80, NULL, 0 },
		{ "example.com:0443", 80, NULL, 0 },
		{ "example.com:+443", 80, NULL, 0 },
		{ "example.com: 443", 80, NULL, 0 },
		{ "example.com:443 ", 80, NULL, 0 },
		{ "example.com:443:443", 80, NULL, 0 },
		{ "example.com:https", 80, NULL, 0 },
		{ "example.com:4294967739", 80, NULL, 0 },
		{ ":443", 80, NULL, 0 },
		{ "", 80, NULL, 0 },
		{ "10.0.0.1:22", 0, "10.0.0.1", 22 },
		{ "[::1]:22", 0, "::1", 22 },
		{ "[::1]", 22, "::1", 22 },
		{ "::1", 22, NULL, 0 },
		{ "::1:22", 0, NULL, 0 },
		{ "[::1]22", 80, NULL, 0 },
		{ "[::1", 80, NULL, 0 },
		{ "[::1]:", 80, NULL, 0 },
		{ "google.com:443@evil.example:443", 80, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = NULL;
		struct host host;
		uint16_t port;
		int r = host_parse_port(rows[i].text, strlen(rows[i].text), rows[i].fallback, &host,
					&port, &why);

		if ((r == 0) != (rows[i].host != NULL))
			fail_msg("%s: %s", rows[i].text, r < 0 ? why : "accepted");
		if (r < 0) {
			assert_non_null(why);
			continue;
		}
		assert_string_equal(host.name, rows[i].host);
		assert_int_equal(port, rows[i].port);
	}
}

static void specials(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} rows[] = {
		{ "localhost", true },
		{ "LOCALHOST.", true },
		{ "a.localhost", true },
		{ "notlocalhost", false },
		{ "localhost.example.com", false },
		{ "metadata.google.internal", true },
		{ "x.metadata.google.internal", true },
		{ "anything.internal", true },
		{ "kubernetes.default.svc", true },
		{ "kubernetes.default.svc.cluster.local", true },
		{ "host.docker.internal", true },
		{ "printer.local", true },
		{ "example.com", false },
		{ "internal.example.com", false },
		{ "10.0.0.1", true },
		{ "8.8.8.8", false },
		{ "[::1]", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why;
		struct host host;

		assert_int_equal(host_parse(rows[i].text, strlen(rows[i].text), &host, &why), 0);
		if ((host_special(&host) != NULL) != rows[i].is)
			fail_msg("%s", rows[i].text);
	}
}

static void equal(void **state)
{
	const char *why;
	struct host a, b, c;

	(void)state;
	assert_int_equal(host_parse("Example.com.", 12, &a, &why), 0);
	assert_int_equal(host_parse("example.com", 11, &b, &why), 0);
	assert_int_equal(host_parse("[::1]", 5, &c, &why), 0);
	assert_true(host_equal(&a, &b));
	assert_false(host_equal(&a, &c));
	host_of_address(&c.address, &a);
	assert_true(host_equal(&a, &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted),	cmocka_unit_test(refused),
		cmocka_unit_test(at_the_limit), cmocka_unit_test(ports),
		cmocka_unit_test(specials),	cmocka_unit_test(equal),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
