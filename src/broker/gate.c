#include "broker/gate.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "broker/approval.h"
#include "broker/decide.h"
#include "broker/effective.h"
#include "broker/isolation.h"
#include "policy/action.h"

#include <errno.h>
#include <string.h>

/* Words of a segment in the record: enough to know it by. */
#define SEGMENT_LIMIT_BYTES 512

static const char *segment_text(const struct gate *gate, const struct classify *classify,
				size_t index)
{
	struct buffer text = { .arena = gate->arena };
	const struct classify_word *words = NULL;
	size_t count = classify_segment(classify, index, &words);

	for (size_t i = 0; i < count && text.length < SEGMENT_LIMIT_BYTES; i++) {
		size_t length = strlen(words[i].text), room = SEGMENT_LIMIT_BYTES - text.length;

		if (i)
			buffer_byte(&text, ' ');
		buffer_append(&text, words[i].text, length < room ? length : room);
	}
	return text.failed || !text.length ? "" : text.data;
}

static void add_rows(const struct gate *gate, const struct decision *decision, bool allowed,
		     struct event_verdict *rows, size_t *count)
{
	const struct classify *classify = &decision->classify;
	const char *text = NULL;
	size_t segment = SIZE_MAX;

	for (size_t i = 0; decision->verdicts.rows && i < classify->wanted_count; i++) {
		const struct verdict *verdict = &decision->verdicts.rows[i];
		const struct wanted *wanted = &classify->wanted[i];

		if ((verdict->judgement == WANTED_ALLOWS) != allowed ||
		    *count == GATE_LIMIT_VERDICTS)
			continue;
		if (wanted->segment != segment)
			text = segment_text(gate, classify, wanted->segment);
		segment = wanted->segment;
		rows[(*count)++] = (struct event_verdict){
			.verdict = verdict_word(verdict->judgement),
			.verb = wanted_verb_name(wanted->verb),
			.target = wanted->target,
			.reason = verdict->reason,
			.segment = text,
			.rule = verdict->rule,
		};
	}
}

static void keep_verdicts(const struct gate *gate, const struct action *action,
			  const struct decision *decision, struct gate_verdicts *ret)
{
	const struct verdict *whole = &decision->verdicts.whole;
	size_t count = 1;
	struct event_verdict *rows = arena_array(gate->arena, GATE_LIMIT_VERDICTS, sizeof(*rows));

	if (!rows)
		return;
	rows[0] = (struct event_verdict){ .verdict = verdict_word(whole->judgement),
					  .verb = "process.exec",
					  .target = action->argv[0],
					  .reason = whole->reason,
					  .rule = whole->rule };
	add_rows(gate, decision, false, rows, &count);
	add_rows(gate, decision, true, rows, &count);
	ret->rows = rows;
	ret->count = count;
}

/* Of the tier, beside the verdict of the action, and behind it where it is no yes. */
static void keep_tier(const struct gate *gate, const struct tier_choice *choice, const char *reason,
		      bool refused, struct gate_verdicts *verdicts)
{
	struct event_verdict *rows = (struct event_verdict *)(uintptr_t)verdicts->rows;

	if (!rows || !reason)
		return;
	rows[0].tier = tier_name(choice->tier);
	rows[0].tier_reason = reason;
	if (!refused)
		return;
	if (verdicts->count < GATE_LIMIT_VERDICTS)
		verdicts->count++;
	for (size_t i = verdicts->count - 1; i > 1; i--)
		rows[i] = rows[i - 1];
	rows[1] = (struct event_verdict){ .verdict = "deny",
					  .verb = denial_text(DENIAL_ISOLATION_TIER)->verb,
					  .target = tier_name(choice->tier),
					  .reason = reason,
					  .rule = tier_rule(&gate->effective->policy, choice) };
}

/* Of what does not start for another reason. */
static void note_tier(const struct gate *gate, const struct decision *decision,
		      struct gate_verdicts *verdicts)
{
	const struct tier_policy *tier = &gate->effective->policy.tier;
	struct tier_choice choice = tier_choose(tier, gate->effective->tier.facts | gate->facts |
							      tier_facts_of(&decision->classify));

	keep_tier(gate, &choice, tier_reason(tier, &choice, gate->arena), false, verdicts);
}

