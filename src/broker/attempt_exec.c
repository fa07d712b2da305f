/*
 * Where a policy executes listed programs alone: a copy of the probe itself, which no policy lists,
 * is executed by every way to do that.
 */
#include "broker/attempt_internal.h"

#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

/* The probe with nothing to read ends well. */
static int run(int fd, const char *path, int flags)
{
	static char *const argv[] = { (char *)"probe", NULL }, *const environment[] = { NULL };
	int CLEANUP_FD nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0)
		return -EBADMSG;
	(void)syscall(SYS_execveat, fd, path, argv, environment, flags);
	return -errno;
}

static int copy_to(int to_fd)
{
	int CLEANUP_FD from = open(SELF, O_RDONLY | O_CLOEXEC);
	unsigned char bytes[65536];
	ssize_t count = 0;

	if (from < 0)
		return -EBADMSG;
	while ((count = fd_read_all(from, bytes, sizeof(bytes))) > 0)
		if (fd_write_all(to_fd, bytes, (size_t)count) < 0)
			return -EBADMSG;
	return count < 0 || fchmod(to_fd, 0755) < 0 ? -EBADMSG : 0;
}

/* A copy of the probe in a directory. What is no answer about its execution is a bad one. */
static int make_copy(char *const *arguments, char path[static PATH_LIMIT_BYTES])
{
	int CLEANUP_FD fd = -1;
	int result;

	if ((size_t)snprintf(path, PATH_LIMIT_BYTES, "%s/.%s", arguments[0], arguments[1]) >=
	    PATH_LIMIT_BYTES)
		return -EBADMSG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0)
		return -EBADMSG;
	result = copy_to(fd);
	if (result < 0)
		(void)unlink(path);
	return result;
}

static int run_path(char *const *arguments)
{
	return run(AT_FDCWD, arguments[0], 0);
}

int attempt_run_copy(char *const *arguments)
{
	char path[PATH_LIMIT_BYTES];
	int result = make_copy(arguments, path);

	if (result < 0)
		return result;
	result = attempt_in_child(run_path, (char *const[]){ path, NULL });
	(void)unlink(path);
	return result;
}

/* As ld.so(8) does with what it is told to run. */
int attempt_map_code(char *const *arguments)
{
	int CLEANUP_FD fd = open(arguments[0], O_RDONLY | O_CLOEXEC);
	void *place = fd < 0 ? MAP_FAILED :
			       mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (place == MAP_FAILED)
		return fd < 0 ? -EBADMSG : -errno;
	(void)munmap(place, 1);
	return 0;
}

int attempt_map_copy(char *const *arguments)
{
	char path[PATH_LIMIT_BYTES];
	int result = make_copy(arguments, path);

	if (result < 0)
		return result;
	result = attempt_map_code((char *const[]){ path, NULL });
	(void)unlink(path);
	return result;
}

int attempt_memory_file(char *const *arguments)
{
	int CLEANUP_FD fd = (int)syscall(SYS_memfd_create, "probe", MFD_CLOEXEC);

	(void)arguments;
	return fd < 0 ? -errno : 0;
}

static int run_open(char *const *arguments)
{
	int CLEANUP_FD fd = open(SELF, O_PATH | O_CLOEXEC);

	(void)arguments;
	return fd < 0 ? -EBADMSG : run(fd, "", AT_EMPTY_PATH);
}

int attempt_run_open(char *const *arguments)
{
	return attempt_in_child(run_open, arguments);
}
