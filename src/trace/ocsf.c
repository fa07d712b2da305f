#include "trace/ocsf.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/utf8.h"
#include "trace/gist.h"
#include "trace/read.h"
#include "trace/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OCSF_VERSION "1.3.0"
#define MS_NS 1000000u

enum { CLASS_PROCESS = 1007, CLASS_NETWORK = 4001, CLASS_API = 6003 };
enum { ACTIVITY_OTHER = 99 };
enum { PROCESS_LAUNCH = 1, PROCESS_TERMINATE = 2 };
enum { NETWORK_OPEN = 1, NETWORK_CLOSE = 2, NETWORK_FAIL = 4, NETWORK_REFUSE = 5 };
enum { API_READ = 2, API_UPDATE = 3 };
enum { SEVERITY_INFORMATIONAL = 1, SEVERITY_LOW = 2, SEVERITY_HIGH = 4 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

struct event {
	unsigned class, activity, severity, status;
	const char *activity_name; /* of ACTIVITY_OTHER */
};

/* A text with U+FFFD for what is no UTF-8; NULs too. */
static void put_text(struct json *json, const char *name, const char *text, size_t length)
{
	struct buffer CLEANUP_BUFFER clean = { 0 };

	while (length) {
		uint32_t point;
		size_t step = utf8_decode(text, length, &point);

		if (step && point)
			buffer_append(&clean, text, step);
		else
			buffer_text(&clean, "\xef\xbf\xbd");
		step = step ? step : 1;
		text += step;
		length -= step;
	}
	json_bytes(json, name, clean.data ? clean.data : "", clean.length);
}

static void put_node(struct json *json, const char *name, const struct json_node *node)
{
	put_text(json, name, node && node->text ? node->text : "", node ? node->length : 0);
}

static void put_view(struct json *json, const char *name, struct json_view view)
{
	char *bytes = view.bytes ? malloc(view.length + 1) : NULL;
	size_t length = 0;

	if (bytes && json_view_bytes(view, bytes, view.length + 1, &length) == 0)
		put_text(json, name, bytes, length);
	else
		json_string(json, name, "");
	free(bytes);
}

static void put_metadata(const struct trace_line *line, struct json *json)
{
	json_object(json, "metadata");
	json_string(json, "version", OCSF_VERSION);
	json_object(json, "product");
	json_string(json, "name", "bawn");
	json_string(json, "vendor_name", "bawn");
	json_string(json, "version", BAWN_VERSION);
	json_object_end(json);
	/* which record it was: its hash names it in the chain */
	put_view(json, "uid", line->hash);
	json_unsigned(json, "sequence", line->seq);
	if (line->task.bytes)
		put_view(json, "correlation_uid", line->task);
	json_object_end(json);
}

static void put_process(const struct ocsf_context *context, const struct json_node *file,
			const struct trace_line *line, struct json *json)
{
	const char *path = json_tree_text(file, "path");
	const char *name = path ? strrchr(path, '/') : NULL;

	json_object(json, "process");
	if (context->pid)
		json_unsigned(json, "pid", context->pid);
	if (line->action.bytes)
		put_view(json, "uid", line->action);
	if (context->command)
		put_text(json, "cmd_line", context->command, strlen(context->command));
	path = path ? path : context->path;
	name = path ? strrchr(path, '/') : NULL;
	name = name ? name + 1 : path;
	put_text(json, "name", name ? name : "unknown", strlen(name ? name : "unknown"));
	if (path) {
		json_object(json, "file");
		put_text(json, "name", name, strlen(name));
		put_text(json, "path", path, strlen(path));
		json_unsigned(json, "type_id", 1);
		if (json_tree_text(file, "sha256")) {
			json_array(json, "hashes");
			json_object(json, NULL);
			json_unsigned(json, "algorithm_id", 3);
			json_string(json, "algorithm", "SHA-256");
			put_node(json, "value", json_tree_get(file, "sha256"));
			json_object_end(json);
			json_array_end(json);
		}
		json_object_end(json);
	}
	json_object_end(json);
}

static void put_actor(const struct ocsf_context *context, const struct trace_line *line,
		      const struct event *event, struct json *json)
{
	char uid[24];

	(void)snprintf(uid, sizeof(uid), "%llu", (unsigned long long)context->uid);
	json_object(json, "actor");
	json_object(json, "user");
	json_string(json, "uid", uid);
	json_object_end(json);
	if (event->class != CLASS_PROCESS)
		put_process(context, NULL, line, json);
	json_object_end(json);
}

static void put_device(const struct trace_line *line, struct json *json)
{
	json_object(json, "device");
	put_view(json, "hostname", line->host);
	json_unsigned(json, "type_id", 0);
	json_object_end(json);
}

/* "example.com:443", "[::1]:443", "10.0.0.1" */
static void put_endpoint(const struct json_node *object, struct json *json)
{
	const char *text = object && object->text ? object->text : "";
	const char *colon = strrchr(text, ':');
	size_t length = strlen(text);
	unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
	bool has_port = colon && port > 0 && port < 65536 &&
			strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
			(colon == strchr(text, ':') || colon[-1] == ']');

	if (has_port)
		length = (size_t)(colon - text);
	if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	json_object(json, "dst_endpoint");
	put_text(json,
		 strspn(text, "0123456789abcdefABCDEF.:") >= length && length ? "ip" : "hostname",
		 text, length);
	if (has_port)
		json_unsigned(json, "port", port);
	json_object_end(json);
}

static const struct json_node *object_of(const struct json_node *body)
{
	const struct json_node *object = json_tree_get(body, "object");

	if (!object)
		object = json_tree_get(body, "target");
	return object ? object : json_tree_get(body, "path");
}

static void put_api(const char *operation, const struct json_node *body,
		    const struct trace_line *line, struct json *json)
{
	const struct json_node *object = object_of(body);

	json_object(json, "api");
	json_string(json, "operation", operation);
	json_object(json, "service");
	json_string(json, "name", "bawn");
	json_object_end(json);
	json_object_end(json);
	json_object(json, "src_endpoint");
	put_view(json, "hostname", line->host);
	json_object_end(json);
	if (object) {
		json_array(json, "resources");
		json_object(json, NULL);
		put_node(json, "name", object);
		json_object_end(json);
		json_array_end(json);
	}
}

static bool is_type(const struct trace_line *line, const char *type)
{
	return json_view_is(line->type, type);
}

static bool is_allowed(const struct trace_line *line, const struct json_node *body)
{
	const char *word = json_tree_text(body, is_type(line, "approval") ? "answer" : "verdict");

	return word && (strcmp(word, "allow") == 0 || strcmp(word, "yes") == 0);
}

/* What became of a connection or request. */
static unsigned flow_activity(const struct trace_line *line, const struct json_node *body)
{
	const char *phase = json_tree_text(body, "phase");

	if (!is_allowed(line, body))
		return NETWORK_REFUSE;
	if (phase && strcmp(phase, "closed") == 0)
		return NETWORK_CLOSE;
	return phase && strcmp(phase, "opened") == 0 ? NETWORK_OPEN : NETWORK_FAIL;
}

/* Which class and activity a record is; class 0: none. */
static struct event classify(const struct trace_line *line, const struct json_node *body)
{
	const char *verb = json_tree_text(body, "verb");
	struct event event = { .severity = SEVERITY_INFORMATIONAL, .status = STATUS_SUCCESS };
	bool is_decision = is_type(line, "denial") || is_type(line, "verdict") ||
			   is_type(line, "approval");

