/* What explain says of limits; its words are in tests/golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../golden/policies.h"

#include "base/buffer.h"
#include "base/json.h"
#include "plan/explain.h"
#include "policy/held.h"

static const struct limit_facts usual = {
	.rlimit_processes = true,
	.sized_areas = true,
	.watchdog_grain_ns = LIMIT_SECOND,
	.workspace_grain_ns = LIMIT_SECOND,
};

struct explained {
	struct arena arena;
	struct policy policy;
	struct plan plan;
	struct explanation explanation;
};

static void take(struct policy *policy, const char *option, const char *value)
{
	struct error error = ERROR_NONE;

	assert_int_equal(limits_take(&policy->limits, option, value, &error), 0);
	limits_settle(&policy->limits);
}

static void explain(struct explained *to, const struct limit_facts *facts)
{
	const struct tier_choice tier = tier_choose(&to->policy.tier, 0);
	const struct explain_facts about = {
		.hash = "abc", .limits = facts, .tier = &tier, .tier_reason = "why"
	};
	struct error error = ERROR_NONE;

	assert_int_equal(sample_plan(&to->policy, false, &to->arena, &to->plan, &error), 0);
	assert_int_equal(
		explain_build(&to->policy, &to->plan, &about, &to->arena, &to->explanation, &error),
		0);
}

static struct explained begin(void)
{
	struct explained made = { 0 };

	fill_default(&made.policy, &made.arena);
	return made;
}

/* The answer about a limit; fails where there is not exactly one. */
static const struct explain_answer *about(const struct explained *explained, enum limit limit)
{
	const struct explain_answer *found = NULL;

	for (size_t i = 0; i < explained->explanation.count; i++) {
		const struct explain_answer *line = &explained->explanation.answers[i];

		if (!line->held || line->held->limit != limit)
			continue;
		assert_null(found);
		assert_int_equal(line->question, EXPLAIN_RESOURCES);
		found = line;
	}
	assert_non_null(found);
	return found;
}

static void each_limit_has_one_answer_in_its_own_words(void **state)
{
	struct explained explained = begin();

	(void)state;
	explain(&explained, &usual);
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		CLEANUP_BUFFER struct buffer words = { 0 };
		const struct explain_answer *line;
		bool is_none;

		if (!held_concerns(limit, &explained.policy.view))
			continue;
		line = about(&explained, limit);
		is_none = line->held->value == LIMIT_NONE;

		held_print(line->held, &words);
		assert_int_equal(strncmp(line->text, words.data, words.length), 0);
		assert_int_equal(line->enforcement,
				 is_none ? ENFORCEMENT_ABSENT : line->held->means.grade);
		assert_string_equal(line->rule.id, "limit.default");
	}
	arena_free(&explained.arena);
}

static void none_names_the_option(void **state)
{
	struct explained explained = begin();

	(void)state;
	explain(&explained, &usual);
	assert_string_equal(about(&explained, LIMIT_WALL_CLOCK)->text,
			    "wall clock: none; --timeout sets one");
	assert_string_equal(about(&explained, LIMIT_IO)->text, "io rate: none; --io sets one");
	arena_free(&explained.arena);
}

static size_t lines_about(const struct explained *explained, enum limit limit)
{
	size_t count = 0;

	for (size_t i = 0; i < explained->explanation.count; i++) {
		const struct held *held = explained->explanation.answers[i].held;

		count += held && held->limit == limit;
	}
	return count;
}

static void a_gpu_is_spoken_of_where_one_is_shown(void **state)
{
	struct explained without = begin(), with = begin();

	(void)state;
	explain(&without, &usual);
	assert_int_equal(lines_about(&without, LIMIT_GPU), 0);
	file(&with.policy, &with.arena, PATH_DEVICE, "/dev/kfd", "--devices");
	explain(&with, &usual);
	assert_int_equal(about(&with, LIMIT_GPU)->enforcement, ENFORCEMENT_ABSENT);
	arena_free(&without.arena);
	arena_free(&with.arena);
}

static void what_was_asked_for_has_its_flag(void **state)
{
	struct explained explained = begin();

	(void)state;
	explained.policy.timeout_ns = LIMIT_SECOND * 90;
	explained.policy.limits.values[LIMIT_WALL_CLOCK] = LIMIT_SECOND * 90;
	take(&explained.policy, "--disk", "100M");
	explain(&explained, &usual);
	assert_string_equal(about(&explained, LIMIT_DISK)->rule.file, "--disk");
	assert_string_equal(about(&explained, LIMIT_DISK)->rule.id, "flag.disk");
	/* the areas follow, and say whom */
	assert_string_equal(about(&explained, LIMIT_AREA_SIZE)->rule.file, "--disk");
	assert_null(about(&explained, LIMIT_AREA_INODES)->rule.file);
	assert_string_equal(about(&explained, LIMIT_WALL_CLOCK)->rule.file, "--timeout");
	assert_string_equal(about(&explained, LIMIT_WALL_CLOCK)->text,
			    "wall clock: 90s, exact (timer of the supervisor)");
	arena_free(&explained.arena);
}

static void a_host_that_holds_nothing(void **state)
{
	static const struct limit_facts nothing = { 0 };
	struct explained explained = begin();

	(void)state;
	explain(&explained, &nothing);
	assert_int_equal(about(&explained, LIMIT_MEMORY)->enforcement, ENFORCEMENT_ABSENT);
	assert_int_equal(about(&explained, LIMIT_PIDS)->enforcement, ENFORCEMENT_ABSENT);
	assert_int_equal(about(&explained, LIMIT_FILES)->enforcement, ENFORCEMENT_EXACT);
	arena_free(&explained.arena);
}

static void json_has_the_row(void **state)
{
	CLEANUP_BUFFER struct buffer text = { 0 };
	struct explained explained = begin();
	struct json json;
	size_t rows = 0;

	(void)state;
	explain(&explained, &usual);
	json_begin(&json, &text);
	json_object(&json, NULL);
	explain_json(&explained.explanation, &json);
	json_object_end(&json);
	assert_false(text.failed);
	for (const char *at = text.data; (at = strstr(at, "\"limit\":{\"limit\":\"")); at++)
		rows++;
	/* each but that of a GPU, which this policy does not show */
	assert_int_equal(rows, LIMIT_COUNT - 1);
	assert_non_null(strstr(text.data, "\"mechanism\":\"RLIMIT_NOFILE of each process\""));
	arena_free(&explained.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_limit_has_one_answer_in_its_own_words),
		cmocka_unit_test(none_names_the_option),
		cmocka_unit_test(a_gpu_is_spoken_of_where_one_is_shown),
		cmocka_unit_test(what_was_asked_for_has_its_flag),
		cmocka_unit_test(a_host_that_holds_nothing),
		cmocka_unit_test(json_has_the_row),
	};

	return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
