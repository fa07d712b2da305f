/* Of `bawn trace show`: what became of streams, who it was, and what is not on record. */
#include "cli/trace_show.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/gist.h"
#include "trace/scan.h"
#include "trace/when.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 4096
#define PIECE_BYTES 8192

void show_missing(struct show *show, const char *what, const char *object)
{
	if (show->gap_count < SHOW_LIMIT_GAPS)
		show->gaps[show->gap_count] = arena_format(&show->place.arena, "%s%s%s", what,
							   object ? ": " : "",
							   object ? object : "");
	show->gap_count++;
}

static const char *keep(struct show *show, const struct json_node *node)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	gist_text(node, TEXT_BYTES, &text);
	return arena_copy(&show->place.arena, text.data ? text.data : "");
}

void show_keep_start(struct show *show, const struct json_node *body)
{
	const struct json_node *user = json_tree_get(body, "user");
	const struct json_node *kept = json_tree_get(body, "policy_kept");
	struct buffer CLEANUP_BUFFER text = { 0 };

	show->was_refused = !json_tree_text(body, "policy");
	if (kept && kept->type == JSON_STRING)
		show->policy_kept = arena_copy(&show->place.arena, kept->text);
	buffer_format(&text, "uid %llu, gid %llu",
		      (unsigned long long)json_tree_unsigned(user, "uid", 0),
		      (unsigned long long)json_tree_unsigned(user, "gid", 0));
	if (json_tree_get(user, "host_root") && json_tree_get(user, "host_root")->is_true)
		buffer_text(&text, " (root of the host)");
	if (json_tree_get(user, "inside_uid") &&
	    json_tree_get(user, "inside_uid")->type != JSON_NULL)
		buffer_format(&text, "; inside uid %llu, gid %llu",
			      (unsigned long long)json_tree_unsigned(user, "inside_uid", 0),
			      (unsigned long long)json_tree_unsigned(user, "inside_gid", 0));
	show->identity = arena_copy(&show->place.arena, text.data ? text.data : "");
}

void show_stream_read(struct show *show, const struct dossier_action *action,
		      const struct json_node *body, struct show_stream *ret_stream)
{
	uint64_t masked = json_tree_unsigned(body, "masked", 0);
	struct show_stream stream = {
		.task = show->found.task,
		.name = keep(show, json_tree_get(body, "stream")),
		.sha256 = keep(show, json_tree_get(body, "sha256")),
		.bytes = json_tree_unsigned(body, "bytes", 0),
		.dropped = json_tree_unsigned(body, "dropped", 0),
	};
	struct buffer CLEANUP_BUFFER told = { 0 };
	const char *blob = json_tree_text(body, "blob");

	if (!blob) {
		buffer_text(&told, "not kept: ");
		gist_text(json_tree_get(body, "reason"), TEXT_BYTES, &told);
	} else {
		enum trace_blob_state state;

		stream.blob = arena_copy(&show->place.arena, blob);
		/* reads the ledger: the record's tree is gone behind it */
		state = trace_blob_find(&show->place, stream.task, stream.blob ? stream.blob : "");
		stream.is_kept = state == TRACE_BLOB_KEPT;
		buffer_text(&told, trace_blob_state_name(state));
	}
	if (masked)
		buffer_format(&told, ", without %llu secret%s", (unsigned long long)masked,
			      masked == 1 ? "" : "s");
	if (stream.dropped)
		buffer_format(&told, ", the last %llu bytes dropped",
			      (unsigned long long)stream.dropped);
	stream.told = arena_copy(&show->place.arena, told.data ? told.data : "");
	if (stream.bytes && (!stream.is_kept || masked || stream.dropped)) {
		buffer_format(&told, ": %s of %s", stream.name ? stream.name : "", action->id);
		show_missing(show, "output", told.data);
	}
	*ret_stream = stream;
}

/* A line of the output, visible, tabs as they are. */
static void put_line(struct show *show, const char *bytes, size_t length)
{
	struct buffer *text = &show->page.text;
	struct json_node node = { .type = JSON_STRING };

	buffer_text(text, "    | ");
	while (length) {
		const char *tab = memchr(bytes, '\t', length);
		char piece[PIECE_BYTES + 1];

		node.length = tab ? (size_t)(tab - bytes) : length;
		memcpy(piece, bytes, node.length);
		piece[node.length] = '\0';
		node.text = piece;
		json_tree_visible(&node, text);
		bytes += node.length;
		length -= node.length;
		if (length) {
			buffer_text(text, "\t");
			bytes++;
			length--;
		}
	}
	buffer_text(text, "\n");
}

