/* `bawn trace ls`: which tasks there were, what they ran, and how that ended. */
#include "cli/trace_verbs.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/quantity.h"
#include "cli/page.h"
#include "cli/trace_place.h"
#include "trace/history.h"
#include "trace/scan.h"
#include "trace/when.h"

#include <errno.h>
#include <string.h>

/* What fits the memory of who asks "what was that?"; --all gives the rest. */
#define NEWEST 30

enum {
	OPTION_JSON,
	OPTION_ALL,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_STATE,
	OPTION_FAILED,
	OPTION_DENIED,
	OPTION_STATE_DIR,
};

static const struct option options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--all", NULL, "all tasks, not only the newest 30", false, false, OPTION_ALL },
	{ "--since", "TIME",
	  "tasks that began at or after this time: RFC 3339, a day, or how long ago, as in "
	  "2h or 3d",
	  false, false, OPTION_SINCE },
	{ "--until", "TIME", "tasks that began before this time", false, false, OPTION_UNTIL },
	{ "--state", "WORD",
	  "tasks that are live, ended, unfinished, lost, removed, missing or foreign", false, false,
	  OPTION_STATE },
	{ "--failed", NULL, "tasks with an action that failed", false, false, OPTION_FAILED },
	{ "--denied", NULL, "tasks with an action that was denied something", false, false,
	  OPTION_DENIED },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct listing {
	const char *state_path, *state;
	bool json, all, failed, denied;
	uint64_t since_ns, until_ns, now_ns;
	struct page page;
	struct json writer;
	size_t shown, left_out;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct listing *listing = context;

	switch (option->id) {
	case OPTION_JSON:
		listing->json = true;
		return 0;
	case OPTION_ALL:
		listing->all = true;
		return 0;
	case OPTION_SINCE:
		return trace_time_option(option, value, listing->now_ns, &listing->since_ns, error);
	case OPTION_UNTIL:
		return trace_time_option(option, value, listing->now_ns, &listing->until_ns, error);
	case OPTION_STATE:
		listing->state = value;
		if (strcmp(value, "live") != 0 && strcmp(value, "unfinished") != 0 &&
		    strcmp(value, "ended") != 0 && strcmp(value, "lost") != 0 &&
		    strcmp(value, "removed") != 0 && strcmp(value, "missing") != 0 &&
		    strcmp(value, "foreign") != 0)
			return error_set(error, EINVAL,
					 "option --state %.40s: live, ended, unfinished, lost, "
					 "removed, missing or foreign",
					 value);
		return 0;
	case OPTION_FAILED:
		listing->failed = true;
		return 0;
	case OPTION_DENIED:
		listing->denied = true;
		return 0;
	default:
		return trace_state_option(option, value, &listing->state_path, error);
	}
}

/* Reads the chain of a task as far as lists need it. */
static void read_history(struct trace_place *place, const struct catalogue_task *task,
			 struct history *history)
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int CLEANUP_FD fd = -1;
	int result;

	if (trace_place_chain(place, task->id, &fd) < 0)
		return;
	history_needles(&needles, 0, task->state == CATALOGUE_ENDED);
	scan_begin(&scan, fd, &needles, 0, 1);
	while ((result = scan_next(&scan, &found)) > 0)
		if (trace_place_line(place, &found, &line, &body) &&
		    !history_take(history, &line, body))
			break;
	if (result < 0)
		trace_complain("%s: %s", place->file.name, error_text(result));
	else if (result > 0)
		trace_complain("%s: too many actions to list; what is shown is a part",
			       place->file.name);
	else if (scan_rest(&scan) && history->is_ended)
		trace_complain("%s: a torn line behind its end", place->file.name);
	trace_place_told(place);
}

