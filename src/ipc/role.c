#include "ipc/role.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "ipc/message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors that are to be moved are first put above all of their destinations. */
#define HIGH_FD (ROLE_FIRST + (int)ROLE_LIMIT_FDS)

static const struct edge_text edges[EDGE_COUNT] = {
#define EDGE(from, to, transport, what) [EDGE_##from##_##to] = { #from, #to, transport, what },
#include "ipc/edges.def"
#undef EDGE
};

/* bawn-init is not among them: its image is part of our own program. */
static const char *const programs[EDGE_COUNT] = {
	[EDGE_SUPERVISOR_PARSE] = "bawn-parse",	  [EDGE_SUPERVISOR_SCOPE] = "bawn-scope",
	[EDGE_SUPERVISOR_PACK] = "bawn-pack",	  [EDGE_SUPERVISOR_PROXY] = "bawn-proxy",
	[EDGE_SUPERVISOR_DIALER] = "bawn-dialer", [EDGE_SUPERVISOR_SIGN] = "bawn-sign",
};

const struct edge_text *edge_text(enum edge edge)
{
	return &edges[edge];
}

/* The directory of our own executable, and who may change it. -ENOENT without /proc. */
static int own_place(char directory[static PATH_LIMIT_BYTES], uid_t *ret_owner)
{
	ssize_t length = readlink("/proc/self/exe", directory, PATH_LIMIT_BYTES - 1);
	struct stat status;
	char *slash;

	if (length <= 0 || stat("/proc/self/exe", &status) < 0)
		return -ENOENT;
	directory[length] = '\0';
	slash = strrchr(directory, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	*ret_owner = status.st_uid;
	return 0;
}

static int open_program(const char *directory, const char *name, uid_t owner, struct error *error)
{
	char path[PATH_LIMIT_BYTES + 64];
	int CLEANUP_FD fd = -1;
	struct stat status;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(error, errno, "opening the program %s", path);
	if (!S_ISREG(status.st_mode) || (status.st_mode & 022) ||
	    (status.st_uid != owner && status.st_uid != 0))
		return error_set(
			error, EPERM,
			"the program %s is not run: it must be a file of the owner of bawn "
			"or of root that nobody else can write",
			path);
	return TAKE_FD(fd);
}

int role_open_program(const char *name, int *ret_program_fd, struct error *error)
{
	char directory[PATH_LIMIT_BYTES];
	uid_t owner = 0;
	int fd = -ENOENT;

	if (own_place(directory, &owner) == 0)
		fd = open_program(directory, name, owner, error);
	if (fd == -ENOENT)
		fd = open_program(BAWN_LIBEXEC_DIR, name, owner, error);
	if (fd < 0)
		return fd;
	*ret_program_fd = fd;
	return 0;
}

int role_open(enum edge edge, int *ret_program_fd, struct error *error)
{
	if (!programs[edge])
		return error_set(error, EINVAL, "%s is no program", edges[edge].to);
	return role_open_program(programs[edge], ret_program_fd, error);
}

/* What the child needs, complete before it exists: it shares our memory until its exec. */
struct start {
	const char *name;
	int program, null, config, channel; /* all at HIGH_FD or above */
	int fds[ROLE_LIMIT_FDS];
	unsigned fd_count;
};

/*
 * Only system calls: the parent sleeps until the exec. Signals stay blocked, in the role too: a
 * handler of ours must not run here, and a role has no use for any that can be blocked. Returns
 * the errno of a failure.
 */
static int become(const struct start *start)
{
	char *argv[] = { (char *)(uintptr_t)start->name, NULL }, *environment[] = { NULL };

	for (int fd = 0; fd <= 2; fd++)
		if (dup2(start->null, fd) < 0)
			return errno;
	if (dup2(start->config, ROLE_CONFIG) < 0 || dup2(start->channel, ROLE_CHANNEL) < 0)
		return errno;
	for (unsigned i = 0; i < start->fd_count; i++)
		if (dup2(start->fds[i], ROLE_FIRST + (int)i) < 0)
			return errno;
	/* the caller's other descriptors, whether they are close-on-exec or not */
	if (syscall(SYS_close_range, ROLE_FIRST + start->fd_count, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return errno;
	(void)syscall(SYS_execveat, start->program, "", argv, environment, AT_EMPTY_PATH);
	return errno;
}

static pid_t spawn(const struct start *start, int *ret_failure)
{
	volatile int failure = 0;
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = vfork();
	if (pid == 0) {
		failure = become(start);
		_exit(127);
	}
	if (pid < 0)
		failure = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	*ret_failure = failure;
	return pid;
}

static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
}

static void drop(struct start *start)
{
	fd_close(&start->program);
	fd_close(&start->null);
	fd_close(&start->config);
	fd_close(&start->channel);
	for (unsigned i = 0; i < start->fd_count; i++)
		fd_close(&start->fds[i]);
}

int role_start(int program_fd, enum edge edge, int config_fd, const int *fds, unsigned fd_count,
	       struct role *ret_role, struct error *error)
{
	struct start start = { .name = programs[edge], .fd_count = fd_count };
	struct role role = ROLE_NONE;
	int CLEANUP_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int pair[2] = { -1, -1 }, failure = 0;
	bool whole;

	if (fd_count > ROLE_LIMIT_FDS || message_pair(pair) < 0)
		return error_errno(error, fd_count > ROLE_LIMIT_FDS ? E2BIG : errno, "starting %s",
				   programs[edge]);
	start.program = lift(program_fd);
	start.null = lift(null);
	start.config = lift(config_fd);
	start.channel = lift(pair[1]);
	whole = start.program >= 0 && start.null >= 0 && start.config >= 0 && start.channel >= 0;
	for (unsigned i = 0; i < fd_count; i++)
		whole = (start.fds[i] = lift(fds[i])) >= 0 && whole;
	if (whole)
		role.pid = spawn(&start, &failure);
	else
		failure = errno;
	drop(&start);
	fd_close(&pair[1]);
	role.channel = pair[0];
	if (role.pid > 0 && !failure) {
		role.pidfd = (int)syscall(SYS_pidfd_open, role.pid, 0);
		failure = role.pidfd < 0 ? errno : 0;
	}
	if (failure) {
		role_end(&role);
		return error_errno(error, failure, "starting %s", programs[edge]);
	}
	*ret_role = role;
	return 0;
}

int role_spawn(enum edge edge, int config_fd, const int *fds, unsigned fd_count,
	       struct role *ret_role, struct error *error)
{
	int CLEANUP_FD program_fd = -1;
	int result = role_open(edge, &program_fd, error);

	return result < 0 ? result :
			    role_start(program_fd, edge, config_fd, fds, fd_count, ret_role, error);
}

int role_wait(struct role *role)
{
	int status;
	pid_t pid;

	do
		pid = waitpid(role->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return -errno;
	role->pid = -1;
	return status;
}

void role_end(struct role *role)
{
	int saved = errno;

	fd_close(&role->channel);
	if (role->pid > 0) {
		/* our own child and not waited for yet: the number is still its */
		(void)kill(role->pid, SIGKILL);
		while (waitpid(role->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	fd_close(&role->pidfd);
	*role = ROLE_NONE;
	errno = saved;
}
