#include "trace/gist.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/quantity.h"
#include "policy/limit.h"
#include "trace/read.h"

#include <stdlib.h>
#include <string.h>

/* A line is there to be read at a glance; show tells all of it. */
#define COMMAND_BYTES 400
#define TEXT_BYTES 200
#define TYPE_WIDTH 14
#define DECIDED_PATHS 3

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "/._-+,:@%=";

/* Of a text of which `most` bytes are shown, as many as decide what these are. */
#define DECIDING_BYTES 8

/* Cuts what was appended since `start` to `most` bytes, and marks where something is missing. */
static void cut(struct buffer *buffer, size_t start, size_t most)
{
	size_t length = most;
	const char *text;

	if (buffer->failed || buffer->length - start <= most)
		return;
	text = buffer->data + start;
	/* not within a code point */
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	buffer->length = start + length;
	buffer_text(buffer, "...");
}

/* No byte is seen as less than one: a giant is not shown whole first. */
static size_t deciding(size_t length, size_t most)
{
	return length > most && length - most > DECIDING_BYTES ? most + DECIDING_BYTES : length;
}

void gist_text(const struct json_node *node, size_t most, struct buffer *buffer)
{
	size_t start = buffer->length;

	if (!node || !node->text)
		return;
	buffer_visible_bytes(buffer, node->text, deciding(node->length, most));
	cut(buffer, start, most);
}

static void put(const struct json_node *body, const char *path, struct buffer *buffer)
{
	gist_text(json_tree_get(body, path), TEXT_BYTES, buffer);
}

static void put_number(struct buffer *buffer, const char *before, uint64_t value)
{
	buffer_text(buffer, before);
	buffer_unsigned(buffer, value);
}

/* As a shell would take it; of a long one the beginning, whatever comes behind it is cut. */
static void put_argument(const struct json_node *argument, size_t most, struct buffer *buffer)
{
	const char *text = argument->text ? argument->text : "";
	size_t length = deciding(argument->length, most);
	const char *end = text + length;

	if (length && strspn(text, plain) == argument->length) {
		buffer_append(buffer, text, length);
		return;
	}
	buffer_text(buffer, "'");
	for (const char *quote; (quote = memchr(text, '\'', (size_t)(end - text)));
	     text = quote + 1) {
		buffer_visible_bytes(buffer, text, (size_t)(quote - text));
		buffer_text(buffer, "'\\''");
	}
	buffer_visible_bytes(buffer, text, (size_t)(end - text));
	buffer_text(buffer, "'");
}

void gist_command(const struct json_node *argv, size_t most, struct buffer *buffer)
{
	size_t start = buffer->length;

	for (const struct json_node *item = argv ? argv->first : NULL;
	     item && buffer->length - start <= most; item = item->next) {
		if (item->type != JSON_STRING)
			continue;
		buffer_text(buffer, buffer->length > start ? " " : "");
		put_argument(item, most, buffer);
	}
	cut(buffer, start, most);
}

void gist_rule(const struct json_node *rule, struct buffer *buffer)
{
	const char *file = json_tree_text(rule, "file");

	if (!file) {
		buffer_text(buffer, "built-in \"");
		put(rule, "id", buffer);
		buffer_text(buffer, "\"");
	} else if (strncmp(file, "--", 2) == 0) {
		buffer_text(buffer, "flag ");
		put(rule, "file", buffer);
	} else {
		buffer_text(buffer, "\"");
		put(rule, "id", buffer);
		buffer_text(buffer, "\" ");
		put(rule, "file", buffer);
		put_number(buffer, ":", json_tree_unsigned(rule, "line", 0));
	}
}

void gist_denial(const struct json_node *denial, struct buffer *buffer)
{
	uint64_t count = json_tree_unsigned(denial, "count", 1);

	put(denial, "code", buffer);
	buffer_text(buffer, " ");
	put(denial, "object", buffer);
	buffer_text(buffer, " (");
	gist_rule(json_tree_get(denial, "rule"), buffer);
	buffer_text(buffer, ", ");
	put(denial, "evidence", buffer);
	buffer_text(buffer, ")");
	if (count != 1)
		put_number(buffer, " x", count);
	if (json_tree_text(denial, "remedy")) {
		buffer_text(buffer, "; to allow: ");
		put(denial, "remedy", buffer);
	}
}

