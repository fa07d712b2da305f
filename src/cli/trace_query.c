/* `bawn trace query`: the records of all tasks, or one, that are about something. */
#include "cli/trace_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/quantity.h"
#include "cli/page.h"
#include "cli/trace_place.h"
#include "policy/limit.h"
#include "policy/rule.h"
#include "trace/event.h"
#include "trace/filter.h"
#include "trace/gist.h"
#include "trace/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_TASK,
	OPTION_ACTION,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_TYPE,
	OPTION_VERDICT,
	OPTION_RULE,
	OPTION_HOST,
	OPTION_PATH,
	OPTION_EXIT,
	OPTION_LIMIT,
	OPTION_TEXT,
	OPTION_MOST,
	OPTION_COUNT,
	OPTION_JSON,
	OPTION_STATE_DIR,
};

static const struct option options[] = {
	{ "--task", "TASK", "records of this task", false, false, OPTION_TASK },
	{ "--action", "ACTION", "records of this action", false, false, OPTION_ACTION },
	{ "--since", "TIME",
	  "records at or after this time: RFC 3339, a day, or how long ago, as in 2h or 3d", false,
	  false, OPTION_SINCE },
	{ "--until", "TIME", "records before this time", false, false, OPTION_UNTIL },
	{ "--type", "TYPE", "records of this type, as in denial or action.result", false, false,
	  OPTION_TYPE },
	{ "--verdict", "WORD", "verdicts that are this; denials are deny", false, false,
	  OPTION_VERDICT },
	{ "--rule", "RULE", "decided by this rule, or by a flag, as in --read", false, false,
	  OPTION_RULE },
	{ "--host", "HOST", "about this host of the network, or all below it, as in .example.com",
	  false, false, OPTION_HOST },
	{ "--path", "PATH", "about this path or one below it", false, false, OPTION_PATH },
	{ "--exit", "STATUS",
	  "results with this exit status, with any but 0 (failed), or of a kind, as in timed-out",
	  false, false, OPTION_EXIT },
	{ "--limit", "LIMIT", "limits that were reached, by word, as in memory, or any", false,
	  false, OPTION_LIMIT },
	{ "--text", "TEXT", "with this text in any of their strings", false, false, OPTION_TEXT },
	{ "--most", "N", "at most so many records", false, false, OPTION_MOST },
	{ "--count", NULL, "print only how many there are", false, false, OPTION_COUNT },
	{ "--json", NULL, "print the records as they are, a line each", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct query {
	const char *state_path, *task, *action;
	struct filter filter;
	uint64_t now_ns, most, count;
	bool json, only_count, was_relative;
	struct page page;
	struct scan_needles needles;
};

/* Of the ledger's records, beside those of tasks. */
static const char *const ledger_types[] = { "ledger.start", "task.lost", "task.removed",
					    "blob.removed", "decision",	 "decision.end",
					    "head",	    "resumed" };
static const char *const verdicts[] = { "allow", "ask", "deny" };
static const char *const kinds[] = { "failed",	  "exited",	    "signaled", "timed-out",
				     "not-found", "not-executable", "denied" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One of the words, or a complaint with the nearest one, or all where none is near. */
static int take_word(const char *option, const char *value, const char *const *words, size_t count,
		     struct error *error)
{
	const char *near = nearest_word(value, words, count);
	struct buffer CLEANUP_BUFFER all = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], value) == 0)
			return 0;
		buffer_format(&all, "%s%s", i ? ", " : "", words[i]);
	}
	if (near)
		return error_set(error, EINVAL, "option %s %.40s: no such word; %s?", option, value,
				 near);
	return error_set(error, EINVAL, "option %s %.40s: no such word; it is one of %s", option,
			 value, all.data && !all.failed ? all.data : "many");
}

static int take_type(const char *value, struct error *error)
{
	const char *words[EVENT_TYPE_COUNT + COUNT(ledger_types)];

	for (size_t i = 0; i < EVENT_TYPE_COUNT; i++)
		words[i] = event_type_name((enum event_type)i);
	memcpy(words + EVENT_TYPE_COUNT, ledger_types, sizeof(ledger_types));
	return take_word("--type", value, words, COUNT(words), error);
}

