/* `bawn trace show`: what a reviewer reads of a task, or one action of it, in a minute. */
#include "cli/trace_show.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/quantity.h"
#include "cli/trace_verbs.h"
#include "trace/gist.h"
#include "trace/when.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Of a kind of rows in a text for people; --json and query have all of them. */
#define SHOWN_ROWS 12
#define SHOWN_ACTIONS 200
#define ALL_BYTES 65536

enum { OPTION_JSON, OPTION_OUTPUT, OPTION_ALL, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--output", NULL, "print what was written to the streams as well, as far as it is kept",
	  false, false, OPTION_OUTPUT },
	{ "--all", NULL, "all paths and rows, however many", false, false, OPTION_ALL },
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct show *show = context;

	switch (option->id) {
	case OPTION_JSON:
		show->json = true;
		return 0;
	case OPTION_OUTPUT:
		show->with_output = true;
		return 0;
	case OPTION_ALL:
		show->all = true;
		return 0;
	default:
		return trace_state_option(option, value, &show->state_path, error);
	}
}

/* A label and the text behind it; the caller ends the line. */
static struct buffer *row(struct show *show, const char *label)
{
	buffer_format(&show->page.text, "  %s%-10s%s ", page_colour(&show->page, PAGE_FAINT), label,
		      page_colour(&show->page, PAGE_PLAIN));
	return &show->page.text;
}

static void end_row(struct show *show)
{
	buffer_text(&show->page.text, "\n");
}

static void put(struct buffer *text, const struct json_node *body, const char *path)
{
	gist_text(json_tree_get(body, path), ALL_BYTES, text);
}

static void put_time(struct buffer *text, const struct trace_line *line)
{
	char when[WHEN_TEXT_BYTES];
	uint64_t ns;

	if (!when_parse(line->time.bytes, line->time.length, &ns))
		return;
	when_tell(ns, when);
	buffer_text(text, when);
}

static void put_words(struct show *show, struct buffer *text, const struct json_node *list)
{
	size_t count = 0;

	for (const struct json_node *item = list ? list->first : NULL; item; item = item->next)
		if (count++ < SHOWN_ROWS || show->all) {
			buffer_text(text, count > 1 ? " " : "");
			gist_text(item, ALL_BYTES, text);
		}
	if (count > SHOWN_ROWS && !show->all)
		buffer_format(text, " and %zu more", count - SHOWN_ROWS);
	if (!count)
		buffer_text(text, "none");
}

static void print_end(struct show *show)
{
	const struct json_node *end = trace_dossier_read(&show->from, show->from.dossier.task_end);
	struct buffer *text = row(show, "ended");

	if (!end) {
		buffer_format(text, "no end on record: %s", show->state);
	} else {
		put_time(text, &show->from.line);
		buffer_text(text, ", cause ");
		put(text, end, "cause");
	}
	if (end && json_tree_unsigned(end, "lost_records", 0)) {
		buffer_format(text, ", %llu records could not be written",
			      (unsigned long long)json_tree_unsigned(end, "lost_records", 0));
		show_missing(show, "records could not be written", NULL);
	}
	end_row(show);
}

/* Who, where, under which policy; keeps what the questions need of it. */
static void print_task(struct show *show)
{
	const struct json_node *body =
		trace_dossier_read(&show->from, show->from.dossier.task_start);
	struct page *page = &show->page;
	struct buffer *text = &page->text;

	buffer_format(text, "%stask %s%s  %s\n", page_colour(page, PAGE_STRONG), show->found.task,
		      page_colour(page, PAGE_PLAIN), show->state);
	if (!body) {
		buffer_text(text, "  its first record is not there\n");
		show_missing(show, "the task's first record is not there", NULL);
		return;
	}
	show_keep_start(show, body);
	text = row(show, "began");
	put_time(text, &show->from.line);
	buffer_text(text, " on ");
	gist_view(show->from.line.host, ALL_BYTES, text);
	buffer_text(text, ", bawn ");
	put(text, body, "bawn");
	end_row(show);
	text = row(show, "who");
	buffer_text(text, show->identity);
	end_row(show);
	text = row(show, "where");
	put(text, body, "workspace");
	buffer_text(text, json_tree_text(body, "workspace") ? " (" : "no workspace (");
	put(text, body, "kind");
	buffer_text(text, ")");
	end_row(show);
	text = row(show, "tier");
	put(text, body, "tier");
	if (json_tree_text(body, "rung"))
		buffer_text(text, ", rung ");
	put(text, body, "rung");
	buffer_text(text, ": ");
	put(text, body, "tier_reason");
	end_row(show);
	if (json_tree_text(body, "policy")) {
		text = row(show, "policy");
		put(text, body, "policy");
		end_row(show);
	}
	text = row(show, "withheld");
	put_words(show, text, json_tree_get(body, "withheld_environment"));
	end_row(show);
	if (json_tree_count(json_tree_get(body, "meta"))) {
		text = row(show, "meta");
		gist_meta(json_tree_get(body, "meta"), text);
		end_row(show);
	}
	print_end(show);
}