/* A value in the unit of the limit of that name; a bare number for one that is not known. */
static void put_amount(const char *word, uint64_t value, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	for (enum limit limit = 0; word && limit < LIMIT_COUNT; limit++) {
		if (strcmp(limit_text(limit)->word, word) != 0)
			continue;
		if (limit_text(limit)->unit == LIMIT_UNIT_SIZE ||
		    limit_text(limit)->unit == LIMIT_UNIT_RATE)
			quantity_tell_size(text, value);
		else if (limit_text(limit)->unit == LIMIT_UNIT_DURATION)
			quantity_tell_duration(text, value, true);
		else
			break;
		buffer_text(buffer, text);
		return;
	}
	buffer_unsigned(buffer, value);
}

void gist_limit(const struct json_node *limit, struct buffer *buffer)
{
	const char *word = json_tree_text(limit, "limit");

	put(limit, "limit", buffer);
	buffer_text(buffer, ": ");
	put_amount(word, json_tree_unsigned(limit, "value", 0), buffer);
	buffer_text(buffer, " reached, seen ");
	put_amount(word, json_tree_unsigned(limit, "usage", 0), buffer);
	buffer_text(buffer, " (");
	put(limit, "enforcement", buffer);
	buffer_text(buffer, ")");
}

void gist_end(const struct json_node *result, struct buffer *buffer)
{
	const char *kind = json_tree_text(result, "end.kind");

	if (kind && strcmp(kind, "exited") == 0)
		put_number(buffer, "exit ", json_tree_unsigned(result, "end.code", 0));
	else if (kind && strcmp(kind, "signaled") == 0)
		put_number(buffer, "signal ", json_tree_unsigned(result, "end.signal", 0));
	else
		put(result, "end.kind", buffer);
}

void gist_meta(const struct json_node *meta, struct buffer *buffer)
{
	const char *separator = "{";

	for (const struct json_node *item = meta ? meta->first : NULL; item; item = item->next) {
		buffer_text(buffer, separator);
		separator = ", ";
		buffer_visible(buffer, item->name ? item->name : "");
		buffer_text(buffer, "=");
		gist_text(item, TEXT_BYTES, buffer);
	}
	if (separator[0] == ',')
		buffer_text(buffer, "}");
}

static void put_meta(const struct json_node *body, struct buffer *buffer)
{
	if (json_tree_count(json_tree_get(body, "meta"))) {
		buffer_text(buffer, " ");
		gist_meta(json_tree_get(body, "meta"), buffer);
	}
}

static void tell_task_start(const struct json_node *body, struct buffer *buffer)
{
	put(body, "kind", buffer);
	buffer_text(buffer, " in ");
	put(body, "workspace", buffer);
	put_number(buffer, " by uid ", json_tree_unsigned(body, "user.uid", 0));
	buffer_text(buffer, ", tier ");
	put(body, "tier", buffer);
	buffer_text(buffer, ", rung ");
	put(body, "rung", buffer);
	put_meta(body, buffer);
}

static void tell_verdict(const struct json_node *body, struct buffer *buffer)
{
	put(body, "verdict", buffer);
	buffer_text(buffer, " ");
	put(body, "verb", buffer);
	buffer_text(buffer, " ");
	put(body, "target", buffer);
	buffer_text(buffer, " (");
	gist_rule(json_tree_get(body, "rule"), buffer);
	buffer_text(buffer, ")");
	if (json_tree_text(body, "reason")) {
		buffer_text(buffer, ": ");
		put(body, "reason", buffer);
	}
}

static void put_number_if(const struct json_node *body, const char *member, const char *before,
			  struct buffer *buffer)
{
	uint64_t number = json_tree_unsigned(body, member, 0);

	if (number)
		put_number(buffer, before, number);
}

/* A record that stands for several. */
static void put_repeated(const struct json_node *body, struct buffer *buffer)
{
	put_number_if(body, "repeated", " x", buffer);
}

static void tell_approval(const struct json_node *body, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	quantity_tell_duration(text, json_tree_unsigned(body, "asked_ms", 0) * 1000000u, true);
	put(body, "answer", buffer);
	buffer_text(buffer, " to ");
	put(body, "verb", buffer);
	buffer_text(buffer, " ");
	put(body, "target", buffer);
	if (!json_tree_text(body, "by")) {
		buffer_text(buffer, ", nobody was there to ask");
	} else {
		buffer_text(buffer, ", by ");
		put(body, "by", buffer);
		if (json_tree_text(body, "proof")) {
			buffer_text(buffer, " (");
			put(body, "proof", buffer);
			buffer_text(buffer, ")");
		}
		buffer_format(buffer, " after %s", text);
	}
	put_repeated(body, buffer);
}

