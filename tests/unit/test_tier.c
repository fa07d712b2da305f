#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "policy/classify.h"
#include "policy/document.h"
#include "policy/policy.h"
#include "policy/tier.h"

#define HAS(fact) TIER_HAS(fact)

/* What facts call for, where nothing is said but that they count. */
static const struct {
	uint32_t facts;
	enum tier tier;
} rows[] = {
	{ 0, TIER_OS },
	/* what is everyday */
	{ HAS(NETWORK), TIER_OS },
	{ HAS(SECRETS), TIER_OS },
	{ HAS(CREDENTIAL), TIER_OS },
	{ HAS(OUTSIDE), TIER_OS },
	{ HAS(UNKNOWN), TIER_OS },
	{ HAS(UNREAD), TIER_OS },
	{ HAS(CODE), TIER_OS },
	{ HAS(CODE) | HAS(NETWORK), TIER_OS },
	{ HAS(RECEIVED), TIER_OS },
	{ HAS(NETWORK) | HAS(RECEIVED), TIER_OS },
	{ HAS(SECRETS) | HAS(CREDENTIAL) | HAS(OUTSIDE), TIER_OS },
	{ HAS(UNKNOWN) | HAS(UNREAD) | HAS(SECRETS), TIER_OS },
	/* a way out beside something of value */
	{ HAS(NETWORK) | HAS(SECRETS), TIER_CONTAINER },
	{ HAS(NETWORK) | HAS(CREDENTIAL), TIER_CONTAINER },
	{ HAS(NETWORK) | HAS(OUTSIDE), TIER_CONTAINER },
	{ HAS(NETWORK) | HAS(UNKNOWN), TIER_CONTAINER },
	{ HAS(NETWORK) | HAS(UNREAD), TIER_CONTAINER },
	{ HAS(ANY_HOST) | HAS(NETWORK), TIER_CONTAINER },
	{ HAS(UNREVIEWED), TIER_CONTAINER },
	{ HAS(UNREVIEWED) | HAS(SECRETS), TIER_CONTAINER },
	/* more of the kernel */
	{ HAS(DEVICES), TIER_CONTAINER },
	{ HAS(KERNEL), TIER_CONTAINER },
	{ HAS(KERNEL) | HAS(DEVICES) | HAS(NETWORK), TIER_CONTAINER },
	/* what came in meets it */
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(SECRETS), TIER_GVISOR },
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(KERNEL), TIER_GVISOR },
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(CODE), TIER_GVISOR },
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(UNKNOWN), TIER_GVISOR },
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(UNREAD), TIER_GVISOR },
	{ HAS(NETWORK) | HAS(RECEIVED) | HAS(OUTSIDE), TIER_GVISOR },
	/* third parties */
	{ HAS(PACKAGES), TIER_GVISOR },
	{ HAS(PACKAGES) | HAS(NETWORK), TIER_GVISOR },
	{ HAS(PACKAGES) | HAS(NETWORK) | HAS(SECRETS), TIER_GVISOR },
	{ HAS(SHARED), TIER_GVISOR },
	{ HAS(SHARED) | HAS(UNREVIEWED), TIER_GVISOR },
	/* strangers, and something to lose */
	{ HAS(SHARED) | HAS(NETWORK), TIER_MICROVM },
	{ HAS(SHARED) | HAS(SECRETS), TIER_MICROVM },
	{ HAS(SHARED) | HAS(CREDENTIAL), TIER_MICROVM },
	{ HAS(SHARED) | HAS(OUTSIDE), TIER_MICROVM },
	{ HAS(SHARED) | HAS(DEVICES), TIER_MICROVM },
	{ HAS(SHARED) | HAS(KERNEL), TIER_MICROVM },
	{ HAS(ANY_HOST) | HAS(NETWORK) | HAS(SECRETS), TIER_MICROVM },
	{ HAS(ANY_HOST) | HAS(NETWORK) | HAS(KERNEL), TIER_MICROVM },
	{ HAS(UNREVIEWED) | HAS(NETWORK) | HAS(SECRETS), TIER_MICROVM },
	{ HAS(UNREVIEWED) | HAS(NETWORK) | HAS(DEVICES), TIER_MICROVM },
	{ HAS(UNREVIEWED) | HAS(NETWORK), TIER_CONTAINER },
	{ TIER_FACTS_ALL, TIER_MICROVM },
};

static const struct tier_policy raise = { .change = TIER_RAISE, .change_rule = 1 };

static void facts_call_for_a_tier(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tier_choice choice = tier_choose(&raise, rows[i].facts);

		if (choice.called_for != rows[i].tier || choice.tier != rows[i].tier)
			fail_msg("row %zu: %s", i, tier_name(choice.called_for));
		assert_int_equal(choice.facts, rows[i].facts);
		assert_int_equal(choice.verdict,
				 rows[i].tier == TIER_OS ? TIER_RUNS : TIER_IS_MISSING);
	}
}

