#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/error.h"
#include "policy/limit.h"

#define MARK UINT64_C(0xfeedfacecafebeef)

/* A host with everything, and one with nothing but the kernel. */
static const struct limit_facts rich = {
	.cgroup = { [LIMIT_MEMORY] = 2,
		    [LIMIT_PIDS] = 2,
		    [LIMIT_CPUS] = 2,
		    [LIMIT_CPU_TIME] = 2,
		    [LIMIT_IO] = 2 },
	.rlimit_processes = true,
	.sized_areas = true,
	.watchdog_grain_ns = 500 * LIMIT_MS,
	.workspace_grain_ns = 2 * LIMIT_SECOND,
	.memory_bytes = 4 * LIMIT_GIB,
	.files = 1048576,
};
static const struct limit_facts poor = { .memory_bytes = 4 * LIMIT_GIB };

struct row {
	enum limit limit;
	const char *text;
	int result;
	uint64_t value;
};

static const struct row rows[] = {
	{ LIMIT_WALL_CLOCK, "500ms", 0, 500 * LIMIT_MS },
	{ LIMIT_CPU_TIME, "10m", 0, 600 * LIMIT_SECOND },
	{ LIMIT_CPU_TIME, "10", -EINVAL, 0 },
	{ LIMIT_CPU_TIME, "0s", -EINVAL, 0 },
	{ LIMIT_CPU_TIME, "10M", -EINVAL, 0 },
	{ LIMIT_CPU_TIME, "-1s", -EINVAL, 0 },
	{ LIMIT_CPU_TIME, "106752d", -ERANGE, 0 },
	{ LIMIT_GRACE, "1h", 0, 3600 * LIMIT_SECOND },
	{ LIMIT_GRACE, "3601s", -ERANGE, 0 },

	{ LIMIT_CPUS, "1", 0, 1000 },
	{ LIMIT_CPUS, "1.5", 0, 1500 },
	{ LIMIT_CPUS, "0.25", 0, 250 },
	{ LIMIT_CPUS, "0.125", 0, 125 },
	{ LIMIT_CPUS, "0.01", 0, 10 },
	{ LIMIT_CPUS, "4096", 0, 4096000 },
	{ LIMIT_CPUS, "4096.001", -ERANGE, 0 },
	{ LIMIT_CPUS, "0.001", -ERANGE, 0 },
	{ LIMIT_CPUS, "0", -ERANGE, 0 },
	{ LIMIT_CPUS, "0.0", -ERANGE, 0 },
	{ LIMIT_CPUS, "18446744073709551615", -ERANGE, 0 },
	{ LIMIT_CPUS, "18446744073709552", -ERANGE, 0 },
	{ LIMIT_CPUS, "99999999999999999999999999999999999999999", -ERANGE, 0 },
	{ LIMIT_CPUS, "0.1234", -EINVAL, 0 },
	{ LIMIT_CPUS, "", -EINVAL, 0 },
	{ LIMIT_CPUS, ".5", -EINVAL, 0 },
	{ LIMIT_CPUS, "1.", -EINVAL, 0 },
	{ LIMIT_CPUS, "1,5", -EINVAL, 0 },
	{ LIMIT_CPUS, "1.5.1", -EINVAL, 0 },
	{ LIMIT_CPUS, "01.5", -EINVAL, 0 },
	{ LIMIT_CPUS, "-1", -EINVAL, 0 },
	{ LIMIT_CPUS, "1.5 ", -EINVAL, 0 },
	{ LIMIT_CPUS, "150%", -EINVAL, 0 },

	{ LIMIT_PIDS, "64", 0, 64 },
	{ LIMIT_PIDS, "8", 0, 8 },
	{ LIMIT_PIDS, "4194304", 0, 4194304 },
	{ LIMIT_PIDS, "4194305", -ERANGE, 0 },
	{ LIMIT_PIDS, "7", -ERANGE, 0 },
	{ LIMIT_PIDS, "0", -ERANGE, 0 },
	{ LIMIT_PIDS, "64K", -EINVAL, 0 },
	{ LIMIT_PIDS, "1.5", -EINVAL, 0 },
	{ LIMIT_FILES, "1048577", -ERANGE, 0 },

	{ LIMIT_MEMORY, "512M", 0, 512 * LIMIT_MIB },
	{ LIMIT_MEMORY, "16777216", 0, 16 * LIMIT_MIB },
	{ LIMIT_MEMORY, "16777215", -ERANGE, 0 },
	{ LIMIT_MEMORY, "0", -ERANGE, 0 },
	{ LIMIT_MEMORY, "9223372036854775807", 0, INT64_MAX },
	{ LIMIT_MEMORY, "9223372036854775808", -ERANGE, 0 },
	{ LIMIT_MEMORY, "18446744073709551615", -ERANGE, 0 },
	{ LIMIT_MEMORY, "16777216T", -ERANGE, 0 },
	{ LIMIT_MEMORY, "512MB", -EINVAL, 0 },
	{ LIMIT_MEMORY, "512m", -EINVAL, 0 },
	{ LIMIT_MEMORY, "none", -EINVAL, 0 },
	{ LIMIT_OUTPUT, "1", 0, 1 },

	{ LIMIT_IO, "50M/s", 0, 50 * LIMIT_MIB },
	{ LIMIT_IO, "65536/s", 0, 65536 },
	{ LIMIT_IO, "1K/s", -ERANGE, 0 },
	{ LIMIT_IO, "0/s", -ERANGE, 0 },
	{ LIMIT_IO, "50M", -EINVAL, 0 },
	{ LIMIT_IO, "/s", -EINVAL, 0 },
	{ LIMIT_IO, "50M/m", -EINVAL, 0 },
	{ LIMIT_IO, "50M/s/s", -EINVAL, 0 },
	{ LIMIT_IO, "99999999999999999999999999999999999999999/s", -ERANGE, 0 },
};

