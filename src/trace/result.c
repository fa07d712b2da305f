#include "trace/result.h"

#include "base/json.h"
#include "policy/view.h"

static const char *const ends[RESULT_END_COUNT] = { "exited",	 "signaled",	   "timed-out",
						    "not-found", "not-executable", "denied",
						    "failed" };
static const char *const causes[CAUSE_COUNT] = { "command", "policy", "limit", "operator", "bawn" };

const char *result_end_name(enum result_end end)
{
	return ends[end];
}

const char *result_cause_name(enum result_cause cause)
{
	return causes[cause];
}

int result_status(const struct result *result)
{
	switch (result->end) {
	case RESULT_EXITED:
		return result->code;
	case RESULT_SIGNALED:
		return 128 + result->signal;
	case RESULT_TIMED_OUT:
		return 124;
	case RESULT_NOT_FOUND:
		return 127;
	case RESULT_NOT_EXECUTABLE:
	case RESULT_DENIED:
		return 126;
	default:
		return 125;
	}
}

static void put_end(const struct result *result, struct json *json)
{
	json_object(json, "end");
	json_string(json, "kind", ends[result->end]);
	if (result->end == RESULT_EXITED)
		json_integer(json, "code", result->code);
	if (result->end == RESULT_SIGNALED || result->end == RESULT_TIMED_OUT) {
		json_integer(json, "signal", result->signal);
		json_bool(json, "core_dumped", result->core_dumped);
	}
	json_object_end(json);
	json_string(json, "cause", causes[result->cause]);
	json_integer(json, "status", result_status(result));
	json_string(json, "message", result->message);
}

static void put_usage(const struct result *result, struct json *json)
{
	json_object(json, "usage");
	json_unsigned(json, "duration_us", result->duration_ns / 1000);
	json_unsigned(json, "user_us", result->user_us);
	json_unsigned(json, "system_us", result->system_us);
	json_unsigned(json, "peak_memory_bytes", result->peak_memory_bytes);
	json_object_end(json);
	json_object(json, "streams");
	json_unsigned(json, "stdout_bytes", result->output.bytes);
	json_unsigned(json, "stderr_bytes", result->error.bytes);
	json_object_end(json);
}

void result_layers(const struct result *result, struct json *json)
{
	json_array(json, "layers");
	for (size_t i = 0; i < result->layer_count; i++) {
		const struct result_layer *layer = &result->layers[i];

		json_object(json, NULL);
		json_string(json, "layer", layer_name(layer->layer));
		json_string(json, "enforcement", enforcement_name(layer->enforcement));
		json_string(json, "evidence", layer->evidence);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_limits(const struct result *result, struct json *json)
{
	json_array(json, "limits");
	for (size_t i = 0; i < result->limit_count; i++)
		held_json(&result->limits[i], NULL, json);
	json_array_end(json);
}

void limit_hit_members(const struct limit_hit *hit, struct json *json)
{
	json_string(json, "limit", limit_text(hit->limit)->word);
	json_unsigned(json, "value", hit->value);
	json_unsigned(json, "usage", hit->usage);
	json_string(json, "enforcement", enforcement_name(hit->enforcement));
	json_unsigned(json, "grain_ms", hit->grain_ns / 1000000);
}

static void put_hits(const struct result *result, struct json *json)
{
	json_array(json, "limits_reached");
	for (size_t i = 0; i < result->hit_count; i++) {
		json_object(json, NULL);
		limit_hit_members(&result->hits[i], json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_inputs(const struct view *view, struct json *json)
{
	json_array(json, "inputs");
	for (size_t i = 0; view && i < view->count; i++) {
		if (!view_is_input(&view->paths[i]))
			continue;
		json_object(json, NULL);
		json_string(json, "path", view->paths[i].target);
		json_string(json, "source", view->paths[i].source);
		json_object_end(json);
	}
	json_array_end(json);
}

void result_verdict_members(const struct event_verdict *verdict, struct json *json)
{
	json_string(json, "verdict", verdict->verdict);
	json_string(json, "verb", verdict->verb);
	json_string(json, "target", verdict->target);
	json_string(json, "reason", verdict->reason);
	rule_json(&verdict->rule, "rule", json);
	if (verdict->segment)
		json_string(json, "segment", verdict->segment);
	if (verdict->tier) {
		json_string(json, "tier", verdict->tier);
		json_string(json, "tier_reason", verdict->tier_reason);
	}
}

static void put_verdicts(const struct result *result, struct json *json)
{
	if (!result->verdict_count)
		return;
	json_array(json, "verdicts");
	for (size_t i = 0; i < result->verdict_count; i++) {
		json_object(json, NULL);
		result_verdict_members(&result->verdicts[i], json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_copied(const struct result_copied *copied, struct json *json)
{
	json_object(json, "copied");
	json_string(json, "reason", copied->why);
	json_unsigned(json, "objects", copied->names);
	json_unsigned(json, "bytes", copied->bytes);
	json_unsigned(json, "shared_files", copied->shared);
	json_array(json, "left_out");
	for (size_t i = 0; i < copied->left_count; i++)
		json_string(json, NULL, copied->left[i]);
	json_array_end(json);
	json_object_end(json);
}

void result_members(const struct result *result, struct json *json)
{
	json_unsigned(json, "version", RESULT_VERSION);
	if (result->action)
		action_json(result->action, json, "action");
	else
		json_null(json, "action");
	json_string(json, "policy", result->policy_hash);
	if (result->tier) {
		json_string(json, "tier", result->tier);
		json_string(json, "tier_reason", result->tier_reason);
	}
	put_end(result, json);
	json_unsigned(json, "started_unix_ns", result->started_wall_ns);
	put_usage(result, json);
	result_layers(result, json);
	put_limits(result, json);
	put_hits(result, json);
	put_verdicts(result, json);
	json_array(json, "denials");
	for (uint32_t i = 0; result->denials && i < result->denials->count; i++)
		denial_json(&result->denials->items[i], json);
	json_array_end(json);
	json_unsigned(json, "denials_dropped", result->denials ? result->denials->dropped : 0);
	if (result->network)
		network_json(result->network, json);
	json_array(json, "changes");
	for (size_t i = 0; i < result->change_count; i++)
		change_json(&result->changes[i], json);
	json_array_end(json);
	if (result->changes_cut) {
		json_null(json, "changes_unlisted");
		json_string(json, "changes_unknown", result->changes_cut);
	}
	if (!result->changes_cut && result->unlisted_changes)
		json_unsigned(json, "changes_unlisted", result->unlisted_changes);
	put_inputs(result->view, json);
	artifact_json(&result->artifacts, json);
	if (result->stage)
		json_string(json, "stage", result->stage);
	if (result->is_ephemeral)
		json_bool(json, "ephemeral", true);
	if (result->copied)
		put_copied(result->copied, json);
	json_array(json, "withheld_environment");
	for (size_t i = 0; i < result->withheld_count; i++)
		json_string(json, NULL, result->withheld[i]);
	json_array_end(json);
}

void result_json(const struct result *result, struct json *json)
{
	json_object(json, NULL);
	result_members(result, json);
	json_object_end(json);
}
