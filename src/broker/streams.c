#include "broker/streams.h"

#include "base/error.h"
#include "base/fd.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IN, OUT, ERR };

/*
 * A pipe for the task. Whoever opens /dev/stdout opens the pipe anew, which needs rights to it: a
 * root caller's task has an id of its own.
 */
static int make_pipe(bool root, int pair[static 2])
{
	int result;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	if (!root || fchown(pair[0], PLAN_ROOT_HOST_ID, PLAN_ROOT_HOST_ID) == 0)
		return 0;
	result = -errno;
	(void)close(pair[0]);
	(void)close(pair[1]);
	return result;
}

static void unblock(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/*
 * The caller's input. Where it can be opened anew (a pipe, a terminal), that one does not block:
 * O_NONBLOCK on the caller's own would stay there when we have gone, for its shell to stumble over.
 */
static int open_input(int fd)
{
	struct stat status;
	char path[32];
	int anew = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || isatty(fd)))
		anew = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return anew >= 0 ? anew : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int open_in(struct streams *streams, const struct streams_options *options, int *ret_end)
{
	int pair[2], from, result;

	if (options->in < 0) {
		*ret_end = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *ret_end < 0 ? -errno : 0;
	}
	result = make_pipe(options->root, pair);
	if (result < 0)
		return result;
	*ret_end = pair[0];
	/* the task can fill its own input: we must not wait for room there */
	unblock(pair[1]);
	from = open_input(options->in);
	result = pump_begin(&streams->in, from, pair[1]);
	if (result < 0) {
		fd_close(&from);
		(void)close(pair[1]);
		return result;
	}
	streams->in.owns_to = true;
	return 0;
}

static int open_out(struct pump *pump, const struct streams_options *options, int to, int *ret_end)
{
	int pair[2], result = make_pipe(options->root, pair);

	if (result < 0)
		return result;
	*ret_end = pair[1];
	unblock(pair[0]);
	result = pump_begin(pump, pair[0], to);
	if (result < 0) {
		(void)close(pair[0]);
		return result;
	}
	if (options->cap_bytes)
		pump_cap(pump, options->cap_bytes, PUMP_BEYOND_END);
	return 0;
}

/* All three ends are the slave. Our own copy goes when the action has it. */
static int open_terminal(struct streams *streams, const struct streams_options *options,
			 int ends[static 3], struct error *error)
{
	struct pty_pair pair;
	int result = pty_open(options->devpts_fd, options->root ? PLAN_ROOT_HOST_ID : (uid_t)-1,
			      &pair, error);

	if (result < 0)
		return result;
	ends[IN] = pair.slave;
	ends[OUT] = fcntl(pair.slave, F_DUPFD_CLOEXEC, 3);
	ends[ERR] = fcntl(pair.slave, F_DUPFD_CLOEXEC, 3);
	if (ends[OUT] < 0 || ends[ERR] < 0)
		result = error_errno(error, errno, "making the terminal");
	else if (options->remote)
		result = pty_begin_remote(&streams->pty, pair.master, options->in, options->out,
					  options->remote, error);
	else
		result = pty_begin(&streams->pty, pair.master, options->in, options->out, error);
	if (result < 0) {
		(void)close(pair.master);
		return result;
	}
	streams->has_pty = true;
	streams->pty.out.keep_tail = true;
	if (options->cap_bytes)
		pump_cap(&streams->pty.out, options->cap_bytes, PUMP_BEYOND_END);
	return 0;
}

static int open_pipes(struct streams *streams, const struct streams_options *options,
		      int ends[static 3], struct error *error)
{
	int result = open_in(streams, options, &ends[IN]);

	if (result == 0)
		result = open_out(&streams->out, options, options->out, &ends[OUT]);
	if (result == 0)
		result = open_out(&streams->err, options, options->err, &ends[ERR]);
	streams->err.keep_tail = true;
	return result < 0 ? error_errno(error, result, "making the streams") : 0;
}

int streams_open(struct streams *streams, const struct streams_options *options,
		 int ret_ends[static 3], struct error *error)
{
	int ends[3] = { -1, -1, -1 };
	int result;

	*streams = STREAMS_NONE;
	streams->is_unkept = options->unkept;
	result = options->devpts_fd >= 0 ? open_terminal(streams, options, ends, error) :
					   open_pipes(streams, options, ends, error);
	if (result < 0) {
		streams_close(streams);
		for (unsigned i = 0; i < 3; i++)
			fd_close(&ends[i]);
		return result;
	}
	for (unsigned i = 0; i < 3; i++)
		ret_ends[i] = ends[i];
	return 0;
}

void streams_poll(const struct streams *streams, bool with_in,
		  struct pollfd entries[static STREAMS_WATCHES])
{
	for (unsigned i = 0; i < STREAMS_WATCHES; i++)
		entries[i] = (struct pollfd){ .fd = -1 };
	if (streams->has_pty) {
		(void)pty_poll(&streams->pty, entries);
		return;
	}
	if (with_in)
		(void)pump_poll(&streams->in, &entries[IN]);
	(void)pump_poll(&streams->out, &entries[OUT]);
	(void)pump_poll(&streams->err, &entries[ERR]);
}

