#include "policy/tier.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/path.h"
#include "policy/classify.h"
#include "policy/policy.h"
#include "policy/secret.h"
#include "policy/sensitive.h"

#include <limits.h>
#include <string.h>

static const struct {
	const char *word;
	bool built;
} tiers[TIER_COUNT] = {
#define TIER(name, word, built) [TIER_##name] = { word, built },
#include "policy/tier.def"
#undef TIER
};

static const struct {
	const char *word, *text;
} facts_known[TIER_FACT_COUNT] = {
#define FACT(name, word, text) [TIER_FACT_##name] = { word, text },
#include "policy/tier.def"
#undef FACT
};

static const char *const changes[TIER_CHANGE_COUNT] = { "keep", "raise", "ask", "stop" };

static const struct {
	enum tier tier;
	uint32_t all, any;
	const char *text;
} risks[] = {
#define HAS(fact) TIER_HAS(fact)
#define RISK(tier, all, any, text) { TIER_##tier, all, any, text },
#include "policy/tier.def"
#undef RISK
#undef HAS
};

/* What commands of the kind add. */
static const struct {
	enum wanted_verb verb;
	uint32_t facts;
} by_verb[] = {
	{ WANTED_PACKAGE_INSTALL, TIER_HAS(PACKAGES) },
	{ WANTED_CREDENTIAL_USE, TIER_HAS(CREDENTIAL) },
	{ WANTED_FS_SECRET, TIER_HAS(CREDENTIAL) },
	{ WANTED_EXEC_CODE, TIER_HAS(CODE) },
	{ WANTED_EXEC_UNKNOWN, TIER_HAS(UNKNOWN) },
	{ WANTED_UNCLEAR, TIER_HAS(UNREAD) },
};

const char *tier_name(enum tier tier)
{
	return tier < TIER_COUNT ? tiers[tier].word : "?";
}

const char *tier_fact_name(enum tier_fact fact)
{
	return fact < TIER_FACT_COUNT ? facts_known[fact].word : "?";
}

const char *tier_change_name(enum tier_change change)
{
	return change < TIER_CHANGE_COUNT ? changes[change] : "?";
}

bool tier_is_built(enum tier tier)
{
	return tier < TIER_COUNT && tiers[tier].built;
}

enum tier tier_find(const char *word)
{
	enum tier tier = 0;

	while (tier < TIER_COUNT && strcmp(tiers[tier].word, word) != 0)
		tier++;
	return tier;
}

enum tier_change tier_change_find(const char *word)
{
	for (enum tier_change change = TIER_RAISE; change < TIER_CHANGE_COUNT; change++)
		if (strcmp(changes[change], word) == 0)
			return change;
	return TIER_KEEP;
}

bool tier_is_valid(const struct tier_policy *tier)
{
	return tier->floor < TIER_COUNT && tier->change < TIER_CHANGE_COUNT &&
	       (tier->floor == TIER_OS || tier->floor_rule) &&
	       (tier->change != TIER_KEEP) == (tier->change_rule != 0);
}

static enum tier call_for(uint32_t facts, const char **ret_why)
{
	for (size_t i = 0; i < sizeof(risks) / sizeof(risks[0]); i++)
		if ((facts & risks[i].all) == risks[i].all &&
		    (!risks[i].any || facts & risks[i].any)) {
			*ret_why = risks[i].text;
			return risks[i].tier;
		}
	*ret_why = "the caller's own work";
	return TIER_OS;
}

struct tier_choice tier_choose(const struct tier_policy *policy, uint32_t facts)
{
	struct tier_choice choice = { .tier = policy->floor, .facts = facts };

	choice.called_for = call_for(facts, &choice.why);
	if (policy->change != TIER_KEEP && choice.called_for > choice.tier)
		choice.tier = choice.called_for;
	if (!tier_is_built(policy->floor))
		choice.verdict = TIER_IS_MISSING;
	else if (choice.tier == policy->floor)
		choice.verdict = TIER_RUNS;
	else if (policy->change == TIER_RAISE)
		choice.verdict = tier_is_built(choice.tier) ? TIER_RUNS : TIER_IS_MISSING;
	else
		choice.verdict = policy->change == TIER_ASK ? TIER_ASKS : TIER_STOPS;
	return choice;
}

/* What an option or a policy shows by its path, wherever it lies. */
static bool shows_secrets(const struct policy *policy, const struct view_path *row)
{
	const char *slash = row->source ? strrchr(row->source, '/') : NULL, *parent = slash;
	char folder[NAME_MAX + 1] = "";

	if (!slash || !policy->rules[row->rule].file ||
	    (row->class != PATH_READ && row->class != PATH_WRITE))
		return false;
	while (parent > row->source && parent[-1] != '/')
		parent--;
	if ((size_t)(slash - parent) < sizeof(folder))
		memcpy(folder, parent, (size_t)(slash - parent));
	return sensitive_is_secret(row->target, policy->home, NULL) ||
	       sensitive_holds_secrets(row->target, policy->home) ||
	       secret_of_name(folder, slash + 1) != SECRET_NONE;
}

