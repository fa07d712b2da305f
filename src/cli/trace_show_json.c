/* `bawn trace show --json`: the records as they are, by task and action, and the questions. */
#include "cli/trace_show.h"

#include "base/json.h"

#include <string.h>

static void put_line(struct json *json, const struct trace_line *line)
{
	json_unsigned(json, "seq", line->seq);
	json_bytes(json, "time", line->time.bytes, line->time.length);
	json_bytes(json, "type", line->type.bytes, line->type.length);
	json_raw(json, "body", line->body.bytes, line->body.length);
}

/* A record's time and body, or null. */
static void put_record(struct show *show, struct json *json, const char *name,
		       struct dossier_place place)
{
	const struct trace_line *line = &show->from.line;

	if (!trace_dossier_read(&show->from, place)) {
		json_null(json, name);
		return;
	}
	json_object(json, name);
	put_line(json, line);
	json_object_end(json);
}

static void put_items(struct show *show, struct json *json, uint32_t number)
{
	const struct dossier *dossier = &show->from.dossier;

	json_array(json, "records");
	for (size_t i = 0; i < dossier->item_count; i++)
		if (dossier->items[i].action == number)
			put_record(show, json, NULL, dossier->items[i].place);
	json_array_end(json);
}

/* The record of a stream and, from here, whether its bytes are there. */
static void put_stream(struct show *show, struct json *json, const struct dossier_action *action,
		       struct dossier_place place)
{
	const struct json_node *body = trace_dossier_read(&show->from, place);
	struct show_stream stream;

	if (!body)
		return;
	json_object(json, NULL);
	json_raw(json, "body", show->from.line.body.bytes, show->from.line.body.length);
	show_stream_read(show, action, body, &stream);
	json_string(json, "state", stream.told);
	json_bool(json, "is_kept", stream.is_kept);
	json_object_end(json);
}

static void put_action(struct show *show, struct json *json, uint32_t number)
{
	const struct dossier_action *action = &show->from.dossier.actions[number];

	json_object(json, NULL);
	json_string(json, "action", action->id);
	json_string(json, "parent", action->parent[0] ? action->parent : NULL);
	put_record(show, json, "intent", action->intent);
	put_record(show, json, "start", action->start);
	put_record(show, json, "executable", action->executable);
	put_record(show, json, "result", action->result);
	if (!action->result.length)
		show_missing(show, "no result on record", action->id);
	json_array(json, "streams");
	for (size_t i = 0; i < action->stream_count; i++)
		put_stream(show, json, action, action->streams[i]);
	json_array_end(json);
	put_items(show, json, number);
	json_object_end(json);
}

static void put_questions(struct show *show, struct json *json)
{
	struct trace_reach reach;

	trace_reach_read(&show->place, show->policy_kept, &reach);
	if (!reach.is_known && !show->was_refused)
		show_missing(show, reach.why, NULL);
	json_object(json, "reach");
	trace_reach_json(&reach, json);
	json_string(json, "identity", show->identity);
	json_bool(json, "is_reconstructible", show->gap_count == 0);
	json_array(json, "gaps");
	for (size_t i = 0; i < show->gap_count && i < SHOW_LIMIT_GAPS; i++)
		json_string(json, NULL, show->gaps[i]);
	json_array_end(json);
	json_unsigned(json, "gap_total", show->gap_count);
	json_object_end(json);
}

static void put_late(struct show *show, const struct trace_line *line, const struct json_node *body,
		     void *context)
{
	struct json *json = context;

	(void)show;
	(void)body;
	json_object(json, NULL);
	put_line(json, line);
	json_object_end(json);
}

struct decisions_json {
	struct json *json;
	struct show_decisions decisions;
};

static void put_decision(struct show *show, const struct trace_line *line,
			 const struct json_node *body, void *context)
{
	struct decisions_json *to = context;

	put_late(show, line, body, to->json);
	show_decision_take(show, &to->decisions, line, body);
}

/* What was done with its change, of the ledger too. */
static void put_decisions(struct show *show, struct json *json)
{
	struct decisions_json to = { .json = json };

	json_array(json, "decisions");
	show_late(show, "decision", put_decision, &to);
	json_array_end(json);
	show_decisions_end(show, &to.decisions);
}

int show_json(struct show *show)
{
	const struct dossier *dossier = &show->from.dossier;
	const struct json_node *start;
	struct json json;
	int result = 0;

	json_begin(&json, &show->page.text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "task", show->found.task);
	json_string(&json, "state", show->state);
	start = trace_dossier_read(&show->from, dossier->task_start);
	if (start)
		show_keep_start(show, start);
	else
		show_missing(show, "the task's first record is not there", NULL);
	put_record(show, &json, "start", dossier->task_start);
	put_record(show, &json, "end", dossier->task_end);
	put_items(show, &json, DOSSIER_OF_TASK);
	/* of the ledger, added after the task's end; seq is of there */
	json_array(&json, "notes");
	show_late(show, "note", put_late, &json);
	json_array_end(&json);
	put_decisions(show, &json);
	json_array(&json, "actions");
	for (size_t i = 0; i < dossier->action_count && result == 0; i++) {
		put_action(show, &json, (uint32_t)i);
		result = page_put(&show->page);
	}
	json_array_end(&json);
	put_questions(show, &json);
	json_object_end(&json);
	buffer_text(&show->page.text, "\n");
	return result;
}