static void values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct error error = ERROR_NONE;
		uint64_t value = MARK;
		int result = limit_parse(row->limit, row->text, &value, &error);

		if (result != row->result || value != (result ? MARK : row->value))
			fail_msg("%s %s: %d %llu (%s)", limit_text(row->limit)->word, row->text,
				 result, (unsigned long long)value, error.message);
		if (result == 0)
			continue;
		assert_int_equal(error.code, result);
		assert_non_null(strstr(error.message, limit_text(row->limit)->option));
		if (strlen(row->text) < 40)
			assert_non_null(strstr(error.message, row->text));
	}
}

static void messages_name_option_value_and_form(void **state)
{
	struct limits limits;
	struct error error = ERROR_NONE;

	(void)state;
	limits_init(&rich, &limits);
	assert_int_equal(limits_take(&limits, "--memory", "12X", &error), -EINVAL);
	assert_string_equal(error.message, "option --memory 12X: not a size; bytes, or a number "
					   "with K, M, G or T, as in 512M");
	assert_int_equal(limits_take(&limits, "--cpus", "9999", &error), -ERANGE);
	assert_string_equal(error.message, "option --cpus 9999: out of range; from 0.01 to 4096");
	assert_int_equal(limits_take(&limits, "--memory", "1K", &error), -ERANGE);
	assert_string_equal(error.message, "option --memory 1K: too small; at least 16M");
	assert_int_equal(limits_take(&limits, "--disk", "99999999999T", &error), -ERANGE);
	assert_string_equal(error.message, "option --disk 99999999999T: too large; leave it out "
					   "for no limit");
	assert_int_equal(limits_take(&limits, "--nothing", "1", &error), -EINVAL);
	assert_non_null(strstr(error.message, "--nothing"));
	/* nothing was taken */
	assert_int_equal(limits.asked, 0);
	assert_int_equal(limits.values[LIMIT_MEMORY], 2 * LIMIT_GIB);
}

static void table(void **state)
{
	(void)state;
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		const struct limit_text *row = limit_text(limit);

		assert_true(row->least <= row->most);
		if (row->value != LIMIT_NONE)
			assert_true(row->value >= row->least && row->value <= row->most);
		if (row->option)
			assert_int_equal(limit_of_option(row->option), limit);
	}
	assert_int_equal(limit_of_option("--cpu-tim"), LIMIT_COUNT);
	assert_int_equal(limit_of_option(""), LIMIT_COUNT);
}

