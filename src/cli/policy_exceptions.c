/* `bawn policy exceptions`: which commands are allowed all the same, by whom, why and how long. */
#include "cli/policy_verbs.h"
#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/effective.h"
#include "cli/request.h"

#include <stdio.h>
#include <time.h>

enum { OPTION_JSON = OPTION_OWN };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

struct listing {
	struct request request;
	struct arena *arena;
	bool json;
};

#define DAY_SECONDS (24 * 60 * 60)

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct listing *listing = context;

	if (option->id == OPTION_JSON) {
		listing->json = true;
		return 0;
	}
	return request_take(&listing->request, listing->arena, option, value, error);
}

/* "2027-03-31" */
static void print_day(uint64_t day, char ret_text[static 16])
{
	time_t seconds = (time_t)(day * DAY_SECONDS);
	struct tm parts = { 0 };

	if (!gmtime_r(&seconds, &parts) || strftime(ret_text, 16, "%Y-%m-%d", &parts) == 0)
		(void)snprintf(ret_text, 16, "?");
}

static void print_row(const struct policy *policy, const struct ruling *row, bool is_over,
		      struct buffer *buffer)
{
	char day[16];

	print_day(row->until, day);
	buffer_visible(buffer, row->text);
	buffer_format(buffer, "\n  %s %s, ", is_over ? "EXPIRED, and so denied: until" : "until",
		      day);
	buffer_visible(buffer, row->label);
	buffer_text(buffer, ": ");
	buffer_visible(buffer, row->note);
	if (row->digest)
		buffer_format(buffer, "\n  of the file with sha256 %s", row->digest);
	buffer_text(buffer, "  [");
	rule_print(&policy->rules[row->rule], buffer);
	buffer_text(buffer, "]\n");
}

static void print_row_json(const struct policy *policy, const struct ruling *row, bool is_over,
			   struct json *json)
{
	char day[16];

	print_day(row->until, day);
	json_object(json, NULL);
	json_string(json, "command", row->text);
	json_string(json, "owner", row->label);
	json_string(json, "reason", row->note);
	json_string(json, "expires", day);
	json_bool(json, "expired", is_over);
	json_string(json, "sha256", row->digest);
	rule_json(&policy->rules[row->rule], "rule", json);
	json_object_end(json);
}

static void print(const struct policy *policy, bool as_json, struct buffer *text)
{
	uint64_t today = (uint64_t)(time(NULL) / DAY_SECONDS);
	struct json json;

	json_begin(&json, text);
	if (as_json) {
		json_object(&json, NULL);
		json_unsigned(&json, "version", 1);
		json_array(&json, "exceptions");
	}
	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];

		if (row->kind != RULING_EXCEPTION)
			continue;
		if (as_json)
			print_row_json(policy, row, row->until < today, &json);
		else
			print_row(policy, row, row->until < today, text);
	}
	if (as_json) {
		json_array_end(&json);
		json_object_end(&json);
		buffer_text(text, "\n");
	} else if (!text->length) {
		buffer_text(text, "no exceptions\n");
	}
}

static int list(struct listing *listing)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;

	if (effective_make(&listing->request, listing->arena, &effective, &failure, NULL, &error) <
	    0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	print(&effective.policy, listing->json, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the exceptions could not be printed");
		return 125;
	}
	return 0;
}

static int exceptions_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct listing listing = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_exceptions, argc, argv, take, &listing, &error);

	if (first < 0 || first < argc) {
		complain(first < 0 ? error.message :
				     "policy exceptions takes no words; which policy is said by "
				     "--policy and --preset");
		return 2;
	}
	return list(&listing);
}

const struct verb verb_policy_exceptions = {
	.name = "policy exceptions",
	.synopsis = "",
	.summary = "List the commands that the policies in force here allow all the same.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 a request was refused; 2 wrong use; 125 bawn itself failed",
	.run = exceptions_verb,
};
