#include "broker/holder.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A host with 50,000 locks; more than that is not read. */
#define LOCKS_LIMIT_BYTES (4u * 1024 * 1024)
#define STEP_BYTES 65536u

struct held {
	dev_t device;
	ino_t inode;
};

static int open_task(int tasks_fd, const char *id)
{
	int fd = openat(tasks_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool holder_exists(int tasks_fd, const char *id)
{
	int CLEANUP_FD fd = open_task(tasks_fd, id);

	/* shared and let go at once: a supervisor that locks its new directory waits for us */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static int read_locks(struct buffer *text)
{
	int CLEANUP_FD fd = open("/proc/locks", O_RDONLY | O_CLOEXEC);
	char step[STEP_BYTES];
	ssize_t count = 1;

	if (fd < 0)
		return -errno;
	while (count > 0 && text->length < LOCKS_LIMIT_BYTES) {
		count = read(fd, step, sizeof(step));
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count > 0)
			buffer_append(text, step, (size_t)count);
	}
	return text->failed ? -ENOMEM : 0;
}

/* Reads /proc/<pid>/<name> of a process that may be another's. */
static bool read_process(pid_t pid, const char *name, char *text, size_t room)
{
	char path[64];
	int CLEANUP_FD fd = -1;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : fd_read_all(fd, text, room - 1);
	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

/* The caller's own process, by name ours: for where the device cannot be compared. */
static bool is_ours(pid_t pid)
{
	char text[4096], name[16];
	const char *ids;
	unsigned real;

	if (!read_process(pid, "status", text, sizeof(text)) ||
	    sscanf(text, "Name: %15s", name) != 1 || strcmp(name, "bawn") != 0)
		return false;
	ids = strstr(text, "\nUid:");
	return ids && sscanf(ids, "\nUid: %u", &real) == 1 && real == getuid();
}

/* "7: FLOCK  ADVISORY  WRITE 1234 fe:00:8123 0 EOF"; who waits has "->" behind the colon */
static pid_t holder_in(const char *line, const struct held *held)
{
	unsigned major_number, minor_number;
	unsigned long inode;
	int pid;

	if (sscanf(line, "%*u: FLOCK ADVISORY WRITE %d %x:%x:%lu", &pid, &major_number,
		   &minor_number, &inode) != 4)
		return 0;
	if (inode != held->inode || pid <= 0)
		return 0;
	return (major_number == major(held->device) && minor_number == minor(held->device)) ||
			       is_ours(pid) ?
		       pid :
		       0;
}

static pid_t find_holder(const struct held *held)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	pid_t pid = 0;

	if (read_locks(&text) < 0 || !text.data)
		return 0;
	for (const char *line = text.data; line && line[0] && !pid;) {
		const char *end = strchr(line, '\n');

		pid = holder_in(line, held);
		line = end ? end + 1 : NULL;
	}
	return pid;
}

static int open_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int holder_find(int tasks_fd, const char *id, struct process *ret_process, struct error *error)
{
	int CLEANUP_FD fd = open_task(tasks_fd, id);
	struct process CLEANUP_HOLDER process = PROCESS_NONE;
	struct stat status;
	struct held held;

	if (fd < 0 || !holder_exists(tasks_fd, id))
		return error_set(error, ESRCH, "the task %s has ended", id);
	if (fstat(fd, &status) < 0)
		return error_errno(error, errno, "the task %s", id);
	held = (struct held){ .device = status.st_dev, .inode = status.st_ino };
	process.pid = find_holder(&held);
	if (process.pid > 0)
		process.pidfd = open_process(process.pid);
	if (process.pid <= 0 || process.pidfd < 0 || find_holder(&held) != process.pid) {
		if (!holder_exists(tasks_fd, id))
			return error_set(error, ESRCH, "the task %s has ended", id);
		return error_set(error, ENOENT,
				 "the task %s is held by a process that /proc/locks does not show "
				 "here; is it in another pid namespace?",
				 id);
	}
	*ret_process = process;
	process = PROCESS_NONE;
	return 0;
}

/* "1234 (any ) name) S 1 ..." */
static pid_t parent_of(pid_t pid)
{
	char text[1024];
	const char *end;
	int parent;

	if (!read_process(pid, "stat", text, sizeof(text)))
		return 0;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static size_t find_children(pid_t parent, struct process *children, size_t room)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	size_t count = 0;

	(void)directory_open(&directory, AT_FDCWD, "/proc", 0);
	while (count < room && (name = directory_next(&directory))) {
		pid_t pid = name[0] >= '1' && name[0] <= '9' ? (pid_t)strtol(name, NULL, 10) : 0;
		int CLEANUP_FD pidfd = -1;

		if (pid <= 0 || parent_of(pid) != parent)
			continue;
		pidfd = open_process(pid);
		/* pinned, and still the child */
		if (pidfd >= 0 && parent_of(pid) == parent)
			children[count++] = (struct process){ .pid = pid, .pidfd = TAKE_FD(pidfd) };
	}
	return count;
}

int holder_wait(int fd, uint64_t deadline_ns)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_monotonic_ns();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / 1000000u + 1 : 0;
		int count = poll(&entry, 1, left_ms > 60000 ? 60000 : (int)left_ms);

		if (count > 0)
			return 0;
		if (count == 0 && left_ms == 0)
			return -ETIMEDOUT;
		if (count < 0 && errno != EINTR)
			return -errno;
	}
}

int holder_signal(const struct process *process, int number)
{
	return syscall(SYS_pidfd_send_signal, process->pidfd, number, NULL, 0) < 0 ? -errno : 0;
}

static int wait_for(const struct process *process, uint64_t deadline_ns, struct error *error)
{
	if (holder_wait(process->pidfd, deadline_ns) == 0)
		return 0;
	return error_set(error, EBUSY,
			 "process %d of the task is still there after SIGKILL: it waits in the "
			 "kernel (for a disk or a file server?)",
			 process->pid);
}

int holder_kill(const struct process *process, uint64_t deadline_ns, struct error *error)
{
	struct process *children = calloc(HOLDER_LIMIT_CHILDREN, sizeof(*children));
	size_t count;
	int result;

	if (!children)
		return error_errno(error, ENOMEM, "ending the task");
	/* stopped, it starts nothing while we look */
	(void)holder_signal(process, SIGSTOP);
	count = find_children(process->pid, children, HOLDER_LIMIT_CHILDREN);
	result = holder_signal(process, SIGKILL);
	if (result < 0 && result != -ESRCH)
		error_errno(error, result, "killing process %d", process->pid);
	else
		result = wait_for(process, deadline_ns, error);
	for (size_t i = 0; i < count; i++) {
		/* they have ended with their parent; where not, that is the least they get */
		(void)holder_signal(&children[i], SIGKILL);
		if (result == 0)
			result = wait_for(&children[i], deadline_ns, error);
		fd_close(&children[i].pidfd);
	}
	free(children);
	return result;
}

void holder_close(struct process *process)
{
	fd_close(&process->pidfd);
}
