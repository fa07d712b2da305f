#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/battery.h"
#include "cli/request.h"

enum { OPTION_JSON = OPTION_OWN, OPTION_QUICK };

#define OUTCOME_COLUMN 72u

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--quick", NULL, "take 10 s at most, with fewer attempts where there are many paths",
	  false, false, OPTION_QUICK },
};

struct verifying {
	struct request request;
	struct arena *arena;
	bool json, quick;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct verifying *verifying = context;

	switch (option->id) {
	case OPTION_JSON:
		verifying->json = true;
		return 0;
	case OPTION_QUICK:
		verifying->quick = true;
		return 0;
	default:
		return request_take(&verifying->request, verifying->arena, option, value, error);
	}
}

static void print_row(const struct battery_row *row, struct buffer *buffer)
{
	size_t start = buffer->length, width;

	buffer_format(buffer, "%s  %-17s  ", row->passed ? "PASS" : "FAIL", layer_name(row->layer));
	if (row->attempt != ATTEMPT_COUNT)
		buffer_format(buffer, "%s: ", row->works ? "works" : "refused");
	buffer_visible(buffer, row->outcome);
	width = buffer->length - start;
	buffer_format(buffer, "%*s%s", (int)(width < OUTCOME_COLUMN ? OUTCOME_COLUMN - width : 2),
		      "", battery_name(row));
	for (size_t i = 0; i < row->shown; i++) {
		buffer_text(buffer, " ");
		buffer_visible(buffer, row->arguments[i]);
	}
	buffer_text(buffer, "\n");
}

static void print_text(const struct effective *effective, const struct battery *battery,
		       struct buffer *buffer)
{
	buffer_format(buffer, "%-25s%-*s%s\n", "      layer that answers", (int)OUTCOME_COLUMN - 25,
		      "claim: outcome", "attempt");
	for (size_t i = 0; i < battery->count; i++)
		print_row(&battery->rows[i], buffer);
	buffer_format(buffer, "\npolicy %s\n%zu passed, %zu failed\n", effective->hash,
		      battery->count - battery->failed, battery->failed);
}

static void print_json(const struct effective *effective, const struct battery *battery,
		       struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	json_array(&json, "attempts");
	for (size_t i = 0; i < battery->count; i++) {
		const struct battery_row *row = &battery->rows[i];

		json_object(&json, NULL);
		json_string(&json, "attempt", battery_name(row));
		json_array(&json, "arguments");
		for (size_t j = 0; j < row->shown; j++)
			json_string(&json, NULL, row->arguments[j]);
		json_array_end(&json);
		json_string(&json, "layer", layer_name(row->layer));
		json_string(&json, "claim", row->works ? "works" : "refused");
		json_string(&json, "outcome", row->outcome);
		json_integer(&json, "errno", row->answered ? -row->code : 0);
		json_unsigned(&json, "duration_us", row->duration_us);
		json_bool(&json, "passed", row->passed);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_unsigned(&json, "passed", battery->count - battery->failed);
	json_unsigned(&json, "failed", battery->failed);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static int verify(struct verifying *verifying, struct buffer *text)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	char *argv[] = { (char *)(uintptr_t)BATTERY_PROGRAM, NULL };
	enum effective_failure failure = EFFECTIVE_BROKEN;
	struct error error = ERROR_NONE;
	struct battery battery = { 0 };
	struct action action;
	int result =
		battery_prepare(&verifying->request, verifying->quick, verifying->arena, &error);

	if (result == 0)
		result = effective_make(&verifying->request, verifying->arena, &effective, &failure,
					NULL, &error);
	if (result == 0)
		result = request_action(&verifying->request, &effective, verifying->arena, argv, 1,
					&action, &error);
	if (result == 0)
		result = battery_run(&effective, &effective, &action, verifying->arena, &battery,
				     &error);
	if (result < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	if (verifying->json)
		print_json(&effective, &battery, text);
	else
		print_text(&effective, &battery, text);
	return battery.failed ? 1 : 0;
}

static int verify_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct verifying verifying = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_verify, argc, argv, take, &verifying, &error);
	int status;

	if (first < 0 || first < argc) {
		complain(first < 0 ? error.message : "bawn verify takes no command");
		return 2;
	}
	status = verify(&verifying, &text);
	if (text.failed || (text.data && fd_write_all(1, text.data, text.length) < 0)) {
		complain("the table could not be printed");
		return 125;
	}
	return status;
}

const struct verb verb_verify = {
	.name = "verify",
	.synopsis = "",
	.summary = "Start a real box and measure from inside whether it is what explain claims.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 all as claimed; 1 something differs, or a request was refused; 2 wrong "
		       "use; 125 bawn itself failed",
	.run = verify_verb,
};