/* What is printed is what is taken. */
static void printed_values_parse_again(void **state)
{
	static const struct {
		enum limit limit;
		uint64_t value;
		const char *text;
	} shown[] = {
		{ LIMIT_WALL_CLOCK, 90 * LIMIT_SECOND, "90s" },
		{ LIMIT_WALL_CLOCK, 86400 * LIMIT_SECOND, "1d" },
		{ LIMIT_WALL_CLOCK, 1500 * LIMIT_MS, "1500ms" },
		{ LIMIT_CPUS, 1500, "1.5" },
		{ LIMIT_CPUS, 10, "0.01" },
		{ LIMIT_CPUS, 2000, "2" },
		{ LIMIT_CPUS, 100000, "100" },
		{ LIMIT_PIDS, 1024, "1024" },
		{ LIMIT_MEMORY, 2 * LIMIT_GIB, "2G" },
		{ LIMIT_MEMORY, 16 * LIMIT_MIB + 1, "16777217" },
		{ LIMIT_IO, 50 * LIMIT_MIB, "50M/s" },
		{ LIMIT_IO, 65537, "65537/s" },
		{ LIMIT_CORE, 0, "0" },
	};
	struct error error = ERROR_NONE;

	(void)state;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		CLEANUP_BUFFER struct buffer buffer = { 0 };
		uint64_t value = MARK;

		limit_print(shown[i].limit, shown[i].value, &buffer);
		assert_string_equal(buffer.data, shown[i].text);
		assert_int_equal(limit_parse(shown[i].limit, buffer.data, &value, &error), 0);
		assert_int_equal(value, shown[i].value);
	}
	CLEANUP_BUFFER struct buffer buffer = { 0 };

	limit_print(LIMIT_CPUS, LIMIT_NONE, &buffer);
	assert_string_equal(buffer.data, "none");
}

static uint64_t memory_of(uint64_t host)
{
	struct limit_facts facts = { .memory_bytes = host };
	struct limits limits;

	limits_init(&facts, &limits);
	assert_true(limits.values[LIMIT_AREA_SIZE] <= limits.values[LIMIT_MEMORY]);
	return limits.values[LIMIT_MEMORY];
}

static void defaults_fit_the_host(void **state)
{
	struct limit_facts facts = { .files = 4096 };
	struct limits limits;

	(void)state;
	assert_int_equal(memory_of(0), 2 * LIMIT_GIB);
	assert_int_equal(memory_of(4 * LIMIT_GIB), 2 * LIMIT_GIB);
	assert_int_equal(memory_of(64 * LIMIT_GIB), 32 * LIMIT_GIB);
	assert_int_equal(memory_of(1 * LIMIT_GIB), 768 * LIMIT_MIB);
	assert_int_equal(memory_of(1), 16 * LIMIT_MIB);
	assert_int_equal(memory_of(UINT64_MAX), UINT64_MAX / 2 / LIMIT_MIB * LIMIT_MIB);
	limits_init(&facts, &limits);
	assert_int_equal(limits.values[LIMIT_FILES], 4096);
	assert_int_equal(limits.asked, 0);
	assert_int_equal(limits.values[LIMIT_CORE], 0);
}

static void take(struct limits *limits, const char *option, const char *value)
{
	struct error error = ERROR_NONE;

	if (limits_take(limits, option, value, &error) < 0)
		fail_msg("%s", error.message);
}

static void areas_follow_disk_and_memory(void **state)
{
	struct limits limits;

	(void)state;
	limits_init(&rich, &limits);
	assert_int_equal(limits.values[LIMIT_AREA_SIZE], LIMIT_GIB);
	assert_false(limits_is_asked(&limits, LIMIT_AREA_SIZE));

	take(&limits, "--disk", "100M");
	take(&limits, "--inodes", "1000");
	limits_settle(&limits);
	assert_int_equal(limits.values[LIMIT_AREA_SIZE], 100 * LIMIT_MIB);
	assert_int_equal(limits.values[LIMIT_AREA_INODES], 1000);
	assert_true(limits_is_asked(&limits, LIMIT_AREA_SIZE));

	/* they are memory, and never more than the task's */
	take(&limits, "--disk", "50G");
	limits_settle(&limits);
	assert_int_equal(limits.values[LIMIT_AREA_SIZE], 2 * LIMIT_GIB);
	take(&limits, "--memory", "64M");
	limits_settle(&limits);
	assert_int_equal(limits.values[LIMIT_AREA_SIZE], 64 * LIMIT_MIB);

	limits_init(&rich, &limits);
	take(&limits, "--memory", "64M");
	limits_settle(&limits);
	assert_int_equal(limits.values[LIMIT_AREA_SIZE], 64 * LIMIT_MIB);
}

static void the_stricter_layer_decides(void **state)
{
	struct limits limits, managed;

	(void)state;
	limits_init(&rich, &limits);
	limits_init(&rich, &managed);
	take(&limits, "--memory", "1G");
	take(&limits, "--pids", "100");
	take(&managed, "--memory", "512M");
	take(&managed, "--pids", "200");
	take(&managed, "--cpus", "1");
	limits_narrow(&limits, &managed);
	assert_int_equal(limits.values[LIMIT_MEMORY], 512 * LIMIT_MIB);
	assert_int_equal(limits.values[LIMIT_PIDS], 100);
	assert_int_equal(limits.values[LIMIT_CPUS], 1000);
	assert_true(limits_is_asked(&limits, LIMIT_MEMORY));
	assert_true(limits_is_asked(&limits, LIMIT_CPUS));
	assert_false(limits_is_asked(&limits, LIMIT_FILES));

	/* a built-in bound that decides is not asked for by anybody */
	limits_init(&rich, &limits);
	limits_init(&rich, &managed);
	take(&limits, "--pids", "100000");
	limits_narrow(&limits, &managed);
	assert_int_equal(limits.values[LIMIT_PIDS], 1024);
	assert_false(limits_is_asked(&limits, LIMIT_PIDS));
}

