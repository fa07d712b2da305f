#include "trace/change.h"

#include "base/json.h"

#include <stdio.h>

static const char *const kinds[CHANGE_KIND_COUNT] = { "created",  "modified", "removed",
						      "replaced", "renamed",  "attributes" };
static const char *const states[CHANGE_STATE_COUNT] = { "applied",  "covered", "held",
							"deferred", "staged",  "dropped" };
static const char *const seen[] = { "start", "earlier" };

const char *change_kind_name(enum change_kind kind)
{
	return kinds[kind];
}

const char *change_state_name(enum change_state state)
{
	return states[state];
}

static void put_side(const char *name, const struct change_side *side, struct json *json)
{
	char mode[8];

	if (!side)
		return;
	(void)snprintf(mode, sizeof(mode), "%04o", side->mode & 07777u);
	json_object(json, name);
	json_string(json, "type", side->type);
	json_string(json, "mode", mode);
	json_unsigned(json, "bytes", side->bytes);
	json_string(json, "sha256", side->sha256[0] ? side->sha256 : NULL);
	json_object_end(json);
}

void change_members(const struct change *change, struct json *json)
{
	json_string(json, "path", change->path);
	json_string(json, "kind", kinds[change->kind]);
	json_string(json, "state", states[change->state]);
	json_unsigned(json, "window_us", change->window_ns / 1000);
	if (change->key)
		json_string(json, "key", change->key);
	if (change->reason)
		json_string(json, "reason", change->reason);
	if (change->review)
		json_string(json, "review", change->review);
	if (change->from)
		json_string(json, "from", change->from);
	put_side("before", change->before, json);
	if (change->before)
		json_string(json, "before_seen", seen[change->seen]);
	put_side("after", change->after, json);
	if (change->is_inferred)
		json_bool(json, "inferred", true);
	if (change->below)
		json_unsigned(json, "below", change->below);
}

void change_json(const struct change *change, struct json *json)
{
	json_object(json, NULL);
	change_members(change, json);
	json_object_end(json);
}
