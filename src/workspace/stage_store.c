#include "workspace/stage_store.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "ipc/codec.h"
#include "plan/plan.h"
#include "policy/action.h"
#include "policy/view.h"
#include "workspace/stage_internal.h"
#include "workspace/stage_origin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ABOUT_VERSION 1u
#define ABOUT_LIMIT_BYTES (32u * 1024 * 1024)
/* The name of one that is being removed. */
#define GONE ".gone-"

static int64_t file_ns(struct timespec at)
{
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static void put_paths(struct buffer *buffer, const char *const *paths, size_t count)
{
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		codec_put_string(buffer, paths[i]);
}

/* The file's own time is that of the start: no other clock is the one of files. */
int stage_store_begin(int task_fd, const struct stage_about *about, struct error *error)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	int CLEANUP_FD fd = -1;
	struct stat status;
	int result;

	/* a spare directory may have an earlier task's; truncating it stamps it, too */
	fd = fd_open_own(task_fd, PLAN_STAGE_ABOUT, O_WRONLY | O_TRUNC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(error, fd < 0 ? fd : errno, "keeping what the stage is of");
	codec_put_u32(&buffer, ABOUT_VERSION);
	codec_put_string(&buffer, about->workspace);
	codec_put_u64(&buffer, about->device);
	codec_put_u64(&buffer, about->inode);
	codec_put_u64(&buffer,
		      (uint64_t)(about->started_ns ? about->started_ns : file_ns(status.st_ctim)));
	codec_put_u64(&buffer, about->wall_ns);
	put_paths(&buffer, about->hidden, about->hidden_count);
	put_paths(&buffer, about->obeyed, about->obeyed_count);
	/* last: without it, or with another's, all of this is torn, or an earlier task's */
	codec_put_string(&buffer, about->task);
	result = buffer.failed ? -ENOMEM : fd_write_all(fd, buffer.data, buffer.length);
	return result < 0 ? error_errno(error, result, "keeping what the stage is of") : 0;
}

/* Bytes of ours, but a power cut may have torn them. */
static int read_about(int task_fd, struct arena *arena, const char **ret_bytes, size_t *ret_length)
{
	int CLEANUP_FD fd =
		openat(task_fd, PLAN_STAGE_ABOUT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	ssize_t length;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > ABOUT_LIMIT_BYTES)
		return -EBADMSG;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -ENOMEM;
	if (length < 0)
		return (int)length;
	*ret_bytes = bytes;
	*ret_length = (size_t)length;
	return 0;
}

static const char *const *get_paths(struct codec_cursor *cursor, size_t *ret_count)
{
	*ret_count = codec_count(cursor, VIEW_LIMIT_PATHS, 4);
	return codec_strings(cursor, *ret_count, PATH_MAX);
}

int stage_store_read(int task_fd, const char *task, struct arena *arena,
		     struct stage_about *ret_about)
{
	struct stage_about about = { 0 };
	struct codec_cursor cursor;
	const char *bytes = NULL;
	size_t length = 0;
	int result = read_about(task_fd, arena, &bytes, &length);

	if (result < 0)
		return result;
	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != ABOUT_VERSION)
		codec_fail(&cursor, -EBADMSG);
	about.workspace = codec_string(&cursor, PATH_MAX);
	about.device = codec_u64(&cursor);
	about.inode = codec_u64(&cursor);
	about.started_ns = (int64_t)codec_u64(&cursor);
	about.wall_ns = codec_u64(&cursor);
	about.hidden = get_paths(&cursor, &about.hidden_count);
	about.obeyed = get_paths(&cursor, &about.obeyed_count);
	about.task = codec_string(&cursor, ACTION_ID_BYTES);
	result = codec_end(&cursor);
	if (result < 0)
		return result == -ENOMEM ? result : -EBADMSG;
	if (!path_is_clean(about.workspace))
		return -EBADMSG;
	if (strcmp(about.task, task) != 0)
		return -ENOENT;
	*ret_about = about;
	return 0;
}

static bool has_names(int directory_fd, const char *name)
{
	struct directory CLEANUP_DIRECTORY directory;

	int result = directory_open(&directory, directory_fd, name, O_NOFOLLOW);

	/* what cannot be read counts as changed: a task made it so */
	return result < 0 ? result != -ENOENT : directory_next(&directory) || directory.code < 0;
}

