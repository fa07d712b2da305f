/*
 * The reader of chains: a file of any bytes is read to its end, each line within it, the same
 * in one go and by seeking; a line that is taken apart is exactly its members put together again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "trace/follow.h"
#include "trace/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void put_string(struct buffer *buffer, const char *name, struct json_view view)
{
	buffer_format(buffer, ",\"%s\":", name);
	if (!view.bytes) {
		buffer_text(buffer, "null");
		return;
	}
	buffer_text(buffer, "\"");
	buffer_append(buffer, view.bytes, view.length);
	buffer_text(buffer, "\"");
}

static void check_line(const struct trace_line *line)
{
	CLEANUP_BUFFER struct buffer text = { 0 };

	buffer_format(&text, "{\"v\":1,\"seq\":%llu", (unsigned long long)line->seq);
	put_string(&text, "time", line->time);
	buffer_format(&text, ",\"mono_ns\":%llu", (unsigned long long)line->mono_ns);
	put_string(&text, "boot", line->boot);
	put_string(&text, "host", line->host);
	put_string(&text, "task", line->task);
	put_string(&text, "action", line->action);
	put_string(&text, "parent", line->parent);
	put_string(&text, "layer", line->layer);
	put_string(&text, "type", line->type);
	buffer_text(&text, ",\"body\":");
	buffer_append(&text, line->body.bytes, line->body.length);
	put_string(&text, "prev", line->prev);
	put_string(&text, "hash", line->hash);
	buffer_text(&text, "}");
	require(!text.failed && text.length == line->raw.length &&
		memcmp(text.data, line->raw.bytes, text.length) == 0);
	(void)trace_line_is_intact(line);
}

/* With a tree or without: the same line, or the same fault. */
static void check_tree(const struct trace_line *line)
{
	static struct arena arena;
	const struct json_node *body = NULL;
	struct trace_line read;
	int result;

	arena_reset(&arena);
	result = trace_line_read(line->raw.bytes, line->raw.length, &arena, &read, &body);
	require((result == -EBADMSG) == (line->fault != TRACE_FINE));
	require(read.fault == line->fault && read.fault_at == line->fault_at &&
		read.what == line->what);
	if (result == 0)
		require(body->type == JSON_OBJECT && read.body.bytes == line->body.bytes &&
			read.body.length == line->body.length);
}

/*
 * A file of these bytes, in a reader that is made once: its buffer is as large as the longest line
 * may be, and would be most of each run.
 */
static void fill(struct trace_reader *reader, const uint8_t *data, size_t size)
{
	struct error error = ERROR_NONE;

	if (reader->fd < 0)
		require(trace_read_take(reader, memfd_create("trace", MFD_CLOEXEC), "file",
					&error) == 0);
	require(ftruncate(reader->fd, 0) == 0 &&
		pwrite(reader->fd, data, size, 0) == (ssize_t)size);
	trace_read_seek(reader, 0, 1);
}

/* Reads all lines; gives how many bytes they were. */
static uint64_t read_all(struct trace_reader *reader, size_t size, uint64_t *ret_last)
{
	struct trace_line line;
	uint64_t bytes = 0, number = 0;

	while (trace_read_next(reader, &line) > 0) {
		require(line.number == ++number && line.offset == bytes);
		require(line.raw.length <= size && line.fault_at <= line.raw.length);
		require(!line.fault == !line.what);
		bytes += line.raw.length + (line.fault != TRACE_TORN);
		*ret_last = line.offset;
		if (!line.fault)
			check_line(&line);
		if (line.fault != TRACE_TORN && line.fault != TRACE_LONG)
			check_tree(&line);
	}
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct trace_reader reader = TRACE_READER_NONE, followed = TRACE_READER_NONE;
	struct follow follow = FOLLOW_NONE;
	struct trace_line line;
	uint64_t last = 0;
	int result;

	fill(&reader, data, size);
	require(read_all(&reader, size, &last) == size);
	if (size) {
		trace_read_seek(&reader, last, 1);
		require(trace_read_next(&reader, &line) == 1 && line.offset == last);
		require(trace_read_next(&reader, &line) == 0);
	}
	fill(&followed, data, size);
	follow.reader = followed;
	while ((result = follow_next(&follow, &line)) > 0)
		require(line.seq + 1 == follow.records && trace_line_is_intact(&line));
	require(result == 0 && (follow.finding.kind == VERIFY_GOOD || follow.finding.line));
	return 0;
}
