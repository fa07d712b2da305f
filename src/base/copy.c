#include "base/copy.h"

#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories in a directory, for the next step. */
struct names {
	unsigned count;
	uint64_t inodes[COPY_LIMIT_OBJECTS];
	char text[COPY_LIMIT_OBJECTS][NAME_MAX + 1];
};

struct look {
	int64_t now_s;
	uint64_t state; /* a sum, since readdir(3) promises no order */
	uint64_t bytes;
	unsigned objects;
};

/* No cryptographic hash: whoever could aim at a state that is taken already owns the files. */
static uint64_t mix(uint64_t sum, uint64_t value)
{
	sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
	return sum ^ sum >> 32;
}

static uint64_t state_of(uint64_t parent, const char *name, const struct stat *status)
{
	uint64_t sum = mix(parent, status->st_dev);

	sum = mix(sum, status->st_ino);
	sum = mix(sum, status->st_mode);
	sum = mix(sum, (uint64_t)status->st_size);
	sum = mix(sum, (uint64_t)status->st_mtim.tv_sec);
	sum = mix(sum, (uint64_t)status->st_mtim.tv_nsec);
	sum = mix(sum, (uint64_t)status->st_ctim.tv_sec);
	sum = mix(sum, (uint64_t)status->st_ctim.tv_nsec);
	for (; *name; name++)
		sum = mix(sum, (unsigned char)*name);
	return sum;
}

static bool is_settled(const struct look *look, const struct stat *status)
{
	return status->st_ctim.tv_sec < look->now_s - COPY_SETTLED_SECONDS;
}

/* For everybody: what the caller may read by luck (a group, an ACL) is bound and stays as it is. */
static bool is_for_all(const struct stat *status)
{
	mode_t all = S_ISDIR(status->st_mode) ? 0555 : 0444;

	return S_ISLNK(status->st_mode) || (status->st_mode & all) == all;
}

static int add(struct look *look, uint64_t parent, const char *name, const struct stat *status,
	       uint64_t limit_bytes)
{
	if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode) && !S_ISLNK(status->st_mode))
		return -EINVAL;
	if (!is_for_all(status) || !is_settled(look, status))
		return -EINVAL;
	if (S_ISREG(status->st_mode))
		look->bytes += (uint64_t)status->st_size;
	if (look->bytes > limit_bytes)
		return -EINVAL;
	look->state += state_of(parent, name, status);
	return 0;
}

static void note(struct names *names, const char *name, const struct stat *status)
{
	names->inodes[names->count] = status ? status->st_ino : 0;
	(void)snprintf(names->text[names->count++], sizeof(names->text[0]), "%s", name);
}

/* All names before the first look at one: most directories that are too large show it here. */
static int list(struct look *look, struct directory *directory, struct names *ret_names)
{
	const char *name;

	ret_names->count = 0;
	while ((name = directory_next(directory))) {
		if (look->objects++ == COPY_LIMIT_OBJECTS)
			return -EINVAL;
		note(ret_names, name, NULL);
	}
	return directory->code;
}

/* Adds what lies in a directory; gives the directories in it. */
static int add_entries(struct look *look, struct directory *directory, uint64_t parent,
		       struct names *ret_names)
{
	struct names all;
	int result = list(look, directory, &all);

