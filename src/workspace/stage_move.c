/*
 * One object from a directory to another: renamed, or where that is another file system copied and
 * removed. The state directory and a workspace need not lie on one.
 */
#include "workspace/stage_apply_internal.h"

#include "base/content.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

int stage_copy_attributes(int from_fd, int to_fd, bool (*is_wanted)(const char *name))
{
	char path[sizeof("/proc/self/fd/-2147483648")];
	char *names = malloc(STAGE_NAMES_BYTES + STAGE_VALUE_BYTES);
	char *value = names ? names + STAGE_NAMES_BYTES : NULL;
	int result = names ? 0 : -ENOMEM;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", from_fd);
	length = names ? listxattr(path, names, STAGE_NAMES_BYTES) : -1;
	for (const char *name = names; length > 0 && name < names + length;
	     name += strlen(name) + 1) {
		ssize_t bytes = !is_wanted || is_wanted(name) ?
					getxattr(path, name, value, STAGE_VALUE_BYTES) :
					-1;

		if (bytes >= 0 && fsetxattr(to_fd, name, value, (size_t)bytes, 0) < 0)
			result = -errno;
	}
	free(names);
	return result;
}

/* Of the caller's own files whose mode closes them, too. */
static int open_for_copy(int directory_fd, const char *name, const struct stat *status)
{
	int fd = stage_open_file(directory_fd, name);
	int CLEANUP_FD path_fd = -1;

	if (fd != -EACCES)
		return fd;
	path_fd = stage_open_beneath(directory_fd, name, O_PATH | O_NOFOLLOW);
	if (path_fd < 0 || fd_set_mode(path_fd, status->st_mode | S_IRUSR) < 0)
		return -EACCES;
	fd = stage_open_file(directory_fd, name);
	(void)fd_set_mode(path_fd, status->st_mode & 07777);
	return fd;
}

static int copy_file(int from_fd, const char *from, int to_fd, const char *to,
		     const struct stat *status)
{
	int CLEANUP_FD source = open_for_copy(from_fd, from, status);
	int CLEANUP_FD target = -1;
	const struct timespec times[2] = { status->st_atim, status->st_mtim };
	int result;

	if (source < 0)
		return source;
	target = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (target < 0)
		return -errno;
	result = content_copy(source, target, status->st_size);
	if (result < 0)
		return result;
	/* as far as the other file system takes them */
	(void)stage_copy_attributes(source, target, NULL);
	/* of others' files only root can say so; a change of owner takes set-id bits */
	(void)!fchown(target, status->st_uid, status->st_gid);
	return fchmod(target, status->st_mode & 07777) < 0 || futimens(target, times) < 0 ? -errno :
											    0;
}

static int copy_link(int from_fd, const char *from, int to_fd, const char *to)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(from_fd, from, target, sizeof(target));

	if (length < 0)
		return -errno;
	if ((size_t)length == sizeof(target))
		return -ENAMETOOLONG;
	target[length] = '\0';
	return symlinkat(target, to_fd, to) < 0 ? -errno : 0;
}

int stage_copy(int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat status;
	int result = stage_remove_any(to_fd, to);

	if (result < 0)
		return result;
	if (fstatat(from_fd, from, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	switch (status.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(from_fd, from, to_fd, to, &status);
	case S_IFLNK:
		return copy_link(from_fd, from, to_fd, to);
	case S_IFIFO:
		return mkfifoat(to_fd, to, status.st_mode & 0777) < 0 ? -errno : 0;
	default:
		return -EXDEV;
	}
}

int stage_move(int from_fd, const char *from, int to_fd, const char *to)
{
	int result;

	if (renameat(from_fd, from, to_fd, to) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	result = stage_copy(from_fd, from, to_fd, to);
	if (result == 0)
		return stage_remove_any(from_fd, from);
	(void)stage_remove_any(to_fd, to);
	return result;
}