	if (is_type(line, "action.start") || is_type(line, "action.result")) {
		event.class = CLASS_PROCESS;
		event.activity = is_type(line, "action.start") ? PROCESS_LAUNCH : PROCESS_TERMINATE;
		if (is_type(line, "action.result") && json_tree_unsigned(body, "status", 1))
			event.status = STATUS_FAILURE;
		return event;
	}
	if (is_type(line, "net.flow")) {
		event.class = CLASS_NETWORK;
		event.activity = flow_activity(line, body);
		if (event.activity == NETWORK_REFUSE || event.activity == NETWORK_FAIL)
			event.status = STATUS_FAILURE;
		if (event.activity == NETWORK_REFUSE)
			event.severity = SEVERITY_LOW;
		return event;
	}
	if (is_type(line, "net.alarm")) {
		event.class = CLASS_API;
		event.activity = ACTIVITY_OTHER;
		event.activity_name = "Alarm";
		event.severity = SEVERITY_HIGH;
		event.status = STATUS_FAILURE;
		return event;
	}
	if (is_decision && !is_allowed(line, body)) {
		event.status = STATUS_FAILURE;
		event.severity = SEVERITY_LOW;
	}
	if (is_decision && !is_type(line, "approval") && verb && strncmp(verb, "net.", 4) == 0) {
		event.class = CLASS_NETWORK;
		event.activity = is_allowed(line, body) ? NETWORK_OPEN : NETWORK_REFUSE;
		return event;
	}
	if (!is_decision && !is_type(line, "change") && !is_type(line, "limit"))
		return event;
	event.class = CLASS_API;
	event.activity = ACTIVITY_OTHER;
	if (is_type(line, "change"))
		event.activity = API_UPDATE;
	else if (verb && strcmp(verb, "fs.read") == 0)
		event.activity = API_READ;
	else if (verb && strcmp(verb, "fs.write") == 0)
		event.activity = API_UPDATE;
	else
		event.activity_name = is_type(line, "limit") ? "Limit" : "Decide";
	return event;
}

static void put_message(const struct trace_line *line, const struct json_node *body,
			struct json *json)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_body(line, body, &text);
	put_text(json, "message", text.data ? text.data : "", text.length);
}