static void tell_intent(const struct json_node *body, struct buffer *buffer)
{
	gist_command(json_tree_get(body, "argv"), COMMAND_BYTES, buffer);
	buffer_text(buffer, "  in ");
	put(body, "cwd", buffer);
	put_meta(body, buffer);
}

static void tell_executable(const struct json_node *file, struct buffer *buffer)
{
	const char *digest = json_tree_text(file, "sha256");

	put(file, "path", buffer);
	if (digest) {
		buffer_text(buffer, " sha256 ");
		gist_text(json_tree_get(file, "sha256"), 12, buffer);
	}
}

static void tell_start(const struct json_node *body, struct buffer *buffer)
{
	put_number(buffer, "pid ", json_tree_unsigned(body, "pid", 0));
	buffer_text(buffer, " ");
	tell_executable(json_tree_get(body, "executable"), buffer);
}

static void tell_note(const struct json_node *body, struct buffer *buffer)
{
	put(body, "text", buffer);
	put_meta(body, buffer);
}

void gist_change(const struct json_node *body, size_t limit_bytes, struct buffer *buffer)
{
	const struct json_node *from = json_tree_get(body, "from");
	uint64_t below = json_tree_unsigned(body, "below", 0);

	gist_text(json_tree_get(body, "kind"), limit_bytes, buffer);
	buffer_text(buffer, " ");
	gist_text(json_tree_get(body, "path"), limit_bytes, buffer);
	if (from) {
		buffer_text(buffer, " from ");
		gist_text(from, limit_bytes, buffer);
	}
	if (below)
		buffer_format(buffer, ", %llu changes in it", (unsigned long long)below);
	buffer_text(buffer, " (");
	gist_text(json_tree_get(body, "state"), limit_bytes, buffer);
	buffer_text(buffer, ")");
}

static void tell_change(const struct json_node *body, struct buffer *buffer)
{
	gist_change(body, TEXT_BYTES, buffer);
}

static void put_port(const struct json_node *body, struct buffer *buffer)
{
	put(body, "host", buffer);
	put_number(buffer, ":", json_tree_unsigned(body, "port", 0));
}

static void put_because(const struct json_node *body, const char *member, struct buffer *buffer)
{
	if (!json_tree_text(body, member))
		return;
	buffer_text(buffer, ": ");
	put(body, member, buffer);
}

static void put_sizes(const struct json_node *body, struct buffer *buffer)
{
	uint64_t up = json_tree_unsigned(body, "bytes_up", 0);
	uint64_t down = json_tree_unsigned(body, "bytes_down", 0);
	char up_text[QUANTITY_TEXT_BYTES], down_text[QUANTITY_TEXT_BYTES];

	quantity_tell_size(up_text, up);
	quantity_tell_size(down_text, down);
	if (up || down)
		buffer_format(buffer, ", %s up, %s down", up_text, down_text);
}

void gist_target(const struct json_node *target, struct buffer *buffer)
{
	uint64_t count = json_tree_unsigned(target, "count", 0);

	put(target, "host", buffer);
	put_number(buffer, ":", json_tree_unsigned(target, "port", 0));
	if (json_tree_text(target, "protocol")) {
		buffer_text(buffer, " ");
		put(target, "protocol", buffer);
	}
	if (count > 1)
		put_number(buffer, " x", count);
	buffer_text(buffer, " (");
	gist_rule(json_tree_get(target, "rule"), buffer);
	buffer_text(buffer, ")");
	put_sizes(target, buffer);
	put_number_if(target, "failed", ", failed: ", buffer);
}

static void tell_flow(const struct json_node *body, struct buffer *buffer)
{
	put(body, "verdict", buffer);
	buffer_text(buffer, " ");
	put_port(body, buffer);
	buffer_text(buffer, " ");
	put(body, "phase", buffer);
	if (json_tree_text(body, "method")) {
		buffer_text(buffer, ", ");
		put(body, "method", buffer);
		buffer_text(buffer, " ");
		put(body, "path", buffer);
	}
	buffer_text(buffer, " (");
	gist_rule(json_tree_get(body, "rule"), buffer);
	buffer_text(buffer, ")");
	put_sizes(body, buffer);
	put_repeated(body, buffer);
	put_number_if(body, "left_out", ", others refused: ", buffer);
	put_because(body, "reason", buffer);
}

