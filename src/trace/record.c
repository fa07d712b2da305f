#include "trace/record.h"

#include "base/clock.h"
#include "base/json.h"
#include "policy/environment.h"
#include "policy/policy.h"
#include "trace/event.h"
#include "trace/mask.h"

#include <string.h>

/* Longer names of variables and of --meta are no names. */
#define NAME_BYTES 257

/* Gives the value behind the name of "NAME=VALUE"; NULL where there is none. */
static const char *split(const char *pair, char ret_name[static NAME_BYTES])
{
	size_t length = strcspn(pair, "="), kept = length < NAME_BYTES ? length : NAME_BYTES - 1;

	memcpy(ret_name, pair, kept);
	ret_name[kept] = '\0';
	return pair[length] ? pair + length + 1 : NULL;
}

void record_meta(const char *const *meta, struct json *json)
{
	json_object(json, "meta");
	for (size_t i = 0; meta && meta[i]; i++) {
		char name[NAME_BYTES];
		const char *value = split(meta[i], name);

		json_string(json, name, value);
	}
	json_object_end(json);
}

static void put_task_start(const struct event *event, struct json *json)
{
	const struct event_task *task = &event->body.task_start;

	json_string(json, "bawn", BAWN_VERSION);
	json_string(json, "kind", task->kind);
	json_object(json, "user");
	json_unsigned(json, "uid", task->uid);
	json_unsigned(json, "gid", task->gid);
	json_bool(json, "host_root", task->host_root);
	if (task->policy) {
		json_unsigned(json, "inside_uid", task->policy->uid);
		json_unsigned(json, "inside_gid", task->policy->gid);
	} else {
		json_null(json, "inside_uid");
		json_null(json, "inside_gid");
	}
	json_object_end(json);
	json_string(json, "workspace", task->workspace);
	json_string(json, "tier", task->tier);
	json_string(json, "rung", task->rung);
	json_string(json, "tier_reason", task->reason);
	json_string(json, "policy", task->policy_hash);
	json_string(json, "policy_kept", task->policy_kept);
	json_array(json, "withheld_environment");
	for (size_t i = 0; i < task->withheld_count; i++)
		json_string(json, NULL, task->withheld[i]);
	json_array_end(json);
	record_meta(task->meta, json);
}

static void put_verdict(const struct event *event, struct json *json)
{
	result_verdict_members(&event->body.verdict, json);
}

static void put_approval(const struct event *event, struct json *json)
{
	const struct event_approval *approval = &event->body.approval;
	char expires[CLOCK_TEXT_BYTES];

	json_string(json, "verb", approval->verb);
	json_string(json, "target", approval->target);
	json_string(json, "shown", approval->shown);
	json_string(json, "answer", approval->answer);
	json_string(json, "by", approval->by);
	json_string(json, "proof", approval->proof);
	json_string(json, "channel", approval->channel);
	json_string(json, "grant", approval->grant);
	clock_text(approval->expires_wall_ns, expires);
	json_string(json, "expires", approval->expires_wall_ns ? expires : NULL);
	json_unsigned(json, "asked_ms", approval->asked_ns / 1000000u);
	json_unsigned(json, "repeated", approval->repeated);
}

/* Values of variables that bawn sets or always passes; others are the caller's own business. */
static void put_environment(const char *const *environment, struct json *json)
{
	json_object(json, "environment");
	for (size_t i = 0; environment[i]; i++) {
		char name[NAME_BYTES];
		const char *value = split(environment[i], name);
		bool is_kept = (environment_is_passed(name) || environment_is_own(name)) &&
			       !mask_is_secret_name(name);

		json_string(json, name, is_kept ? value : NULL);
	}
	json_object_end(json);
}

static void put_intent(const struct event *event, struct json *json)
{
	const struct action *action = event->body.intent.action;

	json_array(json, "argv");
	for (size_t i = 0; i < action->argc; i++)
		json_string(json, NULL, action->argv[i]);
	json_array_end(json);
	json_string(json, "cwd", action->cwd);
	put_environment(action->environ, json);
	json_string(json, "input", action_input_name(action->input));
	json_unsigned(json, "timeout_ms", action->timeout_ns / 1000000u);
	record_meta(event->body.intent.meta, json);
}

static void put_file(const struct event_executable *file, struct json *json)
{
	json_string(json, "path", file->path);
	json_string(json, "sha256", file->sha256);
	if (!file->sha256)
		json_string(json, "unhashed", file->unhashed);
	json_unsigned(json, "bytes", file->bytes);
	json_unsigned(json, "device", file->device);
	json_unsigned(json, "inode", file->inode);
	json_integer(json, "mtime_ns", file->mtime_ns);
	json_integer(json, "ctime_ns", file->ctime_ns);
}