/* An object: values where they are on record; or a list of names. */
static void print_variables(struct show *show, const struct json_node *environment)
{
	struct buffer *text = row(show, "variables");

	for (const struct json_node *item = environment ? environment->first : NULL; item;
	     item = item->next) {
		buffer_text(text, item == environment->first ? "" : " ");
		if (environment->type == JSON_OBJECT)
			buffer_visible(text, item->name);
		else
			gist_text(item, ALL_BYTES, text);
		if (environment->type == JSON_OBJECT && item->type == JSON_STRING && show->all) {
			buffer_text(text, "=");
			gist_text(item, ALL_BYTES, text);
		}
	}
	if (!environment || !environment->first)
		buffer_text(text, "none");
	end_row(show);
}

static void print_intent(struct show *show, const struct dossier_action *action)
{
	const struct json_node *body = trace_dossier_read(&show->from, action->intent);
	struct buffer *text = &show->page.text;

	buffer_format(text, "\n%saction %s%s", page_colour(&show->page, PAGE_STRONG), action->id,
		      page_colour(&show->page, PAGE_PLAIN));
	if (action->parent[0]) {
		buffer_text(text, " of ");
		buffer_visible(text, action->parent);
	}
	if (!body) {
		buffer_text(text, "  its intent is not on record\n");
		show_missing(show, "no intent on record", action->id);
		return;
	}
	buffer_text(text, "  ");
	put_time(text, &show->from.line);
	end_row(show);
	text = row(show, "command");
	gist_command(json_tree_get(body, "argv"), ALL_BYTES, text);
	end_row(show);
	if (json_tree_text(body, "cwd")) {
		text = row(show, "in");
		put(text, body, "cwd");
		end_row(show);
	}
	print_variables(show, json_tree_get(body, "environment"));
	if (json_tree_count(json_tree_get(body, "meta"))) {
		text = row(show, "meta");
		gist_meta(json_tree_get(body, "meta"), text);
		end_row(show);
	}
}

static bool is_denied(struct show *show, const struct dossier_action *action)
{
	const char *kind =
		json_tree_text(trace_dossier_read(&show->from, action->result), "end.kind");

	return kind && strcmp(kind, "denied") == 0;
}

static void print_executable(struct show *show, const struct dossier_action *action)
{
	/* the digest may have come later, in a record of its own */
	const struct json_node *file = trace_dossier_read(&show->from, action->executable);
	struct buffer *text = row(show, "program");

	if (!file)
		file = json_tree_get(trace_dossier_read(&show->from, action->start), "executable");
	if (!file || file->type != JSON_OBJECT) {
		buffer_text(text, "not on record");
		/* what was denied before its start is none */
		if (!is_denied(show, action))
			show_missing(show, "no program on record", action->id);
	} else {
		put(text, file, "path");
		if (json_tree_text(file, "sha256")) {
			buffer_text(text, "  sha256 ");
			put(text, file, "sha256");
		} else {
			buffer_text(text, "  no digest: ");
			put(text, file, "unhashed");
			show_missing(show, "no digest of the program", action->id);
		}
	}
	end_row(show);
}

/* "exact: a, b; inferred: c": the layers by how well they were in force. */
static void print_layers(struct show *show, const struct json_node *layers)
{
	static const char *const grades[] = { "exact", "polled", "inferred", "absent" };
	struct buffer *text;

	if (!layers || !layers->first)
		return;
	text = row(show, "enforced");
	for (size_t i = 0; i < sizeof(grades) / sizeof(grades[0]); i++) {
		const char *separator = "";

		for (const struct json_node *item = layers->first; item; item = item->next) {
			const char *grade = json_tree_text(item, "enforcement");

			if (!grade || strcmp(grade, grades[i]) != 0)
				continue;
			if (!separator[0])
				buffer_format(text, "%s%s: ", i ? "; " : "", grades[i]);
			buffer_text(text, separator);
			separator = ", ";
			put(text, item, "layer");
		}
	}
	end_row(show);
}

