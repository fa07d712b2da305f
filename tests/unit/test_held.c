/* A limit as it is held: one row, one form, whoever prints it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/held.h"
#include "policy/view.h"

/* Control groups for all that can have one, and what every host has. */
static const struct limit_facts rich = {
	.cgroup = { [LIMIT_MEMORY] = 2, [LIMIT_PIDS] = 2, [LIMIT_CPUS] = 2, [LIMIT_CPU_TIME] = 2 },
	.rlimit_processes = true,
	.sized_areas = true,
	.watchdog_grain_ns = LIMIT_SECOND,
	.workspace_grain_ns = 2 * LIMIT_SECOND,
};
static const struct limit_facts poor = { 0 };

static void fill(const struct limit_facts *facts, const char *option, const char *value,
		 struct held rows[LIMIT_COUNT])
{
	struct error error = ERROR_NONE;
	struct limits limits;

	limits_init(facts, &limits);
	if (option)
		assert_int_equal(limits_take(&limits, option, value, &error), 0);
	limits_settle(&limits);
	held_fill(&limits, facts, rows);
}

static void assert_printed(const struct held *row, const char *text)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };

	held_print(row, &buffer);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, text);
}

static void rows_follow_the_table(void **state)
{
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&rich, NULL, NULL, rows);
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		assert_int_equal(rows[limit].limit, limit);
		assert_int_equal(rows[limit].value, limit_text(limit)->value);
		assert_false(rows[limit].asked);
	}
}

static void a_group_holds_only_what_was_asked_for(void **state)
{
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&rich, NULL, NULL, rows);
	assert_printed(&rows[LIMIT_MEMORY],
		       "memory: 2G, polled (1s; watchdog over the task's processes)");
	assert_printed(&rows[LIMIT_PIDS],
		       "processes: 1024, exact (RLIMIT_NPROC of the box's user namespace)");
	fill(&rich, "--memory", "512M", rows);
	assert_true(rows[LIMIT_MEMORY].asked);
	assert_printed(&rows[LIMIT_MEMORY], "memory: 512M, exact (cgroup v2 memory.max)");
	/* and no other limit profits */
	assert_printed(&rows[LIMIT_PIDS],
		       "processes: 1024, exact (RLIMIT_NPROC of the box's user namespace)");
	fill(&rich, "--cpu-time", "90s", rows);
	assert_printed(&rows[LIMIT_CPU_TIME], "cpu time: 90s, polled (1s; cgroup v2 cpu.stat)");
}

static void none_has_no_mechanism(void **state)
{
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&rich, NULL, NULL, rows);
	assert_printed(&rows[LIMIT_IO], "io rate: none");
	assert_printed(&rows[LIMIT_CPUS], "cpu share: none");
}

/* Where nobody can ask for it, the row says why. */
static void none_without_an_option_says_why(void **state)
{
	struct view_path gpu = { .class = PATH_DEVICE, .source = "/dev/kfd", .target = "/dev/kfd" };
	const struct view bare = { 0 }, with = { &gpu, 1 };
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&rich, NULL, NULL, rows);
	assert_printed(
		&rows[LIMIT_GPU],
		"gpu share: none, absent (Linux has no controller for a GPU's time; cgroup v2 "
		"dmem bounds device memory alone)");
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		assert_true(held_concerns(limit, &with));
		assert_int_equal(held_concerns(limit, &bare), limit != LIMIT_GPU);
	}
}

static void what_nothing_holds_is_absent(void **state)
{
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&poor, NULL, NULL, rows);
	assert_int_equal(rows[LIMIT_MEMORY].means.grade, ENFORCEMENT_ABSENT);
	assert_int_equal(rows[LIMIT_DISK].means.grade, ENFORCEMENT_ABSENT);
	assert_printed(&rows[LIMIT_DISK],
		       "disk: 10G, absent (nothing looks at what is added to the workspace)");
}

static void assert_json(const struct held *row, const char *text)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	json_begin(&json, &buffer);
	held_json(row, NULL, &json);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, text);
}

static void json_has_the_same_words(void **state)
{
	struct held rows[LIMIT_COUNT];

	(void)state;
	fill(&rich, "--disk", "100M", rows);
	assert_json(&rows[LIMIT_DISK],
		    "{\"limit\":\"disk\",\"value\":104857600,"
		    "\"text\":\"disk: 100M, polled (2s; bytes added to the workspace)\","
		    "\"enforcement\":\"polled\",\"grain_ms\":2000,"
		    "\"mechanism\":\"bytes added to the workspace\"}");
	assert_json(&rows[LIMIT_IO], "{\"limit\":\"io rate\",\"value\":null,"
				     "\"text\":\"io rate: none\",\"enforcement\":\"absent\","
				     "\"grain_ms\":0,\"mechanism\":null}");
	assert_json(
		&rows[LIMIT_GPU],
		"{\"limit\":\"gpu share\",\"value\":null,"
		"\"text\":\"gpu share: none, absent (Linux has no controller for a GPU's time; "
		"cgroup v2 dmem bounds device memory alone)\","
		"\"enforcement\":\"absent\",\"grain_ms\":0,"
		"\"mechanism\":\"Linux has no controller for a GPU's time; cgroup v2 dmem bounds "
		"device memory alone\"}");
	assert_json(&rows[LIMIT_CORE],
		    "{\"limit\":\"core dumps\",\"value\":0,"
		    "\"text\":\"core dumps: 0, exact (RLIMIT_CORE of each process)\","
		    "\"enforcement\":\"exact\",\"grain_ms\":0,"
		    "\"mechanism\":\"RLIMIT_CORE of each process\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_table),
		cmocka_unit_test(a_group_holds_only_what_was_asked_for),
		cmocka_unit_test(none_has_no_mechanism),
		cmocka_unit_test(none_without_an_option_says_why),
		cmocka_unit_test(what_nothing_holds_is_absent),
		cmocka_unit_test(json_has_the_same_words),
	};

	return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
