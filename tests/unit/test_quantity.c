#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/quantity.h"

#define MARK UINT64_C(0xfeedfacecafebeef)

typedef int parser(const char *text, uint64_t *ret_value);

struct row {
	parser *parse;
	const char *text;
	int result;
	uint64_t value;
};

static const struct row rows[] = {
	{ quantity_duration, "250ms", 0, 250000000 },
	{ quantity_duration, "1ms", 0, 1000000 },
	{ quantity_duration, "30s", 0, UINT64_C(30000000000) },
	{ quantity_duration, "5m", 0, UINT64_C(300000000000) },
	{ quantity_duration, "2h", 0, UINT64_C(7200000000000) },
	{ quantity_duration, "1d", 0, UINT64_C(86400000000000) },
	{ quantity_duration, "9223372036s", 0, UINT64_C(9223372036000000000) },
	{ quantity_duration, "9223372036854ms", 0, UINT64_C(9223372036854000000) },
	{ quantity_duration, "9223372036855ms", -ERANGE, 0 },
	{ quantity_duration, "9223372037s", -ERANGE, 0 },
	{ quantity_duration, "106751d", 0, UINT64_C(9223286400000000000) },
	{ quantity_duration, "106752d", -ERANGE, 0 },
	{ quantity_duration, "18446744073709551616s", -ERANGE, 0 },
	{ quantity_duration, "99999999999999999999999999999999999999d", -ERANGE, 0 },
	{ quantity_duration, "0s", -EINVAL, 0 },
	{ quantity_duration, "0", -EINVAL, 0 },
	{ quantity_duration, "00s", -EINVAL, 0 },
	{ quantity_duration, "010s", -EINVAL, 0 },
	{ quantity_duration, "5", -EINVAL, 0 },
	{ quantity_duration, "", -EINVAL, 0 },
	{ quantity_duration, "s", -EINVAL, 0 },
	{ quantity_duration, "-1s", -EINVAL, 0 },
	{ quantity_duration, "+1s", -EINVAL, 0 },
	{ quantity_duration, " 1s", -EINVAL, 0 },
	{ quantity_duration, "1s ", -EINVAL, 0 },
	{ quantity_duration, "1 s", -EINVAL, 0 },
	{ quantity_duration, "1s\n", -EINVAL, 0 },
	{ quantity_duration, "1S", -EINVAL, 0 },
	{ quantity_duration, "1M", -EINVAL, 0 },
	{ quantity_duration, "1mss", -EINVAL, 0 },
	{ quantity_duration, "1h30m", -EINVAL, 0 },
	{ quantity_duration, "1.5s", -EINVAL, 0 },
	{ quantity_duration, "1e3s", -EINVAL, 0 },
	{ quantity_duration, "0x10s", -EINVAL, 0 },
	{ quantity_duration, "1us", -EINVAL, 0 },
	{ quantity_duration, "1\xc2\xb5s", -EINVAL, 0 },
	{ quantity_duration, "\xd9\xa1s", -EINVAL, 0 },		    /* ARABIC-INDIC DIGIT ONE */
	{ quantity_duration, "99999999999999999999x", -EINVAL, 0 }, /* the form comes first */
	{ quantity_count, "0", 0, 0 },
	{ quantity_count, "17", 0, 17 },
	{ quantity_count, "18446744073709551615", 0, UINT64_MAX },
	{ quantity_count, "18446744073709551616", -ERANGE, 0 },
	{ quantity_count, "18446744073709551620", -ERANGE, 0 },
	{ quantity_count, "36893488147419103232", -ERANGE, 0 },
	{ quantity_count, "340282366920938463463374607431768211456", -ERANGE, 0 },
	{ quantity_count, "", -EINVAL, 0 },
	{ quantity_count, "00", -EINVAL, 0 },
	{ quantity_count, "017", -EINVAL, 0 },
	{ quantity_count, "-0", -EINVAL, 0 },
	{ quantity_count, "-1", -EINVAL, 0 },
	{ quantity_count, "1K", -EINVAL, 0 },
	{ quantity_count, "1 ", -EINVAL, 0 },
	{ quantity_count, "0x1", -EINVAL, 0 },
	{ quantity_count, "\x1b[1m1", -EINVAL, 0 },
	{ quantity_size, "0", 0, 0 },
	{ quantity_size, "512", 0, 512 },
	{ quantity_size, "64K", 0, 65536 },
	{ quantity_size, "10M", 0, 10485760 },
	{ quantity_size, "2G", 0, UINT64_C(2147483648) },
	{ quantity_size, "1T", 0, UINT64_C(1099511627776) },
	{ quantity_size, "16777215T", 0, UINT64_C(16777215) << 40 },
	{ quantity_size, "16777216T", -ERANGE, 0 },
	{ quantity_size, "18014398509481983K", 0, UINT64_C(18014398509481983) << 10 },
	{ quantity_size, "18014398509481984K", -ERANGE, 0 },
	{ quantity_size, "18446744073709551615", 0, UINT64_MAX },
	{ quantity_size, "18446744073709551616", -ERANGE, 0 },
	{ quantity_size, "1k", -EINVAL, 0 },
	{ quantity_size, "1KB", -EINVAL, 0 },
	{ quantity_size, "1KiB", -EINVAL, 0 },
	{ quantity_size, "1P", -EINVAL, 0 },
	{ quantity_size, "01K", -EINVAL, 0 },
	{ quantity_size, "K", -EINVAL, 0 },
	{ quantity_size, "-1K", -EINVAL, 0 },
};

static void table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = MARK;
		int r = rows[i].parse(rows[i].text, &value);

		/* out-parameters are untouched on failure */
		if (r != rows[i].result || value != (r ? MARK : rows[i].value))
			fail_msg("'%s': result %d, value %llu", rows[i].text, r,
				 (unsigned long long)value);
	}
}

/* A megabyte of digits is judged in one pass and without overflow. */
static void very_long(void **state)
{
	size_t length = 1 << 20;
	char *text = malloc(length + 2);
	uint64_t value = MARK;

	(void)state;
	assert_non_null(text);
	memset(text, '9', length);
	memcpy(text + length, "K", 2);
	assert_int_equal(quantity_size(text, &value), -ERANGE);
	assert_int_equal(quantity_count(text, &value), -EINVAL);
	assert_int_equal(value, MARK);
	free(text);
}

static void durations_are_told(void **state)
{
	static const struct {
		uint64_t ns;
		const char *with_tenths, *without;
	} told[] = {
		{ 0, "0.0s", "0s" },
		{ 999, "0.0s", "0s" },
		{ 99999, "0.0s", "0s" },
		{ 100000, "0.1ms", "0s" },
		{ 3450000, "3.4ms", "0s" },
		{ 270999999, "270ms", "0s" },
		{ 999999999, "999ms", "0s" },
		{ 1000000000, "1.0s", "1s" },
		{ UINT64_C(8160000000), "8.1s", "8s" },
		{ UINT64_C(12900000000), "12s", "12s" },
		{ UINT64_C(200000000000), "3m20s", "3m20s" },
		{ UINT64_C(7500000000000), "2h05m", "2h05m" },
		{ UINT64_C(352800000000000), "4d02h", "4d02h" },
	};
	char text[QUANTITY_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		quantity_tell_duration(text, told[i].ns, true);
		assert_string_equal(text, told[i].with_tenths);
		quantity_tell_duration(text, told[i].ns, false);
		assert_string_equal(text, told[i].without);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(durations_are_told),
		cmocka_unit_test(very_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