static void assert_means(const struct limit_facts *facts, enum limit limit, const char *text)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct limit_means means[LIMIT_COUNT];

	limits_means(facts, means);
	limit_means_print(&means[limit], &buffer);
	assert_string_equal(buffer.data, text);
	assert_int_equal(means[limit].grain_ns != 0, means[limit].grade == ENFORCEMENT_POLLED);
	assert_int_equal(means[limit].remedy[0] != '\0', means[limit].grade == ENFORCEMENT_ABSENT);
}

static void means_of_hosts(void **state)
{
	static const struct limit_facts old = {
		.cgroup = { [LIMIT_MEMORY] = 1,
			    [LIMIT_PIDS] = 1,
			    [LIMIT_CPUS] = 1,
			    [LIMIT_CPU_TIME] = 1,
			    [LIMIT_IO] = 1 },
		.watchdog_grain_ns = 500 * LIMIT_MS,
	};
	static const struct limit_facts plain = {
		.rlimit_processes = true,
		.sized_areas = true,
		.watchdog_grain_ns = 500 * LIMIT_MS,
	};

	(void)state;
	assert_means(&rich, LIMIT_MEMORY, "exact (cgroup v2 memory.max)");
	assert_means(&rich, LIMIT_PIDS, "exact (cgroup v2 pids.max)");
	assert_means(&rich, LIMIT_CPUS, "exact (cgroup v2 cpu.max)");
	assert_means(&rich, LIMIT_IO, "exact (cgroup v2 io.max)");
	assert_means(&rich, LIMIT_CPU_TIME, "polled (500ms; cgroup v2 cpu.stat)");
	assert_means(&rich, LIMIT_DISK, "polled (2s; bytes added to the workspace)");
	assert_means(&old, LIMIT_MEMORY, "exact (cgroup v1 memory.limit_in_bytes)");
	assert_means(&old, LIMIT_CPUS, "exact (cgroup v1 cpu.cfs_quota_us)");
	assert_means(&old, LIMIT_IO, "absent (cgroup v1 throttles reads and direct writes only)");
	assert_means(&old, LIMIT_AREA_SIZE, "absent (the private areas cannot be given a size)");
	/* not even a host with everything */
	assert_means(&rich, LIMIT_GPU,
		     "absent (Linux has no controller for a GPU's time; cgroup v2 dmem bounds "
		     "device memory alone)");
	assert_means(&plain, LIMIT_MEMORY, "polled (500ms; watchdog over the task's processes)");
	assert_means(&plain, LIMIT_CPU_TIME, "polled (500ms; watchdog over the task's processes)");
	assert_means(&plain, LIMIT_PIDS, "exact (RLIMIT_NPROC of the box's user namespace)");
	assert_means(&plain, LIMIT_AREA_SIZE, "exact (tmpfs size=)");
	assert_means(&plain, LIMIT_CPUS, "absent (no control group for processors can be made)");
	assert_means(&poor, LIMIT_PIDS,
		     "absent (no control group for processes can be made, and RLIMIT_NPROC counts "
		     "those of the whole host)");
	assert_means(&poor, LIMIT_WALL_CLOCK, "exact (timer of the supervisor)");
	assert_means(&poor, LIMIT_CORE, "exact (RLIMIT_CORE of each process)");
}