static void print_items(struct show *show, uint32_t number, enum dossier_kind kind,
			const char *label)
{
	const struct dossier *dossier = &show->from.dossier;
	size_t count = 0;

	for (size_t i = 0; i < dossier->item_count; i++) {
		const struct json_node *body;

		if (dossier->items[i].action != number || dossier->items[i].kind != kind)
			continue;
		if (++count > SHOWN_ROWS && !show->all)
			continue;
		body = trace_dossier_read(&show->from, dossier->items[i].place);
		if (!body)
			continue;
		gist_body(&show->from.line, body, row(show, label));
		end_row(show);
	}
	if (count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, label), "and %zu more", count - SHOWN_ROWS);
		end_row(show);
	}
}

static void print_list(struct show *show, const struct json_node *list, const char *label,
		       void (*gist)(const struct json_node *, struct buffer *),
		       enum page_colour colour)
{
	size_t count = 0;

	for (const struct json_node *item = list ? list->first : NULL; item; item = item->next) {
		struct buffer *text;

		if (++count > SHOWN_ROWS && !show->all)
			continue;
		text = row(show, label);
		buffer_text(text, page_colour(&show->page, colour));
		gist(item, text);
		buffer_text(text, page_colour(&show->page, PAGE_PLAIN));
		end_row(show);
	}
	if (count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, label), "and %zu more", count - SHOWN_ROWS);
		end_row(show);
	}
}

static void tell_change(const struct json_node *change, struct buffer *text)
{
	gist_change(change, ALL_BYTES, text);
}

/* Denials stand together by their code: the second column sorts them. */
static void print_denials(struct show *show, const struct json_node *denials)
{
	size_t count = 0;

	for (const struct json_node *first = denials ? denials->first : NULL; first;
	     first = first->next) {
		const char *code = json_tree_text(first, "code");
		const struct json_node *earlier = denials->first;

		/* told with the first of its code */
		while (earlier != first &&
		       strcmp(code ? code : "", json_tree_text(earlier, "code") ?
							json_tree_text(earlier, "code") :
							"") != 0)
			earlier = earlier->next;
		if (earlier != first)
			continue;
		for (const struct json_node *item = first; item; item = item->next) {
			const char *other = json_tree_text(item, "code");

			if (strcmp(code ? code : "", other ? other : "") != 0 ||
			    (++count > SHOWN_ROWS && !show->all))
				continue;
			gist_denial(item, row(show, "denied"));
			end_row(show);
		}
	}
	if (count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, "denied"), "and %zu more", count - SHOWN_ROWS);
		end_row(show);
	}
}

/* What it connected to; what it was not let to is among the denials. */
static void print_targets(struct show *show, const struct json_node *targets)
{
	size_t count = 0;

	for (const struct json_node *item = targets ? targets->first : NULL; item;
	     item = item->next) {
		const char *verdict = json_tree_text(item, "verdict");

		if ((verdict && strcmp(verdict, "deny") == 0) ||
		    (++count > SHOWN_ROWS && !show->all))
			continue;
		gist_target(item, row(show, "connected"));
		end_row(show);
	}
	if (count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, "connected"), "and %zu more", count - SHOWN_ROWS);
		end_row(show);
	}
}

static void print_result(struct show *show, const struct dossier_action *action, uint32_t number)
{
	const struct json_node *body = trace_dossier_read(&show->from, action->result);
	const struct dossier_place from = action->result.length ? action->result : action->start;
	char took[QUANTITY_TEXT_BYTES];
	struct buffer *text;

	if (!body) {
		print_items(show, number, DOSSIER_LIMIT, "reached");
		print_items(show, number, DOSSIER_DENIAL, "denied");
		print_items(show, number, DOSSIER_CHANGE, "changed");
		body = trace_dossier_read(&show->from, from);
		print_layers(show, json_tree_get(body, "layers"));
		text = row(show, "result");
		buffer_format(text, "none on record (%s)", show->state);
		end_row(show);
		show_missing(show, "no result on record", action->id);
		return;
	}
	print_layers(show, json_tree_get(body, "layers"));
	print_list(show, json_tree_get(body, "limits_reached"), "reached", gist_limit, PAGE_NOTICE);
	print_targets(show, json_tree_get(body, "network.targets"));
	print_denials(show, json_tree_get(body, "denials"));
	print_list(show, json_tree_get(body, "changes"), "changed", tell_change, PAGE_PLAIN);
	quantity_tell_duration(took, json_tree_unsigned(body, "usage.duration_us", 0) * 1000, true);
	text = row(show, "result");
	buffer_text(text,
		    page_colour(&show->page,
				json_tree_unsigned(body, "status", 1) ? PAGE_BAD : PAGE_GOOD));
	gist_end(body, text);
	buffer_format(text, "%s, cause ", page_colour(&show->page, PAGE_PLAIN));
	put(text, body, "cause");
	buffer_format(text, ", took %s", took);
	if (json_tree_text(body, "message")) {
		buffer_text(text, ": ");
		put(text, body, "message");
	}
	end_row(show);
}

