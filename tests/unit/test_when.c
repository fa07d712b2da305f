#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "trace/when.h"

#define SECOND UINT64_C(1000000000)
#define NOW (UINT64_C(1796040000) * SECOND) /* 2026-11-30T12:00:00Z */

static const struct {
	const char *text;
	uint64_t ns; /* 0: not a time */
} times[] = {
	{ "2026-11-30T12:00:00Z", NOW },
	{ "2026-11-30T12:00:00.000000001Z", NOW + 1 },
	{ "2026-11-30T12:00:00.5Z", NOW + SECOND / 2 },
	{ "2026-11-30t14:00:00+02:00", NOW },
	{ "2026-11-30 06:30:00-05:30", NOW },
	{ "2000-02-29T00:00:00Z", UINT64_C(951782400) * SECOND },
	{ "2024-12-31T23:59:59Z", UINT64_C(1735689599) * SECOND },
	{ "1970-01-01T00:00:01Z", SECOND },
	{ "2100-02-29T00:00:00Z", 0 },
	{ "2026-02-30T00:00:00Z", 0 },
	{ "2026-13-01T00:00:00Z", 0 },
	{ "2026-11-30T24:00:00Z", 0 },
	{ "2026-11-30T12:00:60Z", 0 },
	{ "2026-11-30T12:00:00.Z", 0 },
	{ "2026-11-30T12:00:00.0000000001Z", 0 },
	{ "2026-11-30T12:00:00", 0 },
	{ "2026-11-30T12:00:00Zx", 0 },
	{ "2026-11-30T12:00:00+24:00", 0 },
	{ "1970-01-01T00:00:00+01:00", 0 },
	{ "9999-01-01T00:00:00Z", 0 },
	{ "26-11-30T12:00:00Z", 0 },
	{ "", 0 },
};

static void times_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		uint64_t ns = 0;
		bool is_time = when_parse(times[i].text, strlen(times[i].text), &ns);

		if (is_time != (times[i].ns != 0) || ns != times[i].ns)
			fail_msg("%s gives %llu", times[i].text, (unsigned long long)ns);
	}
}

static void what_the_clock_prints_is_read_back(void **state)
{
	(void)state;
	for (uint64_t ns = 1; ns < INT64_MAX - INT64_MAX / 300; ns += INT64_MAX / 997) {
		char text[CLOCK_TEXT_BYTES], told[WHEN_TEXT_BYTES];
		uint64_t again = 0;

		clock_text(ns, text);
		assert_true(when_parse(text, strlen(text), &again));
		assert_int_equal(again, ns);
		when_tell(ns, told);
		assert_memory_equal(told, text, 10);
		assert_memory_equal(told + 11, text + 11, 8);
	}
}

static void people_say_how_long_ago(void **state)
{
	uint64_t ns = 0;

	(void)state;
	assert_int_equal(when_parse_said("2h", NOW, &ns), 0);
	assert_int_equal(ns, NOW - 7200 * SECOND);
	assert_int_equal(when_parse_said("2026-11-30", NOW, &ns), 0);
	assert_int_equal(ns, NOW - 12 * 3600 * SECOND);
	assert_int_equal(when_parse_said("2026-11-30T12:00:00Z", 0, &ns), 0);
	assert_int_equal(ns, NOW);
	assert_int_equal(when_parse_said("30000d", NOW, &ns), -ERANGE);
	assert_int_equal(when_parse_said("yesterday", NOW, &ns), -EINVAL);
	assert_int_equal(when_parse_said("2026-11-31", NOW, &ns), -EINVAL);
	assert_int_equal(when_parse_said("", NOW, &ns), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(what_the_clock_prints_is_read_back),
		cmocka_unit_test(people_say_how_long_ago),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