static void set_spool(struct streams *streams)
{
	if (streams->has_pty) {
		pump_spool(&streams->pty.out, &streams->spool, SPOOL_OUT);
		return;
	}
	pump_spool(&streams->out, &streams->spool, SPOOL_OUT);
	pump_spool(&streams->err, &streams->spool, SPOOL_ERR);
}

/* Many actions write nothing: no spool for them. Without memory for one the output goes on. */
static void begin_spool(struct streams *streams)
{
	struct error ignored = ERROR_NONE;

	if (streams->has_spool || streams->spool_failed || streams->is_unkept)
		return;
	streams->spool_failed = spool_begin_early(&streams->spool, &ignored) < 0;
	streams->has_spool = !streams->spool_failed;
	if (streams->has_spool)
		set_spool(streams);
}

bool streams_wants_place(const struct streams *streams, bool is_old)
{
	const struct spool *spool = &streams->spool;

	if (!streams->has_spool)
		return false;
	return streams_out(streams)->spool_failure || streams_err(streams)->spool_failure ||
	       (spool->is_early &&
		(is_old || spool->bytes[SPOOL_OUT] + spool->bytes[SPOOL_ERR] >= SPOOL_EARLY_BYTES));
}

void streams_end_spool(struct streams *streams)
{
	const uint64_t dropped[SPOOL_STREAM_COUNT] = { streams_out(streams)->dropped,
						       streams->err.dropped };
	struct error ignored = ERROR_NONE;

	/* a lost time in the index is no loss of output */
	if (streams->has_spool)
		(void)spool_end(&streams->spool, dropped, &ignored);
}

bool streams_place_spool(struct streams *streams, int task_fd, const char *action,
			 struct error *error)
{
	struct pump *pumps[] = { &streams->out, &streams->err, &streams->pty.out };
	int code = 0;

	if (streams->has_spool && streams->spool.is_early)
		code = spool_place(&streams->spool, task_fd, action, error);
	for (unsigned i = 0; i < 3; i++)
		if (pumps[i]->spool && pumps[i]->spool_failure && code == 0)
			code = error_errno(error, -pumps[i]->spool_failure, "writing the spool %s",
					   action);
	if (code == 0)
		return true;
	/* nothing that was acknowledged is lost: it stays readable as far as it came */
	for (unsigned i = 0; i < 3; i++)
		if (pumps[i]->spool)
			pump_forgo_spool(pumps[i]);
	spool_close(&streams->spool);
	streams->has_spool = false;
	streams->spool_failed = true;
	return false;
}

/* Its end alone is no output. What is drained is not waited for. */
static bool brings(const struct pump *pump, const struct pollfd *entry)
{
	return (entry->revents & POLLIN) || (entry->revents && pump->is_draining);
}

void streams_step(struct streams *streams, const struct pollfd entries[static STREAMS_WATCHES])
{
	if (entries[OUT].revents || (!streams->has_pty && entries[ERR].revents)) {
		if (brings(streams_out(streams), &entries[OUT]) ||
		    brings(streams_err(streams), &entries[ERR]))
			begin_spool(streams);
		if (streams->before)
			streams->before(streams->before_context);
	}
	if (streams->has_pty) {
		pty_step(&streams->pty, entries);
		return;
	}
	if (entries[OUT].revents)
		pump_step(&streams->out, &entries[OUT]);
	if (entries[ERR].revents)
		pump_step(&streams->err, &entries[ERR]);
	if (entries[IN].revents)
		pump_step(&streams->in, &entries[IN]);
	if (pump_done(&streams->in) && streams->in.owns_to)
		pump_end(&streams->in);
}

void streams_drain(struct streams *streams, bool others_write)
{
	if (streams->has_pty) {
		pty_drain(&streams->pty);
		return;
	}
	pump_end(&streams->in);
	if (!others_write)
		return;
	pump_drain(&streams->out);
	pump_drain(&streams->err);
}

bool streams_done(const struct streams *streams)
{
	return streams->has_pty ? pty_done(&streams->pty) :
				  pump_done(&streams->out) && pump_done(&streams->err);
}

void streams_cut(struct streams *streams)
{
	if (streams->has_pty) {
		pty_end(&streams->pty);
		return;
	}
	pump_end(&streams->out);
	pump_end(&streams->err);
}

const struct pump *streams_out(const struct streams *streams)
{
	return streams->has_pty ? &streams->pty.out : &streams->out;
}

const struct pump *streams_err(const struct streams *streams)
{
	/* a terminal has one stream */
	return streams->has_pty ? &streams->pty.out : &streams->err;
}

int streams_failure(const struct streams *streams, const char **ret_what)
{
	const struct {
		int code;
		const char *what;
	} failures[] = {
		{ streams_out(streams)->failure, "standard output could not be written" },
		{ streams_err(streams)->failure, "standard error could not be written" },
		{ streams->in.source_failure, "standard input could not be read" },
	};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		*ret_what = failures[i].what;
		if (failures[i].code)
			return failures[i].code;
	}
	return 0;
}

void streams_close(struct streams *streams)
{
	spool_close(&streams->spool);
	pty_end(&streams->pty);
	pump_end(&streams->in);
	pump_end(&streams->out);
	pump_end(&streams->err);
}
