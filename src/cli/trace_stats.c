/*
 * `bawn trace stats`: what is denied, what runs out of time or limits, how long people are asked.
 */
#include "cli/trace_verbs.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/quantity.h"
#include "cli/page.h"
#include "cli/trace_place.h"
#include "trace/filter.h"
#include "trace/gist.h"
#include "trace/scan.h"
#include "trace/tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each list in the text; --json has all. */
#define SHOWN_ROWS 10
/* Of approvals the durations of so many are kept to find the median; more are counted. */
#define APPROVAL_LIMIT 65536u

enum { OPTION_SINCE, OPTION_UNTIL, OPTION_JSON, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--since", "TIME",
	  "count from this time on: RFC 3339, a day, or how long ago, as in 2h or 3d", false, false,
	  OPTION_SINCE },
	{ "--until", "TIME", "count before this time", false, false, OPTION_UNTIL },
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

enum list {
	LIST_STATES,
	LIST_ENDS,
	LIST_CAUSES,
	LIST_CODES,
	LIST_RULES,
	LIST_REMEDIES,
	LIST_TIMEOUTS,
	LIST_LIMITS,
	LIST_WHO,
	LIST_ANSWERS,
	LIST_COUNT,
};

static const struct {
	const char *name, *title;
} lists[LIST_COUNT] = {
	[LIST_STATES] = { "tasks", "tasks" },
	[LIST_ENDS] = { "ends", "actions by end" },
	[LIST_CAUSES] = { "causes", "actions by cause of their end" },
	[LIST_CODES] = { "denial_codes", "denials by code" },
	[LIST_RULES] = { "denial_rules", "denials by rule" },
	[LIST_REMEDIES] = { "remedies", "what would have allowed them" },
	[LIST_TIMEOUTS] = { "timeouts", "commands that ran out of time" },
	[LIST_LIMITS] = { "limits", "limits that were reached" },
	[LIST_WHO] = { "limits_by", "who reached them" },
	[LIST_ANSWERS] = { "approvals", "answers to requests" },
};

struct stats {
	const char *state_path;
	bool json;
	uint64_t now_ns;
	struct filter filter;
	struct arena arena;
	struct tally tallies[LIST_COUNT];
	uint64_t *asked_ms; /* owned */
	size_t asked_count;
	uint64_t approval_total, unanswered;
	struct page page;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct stats *stats = context;

	switch (option->id) {
	case OPTION_SINCE:
		return trace_time_option(option, value, stats->now_ns, &stats->filter.since_ns,
					 error);
	case OPTION_UNTIL:
		return trace_time_option(option, value, stats->now_ns, &stats->filter.until_ns,
					 error);
	case OPTION_JSON:
		stats->json = true;
		return 0;
	default:
		return trace_state_option(option, value, &stats->state_path, error);
	}
}

static void count(struct stats *stats, enum list list, const struct json_node *name, uint64_t more)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_text(name, TALLY_NAME_BYTES - 8, &text);
	tally_add(&stats->tallies[list], text.length ? text.data : "(none)", more, more);
}

static void take_denial(struct stats *stats, const struct json_node *denial)
{
	uint64_t times = json_tree_unsigned(denial, "count", 1);
	struct buffer CLEANUP_BUFFER rule = { 0 };

	count(stats, LIST_CODES, json_tree_get(denial, "code"), times);
	gist_rule(json_tree_get(denial, "rule"), &rule);
	tally_add(&stats->tallies[LIST_RULES], rule.data ? rule.data : "", times, times);
	if (json_tree_text(denial, "remedy"))
		count(stats, LIST_REMEDIES, json_tree_get(denial, "remedy"), times);
}

/* Of whom: the agent, where --meta tells it, or the user, and its workspace. */
static void take_limit(struct stats *stats, const char *who, const struct json_node *limit)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	count(stats, LIST_LIMITS, limit, 1);
	gist_text(limit, TALLY_NAME_BYTES / 4, &text);
	buffer_format(&text, "  %s", who);
	tally_add(&stats->tallies[LIST_WHO], text.data ? text.data : "", 1, 1);
}

