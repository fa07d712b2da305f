/*
 * One address for one name, for as long as the table lives, and nothing but names for addresses of
 * names.
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

#include "net/names.h"
#include "policy/place.h"

static struct names *table;

static int begin(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table));
	if (table)
		table->key = 0x5eed;
	return table ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(table);
	return 0;
}

static uint32_t give(const char *name)
{
	uint32_t index = UINT32_MAX;

	assert_int_equal(names_give(table, name, &index), 0);
	return index;
}

static struct address v4(uint32_t number)
{
	return (struct address){ ADDRESS_V4,
				 { (uint8_t)(number >> 24), (uint8_t)(number >> 16),
				   (uint8_t)(number >> 8), (uint8_t)number } };
}

static struct address v6(uint32_t number)
{
	struct address address = { ADDRESS_V6, PLACE_NAMES_V6_PREFIX };

	memcpy(address.bytes + 12, v4(number).bytes, 4);
	return address;
}

static enum names_place look(struct address address)
{
	const char *name = NULL;
	enum names_place place = names_look(table, &address, &name);

	assert_int_equal(place == NAMES_NAME, name != NULL);
	return place;
}

static void a_name_keeps_its_address(void **state)
{
	uint32_t one = give("a.example"), other = give("b.example");
	struct address address;
	const char *name = NULL;

	(void)state;
	assert_int_not_equal(one, other);
	assert_int_equal(give("a.example"), one);
	assert_int_equal(give("b.example"), other);
	for (int family = ADDRESS_V4; family <= ADDRESS_V6; family++) {
		names_address(other, (enum address_family)family, &address);
		assert_int_equal(address.family, family);
		assert_int_equal(names_look(table, &address, &name), NAMES_NAME);
		assert_string_equal(name, "b.example");
		names_address(one, (enum address_family)family, &address);
		assert_int_equal(names_look(table, &address, &name), NAMES_NAME);
		assert_string_equal(name, "a.example");
	}
}

static void the_first_addresses_are_those_of_the_box(void **state)
{
	static const uint8_t four[] = { 198, 18, 0, 1 };
	static const uint8_t six[] = { 0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 198, 18, 0, 1 };
	struct address address;

	(void)state;
	assert_int_equal(give("a"), 0);
	names_address(0, ADDRESS_V4, &address);
	assert_memory_equal(address.bytes, four, sizeof(four));
	names_address(0, ADDRESS_V6, &address);
	assert_memory_equal(address.bytes, six, sizeof(six));
}

static void other_addresses_are_no_names(void **state)
{
	static const uint8_t box[] = PLACE_BOX_V6;
	struct address address = { .family = ADDRESS_V6 };

	(void)state;
	(void)give("a");
	assert_int_equal(look(v4(PLACE_NAMES_V4_FIRST)), NAMES_NAME);
	assert_int_equal(look(v4(PLACE_NAMES_V4_FIRST + 1)), NAMES_FREE);
	assert_int_equal(look(v4(PLACE_NAMES_V4_FIRST - 1)), NAMES_FREE);
	assert_int_equal(look(v4(PLACE_NAMES_V4_LAST + 1)), NAMES_FREE);
	assert_int_equal(look(v4(PLACE_NAMES_V4 - 1)), NAMES_OUTSIDE);
	assert_int_equal(look(v4(PLACE_NAMES_V4_LAST + 2)), NAMES_OUTSIDE);
	assert_int_equal(look(v4(0x08080808)), NAMES_OUTSIDE);
	assert_int_equal(look(v4(PLACE_NAMESERVER_V4)), NAMES_SERVER);
	assert_int_equal(look(v4(PLACE_DOOR_V4)), NAMES_DOOR);
	assert_int_equal(look(v4(PLACE_BOX_V4)), NAMES_BOX);
	assert_int_equal(look(v6(PLACE_NAMES_V4_FIRST)), NAMES_NAME);
	assert_int_equal(look(v6(PLACE_NAMES_V4_FIRST + 1)), NAMES_FREE);
	assert_int_equal(look(v6(PLACE_DOOR_V4)), NAMES_FREE);
	assert_int_equal(look(v6(0x08080808)), NAMES_FREE);
	memcpy(address.bytes, box, sizeof(box));
	assert_int_equal(look(address), NAMES_BOX);
	address.bytes[0] = 0xfe;
	assert_int_equal(look(address), NAMES_OUTSIDE);
	/* the first bytes of one of version 6 are not looked at as one of version 4 */
	memcpy(address.bytes, v4(PLACE_NAMES_V4_FIRST).bytes, 4);
	assert_int_equal(look(address), NAMES_OUTSIDE);
}

