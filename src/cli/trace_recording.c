/*
 * A recording for asciinema: the streams' blobs cut up by the time index (broker/spool.h), which is
 * read as foreign bytes. Where secrets were masked, the kept bytes are not as many as went through:
 * the cuts are off by that much then, and the rest comes with the last.
 */
#include "cli/trace_export.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "broker/spool.h"
#include "cli/options.h"
#include "cli/trace_dossier.h"
#include "trace/gist.h"
#include "trace/when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Nobody recorded how large the window was. */
#define COLUMNS 100
#define ROWS 30
#define TITLE_BYTES 200
#define PIECE_BYTES 4096
/* A longer one is a clock that was set. */
#define SILENCE_LIMIT_NS (UINT64_C(400) * 24 * 3600 * 1000000000)
/* The bytes of a code point that is cut by the end of a piece. */
#define CUT_BYTES 4

struct track {
	struct blob_reader reader;
	bool is_open;
	char cut[CUT_BYTES];
	size_t cut_length;
};

struct recording {
	struct export *export;
	struct trace_dossier from;
	struct track tracks[SPOOL_STREAM_COUNT];
	struct blob_reader index;
	char index_name[SHA256_HEX_BYTES], names[SPOOL_STREAM_COUNT][SHA256_HEX_BYTES];
	uint64_t began_ns; /* the action, by the wall clock */
	const char *lost;  /* why output was not kept; NULL: it was; the export's arena */
	bool is_tty, is_masked;
};

static void copy_name(const char *name, char place[static SHA256_HEX_BYTES])
{
	if (name && blob_is_name(name))
		(void)snprintf(place, SHA256_HEX_BYTES, "%s", name);
}

static void take_stream(struct recording *recording, const struct json_node *body)
{
	const char *name = json_tree_text(body, "stream");

	if (!name)
		return;
	if (strcmp(name, "stdout") == 0)
		copy_name(json_tree_text(body, "blob"), recording->names[SPOOL_OUT]);
	else if (strcmp(name, "stderr") == 0)
		copy_name(json_tree_text(body, "blob"), recording->names[SPOOL_ERR]);
	else
		return;
	copy_name(json_tree_text(body, "index"), recording->index_name);
	if (!json_tree_text(body, "blob") && json_tree_unsigned(body, "bytes", 0))
		recording->lost = arena_copy(&recording->export->place.arena,
					     json_tree_text(body, "reason") ?
						     json_tree_text(body, "reason") :
						     "for no reason that is told");
	recording->is_masked |= json_tree_unsigned(body, "masked", 0) != 0;
}

static void put_head(struct recording *recording, const struct dossier_action *action)
{
	const struct json_node *body = trace_dossier_read(&recording->from, action->intent);
	struct buffer *text = &recording->export->page.text;
	struct buffer CLEANUP_BUFFER title = { 0 };
	const char *input = json_tree_text(body, "input");
	uint64_t wall_ns = 0;
	struct json json;

	recording->is_tty = input && strcmp(input, "tty") == 0;
	if (body)
		(void)when_parse(recording->from.line.time.bytes, recording->from.line.time.length,
				 &wall_ns);
	gist_command(json_tree_get(body, "argv"), TITLE_BYTES, &title);
	json_begin(&json, text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 2);
	json_unsigned(&json, "width", COLUMNS);
	json_unsigned(&json, "height", ROWS);
	recording->began_ns = wall_ns;
	json_unsigned(&json, "timestamp", wall_ns / 1000000000u);
	json_string(&json, "title", title.data ? title.data : action->id);
	json_object_end(&json);
	buffer_text(text, "\n");
}

/* As a terminal shows it: whole code points, U+FFFD for what is none, and a pipe's newlines. */
static void put_data(const struct recording *recording, struct track *track, const char *bytes,
		     size_t length, struct buffer *clean)
{
	while (length) {
		uint32_t point;
		size_t step = utf8_decode(bytes, length, &point);

		if (!step && length < CUT_BYTES && utf8_is_cut(bytes, length)) {
			memcpy(track->cut, bytes, length);
			track->cut_length = length;
			return;
		}
		if (!step)
			buffer_text(clean, "\xef\xbf\xbd");
		else if (bytes[0] == '\n' && !recording->is_tty)
			buffer_text(clean, "\r\n");
		else
			buffer_append(clean, bytes, step);
		step = step ? step : 1;
		bytes += step;
		length -= step;
	}
}

/* Prints up to `length` bytes of a stream as said at a time. Negative errno. */
static int put_piece(struct recording *recording, struct track *track, uint64_t time_ns,
		     uint64_t length)
{
	struct page *page = &recording->export->page;
	char bytes[CUT_BYTES + PIECE_BYTES];
	int result = 0;

	while (length && track->is_open && result == 0) {
		struct buffer CLEANUP_BUFFER clean = { 0 };
		size_t wanted = length < PIECE_BYTES ? (size_t)length : PIECE_BYTES;
		size_t kept = track->cut_length;
		ssize_t count;
		struct json json;

		memcpy(bytes, track->cut, kept);
		track->cut_length = 0;
		count = blob_read(&track->reader, bytes + kept, wanted);
		if (count < 0)
			return (int)count;
		if (count == 0) {
			track->is_open = false;
			break;
		}
		length -= (uint64_t)count;
		put_data(recording, track, bytes, kept + (size_t)count, &clean);
		if (!clean.length)
			continue;
		buffer_format(&page->text, "[%llu.%06llu,\"o\",",
			      (unsigned long long)(time_ns / 1000000000u),
			      (unsigned long long)(time_ns / 1000 % 1000000));
		json_begin(&json, &page->text);
		json_bytes(&json, NULL, clean.data, clean.length);
		buffer_text(&page->text, "]\n");
		result = page_put(page);
	}
	return result;
}

