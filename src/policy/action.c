#include "policy/action.h"

#include "base/json.h"

#include <string.h>

static const char *const inputs[ACTION_INPUT_COUNT] = { "null", "pipe", "tty" };

const char *action_input_name(enum action_input input)
{
	return inputs[input];
}

void action_json(const struct action *action, struct json *json, const char *name)
{
	json_object(json, name);
	json_string(json, "task", action->task);
	json_string(json, "id", action->id);
	json_string(json, "parent", action->parent[0] ? action->parent : NULL);
	json_array(json, "argv");
	for (size_t i = 0; i < action->argc; i++)
		json_string(json, NULL, action->argv[i]);
	json_array_end(json);
	json_string(json, "cwd", action->cwd);
	json_array(json, "environment");
	for (size_t i = 0; action->environ[i]; i++)
		json_bytes(json, NULL, action->environ[i], strcspn(action->environ[i], "="));
	json_array_end(json);
	json_string(json, "input", action_input_name(action->input));
	json_unsigned(json, "timeout_ms", action->timeout_ns / 1000000);
	json_object_end(json);
}
