#include "trace/change.h"

#include "base/json.h"

static const char *const kinds[CHANGE_KIND_COUNT] = { "created", "modified", "removed",
						      "replaced" };
static const char *const states[CHANGE_STATE_COUNT] = { "applied", "covered", "held", "deferred",
							"staged" };

const char *change_kind_name(enum change_kind kind)
{
	return kinds[kind];
}

const char *change_state_name(enum change_state state)
{
	return states[state];
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
}

void change_json(const struct change *change, struct json *json)
{
	json_object(json, NULL);
	change_members(change, json);
	json_object_end(json);
}
