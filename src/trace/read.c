#include "trace/read.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json_tree.h"
#include "trace/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Small enough to stay in the processor's second cache, large enough to hide the system call. */
#define CHUNK_BYTES (128u * 1024)
/* The longest line has its newline within the limit; pages that none reached are not touched. */
#define CAPACITY_BYTES (CHAIN_LIMIT_LINE_BYTES + CHUNK_BYTES)

/* `,"hash":"`, 64 digits, `"}` */
#define HEX_BYTES (SHA256_HEX_BYTES - 1)
#define TAIL_BYTES (sizeof(",\"hash\":\"\"}") - 1 + HEX_BYTES)

/* One line that is taken apart: all stands at its place, or the first that does not is told. */

struct cursor {
	const char *bytes;
	size_t length, at;
	struct trace_line *line;
	struct arena *arena;	      /* NULL: the body is only checked */
	const struct json_node *body; /* NULL: the arena's limit did not hold it */
};

static bool fault(struct cursor *cursor, enum trace_fault fault, const char *what)
{
	if (!cursor->line->fault) {
		cursor->line->fault = fault;
		cursor->line->fault_at = cursor->at;
		cursor->line->what = what;
	}
	return false;
}

/* Inline, so that each comparison is one of a known length. */
static inline __attribute__((always_inline)) bool literal(struct cursor *cursor, const char *text,
							  const char *what)
{
	const size_t length = strlen(text);

	if (cursor->length - cursor->at < length ||
	    !bytes_same(cursor->bytes + cursor->at, text, length))
		return fault(cursor, TRACE_FORM, what);
	cursor->at += length;
	return true;
}

static bool number(struct cursor *cursor, uint64_t *ret_value, const char *what)
{
	size_t start = cursor->at, end = start;

	while (end < cursor->length && cursor->bytes[end] >= '0' && cursor->bytes[end] <= '9')
		end++;
	if ((end - start > 1 && cursor->bytes[start] == '0') ||
	    !json_view_unsigned((struct json_view){ cursor->bytes + start, end - start },
				ret_value))
		return fault(cursor, TRACE_FORM, what);
	cursor->at = end;
	return true;
}

/* A JSON value of this type, which begins here: no white space before it. */
static bool value(struct cursor *cursor, enum json_type type, struct json_view *ret_view,
		  const char *what)
{
	struct json_reader reader;
	char first = type == JSON_STRING ? '"' : '{';

	if (cursor->at == cursor->length || cursor->bytes[cursor->at] != first)
		return fault(cursor, TRACE_FORM, what);
	json_read_begin(&reader, cursor->bytes + cursor->at, cursor->length - cursor->at,
			TRACE_READ_DEPTH - 1);
	*ret_view = type == JSON_STRING ? json_read_string(&reader) : json_read_skip(&reader);
	cursor->at += reader.at;
	return reader.fault ? fault(cursor, TRACE_FORM, json_fault_text(reader.fault)) : true;
}

static bool name_or_null(struct cursor *cursor, struct json_view *ret_view, const char *what)
{
	static const char null[] = "null";

	if (cursor->length - cursor->at >= sizeof(null) - 1 &&
	    memcmp(cursor->bytes + cursor->at, null, sizeof(null) - 1) == 0) {
		cursor->at += sizeof(null) - 1;
		*ret_view = (struct json_view){ 0 };
		return true;
	}
	return value(cursor, JSON_STRING, ret_view, what);
}

/* Without branches on the digits, which are as good as random. */
static bool hex(struct cursor *cursor, struct json_view *ret_view, const char *what)
{
	const char *start = cursor->bytes + cursor->at;
	unsigned right = 0xffff;

	if (cursor->length - cursor->at < HEX_BYTES)
		return fault(cursor, TRACE_FORM, what);
	for (size_t i = 0; i < HEX_BYTES; i += sizeof(bytes16)) {
		bytes16 some = bytes16_load(start + i);

		right &= bytes16_mask(((some >= '0') & (some <= '9')) |
				      ((some >= 'a') & (some <= 'f')));
	}
	if (right != 0xffff)
		return fault(cursor, TRACE_FORM, what);
	*ret_view = (struct json_view){ start, HEX_BYTES };
	cursor->at += HEX_BYTES;
	return true;
}

/* "2026-11-30T12:00:00.123456789Z", without its quotes */
static bool time_of(struct cursor *cursor, struct json_view *ret_view)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
	const char *start = cursor->bytes + cursor->at;

	if (cursor->length - cursor->at < sizeof(form) - 1)
		return fault(cursor, TRACE_FORM, "time");
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? start[i] < '0' || start[i] > '9' : start[i] != form[i])
			return fault(cursor, TRACE_FORM, "time");
	*ret_view = (struct json_view){ start, sizeof(form) - 1 };
	cursor->at += sizeof(form) - 1;
	return true;
}

