#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/quantity.h"
#include "broker/gate.h"
#include "broker/parser.h"
#include "broker/refusal.h"
#include "broker/report.h"
#include "broker/supervise.h"
#include "cli/artifact.h"
#include "cli/request.h"
#include "trace/recorder.h"
#include "workspace/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_JSON = OPTION_OWN,
	OPTION_STATUS_FD,
	OPTION_QUIET,
	OPTION_NO_SPOOL,
	OPTION_ARTIFACT,
	OPTION_ARTIFACT_DIR,
};

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--json", NULL,
	  "print the structured result on standard output after the command's own "
	  "output",
	  false, false, OPTION_JSON },
	{ "--status-fd", "N", "write the structured result to this descriptor", false, false,
	  OPTION_STATUS_FD },
	{ "--quiet", NULL, "print no denial lines, and no status line on a terminal", false, false,
	  OPTION_QUIET },
	{ "--no-spool", NULL,
	  "pass the output on without keeping it for `bawn logs`; large output costs less then",
	  false, false, OPTION_NO_SPOOL },
	{ "--artifact", "GLOB", ARTIFACT_HELP, true, false, OPTION_ARTIFACT },
	{ "--artifact-dir", "DIR",
	  "where the copies go; default: artifacts/TASK in the state directory", false, true,
	  OPTION_ARTIFACT_DIR },
};

struct run {
	struct request request;
	struct arena *arena;
	int status_fd;
	bool json, quiet, unkept;
	struct artifact_options artifacts;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct run *run = context;

	switch (option->id) {
	case OPTION_JSON:
		run->json = true;
		return 0;
	case OPTION_STATUS_FD:
		return option_status_fd(value, &run->status_fd, error);
	case OPTION_QUIET:
		run->quiet = true;
		return 0;
	case OPTION_NO_SPOOL:
		run->unkept = true;
		return 0;
	case OPTION_ARTIFACT:
		return artifact_add(&run->artifacts, run->arena, value, error);
	case OPTION_ARTIFACT_DIR:
		return artifact_set_path(&run->artifacts, option, value, error);
	default:
		return request_take(&run->request, run->arena, option, value, error);
	}
}

/* False, after a complaint, where a result that was asked for is lost. */
static bool print_result(const struct run *run, const struct result *result)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct json json;
	bool is_whole = true;

	if (!run->json && run->status_fd < 0)
		return true;
	json_begin(&json, &text);
	result_json(result, &json);
	buffer_text(&text, "\n");
	if (text.failed) {
		complain("the structured result could not be made: out of memory");
		return false;
	}
	if (run->status_fd >= 0 && fd_write_all(run->status_fd, text.data, text.length) < 0) {
		complain("the structured result could not be written to --status-fd");
		is_whole = false;
	}
	/* on a line of its own, whatever the command wrote last */
	if (run->json && result->output.ends_open)
		(void)fd_write_all(1, "\n", 1);
	if (run->json && fd_write_all(1, text.data, text.length) < 0) {
		complain("the structured result could not be written to standard output");
		is_whole = false;
	}
	return is_whole;
}

/* Returns the exit status: what was lost must not look like success. */
static int report(const struct run *run, const struct result *result)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	int status;

	if (run->quiet)
		report_failure(result, &text);
	else
		report_lines(result, &text);
	if (text.length && !text.failed)
		(void)fd_write_all(2, text.data, text.length);
	else if (text.failed && result->message)
		complain(result->message);
	status = result_status(result);
	return print_result(run, result) || status ? status : 125;
}

/* A refusal or a failure before there was an action. */
static int refuse(const struct run *run, enum effective_failure failure,
		  const struct effective *effective, char **argv, const struct denial_list *denials,
		  const struct result *judged, const struct error *error)
{
	struct result result = {
		.action = judged->action,
		.policy_hash = judged->policy_hash,
		.tier = judged->tier,
		.tier_reason = judged->tier_reason,
		.end = failure == EFFECTIVE_DENIED ? RESULT_DENIED : RESULT_FAILED,
		.cause = failure == EFFECTIVE_DENIED ? CAUSE_POLICY : CAUSE_BAWN,
		.message = error->message,
		.verdicts = judged->verdicts,
		.verdict_count = judged->verdict_count,
		.denials = denials,
	};

	if (result.end == RESULT_DENIED) {
		refusal_record(effective, &run->request, (const char *const *)argv, denials,
			       &result, run->arena);
		complain(error->message);
	}
	return report(run, &result);
}