static void tell_dial(const struct json_node *body, struct buffer *buffer)
{
	put_port(body, buffer);
	buffer_text(buffer, " ");
	put(body, "outcome", buffer);
	put_number(buffer, ", tried ", json_tree_count(json_tree_get(body, "tried")));
	put_number(buffer, " of ", json_tree_unsigned(body, "address_count", 0));
	put_repeated(body, buffer);
}

static void tell_alarm(const struct json_node *body, struct buffer *buffer)
{
	put(body, "role", buffer);
	put_because(body, "what", buffer);
	buffer_text(buffer, "; ");
	put(body, "done", buffer);
}

static void tell_result(const struct json_node *body, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];
	size_t denials = json_tree_count(json_tree_get(body, "denials"));

	quantity_tell_duration(text, json_tree_unsigned(body, "usage.duration_us", 0) * 1000, true);
	gist_end(body, buffer);
	buffer_text(buffer, ", cause ");
	put(body, "cause", buffer);
	buffer_format(buffer, ", %s", text);
	if (denials)
		buffer_format(buffer, ", %zu denial%s", denials, denials == 1 ? "" : "s");
	if (json_tree_text(body, "message")) {
		buffer_text(buffer, ": ");
		put(body, "message", buffer);
	}
}

static void tell_stream(const struct json_node *body, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	quantity_tell_size(text, json_tree_unsigned(body, "bytes", 0));
	put(body, "stream", buffer);
	buffer_format(buffer, " %s sha256 ", text);
	gist_text(json_tree_get(body, "sha256"), 12, buffer);
	if (!json_tree_text(body, "blob")) {
		buffer_text(buffer, ", not kept: ");
		put(body, "reason", buffer);
	}
}

static void tell_end(const struct json_node *body, struct buffer *buffer)
{
	uint64_t lost = json_tree_unsigned(body, "lost_records", 0);

	buffer_unsigned(buffer, json_tree_unsigned(body, "actions", 0));
	buffer_text(buffer, " actions, cause ");
	put(body, "cause", buffer);
	if (lost)
		buffer_format(buffer, ", %llu records lost", (unsigned long long)lost);
}

static void tell_cause(const struct json_node *body, struct buffer *buffer)
{
	put(body, "cause", buffer);
}

static void tell_torn(const struct json_node *body, struct buffer *buffer)
{
	buffer_format(buffer, "%llu bytes of a torn line were cut off",
		      (unsigned long long)json_tree_unsigned(body, "torn_bytes", 0));
}

static void put_who(const struct json_node *body, struct buffer *buffer)
{
	uint64_t uid = json_tree_unsigned(body, "by.uid", 0);

	if (json_tree_text(body, "by.user"))
		put(body, "by.user", buffer);
	else
		buffer_format(buffer, "uid %llu", (unsigned long long)uid);
	if (json_tree_text(body, "by.login_user") &&
	    json_tree_unsigned(body, "by.login_uid", uid) != uid) {
		buffer_text(buffer, " (logged in as ");
		put(body, "by.login_user", buffer);
		buffer_text(buffer, ")");
	}
}

/* The first paths of one outcome: most decisions are told whole so. */
static void put_decided(const struct json_node *body, const struct json_node *outcome,
			struct buffer *buffer)
{
	const struct json_node *items = json_tree_get(body, "items");
	size_t told = 0;

	for (const struct json_node *item = items ? items->first : NULL; item; item = item->next) {
		const char *word = json_tree_text(item, "outcome");

		if (!word || strcmp(word, outcome->name) != 0)
			continue;
		if (told == DECIDED_PATHS) {
			buffer_text(buffer, ", ...");
			break;
		}
		buffer_text(buffer, told++ ? ", " : " (");
		put(item, "path", buffer);
	}
	buffer_text(buffer, told ? ")" : "");
}