bool stage_store_has_git(int task_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	if (directory_open(&directory, task_fd, PLAN_GIT_LAYERS, O_NOFOLLOW) < 0)
		return false;
	while ((name = directory_next(&directory))) {
		char upper[NAME_MAX + sizeof("/upper")];

		(void)snprintf(upper, sizeof(upper), "%s/upper", name);
		if (name[0] >= '0' && name[0] <= '9' && has_names(directory.fd, upper))
			return true;
	}
	return false;
}

bool stage_store_has_changes(int task_fd)
{
	return has_names(task_fd, PLAN_STAGE_LAYERS "/upper") || stage_store_has_git(task_fd);
}

static int open_shelf(int state_fd, const char *shelf, bool makes)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(state_fd, shelf, flags);

	if (fd < 0 && errno == ENOENT && makes) {
		if (mkdirat(state_fd, shelf, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(state_fd, shelf, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* Spools of actions have been handed over, and `work` is the kernel's. */
static void keep_only_layers(int task_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	(void)directory_open(&directory, task_fd, ".", 0);
	while ((name = directory_next(&directory)))
		if (strcmp(name, PLAN_STAGE_ABOUT) != 0 && strcmp(name, PLAN_STAGE_LAYERS) != 0 &&
		    strcmp(name, PLAN_GIT_LAYERS) != 0)
			directory_remove_tree(task_fd, name);
}

static void forget_work(int parent_fd, const char *layers)
{
	int CLEANUP_FD fd =
		openat(parent_fd, layers, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		directory_remove_tree(fd, "work");
}

/* They have mode 000, and whoever removes the state directory by hand would stumble on them. */
static void forget_works(int task_fd)
{
	struct directory CLEANUP_DIRECTORY git;
	const char *name;

	forget_work(task_fd, PLAN_STAGE_LAYERS);
	(void)directory_open(&git, task_fd, PLAN_GIT_LAYERS, 0);
	while ((name = directory_next(&git)))
		forget_work(git.fd, name);
}

/* Where it cannot be noted it cannot be told later, and that is all. */
static void note_origins(int task_fd, const char *workspace)
{
	int CLEANUP_FD upper = openat(task_fd, PLAN_STAGE_LAYERS "/upper",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int CLEANUP_FD lower =
		fd_open_resolved(AT_FDCWD, workspace, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	if (upper >= 0 && lower >= 0)
		(void)stage_origin_note(task_fd, upper, lower);
}

int stage_store_keep(int state_fd, int tasks_fd, int task_fd, const struct stage_about *about)
{
	int CLEANUP_FD stages = open_shelf(state_fd, STAGE_STORE_DIRECTORY, true);

	if (stages < 0)
		return stages;
	keep_only_layers(task_fd);
	forget_works(task_fd);
	note_origins(task_fd, about->workspace);
	return fd_rename_free(tasks_fd, about->task, stages, about->task);
}

static bool is_id(const char *name)
{
	return strncmp(name, "t-", 2) == 0 && strlen(name) < ACTION_ID_BYTES && !strchr(name, '/');
}

static int lock(int fd, enum stage_store_use use)
{
	if (use == STAGE_STORE_PEEK)
		return 0;
	if (flock(fd, (use == STAGE_STORE_LOOK ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* The workspace that it was, or why it is not there. */
static void open_workspace(struct stage_kept *kept)
{
	struct stat status;
	int fd = fd_open_resolved(AT_FDCWD, kept->about.workspace, O_RDONLY | O_DIRECTORY,
				  RESOLVE_NO_SYMLINKS);

	if (fd < 0) {
		kept->missing = strerror(-fd);
		return;
	}
	if (fstat(fd, &status) < 0 || status.st_dev != kept->about.device ||
	    status.st_ino != kept->about.inode) {
		kept->missing = "another directory stands there by now";
		fd_close(&fd);
		return;
	}
	kept->workspace_fd = fd;
}

int stage_store_open(int state_fd, const char *shelf, const char *task, enum stage_store_use use,
		     struct arena *arena, struct stage_kept *ret_kept)
{
	struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;
	int CLEANUP_FD stages = open_shelf(state_fd, shelf, false);
	int result;

	if (stages < 0)
		return stages;
	if (!is_id(task))
		return -ENOENT;
	kept.fd = openat(stages, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (kept.fd < 0)
		return -errno;
	result = lock(kept.fd, use);
	if (result < 0)
		return result;
	result = stage_store_read(kept.fd, task, arena, &kept.about);
	if (result == 0) {
		kept.upper_fd = openat(kept.fd, PLAN_STAGE_LAYERS "/upper",
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		result = kept.upper_fd < 0 ? -EBADMSG : 0;
	}
	if (result == -ENOENT)
		result = -EBADMSG;
	if (result == 0)
		open_workspace(&kept);
	*ret_kept = kept;
	kept = STAGE_KEPT_NONE;
	return result;
}

void stage_store_close(struct stage_kept *kept)
{
	fd_close(&kept->fd);
	fd_close(&kept->upper_fd);
	fd_close(&kept->workspace_fd);
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

int stage_store_list(int state_fd, const char *shelf, struct arena *arena, const char ***ret_tasks,
		     size_t *ret_count)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char **tasks = arena_array(arena, STAGE_STORE_LIMIT, sizeof(*tasks)), *name;
	int fd = open_shelf(state_fd, shelf, false);
	size_t count = 0;

	if (!tasks)
		return -ENOMEM;
	directory_begin(&directory, fd);
	while (count < STAGE_STORE_LIMIT && (name = directory_next(&directory)))
		if (is_id(name))
			tasks[count++] = arena_copy(arena, name);
	if (arena_failed(arena))
		return -ENOMEM;
	if (fd < 0 && fd != -ENOENT)
		return fd;
	if (directory.code < 0)
		return directory.code;
	qsort(tasks, count, sizeof(*tasks), by_text);
	*ret_tasks = tasks;
	*ret_count = count;
	return 0;
}

/* Under another name first, so that no half of one is ever taken for a stage. */
int stage_store_remove(int state_fd, const char *shelf, const char *task)
{
	int CLEANUP_FD stages = open_shelf(state_fd, shelf, false);
	struct directory CLEANUP_DIRECTORY directory;
	char gone[sizeof(GONE) + ACTION_ID_BYTES];
	const char *name;
	int result;

	directory_begin(&directory, -1);
	if (stages < 0)
		return stages;
	(void)snprintf(gone, sizeof(gone), GONE "%s", task);
	result = renameat(stages, task, stages, gone) < 0 ? -errno : 0;
	/* and what earlier ones left */
	(void)directory_open(&directory, stages, ".", 0);
	while ((name = directory_next(&directory)))
		if (strncmp(name, GONE, sizeof(GONE) - 1) == 0)
			directory_remove_tree(stages, name);
	return result;
}

/* ---- what was applied ---- */

/* Unless another process is at it: then it stays. */
static void remove_applied(int state_fd, int applied_fd, const char *task)
{
	int CLEANUP_FD fd =
		openat(applied_fd, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && lock(fd, STAGE_STORE_CHANGE) == 0)
		(void)!stage_store_remove(state_fd, STAGE_STORE_APPLIED, task);
}

/* The one that came here first; a rename sets this time. */
static const char *find_oldest(int applied_fd, const char *const *tasks, size_t count)
{
	const char *oldest = NULL;
	int64_t oldest_ns = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		struct stat status;

		if (fstatat(applied_fd, tasks[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    file_ns(status.st_ctim) < oldest_ns) {
			oldest = tasks[i];
			oldest_ns = file_ns(status.st_ctim);
		}
	}
	return oldest;
}

static void make_room(int state_fd, int applied_fd)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const char **tasks, *oldest;
	size_t count = 0;

	if (stage_store_list(state_fd, STAGE_STORE_APPLIED, &arena, &tasks, &count) < 0)
		return;
	for (size_t more = count; more >= STAGE_STORE_LIMIT_APPLIED; more--) {
		oldest = find_oldest(applied_fd, tasks, count);
		if (oldest)
			remove_applied(state_fd, applied_fd, oldest);
	}
}

int stage_store_retire(int state_fd, const char *task)
{
	int CLEANUP_FD stages = open_shelf(state_fd, STAGE_STORE_DIRECTORY, false);
	int CLEANUP_FD applied = open_shelf(state_fd, STAGE_STORE_APPLIED, true);

	if (stages < 0 || applied < 0)
		return stages < 0 ? stages : applied;
	make_room(state_fd, applied);
	return fd_rename_free(stages, task, applied, task);
}

int stage_store_return(int state_fd, const char *task)
{
	int CLEANUP_FD applied = open_shelf(state_fd, STAGE_STORE_APPLIED, false);
	int CLEANUP_FD stages = open_shelf(state_fd, STAGE_STORE_DIRECTORY, true);

	if (stages < 0 || applied < 0)
		return stages < 0 ? stages : applied;
	return fd_rename_free(applied, task, stages, task);
}