/* Prints whole lines; gives how many bytes of the last one wait for their rest. */
static size_t put_lines(struct show *show, char *bytes, size_t length)
{
	char *at = bytes, *newline;

	while ((newline = memchr(at, '\n', length - (size_t)(at - bytes)))) {
		put_line(show, at, (size_t)(newline - at));
		at = newline + 1;
	}
	length -= (size_t)(at - bytes);
	memmove(bytes, at, length);
	/* a line that is longer goes on in the next one */
	if (length < PIECE_BYTES)
		return length;
	put_line(show, bytes, length);
	return 0;
}

static void put_trouble(struct show *show, const char *what)
{
	buffer_text(&show->page.text, "    ! ");
	buffer_visible(&show->page.text, what);
	buffer_text(&show->page.text, "\n");
}

void show_stream_output(struct show *show, const struct show_stream *stream)
{
	struct blob_reader CLEANUP_BLOB_READER reader = BLOB_READER_NONE;
	char bytes[PIECE_BYTES];
	struct error error = ERROR_NONE;
	size_t used = 0;
	ssize_t count;

	if (trace_blob_open(&show->place, stream->task, stream->blob, &reader, &error) < 0) {
		put_trouble(show, error.message);
		return;
	}
	while ((count = blob_read(&reader, bytes + used, sizeof(bytes) - used)) > 0) {
		used = put_lines(show, bytes, used + (size_t)count);
		if (page_put(&show->page) < 0)
			return;
	}
	if (used)
		put_line(show, bytes, used);
	if (count < 0)
		put_trouble(show, count == -EBADMSG ?
					  "the blob was changed: its bytes have another "
					  "hash" :
					  error_text((int)count));
}

/* The type is the one that is looked for, or one below it: "decision", "decision.end". */
static bool is_of_type(struct json_view found, const char *type)
{
	size_t length = strlen(type);

	return found.length >= length && memcmp(found.bytes, type, length) == 0 &&
	       (found.length == length || found.bytes[length] == '.');
}

void show_late(struct show *show, const char *type, show_late_each *each, void *context)
{
	char needle[64];
	int length = snprintf(needle, sizeof(needle), "\"type\":\"%s", type);
	struct trace_place *place = &show->place;
	struct trace_file file = place->file;
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	int CLEANUP_FD fd = trace_place_ledger(place);
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;

	(void)scan_add(&needles, show->found.task, strlen(show->found.task), 0);
	(void)scan_add(&needles, needle, (size_t)length, 1);
	if (fd >= 0)
		scan_begin(&scan, fd, &needles, 0, 1);
	while (fd >= 0 && scan_next(&scan, &found) > 0)
		if (trace_place_line(place, &found, &line, &body) && is_of_type(line.type, type) &&
		    line.task.bytes && json_view_is(line.task, show->found.task))
			each(show, &line, body, context);
	/* complaints that follow are about the chain again */
	place->file = file;
}

void show_decision_take(struct show *show, struct show_decisions *decisions,
			const struct trace_line *line, const struct json_node *body)
{
	const char *intent = json_tree_text(body, "intent");
	struct arena *arena = &show->place.arena;
	struct show_open_decision one = { .told = "" }, *open;
	struct buffer CLEANUP_BUFFER text = { 0 };
	char when[WHEN_TEXT_BYTES];
	uint64_t ns;

	if (json_view_is(line->type, "decision.end")) {
		for (size_t i = 0; intent && i < decisions->count; i++)
			if (strcmp(decisions->open[i].hash, intent) == 0)
				decisions->open[i].hash[0] = '\0';
		return;
	}
	if (!json_view_is(line->type, "decision") || line->hash.length != sizeof(one.hash) - 1)
		return;
	memcpy(one.hash, line->hash.bytes, line->hash.length);
	one.hash[line->hash.length] = '\0';
	if (when_parse(line->time.bytes, line->time.length, &ns)) {
		when_tell(ns, when);
		buffer_format(&text, "%s  ", when);
	}
	gist_body(line, body, &text);
	one.told = text.failed ? NULL : arena_copy_bytes(arena, text.data, text.length);
	open = arena_push(arena, decisions->open, decisions->count, sizeof(one));
	if (!one.told || !open)
		return;
	decisions->open = open;
	open[decisions->count++] = one;
}

void show_decisions_end(struct show *show, const struct show_decisions *decisions)
{
	for (size_t i = 0; i < decisions->count; i++)
		if (decisions->open[i].hash[0])
			show_missing(show, "a decision about its change has no end on record",
				     NULL);
}
