#include "workspace/git_file.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"
/* two numbers, a word and a path */
#define LINE_BYTES (PATH_MAX + 96)

static int read_known(int fd, size_t size, struct arena *arena, struct git_text *ret_text)
{
	char *bytes = arena_allocate(arena, size + 1);
	ssize_t length;

	if (!bytes)
		return -ENOMEM;
	length = fd_read_all(fd, bytes, size);
	if (length < 0)
		return (int)length;
	*ret_text = (struct git_text){ .bytes = bytes, .length = (size_t)length };
	return 0;
}

int git_file_read(int directory_fd, const char *path, size_t limit_bytes, struct arena *arena,
		  struct git_text *ret_text, struct stat *ret_status)
{
	int CLEANUP_FD fd =
		fd_open_beneath(directory_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	int result;

	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO ? -EINVAL : fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if ((uint64_t)status.st_size > limit_bytes)
		return -EFBIG;
	result = read_known(fd, (size_t)status.st_size, arena, ret_text);
	if (result == 0 && ret_status)
		*ret_status = status;
	return result;
}

/* Gives the parent's descriptor and the last component. */
static int open_parent(int directory_fd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return fd_open_beneath(directory_fd, ".", O_PATH | O_DIRECTORY);
	if ((size_t)(slash - path) >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	return fd_open_beneath(directory_fd, parent, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

int git_file_status(int directory_fd, const char *path, struct stat *ret_status)
{
	const char *name;
	int CLEANUP_FD fd = open_parent(directory_fd, path, &name);

	if (fd < 0)
		return fd;
	return fstatat(fd, name, ret_status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* As the directory above it: a shared repository's are for its group. */
static int make_directory(int parent_fd, const char *name)
{
	struct stat status;
	int fd;

	if (fstat(parent_fd, &status) < 0)
		return -errno;
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if ((geteuid() == 0 && fchown(fd, status.st_uid, status.st_gid) < 0) ||
	    fchmod(fd, status.st_mode & 02777) < 0) {
		int result = -errno;

		fd_close(&fd);
		return result;
	}
	return fd;
}

int git_file_directory(const struct git_target *target, const char *path)
{
	int CLEANUP_FD fd = fd_open_beneath(target->fd, ".", O_PATH | O_DIRECTORY);

	while (fd >= 0 && *path) {
		size_t length = strcspn(path, "/");
		char name[NAME_MAX + 1];
		int inner;

		if (!length || length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, length);
		name[length] = '\0';
		inner = fd_open_beneath(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
		if (inner == -ENOENT)
			inner = make_directory(fd, name);
		fd_close(&fd);
		fd = inner;
		path += length + (path[length] == '/');
	}
	return TAKE_FD(fd);
}

static int open_or_make_parent(const struct git_target *target, const char *path, bool makes,
			       const char **ret_name)
{
	int fd = open_parent(target->fd, path, ret_name);
	char parent[PATH_MAX];

	if (fd != -ENOENT || !makes)
		return fd;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(*ret_name - path - 1), path);
	return git_file_directory(target, parent);
}

static uint64_t birth_of(const struct statx *status)
{
	return (uint64_t)status->stx_btime.tv_sec * 1000000000u + status->stx_btime.tv_nsec;
}

static int note(const struct git_target *target, const char *word, uint64_t inode, uint64_t birth,
		const char *path)
{
	char line[LINE_BYTES];
	int length;

	if (target->journal_fd < 0)
		return 0;
	length = snprintf(line, sizeof(line), "%s %u %" PRIu64 " %" PRIu64 " %s%s\n", word,
			  target->number, inode, birth, target->prefix, path);
	if (length < 0 || (size_t)length >= sizeof(line))
		return -ENAMETOOLONG;
	return fd_write_all(target->journal_fd, line, (size_t)length);
}

/* A file without a name, which the journal knows before it gets one. */
static int make_nameless(const struct git_target *target, const char *path, int directory_fd)
{
	int CLEANUP_FD fd = openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statx status;
	int result;

	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) < 0)
		return -errno;
	result = note(target, "lock", status.stx_ino, birth_of(&status), path);
	return result < 0 ? result : TAKE_FD(fd);
}

static void pause_ms(long ms)
{
	const struct timespec time = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&time, NULL);
}

static int give_name(int fd, int directory_fd, const char *name)
{
	char self[40];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (int waited = 0;; waited += 2) {
		if (linkat(AT_FDCWD, self, directory_fd, name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST || waited >= GIT_FILE_WAIT_MS)
			return errno == EEXIST ? -EBUSY : -errno;
		pause_ms(2);
	}
}

/* What stands there now lends its mode; otherwise the directory does. */
static int set_mode(const struct git_lock *lock)
{
	struct stat old, parent;
	mode_t mode;

	if (fstat(lock->directory_fd, &parent) < 0)
		return -errno;
	mode = parent.st_mode & 0666;
	if (fstatat(lock->directory_fd, lock->name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(old.st_mode))
		mode = old.st_mode & 0777;
	else
		old = parent;
	if (geteuid() == 0 && fchown(lock->fd, old.st_uid, old.st_gid) < 0)
		return -errno;
	return fchmod(lock->fd, mode) < 0 ? -errno : 0;
}

static int lock_name(const struct git_lock *lock, char name[static NAME_MAX + 1])
{
	int length = snprintf(name, NAME_MAX + 1, "%s" LOCK_SUFFIX, lock->name);

	return length < 0 || length > NAME_MAX ? -ENAMETOOLONG : 0;
}

int git_file_lock(const struct git_target *target, const char *path, bool makes_parents,
		  struct git_lock *ret_lock)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	char name[NAME_MAX + 1];
	const char *last;
	int result;

	lock.directory_fd = open_or_make_parent(target, path, makes_parents, &last);
	if (lock.directory_fd < 0)
		return lock.directory_fd;
	(void)snprintf(lock.name, sizeof(lock.name), "%s", last);
	result = lock_name(&lock, name);
	if (result < 0)
		return result;
	lock.fd = make_nameless(target, path, lock.directory_fd);
	if (lock.fd < 0)
		return lock.fd;
	result = give_name(lock.fd, lock.directory_fd, name);
	if (result < 0)
		return result;
	lock.is_taken = true;
	result = set_mode(&lock);
	if (result < 0)
		return result;
	*ret_lock = lock;
	lock = GIT_LOCK_NONE;
	return 0;
}

int git_lock_write(struct git_lock *lock, const char *bytes, size_t length)
{
	return fd_write_all(lock->fd, bytes, length);
}

static void let_go(struct git_lock *lock)
{
	lock->is_taken = false;
	fd_close(&lock->fd);
	fd_close(&lock->directory_fd);
}

int git_lock_commit(struct git_lock *lock)
{
	char name[NAME_MAX + 1];
	int result = lock_name(lock, name);

	if (result == 0 && renameat(lock->directory_fd, name, lock->directory_fd, lock->name) < 0) {
		/* git leaves empty directories of references behind */
		if (errno == EISDIR &&
		    unlinkat(lock->directory_fd, lock->name, AT_REMOVEDIR) == 0 &&
		    renameat(lock->directory_fd, name, lock->directory_fd, lock->name) == 0)
			errno = 0;
		result = -errno;
	}
	if (result == 0)
		let_go(lock);
	return result;
}

int git_lock_remove(struct git_lock *lock)
{
	if (unlinkat(lock->directory_fd, lock->name, 0) < 0 && errno != ENOENT && errno != EISDIR)
		return -errno;
	git_lock_drop(lock);
	return 0;
}

void git_lock_drop(struct git_lock *lock)
{
	char name[NAME_MAX + 1];

	if (lock->is_taken && lock_name(lock, name) == 0)
		(void)unlinkat(lock->directory_fd, name, 0);
	let_go(lock);
}

int git_file_move(int from_fd, const char *from, int to_fd, const char *to)
{
	return syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

void git_file_prune(int directory_fd, const char *path, unsigned keep)
{
	char parent[PATH_MAX];

	(void)snprintf(parent, sizeof(parent), "%s", path);
	while (depth_of(parent) > keep) {
		const char *name;
		int CLEANUP_FD fd = -1;

		*strrchr(parent, '/') = '\0';
		fd = open_parent(directory_fd, parent, &name);
		if (fd < 0 || unlinkat(fd, name, AT_REMOVEDIR) < 0)
			return;
	}
}

int git_file_aside(const struct git_target *target, const char *name)
{
	int result = note(target, "tree", 0, 0, name);

	if (result < 0)
		return result;
	directory_remove_tree(target->fd, name);
	return git_file_directory(target, name);
}

/* A lock is ours only if it is the very file that the journal tells of. */
static void recover_lock(int directory_fd, const char *path, uint64_t inode, uint64_t birth)
{
	const char *last;
	int CLEANUP_FD fd = open_parent(directory_fd, path, &last);
	struct git_lock lock = GIT_LOCK_NONE;
	char name[NAME_MAX + 1];
	struct statx status;

	(void)snprintf(lock.name, sizeof(lock.name), "%s", last);
	if (fd < 0 || lock_name(&lock, name) < 0 ||
	    statx(fd, name, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) < 0)
		return;
	if (status.stx_ino == inode && birth_of(&status) == birth)
		(void)unlinkat(fd, name, 0);
}

static void recover_tree(int directory_fd, const char *path)
{
	const char *name;
	int CLEANUP_FD fd = open_parent(directory_fd, path, &name);

	if (fd >= 0)
		directory_remove_tree(fd, name);
}

static void recover_line(const char *line, unsigned wanted, int directory_fd)
{
	uint64_t inode, birth;
	unsigned number;
	char word[8];
	int at = 0;

	if (sscanf(line, "%7s %u %" SCNu64 " %" SCNu64 " %n", word, &number, &inode, &birth, &at) !=
		    4 ||
	    !at || number != wanted)
		return;
	if (strcmp(word, "lock") == 0)
		recover_lock(directory_fd, line + at, inode, birth);
	else if (strcmp(word, "tree") == 0)
		recover_tree(directory_fd, line + at);
}

void git_file_recover(const char *journal, size_t length, unsigned number, int directory_fd)
{
	for (size_t at = 0; at < length;) {
		const char *end = memchr(journal + at, '\n', length - at);
		char line[LINE_BYTES];

		/* the last line may be torn: what it tells of does not exist yet */
		if (!end)
			return;
		(void)snprintf(line, sizeof(line), "%.*s", (int)(end - journal - (ptrdiff_t)at),
			       journal + at);
		recover_line(line, number, directory_fd);
		at = (size_t)(end - journal) + 1;
	}
}
