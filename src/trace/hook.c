#include "trace/hook.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/sign.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOOK "trace/" HOOK_NAME
/* A longer name of a home is no reason to fail: the hook does without. */
#define HOME_LIMIT_BYTES 4096

/* 1 when there is one that may be run, 0 for none. */
static int look(const struct trace_store *store, struct error *error)
{
	struct stat status;

	if (fstatat(store->fd, HOOK_NAME, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_errno(error, errno, HOOK);
	if (!S_ISREG(status.st_mode) || (status.st_mode & 022) ||
	    (status.st_uid != geteuid() && status.st_uid != 0))
		return error_set(error, EPERM,
				 HOOK " is not run: it must be a file of the caller's or root's, "
				      "no link, that nobody else can write");
	return 1;
}

/* In the child. What the caller ignores or blocks is none of the hook's business. */
static void become(const struct trace_store *store, int input_fd, int output_fd, const char *home)
{
	char *argv[] = { HOOK_NAME, NULL };
	char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char text[sizeof("HOME=") + HOME_LIMIT_BYTES];
	int length = snprintf(text, sizeof(text), "HOME=%s", home ? home : "");
	char *environment[] = { path, home && (size_t)length < sizeof(text) ? text : NULL, NULL };
	sigset_t none;

	sigemptyset(&none);
	for (int number = 1; number < 32; number++)
		(void)signal(number, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setpgid(0, 0) < 0 || dup2(input_fd, 0) < 0 || dup2(output_fd, 1) < 0 ||
	    dup2(1, 2) < 0 || syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ||
	    fchdir(store->fd) < 0)
		_exit(125);
	(void)execve("./" HOOK_NAME, argv, environment);
	_exit(errno == EACCES ? 126 : 127);
}

static int start(const struct trace_store *store, const char *line, const char *home, int output_fd,
		 pid_t *ret_pid)
{
	int CLEANUP_FD null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int ends[2], result;
	pid_t pid = -1;

	*ret_pid = pid;
	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* shorter than a pipe holds, so nobody has to read it for this to go on */
	result = fd_write_all(ends[1], line, strlen(line));
	if (result == 0)
		result = fd_write_all(ends[1], "\n", 1);
	if (result == 0)
		pid = fork();
	if (pid == 0)
		become(store, ends[0], output_fd >= 0 ? output_fd : null, home);
	if (result == 0 && pid < 0)
		result = -errno;
	(void)close(ends[0]);
	(void)close(ends[1]);
	*ret_pid = pid;
	return result;
}

/* Its status as waitpid(2) gives it, or -ETIMEDOUT: it was killed. */
static int wait_for(pid_t pid)
{
	int CLEANUP_FD fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = { .fd = fd, .events = POLLIN };
	int result, status = 0;

	do
		result = fd < 0 ? 0 : poll(&end, 1, HOOK_WAIT_MS);
	while (result < 0 && errno == EINTR);
	if (result <= 0) {
		/* before it has made its group, it is killed alone */
		(void)kill(-pid, SIGKILL);
		(void)kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return result <= 0 ? -ETIMEDOUT : status;
}

int hook_run(const struct trace_store *store, const char *line, const char *home, int output_fd,
	     struct error *error)
{
	int result = look(store, error);
	pid_t pid = -1;

	if (result <= 0)
		return result;
	result = start(store, line, home, output_fd, &pid);
	if (result < 0)
		return error_errno(error, result, "starting " HOOK);
	result = wait_for(pid);
	if (result == -ETIMEDOUT)
		return error_set(error, -result, HOOK " was killed: it took longer than %d s",
				 HOOK_WAIT_MS / 1000);
	if (result < 0)
		return error_errno(error, result, "waiting for " HOOK);
	if (WIFSIGNALED(result))
		return error_set(error, ECANCELED, HOOK " was killed by signal %d",
				 WTERMSIG(result));
	if (WEXITSTATUS(result) == 126)
		return error_set(error, ECANCELED, HOOK " cannot be executed (chmod +x)");
	return WEXITSTATUS(result) ? error_set(error, ECANCELED, HOOK " ended with status %d",
					       WEXITSTATUS(result)) :
				     1;
}

int hook_sign_when_due(const struct trace_store *store, const struct chain_origin *origin,
		       const char *home, struct error *error)
{
	char line[SIGN_LINE_BYTES];
	struct sign_claim claim;
	int result;

	if (!sign_is_due(store))
		return 0;
	result = sign_head(store, origin, &claim, error);
	if (result < 0)
		return error_context(error, "the trace's head could not be signed");
	sign_line(&claim, line);
	result = hook_run(store, line, home, -1, error);
	return result < 0 ? result : 0;
}
