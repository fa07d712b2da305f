/*
 * Output pumps: bytes from a pipe (or pseudo terminal) of the task to a descriptor of the caller,
 * exactly, with a spool (broker/spool.h), a place to look at them on their way (tee), and the last
 * bytes kept for the inference of denials.
 *
 * A pump never blocks the loop for a reader that is slow, and moves at most PUMP_STEP_BYTES per
 * step; memory is one chunk, whatever the task writes. Back pressure is the pipe's: a task whose
 * reader is slow waits, as without us. What the caller's descriptor is decides the way:
 *
 *   pipe        opened anew without blocking (O_NONBLOCK on the caller's own would stay there when
 *               we have gone); where that is refused, in steps that poll(2) promises room for
 *   file        written; the disk may block us, as it would the task
 *   socket      sent without blocking
 *   terminal    through terminal_filter(), in small steps; for a task with a pseudo terminal of its
 *               own (broker/pty.h) through screen_filter()
 *
 * **Splicing.** From pipe to pipe or file, where nobody else wants the bytes, all but the last
 * 4 KiB of a full pipe are spliced: they never enter our memory. The rest is copied, so that the
 * tail and the last byte are known. The pipes of a stream that fills them are made PUMP_PIPE_BYTES
 * long; the caller's gets its length back at the end. With a spool everything is copied once into
 * our memory and written from there twice. tee(2) would be cheaper and wrong: pages in a pipe can
 * still be the task's own (vmsplice(2)), or a file's that it can change (splice(2), sendfile(2)),
 * so that what was recorded and what was shown could differ.
 *
 * **Cap.** Exactly cap_bytes go to the target and the spool; capped is set with the first byte
 * beyond. Then, as the caller chose, the pump stops and leaves the task blocked in its write, for
 * the caller to end it as a limit event (PUMP_BEYOND_END), or what follows is read, counted and
 * dropped (PUMP_BEYOND_DROP).
 *
 * **Failures.** broken: the target takes nothing more, failure says why (0: EPIPE, the reader has
 * gone); the source is closed, so that the task's next write tells it. spool_failure: the spool
 * took nothing of the last chunk (full disk); the chunk is held, the target did not get it, the
 * pump stands still until pump_retry(), pump_forgo_spool() or pump_end(). Its caller must look.
 *
 * The caller ignores SIGPIPE and SIGXFSZ. One thread.
 */
#pragma once

#include "broker/infer.h"
#include "broker/screen.h"
#include "broker/spool.h"
#include "broker/terminal.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One room for both filters. */
_Static_assert(TERMINAL_GROWTH >= SCREEN_GROWTH, "a filter's growth");
_Static_assert(SCREEN_SEQUENCE_BYTES >= TERMINAL_SEQUENCE_BYTES + 2, "what a filter holds back");

#define PUMP_CHUNK_BYTES 65536
/* What goes to a terminal grows in the filter, and is slow anyhow. */
#define PUMP_TERMINAL_BYTES 16384
/* Per call of pump_step(): some 0.2 ms, so that limits and signals are looked at between. */
#define PUMP_STEP_BYTES (512u * 1024)
/* Beyond it less is gained than the user's share of pipe memory (pipe(7)) is worth. */
#define PUMP_PIPE_BYTES (512u * 1024)
/* What may be left in a pseudo terminal when its action has ended: more than the kernel holds. */
#define PUMP_DRAIN_BYTES (1024u * 1024)

enum pump_target { PUMP_PIPE, PUMP_FILE, PUMP_SOCKET, PUMP_TERMINAL, PUMP_DEVICE };

enum pump_beyond { PUMP_BEYOND_END, PUMP_BEYOND_DROP };

struct pump_bytes {
	char chunk[PUMP_CHUNK_BYTES];
	char shown[TERMINAL_GROWTH * (PUMP_TERMINAL_BYTES + SCREEN_SEQUENCE_BYTES)];
	char tail[INFER_TAIL_BYTES];
};

struct pump {
	int from; /* owned; -1 when the stream has ended */
	int to;	  /* borrowed, unless owns_to */
	int anew; /* owned; `to` without blocking, or -1 */
	bool owns_to;
	bool is_terminal; /* escape what is not text and colours */
	bool is_screen;	  /* instead: drop what only a terminal's owner may send */
	bool keep_tail;
	bool broken;	    /* the reader has gone, or nothing more can be written */
	int failure;	    /* errno of what was not written though a reader is there */
	int source_failure; /* errno by which the source ended; 0: in order */
	bool capped;	    /* more than the cap came */
	bool stopped;	    /* because of it */
	int spool_failure;  /* positive errno: held up by the spool */
	uint64_t bytes;	    /* taken from the source and passed on */
	uint64_t dropped;   /* taken after the cap */
	uint64_t spliced;   /* of bytes: never in our memory */
	uint64_t cap_bytes; /* 0: none */
	char last;	    /* the last byte that was passed on */
	enum pump_beyond beyond;
	enum pump_target target;
	bool from_is_pipe, from_is_terminal, from_blocks, is_grown;
	bool can_splice;
	int target_bytes; /* the target pipe's length before we changed it */
	bool is_full;	  /* the target was, when we last tried to splice */
	bool is_draining; /* ends when drain_left bytes were taken, or there are none */
	uint64_t drain_left;
	struct pump_bytes *held; /* owned; in memory only from the first byte on */
	size_t held_up;		 /* bytes of the chunk that the spool did not take */
	const char *pending;	 /* in held */
	size_t pending_start, pending_end;
	struct terminal_filter filter;
	struct screen_filter screen;
	size_t tail_length;
	struct spool *spool; /* borrowed; NULL for none */
	enum spool_stream stream;
	/* called with each chunk as it was read; NULL for none */
	void (*tee)(void *context, const void *bytes, size_t length);
	void *tee_context;
};

/* Takes `from`, which had better not block, on success; -ENOMEM. */
int pump_begin(struct pump *pump, int from, int to) __attribute__((warn_unused_result));

/* Before the first step: also into the spool, which must outlive the pump. */
void pump_spool(struct pump *pump, struct spool *spool, enum spool_stream stream);

/* Before the first step: at most cap_bytes (not 0). */
void pump_cap(struct pump *pump, uint64_t cap_bytes, enum pump_beyond beyond);

/* True as long as there is something to wait for; fills the entry. */
bool pump_poll(const struct pump *pump, struct pollfd *ret_entry);

/* Moves what can be moved, at most PUMP_STEP_BYTES and a chunk. */
void pump_step(struct pump *pump, const struct pollfd *entry);

/*
 * The action's process has ended: what is in the pipe now is still passed on, then the pump ends,
 * though others of the task may hold the pipe open and write. Does not wait.
 */
void pump_drain(struct pump *pump);

/* After spool_failure: tries the held chunk again. Returns 0 or the negative errno. */
int pump_retry(struct pump *pump);

/* After spool_failure: goes on without the spool; the held chunk reaches the target. */
void pump_forgo_spool(struct pump *pump);

/* The stream has ended (or was stopped by its cap) and everything is written (or cannot be). */
bool pump_done(const struct pump *pump);

void pump_end(struct pump *pump);
