/*
 * `bawn policy test`: the examples that stand in policies (`tests:`), each decided as a start here
 * would decide it. Runs nothing, so that a policy may lie in the workspace: the text that is about
 * to be adopted, or the repository of policies.
 */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/binding.h"
#include "broker/decide.h"
#include "broker/isolation.h"
#include "broker/effective.h"
#include "broker/path_access.h"
#include "cli/explain_host.h"
#include "cli/policy_name.h"

#include <errno.h>
#include <string.h>

/* Thousands take a second; a text can be made so that each takes its parser's whole time. */
#define POLICY_TEST_LIMIT_S 10u

#define NS_PER_S UINT64_C(1000000000)

enum { OPTION_JSON, OPTION_WORKSPACE, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--workspace", "DIR",
	  "the directory that relative paths are below, and that is shown writable; default: the "
	  "git root around the current directory, or that directory",
	  false, false, OPTION_WORKSPACE },
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct testing {
	const char *workspace, *state_path;
	bool json;
	struct json out;
	struct buffer text;
	size_t held, failed;
	uint64_t deadline_ns; /* of all, by the monotonic clock */
};

/* One example, and what became of it. */
struct tried {
	const struct document_statement *test;
	const char *verdict, *reason, *rule_wanted;
	struct rule_ref rule;
	bool holds;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct testing *testing = context;

	(void)error;
	if (option->id == OPTION_JSON)
		testing->json = true;
	else if (option->id == OPTION_WORKSPACE)
		testing->workspace = value;
	else
		testing->state_path = value;
	return 0;
}

static void try_command(const struct effective *effective, struct parser *parser,
			struct arena *arena, struct tried *tried)
{
	const struct decide_place place = { .host = &effective->host,
					    .cwd = effective->policy.cwd,
					    .policy = &effective->policy };
	const struct document_statement *test = tried->test;
	const char *text = document_detail(test, "command");
	struct decision *decision = arena_allocate(arena, sizeof(*decision));
	const char **argv = arena_array(arena, test->detail_count + 1, sizeof(*argv));
	size_t argc = 0;

	if (!decision || !argv)
		return;
	for (size_t i = 0; i < test->detail_count; i++)
		if (strcmp(test->details[i].field, "argv") == 0)
			argv[argc++] = test->details[i].text;
	if (text)
		decide_shell(decision, arena, parser, &place, text, strlen(text));
	else
		decide_argv(decision, arena, parser, &place, argv, argc);
	decide_as_gate(decision);
	isolation_decide(effective, decision);
	tried->verdict = verdict_word(decision->verdicts.whole.judgement);
	tried->reason = decision->verdicts.whole.reason;
	tried->rule = decision->verdicts.whole.rule;
}

static int try_host(const struct effective *effective, struct arena *arena, struct tried *tried,
		    struct error *error)
{
	const struct explain_target target = { .host = document_detail(tried->test, "host"),
					       .url = document_detail(tried->test, "url") };
	struct explain_asking asking = { .target = &target, .arena = arena };
	int result = explain_host_decide(&effective->policy.egress, &asking, error);

	if (result < 0)
		return result;
	tried->verdict = explain_host_verdict(asking.answer.verdict);
	tried->rule = egress_answer_rule(&asking.answer);
	tried->reason = asking.answer.special ? asking.answer.special :
			asking.answer.needs   ? "as far as it is known before it is tried" :
						"";
	return 0;
}

static int try_path(const struct effective *effective, struct arena *arena, struct tried *tried,
		    struct error *error)
{
	const char *access = document_detail(tried->test, "access");
	struct path_access found;
	int result = path_access_find(effective, document_detail(tried->test, "path"), arena,
				      &found, error);
	bool writes = access && strcmp(access, "write") == 0;

	if (result < 0)
		return result;
	tried->verdict = (writes ? found.writes : found.reads) ? "allow" : "deny";
	tried->rule = found.access.rule;
	tried->reason = found.refusal ? "the file's modes do not let the caller" :
					access_text(found.access.way);
	return 0;
}

/* What cannot be asked about (a host that is none) holds for nothing, and what nobody tried. */
static void try_it(const struct testing *testing, const struct effective *effective,
		   struct parser *parser, struct arena *arena, struct tried *tried)
{
	const struct document_statement *test = tried->test;
	struct error error = ERROR_NONE;
	int result = 0;

	tried->rule_wanted = document_detail(test, "rule");
	tried->rule = rule_builtin(RULE_RUN_ALLOWED);
	if (clock_monotonic_ns() > testing->deadline_ns)
		tried->reason = "not tried: the time for all examples together is used up";
	else if (document_detail(test, "path"))
		result = try_path(effective, arena, tried, &error);
	else if (document_detail(test, "host") || document_detail(test, "url"))
		result = try_host(effective, arena, tried, &error);
	else
		try_command(effective, parser, arena, tried);
	if (result < 0)
		tried->reason = arena_copy(arena, error.message);
	if (!tried->reason)
		tried->reason = "out of memory";
	tried->holds = tried->verdict && strcmp(tried->verdict, test->text) == 0 &&
		       (!tried->rule_wanted || strcmp(tried->rule_wanted, tried->rule.id) == 0);
}

/* "command git push", "argv git push" */
static void print_subject(const struct document_statement *test, struct buffer *text)
{
	static const char *const words[] = { "command", "argv", "host", "url", "access", "path" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		bool is_first = true;

		for (size_t j = 0; j < test->detail_count; j++) {
			if (strcmp(test->details[j].field, words[i]) != 0)
				continue;
			if (is_first)
				buffer_format(text, " %s", words[i]);
			is_first = false;
			buffer_byte(text, ' ');
			buffer_visible(text, test->details[j].text);
		}
	}
}

