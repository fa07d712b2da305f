/*
 * One step of an apply, taken back: stage_apply_write.c in the other direction. The objects change
 * places by the same exchange, and what came out is held against what the apply put there. A kill
 * leaves the journal of stage_apply_journal.c, by which the next settles it.
 */
#include "workspace/stage_apply_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What one step needs. */
struct undoing {
	struct stage_writer *writer;
	const struct stage_step *step;
	const struct stage_item *item;
	int parent_fd; /* of the path, on the host */
	const char *name;
	char kept[STAGE_UNDO_NAME_BYTES];
	bool is_copied; /* what comes back is a copy of what is kept */
	/* an object lies in our directory that has no place: the journal says whose it is */
	bool is_unsettled;
};

int stage_take_back(const struct stage_kept *kept, int from_fd, const char *name, const char *path,
		    char *parent)
{
	const char *last;
	int CLEANUP_FD fd = stage_open_parent(kept->upper_fd, path, parent, &last);

	return fd < 0 ? fd : stage_move(from_fd, name, fd, last);
}

static int note(const struct undoing *undoing, uint64_t new_inode)
{
	const struct stage_pending pending = { .path = undoing->item->path,
					       .way = STAGE_WAY_UNDO,
					       .number = undoing->step->number,
					       .new_inode = new_inode,
					       .judged = *undoing->item };

	return stage_pending_note(undoing->writer->pending_fd, &pending);
}

/* ---- what was kept ---- */

static int bring_copy(struct undoing *undoing)
{
	struct stage_writer *writer = undoing->writer;
	struct stat status;
	/* until it is whole it is only ours */
	int result = stage_pending_forget(writer->pending_fd);

	if (result == 0)
		result = stage_copy(writer->log.directory_fd, undoing->kept, writer->temporary_fd,
				    STAGE_OWN_NEW);
	if (result == 0 &&
	    fstatat(writer->temporary_fd, STAGE_OWN_NEW, &status, AT_SYMLINK_NOFOLLOW) < 0)
		result = -errno;
	undoing->is_copied = true;
	return result < 0 ? result : note(undoing, status.st_ino);
}