static uint32_t of_view(const struct policy *policy)
{
	uint32_t facts = 0;

	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (shows_secrets(policy, row))
			facts |= TIER_HAS(SECRETS);
		if (row->class == PATH_WRITE && !path_is_under(row->target, policy->workspace))
			facts |= TIER_HAS(OUTSIDE);
		if (row->class == PATH_DEVICE && policy->rules[row->rule].file)
			facts |= TIER_HAS(DEVICES);
	}
	return facts;
}

static uint32_t of_network(const struct egress_policy *egress)
{
	uint32_t facts = 0;

	for (size_t i = 0; egress->mode == EGRESS_POLICY && i < egress->rule_count; i++) {
		const struct egress_rule *rule = &egress->rules[i];

		if (rule->verdict == EGRESS_DENY)
			continue;
		facts |= TIER_HAS(NETWORK);
		if (rule->kind == EGRESS_ANY ||
		    (rule->kind == EGRESS_NETWORK && rule->prefix_bits == 0))
			facts |= TIER_HAS(ANY_HOST);
	}
	return facts;
}

/* By the caller's or a policy's word: what is built in passes none. */
static bool has_callers_variables(const struct policy *policy)
{
	for (size_t i = 0; i < policy->variable_count; i++) {
		const struct rule_ref *rule = &policy->rules[policy->variables[i].rule];

		if (rule->file && strcmp(rule->id, "environment.set") != 0)
			return true;
	}
	return false;
}

uint32_t tier_facts(const struct policy *policy, uint32_t of_workspace)
{
	uint32_t facts = of_workspace | of_view(policy) | of_network(&policy->egress);

	if (policy->flags & POLICY_SHOW_SECRETS || has_callers_variables(policy))
		facts |= TIER_HAS(SECRETS);
	if (policy->flags & (POLICY_NESTED_USERNS | POLICY_ALLOW_PTRACE))
		facts |= TIER_HAS(KERNEL);
	return facts;
}

uint32_t tier_facts_of(const struct classify *classify)
{
	uint32_t facts = classify->failed || classify->texts_read < classify->text_count ?
				 TIER_HAS(UNREAD) :
				 0;

	for (size_t i = 0; i < classify->wanted_count; i++)
		for (size_t j = 0; j < sizeof(by_verb) / sizeof(by_verb[0]); j++)
			if (classify->wanted[i].verb == by_verb[j].verb)
				facts |= by_verb[j].facts;
	return facts;
}

static void add_facts(uint32_t facts, struct buffer *text)
{
	const char *before = " (";

	for (unsigned fact = 0; fact < TIER_FACT_COUNT; fact++) {
		if (!(facts & UINT32_C(1) << fact))
			continue;
		buffer_format(text, "%s%s", before, facts_known[fact].word);
		before = ", ";
	}
	if (facts)
		buffer_text(text, ")");
}

const char *tier_reason(const struct tier_policy *policy, const struct tier_choice *choice,
			struct arena *arena)
{
	struct buffer text = { .arena = arena };

	if (choice->tier == policy->floor)
		buffer_text(&text, policy->floor_rule ? "the floor of the policy" :
							"no policy asks for more");
	else
		buffer_format(&text, "%s", choice->why);
	if (choice->tier == policy->floor && choice->called_for > choice->tier)
		buffer_format(&text, "; facts would call for the %s tier: %s",
			      tier_name(choice->called_for), choice->why);
	if (choice->called_for != TIER_OS)
		add_facts(choice->facts, &text);
	return text.failed ? NULL : text.data;
}

struct rule_ref tier_rule(const struct policy *policy, const struct tier_choice *choice)
{
	uint32_t rule = choice->tier == policy->tier.floor ? policy->tier.floor_rule :
							     policy->tier.change_rule;

	return rule ? policy->rules[rule] : rule_builtin(RULE_TIER_DEFAULT);
}

void tier_json(const struct policy *policy, const struct tier_choice *choice, const char *reason,
	       const char *name, struct json *json)
{
	const struct rule_ref rule = tier_rule(policy, choice);

	json_object(json, name);
	json_string(json, "name", tier_name(choice->tier));
	json_string(json, "rung", choice->tier == TIER_OS ? TIER_RUNG : NULL);
	json_bool(json, "built", tier_is_built(choice->tier));
	json_string(json, "called_for", tier_name(choice->called_for));
	json_string(json, "on_change", tier_change_name(policy->tier.change));
	json_string(json, "reason", reason);
	rule_json(&rule, "rule", json);
	json_array(json, "facts");
	for (unsigned fact = 0; fact < TIER_FACT_COUNT; fact++)
		if (choice->facts & UINT32_C(1) << fact)
			json_string(json, NULL, facts_known[fact].word);
	json_array_end(json);
	json_object_end(json);
}
