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