static void put_duration(struct buffer *text, uint64_t ns)
{
	char told[QUANTITY_TEXT_BYTES];

	quantity_tell_duration(told, ns, true);
	buffer_text(text, told);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void put_count(struct buffer *text, uint64_t count, const char *word)
{
	if (count)
		buffer_format(text, ", %llu %s%s", (unsigned long long)count, word, plural(count));
}

static bool is_failed(const struct history_action *action)
{
	return action->end && action->status != 0;
}

static unsigned depth_of(const struct history *history, const struct history_action *action)
{
	unsigned depth = 0;

	/* a tree that is deeper is drawn no further to the right */
	while (depth < 8 && (action = history_parent(history, action)))
		depth++;
	return depth;
}

static void print_action(struct listing *listing, const struct history *history,
			 const struct history_action *action, const char *state)
{
	struct buffer *text = &listing->page.text;
	struct page *page = &listing->page;
	char when[WHEN_TEXT_BYTES];
	bool is_bad = is_failed(action);

	when_tell(action->started_ns, when);
	buffer_format(text, "%*s%s  %s  ", (int)(2 + 2 * depth_of(history, action)), "", action->id,
		      when + strlen("2026-11-30 "));
	if (action->end) {
		put_duration(text, action->duration_us * 1000);
		buffer_format(text, "  %s%s%s", page_colour(page, is_bad ? PAGE_BAD : PAGE_GOOD),
			      action->end, page_colour(page, PAGE_PLAIN));
		if (action->cause && strcmp(action->cause, "command") != 0)
			buffer_format(text, " (%s)", action->cause);
	} else {
		buffer_text(text, strcmp(state, "live") == 0 ? "runs" : "no result on record");
	}
	if (action->limit)
		buffer_format(text, ", limit: %s", action->limit);
	if (action->denials)
		buffer_text(text, page_colour(page, PAGE_NOTICE));
	put_count(text, action->denials, "denial");
	if (action->network_denials)
		buffer_format(text, " (%llu network)", (unsigned long long)action->network_denials);
	if (action->denials)
		buffer_text(text, page_colour(page, PAGE_PLAIN));
	put_count(text, action->changes, "change");
	buffer_format(text, "  %s\n", action->command ? action->command : "(no command on record)");
}

static void print_task(struct listing *listing, const struct catalogue_task *task,
		       const char *state, const struct history *history)
{
	uint64_t started_ns = task->started_ns ? task->started_ns : history->started_ns;
	uint64_t ended_ns = task->ended_ns ? task->ended_ns : history->last_ns;
	struct buffer *text = &listing->page.text;
	char when[WHEN_TEXT_BYTES];

	when_tell(started_ns, when);
	buffer_format(text, "%s%s%s  %s  ", page_colour(&listing->page, PAGE_STRONG), task->id,
		      page_colour(&listing->page, PAGE_PLAIN), when);
	if (listing->now_ns > started_ns) {
		put_duration(text, listing->now_ns - started_ns);
		buffer_text(text, " ago  ");
	}
	if (strcmp(state, "ended") == 0 && ended_ns > started_ns) {
		buffer_text(text, "took ");
		put_duration(text, ended_ns - started_ns);
	} else {
		buffer_text(text, state);
	}
	if (history->kind)
		buffer_format(text, "  %s%s%s", history->kind, history->workspace[0] ? "  " : "",
			      history->workspace);
	if (history->meta && history->meta[0])
		buffer_format(text, "  %s", history->meta);
	buffer_text(text, "\n");
	for (size_t i = 0; i < history->count; i++)
		print_action(listing, history, &history->actions[i], state);
	if (history->action_total > history->count)
		buffer_format(text, "  and %llu more actions\n",
			      (unsigned long long)(history->action_total - history->count));
}

static void write_time(struct json *json, const char *name, uint64_t ns)
{
	char text[CLOCK_TEXT_BYTES];

	clock_text(ns, text);
	json_string(json, name, ns ? text : NULL);
}

static void write_action(struct json *json, const struct history_action *action)
{
	json_object(json, NULL);
	json_string(json, "action", action->id);
	json_string(json, "parent", action->parent[0] ? action->parent : NULL);
	json_string(json, "command", action->command);
	write_time(json, "started", action->started_ns);
	json_string(json, "end", action->end);
	json_string(json, "cause", action->cause);
	if (action->end) {
		json_unsigned(json, "status", action->status);
		json_unsigned(json, "duration_us", action->duration_us);
	} else {
		json_null(json, "status");
		json_null(json, "duration_us");
	}
	json_string(json, "limit", action->limit);
	json_unsigned(json, "denials", action->denials);
	json_unsigned(json, "network_denials", action->network_denials);
	json_unsigned(json, "changes", action->changes);
	json_object_end(json);
}

static void write_task(struct json *json, const struct catalogue_task *task, const char *state,
		       const struct history *history)
{
	json_object(json, NULL);
	json_string(json, "task", task->id);
	json_string(json, "state", state);
	write_time(json, "started", task->started_ns ? task->started_ns : history->started_ns);
	write_time(json, "ended", task->ended_ns);
	json_string(json, "kind", history->kind);
	json_string(json, "workspace", history->workspace);
	json_unsigned(json, "action_total", history->action_total);
	json_array(json, "actions");
	for (size_t i = 0; i < history->count; i++)
		write_action(json, &history->actions[i]);
	json_array_end(json);
	json_object_end(json);
}

static bool is_wanted(const struct listing *listing, const struct history *history)
{
	bool has_failed = false, was_denied = false;

	for (size_t i = 0; i < history->count; i++) {
		has_failed |= is_failed(&history->actions[i]);
		was_denied |= history->actions[i].denials != 0;
	}
	return (!listing->failed || has_failed) && (!listing->denied || was_denied);
}

/* One task: 0, or the negative errno of the output. */
static int list_task(struct listing *listing, struct trace_place *place,
		     const struct catalogue_task *task)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct history CLEANUP_HISTORY history = { .arena = &arena };
	const char *state = trace_place_state(place, task);
	uint64_t started_ns;

	if (listing->state && strcmp(state, listing->state) != 0)
		return 0;
	if (task->started_ns &&
	    (task->started_ns < listing->since_ns || task->started_ns >= listing->until_ns))
		return 0;
	if (!listing->all && listing->shown == NEWEST && !listing->failed && !listing->denied) {
		listing->left_out++;
		return 0;
	}
	if (task->has_chain)
		read_history(place, task, &history);
	started_ns = task->started_ns ? task->started_ns : history.started_ns;
	if (started_ns < listing->since_ns || started_ns >= listing->until_ns ||
	    !is_wanted(listing, &history))
		return 0;
	if (!listing->all && listing->shown == NEWEST) {
		listing->left_out++;
		return 0;
	}
	listing->shown++;
	if (listing->json)
		write_task(&listing->writer, task, state, &history);
	else
		print_task(listing, task, state, &history);
	/* JSON is one value, written in pieces as well */
	return page_put(&listing->page);
}

