/*
 * `bawn trace redact`: removes kept bytes for good; the chain stays valid, and the ledger says
 * why.
 */
#include "cli/trace_verbs.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/confirm.h"
#include "cli/trace_place.h"
#include "trace/blob.h"
#include "trace/retain.h"
#include "trace/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_STREAM, OPTION_REASON, OPTION_DRY_RUN, OPTION_YES, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--stream", "NAME", "what was kept of stdin, stdout or stderr of an action", false, false,
	  OPTION_STREAM },
	{ "--reason", "TEXT", "why, for the ledger; required", false, false, OPTION_REASON },
	{ "--dry-run", NULL, "say what would be removed, and remove nothing", false, false,
	  OPTION_DRY_RUN },
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

#define LIMIT_BLOBS 64

struct redact {
	const char *state_path, *stream, *reason;
	bool dry_run, yes;
	struct trace_place place;
	char task[ACTION_ID_BYTES];
	char blobs[LIMIT_BLOBS][SHA256_HEX_BYTES];
	size_t count;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct redact *redact = context;

	switch (option->id) {
	case OPTION_STREAM:
		if (strcmp(value, "stdin") != 0 && strcmp(value, "stdout") != 0 &&
		    strcmp(value, "stderr") != 0)
			return error_set(error, EINVAL,
					 "option --stream %.40s: stdin, stdout or stderr", value);
		redact->stream = value;
		return 0;
	case OPTION_REASON:
		redact->reason = value;
		return 0;
	case OPTION_DRY_RUN:
		redact->dry_run = true;
		return 0;
	case OPTION_YES:
		redact->yes = true;
		return 0;
	default:
		return trace_state_option(option, value, &redact->state_path, error);
	}
}

static int parse(int argc, char **argv, struct redact *redact)
{
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_redact, argc, argv, take, redact, &error);
	int words = argc - first;

	if (first < 0) {
		complain(error.message);
		return first;
	}
	if (redact->stream ? words != 1 : words < 2 || words > LIMIT_BLOBS + 1)
		first = error_set(&error, EINVAL,
				  "bawn trace redact takes a task and its blobs, or --stream NAME "
				  "and an action");
	else if (!redact->reason || !redact->reason[0])
		first = error_set(
			&error, EINVAL,
			"--reason TEXT is missing: whoever finds the bytes gone will ask");
	if (first < 0)
		complain(error.message);
	return first;
}

static bool is_listed(const struct redact *redact, const char *blob)
{
	for (size_t i = 0; i < redact->count; i++)
		if (strcmp(redact->blobs[i], blob) == 0)
			return true;
	return false;
}

/* A blob that was named, which may be told by its beginning as long as that is enough. */
static int add_blob(struct redact *redact, const char *blob)
{
	if (!blob_is_name(blob)) {
		trace_complain("%.70s is no name of a blob: 64 digits, as `bawn trace show` prints",
			       blob);
		return 2;
	}
	if (!is_listed(redact, blob))
		memcpy(redact->blobs[redact->count++], blob, SHA256_HEX_BYTES);
	return 0;
}

/* The blob of an action's stream, from its record. */
static int find_stream(struct redact *redact, const char *action)
{
	static const char type[] = "\"type\":\"stream\"";
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int CLEANUP_FD fd = -1;
	bool is_told = false;

	if (trace_place_chain(&redact->place, redact->task, &fd) < 0)
		return 1;
	(void)scan_add(&needles, type, sizeof(type) - 1, 0);
	(void)scan_add(&needles, action, strlen(action), 1);
	scan_begin(&scan, fd, &needles, 0, 1);
	while (scan_next(&scan, &found) > 0) {
		const char *stream, *blob;

		if (!trace_place_line(&redact->place, &found, &line, &body) ||
		    !json_view_is(line.type, "stream") || !line.action.bytes ||
		    !json_view_is(line.action, action))
			continue;
		stream = json_tree_text(body, "stream");
		blob = json_tree_text(body, "blob");
		if (!stream || strcmp(stream, redact->stream) != 0)
			continue;
		is_told = true;
		if (blob && redact->count < LIMIT_BLOBS && add_blob(redact, blob) != 0)
			return 1;
	}
	if (!redact->count)
		trace_complain(is_told ? "nothing was kept of %s of action %s" :
					 "there is no record of %s of action %s",
			       redact->stream, action);
	return redact->count ? 0 : 1;
}

static int choose(struct redact *redact, char **words)
{
	struct trace_found found;
	int status = trace_place_find(&redact->place, words[0], redact->stream != NULL, &found);

	if (status)
		return status;
	memcpy(redact->task, found.task, sizeof(redact->task));
	if (redact->stream && !found.action[0]) {
		trace_complain("%s is a task; --stream is about an action of one", found.task);
		return 2;
	}
	if (redact->stream)
		return find_stream(redact, found.action);
	for (words++; *words && status == 0; words++)
		status = add_blob(redact, *words);
	return status;
}

static int remove_all(struct redact *redact)
{
	struct chain_origin origin;
	int status = 0;

	chain_origin_gather(&redact->place.arena, &origin);
	for (size_t i = 0; i < redact->count; i++) {
		struct error error = ERROR_NONE;
		int result = retain_remove_blob(&redact->place.store, &origin, redact->task,
						redact->blobs[i], redact->reason, &error);

		if (result == 0) {
			printf("%s removed\n", redact->blobs[i]);
			continue;
		}
		complain(error.message);
		status = result == -ENOENT ? (status ? status : 1) : 125;
		if (status == 125)
			break;
	}
	(void)fflush(stdout);
	return status;
}

static int redact_blobs(struct redact *redact, char **words)
{
	char question[128];
	int status = choose(redact, words);

	if (status)
		return status;
	if (redact->dry_run || !redact->yes)
		for (size_t i = 0; i < redact->count; i++)
			printf("%s\n", redact->blobs[i]);
	(void)fflush(stdout);
	if (redact->dry_run)
		return 0;
	(void)snprintf(question, sizeof(question), "Remove %s%zu blob%s of task %s for good?",
		       redact->count == 1 ? "this " : "these ", redact->count,
		       redact->count == 1 ? "" : "s", redact->task);
	return confirm(question, redact->yes, &status) ? remove_all(redact) : status;
}

static int redact_verb(int argc, char **argv)
{
	struct redact redact = { 0 };
	int first = parse(argc, argv, &redact), status;

	if (first < 0)
		return 2;
	status = trace_place_open(&redact.place, redact.state_path);
	if (status)
		return status;
	if (redact.place.is_empty) {
		complain("there is no trace yet");
		status = 1;
	} else {
		status = redact_blobs(&redact, argv + first);
	}
	trace_place_close(&redact.place);
	return status;
}

const struct verb verb_trace_redact = {
	.name = "trace redact",
	.synopsis = "TASK BLOB... | --stream NAME ACTION",
	.summary = "Remove kept bytes for good; the chain stays valid, the ledger says why.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 done; 1 no such task or blob, or the answer was no; 2 wrong use, or nobody "
		"to ask; 125 bawn itself failed",
	.run = redact_verb,
};