static void put_class(const struct ocsf_context *context, const struct event *event,
		      const struct trace_line *line, const struct json_node *body,
		      struct json *json)
{
	const char *verb = json_tree_text(body, "verb");

	switch (event->class) {
	case CLASS_PROCESS:
		put_process(context, json_tree_get(body, "executable"), line, json);
		if (event->activity == PROCESS_TERMINATE)
			json_unsigned(json, "exit_code", json_tree_unsigned(body, "status", 0));
		break;
	case CLASS_NETWORK:
		put_endpoint(object_of(body), json);
		break;
	default:
		put_api(verb			   ? verb :
			is_type(line, "change")	   ? "fs.change" :
			is_type(line, "net.alarm") ? "net.alarm" :
						     "limit.reach",
			body, line, json);
		break;
	}
}

bool ocsf_event(const struct ocsf_context *context, const struct trace_line *line,
		const struct json_node *body, struct buffer *buffer)
{
	struct event event = classify(line, body);
	uint64_t wall_ns = 0;
	struct json json;

	if (!event.class)
		return false;
	(void)when_parse(line->time.bytes, line->time.length, &wall_ns);
	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "class_uid", event.class);
	json_unsigned(&json, "category_uid", event.class / 1000);
	json_unsigned(&json, "activity_id", event.activity);
	if (event.activity_name)
		json_string(&json, "activity_name", event.activity_name);
	json_unsigned(&json, "type_uid", (uint64_t)event.class * 100 + event.activity);
	json_unsigned(&json, "time", wall_ns / MS_NS);
	json_unsigned(&json, "severity_id", event.severity);
	json_unsigned(&json, "status_id", event.status);
	put_message(line, body, &json);
	put_metadata(line, &json);
	put_device(line, &json);
	put_actor(context, line, &event, &json);
	put_class(context, &event, line, body, &json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
	return true;
}
