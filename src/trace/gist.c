#include "trace/gist.h"

#include "base/buffer.h"
#include "base/quantity.h"
#include "policy/limit.h"
#include "trace/read.h"

#include <stdlib.h>
#include <string.h>

/* A line is there to be read at a glance; show tells all of it. */
#define COMMAND_BYTES 400
#define TEXT_BYTES 200
#define TYPE_WIDTH 14

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "/._-+,:@%=";

/* Appends up to `most` bytes more and marks where something is missing. */
static void put_cut(const struct buffer *text, size_t most, struct buffer *buffer)
{
	size_t length = text->length;

	if (text->failed)
		buffer->failed = true;
	if (!length)
		return;
	if (length > most) {
		length = most;
		/* not within a code point */
		while (length && ((unsigned char)text->data[length] & 0xc0) == 0x80)
			length--;
	}
	buffer_append(buffer, text->data, length);
	if (length < text->length)
		buffer_text(buffer, "...");
}

void gist_text(const struct json_node *node, size_t most, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	json_tree_visible(node, &text);
	put_cut(&text, most, buffer);
}

static void put(const struct json_node *body, const char *path, struct buffer *buffer)
{
	gist_text(json_tree_get(body, path), TEXT_BYTES, buffer);
}

static void put_argument(const struct json_node *argument, struct buffer *buffer)
{
	const char *text = argument->text ? argument->text : "";

	if (argument->length && strspn(text, plain) == argument->length) {
		buffer_append(buffer, text, argument->length);
		return;
	}
	buffer_text(buffer, "'");
	for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1) {
		struct json_node part = { .text = text, .length = (size_t)(quote - text) };
		struct buffer CLEANUP_BUFFER piece = { 0 };

		buffer_append(&piece, part.text, part.length);
		buffer_visible(buffer, piece.data ? piece.data : "");
		buffer_text(buffer, "'\\''");
	}
	json_tree_visible(
		&(struct json_node){ .text = text,
				     .length = argument->length - (size_t)(text - argument->text) },
		buffer);
	buffer_text(buffer, "'");
}

void gist_command(const struct json_node *argv, size_t most, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER line = { 0 };

	for (const struct json_node *item = argv ? argv->first : NULL; item && line.length <= most;
	     item = item->next) {
		if (item->type != JSON_STRING)
			continue;
		buffer_text(&line, line.length ? " " : "");
		put_argument(item, &line);
	}
	put_cut(&line, most, buffer);
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
		buffer_format(buffer, ":%llu",
			      (unsigned long long)json_tree_unsigned(rule, "line", 0));
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
		buffer_format(buffer, " x%llu", (unsigned long long)count);
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
	buffer_format(buffer, "%llu", (unsigned long long)value);
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
		buffer_format(buffer, "exit %llu",
			      (unsigned long long)json_tree_unsigned(result, "end.code", 0));
	else if (kind && strcmp(kind, "signaled") == 0)
		buffer_format(buffer, "signal %llu",
			      (unsigned long long)json_tree_unsigned(result, "end.signal", 0));
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
	buffer_format(buffer, " by uid %llu, tier ",
		      (unsigned long long)json_tree_unsigned(body, "user.uid", 0));
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

static void tell_approval(const struct json_node *body, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	quantity_tell_duration(text, json_tree_unsigned(body, "asked_ms", 0) * 1000000u, true);
	put(body, "answer", buffer);
	buffer_text(buffer, " to ");
	put(body, "verb", buffer);
	buffer_text(buffer, " ");
	put(body, "target", buffer);
	buffer_text(buffer, ", by ");
	put(body, "by", buffer);
	buffer_text(buffer, " (");
	put(body, "proof", buffer);
	buffer_format(buffer, ") after %s", text);
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
	buffer_format(buffer, "pid %llu ", (unsigned long long)json_tree_unsigned(body, "pid", 0));
	tell_executable(json_tree_get(body, "executable"), buffer);
}

static void tell_note(const struct json_node *body, struct buffer *buffer)
{
	put(body, "text", buffer);
	put_meta(body, buffer);
}

static void tell_change(const struct json_node *body, struct buffer *buffer)
{
	put(body, "kind", buffer);
	buffer_text(buffer, " ");
	put(body, "path", buffer);
	buffer_text(buffer, " (");
	put(body, "state", buffer);
	buffer_text(buffer, ")");
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

	buffer_format(buffer, "%llu actions, cause ",
		      (unsigned long long)json_tree_unsigned(body, "actions", 0));
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
	{ "blob.removed", tell_removed },
};

void gist_view(struct json_view view, size_t most, struct buffer *buffer)
{
	struct json_node node = { .type = JSON_STRING };
	char *bytes = view.bytes ? malloc(view.length + 1) : NULL;

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
	struct buffer CLEANUP_BUFFER text = { 0 }, shown = { 0 };
	bool is_ledger = json_view_is(line->layer, "ledger");

	for (size_t i = 0; i < sizeof(tellers) / sizeof(tellers[0]); i++)
		if (json_view_is(line->type, tellers[i].type) &&
		    !(is_ledger && strncmp(tellers[i].type, "task.", 5) == 0 &&
		      tellers[i].tell != tell_removed)) {
			tellers[i].tell(body, buffer);
			return;
		}
	buffer_append(&text, line->body.bytes,
		      line->body.length < TEXT_BYTES * 2 ? line->body.length : TEXT_BYTES * 2);
	buffer_visible(&shown, text.data ? text.data : "");
	put_cut(&shown, TEXT_BYTES, buffer);
}

/* Cut and filled up to the width; ids and types are ASCII, or not ours. */
static void put_column(struct json_view view, size_t width, size_t gap, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	size_t length;

	gist_view(view, TEXT_BYTES, &text);
	length = text.length < width ? text.length : width;
	buffer_append(buffer, text.data, length);
	buffer_format(buffer, "%*s", (int)(width - length + gap), "");
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