static int pass_tier(const struct gate *gate, const struct decision *decision,
		     struct gate_verdicts *verdicts, struct denial_list *denials,
		     struct error *error)
{
	uint32_t facts = gate->facts | tier_facts_of(&decision->classify);
	struct tier_choice choice;
	const char *reason;
	int result = isolation_pass(gate->effective, facts, gate->arena, &choice, &reason, denials,
				    error);

	keep_tier(gate, &choice, reason, result < 0, verdicts);
	verdicts->facts = facts & TIER_FACTS_LASTING;
	verdicts->stops = result < 0 && choice.verdict == TIER_STOPS;
	return result;
}

static void note_answer(const struct approval_request *request, enum approval_answer answer,
			const char *why, void *context)
{
	(void)request;
	(void)why;
	*(enum approval_answer *)context = answer;
}

static bool is_granted(const struct wanted *wanted, const struct verdict *verdict)
{
	struct approval_request request = { .verb = wanted ? wanted_verb_name(wanted->verb) :
							     "exec.unclear",
					    .target = wanted ? wanted->target : "",
					    .rule = verdict->rule,
					    .reason = verdict->reason };
	enum approval_answer answer = APPROVAL_DENY;

	return approval_ask(&request, 0, note_answer, &answer) == 0 && answer == APPROVAL_ONCE;
}

/* A yes to one request is none to another. */
static bool are_granted(const struct decision *decision)
{
	const struct verdict_list *verdicts = &decision->verdicts;
	const struct classify *classify = &decision->classify;

	if (verdicts->request == classify->wanted_count)
		return is_granted(NULL, &verdicts->whole);
	if (verdicts->unread.judgement != WANTED_ALLOWS && !is_granted(NULL, &verdicts->unread))
		return false;
	for (size_t i = 0; i < classify->wanted_count; i++)
		if (verdicts->rows[i].judgement == WANTED_ASKS &&
		    !is_granted(&classify->wanted[i], &verdicts->rows[i]))
			return false;
	return true;
}

static int refuse(const struct gate *gate, const struct decision *decision,
		  struct denial_list *denials, struct error *error)
{
	const struct verdict_list *verdicts = &decision->verdicts;
	const struct verdict *whole = &verdicts->whole;
	struct buffer object = { .arena = gate->arena };
	uint32_t before = denials->count;

	if (verdicts->request < decision->classify.wanted_count) {
		const struct wanted *wanted = &decision->classify.wanted[verdicts->request];

		buffer_format(&object, "%s ", wanted_verb_name(wanted->verb));
		buffer_text(&object, wanted->target);
	} else {
		buffer_text(&object, "exec.unclear");
	}
	(void)denial_add(denials,
			 whole->judgement == WANTED_ASKS ? DENIAL_COMMAND_ASKED :
							   DENIAL_COMMAND_DENIED,
			 whole->rule, object.failed ? "" : object.data, true);
	if (denials->count > before)
		denials->items[before].reason = whole->reason;
	return error_set(error, EPERM, "%s: %s", object.failed ? "the command" : object.data,
			 whole->reason);
}

int gate_pass(const struct gate *gate, const struct action *action,
	      struct gate_verdicts *ret_verdicts, struct denial_list *denials, struct error *error)
{
	const struct policy *policy = &gate->effective->policy;
	const struct decide_place place = { .host = &gate->effective->host,
					    .cwd = action->cwd,
					    .policy = policy,
					    .environ = action->environ };
	struct decision decision = { 0 };

	*ret_verdicts = (struct gate_verdicts){ 0 };
	if (!ruling_decides(policy) && policy->tier.change == TIER_KEEP)
		return 0;
	decide_argv(&decision, gate->arena, gate->parser, &place, action->argv, action->argc);
	decide_as_gate(&decision);
	keep_verdicts(gate, action, &decision, ret_verdicts);
	if (decision.verdicts.whole.judgement == WANTED_ALLOWS ||
	    (decision.verdicts.whole.judgement == WANTED_ASKS && are_granted(&decision)))
		return pass_tier(gate, &decision, ret_verdicts, denials, error);
	note_tier(gate, &decision, ret_verdicts);
	return refuse(gate, &decision, denials, error);
}
