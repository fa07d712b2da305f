/*
 * The three streams of an action: pipes owned by bawn between the task and descriptors of the
 * caller, moved by pumps (broker/pump.h); or a pseudo terminal of bawn's (broker/pty.h).
 */
#pragma once

#include "broker/pty.h"
#include "broker/pump.h"

#include <stdbool.h>
#include <stddef.h>

struct error;
struct winsize;

struct streams_options {
	bool root;     /* the caller is the host's root: pipes must belong to the task's own id */
	int in;	       /* borrowed; -1: the action reads /dev/null */
	int out, err;  /* borrowed */
	int devpts_fd; /* of the box: the action gets a terminal of its own; -1: pipes */
	const struct winsize *remote; /* the terminal is the client's, of that size; NULL: ours */
	uint64_t cap_bytes;	      /* of each output stream, 0 = none */
	bool unkept;		      /* no spool: what only passes through can be spliced */
};

struct streams {
	struct pump in, out, err;
	struct pty pty; /* instead of them */
	bool has_pty;
	struct spool spool; /* of the output, from its first byte on */
	bool has_spool, spool_failed, is_unkept;
	/* called before output may be written; NULL for none */
	void (*before)(void *context);
	void *before_context;
};

#define STREAMS_NONE                                        \
	((struct streams){ .pty = PTY_NONE,                 \
			   .spool = SPOOL_NONE,             \
			   .in = { .from = -1, .to = -1 },  \
			   .out = { .from = -1, .to = -1 }, \
			   .err = { .from = -1, .to = -1 } })

/* How many entries streams_poll() fills. */
#define STREAMS_WATCHES 3u

/*
 * Makes them; ret_ends are the task's ends (0, 1, 2), which the caller owns and closes once the
 * action has them. On a failure nothing is left. Negative errno.
 */
int streams_open(struct streams *streams, const struct streams_options *options,
		 int ret_ends[static 3], struct error *error);

/* The entries of the streams that wait for something; the others get -1. `in` only while asked. */
void streams_poll(const struct streams *streams, bool with_in,
		  struct pollfd entries[static STREAMS_WATCHES]);
void streams_step(struct streams *streams, const struct pollfd entries[static STREAMS_WATCHES]);

/* The action has ended: nobody reads its input; what is in the output pipes is still passed on. */
void streams_drain(struct streams *streams, bool others_write);

/* There is output that must go to the disk: the action is no longer young, or wrote much. */
bool streams_wants_place(const struct streams *streams, bool is_old);

/* Ends the spool in order, after the last byte. It can still be read, until streams_close(). */
void streams_end_spool(struct streams *streams);

/*
 * Gives the spool its place in the task's directory, where it has none yet and there is output; a
 * spool that cannot be written is given up. Returns false then, once, with error set.
 */
bool streams_place_spool(struct streams *streams, int task_fd, const char *action,
			 struct error *error);

/* All output is written, or cannot be. */
bool streams_done(const struct streams *streams);

/* Gives up what was not written yet. */
void streams_cut(struct streams *streams);

/*
 * errno of output that did not arrive though a reader is there, or of input that ended by an error,
 * or 0. ret_what: which, in words.
 */
int streams_failure(const struct streams *streams, const char **ret_what);

/* Where standard output is counted, and the last bytes of what a person would see as errors. */
const struct pump *streams_out(const struct streams *streams);
const struct pump *streams_err(const struct streams *streams);

void streams_close(struct streams *streams);