static int take_limit(const char *value, struct error *error)
{
	const char *words[LIMIT_COUNT + 1];

	for (size_t i = 0; i < LIMIT_COUNT; i++)
		words[i] = limit_text((enum limit)i)->word;
	words[LIMIT_COUNT] = "any";
	return take_word("--limit", value, words, COUNT(words), error);
}

static int take_exit(struct filter *filter, const char *value, struct error *error)
{
	if (strcmp(value, "failed") == 0) {
		filter->exit = FILTER_EXIT_FAILED;
	} else if (value[0] >= '0' && value[0] <= '9') {
		filter->exit = FILTER_EXIT_STATUS;
		if (quantity_count(value, &filter->exit_status) < 0 || filter->exit_status > 255)
			return error_set(error, EINVAL, "option --exit %.40s: a status is 0 to 255",
					 value);
	} else {
		filter->exit = FILTER_EXIT_KIND;
		filter->exit_kind = value;
		return take_word("--exit", value, kinds, COUNT(kinds), error);
	}
	return 0;
}

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct query *query = context;
	struct filter *filter = &query->filter;
	const char **place = NULL;

	switch (option->id) {
	case OPTION_SINCE:
		return trace_time_option(option, value, query->now_ns, &filter->since_ns, error);
	case OPTION_UNTIL:
		return trace_time_option(option, value, query->now_ns, &filter->until_ns, error);
	case OPTION_EXIT:
		return take_exit(filter, value, error);
	case OPTION_MOST:
		if (quantity_count(value, &query->most) < 0 || !query->most)
			return error_set(error, EINVAL, "option --most %.40s: a count from 1 on",
					 value);
		return 0;
	case OPTION_COUNT:
		query->only_count = true;
		return 0;
	case OPTION_JSON:
		query->json = true;
		return 0;
	case OPTION_TASK:
		place = &query->task;
		break;
	case OPTION_ACTION:
		place = &query->action;
		break;
	case OPTION_TYPE:
		place = &filter->type;
		break;
	case OPTION_VERDICT:
		place = &filter->verdict;
		break;
	case OPTION_RULE:
		place = &filter->rule;
		break;
	case OPTION_HOST:
		place = &filter->host;
		break;
	case OPTION_PATH:
		place = &filter->path;
		break;
	case OPTION_LIMIT:
		place = &filter->limit;
		break;
	case OPTION_TEXT:
		place = &filter->text;
		break;
	default:
		return trace_state_option(option, value, &query->state_path, error);
	}
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	*place = value;
	return option->id == OPTION_TYPE ?
		       take_type(value, error) :
	       option->id == OPTION_VERDICT ?
		       take_word("--verdict", value, verdicts, COUNT(verdicts), error) :
	       option->id == OPTION_LIMIT ? take_limit(value, error) :
					    0;
}

static void put_record(struct query *query, const struct trace_line *line,
		       const struct json_node *body)
{
	struct buffer *text = &query->page.text;

	if (query->json)
		trace_raw_line(line, query->page.is_terminal, text);
	else
		gist_line(line, body, text);
	buffer_text(text, "\n");
}

/* All records of one chain. 0, or the negative errno of the output or of reading. */
static int search(struct query *query, struct trace_place *place, int fd)
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int result = 0;

	scan_begin(&scan, fd, &query->needles, 0, 1);
	while (result == 0 && query->count < query->most) {
		int got = scan_next(&scan, &found);

		if (got < 0)
			trace_complain("%s: %s", place->file.name, error_text(got));
		if (got <= 0)
			break;
		if (!found.is_long && !filter_may_match(&query->filter, found.bytes, found.length))
			continue;
		if (!trace_place_line(place, &found, &line, &body) ||
		    !filter_matches(&query->filter, &line, body))
			continue;
		query->count++;
		if (query->only_count)
			continue;
		put_record(query, &line, body);
		result = page_put(&query->page);
	}
	trace_place_told(place);
	return result;
}

static int search_all(struct query *query, struct trace_place *place,
		      const struct catalogue *catalogue)
{
	int CLEANUP_FD ledger = -1;
	int result = 0;

	ledger = trace_place_ledger(place);
	if (ledger >= 0)
		result = search(query, place, ledger);
	for (size_t i = 0; i < catalogue->count && result == 0; i++) {
		const struct catalogue_task *task = &catalogue->tasks[i];
		int CLEANUP_FD fd = -1;

		if (!task->has_chain ||
		    (query->filter.task && strcmp(task->id, query->filter.task) != 0))
			continue;
		if (trace_place_chain(place, task->id, &fd) == 0)
			result = search(query, place, fd);
	}
	return result;
}

