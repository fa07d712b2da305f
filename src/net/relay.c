#include "net/relay.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int relay_make(struct relay *relay)
{
	int result = pool_make(&relay->pool);

	if (result < 0)
		return result;
	relay->scratch = mmap(NULL, RELAY_BULK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return relay->scratch == MAP_FAILED ? -ENOMEM : 0;
}

void relay_rest(struct relay *relay)
{
	pool_rest(&relay->pool);
	if (relay->is_wide)
		(void)madvise(relay->scratch + RELAY_COPY_BYTES,
			      RELAY_BULK_BYTES - RELAY_COPY_BYTES, MADV_DONTNEED);
	relay->is_wide = false;
}

static bool is_passing(int code)
{
	return code == EAGAIN || code == EINTR;
}

/* Bytes sent, 0 where the socket takes none now, or -1: it is lost. */
static ssize_t give(struct end *to, const void *bytes, size_t length)
{
	ssize_t count;

	if (!to->writable || length == 0)
		return 0;
	count = send(to->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (count >= 0) {
		to->writable = (size_t)count == length;
		return count;
	}
	to->writable = errno == EINTR;
	to->is_lost = !is_passing(errno);
	return to->is_lost ? -1 : 0;
}

/* Bytes read, 0 where nothing came (from->is_done: the end), or a negative errno: it is lost. */
static ssize_t take_flags(struct end *from, void *bytes, size_t length, int flags)
{
	ssize_t count;

	if (!from->readable || from->is_done)
		return 0;
	do
		count = recv(from->fd, bytes, length, MSG_DONTWAIT | flags);
	while (count < 0 && errno == EINTR);
	if (count > 0)
		return count;
	from->readable = false;
	if (count == 0) {
		from->is_done = true;
		return 0;
	}
	from->is_lost = errno != EAGAIN;
	return from->is_lost ? -errno : 0;
}

static ssize_t take(struct end *from, void *bytes, size_t length)
{
	return take_flags(from, bytes, length, 0);
}

bool end_has_more(struct end *end)
{
	char byte;
	ssize_t count;

	if (!end->readable || end->is_done)
		return false;
	do
		count = recv(end->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	while (count < 0 && errno == EINTR);
	if (count > 0)
		return true;
	end->readable = false;
	end->is_done = count == 0;
	end->is_lost = count < 0 && errno != EAGAIN;
	return false;
}

enum relay_result relay_flush(struct relay *relay, struct stream *stream)
{
	while (chunk_length(stream->out) > 0) {
		ssize_t count = give(stream->to, stream->out->bytes + stream->out->start,
				     chunk_length(stream->out));

		if (count < 0)
			return RELAY_LOST;
		if (count == 0)
			return RELAY_WAIT;
		stream->passed += (uint64_t)count;
		chunk_skip(stream->out, (size_t)count);
	}
	pool_give(&relay->pool, &stream->out);
	return RELAY_RAN;
}

bool relay_put(struct relay *relay, struct stream *stream, const void *bytes, size_t length)
{
	if (length == 0)
		return true;
	if (stream->out == NULL)
		stream->out = pool_take(&relay->pool);
	return stream->out && chunk_add(stream->out, bytes, length);
}

/* What did not fill the room was all there is, and more would be news of its own. */
static void note_all_read(struct end *from, size_t count, size_t room)
{
	if (count < room && !from->is_ending && !from->is_marked)
		from->readable = false;
}

int relay_fill(struct relay *relay, struct stream *stream)
{
	ssize_t count;

	if (!stream->from->readable || stream->from->is_done)
		return 0;
	if (stream->in == NULL &&
	    pool_left(&relay->pool) > (stream->is_modest ? POOL_LIMIT_RESERVED : 1u))
		stream->in = pool_take(&relay->pool);
	/* an open one has to have another for what it makes of it */
	if (stream->in == NULL)
		return -ENOMEM;
	chunk_compact(stream->in, sizeof(stream->in->bytes) / 2);
	if (chunk_room(stream->in) == 0)
		return -ENOBUFS;
	count = take(stream->from, stream->in->bytes + stream->in->end, chunk_room(stream->in));
	if (count > 0) {
		note_all_read(stream->from, (size_t)count, chunk_room(stream->in));
		stream->in->end += (uint32_t)count;
	}
	if (chunk_length(stream->in) == 0)
		pool_give(&relay->pool, &stream->in);
	return (int)count;
}

int relay_drop(struct relay *relay, struct end *from)
{
	return (int)take(from, relay->scratch, RELAY_COPY_BYTES);
}

static void use_run(struct stream *stream, uint64_t count)
{
	if (stream->run != RELAY_ENDLESS)
		stream->run -= count;
}

/* Gives bytes of the run on, and keeps what the other end does not take. */
static bool pass(struct relay *relay, struct stream *stream, const unsigned char *bytes,
		 size_t length)
{
	ssize_t count = give(stream->to, bytes, length);

	if (count < 0)
		return false;
	use_run(stream, length);
	stream->passed += (uint64_t)count;
	return relay_put(relay, stream, bytes + count, length - (size_t)count);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Gives on what the other end takes now, and keeps nothing: how much that was, or -1. */
static int64_t pass_some(struct stream *stream, const unsigned char *bytes, size_t length)
{
	ssize_t count = give(stream->to, bytes, length);

	if (count < 0)
		return -1;
	use_run(stream, (uint64_t)count);
	stream->passed += (uint64_t)count;
	return count;
}

/* What has come already counts before what is still to be read. Returns what was moved, or -1. */
static int64_t move_in(struct relay *relay, struct stream *stream, uint64_t limit)
{
	size_t length = (size_t)least(least(chunk_length(stream->in), stream->run), limit);

	int64_t count = (int64_t)length;

	if (length == 0)
		return 0;
	if (pool_left(&relay->pool) == 0)
		count = pass_some(stream, stream->in->bytes + stream->in->start, length);
	else if (!pass(relay, stream, stream->in->bytes + stream->in->start, length))
		count = -1;
	if (count > 0)
		stream_skip(relay, stream, (size_t)count);
	return count;
}

/*
 * Much at a time, or without a chunk for the rest: only what the other end has taken is taken from
 * its socket, of which TCP forgets it without copying it again (tcp(7), MSG_TRUNC).
 */
static int64_t move_peek(struct relay *relay, struct stream *stream, uint64_t limit)
{
	size_t room = (size_t)least(least(RELAY_BULK_BYTES, stream->run), limit);
	ssize_t count;
	int64_t passed;

	if (!stream->to->writable)
		return 0;
	count = take_flags(stream->from, relay->scratch, room, MSG_PEEK);
	stream->is_bulk = false;
	if (count <= 0)
		return count;
	relay->is_wide |= count > (ssize_t)RELAY_COPY_BYTES;
	passed = pass_some(stream, relay->scratch, (size_t)count);
	stream->is_bulk = count >= (ssize_t)RELAY_COPY_BYTES || passed < count;
	if (passed <= 0)
		return passed;
	if (take_flags(stream->from, relay->scratch, (size_t)passed, MSG_TRUNC) != passed)
		return -1;
	if (passed == count)
		note_all_read(stream->from, (size_t)count, room);
	return passed;
}

static int64_t move_copy(struct relay *relay, struct stream *stream, uint64_t limit)
{
	size_t room = (size_t)least(least(RELAY_COPY_BYTES, stream->run), limit);
	ssize_t count = take(stream->from, relay->scratch, room);

	if (count <= 0)
		return count;
	note_all_read(stream->from, (size_t)count, room);
	stream->is_bulk = count == (ssize_t)RELAY_COPY_BYTES;
	return pass(relay, stream, relay->scratch, (size_t)count) ? count : -1;
}

/* Where no byte may pass an end does. */
static enum relay_result wait_for_limit(struct stream *stream)
{
	if (chunk_length(stream->in) > 0 || end_has_more(stream->from))
		return RELAY_WAIT;
	return stream->from->is_lost ? RELAY_LOST :
	       stream->from->is_done ? RELAY_ENDED :
				       RELAY_WAIT;
}

enum relay_result relay_move(struct relay *relay, struct stream *stream, uint64_t limit)
{
	uint64_t moved = 0;

	for (;;) {
		enum relay_result result = relay_flush(relay, stream);
		int64_t count;

		if (result != RELAY_RAN)
			return result;
		if (stream->run == 0)
			return RELAY_RAN;
		if (moved >= limit)
			return wait_for_limit(stream);
		if (moved >= RELAY_TURN_BYTES)
			return RELAY_AGAIN;
		if (chunk_length(stream->in) > 0)
			count = move_in(relay, stream, limit - moved);
		else if (!stream->from->readable || stream->from->is_done)
			count = 0;
		else if (stream->is_bulk || pool_left(&relay->pool) == 0)
			count = move_peek(relay, stream, limit - moved);
		else
			count = move_copy(relay, stream, limit - moved);
		if (count < 0)
			return RELAY_LOST;
		moved += (uint64_t)count;
		if (count > 0)
			continue;
		return stream->from->is_done && chunk_length(stream->in) == 0 ? RELAY_ENDED :
										RELAY_WAIT;
	}
}

void end_shut(struct end *end)
{
	if (end->fd >= 0 && !end->is_shut)
		(void)shutdown(end->fd, SHUT_WR);
	end->is_shut = true;
}

void end_reset(struct end *end)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	if (end->fd >= 0)
		(void)setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	end_close(end);
}

void end_close(struct end *end)
{
	fd_close(&end->fd);
	*end = END_NONE;
}

void relay_release(struct relay *relay, struct stream *stream)
{
	pool_give(&relay->pool, &stream->in);
	pool_give(&relay->pool, &stream->out);
	*stream = STREAM_NONE;
}
