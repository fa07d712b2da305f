/*
 * Theory of operation. What is new is made as "new" in the directory of our own. It takes a free
 * name by a rename that takes nobody's place. Where something is replaced the two are exchanged,
 * and what came out is held against what was judged: if it is another, the host was quicker, and
 * they are exchanged back. What is removed is moved to "old" first, for the same reason. What came
 * out then leaves for the stage's "undo", by its number in the log there (stage_undo_log.c), or
 * goes where nothing is kept.
 *
 * An undo is the same in the other direction: what was kept is exchanged with what was put there,
 * and that goes back into the stage.
 *
 * A kill between the two leaves an object in our directory. stage_apply_journal.c knows which.
 */
#include "workspace/stage_apply_internal.h"

#include "base/content.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/stage_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int stage_writer_begin(struct stage_writer *writer, const struct stage_kept *kept, bool keeps,
		       struct error *error)
{
	char own[STAGE_OWN_BYTES];
	int result;

	*writer = STAGE_WRITER_NONE;
	writer->kept = kept;
	writer->parent = malloc(STAGE_LIMIT_PATH_BYTES);
	writer->opened = malloc(STAGE_LIMIT_PATH_BYTES);
	if (!writer->parent || !writer->opened)
		return error_errno(error, ENOMEM, "applying a stage");
	writer->pending_fd = stage_pending_open(kept->fd);
	if (writer->pending_fd < 0)
		return error_errno(error, writer->pending_fd, "writing the stage's journal");
	result = keeps ? stage_undo_log_open(kept->fd, &writer->log) : 0;
	if (result < 0)
		return error_errno(error, result, "opening what is kept for an undo");
	stage_own_name(kept, own);
	if (mkdirat(kept->workspace_fd, own, 0700) < 0 && errno != EEXIST)
		return error_errno(error, errno, "making %s in the workspace", own);
	writer->temporary_fd = stage_open_beneath(kept->workspace_fd, own, O_PATH | O_DIRECTORY);
	return writer->temporary_fd < 0 ? error_errno(error, writer->temporary_fd,
						      "opening %s in the workspace", own) :
					  0;
}

int stage_writer_end(struct stage_writer *writer)
{
	char own[STAGE_OWN_BYTES];
	int result = 0;

	if (writer->temporary_fd >= 0) {
		stage_own_name(writer->kept, own);
		if (unlinkat(writer->kept->workspace_fd, own, AT_REMOVEDIR) < 0 && errno != ENOENT)
			result = -errno;
		else
			stage_pending_remove(writer->kept->fd);
	}
	stage_undo_log_close(&writer->log);
	fd_close(&writer->temporary_fd);
	fd_close(&writer->pending_fd);
	free(writer->parent);
	free(writer->opened);
	writer->parent = writer->opened = NULL;
	return result;
}

/* ---- one item ---- */

/* What is no matter of one path ends the work. */
static bool is_for_all(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -EROFS || code == -EIO ||
	       code == -ENOMEM;
}

int stage_writer_fail(struct stage_item *item, int code)
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

/* Not a capability: it would go with a content that is the task's. */
static bool is_kept_attribute(const char *name)
{
	return strcmp(name, "system.posix_acl_access") == 0 ||
	       (strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0);
}

/* The ACL and attributes of the host's file stay where another content takes its place. */
static int keep_attributes(struct stage_writer *writer, const struct stage_item *item, int to)
{
	int CLEANUP_FD from = -1;

	if (item->before.type != STAGE_FILE)
		return 0;
	from = stage_open_path(writer->kept->workspace_fd, item->path, O_PATH);
	/* one that is gone by now is a conflict soon */
	return from < 0 ? 0 : stage_copy_attributes(from, to, is_kept_attribute);
}