/* More of what is known never calls for less. */
static void no_fact_lowers(void **state)
{
	(void)state;
	for (uint32_t facts = 0; facts <= TIER_FACTS_ALL; facts++)
		for (unsigned fact = 0; fact < TIER_FACT_COUNT; fact++) {
			uint32_t more = facts | UINT32_C(1) << fact;

			if (tier_choose(&raise, more).tier < tier_choose(&raise, facts).tier)
				fail_msg("%s lowers %#x", tier_fact_name(fact), facts);
		}
}

static void what_the_policy_says(void **state)
{
	static const struct {
		enum tier floor;
		enum tier_change change;
		uint32_t facts;
		enum tier tier;
		enum tier_verdict verdict;
	} cases[] = {
		{ TIER_OS, TIER_KEEP, 0, TIER_OS, TIER_RUNS },
		{ TIER_OS, TIER_KEEP, TIER_FACTS_ALL, TIER_OS, TIER_RUNS },
		{ TIER_OS, TIER_RAISE, 0, TIER_OS, TIER_RUNS },
		{ TIER_OS, TIER_RAISE, HAS(KERNEL), TIER_CONTAINER, TIER_IS_MISSING },
		{ TIER_OS, TIER_ASK, 0, TIER_OS, TIER_RUNS },
		{ TIER_OS, TIER_ASK, HAS(KERNEL), TIER_CONTAINER, TIER_ASKS },
		{ TIER_OS, TIER_STOP, 0, TIER_OS, TIER_RUNS },
		{ TIER_OS, TIER_STOP, HAS(PACKAGES), TIER_GVISOR, TIER_STOPS },
		/* a floor that is not built is no question */
		{ TIER_CONTAINER, TIER_KEEP, 0, TIER_CONTAINER, TIER_IS_MISSING },
		{ TIER_GVISOR, TIER_ASK, 0, TIER_GVISOR, TIER_IS_MISSING },
		{ TIER_MICROVM, TIER_STOP, HAS(KERNEL), TIER_MICROVM, TIER_IS_MISSING },
		{ TIER_CONTAINER, TIER_RAISE, HAS(SHARED), TIER_GVISOR, TIER_IS_MISSING },
		{ TIER_WASI, TIER_RAISE, TIER_FACTS_ALL, TIER_WASI, TIER_IS_MISSING },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tier_policy policy = { .floor = cases[i].floor,
						    .change = cases[i].change };
		struct tier_choice choice = tier_choose(&policy, cases[i].facts);

		if (choice.tier != cases[i].tier || choice.verdict != cases[i].verdict)
			fail_msg("case %zu: %s, %d", i, tier_name(choice.tier), choice.verdict);
	}
}

/* What a policy file says is missing, and what the function takes to be, is one thing. */
static void the_keys_agree(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };

	(void)state;
	for (enum tier tier = 0; tier < TIER_COUNT; tier++) {
		const struct document_statement statement = { .key = DOCUMENT_FLOOR,
							      .text = tier_name(tier) };

		assert_int_equal(tier_find(tier_name(tier)), tier);
		assert_int_equal(document_missing(&statement, &arena) == NULL, tier_is_built(tier));
	}
	assert_int_equal(tier_find("kata"), TIER_COUNT);
	assert_string_equal(tier_change_name(tier_change_find("stop")), "stop");
	assert_int_equal(tier_change_find("keep"), TIER_KEEP);
	assert_int_equal(tier_change_find(""), TIER_KEEP);
}

static void reasons(void **state)
{
	static const struct tier_policy nothing = { 0 }, floor = { .floor_rule = 1 };
	CLEANUP_ARENA struct arena arena = { 0 };
	struct tier_choice choice = tier_choose(&nothing, 0);

	(void)state;
	assert_string_equal(tier_reason(&nothing, &choice, &arena), "no policy asks for more");
	choice = tier_choose(&floor, HAS(SECRETS));
	assert_string_equal(tier_reason(&floor, &choice, &arena), "the floor of the policy");
	choice = tier_choose(&nothing, HAS(KERNEL) | HAS(SECRETS));
	assert_string_equal(tier_reason(&nothing, &choice, &arena),
			    "no policy asks for more; facts would call for the container tier: "
			    "more of the kernel is open (secrets, kernel)");
	choice = tier_choose(&raise, HAS(PACKAGES));
	assert_string_equal(tier_reason(&raise, &choice, &arena),
			    "code of third parties runs (packages)");
}

static uint32_t facts_of(struct policy *policy)
{
	return tier_facts(policy, 0);
}