static void tell_decision(const struct json_node *body, struct buffer *buffer)
{
	const struct json_node *outcomes = json_tree_get(body, "outcomes");

	put(body, "verb", buffer);
	buffer_text(buffer, " by ");
	put_who(body, buffer);
	for (const struct json_node *each = outcomes ? outcomes->first : NULL; each && each->name;
	     each = each->next) {
		buffer_text(buffer, each == outcomes->first ? ": " : ", ");
		json_tree_visible(each, buffer);
		buffer_text(buffer, " ");
		buffer_visible(buffer, each->name);
		put_decided(body, each, buffer);
	}
	if (json_tree_text(body, "failure")) {
		buffer_text(buffer, "; it failed: ");
		put(body, "failure", buffer);
	}
}

static void tell_removed(const struct json_node *body, struct buffer *buffer)
{
	put(body, "blob", buffer);
	buffer_text(buffer, json_tree_text(body, "blob") ? " " : "");
	put(body, "reason", buffer);
}

static const struct {
	const char *type;
	void (*tell)(const struct json_node *body, struct buffer *buffer);
} tellers[] = {
	{ "denial", gist_denial },	   { "action.result", tell_result },
	{ "action.intent", tell_intent },  { "action.start", tell_start },
	{ "stream", tell_stream },	   { "verdict", tell_verdict },
	{ "change", tell_change },	   { "limit", gist_limit },
	{ "executable", tell_executable }, { "task.start", tell_task_start },
	{ "task.end", tell_end },	   { "task.lost", tell_cause },
	{ "approval", tell_approval },	   { "note", tell_note },
	{ "resumed", tell_torn },	   { "task.removed", tell_removed },
	{ "blob.removed", tell_removed },  { "decision", tell_decision },
	{ "decision.end", tell_decision }, { "net.flow", tell_flow },
	{ "net.dial", tell_dial },	   { "net.alarm", tell_alarm },
};

void gist_view(struct json_view view, size_t most, struct buffer *buffer)
{
	struct json_node node = { .type = JSON_STRING };
	char *bytes;

	if (!view.bytes) {
		buffer_text(buffer, "-");
		return;
	}
	if (bytes_find(view.bytes, view.length, '\\') == view.length) {
		gist_text(&(struct json_node){ .text = view.bytes, .length = view.length }, most,
			  buffer);
		return;
	}
	bytes = malloc(view.length + 1);
	if (bytes && json_view_bytes(view, bytes, view.length + 1, &node.length) == 0) {
		node.text = bytes;
		gist_text(&node, most, buffer);
	} else {
		buffer_text(buffer, "-");
	}
	free(bytes);
}

void gist_body(const struct trace_line *line, const struct json_node *body, struct buffer *buffer)
{
	bool is_ledger = json_view_is(line->layer, "ledger");

	for (size_t i = 0; i < sizeof(tellers) / sizeof(tellers[0]); i++)
		if (json_view_is(line->type, tellers[i].type) &&
		    !(is_ledger && strncmp(tellers[i].type, "task.", 5) == 0 &&
		      tellers[i].tell != tell_removed)) {
			tellers[i].tell(body, buffer);
			return;
		}
	gist_text(&(struct json_node){ .text = line->body.bytes, .length = line->body.length },
		  TEXT_BYTES, buffer);
}

/* Cut and filled up to the width; ids and types are ASCII, or not ours. */
static void put_column(struct json_view view, size_t width, size_t gap, struct buffer *buffer)
{
	static const char blanks[] = "                                ";
	size_t start = buffer->length, left;

	gist_view(view, TEXT_BYTES, buffer);
	if (buffer->failed)
		return;
	if (buffer->length - start > width)
		buffer->length = start + width;
	for (left = width + gap - (buffer->length - start); left;) {
		size_t some = left < sizeof(blanks) - 1 ? left : sizeof(blanks) - 1;

		buffer_append(buffer, blanks, some);
		left -= some;
	}
}

void gist_line(const struct trace_line *line, const struct json_node *body, struct buffer *buffer)
{
	/* of its fraction the milliseconds */
	buffer_append(buffer, line->time.bytes, line->time.length < 23 ? line->time.length : 23);
	buffer_text(buffer, "Z  ");
	put_column(line->task, GIST_ID_BYTES, 2, buffer);
	put_column(line->action, GIST_ID_BYTES, 2, buffer);
	put_column(line->type, TYPE_WIDTH, 1, buffer);
	gist_body(line, body, buffer);
}
