/*
 * A chain of records: one file of JSON lines, each with the hash of the one before
 * (docs/TRACE.md). One writer at a time, who appends and never changes what was written.
 *
 * A record is begun, its body written by the JSON writer, and ended; chain_flush() writes all that
 * were ended since, by one write(2). When that returned 0 they are *acknowledged*: they survive
 * the death of every process. When it fails (ENOSPC, EDQUOT, EIO) the file is cut back to what was
 * acknowledged, and the records are lost: the chain goes on behind the last acknowledged one.
 *
 * Memory: the buffer of the records on their way. Errors: negative errno. Ignore SIGXFSZ.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct mask;

#define CHAIN_VERSION 1
/*
 * A longer line is none of ours, and readers need not hold more. The longest is an intent:
 * arguments and environment of 2 MiB (execve(2)), of which each byte may take six.
 */
#define CHAIN_LIMIT_LINE_BYTES (16u * 1024 * 1024)
/* `prev` where there is no record before. */
#define CHAIN_NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

struct arena;

/* Same for all lines that a process writes; gathered once. */
struct chain_origin {
	struct arena *arena;	     /* borrowed: where lines are made; NULL: the heap */
	char boot[CLOCK_BOOT_BYTES]; /* "" where the kernel does not tell */
	char host[65];
};

void chain_origin_gather(struct arena *arena, struct chain_origin *ret_origin);

struct chain {
	int fd;				   /* owned; O_APPEND */
	const struct chain_origin *origin; /* borrowed */
	const struct mask *mask;	   /* borrowed; NULL: nothing is masked */
	struct buffer buffer;		   /* lines that are not written yet */
	struct json json;		   /* of the line that is being written */
	size_t line, body;		   /* where it and its body begin in the buffer */
	uint64_t next_seq;
	bool is_broken; /* what a failed write left could not be cut off: nothing more is written */
	char prev[SHA256_HEX_BYTES];
	/* what was acknowledged */
	uint64_t bytes, records;
	char last[SHA256_HEX_BYTES];
	/* chain_resume(): the last record is the end of a task, or that its supervisor died */
	bool is_ended, is_lost;
};

#define CHAIN_NONE ((struct chain){ .fd = -1 })

/* What stands before the body. Strings are borrowed for the call. */
struct chain_record {
	const char *task, *action, *parent; /* NULL or "": null */
	const char *layer, *type;
	uint64_t wall_ns, monotonic_ns; /* 0: now */
};

/* A chain in an empty file (O_APPEND), which it takes; prev: what its first record follows. */
void chain_create(int fd, const char *prev, const struct chain_origin *origin,
		  struct chain *ret_chain);

/* What the first record of an empty chain follows, where it was not known when it was made. */
void chain_follow(struct chain *chain, const char *prev);

/* What stood behind the last whole line: a write that a power cut or a full disk tore. */
struct chain_torn {
	uint64_t bytes;
	char sha256[SHA256_HEX_BYTES];
};

/*
 * Takes an open chain (O_RDWR | O_APPEND) over and goes on behind its last whole line; what is
 * torn behind it is cut off and told. prev is used where there is no record at all. -EBADMSG: its
 * last line is none of ours. Takes the descriptor in any case.
 */
int chain_resume(int fd, const char *prev, const struct chain_origin *origin,
		 struct chain *ret_chain, struct chain_torn *ret_torn)
	__attribute__((warn_unused_result));

/* Begins a record; what is written to the result is the content of its body. */
struct json *chain_begin(struct chain *chain, const struct chain_record *record);

/* Ends it: masks secrets, adds `prev` and `hash`. Not written yet. -EMSGSIZE: too long a line. */
int chain_end(struct chain *chain) __attribute__((warn_unused_result));

/* Writes what was ended since the last time. durable: also fdatasync(2). 0 or negative errno. */
int chain_flush(struct chain *chain, bool durable) __attribute__((warn_unused_result));

void chain_close(struct chain *chain);

#define CLEANUP_CHAIN __attribute__((cleanup(chain_close)))