static void take_result(struct stats *stats, const char *who, const struct json_node *body)
{
	const struct json_node *denials = json_tree_get(body, "denials");
	const struct json_node *hits = json_tree_get(body, "limits_reached");
	const struct json_node *argv = json_tree_get(body, "action.argv");
	const char *kind = json_tree_text(body, "end.kind");
	bool is_timeout = kind && strcmp(kind, "timed-out") == 0;
	struct buffer CLEANUP_BUFFER end = { 0 }, command = { 0 };

	gist_end(body, &end);
	tally_add(&stats->tallies[LIST_ENDS], end.data ? end.data : "", 1, 1);
	count(stats, LIST_CAUSES, json_tree_get(body, "cause"), 1);
	for (const struct json_node *item = denials ? denials->first : NULL; item;
	     item = item->next)
		take_denial(stats, item);
	for (const struct json_node *item = hits ? hits->first : NULL; item; item = item->next)
		take_limit(stats, who, json_tree_get(item, "limit"));
	gist_command(argv, TALLY_NAME_BYTES - 8, &command);
	/* of a command that never ran out of time only those are worth a row that once did */
	tally_add(&stats->tallies[LIST_TIMEOUTS], command.data ? command.data : "", is_timeout, 1);
}

static void take_approval(struct stats *stats, const struct json_node *body)
{
	count(stats, LIST_ANSWERS, json_tree_get(body, "answer"), 1);
	stats->approval_total++;
	if (!stats->asked_ms)
		stats->asked_ms = calloc(APPROVAL_LIMIT, sizeof(*stats->asked_ms));
	if (stats->asked_ms && stats->asked_count < APPROVAL_LIMIT)
		stats->asked_ms[stats->asked_count++] = json_tree_unsigned(body, "asked_ms", 0);
}

/* Whose task it is that is read, and which of its actions have a result. */
struct results {
	char who[TALLY_NAME_BYTES];
	struct arena *arena;
	char (*ids)[ACTION_ID_BYTES];
	size_t count;
	struct id_table by_id; /* owned */
};

static bool has_result(const struct results *results, const struct trace_line *line)
{
	char id[ACTION_ID_BYTES] = { 0 };

	if (!line->action.bytes || line->action.length >= sizeof(id))
		return false;
	memcpy(id, line->action.bytes, line->action.length);
	return id_table_find(&results->by_id, results->ids, sizeof(*results->ids), id) != SIZE_MAX;
}

static void keep_result(struct results *results, const struct trace_line *line)
{
	char(*grown)[ACTION_ID_BYTES];

	if (!line->action.bytes || line->action.length >= sizeof(*grown) ||
	    has_result(results, line))
		return;
	grown = arena_push(results->arena, results->ids, results->count, sizeof(*grown));
	if (!grown)
		return;
	results->ids = grown;
	memset(grown[results->count], 0, sizeof(*grown));
	memcpy(grown[results->count], line->action.bytes, line->action.length);
	if (id_table_add(&results->by_id, grown, sizeof(*grown), results->count + 1) == 0)
		results->count++;
}

static void take_line(struct stats *stats, struct results *results, const struct trace_line *line,
		      const struct json_node *body)
{
	if (json_view_is(line->type, "action.result")) {
		take_result(stats, results->who, body);
		keep_result(results, line);
	} else if (json_view_is(line->type, "approval")) {
		take_approval(stats, body);
	} else if (json_view_is(line->type, "denial") && !has_result(results, line)) {
		take_denial(stats, body);
	} else if (json_view_is(line->type, "limit") && !has_result(results, line)) {
		take_limit(stats, results->who, json_tree_get(body, "limit"));
	}
}

static void tell_who(const struct json_node *body, struct buffer *text)
{
	const struct json_node *agent = json_tree_get(body, "meta.agent");
	const struct json_node *place = json_tree_get(body, "workspace");

	if (agent && agent->type == JSON_STRING)
		gist_text(agent, TALLY_NAME_BYTES / 4, text);
	else
		buffer_format(text, "uid %llu",
			      (unsigned long long)json_tree_unsigned(body, "user.uid", 0));
	if (place && place->type == JSON_STRING) {
		buffer_text(text, " in ");
		gist_text(place, TALLY_NAME_BYTES / 2, text);
	}
}