static void facts_of_a_policy(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = { .workspace = "/w" };
	struct egress_rule egress = { .verdict = EGRESS_DENY, .kind = EGRESS_ANY };
	uint32_t own = policy_rule(&policy, &arena, rule_builtin(RULE_DEVICES_NONE));
	uint32_t flag =
		policy_rule(&policy, &arena, (struct rule_ref){ .id = "flag.x", .file = "--x" });
	uint32_t set = policy_rule(&policy, &arena,
				   (struct rule_ref){ .id = "environment.set", .file = "/p" });
	struct view_path row = { .class = PATH_WRITE, .target = "/w", .rule = own };

	(void)state;
	(void)view_add(&policy.view, &arena, row);
	row = (struct view_path){ .class = PATH_DEVICE, .target = "/dev/null", .rule = own };
	(void)view_add(&policy.view, &arena, row);
	(void)policy_variable(&policy, &arena, "PATH", "/bin", own);
	(void)policy_variable(&policy, &arena, "CI", "1", set);
	assert_int_equal(facts_of(&policy), 0);
	(void)policy_variable(&policy, &arena, "TOKEN", "x", flag);
	assert_int_equal(facts_of(&policy), HAS(SECRETS));
	row = (struct view_path){ .class = PATH_WRITE, .target = "/w2", .rule = flag };
	(void)view_add(&policy.view, &arena, row);
	assert_int_equal(facts_of(&policy), HAS(SECRETS) | HAS(OUTSIDE));
	row = (struct view_path){ .class = PATH_DEVICE, .target = "/dev/kvm", .rule = flag };
	(void)view_add(&policy.view, &arena, row);
	assert_int_equal(facts_of(&policy), HAS(SECRETS) | HAS(OUTSIDE) | HAS(DEVICES));
	policy.view.count = policy.variable_count = 0;
	policy.flags = POLICY_SHOW_SECRETS;
	assert_int_equal(facts_of(&policy), HAS(SECRETS));
	policy.flags = POLICY_NESTED_USERNS;
	assert_int_equal(facts_of(&policy), HAS(KERNEL));
	policy.flags = POLICY_ALLOW_PTRACE;
	assert_int_equal(facts_of(&policy), HAS(KERNEL));
	policy.flags = 0;
	/* rules count where there is a network, and denials do not */
	policy.egress.rules = &egress;
	policy.egress.rule_count = 1;
	egress.verdict = EGRESS_ALLOW;
	assert_int_equal(facts_of(&policy), 0);
	policy.egress.mode = EGRESS_POLICY;
	assert_int_equal(facts_of(&policy), HAS(NETWORK) | HAS(ANY_HOST));
	egress.verdict = EGRESS_DENY;
	assert_int_equal(facts_of(&policy), 0);
	egress = (struct egress_rule){ .verdict = EGRESS_ASK, .kind = EGRESS_NETWORK };
	assert_int_equal(facts_of(&policy), HAS(NETWORK) | HAS(ANY_HOST));
	egress.prefix_bits = 8;
	assert_int_equal(facts_of(&policy), HAS(NETWORK));
	assert_int_equal(tier_facts(&policy, HAS(SHARED)), HAS(NETWORK) | HAS(SHARED));
}

static uint32_t facts_of_command(const char *const *argv, size_t argc)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	const struct classify_facts facts = { .cwd = "/w", .home = "/home/u" };
	struct classify classify = { .arena = &arena, .facts = &facts };

	classify_argv(&classify, argv, argc);
	return tier_facts_of(&classify);
}

#define COMMAND(...)                                      \
	facts_of_command((const char *[]){ __VA_ARGS__ }, \
			 sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *))

static void facts_of_commands(void **state)
{
	(void)state;
	assert_int_equal(COMMAND("ls", "-l"), 0);
	assert_int_equal(COMMAND("make"), HAS(CODE));
	assert_int_equal(COMMAND("npm", "install", "x") & HAS(PACKAGES), HAS(PACKAGES));
	assert_int_equal(COMMAND("frobnicate") & HAS(UNKNOWN), HAS(UNKNOWN));
	assert_int_equal(COMMAND("cat", "/home/u/.ssh/id_ed25519"), HAS(CREDENTIAL));
	/* a text that nobody has read yet */
	assert_int_equal(COMMAND("sh", "-c", "ls") & HAS(UNREAD), HAS(UNREAD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_call_for_a_tier),
		cmocka_unit_test(no_fact_lowers),
		cmocka_unit_test(what_the_policy_says),
		cmocka_unit_test(the_keys_agree),
		cmocka_unit_test(reasons),
		cmocka_unit_test(facts_of_a_policy),
		cmocka_unit_test(facts_of_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
