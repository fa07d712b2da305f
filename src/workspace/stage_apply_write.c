/*
 * Theory of operation. What is new is made as "new" in the directory of our own. It takes a free
 * name by a rename that takes nobody's place. Where something is replaced the two are exchanged,
 * and what came out is held against what was judged: if it is another, the host was quicker, and
 * they are exchanged back. What is removed is moved to "old" first, for the same reason.
 *
 * A kill between the two leaves the host's object in our directory. So before each exchange or
 * removal the journal ("pending" in the stage) is written: what is new, what was judged, and where;
 * stage_apply_recover() reads from it which of the two lies there.
 */
#include "workspace/stage_apply_internal.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/content.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_PREFIX ".bawn-apply-"
#define NEW "new"
#define OLD "old"
#define PENDING "pending"
#define PENDING_VERSION 1u
#define PENDING_LIMIT_BYTES (STAGE_LIMIT_PATH_BYTES + 4096u)

struct pending {
	const char *path;
	uint64_t new_inode;	  /* 0: a removal */
	struct stage_item judged; /* its identity alone */
};

static int64_t nanoseconds(struct timespec at)
{
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* A rename changes neither of these. */
static bool is_judged(const struct stage_item *item, const struct stat *status)
{
	return item->inode && status->st_dev == item->device && status->st_ino == item->inode &&
	       (S_ISDIR(status->st_mode) || ((uint64_t)status->st_size == item->size &&
					     nanoseconds(status->st_mtim) == item->mtime_ns));
}

static int exchange(int left_fd, const char *left, int right_fd, const char *right)
{
	return syscall(SYS_renameat2, left_fd, left, right_fd, right, RENAME_EXCHANGE) < 0 ?
		       -errno :
		       0;
}

static int remove_any(int directory_fd, const char *name)
{
	if (unlinkat(directory_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	return unlinkat(directory_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int stage_open_parent(int root_fd, const char *path, char *parent, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	memcpy(parent, path, length);
	parent[length] = '\0';
	*ret_name = slash ? slash + 1 : path;
	return stage_open_path(root_fd, parent, O_PATH | O_DIRECTORY);
}

/* ---- the journal ---- */

static int note(struct stage_writer *writer, const struct stage_item *item, uint64_t new_inode)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };

	codec_put_u32(&buffer, PENDING_VERSION);
	codec_put_u64(&buffer, new_inode);
	codec_put_u64(&buffer, item->device);
	codec_put_u64(&buffer, item->inode);
	codec_put_u64(&buffer, item->size);
	codec_put_u64(&buffer, (uint64_t)item->mtime_ns);
	codec_put_string(&buffer, item->path);
	codec_put_u32(&buffer, PENDING_VERSION);
	if (buffer.failed)
		return -ENOMEM;
	if (ftruncate(writer->pending_fd, 0) < 0 || lseek(writer->pending_fd, 0, SEEK_SET) < 0)
		return -errno;
	return fd_write_all(writer->pending_fd, buffer.data, buffer.length);
}

/* An old word about a new object would be taken for true: without this nothing goes on. */
static int forget(struct stage_writer *writer)
{
	return ftruncate(writer->pending_fd, 0) < 0 ? -EIO : 0;
}

/* -ENOENT: nothing is on the way. A torn one was not yet acted upon. */
static int recall(int stage_fd, struct arena *arena, struct pending *ret_pending)
{
	int CLEANUP_FD fd =
		openat(stage_fd, PENDING, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct pending pending = { 0 };
	struct codec_cursor cursor;
	ssize_t length;
	char *bytes;

	if (fd < 0)
		return -errno;
	bytes = arena_allocate(arena, PENDING_LIMIT_BYTES);
	length = bytes ? fd_read_all(fd, bytes, PENDING_LIMIT_BYTES) : -ENOMEM;
	if (length <= 0)
		return length < 0 ? (int)length : -ENOENT;
	codec_begin(&cursor, bytes, (size_t)length, arena);
	if (codec_u32(&cursor) != PENDING_VERSION)
		codec_fail(&cursor, -EBADMSG);
	pending.new_inode = codec_u64(&cursor);
	pending.judged.device = codec_u64(&cursor);
	pending.judged.inode = codec_u64(&cursor);
	pending.judged.size = codec_u64(&cursor);
	pending.judged.mtime_ns = (int64_t)codec_u64(&cursor);
	pending.path = codec_string(&cursor, STAGE_LIMIT_PATH_BYTES);
	if (codec_u32(&cursor) != PENDING_VERSION)
		codec_fail(&cursor, -EBADMSG);
	if (codec_end(&cursor) < 0)
		return -ENOENT;
	*ret_pending = pending;
	return 0;
}

static void name_own(const struct stage_kept *kept, char name[static 64])
{
	(void)snprintf(name, 64, OWN_PREFIX "%.40s", kept->about.task + 2);
}

/* The host's, which it changed at the last moment, goes back to where it was. */
static int give_back(const struct stage_kept *kept, int own_fd, const char *name,
		     const struct pending *pending, struct error *error)
{
	char *parent = malloc(STAGE_LIMIT_PATH_BYTES);
	int CLEANUP_FD fd = -1;
	const char *last;
	int result;

	if (!parent)
		return error_errno(error, ENOMEM, "settling an earlier apply");
	fd = stage_open_parent(kept->workspace_fd, pending->path, parent, &last);
	free(parent);
	result = fd < 0 ? fd : fd_rename_free(own_fd, name, fd, last);
	if (result == -EEXIST)
		result = exchange(own_fd, name, fd, last);
	return result < 0 ? error_errno(error, result,
					"an earlier apply was killed while the host changed %s; "
					"what the host had there lies in a directory " OWN_PREFIX
					"* of the workspace, take it from there and remove that",
					pending->path) :
			    0;
}

static int settle_one(const struct stage_kept *kept, int own_fd, const char *name,
		      const struct pending *pending, struct error *error)
{
	struct stat status;

	if (fstatat(own_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_errno(error, errno, "settling an earlier apply");
	if (pending->path && status.st_ino != pending->new_inode &&
	    !is_judged(&pending->judged, &status)) {
		int result = give_back(kept, own_fd, name, pending, error);

		if (result < 0)
			return result;
	}
	/* ours, or what was replaced; a directory that is not empty was never replaced */
	if (remove_any(own_fd, name) < 0 && pending->path)
		return give_back(kept, own_fd, name, pending, error);
	return 0;
}

int stage_apply_recover(const struct stage_kept *kept, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct pending pending = { 0 };
	char own[64];
	int CLEANUP_FD own_fd = -1;
	int result;

	name_own(kept, own);
	own_fd = stage_open_beneath(kept->workspace_fd, own, O_PATH | O_DIRECTORY);
	if (own_fd < 0)
		return own_fd == -ENOENT ? 0 : error_errno(error, own_fd, "opening %s", own);
	result = recall(kept->fd, &arena, &pending);
	if (result < 0 && result != -ENOENT)
		return error_errno(error, result, "reading what an earlier apply was at");
	result = settle_one(kept, own_fd, NEW, &pending, error);
	if (result == 0)
		result = settle_one(kept, own_fd, OLD, &pending, error);
	if (result < 0)
		return result;
	(void)unlinkat(kept->fd, PENDING, 0);
	if (unlinkat(kept->workspace_fd, own, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_errno(error, errno, "removing %s from the workspace", own);
	return 1;
}

int stage_writer_begin(struct stage_writer *writer, const struct stage_kept *kept,
		       struct error *error)
{
	char own[64];

	*writer = STAGE_WRITER_NONE;
	writer->kept = kept;
	writer->parent = malloc(STAGE_LIMIT_PATH_BYTES);
	if (!writer->parent)
		return error_errno(error, ENOMEM, "applying a stage");
	writer->pending_fd = openat(kept->fd, PENDING,
				    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->pending_fd < 0)
		return error_errno(error, errno, "writing the stage's journal");
	name_own(kept, own);
	if (mkdirat(kept->workspace_fd, own, 0700) < 0 && errno != EEXIST)
		return error_errno(error, errno, "making %s in the workspace", own);
	writer->temporary_fd = stage_open_beneath(kept->workspace_fd, own, O_PATH | O_DIRECTORY);
	return writer->temporary_fd < 0 ? error_errno(error, writer->temporary_fd,
						      "opening %s in the workspace", own) :
					  0;
}

void stage_writer_end(struct stage_writer *writer)
{
	char own[64];

	if (writer->temporary_fd >= 0) {
		name_own(writer->kept, own);
		(void)unlinkat(writer->kept->workspace_fd, own, AT_REMOVEDIR);
		(void)unlinkat(writer->kept->fd, PENDING, 0);
	}
	fd_close(&writer->temporary_fd);
	fd_close(&writer->pending_fd);
	free(writer->parent);
	writer->parent = NULL;
}

/* ---- one item ---- */

/* What is no matter of one path ends the work. */
static bool is_for_all(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -EROFS || code == -EIO ||
	       code == -ENOMEM;
}

static int fail(struct stage_item *item, int code)
{
	if (is_for_all(code)) {
		item->outcome = STAGE_FAILED;
		item->reason = "the work ended here";
		return code;
	}
	item->outcome = code == -EEXIST || code == -ESTALE || code == -ENOENT || code == -ENOTDIR ||
					code == -ELOOP || code == -ENOTEMPTY ?
				STAGE_CONFLICT :
				STAGE_FAILED;
	item->reason = code == -EEXIST		       ? "something stands there by now" :
		       code == -ENOTEMPTY	       ? "something in it stays" :
		       code == -EXDEV		       ? "it lies on another file system" :
		       item->outcome == STAGE_CONFLICT ? "the host changed it just now" :
							 "the host's file system refused it";
	return 0;
}

/* A file of the caller's own whose mode closes it is opened up, and gets its mode back. */
static int open_source(int upper_fd, const struct stage_item *item)
{
	int fd = stage_open_file(upper_fd, item->path);
	int CLEANUP_FD path_fd = -1;

	if (fd != -EACCES)
		return fd;
	path_fd = stage_open_path(upper_fd, item->path, O_PATH);
	if (path_fd < 0 || fd_set_mode(path_fd, item->after.mode | S_IRUSR) < 0)
		return -EACCES;
	fd = stage_open_file(upper_fd, item->path);
	(void)fd_set_mode(path_fd, item->after.mode);
	return fd;
}

static int make_file(struct stage_writer *writer, const struct stage_item *item)
{
	int CLEANUP_FD from = open_source(writer->kept->upper_fd, item);
	int CLEANUP_FD to = -1;
	struct timespec times[2];
	struct stat status;
	int result;

	if (from < 0 || fstat(from, &status) < 0)
		return from < 0 ? from : -errno;
	to = openat(writer->temporary_fd, NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (to < 0)
		return -errno;
	result = content_copy(from, to, status.st_size);
	times[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	times[1] = status.st_mtim;
	/* without set-id and sticky bits */
	if (result == 0 && (fchmod(to, item->after.mode & 0777) < 0 || futimens(to, times) < 0))
		result = -errno;
	return result;
}

static int make_link(struct stage_writer *writer, const struct stage_item *item)
{
	char target[PATH_MAX];
	const char *name;
	int CLEANUP_FD fd =
		stage_open_parent(writer->kept->upper_fd, item->path, writer->parent, &name);
	ssize_t length = fd < 0 ? fd : readlinkat(fd, name, target, sizeof(target));

	if (fd < 0 || length < 0)
		return fd < 0 ? fd : -errno;
	if ((size_t)length == sizeof(target))
		return -ENAMETOOLONG;
	target[length] = '\0';
	return symlinkat(target, writer->temporary_fd, NEW) < 0 ? -errno : 0;
}

static int make_new(struct stage_writer *writer, const struct stage_item *item)
{
	switch (item->after.type) {
	case STAGE_FILE:
		return make_file(writer, item);
	case STAGE_LINK:
		return make_link(writer, item);
	default:
		return mkdirat(writer->temporary_fd, NEW, 0700) < 0 ? -errno : 0;
	}
}

/* -ESTALE: the host was quicker, and has what it had. */
static int replace(struct stage_writer *writer, const struct stage_item *item, int parent_fd,
		   const char *name)
{
	struct stat made, replaced;
	int result;

	if (fstatat(writer->temporary_fd, NEW, &made, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = note(writer, item, made.st_ino);
	if (result == 0)
		result = exchange(writer->temporary_fd, NEW, parent_fd, name);
	if (result < 0)
		return result;
	if (fstatat(writer->temporary_fd, NEW, &replaced, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = is_judged(item, &replaced) ? remove_any(writer->temporary_fd, NEW) : -ESTALE;
	/* what was replaced cannot be removed now: the next apply does it, by the journal */
	if (result < 0 && result != -ESTALE && result != -ENOTEMPTY && result != -EEXIST)
		return -EIO;
	/* a directory with something in it comes back, too */
	if (result < 0 && exchange(writer->temporary_fd, NEW, parent_fd, name) < 0)
		return -EIO;
	return result;
}

int stage_writer_put(struct stage_writer *writer, struct stage_item *item)
{
	const char *name;
	int CLEANUP_FD parent_fd = -1;
	int result = make_new(writer, item);

	if (result == 0) {
		parent_fd = stage_open_parent(writer->kept->workspace_fd, item->path,
					      writer->parent, &name);
		result = parent_fd;
	}
	if (result >= 0)
		result = item->before.type == STAGE_NONE ?
				 fd_rename_free(writer->temporary_fd, NEW, parent_fd, name) :
				 replace(writer, item, parent_fd, name);
	if (result < 0 && result != -EIO) {
		/* what failed is ours; the journal goes last */
		int removed = remove_any(writer->temporary_fd, NEW);

		result = removed < 0 ? removed : result;
	}
	if (result != -EIO && forget(writer) < 0)
		result = -EIO;
	if (result < 0)
		return fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}

static int move_away(struct stage_writer *writer, const struct stage_item *item, int parent_fd,
		     const char *name)
{
	struct stat removed;
	int result = note(writer, item, 0);

	if (result == 0)
		result = fd_rename_free(parent_fd, name, writer->temporary_fd, OLD);
	if (result < 0)
		return result;
	if (fstatat(writer->temporary_fd, OLD, &removed, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (is_judged(item, &removed))
		return remove_any(writer->temporary_fd, OLD) < 0 ? -EIO : 0;
	return fd_rename_free(writer->temporary_fd, OLD, parent_fd, name) < 0 ? -EIO : -ESTALE;
}

int stage_writer_remove(struct stage_writer *writer, struct stage_item *item)
{
	const char *name;
	int CLEANUP_FD parent_fd =
		stage_open_parent(writer->kept->workspace_fd, item->path, writer->parent, &name);
	int result = parent_fd;

	if (result >= 0 && item->before.type == STAGE_DIRECTORY)
		result = unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	else if (result >= 0)
		result = move_away(writer, item, parent_fd, name);
	if (result != -EIO && forget(writer) < 0)
		result = -EIO;
	if (result < 0)
		return fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}

int stage_writer_set_mode(struct stage_writer *writer, struct stage_item *item)
{
	int CLEANUP_FD fd = stage_open_path(writer->kept->workspace_fd, item->path, O_PATH);
	mode_t kept = item->after.type == STAGE_DIRECTORY ? 01777 : 0777;
	struct stat status;
	int result = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;

	/* of one that was made here the judgement knows nothing */
	if (result == 0 && item->kind == STAGE_MODE && !is_judged(item, &status))
		result = -ESTALE;
	if (result == 0 && (item->after.type == STAGE_DIRECTORY ? !S_ISDIR(status.st_mode) :
								  !S_ISREG(status.st_mode)))
		result = -ESTALE;
	if (result == 0)
		result = fd_set_mode(fd, item->after.mode & kept);
	if (result < 0)
		return fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}
