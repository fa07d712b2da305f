#include "trace/dossier.h"

#include "base/arena.h"
#include "trace/read.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ITEMS 64

static struct dossier_place place_of(const struct trace_line *line)
{
	return (struct dossier_place){ .offset = line->offset,
				       .number = line->number,
				       .length = (uint32_t)line->raw.length };
}

static bool copy_id(struct json_view view, char id[static ACTION_ID_BYTES])
{
	if (!view.bytes || !view.length || view.length >= ACTION_ID_BYTES)
		return false;
	memcpy(id, view.bytes, view.length);
	id[view.length] = '\0';
	return true;
}

static size_t number_of(const struct dossier *dossier, const char *id)
{
	return id_table_find(&dossier->by_id, dossier->actions, sizeof(*dossier->actions), id);
}

const struct dossier_action *dossier_find(const struct dossier *dossier, const char *id)
{
	size_t number = number_of(dossier, id);

	return number == SIZE_MAX ? NULL : &dossier->actions[number];
}

/* The action of the line, made where it is not known; NULL: beyond the limit, or no memory. */
static struct dossier_action *action_of(struct dossier *dossier, const struct trace_line *line)
{
	struct dossier_action made = { .id = "" }, *grown;
	size_t number;

	if (!copy_id(line->action, made.id))
		return NULL;
	number = number_of(dossier, made.id);
	if (number != SIZE_MAX)
		return &dossier->actions[number];
	if (dossier->action_count == DOSSIER_LIMIT_ACTIONS) {
		dossier->is_cut = true;
		return NULL;
	}
	grown = arena_push(dossier->arena, dossier->actions, dossier->action_count, sizeof(*grown));
	if (!grown)
		return NULL;
	(void)copy_id(line->parent, made.parent);
	dossier->actions = grown;
	grown[dossier->action_count] = made;
	if (id_table_add(&dossier->by_id, grown, sizeof(*grown), dossier->action_count + 1) < 0) {
		dossier->arena->failed = true;
		return NULL;
	}
	return &grown[dossier->action_count++];
}

static void add_item(struct dossier *dossier, const struct trace_line *line, enum dossier_kind kind,
		     uint32_t action)
{
	struct dossier_item *grown;
	size_t wanted = dossier->item_capacity ? dossier->item_capacity * 2 : FIRST_ITEMS;

	if (dossier->item_count == DOSSIER_LIMIT_ITEMS) {
		dossier->is_cut = true;
		return;
	}
	if (dossier->item_count == dossier->item_capacity) {
		grown = realloc(dossier->items, wanted * sizeof(*grown));
		if (!grown) {
			dossier->is_cut = true;
			return;
		}
		dossier->items = grown;
		dossier->item_capacity = wanted;
	}
	dossier->items[dossier->item_count++] =
		(struct dossier_item){ .place = place_of(line), .kind = kind, .action = action };
}

/* What the result tells again need not be kept: in a flood of denials that is most of a chain. */
static void drop_repeated(struct dossier *dossier, uint32_t action)
{
	size_t kept = dossier->item_count;

	while (kept && dossier->items[kept - 1].action == action &&
	       dossier->items[kept - 1].kind >= DOSSIER_DENIAL &&
	       dossier->items[kept - 1].kind <= DOSSIER_CHANGE)
		kept--;
	dossier->item_count = kept;
}

static void take_of_action(struct dossier *dossier, const struct trace_line *line)
{
	struct dossier_action *action = action_of(dossier, line);

	if (!action)
		return;
	if (json_view_is(line->type, "action.intent"))
		action->intent = place_of(line);
	else if (json_view_is(line->type, "action.start"))
		action->start = place_of(line);
	else if (json_view_is(line->type, "executable"))
		action->executable = place_of(line);
	else if (json_view_is(line->type, "action.result"))
		action->result = place_of(line);
	else if (action->stream_count < DOSSIER_STREAMS)
		action->streams[action->stream_count++] = place_of(line);
	if (json_view_is(line->type, "action.result"))
		drop_repeated(dossier, (uint32_t)(action - dossier->actions));
}

static const struct {
	const char *type;
	enum dossier_kind kind;
} kinds[] = { { "denial", DOSSIER_DENIAL },	{ "verdict", DOSSIER_VERDICT },
	      { "change", DOSSIER_CHANGE },	{ "limit", DOSSIER_LIMIT },
	      { "approval", DOSSIER_APPROVAL }, { "note", DOSSIER_NOTE },
	      { "resumed", DOSSIER_RESUMED } };

static void take_item(struct dossier *dossier, const struct trace_line *line, const char *only)
{
	uint32_t number = DOSSIER_OF_TASK;

	if (line->action.bytes) {
		const struct dossier_action *action = action_of(dossier, line);

		if (!action)
			return;
		number = (uint32_t)(action - dossier->actions);
	} else if (only) {
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (json_view_is(line->type, kinds[i].type))
			add_item(dossier, line, kinds[i].kind, number);
}

bool dossier_take(struct dossier *dossier, const struct trace_line *line, const char *only)
{
	static const char *const of_actions[] = { "action.intent", "action.start", "executable",
						  "action.result", "stream" };

	if (json_view_is(line->type, "task.start") && !dossier->task_start.length) {
		dossier->task_start = place_of(line);
		return true;
	}
	if (json_view_is(line->type, "task.end") || json_view_is(line->type, "task.lost")) {
		dossier->task_end = place_of(line);
		dossier->is_lost = json_view_is(line->type, "task.lost");
		return true;
	}
	if (only && line->action.bytes && !json_view_is(line->action, only))
		return true;
	for (size_t i = 0; i < sizeof(of_actions) / sizeof(of_actions[0]); i++)
		if (json_view_is(line->type, of_actions[i])) {
			take_of_action(dossier, line);
			return !arena_failed(dossier->arena);
		}
	take_item(dossier, line, only);
	return !arena_failed(dossier->arena);
}

void dossier_free(struct dossier *dossier)
{
	id_table_free(&dossier->by_id);
	free(dossier->items);
	dossier->items = NULL;
}
