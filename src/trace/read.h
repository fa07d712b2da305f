/*
 * Reading a chain (docs/TRACE.md): one line after another in constant memory, each taken apart into
 * its envelope. The file is foreign: whatever it is, it neither hangs nor grows us, and a line is
 * either what the format says, to the byte and in its order, or a fault that is named. Whether
 * it follows the one before it is for trace/verify.h.
 *
 * Views point into the reader's buffer and hold until the next line. Strings are raw, with their
 * escapes (base/json_read.h); a body is JSON that was checked, as text.
 */
#pragma once

#include "base/json_read.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct json_node;

/* Deeper than any body of ours, with the line around it. */
#define TRACE_READ_DEPTH 32

enum trace_fault {
	TRACE_FINE,
	TRACE_TORN,    /* the file ends within the line */
	TRACE_LONG,    /* longer than CHAIN_LIMIT_LINE_BYTES; nothing behind it is read */
	TRACE_FOREIGN, /* no line of a trace */
	TRACE_VERSION, /* of another version than ours */
	TRACE_FORM,    /* a member that is missing, elsewhere or none as the format has it */
	TRACE_FAULT_COUNT,
};

struct trace_line {
	struct json_view raw; /* from `{` to `}`, without the newline */
	uint64_t number;      /* in its file, from 1 on */
	uint64_t offset;      /* of its first byte in the file */
	uint64_t seq, mono_ns;
	struct json_view time, boot, host;
	struct json_view task, action, parent; /* null: bytes is NULL */
	struct json_view layer, type;
	struct json_view body;	     /* an object, with its braces */
	struct json_view prev, hash; /* 64 lower-case hex digits */
	/* where the line is none: its other members are not set */
	enum trace_fault fault;
	size_t fault_at;  /* the byte in the line, from 0 on */
	const char *what; /* in words; static */
};

struct trace_reader {
	int fd; /* owned */
	char *buffer;
	size_t start, end; /* what is not given yet */
	uint64_t offset;   /* of `start` in the file */
	uint64_t limit;	   /* where reading stops; UINT64_MAX: at the end of the file */
	uint64_t number;
	bool is_done;
};

#define TRACE_READER_NONE ((struct trace_reader){ .fd = -1 })

/*
 * Opens a regular file for reading, below the directory (or AT_FDCWD); neither a link nor a FIFO is
 * followed or waited for. The message names the file. -ELOOP a link, -EISDIR, -EINVAL another kind
 * of file, else as openat(2).
 */
int trace_read_open(struct trace_reader *ret_reader, int directory_fd, const char *path,
		    struct error *error) __attribute__((warn_unused_result));

/* The same for an open descriptor, which is taken in any case; name is for messages. */
int trace_read_take(struct trace_reader *ret_reader, int fd, const char *name, struct error *error)
	__attribute__((warn_unused_result));

/*
 * The next line. 1: there is one, faultless or (fault) not; 0: the end; or the negative errno of
 * read(2). Behind a fault the next line can be asked for, except behind TRACE_TORN and TRACE_LONG,
 * which are the end.
 */
int trace_read_next(struct trace_reader *reader, struct trace_line *ret_line)
	__attribute__((warn_unused_result));

/* Goes to a line by its offset, as it was told; number is what it counts as. */
void trace_read_seek(struct trace_reader *reader, uint64_t offset, uint64_t number);

void trace_read_close(struct trace_reader *reader);

#define CLEANUP_TRACE_READER __attribute__((cleanup(trace_read_close)))

/* Takes the bytes of one line (without its newline) apart. False: line->fault says why. Pure. */
bool trace_line_parse(const char *bytes, size_t length, struct trace_line *ret_line);

/*
 * The same with its body as a tree of the arena, in one go. 0; -EBADMSG: line->fault says why;
 * -ENOMEM: a line, whose body the arena's limit does not hold. Pure.
 */
int trace_line_read(const char *bytes, size_t length, struct arena *arena,
		    struct trace_line *ret_line, const struct json_node **ret_body)
	__attribute__((warn_unused_result));

/* What the line's bytes really hash to. Pure. */
void trace_line_digest(const struct trace_line *line, char ret_hex[static SHA256_HEX_BYTES]);

/* True when that is what the line says. */
bool trace_line_is_intact(const struct trace_line *line);
