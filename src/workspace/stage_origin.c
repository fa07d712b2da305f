#include "workspace/stage_origin.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/codec.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ORIGIN "user.overlay.origin"

#define VERSION 1u
/* What STAGE_ORIGIN_LIMIT_BYTES has room for. */
#define LIMIT_PATHS (STAGE_ORIGIN_LIMIT_BYTES / 8)

bool stage_origin_is_marked(const struct stage_change *change)
{
	char path[PATH_MAX];

	if (change->kind != STAGE_CREATED || change->after_fd < 0 ||
	    (change->after.type != STAGE_FILE && change->after.type != STAGE_DIRECTORY))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", change->after_fd, change->name);
	return lgetxattr(path, ORIGIN, NULL, 0) >= 0;
}

/* user.* is for whoever may write to the file, which its owner may not need to. */
int stage_mark_origin(int fd)
{
	struct stat status;
	char path[32];
	int result;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (getxattr(path, ORIGIN, NULL, 0) >= 0 || setxattr(path, ORIGIN, "", 0, 0) == 0)
		return 0;
	if (errno != EACCES || fstat(fd, &status) < 0 ||
	    fd_set_mode(fd, (status.st_mode & 07777) | S_IWUSR) < 0)
		return errno == ENOSPC ? -errno : 0;
	result = setxattr(path, ORIGIN, "", 0, 0) < 0 && errno == ENOSPC ? -errno : 0;
	(void)fd_set_mode(fd, status.st_mode & 07777);
	return result;
}

struct notes {
	struct buffer paths;
	uint32_t count;
};

static int take(void *context, const struct stage_change *change)
{
	struct notes *notes = context;

	if (!stage_origin_is_marked(change))
		return 0;
	codec_put_string(&notes->paths, change->path);
	notes->count++;
	return notes->paths.length > STAGE_ORIGIN_LIMIT_BYTES ? -E2BIG : 0;
}

int stage_origin_note(int task_fd, int upper_fd, int workspace_fd)
{
	struct notes notes = { 0 };
	const struct stage stage = { .upper_fd = upper_fd,
				     .lower_fd = workspace_fd,
				     .is_names_only = true,
				     .take = take,
				     .context = &notes };
	struct buffer CLEANUP_BUFFER head = { 0 };
	struct error ignored = ERROR_NONE;
	int CLEANUP_FD fd = -1;
	int result = stage_walk(&stage, &ignored);

	codec_put_u32(&head, VERSION);
	codec_put_u32(&head, notes.count);
	if (result == 0 && (head.failed || notes.paths.failed))
		result = -ENOMEM;
	if (result == 0) {
		fd = fd_open_own(task_fd, PLAN_STAGE_RENAMED, O_WRONLY | O_TRUNC);
		result = fd < 0 ? fd : fd_write_all(fd, head.data, head.length);
	}
	if (result == 0 && notes.paths.length)
		result = fd_write_all(fd, notes.paths.data, notes.paths.length);
	buffer_free(&notes.paths);
	return result;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

int stage_origin_load(int task_fd, struct arena *arena, struct stage_origins *ret_origins)
{
	int CLEANUP_FD fd =
		openat(task_fd, PLAN_STAGE_RENAMED, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct codec_cursor cursor;
	const char **paths;
	struct stat status;
	ssize_t length;
	size_t count;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > 2 * (off_t)STAGE_ORIGIN_LIMIT_BYTES)
		return -ENOENT;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -ENOMEM;
	if (length < 0)
		return (int)length;
	codec_begin(&cursor, bytes, (size_t)length, arena);
	if (codec_u32(&cursor) != VERSION)
		codec_fail(&cursor, -EBADMSG);
	count = codec_count(&cursor, LIMIT_PATHS, 4);
	paths = codec_array(&cursor, count + 1, sizeof(*paths));
	for (size_t i = 0; paths && i < count; i++)
		paths[i] = codec_string(&cursor, STAGE_LIMIT_PATH_BYTES);
	/* torn: nothing can be told */
	if (codec_end(&cursor) < 0 || !paths)
		return -ENOENT;
	qsort(paths, count, sizeof(*paths), by_text);
	*ret_origins = (struct stage_origins){ .paths = paths, .count = count };
	return 0;
}

bool stage_origin_is_renamed(const struct stage_origins *origins, const char *path)
{
	return origins->count &&
	       bsearch(&path, origins->paths, origins->count, sizeof(*origins->paths), by_text);
}