/* The body, as a tree where one is wanted and can be held. */
static bool body(struct cursor *cursor)
{
	struct trace_line *line = cursor->line;
	const char *start = cursor->bytes + cursor->at;
	size_t left = cursor->length - cursor->at, length;
	enum json_fault wrong;
	int result = -ENOMEM;

	if (cursor->arena && left && *start == '{')
		result = json_tree_read(start, left, TRACE_READ_DEPTH - 1, cursor->arena,
					&cursor->body, &length, &wrong);
	if (result == -ENOMEM)
		return value(cursor, JSON_OBJECT, &line->body, "body");
	cursor->at += length;
	line->body = (struct json_view){ start, length };
	return result == 0 || fault(cursor, TRACE_FORM, json_fault_text(wrong));
}

static bool version(struct cursor *cursor)
{
	static const char head[] = "{\"v\":";
	uint64_t found;

	if (cursor->length < sizeof(head) || memcmp(cursor->bytes, head, sizeof(head) - 1) != 0)
		return fault(cursor, TRACE_FOREIGN, "no line of a trace");
	cursor->at = sizeof(head) - 1;
	if (!number(cursor, &found, "v"))
		return false;
	if (found != CHAIN_VERSION) {
		cursor->at = sizeof(head) - 1;
		return fault(cursor, TRACE_VERSION, "of another version of the format");
	}
	return true;
}

static bool before_body(struct cursor *cursor)
{
	struct trace_line *line = cursor->line;

	return version(cursor) && literal(cursor, ",\"seq\":", "seq") &&
	       number(cursor, &line->seq, "seq") && literal(cursor, ",\"time\":\"", "time") &&
	       time_of(cursor, &line->time) && literal(cursor, "\",\"mono_ns\":", "mono_ns") &&
	       number(cursor, &line->mono_ns, "mono_ns") && literal(cursor, ",\"boot\":", "boot") &&
	       value(cursor, JSON_STRING, &line->boot, "boot") &&
	       literal(cursor, ",\"host\":", "host") &&
	       value(cursor, JSON_STRING, &line->host, "host") &&
	       literal(cursor, ",\"task\":", "task") && name_or_null(cursor, &line->task, "task") &&
	       literal(cursor, ",\"action\":", "action") &&
	       name_or_null(cursor, &line->action, "action") &&
	       literal(cursor, ",\"parent\":", "parent") &&
	       name_or_null(cursor, &line->parent, "parent") &&
	       literal(cursor, ",\"layer\":", "layer") &&
	       value(cursor, JSON_STRING, &line->layer, "layer") &&
	       literal(cursor, ",\"type\":", "type") &&
	       value(cursor, JSON_STRING, &line->type, "type") &&
	       literal(cursor, ",\"body\":", "body");
}

static bool take_apart(struct cursor *cursor)
{
	struct trace_line *line = cursor->line;
	bool is_whole =
		before_body(cursor) && body(cursor) && literal(cursor, ",\"prev\":\"", "prev") &&
		hex(cursor, &line->prev, "prev") && literal(cursor, "\",\"hash\":\"", "hash") &&
		hex(cursor, &line->hash, "hash") && literal(cursor, "\"}", "the end of the line");

	if (is_whole && cursor->at < cursor->length)
		is_whole = fault(cursor, TRACE_FORM, "something behind the line's end");
	if (!is_whole)
		*line = (struct trace_line){ .raw = line->raw,
					     .fault = line->fault,
					     .fault_at = line->fault_at,
					     .what = line->what };
	return is_whole;
}

bool trace_line_parse(const char *bytes, size_t length, struct trace_line *ret_line)
{
	struct cursor cursor = { .bytes = bytes, .length = length, .line = ret_line };

	*ret_line = (struct trace_line){ .raw = { bytes, length } };
	return take_apart(&cursor);
}

int trace_line_read(const char *bytes, size_t length, struct arena *arena,
		    struct trace_line *ret_line, const struct json_node **ret_body)
{
	struct cursor cursor = {
		.bytes = bytes, .length = length, .line = ret_line, .arena = arena
	};

	*ret_line = (struct trace_line){ .raw = { bytes, length } };
	if (!take_apart(&cursor))
		return -EBADMSG;
	if (!cursor.body)
		return -ENOMEM;
	*ret_body = cursor.body;
	return 0;
}

void trace_line_digest(const struct trace_line *line, char ret_hex[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, line->raw.bytes, line->raw.length - TAIL_BYTES);
	sha256_end(&hash, digest);
	sha256_hex(digest, ret_hex);
}

