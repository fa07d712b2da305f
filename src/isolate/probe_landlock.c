/*
 * Landlock by canary: each right of the kernel's ABI is handled alone, without a rule that grants
 * it, and the operation that it governs must then be refused. What is made for that in the probe's
 * directory is removed again.
 */
#include "base/fd.h"
#include "isolate/probe_internal.h"
#include "kernel/compat.h"
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Restricts the calling process with one set of rights or scopes and no rule. */
static int restrict_to(uint64_t files, uint64_t scopes)
{
	struct compat_landlock_ruleset attributes = { .handled_access_fs = files,
						      .scoped = scopes };
	int CLEANUP_FD fd = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attributes,
			  scopes ? sizeof(attributes) : sizeof(uint64_t), 0);
	return fd < 0 ? -errno : landlock_restrict(fd);
}

static int do_execute(int fd)
{
	static char *const argv[] = { (char *)(uintptr_t) "true", NULL };

	(void)fd;
	return execve("/bin/true", argv, argv + 1);
}

static int do_write(int fd)
{
	return openat(fd, "file", O_WRONLY | O_CLOEXEC);
}

static int do_read(int fd)
{
	return openat(fd, "file", O_RDONLY | O_CLOEXEC);
}

static int do_list(int fd)
{
	return openat(fd, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int do_remove_directory(int fd)
{
	return unlinkat(fd, "directory", AT_REMOVEDIR);
}

static int do_remove_file(int fd)
{
	return unlinkat(fd, "file", 0);
}

static int do_make_character(int fd)
{
	return mknodat(fd, "made", S_IFCHR | 0600, 0);
}

static int do_make_directory(int fd)
{
	return mkdirat(fd, "made", 0700);
}

static int do_make_file(int fd)
{
	return openat(fd, "made", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int do_make_socket(int fd)
{
	return mknodat(fd, "made", S_IFSOCK | 0600, 0);
}

static int do_make_fifo(int fd)
{
	return mkfifoat(fd, "made", 0600);
}

static int do_make_block(int fd)
{
	return mknodat(fd, "made", S_IFBLK | 0600, 0);
}

static int do_make_link(int fd)
{
	return symlinkat("file", fd, "made");
}

static int do_refer(int fd)
{
	return renameat(fd, "file", fd, "directory/file");
}

static int do_truncate(int fd)
{
	return fchdir(fd) < 0 ? -1 : truncate("file", 0);
}

static int do_ioctl(int fd)
{
	int device = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char room[256];

	(void)fd;
	return ioctl(device, TCGETS, room);
}

/* By the number of the right's bit (linux/landlock.h). */
static const struct {
	const char *name;
	uint32_t abi;
	int (*attempt)(int fd);
} rights[] = {
	{ "execute", 1, do_execute },
	{ "write", 1, do_write },
	{ "read", 1, do_read },
	{ "list", 1, do_list },
	{ "remove directory", 1, do_remove_directory },
	{ "remove file", 1, do_remove_file },
	{ "make character device", 1, do_make_character },
	{ "make directory", 1, do_make_directory },
	{ "make file", 1, do_make_file },
	{ "make socket", 1, do_make_socket },
	{ "make fifo", 1, do_make_fifo },
	{ "make block device", 1, do_make_block },
	{ "make link", 1, do_make_link },
	{ "refer", 2, do_refer },
	{ "truncate", 3, do_truncate },
	{ "device ioctl", 5, do_ioctl },
};

#define RIGHT_COUNT (sizeof(rights) / sizeof(rights[0]))

static int make_objects(int fd)
{
	int file = openat(fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0 || mkdirat(fd, "directory", 0700) < 0)
		return -errno;
	fd_close(&file);
	return 0;
}

static void remove_objects(int fd)
{
	(void)unlinkat(fd, "directory/file", 0);
	(void)unlinkat(fd, "directory", AT_REMOVEDIR);
	(void)unlinkat(fd, "file", 0);
	(void)unlinkat(fd, "made", 0);
	(void)unlinkat(fd, "made", AT_REMOVEDIR);
}

/* 0: refused by Landlock (EXDEV is its answer to a move between directories). */
static int try_right(int fd, unsigned right)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int result = restrict_to(1ull << right, 0);

		if (result < 0)
			_exit(-result & 255);
		if (rights[right].attempt(fd) >= 0)
			_exit(EPROTO);
		_exit(errno == EACCES || errno == EXDEV ? 0 : errno & 255);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int try_landlock(struct trial *trial)
{
	uint32_t abi = landlock_abi();
	int CLEANUP_FD ruleset = -1, canary = -1;
	int result;

	if (!abi) {
		/* which of the two: ENOSYS, not built in; EOPNOTSUPP, not started */
		(void)syscall(SYS_landlock_create_ruleset, NULL, 0,
			      LANDLOCK_CREATE_RULESET_VERSION);
		return -errno;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	result = landlock_create(abi, true, &ruleset);
	if (result == 0)
		result = landlock_restrict(ruleset);
	if (result < 0)
		return result;
	canary = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (canary >= 0 || errno != EACCES)
		return -EPROTO;
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "ABI %u, a canary was refused",
		       abi);
	return 0;
}

int try_landlock_rights(struct trial *trial)
{
	uint32_t abi = landlock_abi();
	int fd = trial->directory_fd, first = 0;
	unsigned held = 0, known = 0;

	if (fd < 0) {
		(void)snprintf(trial->evidence, sizeof(trial->evidence),
			       "no directory in /tmp to try them in");
		return -ENOENT;
	}
	for (unsigned right = 0; right < RIGHT_COUNT; right++) {
		int result;

		if (rights[right].abi > abi)
			continue;
		known++;
		result = make_objects(fd);
		if (result == 0)
			result = try_right(fd, right);
		remove_objects(fd);
		held += result == 0;
		if (result < 0 && !first) {
			first = result;
			(void)snprintf(trial->evidence, sizeof(trial->evidence),
				       "the right \"%s\" was not held", rights[right].name);
		}
	}
	if (!first)
		(void)snprintf(trial->evidence, sizeof(trial->evidence),
			       "%u rights, each refused when it was handled alone", held);
	return known ? first : -EOPNOTSUPP;
}

static int abstract_address(struct sockaddr_un *address, socklen_t *length)
{
	int count = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "bawn-probe-%d",
			     (int)getpid());

	address->sun_family = AF_UNIX;
	address->sun_path[0] = '\0';
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int try_landlock_scopes(struct trial *trial)
{
	struct sockaddr_un address = { 0 };
	socklen_t length = 0;
	int CLEANUP_FD listener = -1;
	pid_t parent = getpid(), pid;
	int status;

	if (landlock_abi() < 6)
		return -EOPNOTSUPP;
	listener = abstract_address(&address, &length);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, 1) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int CLEANUP_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int result = restrict_to(0, COMPAT_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET |
						    COMPAT_LANDLOCK_SCOPE_SIGNAL);

		if (result < 0)
			_exit(-result & 255);
		if (connect(fd, (struct sockaddr *)&address, length) == 0 || errno != EPERM)
			_exit(EPROTO);
		_exit(kill(parent, 0) == 0 || errno != EPERM ? EPROTO : 0);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -ECHILD;
	(void)snprintf(trial->evidence, sizeof(trial->evidence),
		       "an abstract socket and a signal were refused");
	return -WEXITSTATUS(status);
}
