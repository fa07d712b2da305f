/*
 * The journal of an apply or undo: "pending" in the stage's directory. It is written before each
 * exchange or removal: what is new, what was judged, where, and what is to become of both. A kill
 * between the two leaves one of them in our directory in the workspace; stage_apply_recover() reads
 * from the journal which it is.
 */
#include "workspace/stage_apply_internal.h"

#include "base/arena.h"
#include "base/buffer.h"
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
#include <sys/sysmacros.h>
#include <unistd.h>

#define OWN_PREFIX ".bawn-apply-"
#define PENDING "pending"
#define PENDING_VERSION 2u
#define PENDING_LIMIT_BYTES (STAGE_LIMIT_PATH_BYTES + 4096u)

int64_t stage_file_ns(struct timespec at)
{
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

bool stage_is_judged(const struct stage_item *item, const struct stat *status)
{
	return item->inode && status->st_dev == item->device && status->st_ino == item->inode &&
	       (S_ISDIR(status->st_mode) || ((uint64_t)status->st_size == item->size &&
					     stage_file_ns(status->st_mtim) == item->mtime_ns));
}

int stage_exchange(int left_fd, const char *left, int right_fd, const char *right)
{
	return syscall(SYS_renameat2, left_fd, left, right_fd, right, RENAME_EXCHANGE) < 0 ?
		       -errno :
		       0;
}

int stage_remove_any(int directory_fd, const char *name)
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

void stage_own_name(const struct stage_kept *kept, char ret_name[static STAGE_OWN_BYTES])
{
	(void)snprintf(ret_name, STAGE_OWN_BYTES, OWN_PREFIX "%.40s", kept->about.task + 2);
}

/* ---- writing ---- */

int stage_pending_open(int stage_fd)
{
	return fd_open_own(stage_fd, PENDING, O_RDWR | O_TRUNC);
}

int stage_pending_note(int pending_fd, const struct stage_pending *pending)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };

	codec_put_u32(&buffer, PENDING_VERSION);
	codec_put_u32(&buffer, pending->way);
	codec_put_u64(&buffer, pending->number);
	codec_put_u64(&buffer, pending->new_inode);
	codec_put_u64(&buffer, pending->judged.device);
	codec_put_u64(&buffer, pending->judged.inode);
	codec_put_u64(&buffer, pending->judged.size);
	codec_put_u64(&buffer, (uint64_t)pending->judged.mtime_ns);
	codec_put_string(&buffer, pending->path);
	codec_put_u32(&buffer, PENDING_VERSION);
	if (buffer.failed)
		return -ENOMEM;
	if (ftruncate(pending_fd, 0) < 0 || lseek(pending_fd, 0, SEEK_SET) < 0)
		return -errno;
	return fd_write_all(pending_fd, buffer.data, buffer.length);
}

int stage_pending_forget(int pending_fd)
{
	return ftruncate(pending_fd, 0) < 0 ? -EIO : 0;
}

void stage_pending_remove(int stage_fd)
{
	(void)unlinkat(stage_fd, PENDING, 0);
}

/* ---- settling what a kill left ---- */

