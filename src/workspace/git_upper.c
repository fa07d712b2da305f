#include "workspace/git_upper.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct pending {
	const char *path;
	unsigned depth;
};

struct walk {
	struct arena *arena;
	int upper_fd;
	struct git_upper *upper;
	struct pending *pending;
	size_t pending_count;
};

static int add(struct walk *walk, struct git_upper_entry entry)
{
	struct git_upper *upper = walk->upper;
	struct git_upper_entry *entries;

	if (upper->count == GIT_UPPER_LIMIT_ENTRIES)
		return -E2BIG;
	entries = arena_push(walk->arena, upper->entries, upper->count, sizeof(*entries));
	if (!entries || !entry.path)
		return -ENOMEM;
	upper->entries = entries;
	entries[upper->count++] = entry;
	return 0;
}

static int push(struct walk *walk, const char *path, unsigned depth)
{
	struct pending *pending =
		arena_push(walk->arena, walk->pending, walk->pending_count, sizeof(*pending));

	if (!pending)
		return -ENOMEM;
	walk->pending = pending;
	pending[walk->pending_count++] = (struct pending){ .path = path, .depth = depth };
	return 0;
}

/* overlayfs.rst of the kernel: a whiteout is a character device 0/0. */
static enum git_upper_kind kind_of(const struct stat *status)
{
	if (S_ISREG(status->st_mode))
		return GIT_UPPER_FILE;
	if (S_ISCHR(status->st_mode) && status->st_rdev == 0)
		return GIT_UPPER_GONE;
	return S_ISLNK(status->st_mode) ? GIT_UPPER_LINK : GIT_UPPER_SPECIAL;
}

static const char *const opaque_names[] = { "user.overlay.opaque", "trusted.overlay.opaque" };

static bool is_opaque(int fd)
{
	char value[4];

	for (size_t i = 0; i < sizeof(opaque_names) / sizeof(opaque_names[0]); i++)
		if (fgetxattr(fd, opaque_names[i], value, sizeof(value)) == 1 && value[0] == 'y')
			return true;
	return false;
}

/*
 * The layer is the caller's, whatever modes a task gave to what lies in it: nothing is lost by one
 * that keeps its own owner out.
 */
static void unlock(int fd, const struct stat *status, mode_t needed)
{
	if (status->st_uid == geteuid() && (status->st_mode & needed) != needed)
		(void)fd_set_mode(fd, (status->st_mode & 07777) | needed);
}

static void unlock_file(int directory_fd, const char *name, const struct stat *status)
{
	int CLEANUP_FD fd = -1;
	struct stat now;

	if (!S_ISREG(status->st_mode) || status->st_mode & S_IRUSR)
		return;
	fd = fd_open_beneath(directory_fd, name, O_PATH | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &now) == 0 && S_ISREG(now.st_mode))
		unlock(fd, &now, S_IRUSR);
}

int git_upper_open(int directory_fd, const char *path)
{
	int CLEANUP_FD place =
		fd_open_beneath(directory_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	struct stat status;
	int fd;

	if (place < 0)
		return place;
	if (fstat(place, &status) < 0)
		return -errno;
	unlock(place, &status, S_IRWXU);
	fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int take_name(struct walk *walk, const struct pending *at, int directory_fd,
		     const char *name)
{
	const char *path = *at->path ? arena_format(walk->arena, "%s/%s", at->path, name) :
				       arena_copy(walk->arena, name);
	struct stat status;

	if (!path)
		return -ENOMEM;
	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == EACCES)
			return add(walk, (struct git_upper_entry){ .path = path,
								   .kind = GIT_UPPER_UNREAD });
		return errno == ENOENT ? 0 : -errno;
	}
	if (S_ISDIR(status.st_mode))
		return push(walk, path, at->depth + 1);
	unlock_file(directory_fd, name, &status);
	return add(walk, (struct git_upper_entry){
				 .path = path,
				 .kind = kind_of(&status),
				 .mode = status.st_mode,
				 .inode = status.st_ino,
				 .changed_ns = (int64_t)status.st_ctim.tv_sec * 1000000000 +
					       status.st_ctim.tv_nsec,
			 });
}

static int take_directory(struct walk *walk, const struct pending at)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0;

	directory_begin(&directory,
			at.depth > GIT_UPPER_LIMIT_DEPTH ?
				-1 :
				git_upper_open(walk->upper_fd, *at.path ? at.path : "."));
	if (directory.fd < 0)
		return add(walk,
			   (struct git_upper_entry){ .path = at.path, .kind = GIT_UPPER_UNREAD });
	if (*at.path && is_opaque(directory.fd))
		result = add(walk,
			     (struct git_upper_entry){ .path = at.path, .kind = GIT_UPPER_OPAQUE });
	while (result == 0 && (name = directory_next(&directory)))
		result = take_name(walk, &at, directory.fd, name);
	return result < 0 ? result : directory.code;
}

static int by_path(const void *a, const void *b)
{
	const struct git_upper_entry *left = a, *right = b;

	return strcmp(left->path, right->path);
}

int git_upper_read(int upper_fd, struct arena *arena, struct git_upper *ret_upper,
		   struct error *error)
{
	struct git_upper upper = { 0 };
	struct walk walk = { .arena = arena, .upper_fd = upper_fd, .upper = &upper };
	int result = push(&walk, "", 0);
	struct stat status;

	if (fstat(upper_fd, &status) == 0)
		unlock(upper_fd, &status, S_IRWXU);
	while (result == 0 && walk.pending_count)
		result = take_directory(&walk, walk.pending[--walk.pending_count]);
	if (result < 0)
		return error_errno(error, result, "what the task changed in a git directory");
	if (upper.count)
		qsort(upper.entries, upper.count, sizeof(upper.entries[0]), by_path);
	*ret_upper = upper;
	return 0;
}

const struct git_upper_entry *git_upper_find(const struct git_upper *upper, const char *path)
{
	struct git_upper_entry key = { .path = path };

	return upper->count ? bsearch(&key, upper->entries, upper->count, sizeof(key), by_path) :
			      NULL;
}

bool git_upper_is_object(const char *path)
{
	static const char name[] = "objects";
	size_t length = strlen(name);

	if (strncmp(path, "refs/", 5) == 0 || strncmp(path, "logs/", 5) == 0)
		return false;
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (strncmp(at, name, length) == 0 && (!at[length] || at[length] == '/'))
			return true;
	return false;
}

static void show(int upper_fd, const struct git_upper_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	char parent[PATH_MAX];
	int CLEANUP_FD fd = -1;

	if (entry->kind == GIT_UPPER_OPAQUE) {
		fd = fd_open_beneath(upper_fd, entry->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		for (size_t i = 0; fd >= 0 && i < sizeof(opaque_names) / sizeof(opaque_names[0]);
		     i++)
			(void)fremovexattr(fd, opaque_names[i]);
		return;
	}
	(void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - entry->path) : 1,
		       slash ? entry->path : ".");
	fd = fd_open_beneath(upper_fd, parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd >= 0)
		(void)unlinkat(fd, slash ? slash + 1 : entry->path, 0);
}

int git_upper_show_objects(int upper_fd, struct arena *arena, struct error *error)
{
	struct git_upper upper;
	int result = git_upper_read(upper_fd, arena, &upper, error);

	for (size_t i = 0; result == 0 && i < upper.count; i++) {
		const struct git_upper_entry *entry = &upper.entries[i];

		if ((entry->kind == GIT_UPPER_GONE || entry->kind == GIT_UPPER_OPAQUE) &&
		    git_upper_is_object(entry->path))
			show(upper_fd, entry);
	}
	return result;
}