static void print_failure(const struct tried *tried, struct buffer *text)
{
	const struct document_statement *test = tried->test;

	buffer_visible(text, test->rule.file);
	buffer_format(text, ":%u:%u: expected %s", test->rule.line, test->column, test->text);
	if (tried->rule_wanted) {
		buffer_text(text, " by ");
		buffer_visible(text, tried->rule_wanted);
	}
	buffer_format(text, ", got %s", tried->verdict ? tried->verdict : "no answer");
	if (tried->verdict) {
		buffer_text(text, " by ");
		rule_print(&tried->rule, text);
	}
	buffer_byte(text, ':');
	print_subject(test, text);
	if (tried->reason[0]) {
		buffer_text(text, " (");
		buffer_visible(text, tried->reason);
		buffer_text(text, ")");
	}
	buffer_text(text, "\n");
}

static void put_json(const struct tried *tried, struct json *json)
{
	const struct document_statement *test = tried->test;
	struct buffer CLEANUP_BUFFER subject = { 0 };

	print_subject(test, &subject);
	json_object(json, NULL);
	json_string(json, "file", test->rule.file);
	json_unsigned(json, "line", test->rule.line);
	json_unsigned(json, "column", test->column);
	json_string(json, "subject", subject.length ? subject.data + 1 : "");
	json_string(json, "expected", test->text);
	json_string(json, "expected_rule", tried->rule_wanted);
	json_string(json, "verdict", tried->verdict);
	rule_json(&tried->rule, "rule", json);
	json_string(json, "reason", tried->reason);
	json_bool(json, "holds", tried->holds);
	json_object_end(json);
}

/* Those of the named policy, or with none of all that hold here. */
static size_t try_all(struct testing *testing, const struct effective *effective, bool is_named)
{
	const struct policy_layers *layers = &effective->binding->layers;
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	size_t count = 0;

	for (size_t i = 0; i < layers->count; i++) {
		const struct document *document = &layers->rows[i].stack.document;

		if (is_named && layers->rows[i].authority != AUTHORITY_CALLER)
			continue;
		for (size_t j = 0; j < document->count; j++) {
			/* of one example: a policy may have thousands */
			struct arena CLEANUP_ARENA arena = { 0 };
			struct tried tried = { .test = &document->statements[j] };

			if (document->statements[j].key != DOCUMENT_TESTS)
				continue;
			count++;
			try_it(testing, effective, &parser, &arena, &tried);
			testing->held += tried.holds;
			testing->failed += !tried.holds;
			if (testing->json)
				put_json(&tried, &testing->out);
			else if (!tried.holds)
				print_failure(&tried, &testing->text);
		}
	}
	return count;
}

/* word: a file or preset; NULL: what holds here. Returns the exit status. */
static int test_policy(struct testing *testing, const char *word)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct request request = { .workspace = testing->workspace,
				   .state_path = testing->state_path,
				   .only_decides = true };
	struct error error = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;
	size_t before = testing->failed, count;

	if (word && policy_name_is_preset(word))
		request.preset = word;
	else
		request.policy_path = word;
	if (effective_make(&request, &arena, &effective, &failure, NULL, &error) < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED || error.code == -EINVAL ? 1 : 125;
	}
	count = try_all(testing, &effective, word);
	if (testing->json)
		return 0;
	buffer_visible(&testing->text, word ? word : "the policies that hold here");
	if (count)
		buffer_format(&testing->text, ": %zu of %zu tests hold\n",
			      count - (testing->failed - before), count);
	else
		buffer_text(&testing->text, ": no tests\n");
	return 0;
}

static int test_verb(int argc, char **argv)
{
	struct testing testing = { .deadline_ns =
					   clock_monotonic_ns() + POLICY_TEST_LIMIT_S * NS_PER_S };
	struct error error = ERROR_NONE;
	int first, status = 0;

	options_first(&verb_policy_test, argc, argv);
	first = options_parse(&verb_policy_test, argc, argv, take, &testing, &error);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if (testing.json) {
		json_begin(&testing.out, &testing.text);
		json_object(&testing.out, NULL);
		json_unsigned(&testing.out, "version", 1);
		json_array(&testing.out, "tests");
	}
	if (first == argc)
		status = test_policy(&testing, NULL);
	for (int i = first; i < argc && status < 2; i++) {
		int now = test_policy(&testing, argv[i]);

		status = now > status ? now : status;
	}
	if (testing.json) {
		json_array_end(&testing.out);
		json_unsigned(&testing.out, "held", testing.held);
		json_unsigned(&testing.out, "failed", testing.failed);
		json_object_end(&testing.out);
		buffer_text(&testing.text, "\n");
	}
	if (testing.text.failed || fd_write_all(1, testing.text.data, testing.text.length) < 0) {
		complain("what became of the tests could not be printed");
		status = 125;
	}
	buffer_free(&testing.text);
	return status ? status : testing.failed != 0;
}

const struct verb verb_policy_test = {
	.name = "policy test",
	.synopsis = "[FILE|PRESET...]",
	.summary = "Hold the examples in policies (tests:) against what a start here decides.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 all hold; 1 one does not, or there is no such policy; 2 wrong use; 125 bawn "
		"itself failed, or the policy needs what this build lacks",
	.run = test_verb,
};