bool trace_line_is_intact(const struct trace_line *line)
{
	char found[SHA256_HEX_BYTES];

	trace_line_digest(line, found);
	return memcmp(found, line->hash.bytes, HEX_BYTES) == 0;
}

/* The file */

int trace_read_take(struct trace_reader *ret_reader, int fd, const char *name, struct error *error)
{
	struct trace_reader CLEANUP_TRACE_READER reader = { .fd = fd, .limit = UINT64_MAX };
	struct stat status;

	if (fstat(fd, &status) < 0)
		return error_errno(error, errno, "%s", name);
	if (S_ISDIR(status.st_mode))
		return error_set(error, EISDIR, "%s: a directory, and no file of a trace", name);
	if (!S_ISREG(status.st_mode))
		return error_set(error, EINVAL, "%s: no regular file", name);
	/* advice: the next chunks are on their way while one is looked at */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	reader.buffer = malloc(CAPACITY_BYTES);
	if (!reader.buffer)
		return error_errno(error, ENOMEM, "%s", name);
	*ret_reader = reader;
	reader = TRACE_READER_NONE;
	return 0;
}

int trace_read_open(struct trace_reader *ret_reader, int directory_fd, const char *path,
		    struct error *error)
{
	/* a FIFO without a writer would wait, a terminal could become ours */
	int fd = openat(directory_fd, path,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ELOOP)
		return error_set(error, ELOOP, "%s: a symbolic link, which is not followed", path);
	if (fd < 0)
		return error_errno(error, errno, "%s", path);
	return trace_read_take(ret_reader, fd, path, error);
}

/* More bytes behind those that are there. 1, 0 at the end, or negative errno. */
static int refill(struct trace_reader *reader)
{
	size_t held = reader->end - reader->start, room;
	uint64_t allowed;
	ssize_t step;

	if (reader->start) {
		memmove(reader->buffer, reader->buffer + reader->start, held);
		reader->start = 0;
		reader->end = held;
	}
	allowed = reader->limit - (reader->offset < reader->limit ? reader->offset : reader->limit);
	allowed -= held < allowed ? held : allowed;
	room = CAPACITY_BYTES - held < CHUNK_BYTES ? CAPACITY_BYTES - held : CHUNK_BYTES;
	if (room > allowed)
		room = (size_t)allowed;
	do {
		step = read(reader->fd, reader->buffer + held, room);
	} while (step < 0 && errno == EINTR);
	if (step < 0)
		return -errno;
	reader->end += (size_t)step;
	return step > 0;
}

/* A line that is none ends the reading. */
static int last_line(struct trace_reader *reader, enum trace_fault fault, const char *what,
		     struct trace_line *ret_line)
{
	size_t length = reader->end - reader->start;

	*ret_line = (struct trace_line){
		.raw = { reader->buffer + reader->start, length },
		.number = ++reader->number,
		.offset = reader->offset,
		.fault = fault,
		.fault_at = length,
		.what = what,
	};
	reader->is_done = true;
	return 1;
}

static int next_line(struct trace_reader *reader, size_t length, struct trace_line *ret_line)
{
	(void)trace_line_parse(reader->buffer + reader->start, length, ret_line);
	ret_line->number = ++reader->number;
	ret_line->offset = reader->offset;
	reader->start += length + 1;
	reader->offset += length + 1;
	return 1;
}

int trace_read_next(struct trace_reader *reader, struct trace_line *ret_line)
{
	size_t looked = 0; /* behind start: no newline in these */

	if (reader->is_done)
		return 0;
	for (;;) {
		size_t length = reader->end - reader->start;
		const char *bytes = reader->buffer + reader->start;
		size_t newline = looked + bytes_find(bytes + looked, length - looked, '\n');
		int result;

		if (newline < length && newline < CHAIN_LIMIT_LINE_BYTES)
			return next_line(reader, newline, ret_line);
		if (newline < length || length >= CHAIN_LIMIT_LINE_BYTES)
			return last_line(reader, TRACE_LONG, "longer than a line may be", ret_line);
		looked = length;
		result = refill(reader);
		if (result < 0)
			return result;
		if (result == 0 && length)
			return last_line(reader, TRACE_TORN, "the file ends within the line",
					 ret_line);
		if (result == 0) {
			reader->is_done = true;
			return 0;
		}
	}
}

void trace_read_seek(struct trace_reader *reader, uint64_t offset, uint64_t number)
{
	reader->start = reader->end = 0;
	reader->offset = offset;
	reader->number = number - 1;
	/* a place beyond what a file can have gives no line */
	reader->is_done = offset > INT64_MAX || lseek(reader->fd, (off_t)offset, SEEK_SET) < 0;
}

void trace_read_close(struct trace_reader *reader)
{
	fd_close(&reader->fd);
	free(reader->buffer);
	reader->buffer = NULL;
}