/* The ids that the words begin. Returns the exit status, or 0. */
static int find_ids(struct query *query, struct trace_place *place, struct trace_found *task,
		    struct trace_found *action)
{
	int status = 0;

	if (query->task) {
		status = trace_place_find(place, query->task, false, task);
		query->filter.task = task->task;
	}
	if (query->action && status == 0) {
		status = trace_place_find(place, query->action, true, action);
		if (status == 0 && !action->action[0]) {
			trace_complain("%.40s is a task; --task %.40s", query->action,
				       query->action);
			status = 2;
		}
		query->filter.action = action->action;
		if (!query->task)
			query->filter.task = action->task;
	}
	return status;
}

/*
 * Recorded paths are absolute and have no link in them: what is given otherwise is below the
 * current directory, as it is there or as it would be.
 */
static const char *below_here(struct arena *arena, const char *path)
{
	char here[PATH_LIMIT_BYTES], *real = realpath(path, NULL);
	const char *whole = real ? arena_copy(arena, real) : NULL;

	free(real);
	if (!whole && getcwd(here, sizeof(here)))
		whole = path_clean(arena, here, path);
	return whole ? whole : path;
}

/* What may have been meant by what no record is about; a word that could not be was refused. */
static void tell_none(const struct query *query)
{
	const struct filter *filter = &query->filter;
	const char *rules[RULE_BUILTIN_COUNT], *near;

	if (query->was_relative)
		trace_complain("no record is about %s, or what lies below it", filter->path);
	for (size_t i = 0; i < RULE_BUILTIN_COUNT; i++)
		rules[i] = rule_builtin((enum rule_builtin)i).id;
	near = filter->rule ? nearest_word(filter->rule, rules, COUNT(rules)) : NULL;
	if (filter->rule && near && strcmp(near, filter->rule) != 0)
		trace_complain("no record is of a rule %s; %s?", filter->rule, near);
	else if (filter->rule)
		trace_complain("no record is of a rule %s", filter->rule);
}

static int run(struct query *query, struct trace_place *place)
{
	struct trace_found task = { .task = "" }, action = { .task = "" };
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	int status = trace_place_open(place, query->state_path);
	int result;

	if (status == 0)
		status = find_ids(query, place, &task, &action);
	if (status == 0)
		status = trace_place_catalogue(place, &catalogue);
	if (status)
		return status;
	if (query->filter.path && !path_is_absolute(query->filter.path)) {
		query->filter.path = below_here(&place->arena, query->filter.path);
		query->was_relative = true;
	}
	if (!filter_needles(&query->filter, &place->arena, &query->needles)) {
		trace_complain("the question is too long");
		return 2;
	}
	page_open(&query->page, !query->json && !query->only_count);
	result = search_all(query, place, &catalogue);
	if (query->only_count)
		buffer_format(&query->page.text, "%llu\n", (unsigned long long)query->count);
	result = page_close(&query->page, result);
	if (result < 0)
		trace_complain("the records could not be printed: %s", error_text(result));
	else if (!query->count)
		tell_none(query);
	return result < 0 ? 125 : query->count == 0;
}

static int query_verb(int argc, char **argv)
{
	struct query query = { .filter = FILTER_NONE,
			       .now_ns = clock_wall_ns(),
			       .most = UINT64_MAX,
			       .page = PAGE_NONE };
	struct trace_place CLEANUP_TRACE_PLACE place = TRACE_PLACE_NONE;
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_query, argc, argv, take, &query, &error);

	if (first >= 0 && first < argc)
		first = error_set(
			&error, EINVAL,
			"bawn trace query takes no words, only options; --text %.40s looks "
			"for a text",
			argv[first]);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	return run(&query, &place);
}

const struct verb verb_trace_query = {
	.name = "trace query",
	.synopsis = "",
	.summary = "Print the records that are about a task, time, rule, path, limit and so on.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 there are such records; 1 there is none; 2 wrong use; 125 bawn itself "
		       "failed",
	.run = query_verb,
};
