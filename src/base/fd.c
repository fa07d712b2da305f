#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_reserve_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* the lowest free descriptor is exactly this one */
		if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
			return -errno;
	}
	return 0;
}

int fd_open_resolved(int directory_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC,
				.resolve = resolve | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int fd_open_beneath(int directory_fd, const char *path, int flags)
{
	return fd_open_resolved(directory_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int fd_open_own(int directory_fd, const char *name, int flags)
{
	flags |= O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	for (int i = 0; i < 2; i++) {
		int fd = openat(directory_fd, name, flags, 0600), code = errno;
		struct stat status;

		if (fd < 0 && code != ELOOP && code != ENXIO)
			return -code;
		if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
			return fd;
		fd_close(&fd);
		if (unlinkat(directory_fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	return -ELOOP;
}

int fd_replace(int directory_fd, const char *name, const char *beside, const void *bytes,
	       size_t length)
{
	int CLEANUP_FD fd = fd_open_own(directory_fd, beside, O_WRONLY | O_TRUNC);
	int result = fd < 0 ? fd : fd_write_all(fd, bytes, length);

	if (result == 0 && renameat(directory_fd, beside, directory_fd, name) < 0)
		result = -errno;
	if (fd >= 0 && result < 0)
		(void)unlinkat(directory_fd, beside, 0);
	return result;
}

int fd_set_mode(int fd, mode_t mode)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) < 0 ? -errno : 0;
}

int fd_rename_free(int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat status;

	if (syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL || fstatat(from_fd, from, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return renameat(from_fd, from, to_fd, to) < 0 ? -errno : 0;
	if (linkat(from_fd, from, to_fd, to, 0) < 0)
		return -errno;
	return unlinkat(from_fd, from, 0) < 0 ? -errno : 0;
}

int fd_write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t count = write(fd, at, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		at += count;
		length -= (size_t)count;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *bytes, size_t length)
{
	size_t used = 0;

	while (used < length) {
		ssize_t count = read(fd, (char *)bytes + used, length - used);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	return (ssize_t)used;
}
