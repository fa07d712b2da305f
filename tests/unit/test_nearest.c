#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/nearest.h"

static void test_nearest_words(void **state)
{
	static const char *const words[] = { "filesystem", "network", "limits", "tty", "exec" };
	static const struct {
		const char *word, *nearest;
	} rows[] = {
		{ "filesysem", "filesystem" },
		{ "Filesystem", "filesystem" },
		{ "netwrk", "network" },
		{ "networks", "network" },
		{ "limit", "limits" },
		{ "tyt", "tty" },
		{ "exce", "exec" },
		{ "toString", NULL },
		{ "file", "filesystem" },
		{ "fi", NULL },
		{ "", NULL },
		{ "x", NULL },
		{ "zzzzzzzzzz", NULL },
		{ "aVeryLongWordThatIsLongerThanAnyKeyThatThereIs", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *found = nearest_word(rows[i].word, words, 5);

		if (rows[i].nearest) {
			assert_non_null(found);
			assert_string_equal(found, rows[i].nearest);
		} else {
			assert_null(found);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest_words),
	};

	return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
