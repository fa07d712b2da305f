#include "broker/summary.h"

#include "base/buffer.h"
#include "base/json.h"
#include "broker/effective.h"
#include "policy/egress_text.h"
#include "policy/policy.h"

/* A summary names what is there; what is hidden is not betrayed by listing it. */
static bool is_told(enum path_class class)
{
	return class == PATH_READ || class == PATH_WRITE || class == PATH_CACHE ||
	       class == PATH_PROTECT || class == PATH_DEVICE || class == PATH_COPY ||
	       class == PATH_GIT || class == PATH_STAGE || class == PATH_PROGRAM;
}

static const char *kept(const struct buffer *buffer)
{
	return buffer->failed ? NULL : buffer->data;
}

static const char *workspace_word(uint32_t flags)
{
	return flags & POLICY_READ_ONLY ?
		       "read-only" :
	       flags & POLICY_STAGE ?
		       "writable; what you change waits for a person to apply it" :
	       flags & POLICY_EMPTY ?
		       "yours alone, empty at the start; it is gone when the task ends" :
	       flags & POLICY_EPHEMERAL ? "writable; what you change is gone when the task ends" :
					  "writable";
}

/* What is hidden is not betrayed by its rule. */
static const char *const told_rulings[RULING_KIND_COUNT] = {
	[RULING_EXEC_ALLOW] = "allowed program",   [RULING_EXEC_DENY] = "denied program",
	[RULING_EXEC_SET] = "denied programs",	   [RULING_ASK] = "asked for",
	[RULING_ASK_METHOD] = "asked for",	   [RULING_TARGET_HOST] = "asked for, label",
	[RULING_TARGET_PATH] = "asked for, label", [RULING_PROTECT] = "protected",
	[RULING_EXCEPTION] = "exception",
};

static void tell_rulings(const struct policy *policy, struct buffer *text)
{
	buffer_format(
		text,
		"Command lines are looked at before they start (approval: %s). What is asked "
		"for is answered for by a person; while nobody can be asked it is denied, with "
		"status 126. To ask, tell the person outside, who can make an exception in the "
		"policy:\n",
		ruling_approval_word(policy->approval));
	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];

		if (!told_rulings[row->kind])
			continue;
		buffer_format(text, "  %s", told_rulings[row->kind]);
		if (row->label && row->kind != RULING_EXCEPTION) {
			buffer_byte(text, ' ');
			buffer_visible(text, row->label);
		}
		buffer_text(text, ": ");
		buffer_visible(text, row->text);
		buffer_byte(text, '\n');
	}
	buffer_byte(text, '\n');
}

static void rulings_json(const struct policy *policy, struct json *json)
{
	json_string(json, "approval", ruling_approval_word(policy->approval));
	json_array(json, "rules");
	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];

		if (!told_rulings[row->kind])
			continue;
		json_object(json, NULL);
		json_string(json, "what", told_rulings[row->kind]);
		json_string(json, "text", row->text);
		if (row->kind != RULING_EXCEPTION && row->label)
			json_string(json, "label", row->label);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The least that the task has started with. */
static const char *capture_word(const struct policy *policy)
{
	return policy->flags & POLICY_CAPTURE_ALL ? "all" : "ports";
}

/* What is denied by name is not betrayed. */
static void tell_network(const struct policy *policy, struct buffer *text)
{
	const struct egress_policy *egress = &policy->egress;

	buffer_format(text, "What may be connected to (network.capture: %s):\n",
		      capture_word(policy));
	for (size_t i = 0; i < egress->rule_count; i++) {
		if (egress->rules[i].verdict < EGRESS_ASK)
			continue;
		buffer_format(text, "  %-5s  ", egress_verdict_word(egress->rules[i].verdict));
		egress_rule_print(&egress->rules[i], text);
		buffer_byte(text, '\n');
	}
	buffer_byte(text, '\n');
}

const char *summary_text(const struct effective *effective, struct arena *arena)
{
	const struct policy *policy = &effective->policy;
	struct buffer text = { .arena = arena };

	buffer_format(&text,
		      "You are inside of a bawn box.\n"
		      "policy: %s\n"
		      "isolation: %s (%s)\n"
		      "workspace (%s): ",
		      effective->hash, tier_name(effective->tier.tier), effective->tier_reason,
		      workspace_word(policy->flags));
	buffer_visible(&text, policy->workspace);
	buffer_text(&text, "\nprivate and gone at the end: ");
	buffer_visible(&text, policy->home);
	buffer_format(&text,
		      ", /tmp, /var/tmp, /dev/shm\n"
		      "network: %s\n"
		      "files that are named like secrets (.env, private keys): %s\n"
		      "namespaces inside: %s\nptrace inside: %s\n"
		      "A refusal here is policy and not a fault: do not retry it by other ways.\n"
		      "Only the person outside can allow more, by a flag of `bawn run`.\n\n",
		      policy->egress.mode == EGRESS_NONE ?
			      "loopback only; names are not resolved, nothing outside can be "
			      "reached, by no way" :
			      "what the policy's rules allow, by name and port; anything else is "
			      "denied and says why",
		      policy->flags & POLICY_SHOW_SECRETS ? "shown" : "hidden",
		      policy->flags & POLICY_NESTED_USERNS ? "allowed" : "refused",
		      policy->flags & POLICY_ALLOW_PTRACE ? "allowed" : "refused");
	if (policy->flags & POLICY_EXEC_STRICT)
		buffer_text(
			&text,
			"Programs: only those of the list below (program) can be executed, or "
			"loaded as code. What you make or download cannot, wherever it lies.\n\n");
	if (policy->egress.mode == EGRESS_POLICY)
		tell_network(policy, &text);
	if (ruling_decides(policy))
		tell_rulings(policy, &text);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *path = &policy->view.paths[i];

		if (!is_told(path->class))
			continue;
		buffer_format(&text, "%-8s", path_class_name(path->class));
		buffer_visible(&text, path->target);
		buffer_text(&text, "\n");
	}
	return kept(&text);
}

const char *summary_json(const struct effective *effective, struct arena *arena)
{
	const struct policy *policy = &effective->policy;
	struct buffer text = { .arena = arena };
	struct json json;

	json_begin(&json, &text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", POLICY_VERSION);
	json_string(&json, "policy", effective->hash);
	tier_json(policy, &effective->tier, effective->tier_reason, "isolation", &json);
	json_string(&json, "workspace", policy->workspace);
	json_string(&json, "home", policy->home);
	json_string(&json, "network", policy->egress.mode == EGRESS_NONE ? "loopback" : "policy");
	json_string(&json, "network_capture", capture_word(policy));
	egress_rules_json(&policy->egress, EGRESS_ASK, &json);
	json_bool(&json, "nested_userns", policy->flags & POLICY_NESTED_USERNS);
	json_bool(&json, "ptrace", policy->flags & POLICY_ALLOW_PTRACE);
	json_bool(&json, "exec_strict", policy->flags & POLICY_EXEC_STRICT);
	if (ruling_decides(policy))
		rulings_json(policy, &json);
	json_array(&json, "paths");
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *path = &policy->view.paths[i];

		if (!is_told(path->class))
			continue;
		json_object(&json, NULL);
		json_string(&json, "class", path_class_name(path->class));
		json_string(&json, "path", path->target);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buffer_text(&text, "\n");
	return kept(&text);
}