/* The first record of a chain says it, whatever time is asked about. */
static void read_who(struct trace_place *place, int fd, struct results *results)
{
	static const char first[] = "\"type\":\"task.start\"";
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;

	(void)scan_add(&needles, first, sizeof(first) - 1, 0);
	scan_begin(&scan, fd, &needles, 0, 1);
	if (scan_next(&scan, &found) > 0 && trace_place_line(place, &found, &line, &body))
		tell_who(body, &text);
	(void)snprintf(results->who, sizeof(results->who), "%s",
		       text.data && !text.failed ? text.data : "not on record");
}

/* Counts the lines of a chain that hold one of two texts. */
static void read_lines(struct stats *stats, struct trace_place *place, int fd,
		       const char *const types[2], struct results *results)
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int result;

	for (size_t i = 0; i < 2; i++)
		(void)scan_add(&needles, types[i], strlen(types[i]), 0);
	scan_begin(&scan, fd, &needles, 0, 1);
	while ((result = scan_next(&scan, &found)) > 0) {
		if (!found.is_long && !filter_may_match(&stats->filter, found.bytes, found.length))
			continue;
		if (trace_place_line(place, &found, &line, &body) &&
		    filter_matches(&stats->filter, &line, body))
			take_line(stats, results, &line, body);
	}
	if (result < 0)
		trace_complain("%s: %s", place->file.name, error_text(result));
	trace_place_told(place);
}

/*
 * Counts one chain: results first, which tell of denials and limits; then the own records of those,
 * for actions that have no result. Where the task has ended all have one.
 */
static void read_chain(struct stats *stats, struct trace_place *place,
		       const struct catalogue_task *task)
{
	static const char *const results_first[] = { "\"type\":\"action.result\"",
						     "\"type\":\"approval\"" };
	static const char *const then[] = { "\"type\":\"denial\"", "\"type\":\"limit\"" };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct results results = { .arena = &arena };
	int CLEANUP_FD fd = -1;

	if (trace_place_chain(place, task->id, &fd) < 0)
		return;
	read_who(place, fd, &results);
	read_lines(stats, place, fd, results_first, &results);
	if (task->state != CATALOGUE_ENDED)
		read_lines(stats, place, fd, then, &results);
	id_table_free(&results.by_id);
}

static int compare(const void *first, const void *second)
{
	uint64_t one = *(const uint64_t *)first, other = *(const uint64_t *)second;

	return one < other ? -1 : one > other;
}

static uint64_t share_of(const struct stats *stats, unsigned percent)
{
	size_t index = stats->asked_count * percent / 100;

	if (!stats->asked_count)
		return 0;
	return stats->asked_ms[index < stats->asked_count ? index : stats->asked_count - 1];
}

static void print_list(struct stats *stats, enum list list)
{
	const struct tally *tally = &stats->tallies[list];
	struct buffer *text = &stats->page.text;
	size_t shown = 0, rows = 0;

	for (size_t i = 0; i < tally->row_count; i++)
		rows += tally->rows[i].count != 0;
	if (!rows && !tally->others)
		return;
	buffer_format(text, "%s%s%s: %llu\n", page_colour(&stats->page, PAGE_STRONG),
		      lists[list].title, page_colour(&stats->page, PAGE_PLAIN),
		      (unsigned long long)tally->total);
	for (; shown < rows && shown < SHOWN_ROWS; shown++) {
		const struct tally_row *row = &tally->rows[shown];

		buffer_format(text, "  %8llu  %s", (unsigned long long)row->count, row->name);
		if (row->of != row->count)
			buffer_format(text, "  (of %llu)", (unsigned long long)row->of);
		buffer_text(text, "\n");
	}
	if (rows > shown)
		buffer_format(text, "  and %zu more\n", rows - shown);
	if (tally->others)
		buffer_format(text, "  %8llu  others\n", (unsigned long long)tally->others);
}

static void print_asked(struct stats *stats)
{
	static const struct {
		unsigned percent;
		const char *text;
	} shares[] = { { 50, "half within" }, { 90, "nine of ten within" }, { 100, "longest" } };
	const char *separator = "  ";

	if (!stats->asked_count)
		return;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		char told[QUANTITY_TEXT_BYTES];

		quantity_tell_duration(told, share_of(stats, shares[i].percent) * 1000000u, true);
		buffer_format(&stats->page.text, "%s%s %s", separator, shares[i].text, told);
		separator = ", ";
	}
	if (stats->approval_total > stats->asked_count)
		buffer_format(&stats->page.text, " (of the first %zu)", stats->asked_count);
	buffer_text(&stats->page.text, "\n");
}