static void a_full_table_gives_no_more(void **state)
{
	char name[HOST_NAME_BYTES];
	struct address address;
	const char *found = NULL;
	uint32_t index = 0;

	(void)state;
	for (uint32_t i = 0; i < NAMES_LIMIT; i++) {
		(void)snprintf(name, sizeof(name), "n%u.example", i);
		assert_int_equal(give(name), i);
	}
	assert_int_equal(names_give(table, "one-more.example", &index), -ENOSPC);
	for (uint32_t i = 0; i < NAMES_LIMIT; i++) {
		(void)snprintf(name, sizeof(name), "n%u.example", i);
		assert_int_equal(give(name), i);
		names_address(i, ADDRESS_V6, &address);
		assert_int_equal(names_look(table, &address, &found), NAMES_NAME);
		assert_string_equal(found, name);
	}
}

static void long_names_fill_the_table_earlier(void **state)
{
	char name[HOST_NAME_BYTES];
	uint32_t index = 0, given = 0;
	int result;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	do {
		char number[8];

		(void)snprintf(number, sizeof(number), "%06u", given);
		memcpy(name, number, 6);
		result = names_give(table, name, &index);
		given += result == 0;
	} while (result == 0);
	assert_int_equal(result, -ENOSPC);
	assert_int_equal(given, NAMES_LIMIT_BYTES / HOST_NAME_BYTES);
	assert_true(table->bytes <= NAMES_LIMIT_BYTES);
	/* a shorter one may still have room, and no text runs into another */
	memcpy(name, "000000", 6);
	assert_int_equal(give(name), 0);
}

/* However many names are asked for that no rule opens, there is room for those that one does. */
static void names_that_are_closed_have_a_share(void **state)
{
	char name[HOST_NAME_BYTES];
	uint32_t index = 0, first;

	(void)state;
	first = give("first.example");
	for (uint32_t i = 0; i < NAMES_LIMIT_CLOSED; i++) {
		(void)snprintf(name, sizeof(name), "c%u.example", i);
		assert_int_equal(names_give_closed(table, name, &index), 0);
	}
	assert_int_equal(names_give_closed(table, "one-more.example", &index), -ENOSPC);
	assert_int_equal(names_find(table, "one-more.example", &index), -ENOENT);
	assert_int_equal(names_give_closed(table, "c7.example", &index), 0);
	assert_int_equal(names_give_closed(table, "first.example", &index), 0);
	assert_int_equal(index, first);
	for (uint32_t i = 0; i < NAMES_LIMIT - NAMES_LIMIT_CLOSED - 1; i++) {
		(void)snprintf(name, sizeof(name), "o%u.example", i);
		(void)give(name);
	}
	assert_int_equal(names_give(table, "one-more.example", &index), -ENOSPC);
}

static void long_names_that_are_closed_have_a_share(void **state)
{
	char name[HOST_NAME_BYTES];
	uint32_t index = 0, given = 0;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	do {
		char number[8];

		(void)snprintf(number, sizeof(number), "%06u", given);
		memcpy(name, number, 6);
		given++;
	} while (names_give_closed(table, name, &index) == 0);
	assert_int_equal(given - 1, NAMES_LIMIT_CLOSED_BYTES / HOST_NAME_BYTES);
	assert_true(NAMES_LIMIT_BYTES - table->bytes >= NAMES_LIMIT_CLOSED_BYTES);
	(void)give("open.example");
}

static void what_is_too_long_is_no_name(void **state)
{
	char name[HOST_NAME_BYTES + 1];
	uint32_t index = 0;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(names_give(table, name, &index), -EINVAL);
	assert_int_equal(table->count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_keeps_its_address, begin, end),
		cmocka_unit_test_setup_teardown(the_first_addresses_are_those_of_the_box, begin,
						end),
		cmocka_unit_test_setup_teardown(other_addresses_are_no_names, begin, end),
		cmocka_unit_test_setup_teardown(a_full_table_gives_no_more, begin, end),
		cmocka_unit_test_setup_teardown(long_names_fill_the_table_earlier, begin, end),
		cmocka_unit_test_setup_teardown(names_that_are_closed_have_a_share, begin, end),
		cmocka_unit_test_setup_teardown(long_names_that_are_closed_have_a_share, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_too_long_is_no_name, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