/* Those that are there: shorter than in a result, since each action has them. */
static void put_limits(const struct result *result, struct json *json)
{
	json_array(json, "limits");
	for (size_t i = 0; i < result->limit_count; i++) {
		const struct held *row = &result->limits[i];

		if (row->value == LIMIT_NONE)
			continue;
		json_object(json, NULL);
		json_string(json, "limit", limit_text(row->limit)->word);
		json_unsigned(json, "value", row->value);
		json_string(json, "enforcement", enforcement_name(row->means.grade));
		json_unsigned(json, "grain_ms", row->means.grain_ns / 1000000u);
		json_string(json, "mechanism", row->means.mechanism);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_start(const struct event *event, struct json *json)
{
	const struct event_start *start = &event->body.start;

	json_integer(json, "pid", start->pid);
	if (start->executable) {
		json_object(json, "executable");
		put_file(start->executable, json);
		json_object_end(json);
	} else {
		json_null(json, "executable");
	}
	json_string(json, "cgroup", start->cgroup);
	result_layers(start->measured, json);
	put_limits(start->measured, json);
}

static void put_executable(const struct event *event, struct json *json)
{
	put_file(event->body.executable, json);
}

static void put_denial(const struct event *event, struct json *json)
{
	denial_members(event->body.denial, json);
}

static void put_limit(const struct event *event, struct json *json)
{
	limit_hit_members(event->body.limit, json);
}

static void put_flow(const struct event *event, struct json *json)
{
	const struct event_flow *flow = &event->body.flow;

	json_string(json, "phase", flow->phase);
	json_string(json, "door", flow->door);
	json_string(json, "verdict", flow->verdict);
	json_string(json, "verb", "net.connect");
	json_string(json, "target", flow->target);
	json_string(json, "host", flow->host);
	json_unsigned(json, "port", flow->port);
	json_string(json, "address", flow->address);
	json_string(json, "protocol", flow->protocol);
	json_string(json, "outcome", flow->outcome);
	json_string(json, "method", flow->method);
	json_string(json, "path", flow->path);
	if (flow->method)
		json_bool(json, "upgrade", flow->upgrade);
	else
		json_null(json, "upgrade");
	if (flow->status)
		json_unsigned(json, "status", flow->status);
	else
		json_null(json, "status");
	json_string(json, "reason", flow->reason);
	rule_json(&flow->rule, "rule", json);
	json_unsigned(json, "connection", flow->connection);
	json_unsigned(json, "request", flow->request);
	json_unsigned(json, "bytes_up", flow->bytes_up);
	json_unsigned(json, "bytes_down", flow->bytes_down);
	json_unsigned(json, "duration_us", flow->duration_ns / 1000);
	json_unsigned(json, "repeated", flow->repeated);
	json_unsigned(json, "left_out", flow->left_out);
}

static void put_dial(const struct event *event, struct json *json)
{
	const struct event_dial *dial = &event->body.dial;

	json_string(json, "verb", "net.connect");
	json_string(json, "target", dial->target);
	json_string(json, "host", dial->host);
	json_unsigned(json, "port", dial->port);
	json_string(json, "outcome", dial->outcome);
	json_unsigned(json, "address_count", dial->address_count);
	json_array(json, "tried");
	for (size_t i = 0; dial->addresses[i]; i++)
		json_string(json, NULL, dial->addresses[i]);
	json_array_end(json);
	json_unsigned(json, "resolve_us", dial->resolve_ns / 1000);
	json_unsigned(json, "connect_us", dial->connect_ns / 1000);
	json_unsigned(json, "repeated", dial->repeated);
}

static void put_alarm(const struct event *event, struct json *json)
{
	json_string(json, "role", event->body.alarm.role);
	json_string(json, "what", event->body.alarm.what);
	json_string(json, "done", event->body.alarm.done);
}

static void put_change(const struct event *event, struct json *json)
{
	change_members(event->body.change, json);
}

static void put_note(const struct event *event, struct json *json)
{
	json_string(json, "text", event->body.note.text);
	record_meta(event->body.note.meta, json);
	json_string(json, "from", event->body.note.from);
}

static void put_result(const struct event *event, struct json *json)
{
	/* what stands in records before it is not repeated: docs/schema allows it to be empty */
	struct result result = *event->body.result;

	result.layer_count = result.limit_count = result.withheld_count = 0;
	result.tier = NULL;
	result_members(&result, json);
}

static void put_stream(const struct event *event, struct json *json)
{
	const struct event_stream *stream = &event->body.stream;

	json_string(json, "stream", stream->name);
	json_unsigned(json, "bytes", stream->bytes);
	json_string(json, "sha256", stream->sha256);
	json_string(json, "blob", stream->blob);
	if (!stream->blob)
		json_string(json, "reason", stream->reason);
	json_unsigned(json, "blob_bytes", stream->blob_bytes);
	json_unsigned(json, "masked", stream->masked);
	json_unsigned(json, "dropped", stream->dropped);
	json_string(json, "index", stream->index);
}

static void put_end(const struct event *event, struct json *json)
{
	json_unsigned(json, "actions", event->body.end.actions);
	json_string(json, "cause", event->body.end.cause);
	json_unsigned(json, "lost_records", event->body.end.lost);
}

static void (*const writers[EVENT_TYPE_COUNT])(const struct event *, struct json *) = {
	[EVENT_TASK_START] = put_task_start,
	[EVENT_VERDICT] = put_verdict,
	[EVENT_APPROVAL] = put_approval,
	[EVENT_ACTION_INTENT] = put_intent,
	[EVENT_ACTION_START] = put_start,
	[EVENT_EXECUTABLE] = put_executable,
	[EVENT_DENIAL] = put_denial,
	[EVENT_LIMIT] = put_limit,
	[EVENT_NOTE] = put_note,
	[EVENT_NET_FLOW] = put_flow,
	[EVENT_NET_DIAL] = put_dial,
	[EVENT_NET_ALARM] = put_alarm,
	[EVENT_CHANGE] = put_change,
	[EVENT_ACTION_RESULT] = put_result,
	[EVENT_STREAM] = put_stream,
	[EVENT_TASK_END] = put_end,
};

void record_body(const struct event *event, struct json *json)
{
	writers[event->type](event, json);
}
