#include "workspace/host_program.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NANOSECONDS_PER_MS 1000000ull
#define CHUNK_BYTES (64u * 1024)

enum { OUT, ERR, END, SOURCES };

struct running {
	const struct host_program *program;
	pid_t pid;
	int sources[SOURCES]; /* what it writes, and its end (a pidfd); -1: done */
	uint64_t deadline_ns;
	uint64_t bytes;
	bool has_said;
	bool is_waited;
	int status;
};

/* ---- the start ---- */

/* Ours lie above all that the program is given: putting one in its place overwrites no other. */
static int lift(const struct host_program *program, int lifted[static HOST_PROGRAM_LIMIT_FDS])
{
	for (size_t i = 0; i < program->fd_count; i++) {
		lifted[i] = fcntl(program->fds[i], F_DUPFD_CLOEXEC,
				  HOST_PROGRAM_FIRST_FD + HOST_PROGRAM_LIMIT_FDS);
		if (lifted[i] < 0)
			return -errno;
	}
	return 0;
}

/*
 * With the limit from its first instruction on: ours, lowered for the moment of the start, is
 * inherited. What it maps of files does not count.
 */
static int spawn_limited(struct running *running, posix_spawn_file_actions_t *actions)
{
	const struct host_program *program = running->program;
	const struct rlimit memory = { HOST_PROGRAM_LIMIT_MEMORY_BYTES,
				       HOST_PROGRAM_LIMIT_MEMORY_BYTES };
	struct rlimit own, lowered;
	int result;

	if (getrlimit(RLIMIT_DATA, &own) < 0)
		return -errno;
	lowered = own;
	if (lowered.rlim_cur > memory.rlim_cur)
		lowered.rlim_cur = memory.rlim_cur;
	if (setrlimit(RLIMIT_DATA, &lowered) < 0)
		return -errno;
	result = -posix_spawn(&running->pid, program->path, actions, NULL, program->argv,
			      program->environment);
	(void)setrlimit(RLIMIT_DATA, &own);
	/* nor can it raise it any more */
	if (result == 0)
		(void)prlimit(running->pid, RLIMIT_DATA, &memory, NULL);
	return result;
}

static int start(struct running *running, const int *lifted, int out_fd, int error_fd)
{
	const struct host_program *program = running->program;
	posix_spawn_file_actions_t actions;
	int result;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	/* each takes memory; one that is missing would leave it a descriptor of ours */
	result = -posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (result == 0)
		result = -posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	if (result == 0)
		result = -posix_spawn_file_actions_adddup2(&actions, error_fd, 2);
	for (size_t i = 0; result == 0 && i < program->fd_count; i++)
		result = -posix_spawn_file_actions_adddup2(&actions, lifted[i],
							   HOST_PROGRAM_FIRST_FD + (int)i);
	if (result == 0)
		result = spawn_limited(running, &actions);
	posix_spawn_file_actions_destroy(&actions);
	return result;
}

static int begin(struct running *running)
{
	int lifted[HOST_PROGRAM_LIMIT_FDS] = { -1, -1, -1 };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int result = lift(running->program, lifted);

	if (result == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
		result = -errno;
	if (result == 0)
		result = start(running, lifted, out[1], err[1]);
	running->sources[OUT] = TAKE_FD(out[0]);
	running->sources[ERR] = TAKE_FD(err[0]);
	fd_close(&out[1]);
	fd_close(&err[1]);
	for (size_t i = 0; i < HOST_PROGRAM_LIMIT_FDS; i++)
		fd_close(&lifted[i]);
	if (result < 0)
		return result;
	running->sources[END] = (int)syscall(SYS_pidfd_open, running->pid, 0);
	return running->sources[END] < 0 ? -errno : 0;
}

/* ---- what it says ---- */

/* Once it is readable. */
static int take_output(struct running *running)
{
	char chunk[CHUNK_BYTES];
	ssize_t length = read(running->sources[OUT], chunk, sizeof(chunk));

	if (length < 0)
		return errno == EINTR ? 0 : -errno;
	if (length == 0)
		fd_close(&running->sources[OUT]);
	running->bytes += (uint64_t)length;
	if (running->bytes > running->program->limit_bytes)
		return -EFBIG;
	return fd_write_all(running->program->out_fd, chunk, (size_t)length);
}

static int take_error(struct running *running)
{
	char chunk[1024];
	ssize_t length = read(running->sources[ERR], chunk, sizeof(chunk));

	if (length < 0)
		return errno == EINTR ? 0 : -errno;
	if (length == 0)
		fd_close(&running->sources[ERR]);
	running->has_said |= length > 0;
	return 0;
}

static int take_end(struct running *running)
{
	if (waitpid(running->pid, &running->status, 0) < 0)
		return errno == EINTR ? 0 : -errno;
	running->is_waited = true;
	fd_close(&running->sources[END]);
	return 0;
}

static int step(struct running *running)
{
	static int (*const takers[SOURCES])(struct running *) = { take_output, take_error,
								  take_end };
	struct pollfd entries[SOURCES];
	uint64_t now = clock_monotonic_ns();
	int result = 0;

	if (now >= running->deadline_ns)
		return -ETIME;
	for (int i = 0; i < SOURCES; i++)
		entries[i] = (struct pollfd){ .fd = running->sources[i], .events = POLLIN };
	if (poll(entries, SOURCES, (int)((running->deadline_ns - now) / NANOSECONDS_PER_MS) + 1) <
	    0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < SOURCES && result == 0; i++)
		if (entries[i].revents)
			result = takers[i](running);
	return result;
}

static bool is_done(const struct running *running)
{
	for (int i = 0; i < SOURCES; i++)
		if (running->sources[i] >= 0)
			return false;
	return true;
}

int host_program_run(const struct host_program *program, bool *ret_said)
{
	struct running running = { .program = program,
				   .sources = { -1, -1, -1 },
				   .deadline_ns = clock_monotonic_ns() + program->limit_ns };
	int result;

	if (program->fd_count > HOST_PROGRAM_LIMIT_FDS)
		return -EINVAL;
	result = begin(&running);
	while (result == 0 && !is_done(&running))
		result = step(&running);
	if (running.pid > 0 && !running.is_waited) {
		(void)kill(running.pid, SIGKILL);
		while (waitpid(running.pid, &running.status, 0) < 0 && errno == EINTR)
			;
	}
	for (int i = 0; i < SOURCES; i++)
		fd_close(&running.sources[i]);
	if (result < 0)
		return result;
	*ret_said = running.has_said;
	return WIFEXITED(running.status) ? WEXITSTATUS(running.status) : -ECHILD;
}
