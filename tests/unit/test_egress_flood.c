/* What a flood of a task's connections does to its record and result: what counts stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "broker/egress_flood.h"
#include "trace/network.h"

#define SECOND_NS (1000u * 1000 * 1000)

static unsigned taken(struct egress_flood *flood, enum egress_told told, uint64_t now_ns)
{
	unsigned count = 0;

	while (count < 10000 && egress_flood_room(flood, told, now_ns))
		count++;
	return count;
}

static void refusals_take_no_room_of_others(void **state)
{
	struct egress_flood flood;

	(void)state;
	egress_flood_begin(&flood, 7);
	assert_int_equal(taken(&flood, EGRESS_TOLD_REFUSED, 7), 500);
	assert_int_equal(taken(&flood, EGRESS_TOLD_REFUSED, 7), 0);
	assert_int_equal(taken(&flood, EGRESS_TOLD_ALLOWED, 7), 500);
	assert_int_equal(taken(&flood, EGRESS_TOLD_DIALED, 7), 500);
	assert_int_equal(taken(&flood, EGRESS_TOLD_ASKED, 7), 50);
}

static void room_comes_again(void **state)
{
	struct egress_flood flood;
	uint64_t now_ns = 7;
	unsigned count = 0;

	(void)state;
	egress_flood_begin(&flood, now_ns);
	(void)taken(&flood, EGRESS_TOLD_ALLOWED, now_ns);
	/* looked at more often than a place comes again: its parts are not lost */
	for (unsigned i = 0; i < 3000; i++)
		count += egress_flood_room(&flood, EGRESS_TOLD_ALLOWED, now_ns += SECOND_NS / 3000);
	assert_in_range(count, 99, 100);
	assert_int_equal(taken(&flood, EGRESS_TOLD_ALLOWED, now_ns + 100ull * SECOND_NS), 500);
}

static struct egress_row row_of(unsigned number)
{
	struct egress_row row = { .told = EGRESS_TOLD_ALLOWED, .port = 443, .rule = 1, .count = 1 };

	(void)snprintf(row.host, sizeof(row.host), "n%u.example", number);
	return row;
}

static void alike_is_added_up(void **state)
{
	struct egress_flood flood;
	struct egress_row row = row_of(1);

	(void)state;
	egress_flood_begin(&flood, 0);
	row.bytes_up = 10;
	row.longest_ns = 5;
	assert_true(egress_flood_add(&flood, &row));
	row.bytes_up = 7;
	row.longest_ns = 3;
	row.count = 4;
	assert_true(egress_flood_add(&flood, &row));
	assert_int_equal(flood.row_count, 1);
	assert_int_equal(flood.rows[0].count, 5);
	assert_int_equal(flood.rows[0].bytes_up, 17);
	assert_int_equal(flood.rows[0].longest_ns, 5);
	row.rule = 2;
	assert_true(egress_flood_add(&flood, &row));
	row.outcome = 3;
	assert_true(egress_flood_add(&flood, &row));
	row.address.bytes[0] = 1;
	assert_true(egress_flood_add(&flood, &row));
	row.job = 2;
	assert_true(egress_flood_add(&flood, &row));
	(void)snprintf(row.reason, sizeof(row.reason), "a connection was reset");
	assert_true(egress_flood_add(&flood, &row));
	assert_int_equal(flood.row_count, 6);
	assert_string_equal(flood.rows[5].reason, "a connection was reset");
	egress_flood_end(&flood);
}

static void rows_have_an_end(void **state)
{
	struct egress_flood flood;
	struct egress_row row;

	(void)state;
	egress_flood_begin(&flood, 0);
	for (unsigned i = 0; i < EGRESS_FLOOD_ROWS; i++) {
		row = row_of(i);
		assert_true(egress_flood_add(&flood, &row));
	}
	row = row_of(EGRESS_FLOOD_ROWS);
	assert_false(egress_flood_add(&flood, &row));
	row = row_of(3);
	assert_true(egress_flood_add(&flood, &row));
	egress_flood_end(&flood);
}

static struct network_target *target(struct network_list *list, unsigned number,
				     const char *verdict)
{
	const struct rule_ref rule = { .id = "r" };
	char host[32];

	(void)snprintf(host, sizeof(host), "n%u.example", number);
	return network_find(list, host, 443, verdict, &rule);
}

static void refusals_take_no_row_of_the_result(void **state)
{
	static struct network_list list;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		(void)target(&list, i, "deny");
	for (unsigned i = 0; i < NETWORK_LIMIT - NETWORK_LIMIT_REFUSED; i++)
		assert_non_null(target(&list, i, "allow"));
	assert_null(target(&list, 5000, "allow"));
	assert_non_null(target(&list, 3, "deny"));
	assert_int_equal(list.dropped, 1000 - NETWORK_LIMIT_REFUSED + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_take_no_room_of_others),
		cmocka_unit_test(room_comes_again),
		cmocka_unit_test(alike_is_added_up),
		cmocka_unit_test(rows_have_an_end),
		cmocka_unit_test(refusals_take_no_row_of_the_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
