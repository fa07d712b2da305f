#include "workspace/stage_copy.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/walk.h"
#include "plan/plan.h"
#include "workspace/mirror.h"
#include "workspace/stage_copy_internal.h"
#include "workspace/stage_origin.h"
#include "workspace/tree_picture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One layer: of the workspace, or of a git directory in it. */
struct settling {
	struct tree_picture *picture;
	struct walk walk;
	struct mirror mirror; /* the layer */
	uint32_t *folders;    /* by depth: what stood at that path before, or TREE_NONE */
	size_t room;
	bool is_touched; /* the walk's directory, or one that was not there */
	const struct stage_part *parts;
	size_t part_count;
};

static int64_t nanoseconds(struct timespec at)
{
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static uint32_t folder_of(const struct settling *settling)
{
	return settling->folders[settling->walk.depth];
}

static uint32_t entry_of(const struct settling *settling, uint32_t folder, const char *name)
{
	return folder == TREE_NONE ? TREE_NONE : tree_picture_find(settling->picture, folder, name);
}

/* What the directory was that stood there; it may be another one now. */
static uint32_t folder_at(const struct settling *settling, uint32_t entry)
{
	struct tree_picture *picture = settling->picture;

	return entry == TREE_NONE || !S_ISDIR(picture->entries[entry].mode) ?
		       TREE_NONE :
		       tree_picture_by_inode(picture, picture->folders[0].device,
					     picture->entries[entry].inode);
}

static bool is_as_it_was(const struct settling *settling, uint32_t entry, const struct stat *status)
{
	const struct tree_entry now = { .inode = status->st_ino,
					.size = (uint64_t)status->st_size,
					.changed_ns = nanoseconds(status->st_ctim),
					.modified_ns = nanoseconds(status->st_mtim),
					.mode = status->st_mode };

	return entry != TREE_NONE && tree_entry_is_same(&settling->picture->entries[entry], &now);
}

/* A git directory has a layer of its own, and cannot be moved: it is pinned. */
static bool is_part(struct settling *settling, const char *name)
{
	const char *path;

	if (!settling->part_count)
		return false;
	path = mirror_path(&settling->mirror, name);
	for (size_t i = 0; path && i < settling->part_count; i++)
		if (strcmp(settling->parts[i].below, path) == 0)
			return true;
	return false;
}

static int remove_name(int fd, const char *name)
{
	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	directory_remove_tree(fd, name);
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : -ENOTEMPTY;
}

/* As an overlay marks what it copied up, by which is told what the host removed since. */
static int mark_origin(int fd, const char *name, uint32_t entry, mode_t mode)
{
	int CLEANUP_FD file = -1;

	if (entry == TREE_NONE || (!S_ISREG(mode) && !S_ISDIR(mode)))
		return 0;
	file = fd_open_beneath(fd, name, O_PATH | O_NOFOLLOW);
	return file < 0 ? file : stage_mark_origin(file);
}

/* What an earlier look has put there stays, and with it the time at which it came. */
static int put_object(struct settling *settling, const struct stat *status, uint32_t entry)
{
	const char *name = settling->walk.name;
	int fd = mirror_make(&settling->mirror), result;
	struct stat there;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
		if (there.st_ino == status->st_ino && there.st_dev == status->st_dev)
			return 0;
		result = remove_name(fd, name);
		if (result < 0)
			return result;
	}
	/* it went meanwhile */
	if (linkat(settling->walk.fd, name, fd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	/* without the mark it is told as new where the host removed it since, and that is all */
	(void)mark_origin(fd, name, entry, status->st_mode);
	return 0;
}

static int put_whiteout(struct settling *settling, const char *name)
{
	int fd = mirror_make(&settling->mirror), result;
	struct stat there;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(there.st_mode) &&
	    there.st_rdev == 0)
		return 0;
	result = remove_name(fd, name);
	/* mknod(2): nobody needs a right for this one (Linux 5.8) */
	return result < 0 ? result : mknodat(fd, name, S_IFCHR, 0) < 0 ? -errno : 0;
}

/* ---- one directory ---- */

static int look_at_name(struct settling *settling)
{
	struct walk *walk = &settling->walk;
	uint32_t entry = entry_of(settling, folder_of(settling), walk->name);
	struct stat status;

	if (is_part(settling, walk->name))
		return 0;
	if (fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(status.st_mode))
		return is_as_it_was(settling, entry, &status) ?
			       0 :
			       put_object(settling, &status, entry);
	/* one that is closed and always was has nothing in it, and the walk would open it up */
	if (!is_as_it_was(settling, entry, &status))
		walk_descend(walk, false);
	else if ((status.st_mode & (S_IRUSR | S_IXUSR)) == (S_IRUSR | S_IXUSR))
		walk_descend(walk, true);
	return 0;
}

/* Names that stood there and do not any more. */
static int look_for_removed(struct settling *settling)
{
	struct tree_picture *picture = settling->picture;
	uint32_t folder = folder_of(settling);
	int result = 0;

	if (folder == TREE_NONE)
		return 0;
	for (uint32_t i = 0; result == 0 && i < picture->folders[folder].count; i++) {
		uint32_t entry = picture->folders[folder].first + i;
		const char *name = tree_text(picture, picture->entries[entry].name);

		if (faccessat(settling->walk.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno == ENOENT && !is_part(settling, name))
			result = put_whiteout(settling, name);
	}
	return result;
}

/* True where what an earlier look put into the layer is nothing of it any more. */
static bool is_over(const struct settling *settling, const char *name)
{
	uint32_t entry = entry_of(settling, folder_of(settling), name);
	struct stat status;

	if (fstatat(settling->walk.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return entry == TREE_NONE;
	return !S_ISDIR(status.st_mode) && is_as_it_was(settling, entry, &status);
}

static int drop_old(struct settling *settling)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0, fd = mirror_make(&settling->mirror);

	if (fd < 0)
		return fd;
	(void)directory_open(&directory, fd, ".", 0);
	while (result == 0 && (name = directory_next(&directory)))
		if (is_over(settling, name))
			result = remove_name(fd, name);
	return result < 0 ? result : directory.code;
}

/* The walk's tag says whether it is as it was; the top is looked at here. */
static int enter(struct settling *settling, uint32_t top)
{
	struct walk *walk = &settling->walk;
	uint32_t folder = top;
	struct stat status;
	int result;

	if (walk->depth >= settling->room) {
		size_t room = settling->room ? settling->room * 2 : 16;
		uint32_t *folders = reallocarray(settling->folders, room, sizeof(*folders));

		if (!folders)
			return -ENOMEM;
		settling->folders = folders;
		settling->room = room;
	}
	if (fstat(walk->fd, &status) < 0)
		return -errno;
	if (walk->depth) {
		folder = folder_at(settling, entry_of(settling, settling->folders[walk->depth - 1],
						      walk->name));
		settling->is_touched = !walk->tag;
	} else {
		settling->is_touched = folder == TREE_NONE ||
				       nanoseconds(status.st_ctim) !=
					       settling->picture->folders[folder].changed_ns;
	}
	settling->folders[walk->depth] = folder;
	result = mirror_enter(&settling->mirror, walk->depth, walk->name, &status);
	if (result == 0 && settling->is_touched) {
		result = mirror_make(&settling->mirror);
		if (result >= 0 && walk->depth && folder != TREE_NONE)
			result = stage_mark_origin(result);
	}
	return result < 0 ? result : 0;
}

/* By the names that come, before those that went: `is_touched` is the walk's directory's. */
static int step(struct settling *settling, enum walk_event event, uint32_t top)
{
	int result = 0;

	if (event == WALK_ENTER)
		return enter(settling, top);
	if (event == WALK_NAME)
		return look_at_name(settling);
	if (event != WALK_LISTED || !settling->is_touched)
		return 0;
	result = look_for_removed(settling);
	return result < 0 ? result : drop_old(settling);
}

static int settle_layer(struct settling *settling, int fd, int upper_fd, uint32_t top)
{
	enum walk_event event;
	int result = 0;

	if (fd < 0 || upper_fd < 0) {
		result = fd < 0 ? fd : upper_fd;
		fd_close(&fd);
		fd_close(&upper_fd);
		return result;
	}
	walk_begin(&settling->walk, fd, 0);
	mirror_begin(&settling->mirror, upper_fd);
	while (result == 0 && (event = walk_next(&settling->walk)) != WALK_END)
		result = step(settling, event, top);
	if (result == 0)
		result = settling->walk.code;
	if (result == 0)
		result = mirror_finish(&settling->mirror);
	walk_end(&settling->walk);
	mirror_end(&settling->mirror);
	free(settling->folders);
	return result;
}

/* ---- all of them ---- */

/* The directory of a path that was pinned, and what it was before. */
static uint32_t folder_of_path(struct tree_picture *picture, const char *path)
{
	const struct settling lookup = { .picture = picture };
	uint32_t folder = 0;
	char name[NAME_MAX + 1];

	while (*path && folder != TREE_NONE) {
		size_t length = strcspn(path, "/");

		if (length > NAME_MAX)
			return TREE_NONE;
		memcpy(name, path, length);
		name[length] = '\0';
		folder = folder_at(&lookup, entry_of(&lookup, folder, name));
		path += length + (path[length] == '/');
	}
	return folder;
}

static int open_directory(int fd, const char *path)
{
	int opened = fd_open_beneath(fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

	return opened == -ENOENT ? -ESTALE : opened;
}

static int settle_part(int task_fd, int copy_fd, struct tree_picture *picture,
		       const struct stage_part *part)
{
	struct settling settling = { .picture = picture };
	char upper[sizeof(PLAN_GIT_LAYERS) + 24];

	(void)snprintf(upper, sizeof(upper), PLAN_GIT_LAYERS "/%u/upper", part->layer);
	return settle_layer(&settling, open_directory(copy_fd, part->below),
			    open_directory(task_fd, upper), folder_of_path(picture, part->below));
}

/* layers_fd: what the copy lies in, and its own layer. */
static int settle_all(int task_fd, int layers_fd, int copy_fd, struct tree_picture *picture,
		      const struct stage_part *parts, size_t count)
{
	struct settling settling = { .picture = picture, .parts = parts, .part_count = count };
	int result = settle_layer(&settling, open_directory(copy_fd, "."),
				  open_directory(layers_fd, "upper"), 0);

	for (size_t i = 0; result == 0 && i < count; i++)
		result = settle_part(task_fd, copy_fd, picture, &parts[i]);
	return result;
}

static int load_picture(int layers_fd, struct tree_picture *ret_picture)
{
	int CLEANUP_FD fd = openat(layers_fd, PLAN_STAGE_SEEN, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int result = fd < 0 ? -errno : tree_picture_load(fd, ret_picture);

	return result == 0 && !ret_picture->folder_count ? -EBADMSG : result;
}

/* 0 also where nothing of the task has run: what the copy was like is kept before. */
static int settle_copy(int task_fd, int layers_fd, int copy_fd)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct stage_part *parts = NULL;
	struct tree_picture picture = { 0 };
	size_t count = 0;
	int result = load_picture(layers_fd, &picture);

	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = stage_copy_parts(layers_fd, &arena, &parts, &count);
	if (result == 0)
		result = settle_all(task_fd, layers_fd, copy_fd, &picture, parts, count);
	tree_picture_free(&picture);
	return result;
}

static int settle(int task_fd, const char *layers, enum stage_settle_moment moment)
{
	int CLEANUP_FD layers_fd = open_directory(task_fd, layers);
	int CLEANUP_FD copy_fd = layers_fd < 0 ? layers_fd :
						 open_directory(layers_fd, PLAN_STAGE_COPY);
	int result;

	/* it has none */
	if (copy_fd == -ESTALE)
		return 0;
	result = copy_fd < 0 ? copy_fd : settle_copy(task_fd, layers_fd, copy_fd);
	if (result < 0 || moment != STAGE_SETTLE_LAST)
		return result;
	directory_remove_tree(layers_fd, PLAN_STAGE_COPY);
	(void)unlinkat(layers_fd, PLAN_STAGE_SEEN, 0);
	(void)unlinkat(layers_fd, PLAN_STAGE_PARTS, 0);
	return 0;
}

int stage_settle(int task_fd, enum stage_settle_moment moment, struct error *error)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = settle(task_fd, PLAN_STAGE_LAYERS, moment);

	(void)directory_open(&directory, task_fd, PLAN_GIT_LAYERS, O_NOFOLLOW);
	while (result == 0 && (name = directory_next(&directory))) {
		char layers[sizeof(PLAN_GIT_LAYERS) + NAME_MAX + 1];

		(void)snprintf(layers, sizeof(layers), PLAN_GIT_LAYERS "/%s", name);
		if (directory.type == DT_DIR)
			result = settle(task_fd, layers, moment);
	}
	return result < 0 ? error_errno(error, result,
					"telling what the task changed in the copy of its "
					"workspace") :
			    0;
}
