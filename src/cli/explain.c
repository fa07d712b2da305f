#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/explain_host.h"
#include "cli/request.h"
#include "plan/explain.h"

enum { OPTION_JSON = OPTION_OWN, OPTION_HOST, OPTION_URL };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--host", "NAME:PORT", "tell whether this may be connected to, and why", false, false,
	  OPTION_HOST },
	{ "--url", "URL", "the same of http:// or https://, asked for by GET", false, false,
	  OPTION_URL },
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

struct explaining {
	struct request request;
	struct arena *arena;
	struct explain_target target;
	bool json;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct explaining *explaining = context;

	switch (option->id) {
	case OPTION_JSON:
		explaining->json = explaining->target.json = true;
		return 0;
	case OPTION_HOST:
		explaining->target.host = value;
		return 0;
	case OPTION_URL:
		explaining->target.url = value;
		return 0;
	}
	return request_take(&explaining->request, explaining->arena, option, value, error);
}

static void print_json(const struct effective *effective, const struct explanation *explanation,
		       struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	explain_json(explanation, &json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static int explain(struct explaining *explaining, char **argv, struct buffer *text)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct explanation explanation;
	struct explain_facts facts = { .argv = (const char *const *)argv };
	struct error error = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;
	int result = effective_make(&explaining->request, explaining->arena, &effective, &failure,
				    NULL, &error);

	if (result == 0 && (explaining->target.host || explaining->target.url)) {
		result = explain_host(&effective, &explaining->target, explaining->arena, text,
				      &error);
		if (result < 0)
			complain(error.message);
		return result < 0 ? 2 : result;
	}
	if (result == 0) {
		facts.host_root = effective.host.root;
		facts.hash = effective.hash;
		facts.withheld = effective.withheld;
		facts.withheld_count = effective.withheld_count;
		facts.tracked = effective.secrets.tracked;
		facts.tracked_count = effective.secrets.tracked_count;
		facts.secrets_are_cut = effective.secrets.is_cut;
		facts.limits = &effective.capacity.facts;
		facts.is_unrecorded = effective.unrecorded;
		result = explain_build(&effective.policy, &effective.plan, &facts,
				       explaining->arena, &explanation, &error);
	}
	if (result < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	if (explaining->json)
		print_json(&effective, &explanation, text);
	else
		explain_print(&explanation, text);
	return 0;
}

static int explain_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct explaining explaining = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_explain, argc, argv, take, &explaining, &error);
	int status;

	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if (explaining.target.host && explaining.target.url) {
		complain("--host and --url exclude each other");
		return 2;
	}
	status = explain(&explaining, argv + first, &text);
	if (status <= 1 && (text.failed || fd_write_all(1, text.data, text.length) < 0)) {
		complain("the explanation could not be printed");
		return 125;
	}
	return status;
}

const struct verb verb_explain = {
	.name = "explain",
	.synopsis = "[--host NAME:PORT | --url URL] [-- COMMAND [ARGUMENT...]]",
	.summary = "Tell what a run could read, write, connect to and use up, and as whom.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 a request was refused, or what --host asks about is denied; "
		       "2 wrong use; 125 bawn itself failed",
	.run = explain_verb,
};
