#include "broker/join.h"

#include "base/error.h"
#include "base/fd.h"
#include "broker/operate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* For a client that reads: what is in the pipes when the action ends. */
#define FLUSH_MS 500

enum { OUT, ERR, IN, WAYS };

struct way {
	struct task_watch watch;
	struct joined *joined;
	struct pump pump;
	int to; /* OUT, ERR: our end of the pipe, which the copies go into; -1: broken */
};

struct joined {
	struct joined *next; /* of the same job */
	struct task *task;
	struct job *job;
	struct operate_peer *word; /* owned by us from join_finish() on */
	int fds[3];		   /* the client's in, out, err; owned */
	struct way ways[WAYS];
};

static void copy_to(struct joined *joined, unsigned way, const void *bytes, size_t length)
{
	struct way *to = &joined->ways[way];

	/* all or nothing: a gap in the middle would look like the action's own output */
	if (to->to >= 0 && write(to->to, bytes, length) != (ssize_t)length)
		fd_close(&to->to);
}

static void on_out(void *context, const void *bytes, size_t length)
{
	for (struct joined *joined = ((struct job *)context)->joined; joined; joined = joined->next)
		copy_to(joined, OUT, bytes, length);
}

static void on_err(void *context, const void *bytes, size_t length)
{
	for (struct joined *joined = ((struct job *)context)->joined; joined; joined = joined->next)
		copy_to(joined, ERR, bytes, length);
}

static void listen_to(struct job *job)
{
	struct streams *streams = &job->streams;
	struct pump *out = streams->has_pty ? &streams->pty.out : &streams->out;

	out->tee = job->joined ? on_out : NULL;
	out->tee_context = job;
	if (streams->has_pty)
		return;
	streams->err.tee = job->joined ? on_err : NULL;
	streams->err.tee_context = job;
}

static void prepare(struct task_watch *watch)
{
	struct way *way = (struct way *)((char *)watch - offsetof(struct way, watch));
	struct pollfd entry = { .fd = -1 };

	if (!pump_poll(&way->pump, &entry))
		entry.fd = -1;
	watch->fd = entry.fd;
	watch->events = entry.events;
}

static void on_ready(struct task *task, struct task_watch *watch, short events)
{
	struct way *way = (struct way *)((char *)watch - offsetof(struct way, watch));
	struct pollfd entry = { .fd = watch->fd, .events = watch->events, .revents = events };

	(void)task;
	pump_step(&way->pump, &entry);
}

static int open_way(struct joined *joined, unsigned number, int from, int to)
{
	struct way *way = &joined->ways[number];
	int result = pump_begin(&way->pump, from, to);

	if (result < 0)
		return result;
	way->watch = (struct task_watch){ .fd = -1, .prepare = prepare, .ready = on_ready };
	task_watch_add(joined->task, &way->watch);
	return 0;
}

/* The copies of one stream, by a pipe that never makes us wait. */
static int open_copy(struct joined *joined, unsigned number, int to)
{
	int pair[2], result;

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
	result = open_way(joined, number, pair[0], to);
	if (result < 0) {
		(void)close(pair[0]);
		(void)close(pair[1]);
		return result;
	}
	joined->ways[number].to = pair[1];
	/* as for the action's own terminal: what a person asked for passes (broker/screen.h) */
	if (joined->job->streams.has_pty && joined->ways[number].pump.is_terminal) {
		joined->ways[number].pump.is_terminal = false;
		joined->ways[number].pump.is_screen = true;
	}
	return 0;
}

static void free_joined(struct joined *joined)
{
	for (unsigned i = 0; i < WAYS; i++) {
		task_watch_remove(joined->task, &joined->ways[i].watch);
		fd_close(&joined->ways[i].to);
		pump_end(&joined->ways[i].pump);
	}
	for (unsigned i = 0; i < 3; i++)
		fd_close(&joined->fds[i]);
	free(joined);
}

int join_begin(struct task *task, struct job *job, struct operate_peer *word, int fds[static 3],
	       struct joined **ret_joined, struct error *error)
{
	struct joined *joined;
	unsigned count = 0;
	int result = 0;

	for (const struct joined *at = job->joined; at; at = at->next)
		count++;
	if (count >= JOIN_LIMIT)
		return error_set(error, EAGAIN, "%u have joined the action already", count);
	joined = calloc(1, sizeof(*joined));
	if (!joined)
		return error_errno(error, ENOMEM, "joining the action");
	joined->task = task;
	joined->job = job;
	joined->word = word;
	for (unsigned i = 0; i < WAYS; i++)
		joined->ways[i] = (struct way){ .watch = { .fd = -1 },
						.pump = { .from = -1, .to = -1 },
						.to = -1 };
	for (unsigned i = 0; i < 3; i++)
		joined->fds[i] = TAKE_FD(fds[i]);
	result = open_copy(joined, OUT, joined->fds[1]);
	if (result == 0)
		result = open_copy(joined, ERR, joined->fds[2]);
	/* an action without a terminal has its input from elsewhere, if any */
	if (result == 0 && joined->fds[0] >= 0 && job->streams.has_pty) {
		int from = fcntl(joined->fds[0], F_DUPFD_CLOEXEC, 3);

		result = from < 0 ? -errno : open_way(joined, IN, from, job->streams.pty.master);
		if (result < 0)
			fd_close(&from);
		else
			pty_feed(&joined->ways[IN].pump);
	}
	if (result < 0) {
		free_joined(joined);
		return error_errno(error, result, "joining the action");
	}
	joined->next = job->joined;
	job->joined = joined;
	listen_to(job);
	*ret_joined = joined;
	return 0;
}

void join_leave(struct joined *joined)
{
	struct job *job = joined->job;

	for (struct joined **at = &job->joined; *at; at = &(*at)->next)
		if (*at == joined) {
			*at = joined->next;
			break;
		}
	listen_to(job);
	free_joined(joined);
}

static void flush(struct joined *joined)
{
	for (unsigned i = OUT; i <= ERR; i++) {
		struct pump *pump = &joined->ways[i].pump;
		struct pollfd entry;

		fd_close(&joined->ways[i].to);
		while (!pump_done(pump) && pump_poll(pump, &entry) && poll(&entry, 1, FLUSH_MS) > 0)
			pump_step(pump, &entry);
	}
}

void join_finish(struct job *job)
{
	struct joined *next;

	for (struct joined *joined = job->joined; joined; joined = next) {
		next = joined->next;
		flush(joined);
		control_result(joined->word->peer, result_status(job->options.result), NULL, NULL);
		free(joined->word);
		free_joined(joined);
	}
	job->joined = NULL;
	listen_to(job);
}
