#include "trace/history.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "trace/gist.h"
#include "trace/read.h"
#include "trace/when.h"

#include <string.h>

/* The last three are told again by results. */
static const char *const texts[] = {
	"\"type\":\"task.start\"",    "\"type\":\"task.end\"",	    "\"type\":\"task.lost\"",
	"\"type\":\"action.intent\"", "\"type\":\"action.result\"", "\"type\":\"denial\"",
	"\"type\":\"change\"",	      "\"type\":\"limit\"",
};
#define TEXT_COUNT (sizeof(texts) / sizeof(texts[0]))
#define REPEATED_COUNT 3

void history_needles(struct scan_needles *needles, unsigned group, bool has_results)
{
	size_t count = has_results ? TEXT_COUNT - REPEATED_COUNT : TEXT_COUNT;

	for (size_t i = 0; i < count; i++)
		(void)scan_add(needles, texts[i], strlen(texts[i]), group);
}

static const char *keep(struct history *history, const struct buffer *text)
{
	return arena_copy(history->arena, text->data ? text->data : "");
}

static const char *keep_text(struct history *history, const struct json_node *node)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_text(node, HISTORY_COMMAND_BYTES, &text);
	return keep(history, &text);
}

static void copy_id(struct json_view view, char id[static ACTION_ID_BYTES])
{
	if (!view.bytes || view.length >= ACTION_ID_BYTES)
		return;
	memcpy(id, view.bytes, view.length);
	id[view.length] = '\0';
}

static struct history_action *find_text(const struct history *history, const char *id)
{
	size_t found =
		id_table_find(&history->by_id, history->actions, sizeof(*history->actions), id);

	return found == SIZE_MAX ? NULL : &history->actions[found];
}

static struct history_action *find(const struct history *history, struct json_view view)
{
	char id[ACTION_ID_BYTES] = { 0 };

	copy_id(view, id);
	return id[0] ? find_text(history, id) : NULL;
}

static struct history_action *find_or_add(struct history *history, const struct trace_line *line,
					  uint64_t wall_ns)
{
	struct history_action *action = find(history, line->action), *grown;

	if (action || !line->action.bytes || line->action.length >= ACTION_ID_BYTES)
		return action;
	if (history->count == HISTORY_LIMIT_ACTIONS)
		return NULL;
	grown = arena_push(history->arena, history->actions, history->count, sizeof(*grown));
	if (!grown)
		return NULL;
	history->actions = grown;
	action = &grown[history->count];
	*action = (struct history_action){ .started_ns = wall_ns };
	copy_id(line->action, action->id);
	copy_id(line->parent, action->parent);
	if (id_table_add(&history->by_id, grown, sizeof(*grown), history->count + 1) < 0)
		return NULL;
	history->count++;
	return action;
}

static void take_start(struct history *history, const struct json_node *body)
{
	struct buffer CLEANUP_BUFFER meta = { 0 };

	history->kind = keep_text(history, json_tree_get(body, "kind"));
	history->workspace = keep_text(history, json_tree_get(body, "workspace"));
	gist_meta(json_tree_get(body, "meta"), &meta);
	history->meta = keep(history, &meta);
}

static void take_intent(struct history *history, struct history_action *action,
			const struct json_node *body)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_command(json_tree_get(body, "argv"), HISTORY_COMMAND_BYTES, &text);
	action->command = keep(history, &text);
}

static bool is_network(const struct json_node *denial)
{
	const char *verb = json_tree_text(denial, "verb");

	return verb && strncmp(verb, "net.", 4) == 0;
}

static void count_denial(struct history_action *action, const struct json_node *denial)
{
	uint64_t count = json_tree_unsigned(denial, "count", 1);

	action->denials += count;
	action->network_denials += is_network(denial) ? count : 0;
}

static void take_result(struct history *history, struct history_action *action,
			const struct json_node *body)
{
	const struct json_node *denials = json_tree_get(body, "denials");
	const struct json_node *hits = json_tree_get(body, "limits_reached");
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_end(body, &text);
	action->end = keep(history, &text);
	action->cause = keep_text(history, json_tree_get(body, "cause"));
	action->status = json_tree_unsigned(body, "status", 0);
	action->duration_us = json_tree_unsigned(body, "usage.duration_us", 0);
	action->denials = action->network_denials = 0;
	for (const struct json_node *item = denials ? denials->first : NULL; item;
	     item = item->next)
		count_denial(action, item);
	action->denials += json_tree_unsigned(body, "denials_dropped", 0);
	action->changes = json_tree_count(json_tree_get(body, "changes"));
	if (hits && hits->first)
		action->limit = keep_text(history, json_tree_get(hits->first, "limit"));
}

static void take_of_action(struct history *history, const struct trace_line *line,
			   const struct json_node *body, uint64_t wall_ns)
{
	bool is_intent = json_view_is(line->type, "action.intent");
	struct history_action *action = is_intent ? find_or_add(history, line, wall_ns) :
						    find(history, line->action);

	if (is_intent)
		history->action_total++;
	if (!action)
		return;
	if (is_intent)
		take_intent(history, action, body);
	else if (json_view_is(line->type, "action.result"))
		take_result(history, action, body);
	else if (json_view_is(line->type, "denial") && !action->end)
		count_denial(action, body);
	else if (json_view_is(line->type, "change") && !action->end)
		action->changes++;
	else if (json_view_is(line->type, "limit") && !action->limit)
		action->limit = keep_text(history, json_tree_get(body, "limit"));
}

bool history_take(struct history *history, const struct trace_line *line,
		  const struct json_node *body)
{
	uint64_t wall_ns = 0;

	(void)when_parse(line->time.bytes, line->time.length, &wall_ns);
	if (!history->started_ns)
		history->started_ns = wall_ns;
	history->last_ns = wall_ns;
	if (json_view_is(line->type, "task.start")) {
		take_start(history, body);
	} else if (json_view_is(line->type, "task.end") || json_view_is(line->type, "task.lost")) {
		history->is_ended = true;
		history->is_lost = json_view_is(line->type, "task.lost");
		history->cause = keep_text(history, json_tree_get(body, "cause"));
	} else {
		take_of_action(history, line, body, wall_ns);
	}
	return !arena_failed(history->arena);
}

const struct history_action *history_parent(const struct history *history,
					    const struct history_action *action)
{
	const struct history_action *parent =
		action->parent[0] ? find_text(history, action->parent) : NULL;

	return parent && parent < action ? parent : NULL;
}

void history_free(struct history *history)
{
	id_table_free(&history->by_id);
}
