#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/request.h"
#include "policy/denial.h"
#include "policy/egress_text.h"

enum { OPTION_JSON = OPTION_OWN };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

struct planning {
	struct request request;
	struct arena *arena;
	bool json;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct planning *planning = context;

	if (option->id == OPTION_JSON) {
		planning->json = true;
		return 0;
	}
	return request_take(&planning->request, planning->arena, option, value, error);
}

static void print_text(const struct effective *effective, const struct error *refusal,
		       struct buffer *buffer)
{
	if (refusal->code)
		buffer_format(buffer, "%s\n\n", refusal->message);
	plan_print(&effective->plan, &effective->policy, buffer);
	buffer_format(buffer, "\ntier %s, rung " TIER_RUNG ": %s\n",
		      tier_name(effective->tier.tier), effective->tier_reason);
}

static void print_json(const struct effective *effective, const struct error *refusal,
		       struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	json_string(&json, "refusal", refusal->code ? refusal->message : NULL);
	plan_json(&effective->plan, &effective->policy, &json, "operations");
	tier_json(&effective->policy, &effective->tier, effective->tier_reason, "tier", &json);
	egress_rules_json(&effective->policy.egress, EGRESS_DENY, &json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static int plan_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct planning planning = { .arena = &arena };
	struct error error = ERROR_NONE, refusal = ERROR_NONE;
	enum effective_failure failure;
	uint32_t absent;
	int first = options_parse(&verb_plan, argc, argv, take, &planning, &error);

	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if (effective_make(&planning.request, &arena, &effective, &failure, NULL, &error) < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	(void)effective_probe(&effective, &absent, &refusal);
	if (planning.json)
		print_json(&effective, &refusal, &text);
	else
		print_text(&effective, &refusal, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the plan could not be printed");
		return 125;
	}
	return refusal.code ? 1 : 0;
}

const struct verb verb_plan = {
	.name = "plan",
	.synopsis = "[-- COMMAND [ARGUMENT...]]",
	.summary = "Print the set-up operations of a run, in order, without executing them.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 printed; 1 a request was refused, or nothing can start on this host, which is "
		"said first; 2 wrong use; 125 bawn itself failed",
	.run = plan_verb,
};
