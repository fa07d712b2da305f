#include "broker/pump.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A terminal may be stopped (^S) with room for less than a page: small steps do not hang on it. */
#define TERMINAL_STEP_BYTES 256
/* Less than that is copied: a splice costs two system calls more. */
#define SPLICE_BYTES 32768u
/* Left for copying, since whoever keeps the tail needs it. */
#define SPLICE_REST_BYTES ((unsigned)INFER_TAIL_BYTES)

static bool is_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || !(flags & O_NONBLOCK);
}

/* Another description of the same pipe, with flags of its own. -1 where the kernel refuses. */
static int open_anew(int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void look_at_target(struct pump *pump)
{
	int flags = fcntl(pump->to, F_GETFL);
	struct stat status;

	pump->target = PUMP_DEVICE;
	if (flags < 0 || fstat(pump->to, &status) < 0)
		return;
	if ((flags & O_ACCMODE) == O_RDONLY)
		/* poll(2) would never call it writable: the first write says what it is */
		pump->target = PUMP_FILE;
	else if (S_ISFIFO(status.st_mode))
		pump->target = PUMP_PIPE;
	else if (S_ISSOCK(status.st_mode))
		pump->target = PUMP_SOCKET;
	else if (S_ISREG(status.st_mode) ||
		 (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)))
		pump->target = PUMP_FILE;
	else if (isatty(pump->to))
		pump->target = PUMP_TERMINAL;
	pump->is_terminal = pump->target == PUMP_TERMINAL;
	if (pump->target == PUMP_PIPE && !(flags & O_NONBLOCK))
		pump->anew = open_anew(pump->to);
	pump->can_splice = pump->from_is_pipe &&
			   (pump->target == PUMP_PIPE || pump->target == PUMP_FILE);
}

/* Those of the action before, in a live task: to unmap what was written to costs some 50 us. */
static struct pump_bytes *spare_bytes[2];

static struct pump_bytes *take_bytes(void)
{
	struct pump_bytes *held = NULL;

