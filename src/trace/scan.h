/*
 * Looking for lines in a chain without taking each apart: a million records are half a gigabyte, of
 * which a question is about some hundred. A line is given when it holds, for every group of
 * needles, one of the group; whether it is what was asked for is decided by who takes it apart
 * (trace/read.h). What a line says is not judged here: the file is foreign.
 *
 * Each needle is looked for once over all bytes, not once per line. Memory: one block,
 * grown to the longest line that a chain may have. A longer one is passed over, and given as such.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_LIMIT_NEEDLES 24

struct scan_needle {
	const char *bytes; /* borrowed */
	size_t length;
	unsigned group;	     /* from 0 on, without a gap, in order */
	size_t rarest, rare; /* which of its bytes are looked for first */
};

struct scan_needles {
	struct scan_needle items[SCAN_LIMIT_NEEDLES];
	size_t count;
};

/* Adds one; false when there are too many, or when it is empty, which every line holds. */
bool scan_add(struct scan_needles *needles, const char *bytes, size_t length, unsigned group);

struct trace_scan {
	int fd;				    /* borrowed; read by pread(2) */
	const struct scan_needles *needles; /* borrowed */
	char *buffer;
	size_t capacity, start, end;	 /* what is not looked at yet */
	size_t whole;			 /* where the last whole line in the buffer ends */
	uint64_t offset;		 /* of buffer[0] in the file */
	uint64_t number;		 /* of the line before `start` */
	size_t hits[SCAN_LIMIT_NEEDLES]; /* where each is found next */
	bool is_skipping;		 /* within a line that is too long */
};

struct scan_line {
	const char *bytes; /* without the newline; until the next call */
	size_t length;
	uint64_t offset, number; /* number: from 1 on */
	bool is_long;		 /* longer than a line may be: bytes is NULL */
};

/* Begins at an offset of the file, where a line begins that counts as `number`. */
void scan_begin(struct trace_scan *scan, int fd, const struct scan_needles *needles,
		uint64_t offset, uint64_t number);

/*
 * The next line that holds what is looked for. 1: there is one; 0: no more whole lines (what is
 * behind the last newline waits for its rest: a later call goes on with what has been appended);
 * or the negative errno of pread(2), or -ENOMEM.
 */
int scan_next(struct trace_scan *scan, struct scan_line *ret_line)
	__attribute__((warn_unused_result));

/* Bytes behind the last newline, once scan_next() gave 0. */
uint64_t scan_rest(const struct trace_scan *scan);

void scan_end(struct trace_scan *scan);

#define CLEANUP_SCAN __attribute__((cleanup(scan_end)))
