/*
 * Following a chain: each line is intact and goes on from the one before, or it is the first bad
 * one, and of what kind. Constant memory. Behind the first bad line nothing is followed any more;
 * the rest of the file is only looked at to tell what happened to it.
 *
 * What a chain must say (its task, its first and last record) and what others say of it is for
 * trace/verify.h.
 */
#pragma once

#include "trace/read.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

/* Kinds of bad lines; verify.def has their words. */
enum verify_kind {
#define VERIFY(name, word, text) VERIFY_##name,
#include "trace/verify.def"
#undef VERIFY
	VERIFY_KIND_COUNT,
};

const char *verify_kind_word(enum verify_kind kind);
/* What it means, for people. */
const char *verify_kind_text(enum verify_kind kind);

#define FINDING_DETAIL_BYTES 256

struct finding {
	enum verify_kind kind;
	uint64_t line;			   /* from 1 on; 0: of the file as a whole */
	char detail[FINDING_DETAIL_BYTES]; /* more than the kind's text; visible; may be "" */
};

struct follow {
	struct trace_reader reader;
	/* what the next line must follow; "": whatever it says (its chain's begin is not known) */
	char last[SHA256_HEX_BYTES];
	uint64_t records;
	struct finding finding; /* VERIFY_GOOD, or the first bad line */
};

#define FOLLOW_NONE ((struct follow){ .reader = TRACE_READER_NONE })

/* Opens the file as trace_read_open() does; prev: what its first record must follow, or "". */
int follow_open(struct follow *ret_follow, int directory_fd, const char *path, const char *prev,
		struct error *error) __attribute__((warn_unused_result));

/*
 * The next good line. 1: there is one; 0: no more, at the end or (follow->finding) before a bad
 * line; or the negative errno of reading.
 */
int follow_next(struct follow *follow, struct trace_line *ret_line)
	__attribute__((warn_unused_result));

/* Marks a line as bad for a reason of the caller's; the first one stays. */
void follow_refuse(struct follow *follow, enum verify_kind kind, uint64_t line, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

void follow_close(struct follow *follow);

#define CLEANUP_FOLLOW __attribute__((cleanup(follow_close)))