	for (unsigned i = 0; i < 2 && !held; i++) {
		held = spare_bytes[i];
		spare_bytes[i] = NULL;
	}
	if (held)
		return held;
	/* not malloc(3), which writes to both ends of it: most streams stay empty */
	held = mmap(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	return held == MAP_FAILED ? NULL : held;
}

static void give_back(struct pump_bytes *held)
{
	for (unsigned i = 0; i < 2; i++)
		if (!spare_bytes[i]) {
			spare_bytes[i] = held;
			return;
		}
	(void)munmap(held, sizeof(*held));
}

int pump_begin(struct pump *pump, int from, int to)
{
	struct pump_bytes *held = take_bytes();
	struct stat status;

	if (!held)
		return -ENOMEM;
	*pump = (struct pump){ .from = from, .to = to, .anew = -1, .held = held };
	pump->from_is_pipe = fstat(from, &status) == 0 && S_ISFIFO(status.st_mode);
	/* one whose other side has gone says EIO, which is its end */
	pump->from_is_terminal = fstat(from, &status) == 0 && S_ISCHR(status.st_mode);
	pump->from_blocks = is_blocking(from);
	look_at_target(pump);
	return 0;
}

void pump_spool(struct pump *pump, struct spool *spool, enum spool_stream stream)
{
	pump->spool = spool;
	pump->stream = stream;
}

void pump_cap(struct pump *pump, uint64_t cap_bytes, enum pump_beyond beyond)
{
	pump->cap_bytes = cap_bytes;
	pump->beyond = beyond;
}

static size_t pending(const struct pump *pump)
{
	return pump->pending_end - pump->pending_start;
}

static int target_fd(const struct pump *pump)
{
	return pump->anew >= 0 ? pump->anew : pump->to;
}

bool pump_poll(const struct pump *pump, struct pollfd *ret_entry)
{
	bool reads = pump->from >= 0 && !pump->stopped && !pump->spool_failure;
	/*
	 * Draining waits for the target alone: somebody may have taken from the pipe what we saw in
	 * it, and then the source would never be ready.
	 */
	bool waits = pending(pump) || (reads && (pump->is_full || pump->is_draining));

	if (waits && !pump->broken)
		*ret_entry = (struct pollfd){ .fd = target_fd(pump), .events = POLLOUT };
	else if (reads)
		*ret_entry = (struct pollfd){ .fd = pump->from, .events = POLLIN };
	else
		return false;
	return true;
}

static void keep_tail(struct pump *pump, const char *bytes, size_t length)
{
	size_t room = sizeof(pump->held->tail);
	char *tail = pump->held->tail;

	if (length >= room) {
		memcpy(tail, bytes + length - room, room);
		pump->tail_length = room;
		return;
	}
	if (pump->tail_length + length > room) {
		size_t drop = pump->tail_length + length - room;

		memmove(tail, tail + drop, pump->tail_length - drop);
		pump->tail_length -= drop;
	}
	memcpy(tail + pump->tail_length, bytes, length);
	pump->tail_length += length;
}

static bool is_filtered(const struct pump *pump)
{
	return pump->is_terminal || pump->is_screen;
}

static void put(struct pump *pump, const char *bytes, size_t length)
{
	pump->pending_start = 0;
	pump->pending = bytes;
	pump->pending_end = length;
	if (!is_filtered(pump))
		return;
	pump->pending = pump->held->shown;
	pump->pending_end =
		pump->is_screen ? screen_filter(&pump->screen, bytes, length, pump->held->shown) :
				  terminal_filter(&pump->filter, bytes, length, pump->held->shown);
}

static void finish(struct pump *pump)
{
	static const char reset[] = "\033[0m";

	fd_close(&pump->from);
	pump->pending_start = pump->pending_end = 0;
	if (!is_filtered(pump) || !pump->bytes || pump->broken)
		return;
	pump->pending = pump->held->shown;
	if (pump->is_screen) {
		pump->pending_end = screen_filter_end(&pump->screen, pump->held->shown);
		return;
	}
	pump->pending_end = terminal_filter_end(&pump->filter, pump->held->shown);
	/* colours that the task left on are not the caller's prompt's */
	memcpy(pump->held->shown + pump->pending_end, reset, sizeof(reset) - 1);
	pump->pending_end += sizeof(reset) - 1;
}

static void reach_cap(struct pump *pump, uint64_t beyond)
{
	if (!pump->capped && pump->spool)
		spool_cut(pump->spool, pump->stream);
	pump->capped = true;
	if (pump->beyond == PUMP_BEYOND_END)
		pump->stopped = true;
	else
		pump->dropped += beyond;
}

/* What the cap leaves for more. */
static uint64_t cap_left(const struct pump *pump)
{
	return pump->cap_bytes ? pump->cap_bytes - pump->bytes : UINT64_MAX;
}

/* The chunk is in memory: spool, then everybody else. All of it, or nothing and held up. */
static void pass_on(struct pump *pump, size_t length)
{
	const char *chunk = pump->held->chunk;
	size_t kept = cap_left(pump) < length ? (size_t)cap_left(pump) : length;
	int result = 0;

	if (pump->spool && kept)
		result = spool_append(pump->spool, pump->stream, chunk, kept);
	pump->spool_failure = -result;
	pump->held_up = result < 0 ? length : 0;
	if (result < 0)
		return;
	if (kept) {
		pump->bytes += kept;
		pump->last = chunk[kept - 1];
		if (pump->keep_tail)
			keep_tail(pump, chunk, kept);
		if (pump->tee)
			pump->tee(pump->tee_context, chunk, kept);
		if (!pump->broken)
			put(pump, chunk, kept);
	}
	if (kept < length)
		reach_cap(pump, length - kept);
}

static int lengthen(int pipe_fd)
{
	int before = fcntl(pipe_fd, F_GETPIPE_SZ);

	if (before >= 0 && before < (int)PUMP_PIPE_BYTES)
		(void)fcntl(pipe_fd, F_SETPIPE_SZ, (int)PUMP_PIPE_BYTES);
	return before;
}

/*
 * A stream that fills its pipe gets longer ones, once: each change of hands moves more then. A
 * user who has too many of them gets none, and all goes on as it is.
 */
static void grow(struct pump *pump)
{
	if (pump->is_grown || !pump->from_is_pipe)
		return;
	pump->is_grown = true;
	(void)lengthen(pump->from);
	if (pump->target == PUMP_PIPE)
		pump->target_bytes = lengthen(target_fd(pump));
}

/* Returns the bytes taken; 0 when there are none for now, or the stream has ended. */
static size_t take(struct pump *pump)
{
	size_t room = is_filtered(pump) ? PUMP_TERMINAL_BYTES : PUMP_CHUNK_BYTES;
	ssize_t count;

	if (pump->is_draining && pump->drain_left < room)
		room = (size_t)pump->drain_left;
	/* with nothing left to drain: the end */
	count = room ? read(pump->from, pump->held->chunk, room) : 0;
	if (count < 0 && errno == EINTR)
		return 0;
	if (count < 0 && errno == EAGAIN && !pump->is_draining)
		return 0;
	if (count <= 0) {
		if (count < 0 && !(errno == EIO && pump->from_is_terminal))
			pump->source_failure = errno;
		finish(pump);
		return 0;
	}
	if (pump->is_draining)
		pump->drain_left -= (uint64_t)count;
	if (count == PUMP_CHUNK_BYTES)
		grow(pump);
	pass_on(pump, (size_t)count);
	return (size_t)count;
}

/* Returns the bytes moved; 0: copy instead, or the target is full (is_full). */
static size_t move(struct pump *pump)
{
	int available = 0;
	uint64_t want;
	ssize_t count;

	if (!pump->can_splice || pump->spool || pump->tee || is_filtered(pump) ||
	    ioctl(pump->from, FIONREAD, &available) < 0 || available < (int)SPLICE_BYTES)
		return 0;
	if (available >= PUMP_CHUNK_BYTES - (int)SPLICE_REST_BYTES)
		grow(pump);
	want = (unsigned)available - SPLICE_REST_BYTES;
	if (pump->is_draining && pump->drain_left < want + SPLICE_REST_BYTES)
		want = pump->drain_left > SPLICE_REST_BYTES ? pump->drain_left - SPLICE_REST_BYTES :
							      0;
	if (cap_left(pump) < want + SPLICE_REST_BYTES)
		want = cap_left(pump) > SPLICE_REST_BYTES ? cap_left(pump) - SPLICE_REST_BYTES : 0;
	if (!want)
		return 0;
	count = splice(pump->from, NULL, target_fd(pump), NULL, (size_t)want,
		       SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (count > 0) {
		pump->bytes += (uint64_t)count;
		pump->spliced += (uint64_t)count;
		pump->tail_length = 0;
		pump->drain_left -= pump->is_draining ? (uint64_t)count : 0;
		return (size_t)count;
	}
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		pump->is_full = true;
	else
		/* a file opened to append, or worse: writing tells what it is */
		pump->can_splice = false;
	return 0;
}

static void lose_target(struct pump *pump, int code)
{
	/* the reader has gone: the task's next write tells it so, as without us */
	if (code != EPIPE)
		pump->failure = code;
	pump->broken = true;
	pump->pending_start = pump->pending_end = 0;
	fd_close(&pump->from);
}

/* How much may be written at once, whatever poll(2) must be asked for before. */
static size_t step_bytes(const struct pump *pump, bool *ret_ask)
{
	*ret_ask = true;
	if (pump->target == PUMP_TERMINAL)
		return TERMINAL_STEP_BYTES;
	/* poll(2) promises room for PIPE_BUF bytes in a pipe that is writable */
	if (pump->target == PUMP_DEVICE ||
	    (pump->target == PUMP_PIPE && pump->anew < 0 && is_blocking(pump->to)))
		return PIPE_BUF;
	*ret_ask = false;
	return SIZE_MAX;
}

/* Returns the bytes written; 0: no room, or the target is lost. */
static size_t give(struct pump *pump)
{
	struct pollfd ready = { .fd = target_fd(pump), .events = POLLOUT };
	const char *bytes = pump->pending + pump->pending_start;
	bool ask;
	size_t step = step_bytes(pump, &ask);
	size_t length = pending(pump) < step ? pending(pump) : step;
	ssize_t count;

	if (ask && poll(&ready, 1, 0) != 1)
		return 0;
	if (pump->target == PUMP_SOCKET)
		count = send(pump->to, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		count = write(target_fd(pump), bytes, length);
	if (count < 0) {
		if (errno != EAGAIN && errno != EINTR)
			lose_target(pump, errno);
		return 0;
	}
	pump->pending_start += (size_t)count;
	return (size_t)count;
}

void pump_step(struct pump *pump, const struct pollfd *entry)
{
	/* where reading may block, poll(2) has to say first that it will not */
	bool may_read = !pump->from_blocks || entry->events == POLLIN;
	size_t moved = 0, count;

	if (!entry->revents)
		return;
	pump->is_full = false;
	do {
		count = 0;
		if (pending(pump)) {
			count = give(pump);
		} else if (pump->from >= 0 && !pump->stopped && !pump->spool_failure && may_read) {
			count = move(pump);
			if (!count && !pump->is_full)
				count = take(pump);
			/* the last word of a filter, after the end */
			if (!count && pending(pump))
				count = give(pump);
			may_read = !pump->from_blocks;
		}
		moved += count;
	} while (count && moved < PUMP_STEP_BYTES);
}

void pump_drain(struct pump *pump)
{
	int available = 0;

	if (pump->from < 0 || pump->is_draining)
		return;
	pump->is_draining = true;
	pump->drain_left = PUMP_DRAIN_BYTES;
	if (pump->from_is_pipe)
		pump->drain_left =
			ioctl(pump->from, FIONREAD, &available) == 0 ? (uint64_t)available : 0;
	if (pump->capped) {
		pump->dropped += pump->from_is_pipe ? pump->drain_left : 0;
		pump->drain_left = 0;
	}
	if (!pump->drain_left && !pending(pump) && !pump->held_up)
		finish(pump);
}

int pump_retry(struct pump *pump)
{
	if (pump->held_up)
		pass_on(pump, pump->held_up);
	return -pump->spool_failure;
}

void pump_forgo_spool(struct pump *pump)
{
	pump->spool = NULL;
	(void)pump_retry(pump);
}

bool pump_done(const struct pump *pump)
{
	return (pump->from < 0 || pump->stopped) && (pump->broken || !pending(pump));
}

void pump_end(struct pump *pump)
{
	fd_close(&pump->from);
	/* the caller's pipe as it was, unless more is in it */
	if (pump->held && pump->target_bytes > 0)
		(void)fcntl(target_fd(pump), F_SETPIPE_SZ, pump->target_bytes);
	/* one that never began has no such descriptor, and maybe 0 in its place */
	if (pump->held)
		fd_close(&pump->anew);
	if (pump->owns_to)
		fd_close(&pump->to);
	if (pump->held)
		give_back(pump->held);
	pump->held = NULL;
	pump->pending_start = pump->pending_end = pump->tail_length = 0;
}
