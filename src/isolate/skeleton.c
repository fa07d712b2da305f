/*
 * The skeleton of a root: its directories, links, small files and copies of the host's on the
 * host's disk, made once and mounted read-only by every start that has the same. Its name is the
 * hash of what it is made of (of a copy: of the state of what was copied). A task never sees the
 * directory it is kept in; whoever can change it is the caller.
 */
#include "isolate/internal.h"

#include "base/copy.h"
#include "base/directory.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each kind of workspace, home and host needs one of its own; older ones beyond these go. */
#define SKELETONS_LIMIT 32

/* Every target is an absolute path of the box: without its slash it is one below the skeleton. */
static int make_one(int root_fd, const struct plan_op *op)
{
	const char *below = op->target + 1;
	int CLEANUP_FD fd = -1;

	if (op->kind == PLAN_DIRECTORY)
		return mkdirat(root_fd, below, (mode_t)op->number) < 0 ? -errno : 0;
	if (op->kind == PLAN_COPY)
		return copy_make(op->source, op->state, root_fd, below);
	if (op->kind == PLAN_LINK)
		return symlinkat(op->source, root_fd, below) < 0 ? -errno : 0;
	fd = openat(root_fd, below, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    (mode_t)op->number);
	if (fd < 0)
		return -errno;
	if (!op->source[0])
		return 0;
	/* it is used for months: a power cut must not leave an empty one under its final name */
	return fd_write_all(fd, op->source, strlen(op->source)) < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int fill(const struct plan *plan, int root_fd, struct error *error)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];
		int result = plan_is_kept(op) ? make_one(root_fd, op) : 0;

		if (result == -ESTALE)
			error_set(error, ESTALE, "%s changed during the start; start again",
				  op->source);
		else if (result < 0)
			error_errno(error, result, "%s", op->target);
		if (result < 0)
			return operation_failed(op, error);
	}
	return fsync(root_fd) < 0 ? error_errno(error, errno, "keeping the skeleton") : 0;
}

/* When there are many: removes those that no live box uses. Only after one was made. */
static void prune(int parent_fd, const char *keep)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int count = 0;

	(void)directory_open(&directory, parent_fd, ".", 0);
	while ((name = directory_next(&directory)))
		count += name[0] != '.';
	directory_rewind(&directory);
	while (count > SKELETONS_LIMIT && (name = directory_next(&directory))) {
		int CLEANUP_FD one = -1;

		if (name[0] == '.' || strcmp(name, keep) == 0)
			continue;
		one = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0)
			directory_remove_tree(parent_fd, name);
	}
}

static int make(const struct plan *plan, int parent_fd, const char *name, struct error *error)
{
	char temporary[64];
	int CLEANUP_FD fd = -1;
	mode_t mask = umask(0);
	int result = 0;

	/* whatever has this name is a leftover: only one maker is at work */
	(void)snprintf(temporary, sizeof(temporary), "new");
	directory_remove_tree(parent_fd, temporary);
	if (mkdirat(parent_fd, temporary, 0755) < 0 ||
	    (fd = openat(parent_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
		    0)
		result = error_errno(error, errno, "making the skeleton of the root");
	if (result == 0)
		result = fill(plan, fd, error);
	(void)umask(mask);
	if (result == 0 && renameat(parent_fd, temporary, parent_fd, name) < 0 && errno != EEXIST &&
	    errno != ENOTEMPTY)
		result = error_errno(error, errno, "keeping the skeleton of the root");
	directory_remove_tree(parent_fd, temporary);
	if (result == 0)
		prune(parent_fd, name);
	return result;
}

/* The directory of that name, locked for use; -ENOENT also where it was just being removed. */
static int open_locked(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH) == 0 && fstat(fd, &status) == 0 && status.st_nlink > 0 &&
	    status.st_uid == geteuid())
		return fd;
	fd_close(&fd);
	return -ENOENT;
}

/*
 * One maker at a time: many first starts at once would each write one, and take the others' drafts
 * for leftovers. The lock ends with the parent's descriptor.
 */
static int make_alone(const struct plan *plan, int parent_fd, const char *name, struct error *error)
{
	int fd, result;

	do
		result = flock(parent_fd, LOCK_EX);
	while (result < 0 && errno == EINTR);
	if (result < 0)
		return error_errno(error, errno, "locking the skeletons");
	fd = open_locked(parent_fd, name);
	if (fd != -ENOENT)
		return fd < 0 ? error_errno(error, fd, "the skeleton of the root") : fd;
	result = make(plan, parent_fd, name, error);
	if (result < 0)
		return result;
	fd = open_locked(parent_fd, name);
	return fd < 0 ? error_errno(error, fd, "the skeleton of the root") : fd;
}

int skeleton_open(const struct plan *plan, const char *path, int *ret_fd, struct error *error)
{
	const char *name = strrchr(path, '/') + 1;
	char parent[4096];
	int CLEANUP_FD parent_fd = -1;
	int fd;

	/* step by step, and without a last slash: O_NOFOLLOW looks at the last component alone */
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(name - path - 1), path);
	parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent_fd < 0 && errno == ENOENT) {
		if (mkdir(parent, 0700) < 0 && errno != EEXIST)
			return error_errno(error, errno, "%s", parent);
		parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (parent_fd < 0)
		return error_errno(error, errno, "%s", parent);
	fd = open_locked(parent_fd, name);
	if (fd == -ENOENT)
		fd = make_alone(plan, parent_fd, name, error);
	else if (fd < 0)
		error_errno(error, fd, "the skeleton of the root, %s", path);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
