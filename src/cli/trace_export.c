/* `bawn trace export`: a task or an action for other programs: its lines, OCSF, a recording. */
#include "cli/trace_export.h"

#include "base/error.h"
#include "base/fd.h"
#include "cli/trace_verbs.h"
#include "trace/gist.h"
#include "trace/ocsf.h"
#include "trace/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_BYTES 4096

enum { OPTION_FORMAT, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--format", "FORMAT",
	  "jsonl (the records as they are; the default), ocsf (events of the Open Cybersecurity "
	  "Schema Framework) or asciinema (what was on the screen, to play)",
	  false, false, OPTION_FORMAT },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

static int export_lines(struct export *export);
static int export_ocsf(struct export *export);

static const struct {
	const char *name;
	int (*run)(struct export *export);
} formats[] = { { "jsonl", export_lines },
		{ "ocsf", export_ocsf },
		{ "asciinema", export_recording } };
#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct export *export = context;

	if (option->id != OPTION_FORMAT)
		return trace_state_option(option, value, &export->state_path, error);
	for (export->format = 0; export->format < FORMAT_COUNT; export->format++)
		if (strcmp(formats[export->format].name, value) == 0)
			return 0;
	return error_set(error, EINVAL, "option --format %.40s: jsonl, ocsf or asciinema", value);
}

/* Calls `tell` for each line of the task, or of its action. */
static int each_line(struct export *export,
		     int (*tell)(struct export *export, const struct scan_line *found))
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	char needle[ACTION_ID_BYTES + 16];
	struct scan_line found;
	int CLEANUP_FD fd = -1;
	int result = 0;

	if (trace_place_chain(&export->place, export->found.task, &fd) < 0)
		return 1;
	(void)snprintf(needle, sizeof(needle), "\"action\":\"%s\"", export->found.action);
	if (export->found.action[0])
		(void)scan_add(&needles, needle, strlen(needle), 0);
	scan_begin(&scan, fd, &needles, 0, 1);
	while (result == 0 && (result = scan_next(&scan, &found)) > 0) {
		result = tell(export, &found);
		if (result == 0)
			result = page_put(&export->page);
	}
	trace_place_told(&export->place);
	return result;
}

static int tell_line(struct export *export, const struct scan_line *found)
{
	struct trace_line line = { .raw = { found->bytes, found->length } };

	/*
	 * what is no record goes along, for its reader to judge; only what nobody could hold does
	 * not
	 */
	if (found->is_long) {
		(void)trace_place_envelope(&export->place, found, &line);
		return 0;
	}
	trace_raw_line(&line, export->page.is_terminal, &export->page.text);
	buffer_text(&export->page.text, "\n");
	return 0;
}

static int export_lines(struct export *export)
{
	return each_line(export, tell_line);
}

static void keep(char **place, const char *text)
{
	free(*place);
	*place = text ? strdup(text) : NULL;
}

/* What its events need of the action, read where it was begun: lines of several may alternate. */
static void load_action(struct export *export, const char *id)
{
	const struct dossier_action *action = dossier_find(&export->from.dossier, id);
	struct buffer CLEANUP_BUFFER command = { 0 };
	const struct json_node *body;

	(void)snprintf(export->action, sizeof(export->action), "%s", id);
	keep(&export->command, NULL);
	keep(&export->path, NULL);
	export->context.pid = 0;
	if (action) {
		body = trace_dossier_read(&export->from, action->intent);
		gist_command(json_tree_get(body, "argv"), COMMAND_BYTES, &command);
		keep(&export->command, command.data);
		body = trace_dossier_read(&export->from, action->start);
		keep(&export->path, json_tree_text(body, "executable.path"));
		export->context.pid = json_tree_unsigned(body, "pid", 0);
	}
	export->context.command = export->command;
	export->context.path = export->path;
}

static int tell_event(struct export *export, const struct scan_line *found)
{
	char id[ACTION_ID_BYTES] = { 0 };
	const struct json_node *body;
	struct trace_line line;

	if (!trace_place_envelope(&export->place, found, &line))
		return 0;
	if (line.action.bytes && line.action.length < sizeof(id))
		memcpy(id, line.action.bytes, line.action.length);
	if (strcmp(id, export->action) != 0)
		load_action(export, id);
	if (trace_place_line(&export->place, found, &line, &body))
		(void)ocsf_event(&export->context, &line, body, &export->page.text);
	return 0;
}

static int export_ocsf(struct export *export)
{
	const struct json_node *body;
	int status = trace_dossier_open(&export->from, &export->place, export->found.task,
					export->found.action[0] ? export->found.action : NULL);

	if (status)
		return status;
	body = trace_dossier_read(&export->from, export->from.dossier.task_start);
	export->context.uid = json_tree_unsigned(body, "user.uid", 0);
	return each_line(export, tell_event);
}

static int run(struct export *export, const char *word)
{
	int status = trace_place_open(&export->place, export->state_path);
	int result;

	if (status == 0)
		status = trace_place_find(&export->place, word, true, &export->found);
	if (status)
		return status;
	page_open(&export->page, false);
	result = formats[export->format].run(export);
	status = result > 0 ? result : 0;
	result = page_close(&export->page, result < 0 ? result : 0);
	if (result < 0)
		trace_complain("%s could not be exported: %s", word, error_text(result));
	return result < 0 ? 125 : status;
}

static int export_verb(int argc, char **argv)
{
	struct export export = { .place = TRACE_PLACE_NONE,
				 .page = PAGE_NONE,
				 .from = { .fd = -1 } };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_export, argc, argv, take, &export, &error);
	int status;

	if (first >= 0 && argc - first != 1)
		first = error_set(&error, EINVAL,
				  "bawn trace export takes a task or an action; `bawn trace ls` "
				  "lists them");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = run(&export, argv[first]);
	trace_dossier_close(&export.from);
	free(export.command);
	free(export.path);
	trace_place_close(&export.place);
	return status;
}

const struct verb verb_trace_export = {
	.name = "trace export",
	.synopsis = "TASK|ACTION",
	.summary = "Print the record of a task or an action for other programs.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 no such task or action, or it has no such recording; 2 wrong "
		       "use; 125 bawn itself failed",
	.run = export_verb,
};