/* To our directory in the workspace, and on the journal. */
static int bring(struct undoing *undoing)
{
	struct stage_writer *writer = undoing->writer;
	struct stat status;
	int result;

	if (fstatat(writer->log.directory_fd, undoing->kept, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = note(undoing, status.st_ino);
	if (result < 0)
		return result;
	if (renameat(writer->log.directory_fd, undoing->kept, writer->temporary_fd,
		     STAGE_OWN_NEW) == 0)
		return 0;
	return errno == EXDEV ? bring_copy(undoing) : -errno;
}

static int set_mode(int directory_fd, const char *name, mode_t mode)
{
	int CLEANUP_FD fd = stage_open_beneath(directory_fd, name, O_PATH | O_NOFOLLOW);

	return fd < 0 ? fd : fd_set_mode(fd, mode);
}

/* Complete before it takes its place; what was in it follows. */
static int make_directory(const struct undoing *undoing)
{
	int own_fd = undoing->writer->temporary_fd;
	struct stat status;
	int result;

	if (mkdirat(own_fd, STAGE_OWN_NEW, 0700) < 0)
		return -errno;
	result = set_mode(own_fd, STAGE_OWN_NEW, undoing->step->before.mode & 01777);
	if (result == 0 && fstatat(own_fd, STAGE_OWN_NEW, &status, AT_SYMLINK_NOFOLLOW) < 0)
		result = -errno;
	return result < 0 ? result : note(undoing, status.st_ino);
}

/* It did not come: it is kept as before. */
static int put_away(const struct undoing *undoing)
{
	struct stage_writer *writer = undoing->writer;

	if (undoing->is_copied || undoing->step->before.type == STAGE_DIRECTORY)
		return stage_remove_any(writer->temporary_fd, STAGE_OWN_NEW);
	if (renameat(writer->temporary_fd, STAGE_OWN_NEW, writer->log.directory_fd, undoing->kept) <
		    0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}

/* ---- what was put there ---- */

/* The stage has it again, a directory of it anyway. */
static int give_to_stage(const struct undoing *undoing, const char *own, const struct stat *status)
{
	struct stage_writer *writer = undoing->writer;

	return S_ISDIR(status->st_mode) ? stage_remove_any(writer->temporary_fd, own) :
					  stage_take_back(writer->kept, writer->temporary_fd, own,
							  undoing->item->path, writer->parent);
}

/* That it is removed is the stage's word again, unless what hides it from above says so. */
static int hide_in_stage(const struct undoing *undoing)
{
	const char *last;
	int CLEANUP_FD fd = stage_open_parent(undoing->writer->kept->upper_fd, undoing->item->path,
					      undoing->writer->parent, &last);

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	return mknodat(fd, last, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno : 0;
}

/* ---- the kinds of steps ---- */

static int undo_creation(struct undoing *undoing)
{
	struct stage_writer *writer = undoing->writer;
	struct stat status;
	int result;

	if (undoing->step->after.type == STAGE_DIRECTORY) {
		if (fstatat(undoing->parent_fd, undoing->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (!stage_is_judged(undoing->item, &status))
			return -ESTALE;
		return unlinkat(undoing->parent_fd, undoing->name, AT_REMOVEDIR) < 0 ? -errno : 0;
	}
	result = note(undoing, 0);
	if (result == 0)
		result = fd_rename_free(undoing->parent_fd, undoing->name, writer->temporary_fd,
					STAGE_OWN_OLD);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (fstatat(writer->temporary_fd, STAGE_OWN_OLD, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = stage_is_judged(undoing->item, &status) ?
			 give_to_stage(undoing, STAGE_OWN_OLD, &status) :
			 -ESTALE;
	if (result < 0)
		undoing->is_unsettled = fd_rename_free(writer->temporary_fd, STAGE_OWN_OLD,
						       undoing->parent_fd, undoing->name) < 0;
	return result;
}

/* Into its place, which is free. */
static int put_back(struct undoing *undoing)
{
	return fd_rename_free(undoing->writer->temporary_fd, STAGE_OWN_NEW, undoing->parent_fd,
			      undoing->name);
}

static int exchange_back(struct undoing *undoing)
{
	struct stage_writer *writer = undoing->writer;
	struct stat out;
	int result = stage_exchange(writer->temporary_fd, STAGE_OWN_NEW, undoing->parent_fd,
				    undoing->name);

	if (result == -ENOENT)
		return put_back(undoing);
	if (result < 0)
		return result;
	if (fstatat(writer->temporary_fd, STAGE_OWN_NEW, &out, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	result = stage_is_judged(undoing->item, &out) ?
			 give_to_stage(undoing, STAGE_OWN_NEW, &out) :
			 -ESTALE;
	if (result < 0)
		undoing->is_unsettled = stage_exchange(writer->temporary_fd, STAGE_OWN_NEW,
						       undoing->parent_fd, undoing->name) < 0;
	return result;
}

static int undo_replacement(struct undoing *undoing)
{
	bool is_removal = undoing->step->after.type == STAGE_NONE;
	int result = undoing->step->before.type == STAGE_DIRECTORY ? make_directory(undoing) :
								     bring(undoing);

	/* first: where the host has nothing it says nothing */
	if (result == 0 && is_removal)
		result = hide_in_stage(undoing);
	if (result == 0)
		result = is_removal ? put_back(undoing) : exchange_back(undoing);
	if (result < 0 && !undoing->is_unsettled)
		undoing->is_unsettled = put_away(undoing) < 0;
	if (result < 0)
		return result;
	if (undoing->is_copied)
		(void)unlinkat(undoing->writer->log.directory_fd, undoing->kept, 0);
	return 0;
}

/* The file that had the mode left the stage with it; a directory is there still. */
static int copy_to_stage(const struct undoing *undoing)
{
	const char *last;
	int CLEANUP_FD fd = stage_open_parent(undoing->writer->kept->upper_fd, undoing->item->path,
					      undoing->writer->parent, &last);

	int result = fd < 0 ? fd : stage_copy(undoing->parent_fd, undoing->name, fd, last);

	return result < 0 ? result : set_mode(fd, last, undoing->step->after.mode);
}

static int undo_mode(struct undoing *undoing)
{
	bool is_directory = undoing->step->after.type == STAGE_DIRECTORY;
	int CLEANUP_FD fd =
		stage_open_beneath(undoing->parent_fd, undoing->name, O_PATH | O_NOFOLLOW);
	struct stat status;
	int result = 0;

	if (fd < 0 || fstat(fd, &status) < 0)
		return fd < 0 ? fd : -errno;
	if (!stage_is_judged(undoing->item, &status))
		return -ESTALE;
	if (!is_directory)
		result = copy_to_stage(undoing);
	/* a set-id bit of the host's file went with the apply, and comes back */
	return result < 0 ? result : fd_set_mode(fd, undoing->step->before.mode);
}

/* What was put there came back to its place, with another time than that of the log. */
static void note_place(struct undoing *undoing)
{
	struct stat status;

	if (undoing->step->kind == STAGE_MODE || undoing->step->after.type == STAGE_NONE ||
	    fstatat(undoing->parent_fd, undoing->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !stage_is_judged(undoing->item, &status))
		return;
	/* without it a later undo takes it for the host's */
	(void)stage_undo_log_done(&undoing->writer->log, undoing->step->number, &status);
}

int stage_writer_undo(struct stage_writer *writer, const struct stage_step *step,
		      struct stage_item *item)
{
	struct undoing undoing = { .writer = writer, .step = step, .item = item };
	int CLEANUP_FD parent_fd = stage_open_parent(writer->kept->workspace_fd, item->path,
						     writer->parent, &undoing.name);
	struct stat status;
	int result = parent_fd;

	undoing.parent_fd = parent_fd;
	stage_undo_name(step->number, undoing.kept);
	if (result >= 0)
		result = step->kind == STAGE_MODE	 ? undo_mode(&undoing) :
			 step->before.type == STAGE_NONE ? undo_creation(&undoing) :
							   undo_replacement(&undoing);
	if (result == 0) {
		bool is = fstatat(parent_fd, undoing.name, &status, AT_SYMLINK_NOFOLLOW) == 0;

		result = stage_undo_log_undone(&writer->log, step->number, is ? &status : NULL);
	}
	if (result < 0 && !undoing.is_unsettled && parent_fd >= 0)
		note_place(&undoing);
	if (undoing.is_unsettled || stage_pending_forget(writer->pending_fd) < 0)
		result = -EIO;
	if (result < 0)
		return stage_writer_fail(item, result);
	item->outcome = STAGE_APPLIED;
	return 0;
}