static void a_scope_is_for_what_is_held_worse_without(void **state)
{
	static const uint32_t all = UINT32_MAX;
	struct limit_facts facts = { .rlimit_processes = true,
				     .watchdog_grain_ns = 500 * LIMIT_MS };
	struct limit_facts direct = rich, old = {
		.cgroup = { [LIMIT_MEMORY] = LIMIT_GROUP_V1, [LIMIT_IO] = LIMIT_GROUP_V1 }
	};
	struct limit_facts few = facts, bare = poor;

	(void)state;
	limits_offer(&facts, all);
	assert_means(&facts, LIMIT_MEMORY,
		     "exact (cgroup v2 memory.max, in a scope asked of systemd)");
	assert_means(&facts, LIMIT_CPUS, "exact (cgroup v2 cpu.max, in a scope asked of systemd)");
	assert_means(&facts, LIMIT_IO, "exact (cgroup v2 io.max, in a scope asked of systemd)");
	/* no better by a group: not asked for */
	assert_int_equal(facts.cgroup[LIMIT_PIDS], LIMIT_GROUP_NONE);
	assert_int_equal(facts.cgroup[LIMIT_CPU_TIME], LIMIT_GROUP_NONE);
	assert_int_equal(facts.cgroup[LIMIT_DISK], LIMIT_GROUP_NONE);

	/* only what the manager has */
	limits_offer(&few, UINT32_C(1) << LIMIT_MEMORY);
	assert_int_equal(few.cgroup[LIMIT_MEMORY], LIMIT_GROUP_SCOPE);
	assert_int_equal(few.cgroup[LIMIT_CPUS], LIMIT_GROUP_NONE);
	limits_offer(&few, 0);
	assert_int_equal(few.cgroup[LIMIT_MEMORY], LIMIT_GROUP_SCOPE);

	/* delegated to us already */
	limits_offer(&direct, all);
	assert_memory_equal(direct.cgroup, rich.cgroup, sizeof(rich.cgroup));
	limits_offer(&old, all);
	assert_int_equal(old.cgroup[LIMIT_MEMORY], LIMIT_GROUP_V1);
	assert_int_equal(old.cgroup[LIMIT_IO], LIMIT_GROUP_SCOPE);

	/* where the kernel does not count the processes of a user namespace */
	limits_offer(&bare, all);
	assert_means(&bare, LIMIT_PIDS, "exact (cgroup v2 pids.max, in a scope asked of systemd)");
}

static int check(const struct limit_facts *facts, const char *option, const char *value,
		 struct error *error)
{
	struct limit_means means[LIMIT_COUNT];
	struct limits limits;

	limits_init(facts, &limits);
	if (option)
		take(&limits, option, value);
	limits_settle(&limits);
	limits_means(facts, means);
	return limits_check(&limits, facts, means, error);
}

static void only_what_was_asked_for_is_refused(void **state)
{
	static const char *const absent[][2] = {
		{ "--memory", "1G" },	{ "--pids", "64" }, { "--cpus", "1" },
		{ "--io", "1M/s" },	{ "--disk", "1G" }, { "--inodes", "1000" },
		{ "--cpu-time", "1s" },
	};
	struct error error = ERROR_NONE;

	(void)state;
	/* built-in ones may be weaker */
	assert_int_equal(check(&poor, NULL, NULL, &error), 0);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		error = ERROR_NONE;
		assert_int_equal(check(&poor, absent[i][0], absent[i][1], &error), -EOPNOTSUPP);
		assert_non_null(strstr(error.message, "leave the option out"));
		assert_int_equal(check(&rich, absent[i][0], absent[i][1], &error), 0);
	}
	assert_int_equal(check(&poor, "--cpus", "1", &error), -EOPNOTSUPP);
	assert_string_equal(error.message,
			    "limit cpu share (--cpus) cannot be held here: no control group for "
			    "processors can be made; let systemd have its cgroup v2 controller to "
			    "give (as root: Delegate=cpu io memory pids under [Service] in "
			    "`systemctl edit user@.service`), run bawn in a control group that is "
			    "delegated to it, or leave the option out");
	assert_int_equal(check(&poor, "--timeout", "1s", &error), 0);
	assert_int_equal(check(&poor, "--output-cap", "1M", &error), 0);
	assert_int_equal(check(&poor, "--grace", "1s", &error), 0);
}

static void not_above_the_callers_own(void **state)
{
	struct limit_facts facts = rich;
	struct error error = ERROR_NONE;

	(void)state;
	facts.files = 4096;
	assert_int_equal(check(&facts, "--files", "4096", &error), 0);
	assert_int_equal(check(&facts, "--files", "4097", &error), -EPERM);
	assert_non_null(strstr(error.message, "4096"));
	facts.files = 0;
	assert_int_equal(check(&facts, "--files", "4097", &error), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(messages_name_option_value_and_form),
		cmocka_unit_test(table),
		cmocka_unit_test(printed_values_parse_again),
		cmocka_unit_test(defaults_fit_the_host),
		cmocka_unit_test(areas_follow_disk_and_memory),
		cmocka_unit_test(the_stricter_layer_decides),
		cmocka_unit_test(means_of_hosts),
		cmocka_unit_test(a_scope_is_for_what_is_held_worse_without),
		cmocka_unit_test(only_what_was_asked_for_is_refused),
		cmocka_unit_test(not_above_the_callers_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
