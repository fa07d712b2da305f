#include "plan/plan.h"

#include "base/buffer.h"
#include "base/json.h"
#include "policy/egress_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum plan_phase phase;
	enum plan_undo undo;
} kinds[PLAN_KIND_COUNT] = {
#define PLAN_OP(name, word, phase, undo) { word, PLAN_##phase, PLAN_UNDO_##undo },
#include "plan/plan.def"
#undef PLAN_OP
};

static const struct {
	uint64_t flag;
	const char *name;
} flags[] = {
	{ PLAN_READ_ONLY, "read-only" }, { PLAN_NO_EXEC, "noexec" },	{ PLAN_DEVICE, "device" },
	{ PLAN_IDMAP, "idmap" },	 { PLAN_OPTIONAL, "if-there" }, { PLAN_EMPTY, "empty" },
	{ PLAN_FILE_KIND, "file" },	 { PLAN_KEPT, "kept" },		{ PLAN_LINK_KIND, "link" },
};

bool plan_is_kept(const struct plan_op *op)
{
	return (op->kind == PLAN_DIRECTORY || op->kind == PLAN_LINK || op->kind == PLAN_FILE ||
		op->kind == PLAN_COPY) &&
	       (op->flags & PLAN_KEPT);
}

const char *plan_kind_name(enum plan_kind kind)
{
	return kinds[kind].name;
}

enum plan_phase plan_kind_phase(enum plan_kind kind)
{
	return kinds[kind].phase;
}

enum plan_undo plan_kind_undo(enum plan_kind kind)
{
	return kinds[kind].undo;
}

const char *plan_phase_name(enum plan_phase phase)
{
	static const char *const names[] = { "host", "box", "enter" };

	return names[phase];
}

static const char *undo_name(enum plan_undo undo)
{
	static const char *const names[] = { "none", "end-of-box", "remove", "release" };

	return names[undo];
}

/* Kinds whose flags field is a number and not a set of plan_flag. */
static bool flags_are_number(enum plan_kind kind)
{
	return kind == PLAN_IDENTITY || kind == PLAN_NESTED_USER || kind == PLAN_LIMIT ||
	       kind == PLAN_AREAS;
}

static bool number_is_mode(enum plan_kind kind)
{
	return kind == PLAN_DIRECTORY || kind == PLAN_AREA_DIRECTORY || kind == PLAN_FILE ||
	       kind == PLAN_AREA_FILE;
}

static bool has_number(const struct plan_op *op)
{
	return op->number || op->kind == PLAN_LANDLOCK_ALLOW || op->kind == PLAN_SECCOMP;
}

static void print_number(const struct plan_op *op, struct buffer *buffer)
{
	static const char *const access[PLAN_ACCESS_COUNT] = {
		"list", "read", "write", "device", "read-data", "write-data"
	};
	static const char *const filters[PLAN_FILTER_COUNT] = { "default", "ptrace", "nested",
								"nested-ptrace", "strict" };

	if (number_is_mode(op->kind))
		buffer_format(buffer, " mode=%04o", (unsigned)op->number);
	else if (op->kind == PLAN_LANDLOCK_ALLOW)
		buffer_format(buffer, " access=%s", access[op->number]);
	else if (op->kind == PLAN_SECCOMP)
		buffer_format(buffer, " filter=%s", filters[op->number]);
	else if (op->kind == PLAN_NAMESPACE)
		buffer_format(buffer, " %s", layer_name(op->layer));
	else if (flags_are_number(op->kind))
		buffer_format(buffer, " %llu %llu", (unsigned long long)op->number,
			      (unsigned long long)op->flags);
	else
		buffer_format(buffer, " number=%llu", (unsigned long long)op->number);
}

void plan_op_print(const struct plan_op *op, struct buffer *buffer)
{
	bool is_file = op->kind == PLAN_FILE || op->kind == PLAN_AREA_FILE;
	const struct {
		const char *name, *text;
	} texts[] = { { "", op->target },
		      { "from=", is_file ? NULL : op->source },
		      { "upper=", op->upper },
		      { "shade=", op->shade } };

	buffer_text(buffer, kinds[op->kind].name);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!texts[i].text || (!texts[i].text[0] && i))
			continue;
		buffer_format(buffer, " %s", texts[i].name);
		buffer_visible(buffer, texts[i].text);
	}
	if (is_file)
		buffer_format(buffer, " (%zu bytes)", op->source ? strlen(op->source) : 0);
	if (has_number(op))
		print_number(op, buffer);
	if (op->state)
		buffer_format(buffer, " state=%016" PRIx64, op->state);
	if (flags_are_number(op->kind))
		return;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (op->flags & flags[i].flag)
			buffer_format(buffer, " %s", flags[i].name);
}

/* What the proxy at the end of the captured connections goes by. */
static void print_rules(const struct policy *policy, struct buffer *buffer)
{
	for (size_t i = 0; i < policy->egress.rule_count; i++) {
		const struct egress_rule *rule = &policy->egress.rules[i];

		buffer_format(buffer, "     proxy  %s ", egress_verdict_word(rule->verdict));
		egress_rule_print(rule, buffer);
		buffer_text(buffer, "  [network proxy; ");
		rule_print(&rule->ref, buffer);
		buffer_text(buffer, "]\n");
	}
}

void plan_print(const struct plan *plan, const struct policy *policy, struct buffer *buffer)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		buffer_format(buffer, "%3zu  %-5s  ", i + 1,
			      plan_phase_name(kinds[op->kind].phase));
		plan_op_print(op, buffer);
		buffer_format(buffer, "  [%s", layer_name(op->layer));
		if (op->source && op->device) {
			buffer_text(buffer, "; ");
			rule_print(&policy->rules[op->rule], buffer);
		}
		buffer_text(buffer, "]\n");
	}
	if (policy->egress.mode == EGRESS_POLICY)
		print_rules(policy, buffer);
}

static void print_flags(const struct plan_op *op, struct json *json)
{
	json_array(json, "flags");
	for (size_t i = 0; !flags_are_number(op->kind) && i < sizeof(flags) / sizeof(flags[0]); i++)
		if (op->flags & flags[i].flag)
			json_string(json, NULL, flags[i].name);
	json_array_end(json);
}

void plan_json(const struct plan *plan, const struct policy *policy, struct json *json,
	       const char *name)
{
	json_array(json, name);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];
		char state[17];

		json_object(json, NULL);
		json_string(json, "phase", plan_phase_name(kinds[op->kind].phase));
		json_string(json, "kind", kinds[op->kind].name);
		json_string(json, "layer", layer_name(op->layer));
		json_string(json, "target", op->target);
		json_string(json, "source", op->source);
		json_string(json, "upper", op->upper);
		json_string(json, "shade", op->shade);
		json_unsigned(json, "number", op->number);
		if (flags_are_number(op->kind))
			json_unsigned(json, "value", op->flags);
		print_flags(op, json);
		if (op->state) {
			(void)snprintf(state, sizeof(state), "%016" PRIx64, op->state);
			json_string(json, "state", state);
		}
		json_string(json, "rule", policy->rules[op->rule].id);
		json_string(json, "undo", undo_name(kinds[op->kind].undo));
		json_object_end(json);
	}
	json_array_end(json);
}
