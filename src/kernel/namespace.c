#include "kernel/namespace.h"

#include "base/prefault.h"
#include "kernel/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int namespace_clone(uint64_t flags, struct process *ret_process)
{
	int pidfd = -1;
	struct clone_args arguments = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		/* with CLONE_PARENT the signal is the calling process's own, and must be 0 here */
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	*ret_process = (struct process){ .pid = (pid_t)pid, .pidfd = pidfd };
	return 1;
}

/* Of the stack's end: a few frames and a path. */
#define STACK_USED_BYTES (16u * 1024)

int namespace_vfork(uint64_t flags, int (*function)(void *argument), void *argument,
		    struct namespace_stack *stack, struct process *ret_process)
{
	bool is_own = !(flags & CLONE_PARENT);
	int pidfd = -1;
	int pid;

	prefault_writes(stack->bytes + sizeof(stack->bytes) - STACK_USED_BYTES, STACK_USED_BYTES);
	/* the kernel has one place for both: where the pidfd goes, or the pid */
	pid = clone(function, stack->bytes + sizeof(stack->bytes),
		    (int)(flags | CLONE_VM | CLONE_VFORK | SIGCHLD |
			  (is_own ? CLONE_PIDFD : CLONE_PARENT_SETTID)),
		    argument, is_own ? &pidfd : &ret_process->pid);

	if (pid < 0)
		return -errno;
	*ret_process = (struct process){ .pid = pid, .pidfd = is_own ? pidfd : -1 };
	return 0;
}

static int write_file(int proc_fd, pid_t pid, const char *name, const char *text)
{
	char path[64];
	ssize_t count;
	int fd, result = 0;

	if (pid)
		(void)snprintf(path, sizeof(path), "%d/%s", pid, name);
	else
		(void)snprintf(path, sizeof(path), "self/%s", name);
	fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	count = write(fd, text, strlen(text));
	if (count < 0)
		result = -errno;
	else if ((size_t)count != strlen(text))
		result = -EIO;
	(void)close(fd);
	return result;
}

int namespace_map(int proc_fd, pid_t pid, uint32_t inside_uid, uint32_t outside_uid,
		  uint32_t inside_gid, uint32_t outside_gid, int deny_setgroups)
{
	char text[64];
	int result = 0;

	if (deny_setgroups)
		result = write_file(proc_fd, pid, "setgroups", "deny");
	if (result < 0)
		return result;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", inside_uid, outside_uid);
	result = write_file(proc_fd, pid, "uid_map", text);
	if (result < 0)
		return result;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", inside_gid, outside_gid);
	return write_file(proc_fd, pid, "gid_map", text);
}

void process_wait(pid_t pid, int *ret_status)
{
	int left = 3;

	while (left && waitpid(pid, ret_status, 0) < 0 && errno != ECHILD)
		left -= errno != EINTR;
}

int namespace_join(int pidfd, int flags)
{
	return setns(pidfd, flags) < 0 ? -errno : 0;
}

int namespace_open(int proc_fd, pid_t pid, const char *name)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%d/ns/%s", pid, name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
