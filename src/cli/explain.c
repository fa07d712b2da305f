#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/decide.h"
#include "broker/isolation.h"
#include "cli/decision_text.h"
#include "cli/explain_host.h"
#include "cli/explain_path.h"
#include "cli/request.h"
#include "plan/explain.h"

enum { OPTION_JSON = OPTION_OWN, OPTION_HOST, OPTION_URL, OPTION_PATH };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--host", "NAME:PORT", "tell whether this may be connected to, and why", false, false,
	  OPTION_HOST },
	{ "--url", "URL", "the same of http:// or https://, asked for by GET", false, false,
	  OPTION_URL },
	{ "--path", "PATH", "tell what a task may do with this path, and why", false, false,
	  OPTION_PATH },
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

struct explaining {
	struct request request;
	struct arena *arena;
	struct explain_target target;
	const char *path;
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
	case OPTION_PATH:
		explaining->path = value;
		return 0;
	case OPTION_URL:
		explaining->target.url = value;
		return 0;
	}
	return request_take(&explaining->request, explaining->arena, option, value, error);
}

/* What the gate would make of the command; NULL where none is given. */
static const struct decision *decide(struct explaining *explaining,
				     const struct effective *effective, const char *const *argv,
				     size_t argc)
{
	const struct decide_place place = { .host = &effective->host,
					    .cwd = effective->policy.cwd,
					    .policy = &effective->policy };
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	struct decision *decision = argc ? arena_allocate(explaining->arena, sizeof(*decision)) :
					   NULL;

	if (!decision)
		return NULL;
	decide_argv(decision, explaining->arena, &parser, &place, argv, argc);
	decide_as_gate(decision);
	isolation_decide(effective, decision);
	return decision;
}

static void print_text(const struct explanation *explanation, const struct decision *decision,
		       const struct error *refusal, struct buffer *buffer)
{
	if (refusal->code)
		buffer_format(buffer, "%s\n\n", refusal->message);
	explain_print(explanation, buffer);
	if (!decision)
		return;
	buffer_text(buffer, "\nwhat becomes of the command?\n");
	decision_print(decision, buffer);
}

static void print_json(const struct effective *effective, const struct explanation *explanation,
		       const struct decision *decision, const struct error *refusal,
		       struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	json_string(&json, "refusal", refusal->code ? refusal->message : NULL);
	explain_json(explanation, &json);
	if (decision) {
		json_object(&json, "decision");
		decision_json(decision, &json);
		json_object_end(&json);
	}
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

/* --host, --url or --path: an answer of its own, below what keeps a run from starting at all. */
static int answer_target(struct explaining *explaining, const struct effective *effective,
			 const struct error *refusal, struct buffer *text)
{
	struct error error = ERROR_NONE;
	int result = explaining->path ? explain_path(effective, explaining->path, explaining->json,
						     explaining->arena, text, &error) :
					explain_host(effective, &explaining->target,
						     explaining->arena, text, &error);

	if (result < 0) {
		complain(error.message);
		return 2;
	}
	if (!refusal->code)
		return result;
	complain(refusal->message);
	return 1;
}

/* The questions about a run; 1: nothing would start. */
static int answer_all(struct explaining *explaining, const struct effective *effective,
		      const struct explain_facts *facts, const struct error *refusal,
		      struct buffer *text)
{
	const struct decision *decision;
	struct explanation explanation;
	struct error error = ERROR_NONE;
	size_t argc = 0;

	if (explain_build(&effective->policy, &effective->plan, facts, explaining->arena,
			  &explanation, &error) < 0) {
		complain(error.message);
		return 125;
	}
	while (facts->argv[argc])
		argc++;
	decision = decide(explaining, effective, facts->argv, argc);
	if (explaining->json)
		print_json(effective, &explanation, decision, refusal, text);
	else
		print_text(&explanation, decision, refusal, text);
	return refusal->code ? 1 : 0;
}

static int explain(struct explaining *explaining, char **argv, struct buffer *text)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct explain_facts facts = { .argv = (const char *const *)argv };
	struct error error = ERROR_NONE, refusal = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;

	if (effective_make(&explaining->request, explaining->arena, &effective, &failure, NULL,
			   &error) < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	(void)effective_probe(&effective, &facts.absent_layers, &refusal);
	if (explaining->target.host || explaining->target.url || explaining->path)
		return answer_target(explaining, &effective, &refusal, text);
	facts.host_root = effective.host.root;
	facts.hash = effective.hash;
	facts.withheld = effective.withheld;
	facts.withheld_count = effective.withheld_count;
	facts.tracked = effective.secrets.tracked;
	facts.tracked_count = effective.secrets.tracked_count;
	facts.secrets_are_cut = effective.secrets.is_cut;
	facts.limits = &effective.capacity.facts;
	facts.is_unrecorded = effective.unrecorded;
	facts.tier = &effective.tier;
	facts.tier_reason = effective.tier_reason;
	return answer_all(explaining, &effective, &facts, &refusal, text);
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
	if ((explaining.target.host != NULL) + (explaining.target.url != NULL) +
		    (explaining.path != NULL) >
	    1) {
		complain("--host, --url and --path exclude each other");
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
	.synopsis = "[--host NAME:PORT | --url URL | --path PATH] [-- COMMAND [ARGUMENT...]]",
	.summary = "Tell what a run could read, write, connect to and use up, and as whom.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 a request was refused, what --host or --path asks about is "
		       "denied, or nothing can start on this host, which is said first; 2 wrong "
		       "use; 125 bawn itself failed",
	.run = explain_verb,
};