/* Where the artifacts go, and whether that is a place for them. */
static int plan_artifacts(const struct run *run, const struct effective *effective,
			  struct collect *ret_collect, struct error *error)
{
	struct collect collect = { .patterns = run->artifacts.patterns,
				   .pattern_count = run->artifacts.count };
	int result = artifact_find_path(&run->artifacts, run->arena, &collect.directory, error);

	if (result < 0 || !collect.pattern_count)
		return result;
	if (!collect.directory)
		collect.directory = arena_format(run->arena, "%s/artifacts/%s",
						 effective->state.path, effective->task);
	if (!collect.directory)
		return error_errno(error, ENOMEM, "the directory of artifacts");
	*ret_collect = collect;
	return collect_check(&collect, &effective->policy, error);
}

/* What the policy's rules make of the command. */
static int pass_gate(const struct run *run, const struct effective *effective,
		     const struct action *action, struct result *result,
		     struct denial_list *denials, enum effective_failure *failure,
		     struct error *error)
{
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	struct gate_verdicts verdicts;
	const struct gate gate = { .effective = effective, .parser = &parser, .arena = run->arena };
	int outcome = gate_pass(&gate, action, &verdicts, denials, error);

	result->verdicts = verdicts.rows;
	result->verdict_count = verdicts.count;
	if (outcome < 0) {
		*failure = EFFECTIVE_DENIED;
		result->action = action;
		result->policy_hash = effective->hash;
		result->tier = verdicts.count ? verdicts.rows[0].tier : NULL;
		result->tier_reason = verdicts.count ? verdicts.rows[0].tier_reason : NULL;
	}
	return outcome;
}

/* Whoever wants JSON from a terminal reads it there by a program, which has no use for the line. */
static bool wants_progress(const struct run *run)
{
	return !run->quiet && !(run->json && isatty(1));
}

static int run_command(struct run *run, int argc, char **argv)
{
	/* large and mostly unused: only what is written to takes memory, and time */
	static struct denial_list denials;
	static struct change_list changes;
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct recorder CLEANUP_RECORDER recorder = RECORDER_NONE;
	struct error error = ERROR_NONE;
	struct event_sink *sink;
	struct result result = { 0 };
	struct action action;
	struct collect artifacts = { 0 };
	enum effective_failure failure;
	int outcome =
		effective_make(&run->request, run->arena, &effective, &failure, &denials, &error);

	if (outcome == 0)
		outcome = request_action(&run->request, &effective, run->arena, argv, argc, &action,
					 &error);
	if (outcome == 0)
		outcome = plan_artifacts(run, &effective, &artifacts, &error);
	if (outcome == 0)
		outcome = pass_gate(run, &effective, &action, &result, &denials, &failure, &error);
	if (outcome == 0)
		outcome = request_record(&effective, run->arena, &recorder, &sink, &error);
	if (outcome < 0)
		return refuse(run, failure, &effective, argv, &denials, &result, &error);
	request_tell_unlanded(&effective);
	if (!run->quiet)
		request_tell_more(&effective);
	(void)supervise(
		&(struct supervise_options){
			.effective = &effective,
			.action = &action,
			.sink = sink,
			.evidence = run->json || run->status_fd >= 0 || sink != &event_null_sink,
			.unkept = run->unkept,
			.verdicts = { .rows = result.verdicts, .count = result.verdict_count },
			.progress = wants_progress(run),
			.changes = &changes,
			.arena = run->arena,
			.artifacts = run->artifacts.count ? &artifacts : NULL,
			.out = 1,
			.err = 2 },
		&denials, &result, &error);
	outcome = report(run, &result);
	/* what failed is told alone */
	if (result.end != RESULT_FAILED)
		request_sign(&effective, &recorder);
	return outcome;
}

static int run_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct run run = { .arena = &arena, .status_fd = -1 };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_run, argc, argv, take, &run, &error);

	if (first < 0 || first >= argc) {
		complain(first < 0 ? error.message :
				     "no command; usage: bawn run [options] -- COMMAND "
				     "[ARGUMENT...]");
		return 125;
	}
	/* the exit gives the arena back at once; in a virtual machine each unmapping is dear */
	exit(run_command(&run, argc - first, argv + first));
}

const struct verb verb_run = {
	.name = "run",
	.synopsis = "-- COMMAND [ARGUMENT...]",
	.summary = "Run one command inside of the wall.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "the command's own; 124 the wall-clock limit; 125 bawn itself failed or was "
		       "used wrongly; 126 the command cannot be executed or was denied before the "
		       "start; 127 it was not found; 128+N it was ended by signal N",
	.run = run_verb,
};
