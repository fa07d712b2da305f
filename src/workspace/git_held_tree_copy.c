#include "workspace/git_held_tree_copy.h"

#include "base/fd.h"
#include "base/walk.h"
#include "workspace/git_held_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES 65536

struct copy {
	uint64_t bytes, objects, omitted;
	bool gives_owners;
};

static int count(struct copy *copy, uint64_t bytes)
{
	copy->objects++;
	copy->bytes += bytes;
	return copy->objects > GIT_HELD_TREE_LIMIT_OBJECTS ||
			       copy->bytes > GIT_HELD_TREE_LIMIT_BYTES ?
		       -EFBIG :
		       0;
}

/* A file of the caller's own whose mode closes it is opened up, and gets its mode back. */
static int open_file(int fd, const char *name, const struct stat *status)
{
	int file = fd_open_beneath(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int CLEANUP_FD path = -1;

	if (file != -EACCES || status->st_uid != geteuid())
		return file;
	path = fd_open_beneath(fd, name, O_PATH | O_NOFOLLOW);
	if (path < 0 || fd_set_mode(path, (status->st_mode & 07777) | S_IRUSR) < 0)
		return -EACCES;
	file = fd_open_beneath(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	(void)fd_set_mode(path, status->st_mode & 07777);
	return file;
}

static int copy_piece(int from, int to, off_t at, off_t end, struct copy *copy)
{
	char block[BLOCK_BYTES];

	while (at < end) {
		size_t want = end - at < BLOCK_BYTES ? (size_t)(end - at) : BLOCK_BYTES;
		ssize_t length = pread(from, block, want, at);

		if (length <= 0)
			return length < 0 ? -errno : 0;
		copy->bytes += (uint64_t)length;
		if (copy->bytes > GIT_HELD_TREE_LIMIT_BYTES)
			return -EFBIG;
		if (pwrite(to, block, (size_t)length, at) != length)
			return errno ? -errno : -EIO;
		at += length;
	}
	return 0;
}

/* Only what is data is read: a file of holes has any size and costs nothing. */
static int copy_content(int from, int to, off_t size, struct copy *copy)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;
		int result;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		if (hole < 0) {
			data = at;
			hole = size;
		}
		result = copy_piece(from, to, data, hole < size ? hole : size, copy);
		if (result < 0)
			return result;
		at = hole;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

/* Permissions last: a change of the owner takes some away. */
static int give_state(int fd, const struct stat *status, const struct copy *copy)
{
	const struct timespec times[2] = { status->st_atim, status->st_mtim };

	if (copy->gives_owners && fchown(fd, status->st_uid, status->st_gid) < 0)
		return -errno;
	if (fchmod(fd, status->st_mode & 0777) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static int copy_file(int from_fd, const char *from, int to_fd, const char *to, struct copy *copy)
{
	int CLEANUP_FD source = -1, CLEANUP_FD target = -1;
	struct stat status;
	int result;

	if (fstatat(from_fd, from, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	source = open_file(from_fd, from, &status);
	if (source < 0)
		return source;
	if (fstat(source, &status) < 0 || !S_ISREG(status.st_mode))
		return -ESTALE;
	target = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (target < 0)
		return -errno;
	errno = 0;
	result = count(copy, 0);
	if (result == 0)
		result = copy_content(source, target, status.st_size, copy);
	return result < 0 ? result : give_state(target, &status, copy);
}

static int copy_link(int from_fd, const char *from, int to_fd, const char *to, struct copy *copy)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(from_fd, from, text, sizeof(text));
	struct stat status;

	if (length < 0)
		return -errno;
	if ((size_t)length == sizeof(text))
		return -ENAMETOOLONG;
	text[length] = '\0';
	if (symlinkat(text, to_fd, to) < 0)
		return -errno;
	if (copy->gives_owners &&
	    (fstatat(from_fd, from, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	     fchownat(to_fd, to, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) < 0))
		return -errno;
	return count(copy, (uint64_t)length);
}

static int copy_plain(int from_fd, const char *from, unsigned char type, int to_fd, const char *to,
		      struct copy *copy)
{
	if (type == DT_REG)
		return copy_file(from_fd, from, to_fd, to, copy);
	if (type == DT_LNK)
		return copy_link(from_fd, from, to_fd, to, copy);
	copy->omitted++;
	return 0;
}

static int make_directory(int fd, const char *name)
{
	if (mkdirat(fd, name, 0700) < 0)
		return -errno;
	return fd_open_beneath(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/* One step of the walk through the source; targets[n] is the copy of the directory of depth n. */
static int copy_step(struct walk *walk, enum walk_event event, int *targets, int to_fd,
		     const char *to, struct copy *copy)
{
	struct stat status;
	int result = 0;

	if (event == WALK_ENTER) {
		if (walk->depth >= GIT_HELD_TREE_LIMIT_DEPTH)
			return -EFBIG;
		targets[walk->depth] =
			walk->depth ? make_directory(targets[walk->depth - 1], walk->name) :
				      make_directory(to_fd, to);
		return targets[walk->depth] < 0 ? targets[walk->depth] : count(copy, 0);
	}
	if (event == WALK_NAME && walk->type == DT_DIR)
		walk_descend(walk, 0);
	else if (event == WALK_NAME)
		return copy_plain(walk->fd, walk->name, walk->type, targets[walk->depth],
				  walk->name, copy);
	if (event != WALK_LEAVE)
		return 0;
	/* its own mode is back by now */
	result = fstat(walk->fd, &status) < 0 ? -errno :
						give_state(targets[walk->depth], &status, copy);
	fd_close(&targets[walk->depth]);
	return result;
}

/* A directory that is closed by its mode cannot be the root of a walk. */
static int open_root(int parent_fd, const char *name)
{
	int CLEANUP_FD path = fd_open_beneath(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	struct stat status;

	if (path >= 0 && fstat(path, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & S_IRWXU) != S_IRWXU)
		(void)fd_set_mode(path, (status.st_mode & 07777) | S_IRWXU);
	return fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

static int copy_directory(int from_fd, const char *from, int to_fd, const char *to,
			  struct copy *copy)
{
	struct walk CLEANUP_WALK walk = { .fd = -1 };
	int targets[GIT_HELD_TREE_LIMIT_DEPTH];
	enum walk_event event;
	int result = 0;

	for (size_t i = 0; i < GIT_HELD_TREE_LIMIT_DEPTH; i++)
		targets[i] = -1;
	walk_begin(&walk, open_root(from_fd, from), 0);
	while (result == 0 && (event = walk_next(&walk)) != WALK_END)
		result = copy_step(&walk, event, targets, to_fd, to, copy);
	if (result == 0)
		result = walk.code ? walk.code : walk.unread ? -EACCES : 0;
	for (size_t i = 0; i < GIT_HELD_TREE_LIMIT_DEPTH; i++)
		fd_close(&targets[i]);
	return result;
}

int git_held_tree_copy(int from_fd, const char *from, int to_fd, const char *to,
		       uint64_t *ret_omitted)
{
	struct copy copy = { .gives_owners = geteuid() == 0 };
	struct stat status;
	int result;

	if (fstatat(from_fd, from, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(to_fd, to, &(struct stat){ 0 }, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
		return -EOPNOTSUPP;
	result = S_ISDIR(status.st_mode) ?
			 copy_directory(from_fd, from, to_fd, to, &copy) :
			 copy_plain(from_fd, from, IFTODT(status.st_mode), to_fd, to, &copy);
	if (result < 0) {
		if (result != -EEXIST)
			(void)git_held_tree_remove(to_fd, to);
		return result;
	}
	*ret_omitted = copy.omitted;
	return 0;
}

static int remove_step(struct walk *walk, enum walk_event event)
{
	if (event == WALK_ENTER)
		(void)walk_unlock(walk);
	else if (event == WALK_NAME && walk->type == DT_DIR)
		walk_descend(walk, 0);
	else if (event == WALK_NAME && unlinkat(walk->fd, walk->name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	else if (event == WALK_LEAVE && walk->parent_fd >= 0 &&
		 unlinkat(walk->parent_fd, walk->name, AT_REMOVEDIR) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

int git_held_tree_remove(int parent_fd, const char *name)
{
	struct walk CLEANUP_WALK walk = { .fd = -1 };
	enum walk_event event;
	int result = 0;

	if (unlinkat(parent_fd, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	walk_begin(&walk, open_root(parent_fd, name), 0);
	while (result == 0 && (event = walk_next(&walk)) != WALK_END)
		result = remove_step(&walk, event);
	if (result == 0)
		result = walk.code;
	if (result == 0 && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
		result = -errno;
	return result;
}

static bool is_later(const struct stat *status, int64_t held_ns)
{
	return status->st_ctim.tv_sec * INT64_C(1000000000) + status->st_ctim.tv_nsec > held_ns;
}

static int check_step(struct walk *walk, enum walk_event event, int64_t held_ns)
{
	struct stat status;

	if (event == WALK_ENTER)
		return fstat(walk->fd, &status) < 0 ? -errno :
		       is_later(&status, held_ns)   ? -ESTALE :
						      0;
	if (event != WALK_NAME)
		return 0;
	if (walk->type == DT_DIR)
		walk_descend(walk, 0);
	else if (fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		 is_later(&status, held_ns))
		return -ESTALE;
	return 0;
}

int git_held_tree_check(int parent_fd, const char *name, int64_t held_ns)
{
	struct walk CLEANUP_WALK walk = { .fd = -1 };
	enum walk_event event;
	struct stat status;
	int result = 0;

	if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode) || is_later(&status, held_ns))
		return is_later(&status, held_ns) ? -ESTALE : 0;
	walk_begin(&walk, fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), 0);
	while (result == 0 && (event = walk_next(&walk)) != WALK_END)
		result = check_step(&walk, event, held_ns);
	return result == 0 && (walk.code || walk.unread) ? -ESTALE : result;
}