static void print_streams(struct show *show, const struct dossier_action *action)
{
	for (size_t i = 0; i < action->stream_count; i++) {
		const struct json_node *body = trace_dossier_read(&show->from, action->streams[i]);
		char size[QUANTITY_TEXT_BYTES];
		struct show_stream stream;
		struct buffer *text;

		if (!body)
			continue;
		show_stream_read(show, action, body, &stream);
		quantity_tell_size(size, stream.bytes);
		text = row(show, stream.name);
		buffer_format(text, "%s, ", size);
		/* there is none of what has secrets in it */
		if (stream.sha256 && stream.sha256[0])
			buffer_format(text, "sha256 %s, ", stream.sha256);
		buffer_text(text, stream.told);
		end_row(show);
		if (show->with_output && stream.is_kept)
			show_stream_output(show, &stream);
	}
}

static void print_action(struct show *show, uint32_t number)
{
	const struct dossier_action *action = &show->from.dossier.actions[number];

	print_intent(show, action);
	print_executable(show, action);
	print_items(show, number, DOSSIER_VERDICT, "verdict");
	print_items(show, number, DOSSIER_APPROVAL, "approval");
	print_result(show, action, number);
	print_streams(show, action);
	print_items(show, number, DOSSIER_NOTE, "note");
}

static void print_questions(struct show *show)
{
	struct buffer *text = &show->page.text;
	struct trace_reach reach;

	trace_reach_read(&show->place, show->policy_kept, &reach);
	buffer_format(text, "\n%swhat it could do%s\n", page_colour(&show->page, PAGE_STRONG),
		      page_colour(&show->page, PAGE_PLAIN));
	if (show->was_refused)
		buffer_text(row(show, "nothing"), "it was refused before there was a policy\n");
	else
		trace_reach_print(&reach, show->all, text);
	buffer_text(row(show, "identity"), show->identity ? show->identity : "not on record");
	end_row(show);
	if (!reach.is_known && !show->was_refused)
		show_missing(show, reach.why, NULL);
	if (show->from.dossier.is_cut)
		show_missing(show, "there are more records than are told here", NULL);
	text = row(show, "on record");
	if (!show->gap_count)
		buffer_text(text, "all of it can be reconstructed");
	else
		buffer_text(text, "not all of it can be reconstructed:");
	end_row(show);
	for (size_t i = 0; i < show->gap_count && i < SHOW_LIMIT_GAPS; i++) {
		text = row(show, "");
		buffer_text(text, "- ");
		buffer_visible(text, show->gaps[i] ? show->gaps[i] : "");
		end_row(show);
	}
	if (show->gap_count > SHOW_LIMIT_GAPS) {
		buffer_format(row(show, ""), "- and %zu more", show->gap_count - SHOW_LIMIT_GAPS);
		end_row(show);
	}
}

static void print_late_note(struct show *show, const struct trace_line *line,
			    const struct json_node *body, void *context)
{
	size_t *count = context;
	struct buffer *text;

	if (++*count > SHOWN_ROWS && !show->all)
		return;
	text = row(show, "noted");
	put_time(text, line);
	buffer_text(text, "  ");
	gist_body(line, body, text);
	end_row(show);
}

/* What was said of the task after its end. */
static void print_late_notes(struct show *show)
{
	size_t count = 0;

	show_late(show, "note", print_late_note, &count);
	if (count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, "noted"), "and %zu more", count - SHOWN_ROWS);
		end_row(show);
	}
}

struct decisions_text {
	struct show_decisions decisions;
	size_t count;
};