static int list(struct listing *listing, struct trace_place *place,
		const struct catalogue *catalogue)
{
	struct buffer *text = &listing->page.text;
	int result = 0;

	page_open(&listing->page, !listing->json);
	if (listing->json) {
		json_begin(&listing->writer, text);
		json_object(&listing->writer, NULL);
		json_unsigned(&listing->writer, "version", 1);
		json_array(&listing->writer, "tasks");
	}
	for (size_t i = catalogue->count; i && result == 0; i--)
		result = list_task(listing, place, &catalogue->tasks[i - 1]);
	if (listing->json) {
		json_array_end(&listing->writer);
		json_unsigned(&listing->writer, "left_out", listing->left_out);
		json_object_end(&listing->writer);
		buffer_text(text, "\n");
	} else if (listing->left_out) {
		buffer_format(text, "%zu more task%s; --all lists them\n", listing->left_out,
			      plural(listing->left_out));
	}
	result = page_close(&listing->page, result);
	if (result < 0)
		trace_complain("the list could not be printed: %s", error_text(result));
	else if (!listing->shown && !listing->json)
		trace_complain("no task in the trace%s",
			       listing->state || listing->failed || listing->denied ||
					       listing->since_ns ||
					       listing->until_ns != UINT64_MAX ?
				       " that is wanted" :
				       "; `bawn run` records them");
	return result < 0 ? 125 : !listing->shown;
}

static int ls_verb(int argc, char **argv)
{
	struct listing listing = { .until_ns = UINT64_MAX,
				   .now_ns = clock_wall_ns(),
				   .page = PAGE_NONE };
	struct trace_place CLEANUP_TRACE_PLACE place = TRACE_PLACE_NONE;
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_ls, argc, argv, take, &listing, &error);
	int status;

	if (first >= 0 && first < argc)
		first = error_set(&error, EINVAL,
				  "bawn trace ls takes no words; `bawn trace show %.40s` tells of "
				  "a task",
				  argv[first]);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = trace_place_open(&place, listing.state_path);
	if (status == 0)
		status = trace_place_catalogue(&place, &catalogue);
	return status ? status : list(&listing, &place, &catalogue);
}

const struct verb verb_trace_ls = {
	.name = "trace ls",
	.synopsis = "",
	.summary = "List recorded tasks, the newest first, and what they ran.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 listed; 1 no such task; 2 wrong use; 125 bawn itself failed",
	.run = ls_verb,
};
