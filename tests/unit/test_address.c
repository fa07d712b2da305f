#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/address.h"

static struct address parsed(const char *text)
{
	struct address address;

	if (address_parse(text, strlen(text), &address) < 0)
		fail_msg("%s is no address", text);
	return address;
}

/* What inet_pton() says of every text, we say too. */
static void like_inet_pton(void **state)
{
	static const char *const texts[] = {
		"0.0.0.0",
		"1.2.3.4",
		"255.255.255.255",
		"256.1.1.1",
		"1.2.3",
		"1.2.3.4.5",
		"1.2.3.",
		".1.2.3",
		"1..2.3",
		"01.2.3.4",
		"0177.0.0.1",
		"0x7f.1",
		"0x0a000001",
		"127.1",
		"2130706433",
		"1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.+4",
		"1.2.3.4\n",
		"",
		"::",
		"::1",
		"1::",
		":1",
		"1:",
		":",
		":::",
		"::1::",
		"1::2::3",
		"1:2:3:4:5:6:7:8",
		"1:2:3:4:5:6:7::",
		"::2:3:4:5:6:7:8",
		"1:2:3:4:5:6:7:8::",
		"1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9",
		"12345::",
		"g::",
		"fe80::1%lo",
		"::1%25lo",
		"[::1]",
		"::ffff:1.2.3.4",
		"::1.2.3.4",
		"1:2:3:4:5:6:1.2.3.4",
		"1:2:3:4:5:6:7:1.2.3.4",
		"::1.2.3.4:1",
		"1.2.3.4::",
		"::1.2.3",
		"::1.2.3.400",
		"::01.2.3.4",
		"::abc.1.1.1",
		"64:ff9b::7f00:1",
		"0:0:0:0:0:0:0:1",
		"FE80::A9FE:A9FE",
		"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
		"0000:0000:0000:0000:0000:0000:0000:0001",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		unsigned char bytes[16] = { 0 };
		struct address address;
		int family = inet_pton(AF_INET, texts[i], bytes) == 1  ? ADDRESS_V4 :
			     inet_pton(AF_INET6, texts[i], bytes) == 1 ? ADDRESS_V6 :
									 ADDRESS_NONE;
		int r = address_parse(texts[i], strlen(texts[i]), &address);

		if ((r == 0) != (family != ADDRESS_NONE))
			fail_msg("%s: %d", texts[i], r);
		if (r < 0) {
			assert_int_equal(r, -EINVAL);
			continue;
		}
		assert_int_equal(address.family, family);
		assert_memory_equal(address.bytes, bytes, sizeof(bytes));
	}
}

static void no_text_goes_on(void **state)
{
	char nul[] = "1.2.3.4\0evil";
	struct address address;

	(void)state;
	assert_int_equal(address_parse(nul, sizeof(nul) - 1, &address), -EINVAL);
	assert_int_equal(address_parse("1.2.3.45", 7, &address), 0);
	assert_int_equal(address.bytes[3], 4);
	assert_int_equal(address_parse("::1", 0, &address), -EINVAL);
}

