/*
 * A person's answers to questions about connections, with an approval that takes its time: this
 * program has its own approval_ask().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker/approval.h"
#include "broker/egress_ask.h"

#define SECOND_NS UINT64_C(1000000000)

static struct {
	approval_callback *callback;
	void *context;
	uint64_t deadline_ns;
	const char *target, *shown;
	bool is_unclear;
} asked[EGRESS_LIMIT_HELD + 1];
static unsigned asked_count;
static bool answers_at_once;

int approval_ask(const struct approval_request *request, uint64_t deadline_ns,
		 approval_callback *callback, void *context)
{
	if (answers_at_once) {
		callback(request, APPROVAL_DENY, "nobody can be asked", context);
		return -1;
	}
	assert_in_range(asked_count, 0, EGRESS_LIMIT_HELD);
	asked[asked_count].callback = callback;
	asked[asked_count].context = context;
	asked[asked_count].deadline_ns = deadline_ns;
	asked[asked_count].shown = request->shown;
	asked[asked_count].is_unclear = strstr(request->reason, "servers differ") != NULL;
	asked[asked_count++].target = request->target;
	return 0;
}

static void say(unsigned number, enum approval_answer answer)
{
	asked[number].callback(NULL, answer, "", asked[number].context);
}

static struct {
	uint32_t id;
	bool yes;
} heard[8];
static unsigned heard_count;

static void hear(const struct egress_asked *question, bool yes, void *context)
{
	assert_ptr_equal(context, heard);
	heard[heard_count % 8].id = question->id;
	heard[heard_count++ % 8].yes = yes;
}

static struct egress_asks begin(void)
{
	asked_count = heard_count = 0;
	answers_at_once = false;
	return (struct egress_asks){ .answered = hear, .context = heard };
}

static bool ask(struct egress_asks *asks, uint32_t id)
{
	const struct rule_ref rule = { .id = "r" };
	struct egress_asked question = { .id = id, .port = 80, .asked_ns = 5 * SECOND_NS };

	(void)snprintf(question.target, sizeof(question.target), "n%u.example:80", id);
	(void)snprintf(question.shown, sizeof(question.shown), "GET http://n%u.example:80/", id);
	question.is_unclear = id == 3;
	return egress_ask(asks, &question, &rule);
}

static void answers_come_in_any_order(void **state)
{
	struct egress_asks asks = begin();

	(void)state;
	for (uint32_t id = 1; id <= 3; id++)
		assert_true(ask(&asks, id));
	assert_int_equal(heard_count, 0);
	assert_int_equal(asked[0].deadline_ns, (5 + EGRESS_LIMIT_ASK_S) * SECOND_NS);
	/* what a person reads lasts as long as the question */
	assert_string_equal(asked[1].target, "n2.example:80");
	assert_string_equal(asked[1].shown, "GET http://n2.example:80/");
	assert_false(asked[1].is_unclear);
	assert_true(asked[2].is_unclear);
	say(1, APPROVAL_ONCE);
	say(2, APPROVAL_DENY);
	say(0, APPROVAL_ONCE);
	assert_int_equal(heard_count, 3);
	assert_int_equal(heard[0].id, 2);
	assert_true(heard[0].yes);
	assert_int_equal(heard[1].id, 3);
	assert_false(heard[1].yes);
	assert_int_equal(heard[2].id, 1);
	assert_int_equal(asks.count, 0);
	assert_null(asks.first);
}

static void an_answer_may_come_at_once(void **state)
{
	struct egress_asks asks = begin();

	(void)state;
	answers_at_once = true;
	assert_true(ask(&asks, 7));
	assert_int_equal(heard_count, 1);
	assert_int_equal(heard[0].id, 7);
	assert_false(heard[0].yes);
	assert_int_equal(asks.count, 0);
}

static void more_than_the_limit_are_not_asked(void **state)
{
	struct egress_asks asks = begin();

	(void)state;
	for (uint32_t id = 0; id < EGRESS_LIMIT_HELD; id++)
		assert_true(ask(&asks, id));
	assert_false(ask(&asks, 1000));
	assert_int_equal(asked_count, EGRESS_LIMIT_HELD);
	say(9, APPROVAL_DENY);
	assert_true(ask(&asks, 1001));
	for (unsigned i = 0; i <= EGRESS_LIMIT_HELD; i++)
		if (i != 9)
			say(i, APPROVAL_DENY);
	assert_int_equal(heard_count, EGRESS_LIMIT_HELD + 1);
	assert_int_equal(asks.count, 0);
}

static void nobody_hears_an_answer_after_the_end(void **state)
{
	struct egress_asks asks = begin();

	(void)state;
	assert_true(ask(&asks, 1));
	assert_true(ask(&asks, 2));
	egress_ask_end(&asks);
	assert_int_equal(asks.count, 0);
	memset(&asks, 0xa5, sizeof(asks));
	say(1, APPROVAL_ONCE);
	say(0, APPROVAL_ONCE);
	assert_int_equal(heard_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_come_in_any_order),
		cmocka_unit_test(an_answer_may_come_at_once),
		cmocka_unit_test(more_than_the_limit_are_not_asked),
		cmocka_unit_test(nobody_hears_an_answer_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