	ret_names->count = 0;
	for (unsigned i = 0; result == 0 && i < all.count; i++) {
		struct stat status;

		if (fstatat(directory->fd, all.text[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		result = add(look, parent, all.text[i], &status, COPY_LIMIT_TREE_BYTES);
		if (result == 0 && S_ISDIR(status.st_mode))
			note(ret_names, all.text[i], &status);
	}
	return result;
}

static int look_at_tree(struct look *look, int parent_fd, const char *name)
{
	struct directory CLEANUP_DIRECTORY top;
	struct names below, deeper;
	int result = directory_open(&top, parent_fd, name, O_NOFOLLOW);

	if (result == 0)
		result = add_entries(look, &top, 0, &below);
	for (unsigned i = 0; result == 0 && i < below.count; i++) {
		struct directory CLEANUP_DIRECTORY inner;

		result = directory_open(&inner, top.fd, below.text[i], O_NOFOLLOW);
		if (result == 0)
			result = add_entries(look, &inner, below.inodes[i], &deeper);
		if (result == 0 && deeper.count)
			return -EINVAL;
	}
	return result;
}

int copy_look(int parent_fd, const char *name, const struct stat *status, int64_t now_s,
	      uint64_t *ret_state)
{
	struct look look = { .now_s = now_s };
	int result;

	if (S_ISLNK(status->st_mode))
		return -EINVAL;
	/* more than some few names on any file system: not worth the opening */
	if (S_ISDIR(status->st_mode) && status->st_size > 4096)
		return -EINVAL;
	result = add(&look, UINT64_MAX, "", status, COPY_LIMIT_FILE_BYTES);
	if (result == 0 && S_ISDIR(status->st_mode))
		result = look_at_tree(&look, parent_fd, name);
	if (result < 0)
		return result;
	*ret_state = look.state ? look.state : 1;
	return 0;
}

static int set_times(int fd, const struct stat *status)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, status->st_mtim };

	return futimens(fd, times) < 0 ? -errno : 0;
}

/* A file that grows meanwhile is not followed: its state is another one then. */
static int copy_bytes(int from_fd, int to_fd)
{
	char bytes[16384];
	size_t left = COPY_LIMIT_FILE_BYTES;
	ssize_t length;

	do {
		length = fd_read_all(from_fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
		if (length > 0 && fd_write_all(to_fd, bytes, (size_t)length) < 0)
			return -errno;
		left -= length > 0 ? (size_t)length : 0;
	} while (length > 0 && left);
	return length < 0 ? (int)length : 0;
}

/* from_fd is a regular file. */
static int copy_file(int from_fd, const struct stat *status, int parent_fd, const char *name)
{
	int CLEANUP_FD fd = openat(parent_fd, name,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				   status->st_mode & 0777);
	int result = fd < 0 ? -errno : copy_bytes(from_fd, fd);

	if (result == 0)
		result = set_times(fd, status);
	/* it is used for months: a power cut must not leave an empty one under its final name */
	return result == 0 && fsync(fd) < 0 ? -errno : result;
}

static int copy_link(int from_fd, const char *name, int parent_fd)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(from_fd, name, text, sizeof(text) - 1);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return symlinkat(text, parent_fd, name) < 0 ? -errno : 0;
}

/* Opens a file or directory that has this status; a FIFO that took its place makes nobody wait. */
static int open_same(int parent_fd, const char *name, const struct stat *status)
{
	int CLEANUP_FD fd =
		openat(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	return now.st_ino == status->st_ino && now.st_mode == status->st_mode ? TAKE_FD(fd) :
										-ESTALE;
}

static int make_directory(int parent_fd, const char *name, const struct stat *status, int *ret_fd)
{
	/* its owner must be able to fill it, and to remove what is in it one day */
	if (mkdirat(parent_fd, name, (status->st_mode & 0777) | 0700) < 0)
		return -errno;
	*ret_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int copy_entry(int from_fd, const char *name, int to_fd, struct names *names)
{
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (fstatat(from_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(status.st_mode))
		return copy_link(from_fd, name, to_fd);
	if (S_ISDIR(status.st_mode)) {
		note(names, name, &status);
		return 0;
	}
	if (!S_ISREG(status.st_mode))
		return -ESTALE;
	fd = open_same(from_fd, name, &status);
	return fd < 0 ? fd : copy_file(fd, &status, to_fd, name);
}

/* Bounded as a look is: what has more is another tree by now. */
static int copy_entries(struct directory *from, int to_fd, unsigned *objects,
			struct names *ret_names)
{
	const char *name;
	int result = 0;

	ret_names->count = 0;
	while (result == 0 && (name = directory_next(from)))
		result = (*objects)++ == COPY_LIMIT_OBJECTS ?
				 -ESTALE :
				 copy_entry(from->fd, name, to_fd, ret_names);
	return result < 0 ? result : from->code;
}

/* A directory in the tree's top, which holds none itself. */
static int copy_inner(int from_fd, int to_fd, const char *name, unsigned *objects)
{
	struct directory CLEANUP_DIRECTORY from;
	int CLEANUP_FD to = -1;
	struct names deeper;
	struct stat status;
	int result = directory_open(&from, from_fd, name, O_NOFOLLOW);

	if (result == 0 && fstat(from.fd, &status) < 0)
		result = -errno;
	if (result == 0)
		result = make_directory(to_fd, name, &status, &to);
	if (result == 0)
		result = copy_entries(&from, to, objects, &deeper);
	if (result == 0)
		result = deeper.count ? -ESTALE : set_times(to, &status);
	return result;
}

static int copy_tree(int from_fd, const struct stat *status, int parent_fd, const char *target)
{
	struct directory CLEANUP_DIRECTORY from;
	int CLEANUP_FD to = -1;
	struct names below = { 0 };
	unsigned objects = 0;
	int result = directory_open(&from, from_fd, ".", 0);

	if (result == 0)
		result = make_directory(parent_fd, target, status, &to);
	if (result == 0)
		result = copy_entries(&from, to, &objects, &below);
	for (unsigned i = 0; result == 0 && i < below.count; i++)
		result = copy_inner(from.fd, to, below.text[i], &objects);
	return result < 0 ? result : set_times(to, status);
}

static int check_state(int fd, uint64_t state)
{
	struct stat status;
	uint64_t now = 0;

	if (fstat(fd, &status) < 0)
		return -errno;
	/* when it was looked at first it was old enough, and with the same state it still is */
	if (copy_look(fd, ".", &status, INT64_MAX, &now) < 0 || now != state)
		return -ESTALE;
	return 0;
}

int copy_make(const char *source, uint64_t state, int parent_fd, const char *target)
{
	int CLEANUP_FD fd = fd_open_resolved(AT_FDCWD, source, O_RDONLY | O_NONBLOCK | O_NOCTTY,
					     RESOLVE_NO_SYMLINKS);
	struct stat status;
	int result;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
	result = check_state(fd, state);
	if (result < 0)
		return result;
	if (fstat(fd, &status) < 0)
		return -errno;
	result = S_ISREG(status.st_mode) ? copy_file(fd, &status, parent_fd, target) :
					   copy_tree(fd, &status, parent_fd, target);
	/* who renames or removes it changes its ctime, so the name need not be looked up again */
	return result < 0 ? result : check_state(fd, state);
}
