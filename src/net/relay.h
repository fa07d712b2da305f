/*
 * Moving bytes between two sockets: one direction of a connection.
 *
 * A stream takes from one end and gives to the other. What it may pass without anybody looking at
 * it is its `run`: the rest of a body, or all that comes. It is copied through one buffer that all
 * share, so idle connections hold no memory. Bytes that the other end does not take yet wait in a
 * chunk (net/pool.h), and nothing more is read meanwhile: memory does not grow with what is sent.
 * While much comes, and where no chunk is left, no more is taken than the other end takes at once.
 *
 * Copied, and not spliced: a pipe has a page in each place, and the packets that are made of those
 * have seventeen at the most. What is sent in one call of 256 KiB leaves in large ones, and wakes
 * whoever waits for it once (kernel/capture.c lets the box's loopback have them).
 *
 * Ends are edge-triggered: `readable` and `writable` are what is believed until a call says
 * EAGAIN. No function blocks, none allocates but by the pool.
 */
#pragma once

#include "net/pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_COPY_BYTES (64u * 1024)
/* What is passed at once where that filled the buffer. */
#define RELAY_BULK_BYTES (256u * 1024)
/* What a direction may move before others have their turn. */
#define RELAY_TURN_BYTES (1024u * 1024)
#define RELAY_ENDLESS UINT64_MAX

struct relay {
	struct pool pool;
	unsigned char *scratch; /* RELAY_BULK_BYTES */
	bool is_wide;		/* more than RELAY_COPY_BYTES of it were used */
};

/* A socket of the task's, or of the upstream. */
struct end {
	int fd; /* owned; -1: none */
	bool readable, writable;
	bool is_ending; /* its end of file or an error has come, and is not read yet */
	bool is_marked; /* had urgent data, before and behind which a read stops short (tcp(7)) */
	bool is_done;	/* it sent its end of file, and that was read */
	bool is_shut;	/* we shut our side of it */
	bool is_gone;	/* reset, or closed in both directions: nothing that is sent arrives */
	bool is_lost;	/* reset, or any other error */
};

#define END_NONE ((struct end){ .fd = -1 })

struct stream {
	struct end *from, *to;
	struct chunk *in;  /* came, and waits to be understood */
	struct chunk *out; /* understood, and waits to be sent; sent before all else */
	bool is_modest;	   /* relay_fill() leaves the reserve of the pool alone */
	uint64_t run;	   /* how much may pass as it comes, behind `in`; RELAY_ENDLESS: all */
	uint64_t passed;   /* bytes given to the other end so far */
	bool is_bulk;	   /* more came at once than is copied, or was taken at once */
};

#define STREAM_NONE ((struct stream){ .from = NULL })

/* -ENOMEM. */
int relay_make(struct relay *relay);

/* Gives memory of bursts back to the kernel, and whether there is any. Called now and then. */
void relay_rest(struct relay *relay);

static inline bool relay_is_warm(const struct relay *relay)
{
	return relay->is_wide || pool_is_warm(&relay->pool);
}

enum relay_result {
	RELAY_WAIT,  /* nothing more can be done now */
	RELAY_AGAIN, /* its turn is over; there may be more */
	RELAY_RAN,   /* the run is through, all of it given to the other end */
	RELAY_ENDED, /* the end of file came within the run; all before it was given */
	RELAY_LOST,  /* an end failed, or memory did */
};

/*
 * Sends what waits, then moves the run. What `in` holds counts as come first. Bytes moved are at
 * most `limit` (a quota); 0 only sends what waits.
 */
enum relay_result relay_move(struct relay *relay, struct stream *stream, uint64_t limit);

/* Sends what waits (`out`): RELAY_RAN when nothing does any more. */
enum relay_result relay_flush(struct relay *relay, struct stream *stream);

/*
 * Reads into `in`, which is taken from the pool where there is none: the number of bytes, 0 where
 * nothing is there (from->is_done tells the end), or negative: -EAGAIN never, -ENOBUFS where the
 * chunk is full, -ENOMEM where there is none for it now, or the socket's error.
 */
int relay_fill(struct relay *relay, struct stream *stream);

/* Whether relay_put() has memory for bytes that are to be sent now. */
static inline bool relay_has_room(const struct relay *relay, const struct stream *stream)
{
	return stream->out || pool_left(&relay->pool) > 0;
}

/* Reads and forgets: the number of bytes, 0 where nothing is there, or negative. */
int relay_drop(struct relay *relay, struct end *from);

/* Puts bytes behind what waits to be sent; false where there is no room. */
bool relay_put(struct relay *relay, struct stream *stream, const void *bytes, size_t length);

/* Forgets the first bytes of `in`, and gives it back when nothing is left. */
static inline void stream_skip(struct relay *relay, struct stream *stream, size_t length)
{
	chunk_skip(stream->in, length);
	if (chunk_length(stream->in) == 0)
		pool_give(&relay->pool, &stream->in);
}

/* Bytes that were taken and not given on yet. */
static inline uint64_t stream_waiting(const struct stream *stream)
{
	return chunk_length(stream->out);
}

/*
 * Whether a byte is there that was not read yet: news of readiness may be of what was. Learns of
 * the end and of a loss, too.
 */
bool end_has_more(struct end *end);

/* Shuts the sending side of an end, once. */
void end_shut(struct end *end);

/* Closes it so that the other side sees a reset: nothing that was sent counts as complete. */
void end_reset(struct end *end);

void end_close(struct end *end);

/* Gives its memory back. */
void relay_release(struct relay *relay, struct stream *stream);
