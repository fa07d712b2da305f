/*
 * Limits, by going to their end: the unit beyond must be refused, and no sooner. Each takes a
 * child of its own, or gives back what it took, so that what is tried afterwards has room.
 */
#include "broker/attempt_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD(condition) ((condition) ? 0 : -ENOMSG)
/* Processes that may be there besides those made here: 1, the probe, one that just ended. */
#define OTHER_PROCESSES 8u

static int fill_descriptors(char *const *arguments)
{
	rlim_t count = strtoull(arguments[0], NULL, 10);
	struct rlimit limit = { .rlim_cur = count + 1, .rlim_max = count + 1 };
	int last = -1;

	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return -ENOMSG;
	/* the soft one is the caller's and may be lower */
	limit.rlim_cur = limit.rlim_max = count;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -ENOMSG;
	for (int fd; (fd = fcntl(0, F_DUPFD, last + 1)) >= 0;)
		last = fd;
	return HELD(last + 1 == (long long)count);
}

int attempt_files(char *const *arguments)
{
	return attempt_in_child(fill_descriptors, arguments);
}

static void end_children(const pid_t *children, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)kill(children[i], SIGKILL);
	for (size_t i = 0; i < count; i++)
		while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR)
			;
}

int attempt_pids(char *const *arguments)
{
	size_t limit = strtoul(arguments[0], NULL, 10), count = 0;
	pid_t *children = calloc(limit + 1, sizeof(*children)), pid = 0;
	int code = 0;

	if (!children)
		return -EBADMSG;
	while (count <= limit) {
		pid = fork();
		if (pid <= 0)
			break;
		children[count++] = pid;
	}
	if (pid == 0)
		for (;;)
			(void)pause();
	if (pid < 0)
		code = errno;
	end_children(children, count);
	free(children);
	if (code && (code != EAGAIN || count + OTHER_PROCESSES < limit))
		return -EBADMSG;
	/* the probe itself is one */
	return HELD(code && count + 1 <= limit);
}

int attempt_area(char *const *arguments)
{
	unsigned long long bytes = strtoull(arguments[1], NULL, 10);
	unsigned long long files = strtoull(arguments[2], NULL, 10), blocks;
	struct statfs status;
	char path[4096];
	int CLEANUP_FD fd = -1;
	int code;

	if (statfs(arguments[0], &status) < 0 || status.f_bsize <= 0)
		return -EBADMSG;
	blocks = (bytes + (unsigned long long)status.f_bsize - 1) /
		 (unsigned long long)status.f_bsize;
	if (status.f_blocks != blocks || status.f_files != files)
		return -ENOMSG;
	(void)snprintf(path, sizeof(path), "%.4000s/.bawn-verify-size", arguments[0]);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -EBADMSG;
	/* refused as a whole: tmpfs(5) takes no page of it */
	code = fallocate(fd, 0, 0, (off_t)((blocks + 1) * (unsigned long long)status.f_bsize)) < 0 ?
		       errno :
		       0;
	(void)unlink(path);
	return HELD(code == ENOSPC);
}