static uint64_t get_u64(const unsigned char *bytes)
{
	uint64_t value = 0;

	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static ssize_t read_exactly(struct blob_reader *reader, unsigned char *bytes, size_t length)
{
	size_t used = 0;

	while (used < length) {
		ssize_t count = blob_read(reader, bytes + used, length - used);

		if (count < 0)
			return count;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	return (ssize_t)used;
}

/* Where the streams have no times: all of it came at once. Else what the index does not tell. */
static int play_rest(struct recording *recording, uint64_t time_ns)
{
	int result = 0;

	for (size_t i = 0; i < SPOOL_STREAM_COUNT && result == 0; i++)
		result = put_piece(recording, &recording->tracks[i], time_ns, UINT64_MAX);
	return result;
}

/* How long the action ran before its first output; 0 where the clock was set meanwhile. */
static uint64_t silence_ns(const struct recording *recording, const unsigned char *head)
{
	uint64_t first_ns = get_u64(head + 8), began_ns = recording->began_ns;

	return began_ns && first_ns > began_ns && first_ns - began_ns < SILENCE_LIMIT_NS ?
		       first_ns - began_ns :
		       0;
}

static int play(struct recording *recording)
{
	static const unsigned char magic[] = { 'B', 'A', 'W', 'N', 'S', 'P', 'L', SPOOL_VERSION };
	unsigned char head[SPOOL_HEAD_BYTES], record[SPOOL_RECORD_BYTES];
	uint64_t time_ns = 0, silence;
	ssize_t count = read_exactly(&recording->index, head, sizeof(head));
	int result = 0;

	if (count < 0)
		return (int)count;
	if (count != sizeof(head) || memcmp(head, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	silence = silence_ns(recording, head);
	while (result == 0 && (count = read_exactly(&recording->index, record, sizeof(record))) ==
				      sizeof(record)) {
		uint64_t word = get_u64(record + 8);
		uint64_t stream = word >> 56 & 15;

		/* a hole, or a kind that is not ours: it has no bytes */
		if (word >> 60 != SPOOL_BYTES || stream >= SPOOL_STREAM_COUNT)
			continue;
		time_ns = get_u64(record) + silence;
		result = put_piece(recording, &recording->tracks[stream], time_ns,
				   word & ((UINT64_C(1) << 56) - 1));
	}
	if (count < 0)
		return (int)count;
	return result < 0 ? result : play_rest(recording, time_ns);
}

/* 0, or the exit status after a complaint. */
static int open_tracks(struct recording *recording)
{
	struct export *export = recording->export;
	struct error error = ERROR_NONE;

	for (size_t i = 0; i < SPOOL_STREAM_COUNT; i++) {
		if (!recording->names[i][0])
			continue;
		if (trace_blob_open(&export->place, export->found.task, recording->names[i],
				    &recording->tracks[i].reader, &error) < 0) {
			complain(error.message);
			return 1;
		}
		recording->tracks[i].is_open = true;
	}
	return 0;
}

/* 0, or the exit status after a complaint. */
static int open_all(struct recording *recording, const struct dossier_action *action)
{
	struct export *export = recording->export;
	const char *task = export->found.task;
	struct error error = ERROR_NONE;

	for (size_t i = 0; i < action->stream_count; i++)
		take_stream(recording, trace_dossier_read(&recording->from, action->streams[i]));
	if (recording->lost && !recording->names[SPOOL_OUT][0] && !recording->names[SPOOL_ERR][0]) {
		trace_complain(
			"nothing of %s's output is kept (%s), so that there is nothing to play",
			action->id, recording->lost);
		return 1;
	}
	if (recording->index_name[0] && trace_blob_open(&export->place, task, recording->index_name,
							&recording->index, &error) < 0) {
		complain(error.message);
		return 1;
	}
	if (open_tracks(recording))
		return 1;
	if (recording->lost)
		trace_complain("%s: a part of its output is not kept (%s)", action->id,
			       recording->lost);
	if (recording->is_masked)
		trace_complain("%s: secrets were masked, so that times are near, not exact",
			       action->id);
	return 0;
}

static int record(struct recording *recording)
{
	struct export *export = recording->export;
	const struct dossier *dossier = &recording->from.dossier;
	int status = trace_dossier_open(&recording->from, &export->place, export->found.task,
					export->found.action[0] ? export->found.action : NULL);
	int result;

	if (status)
		return status;
	if (dossier->action_count != 1) {
		trace_complain("%s has %zu actions; a recording is of one: `bawn trace ls` lists "
			       "them",
			       export->found.task, dossier->action_count);
		return 1;
	}
	status = open_all(recording, &dossier->actions[0]);
	if (status)
		return status;
	put_head(recording, &dossier->actions[0]);
	result = recording->index_name[0] ? play(recording) : play_rest(recording, 0);
	if (result == -EBADMSG) {
		trace_complain("the time index or a stream of %s was changed: its bytes are none",
			       dossier->actions[0].id);
		return 1;
	}
	return result;
}

int export_recording(struct export *export)
{
	struct recording recording = { .export = export,
				       .from = { .fd = -1 },
				       .index = BLOB_READER_NONE };
	int result;

	for (size_t i = 0; i < SPOOL_STREAM_COUNT; i++)
		recording.tracks[i].reader = BLOB_READER_NONE;
	result = record(&recording);
	for (size_t i = 0; i < SPOOL_STREAM_COUNT; i++)
		blob_close(&recording.tracks[i].reader);
	blob_close(&recording.index);
	trace_dossier_close(&recording.from);
	return result;
}