static int make_file(struct stage_writer *writer, const struct stage_item *item)
{
	int CLEANUP_FD from = item->merged ? stage_merge_open(writer->kept, item) :
					     open_source(writer->kept->upper_fd, item);
	int CLEANUP_FD to = -1;
	struct timespec times[2];
	struct stat status;
	int result;

	if (from < 0 || fstat(from, &status) < 0)
		return from < 0 ? from : -errno;
	to = openat(writer->temporary_fd, STAGE_OWN_NEW,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	result = content_copy(from, to, status.st_size);
	times[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	times[1] = status.st_mtim;
	if (result == 0)
		result = keep_attributes(writer, item, to);
	/* without set-id and sticky bits; of an ACL it is the mask */
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
	return symlinkat(target, writer->temporary_fd, STAGE_OWN_NEW) < 0 ? -errno : 0;
}

static int make_new(struct stage_writer *writer, const struct stage_item *item)
{
	switch (item->after.type) {
	case STAGE_FILE:
		return make_file(writer, item);
	case STAGE_LINK:
		return make_link(writer, item);
	default:
		return mkdirat(writer->temporary_fd, STAGE_OWN_NEW, 0700) < 0 ? -errno : 0;
	}
}

/* Where an object of ours stands by now; false: the host was at it. */
static bool is_placed(int parent_fd, const char *name, const struct stat *made,
		      struct stat *ret_placed)
{
	return fstatat(parent_fd, name, ret_placed, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ret_placed->st_dev == made->st_dev && ret_placed->st_ino == made->st_ino;
}

/* What is done by now, and the time that says whether the host changes it later. */
static int done(struct stage_writer *writer, uint64_t number, int parent_fd, const char *name,
		const struct stat *made)
{
	struct stat placed;
	bool is = made && is_placed(parent_fd, name, made, &placed);

	return stage_undo_log_done(&writer->log, number, is ? &placed : NULL);
}

/* What was taken out of its place. What has no content and cannot be kept goes. */
static int let_go(struct stage_writer *writer, uint64_t number, const char *name,
		  const struct stat *status)
{
	int result = S_ISDIR(status->st_mode) || !number ?
			     -EXDEV :
			     stage_undo_keep(writer->log.directory_fd, number, writer->temporary_fd,
					     name);

	return result == -EXDEV ? stage_remove_any(writer->temporary_fd, name) : result;
}

/* The host has its object again, with another time: that is no change of the host's. */
static void note_return(struct stage_writer *writer, const struct stage_item *item, uint64_t number,
			int parent_fd, const char *name)
{
	struct stat status;

	/* without that word the next apply shows a conflict */
	if (number && fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    stage_is_judged(item, &status))
		(void)stage_undo_log_undone(&writer->log, number, &status);
}

static int note(struct stage_writer *writer, const struct stage_item *item, uint64_t number,
		uint64_t new_inode)
{
	const struct stage_pending pending = { .path = item->path,
					       .way = STAGE_WAY_APPLY,
					       .number = number,
					       .new_inode = new_inode,
					       .judged = *item };

	return stage_pending_note(writer->pending_fd, &pending);
}

/* -ESTALE: the host was quicker, and has what it had. */
static int replace(struct stage_writer *writer, const struct stage_item *item, uint64_t number,
		   const struct stat *made, int parent_fd, const char *name)
{
	struct stat replaced;
	int result = note(writer, item, number, made->st_ino);

	if (result == 0)
		result = stage_exchange(writer->temporary_fd, STAGE_OWN_NEW, parent_fd, name);
	if (result < 0)
		return result;
	if (fstatat(writer->temporary_fd, STAGE_OWN_NEW, &replaced, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = stage_is_judged(item, &replaced) ?
			 let_go(writer, number, STAGE_OWN_NEW, &replaced) :
			 -ESTALE;
	if (result == 0)
		return 0;
	/* a directory with something in it comes back, too, and what there is no room to keep */
	if (stage_exchange(writer->temporary_fd, STAGE_OWN_NEW, parent_fd, name) < 0)
		return -EIO;
	note_return(writer, item, number, parent_fd, name);
	return result;
}

/* It is made; what becomes of it is on the log before it takes its place. */
static int put(struct stage_writer *writer, const struct stage_item *item)
{
	const char *name;
	int CLEANUP_FD parent_fd =
		stage_open_parent(writer->kept->workspace_fd, item->path, writer->parent, &name);
	uint64_t number = 0;
	struct stat made;
	int result;

	if (parent_fd < 0)
		return parent_fd;
	if (fstatat(writer->temporary_fd, STAGE_OWN_NEW, &made, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = stage_undo_log_begin(&writer->log, item, &made, &number);
	if (result < 0)
		return result;
	result = item->before.type == STAGE_NONE ?
			 fd_rename_free(writer->temporary_fd, STAGE_OWN_NEW, parent_fd, name) :
			 replace(writer, item, number, &made, parent_fd, name);
	return result < 0 ? result : done(writer, number, parent_fd, name, &made);
}

int stage_writer_put(struct stage_writer *writer, struct stage_item *item)
{
	int result = make_new(writer, item);

	if (result == 0)
		result = put(writer, item);
	if (result < 0 && result != -EIO) {
		/* what failed is ours; the journal goes last */
		int removed = stage_remove_any(writer->temporary_fd, STAGE_OWN_NEW);

		result = removed < 0 ? removed : result;
	}
	if (result != -EIO && stage_pending_forget(writer->pending_fd) < 0)
		result = -EIO;
	if (result < 0)
		return stage_writer_fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}

static int move_away(struct stage_writer *writer, const struct stage_item *item, uint64_t number,
		     int parent_fd, const char *name)
{
	struct stat removed;
	int result = note(writer, item, number, 0);

	if (result == 0)
		result = fd_rename_free(parent_fd, name, writer->temporary_fd, STAGE_OWN_OLD);
	if (result < 0)
		return result;
	if (fstatat(writer->temporary_fd, STAGE_OWN_OLD, &removed, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = stage_is_judged(item, &removed) ? let_go(writer, number, STAGE_OWN_OLD, &removed) :
						   -ESTALE;
	if (result == 0)
		return 0;
	if (fd_rename_free(writer->temporary_fd, STAGE_OWN_OLD, parent_fd, name) < 0)
		return -EIO;
	note_return(writer, item, number, parent_fd, name);
	return result;
}

int stage_writer_remove(struct stage_writer *writer, struct stage_item *item)
{
	const char *name;
	int CLEANUP_FD parent_fd =
		stage_open_parent(writer->kept->workspace_fd, item->path, writer->parent, &name);
	uint64_t number = 0;
	int result = parent_fd;

	if (result >= 0)
		result = stage_undo_log_begin(&writer->log, item, NULL, &number);
	if (result >= 0 && item->before.type == STAGE_DIRECTORY)
		result = unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	else if (result >= 0)
		result = move_away(writer, item, number, parent_fd, name);
	if (result >= 0)
		result = done(writer, number, parent_fd, name, NULL);
	if (result != -EIO && stage_pending_forget(writer->pending_fd) < 0)
		result = -EIO;
	if (result < 0)
		return stage_writer_fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}

int stage_writer_set_mode(struct stage_writer *writer, struct stage_item *item)
{
	int CLEANUP_FD fd = stage_open_path(writer->kept->workspace_fd, item->path, O_PATH);
	mode_t kept = item->after.type == STAGE_DIRECTORY ? 01777 : 0777;
	struct stat status;
	uint64_t number = 0;
	int result = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;

	/* of one that was made here the judgement knows nothing */
	if (result == 0 && item->kind == STAGE_MODE && !stage_is_judged(item, &status))
		result = -ESTALE;
	if (result == 0 && (item->after.type == STAGE_DIRECTORY ? !S_ISDIR(status.st_mode) :
								  !S_ISREG(status.st_mode)))
		result = -ESTALE;
	if (result == 0 && item->kind == STAGE_MODE)
		result = stage_undo_log_begin(&writer->log, item, &status, &number);
	if (result == 0)
		result = fd_set_mode(fd, item->after.mode & kept);
	if (result == 0)
		result = fstat(fd, &status) < 0 ?
				 -errno :
				 stage_undo_log_done(&writer->log, number, &status);
	if (result < 0)
		return stage_writer_fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}
