#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

#define LONGEST 200

/* Each length ends where its memory ends, so that a look behind it is seen by sanitizers. */
static void finds_the_first(void **state)
{
	(void)state;
	for (size_t length = 0; length < 70; length++) {
		char *bytes = malloc(length + !length);

		memset(bytes, 'x', length);
		assert_int_equal(bytes_find(bytes, length, '\n'), length);
		for (size_t at = length; at-- > 0;) {
			bytes[at] = '\n';
			assert_int_equal(bytes_find(bytes, length, '\n'), at);
		}
		if (length)
			bytes[0] = '\xff';
		assert_int_equal(bytes_find(bytes, length, '\xff'), 0);
		free(bytes);
	}
}

static void copies_each_length(void **state)
{
	char from[LONGEST];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i + 1);
	for (size_t length = 0; length <= LONGEST; length++) {
		char to[LONGEST + 2] = { 0 };

		bytes_copy(to + 1, from, length);
		assert_memory_equal(to + 1, from, length);
		assert_int_equal(to[0], 0);
		assert_int_equal(to[length + 1], 0);
	}
}

static void same_to_the_last_byte(void **state)
{
	char one[LONGEST], other[LONGEST];

	(void)state;
	memset(one, 'a', sizeof(one));
	memset(other, 'a', sizeof(other));
	for (size_t length = 0; length < LONGEST; length++) {
		/* what is behind does not count */
		other[length] = 'b';
		assert_true(bytes_same(one, other, length));
		assert_false(bytes_same(one, other, length + 1));
		other[length] = 'a';
	}
}

static void masks_are_in_the_order_of_bytes(void **state)
{
	char text[16] = "a\x80"
			"c\x1f"
			"e\x20g\x7f"
			"ijklmnop";

	(void)state;
	assert_int_equal(bytes16_mask(bytes16_load(text) == 'a'), 1);
	assert_int_equal(bytes16_mask(bytes16_load(text) == 'p'), 0x8000);
	/* signed: what is not ASCII is below all controls */
	assert_int_equal(bytes16_mask(bytes16_load(text) < 0x20), 2 | 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_first),
		cmocka_unit_test(copies_each_length),
		cmocka_unit_test(same_to_the_last_byte),
		cmocka_unit_test(masks_are_in_the_order_of_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