static void print_outcome(struct show *show, const struct trace_line *line,
			  const struct json_node *body, void *context)
{
	struct decisions_text *to = context;
	struct buffer *text;

	show_decision_take(show, &to->decisions, line, body);
	if (!json_view_is(line->type, "decision.end") || (++to->count > SHOWN_ROWS && !show->all))
		return;
	text = row(show, "afterwards");
	put_time(text, line);
	buffer_text(text, "  ");
	gist_body(line, body, text);
	end_row(show);
}

/* What was done with its change after its end. */
static void print_decisions(struct show *show)
{
	struct decisions_text to = { .count = 0 };

	show_late(show, "decision", print_outcome, &to);
	if (to.count > SHOWN_ROWS && !show->all) {
		buffer_format(row(show, "afterwards"), "and %zu more", to.count - SHOWN_ROWS);
		end_row(show);
	}
	for (size_t i = 0; i < to.decisions.count; i++)
		if (to.decisions.open[i].hash[0]) {
			buffer_format(row(show, "afterwards"), "%s; it has no end on record",
				      to.decisions.open[i].told);
			end_row(show);
		}
	show_decisions_end(show, &to.decisions);
}

static int print_all(struct show *show)
{
	const struct dossier *dossier = &show->from.dossier;
	size_t count = dossier->action_count;
	int result = 0;

	print_task(show);
	if (count > SHOWN_ACTIONS && !show->all)
		count = SHOWN_ACTIONS;
	print_items(show, DOSSIER_OF_TASK, DOSSIER_VERDICT, "verdict");
	print_items(show, DOSSIER_OF_TASK, DOSSIER_APPROVAL, "approval");
	print_items(show, DOSSIER_OF_TASK, DOSSIER_NOTE, "note");
	print_late_notes(show);
	print_decisions(show);
	print_items(show, DOSSIER_OF_TASK, DOSSIER_RESUMED, "resumed");
	for (size_t i = 0; i < count && result == 0; i++) {
		print_action(show, (uint32_t)i);
		result = page_put(&show->page);
	}
	if (count < dossier->action_count)
		buffer_format(&show->page.text, "\n%zu more actions; --all shows them\n",
			      dossier->action_count - count);
	if (result == 0)
		print_questions(show);
	return result;
}

static int print_removed(struct show *show, const struct catalogue_task *task)
{
	trace_complain("the record of %s %s; the ledger tells that it was there", show->found.task,
		       task->state == CATALOGUE_REMOVED ? "was removed" : "is not there");
	return 1;
}

static int run(struct show *show, const char *word)
{
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	const struct catalogue_task *task;
	int status = trace_place_open(&show->place, show->state_path);
	int result;

	if (status == 0)
		status = trace_place_find(&show->place, word, true, &show->found);
	if (status == 0)
		status = trace_place_catalogue(&show->place, &catalogue);
	if (status)
		return status;
	task = catalogue_find(&catalogue, show->found.task);
	show->state = task ? trace_place_state(&show->place, task) : "foreign";
	if (task && !task->has_chain)
		return print_removed(show, task);
	status = trace_dossier_open(&show->from, &show->place, show->found.task,
				    show->found.action[0] ? show->found.action : NULL);
	if (status)
		return status;
	page_open(&show->page, !show->json);
	result = page_close(&show->page, show->json ? show_json(show) : print_all(show));
	trace_place_told(&show->place);
	if (result < 0)
		trace_complain("%s could not be printed: %s", show->found.task, error_text(result));
	return result < 0 ? 125 : 0;
}

static int show_verb(int argc, char **argv)
{
	struct show show = { .place = TRACE_PLACE_NONE, .from = { .fd = -1 }, .page = PAGE_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_show, argc, argv, take, &show, &error);
	int status;

	if (first >= 0 && argc - first != 1)
		first = error_set(
			&error, EINVAL,
			"bawn trace show takes a task or an action; `bawn trace ls` lists "
			"them");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = run(&show, argv[first]);
	trace_dossier_close(&show.from);
	trace_place_close(&show.place);
	return status;
}

const struct verb verb_trace_show = {
	.name = "trace show",
	.synopsis = "TASK|ACTION",
	.summary = "Tell what a task or an action did, could do, and what of it is on record.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 told; 1 no such task or action, or its record was removed; 2 wrong use; "
		       "125 bawn itself failed",
	.run = show_verb,
};
