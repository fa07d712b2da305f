#include "cli/decision_text.h"

#include "base/buffer.h"
#include "base/json.h"
#include "broker/decide.h"
#include "policy/tier.h"

static void request_json(const struct decision *decision, size_t index, struct json *json)
{
	const struct wanted *wanted = &decision->classify.wanted[index];
	const struct verdict *verdict = &decision->verdicts.rows[index];

	json_object(json, NULL);
	json_string(json, "verdict", verdict_word(verdict->judgement));
	json_string(json, "verb", wanted_verb_name(wanted->verb));
	json_string(json, "target", wanted->target);
	json_bool(json, "exact", wanted->exact);
	json_unsigned(json, "segment", wanted->segment);
	json_unsigned(json, "position", wanted->position);
	json_string(json, "reason", verdict->reason);
	rule_json(&verdict->rule, "rule", json);
	json_object_end(json);
}

static void segment_json(const struct decision *decision, size_t index, struct json *json)
{
	const struct classify_word *words = NULL;
	size_t count = classify_segment(&decision->classify, index, &words);

	json_array(json, NULL);
	for (size_t i = 0; i < count; i++)
		json_string(json, NULL, words[i].text);
	json_array_end(json);
}

static size_t request_count(const struct decision *decision)
{
	return decision->verdicts.rows ? decision->classify.wanted_count : 0;
}

void decision_json(const struct decision *decision, struct json *json)
{
	const struct verdict_list *verdicts = &decision->verdicts;

	json_string(json, "verdict", verdict_word(verdicts->whole.judgement));
	json_string(json, "reason", verdicts->whole.reason);
	rule_json(&verdicts->whole.rule, "rule", json);
	if (verdicts->request < decision->classify.wanted_count)
		json_unsigned(json, "request", verdicts->request);
	else
		json_null(json, "request");
	if (decision->tier_reason)
		tier_json(decision->judging.policy, &decision->tier, decision->tier_reason, "tier",
			  json);
	else
		json_null(json, "tier");
	json_array(json, "segments");
	for (size_t i = 0; i < decision->classify.segment_count; i++)
		segment_json(decision, i, json);
	json_array_end(json);
	json_array(json, "requests");
	for (size_t i = 0; i < request_count(decision); i++)
		request_json(decision, i, json);
	json_array_end(json);
}

static void print_segment(const struct decision *decision, size_t index, struct buffer *buffer)
{
	const struct classify_word *words = NULL;
	size_t count = classify_segment(&decision->classify, index, &words);

	buffer_format(buffer, "  %zu:", index + 1);
	for (size_t i = 0; i < count; i++) {
		buffer_byte(buffer, ' ');
		buffer_visible(buffer, words[i].text);
	}
	buffer_byte(buffer, '\n');
}

static void print_request(const struct decision *decision, size_t index, struct buffer *buffer)
{
	const struct wanted *wanted = &decision->classify.wanted[index];
	const struct verdict *verdict = &decision->verdicts.rows[index];

	buffer_format(buffer, "    %-5s  %s ", verdict_word(verdict->judgement),
		      wanted_verb_name(wanted->verb));
	buffer_visible(buffer, wanted->target);
	if (!wanted->exact)
		buffer_text(buffer, " (known only at run time)");
	buffer_text(buffer, "  (");
	rule_print(&verdict->rule, buffer);
	buffer_format(buffer, ": %s)\n", verdict->reason);
}

void decision_print(const struct decision *decision, struct buffer *buffer)
{
	const struct classify *classify = &decision->classify;
	const struct verdict_list *verdicts = &decision->verdicts;

	buffer_text(buffer, verdict_word(verdicts->whole.judgement));
	if (verdicts->whole.judgement != WANTED_ALLOWS) {
		buffer_text(buffer, ": ");
		if (verdicts->request < classify->wanted_count) {
			const struct wanted *wanted = &classify->wanted[verdicts->request];

			buffer_format(buffer, "%s ", wanted_verb_name(wanted->verb));
			buffer_visible(buffer, wanted->target);
			buffer_byte(buffer, ' ');
		}
		buffer_byte(buffer, '(');
		rule_print(&verdicts->whole.rule, buffer);
		buffer_format(buffer, ": %s)", verdicts->whole.reason);
	}
	buffer_byte(buffer, '\n');
	/* what is no command's, as a redirection alone, is told as the first one's */
	for (size_t i = 0; i < classify->segment_count || i == 0; i++) {
		if (i < classify->segment_count)
			print_segment(decision, i, buffer);
		for (size_t j = 0; j < request_count(decision); j++)
			if (classify->wanted[j].segment == i)
				print_request(decision, j, buffer);
	}
	if (decision->tier_reason)
		buffer_format(buffer, "  tier %s: %s\n", tier_name(decision->tier.tier),
			      decision->tier_reason);
}