/* -ENOENT: nothing is on the way. A torn one was not yet acted upon. */
static int recall(int stage_fd, struct arena *arena, struct stage_pending *ret_pending)
{
	int CLEANUP_FD fd =
		openat(stage_fd, PENDING, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stage_pending pending = { 0 };
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
	pending.way = (enum stage_way)codec_enum(&cursor, STAGE_WAY_COUNT);
	pending.number = codec_u64(&cursor);
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

struct settling {
	const struct stage_kept *kept;
	int own_fd;
	struct stage_pending pending; /* path NULL: nothing was on the way */
	struct stage_undo_log log;
	char *parent;
	struct error *error;
};

/* The host's, which it changed at the last moment, goes back to where it was. */
static int give_back(struct settling *settling, const char *name)
{
	const char *path = settling->pending.path, *last;
	int CLEANUP_FD fd =
		stage_open_parent(settling->kept->workspace_fd, path, settling->parent, &last);
	int result = fd < 0 ? fd : fd_rename_free(settling->own_fd, name, fd, last);

	if (result == -EEXIST)
		result = stage_exchange(settling->own_fd, name, fd, last);
	return result < 0 ? error_errno(settling->error, result,
					"an earlier apply was killed while the host changed %s; "
					"what the host had there lies in a directory " OWN_PREFIX
					"* of the workspace, take it from there and remove that",
					path) :
			    0;
}

static int fail(struct settling *settling, int code)
{
	return error_errno(settling->error, code, "settling an earlier apply");
}

/* What came out of an exchange whose step is over. */
static int settle_judged(struct settling *settling, const char *name, const struct stat *status)
{
	const struct stage_pending *pending = &settling->pending;
	int result;

	if (S_ISDIR(status->st_mode) || (pending->way == STAGE_WAY_APPLY && !pending->number))
		/* one that is not empty was never replaced */
		return stage_remove_any(settling->own_fd, name) < 0 ? give_back(settling, name) : 0;
	result = pending->way == STAGE_WAY_UNDO ?
			 stage_take_back(settling->kept, settling->own_fd, name, pending->path,
					 settling->parent) :
			 stage_undo_keep(settling->log.directory_fd, pending->number,
					 settling->own_fd, name);
	if (result == 0 && pending->way == STAGE_WAY_APPLY)
		result = stage_undo_log_done(&settling->log, pending->number, NULL);
	return result < 0 ? fail(settling, result) : 0;
}

/* What was to be put there, and is not. */
static int settle_new(struct settling *settling, const char *name, const struct stat *status)
{
	const struct stage_pending *pending = &settling->pending;
	char kept[STAGE_UNDO_NAME_BYTES];
	int result;

	stage_undo_name(pending->number, kept);
	/* what was copied is kept still */
	if (pending->way == STAGE_WAY_APPLY || S_ISDIR(status->st_mode) ||
	    faccessat(settling->log.directory_fd, kept, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		result = stage_remove_any(settling->own_fd, name);
	else
		result = stage_undo_keep(settling->log.directory_fd, pending->number,
					 settling->own_fd, name);
	return result < 0 ? fail(settling, result) : 0;
}

static int settle_one(struct settling *settling, const char *name)
{
	const struct stage_pending *pending = &settling->pending;
	struct stat status;

	if (fstatat(settling->own_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(settling, errno);
	/* made, and nothing was exchanged */
	if (!pending->path)
		return stage_remove_any(settling->own_fd, name) < 0 ? fail(settling, errno) : 0;
	if (status.st_ino == pending->new_inode)
		return settle_new(settling, name, &status);
	if (stage_is_judged(&pending->judged, &status))
		return settle_judged(settling, name, &status);
	return give_back(settling, name);
}

/* A copy that came back need not be kept any longer. */
static void drop_kept(const struct settling *settling)
{
	const struct stage_pending *pending = &settling->pending;
	int CLEANUP_FD fd = -1;
	char name[STAGE_UNDO_NAME_BYTES];
	struct stat status;
	const char *last;

	if (!pending->path || pending->way != STAGE_WAY_UNDO || !pending->new_inode)
		return;
	fd = stage_open_parent(settling->kept->workspace_fd, pending->path, settling->parent,
			       &last);
	stage_undo_name(pending->number, name);
	if (fd >= 0 && fstatat(fd, last, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    status.st_ino == pending->new_inode)
		(void)unlinkat(settling->log.directory_fd, name, 0);
}

static int settle(struct settling *settling)
{
	int result = 0;

	if (settling->pending.path && settling->pending.number)
		result = stage_undo_log_open(settling->kept->fd, &settling->log);
	if (result < 0)
		return fail(settling, result);
	result = settle_one(settling, STAGE_OWN_NEW);
	if (result == 0)
		result = settle_one(settling, STAGE_OWN_OLD);
	if (result == 0)
		drop_kept(settling);
	return result;
}

int stage_apply_recover(const struct stage_kept *kept, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	char own[STAGE_OWN_BYTES];
	int CLEANUP_FD own_fd = -1;
	struct settling settling = { .kept = kept, .log = STAGE_UNDO_LOG_NONE, .error = error };
	int result;

	stage_own_name(kept, own);
	own_fd = stage_open_beneath(kept->workspace_fd, own, O_PATH | O_DIRECTORY);
	if (own_fd < 0)
		return own_fd == -ENOENT ? 0 : error_errno(error, own_fd, "opening %s", own);
	settling.own_fd = own_fd;
	settling.parent = arena_allocate(&arena, STAGE_LIMIT_PATH_BYTES);
	result = settling.parent ? recall(kept->fd, &arena, &settling.pending) : -ENOMEM;
	if (result < 0 && result != -ENOENT)
		return error_errno(error, result, "reading what an earlier apply was at");
	result = settle(&settling);
	stage_undo_log_close(&settling.log);
	if (result < 0)
		return result;
	stage_pending_remove(kept->fd);
	if (unlinkat(kept->workspace_fd, own, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_errno(error, errno, "removing %s from the workspace", own);
	return 1;
}