static void printed(void **state)
{
	static const char *const rows[][2] = {
		{ "1.2.3.4", "1.2.3.4" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "1::", "1::" },
		{ "2001:DB8::A", "2001:db8::a" },
		{ "2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "1:0:0:2:0:0:0:3", "1:0:0:2::3" },
		{ "1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7" },
		{ "0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7" },
		{ "1:2:3:4:5:6:0:0", "1:2:3:4:5:6::" },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.1" },
		{ "::ffff:0:0", "::ffff:0.0.0.0" },
		{ "::10.0.0.1", "::a00:1" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address address = parsed(rows[i][0]), again;
		char text[ADDRESS_TEXT_BYTES];

		address_print(&address, text);
		assert_string_equal(text, rows[i][1]);
		again = parsed(text);
		assert_true(address_equal(&address, &again));
	}
}

static void within(void **state)
{
	static const struct {
		const char *address, *prefix;
		unsigned bits;
		bool is;
	} rows[] = {
		{ "10.1.2.3", "10.0.0.0", 8, true },
		{ "11.1.2.3", "10.0.0.0", 8, false },
		{ "10.1.2.3", "0.0.0.0", 0, true },
		{ "172.31.255.255", "172.16.0.0", 12, true },
		{ "172.32.0.0", "172.16.0.0", 12, false },
		{ "10.0.0.1", "10.0.0.1", 32, true },
		{ "10.0.0.2", "10.0.0.1", 32, false },
		{ "10.0.0.1", "10.0.0.1", 33, false },
		{ "::1", "0.0.0.0", 0, false },
		{ "1.2.3.4", "::", 0, false },
		{ "fdff::1", "fc00::", 7, true },
		{ "fe00::1", "fc00::", 7, false },
		{ "::1", "::1", 128, true },
		{ "::2", "::1", 128, false },
		{ "::2", "::1", 126, true },
		{ "::1", "::1", 129, false },
	};
	struct address none = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address address = parsed(rows[i].address), prefix = parsed(rows[i].prefix);

		if (address_within(&address, &prefix, rows[i].bits) != rows[i].is)
			fail_msg("row %zu", i);
	}
	assert_false(address_within(&none, &none, 0));
}

static void embedded(void **state)
{
	static const char *const rows[][2] = {
		{ "::ffff:10.0.0.1", "10.0.0.1" },
		{ "::127.0.0.1", "127.0.0.1" },
		{ "::ffff:0:10.0.0.1", "10.0.0.1" },
		{ "64:ff9b::7f00:1", "127.0.0.1" },
		{ "64:ff9b:1:7f00:0:100::", "127.0.0.1" },
		{ "2002:7f00:1::", "127.0.0.1" },
		{ "2002:a9fe:a9fe::1", "169.254.169.254" },
		{ "2001:0:1234::80ff:fffe", "127.0.0.1" },
		{ "2a00:1::5efe:a00:1", "10.0.0.1" },
		{ "2a00:1::200:5efe:a00:1", "10.0.0.1" },
		{ "::", NULL },
		{ "::1", NULL },
		{ "2a00:1::1", NULL },
		{ "10.0.0.1", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address address = parsed(rows[i][0]), inside, wanted;

		if (address_embedded(&address, &inside) != (rows[i][1] != NULL))
			fail_msg("%s", rows[i][0]);
		if (!rows[i][1])
			continue;
		wanted = parsed(rows[i][1]);
		if (!address_equal(&inside, &wanted))
			fail_msg("%s", rows[i][0]);
	}
}

/* Both ends of each range, and their neighbours outside of it. */
static void classes(void **state)
{
	static const struct {
		const char *text;
		enum address_kind kind;
	} rows[] = {
		{ "0.0.0.0", ADDRESS_LOOPBACK },
		{ "0.255.255.255", ADDRESS_LOOPBACK },
		{ "1.0.0.0", ADDRESS_PUBLIC },
		{ "9.255.255.255", ADDRESS_PUBLIC },
		{ "10.0.0.0", ADDRESS_PRIVATE },
		{ "10.255.255.255", ADDRESS_PRIVATE },
		{ "11.0.0.0", ADDRESS_PUBLIC },
		{ "100.63.255.255", ADDRESS_PUBLIC },
		{ "100.64.0.0", ADDRESS_PRIVATE },
		{ "100.127.255.255", ADDRESS_PRIVATE },
		{ "100.128.0.0", ADDRESS_PUBLIC },
		{ "100.100.100.200", ADDRESS_METADATA },
		{ "126.255.255.255", ADDRESS_PUBLIC },
		{ "127.0.0.0", ADDRESS_LOOPBACK },
		{ "127.255.255.255", ADDRESS_LOOPBACK },
		{ "128.0.0.0", ADDRESS_PUBLIC },
		{ "169.253.255.255", ADDRESS_PUBLIC },
		{ "169.254.0.0", ADDRESS_RESERVED },
		{ "169.254.169.254", ADDRESS_METADATA },
		{ "169.254.170.2", ADDRESS_METADATA },
		{ "169.254.255.255", ADDRESS_RESERVED },
		{ "169.255.0.0", ADDRESS_PUBLIC },
		{ "168.63.129.16", ADDRESS_METADATA },
		{ "172.15.255.255", ADDRESS_PUBLIC },
		{ "172.16.0.0", ADDRESS_PRIVATE },
		{ "172.31.255.255", ADDRESS_PRIVATE },
		{ "172.32.0.0", ADDRESS_PUBLIC },
		{ "192.0.0.0", ADDRESS_RESERVED },
		{ "192.0.0.192", ADDRESS_METADATA },
		{ "192.0.1.0", ADDRESS_PUBLIC },
		{ "192.0.2.255", ADDRESS_RESERVED },
		{ "192.31.196.1", ADDRESS_PUBLIC },
		{ "192.88.99.1", ADDRESS_RESERVED },
		{ "192.167.255.255", ADDRESS_PUBLIC },
		{ "192.168.0.0", ADDRESS_PRIVATE },
		{ "192.168.255.255", ADDRESS_PRIVATE },
		{ "192.169.0.0", ADDRESS_PUBLIC },
		{ "198.17.255.255", ADDRESS_PUBLIC },
		{ "198.18.0.0", ADDRESS_RESERVED },
		{ "198.19.255.255", ADDRESS_RESERVED },
		{ "198.20.0.0", ADDRESS_PUBLIC },
		{ "198.51.100.7", ADDRESS_RESERVED },
		{ "203.0.113.7", ADDRESS_RESERVED },
		{ "223.255.255.255", ADDRESS_PUBLIC },
		{ "224.0.0.0", ADDRESS_RESERVED },
		{ "239.255.255.255", ADDRESS_RESERVED },
		{ "240.0.0.0", ADDRESS_RESERVED },
		{ "255.255.255.255", ADDRESS_RESERVED },
		{ "8.8.8.8", ADDRESS_PUBLIC },
		{ "::", ADDRESS_LOOPBACK },
		{ "::1", ADDRESS_LOOPBACK },
		{ "::2", ADDRESS_LOOPBACK }, /* 0.0.0.2 inside */
		{ "::8.8.8.8", ADDRESS_RESERVED },
		{ "::127.0.0.1", ADDRESS_LOOPBACK },
		{ "::ffff:127.0.0.1", ADDRESS_LOOPBACK },
		{ "::ffff:8.8.8.8", ADDRESS_RESERVED },
		{ "::ffff:0:8.8.8.8", ADDRESS_RESERVED },
		{ "64:ff9b::808:808", ADDRESS_PUBLIC },
		{ "64:ff9b::7f00:1", ADDRESS_LOOPBACK },
		{ "64:ff9b::a9fe:a9fe", ADDRESS_METADATA },
		{ "64:ff9b:1:808:8:800::", ADDRESS_RESERVED },
		{ "64:ff9b:2::808:808", ADDRESS_RESERVED },
		{ "100::1", ADDRESS_RESERVED },
		{ "1fff:ffff::", ADDRESS_RESERVED },
		{ "2000::", ADDRESS_PUBLIC },
		{ "2001::1", ADDRESS_RESERVED },
		{ "2001:1::1", ADDRESS_PUBLIC },
		{ "2001:1::4", ADDRESS_RESERVED },
		{ "2001:2::1", ADDRESS_RESERVED },
		{ "2001:3::1", ADDRESS_PUBLIC },
		{ "2001:4:112::1", ADDRESS_PUBLIC },
		{ "2001:10::1", ADDRESS_RESERVED },
		{ "2001:20::1", ADDRESS_PUBLIC },
		{ "2001:3f::1", ADDRESS_PUBLIC },
		{ "2001:1ff:ffff::", ADDRESS_RESERVED },
		{ "2001:200::", ADDRESS_PUBLIC },
		{ "2001:db8::1", ADDRESS_RESERVED },
		{ "2001:db9::1", ADDRESS_PUBLIC },
		{ "2002:808:808::1", ADDRESS_PUBLIC },
		{ "2002:a00:1::1", ADDRESS_PRIVATE },
		{ "2606:4700::1111", ADDRESS_PUBLIC },
		{ "2a00:1::5efe:a9fe:a9fe", ADDRESS_METADATA },
		{ "3fff:fff::1", ADDRESS_RESERVED },
		{ "3fff:1000::1", ADDRESS_PUBLIC },
		{ "4000::", ADDRESS_RESERVED },
		{ "5f00::1", ADDRESS_RESERVED },
		{ "fc00::", ADDRESS_PRIVATE },
		{ "fdff:ffff::1", ADDRESS_PRIVATE },
		{ "fd00:ec2::254", ADDRESS_METADATA },
		{ "fd00:c1::a9fe:a9fe", ADDRESS_METADATA },
		{ "fd00:a9fe:a9fe::1", ADDRESS_METADATA },
		{ "fd20:ce::254", ADDRESS_METADATA },
		{ "fe00::1", ADDRESS_RESERVED },
		{ "fe80::1", ADDRESS_RESERVED },
		{ "fe80::a9fe:a9fe", ADDRESS_RESERVED },
		{ "fec0::1", ADDRESS_RESERVED },
		{ "ff02::1", ADDRESS_RESERVED },
	};
	struct address none = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address address = parsed(rows[i].text);
		struct address_class class;
		bool is_public = rows[i].kind == ADDRESS_PUBLIC;

		address_classify(&address, &class);
		if (class.kind != rows[i].kind)
			fail_msg("%s is %d: %s", rows[i].text, class.kind, class.text);
		assert_int_equal(address_special(&address) == NULL, is_public);
		assert_int_equal(class.text[0] == '\0', is_public);
	}
	assert_non_null(address_special(&none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_inet_pton), cmocka_unit_test(no_text_goes_on),
		cmocka_unit_test(printed),	  cmocka_unit_test(within),
		cmocka_unit_test(embedded),	  cmocka_unit_test(classes),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