static void write_lists(struct stats *stats)
{
	struct json json;

	json_begin(&json, &stats->page.text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	for (enum list list = 0; list < LIST_COUNT; list++) {
		const struct tally *tally = &stats->tallies[list];

		json_object(&json, lists[list].name);
		json_unsigned(&json, "total", tally->total);
		json_unsigned(&json, "others", tally->others);
		json_array(&json, "rows");
		for (size_t i = 0; i < tally->row_count && tally->rows[i].count; i++) {
			json_object(&json, NULL);
			json_string(&json, "name", tally->rows[i].name);
			json_unsigned(&json, "count", tally->rows[i].count);
			json_unsigned(&json, "of", tally->rows[i].of);
			json_object_end(&json);
		}
		json_array_end(&json);
		json_object_end(&json);
	}
	json_object(&json, "asked_ms");
	json_unsigned(&json, "median", share_of(stats, 50));
	json_unsigned(&json, "p90", share_of(stats, 90));
	json_unsigned(&json, "most", share_of(stats, 100));
	json_object_end(&json);
	json_object_end(&json);
	buffer_text(&stats->page.text, "\n");
}

static int print(struct stats *stats)
{
	int result;

	for (enum list list = 0; list < LIST_COUNT; list++)
		tally_sort(&stats->tallies[list]);
	if (stats->asked_count)
		qsort(stats->asked_ms, stats->asked_count, sizeof(*stats->asked_ms), compare);
	page_open(&stats->page, !stats->json);
	if (stats->json) {
		write_lists(stats);
	} else {
		for (enum list list = 0; list < LIST_COUNT; list++)
			print_list(stats, list);
		print_asked(stats);
	}
	result = page_close(&stats->page, 0);
	if (result < 0)
		trace_complain("the statistics could not be printed: %s", error_text(result));
	return result < 0 ? 125 : 0;
}

static int run(struct stats *stats, struct trace_place *place)
{
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	int status = trace_place_open(place, stats->state_path);
	size_t counted = 0;

	if (status == 0)
		status = trace_place_catalogue(place, &catalogue);
	if (status)
		return status;
	for (size_t i = 0; i < catalogue.count; i++) {
		const struct catalogue_task *task = &catalogue.tasks[i];
		uint64_t from = task->started_ns, to = task->ended_ns ? task->ended_ns : UINT64_MAX;

		/* what ended before, or began behind, has nothing in between */
		if (from && (from >= stats->filter.until_ns || to < stats->filter.since_ns))
			continue;
		counted++;
		tally_add(&stats->tallies[LIST_STATES], trace_place_state(place, task), 1, 1);
		if (task->has_chain)
			read_chain(stats, place, task);
	}
	if (!counted)
		trace_complain("no task in the trace in that time; `bawn trace ls` lists them");
	return counted ? print(stats) : 1;
}

static int stats_verb(int argc, char **argv)
{
	struct stats stats = { .filter = FILTER_NONE,
			       .now_ns = clock_wall_ns(),
			       .page = PAGE_NONE };
	struct trace_place CLEANUP_TRACE_PLACE place = TRACE_PLACE_NONE;
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_stats, argc, argv, take, &stats, &error);
	int status;

	if (first >= 0 && first < argc)
		first = error_set(&error, EINVAL, "bawn trace stats takes no words, only options");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	for (enum list list = 0; list < LIST_COUNT; list++)
		stats.tallies[list].arena = &stats.arena;
	status = run(&stats, &place);
	for (enum list list = 0; list < LIST_COUNT; list++)
		tally_free(&stats.tallies[list]);
	free(stats.asked_ms);
	arena_free(&stats.arena);
	return status;
}

const struct verb verb_trace_stats = {
	.name = "trace stats",
	.synopsis = "",
	.summary = "Count what was denied and by which rule, timeouts, limits and approvals.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 counted; 1 no task in that time; 2 wrong use; 125 bawn itself failed",
	.run = stats_verb,
};
