#include "workspace/mirror.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 16u

void mirror_begin(struct mirror *mirror, int fd)
{
	*mirror = (struct mirror){ .fd = fd };
}

/*
 * Permissions last: a change of the owner takes some away. What is so already is left alone, and
 * with it the change time.
 */
static int give_state(const struct mirror *mirror, int fd, const struct stat *wanted)
{
	const struct timespec times[2] = { wanted->st_atim, wanted->st_mtim };
	struct stat now;

	if (mirror->gives_owners && fchown(fd, wanted->st_uid, wanted->st_gid) < 0)
		return -errno;
	if (fstat(fd, &now) < 0)
		return -errno;
	if (now.st_mode != wanted->st_mode && fchmod(fd, wanted->st_mode & 07777) < 0)
		return -errno;
	if (now.st_mtim.tv_sec == wanted->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == wanted->st_mtim.tv_nsec)
		return 0;
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* One that is closed by its mode is no way to the one above: that is taken first. */
static int go_up(struct mirror *mirror)
{
	const struct mirror_level *level = &mirror->levels[mirror->at];
	int CLEANUP_FD left = mirror->fd;
	int result = 0;

	mirror->fd = mirror->at ? openat(left, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (mirror->at && mirror->fd < 0)
		return -errno;
	if (level->is_made)
		result = give_state(mirror, left, &level->status);
	if (mirror->at)
		mirror->at--;
	return result;
}

static int make_room(struct mirror *mirror, unsigned depth)
{
	size_t room = mirror->room ? mirror->room * 2 : FIRST_ROOM;
	struct mirror_level *levels;

	if (depth < mirror->room)
		return 0;
	levels = reallocarray(mirror->levels, room, sizeof(*levels));
	if (!levels)
		return -ENOMEM;
	mirror->levels = levels;
	mirror->room = room;
	return 0;
}

int mirror_enter(struct mirror *mirror, unsigned depth, const char *name, const struct stat *status)
{
	int result = make_room(mirror, depth);

	while (result == 0 && depth && mirror->at >= depth)
		result = go_up(mirror);
	if (result < 0)
		return result;
	/* what mirror_path() put behind it is none of it */
	mirror->path.length = depth ? mirror->levels[depth - 1].end : 0;
	if (mirror->path.length)
		buffer_byte(&mirror->path, '/');
	if (depth)
		buffer_text(&mirror->path, name);
	if (mirror->path.failed)
		return -ENOMEM;
	mirror->depth = depth;
	mirror->levels[depth] =
		(struct mirror_level){ .end = mirror->path.length, .status = *status };
	return 0;
}

static int open_below(int fd, const char *name)
{
	return fd_open_beneath(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/* One that an earlier walk has finished is closed as the first tree's may be. */
static int open_up(int fd, const char *name)
{
	int CLEANUP_FD path = fd_open_beneath(fd, name, O_PATH | O_NOFOLLOW);
	struct stat status;

	if (path < 0 || fstat(path, &status) < 0)
		return path < 0 ? path : -errno;
	if (S_ISDIR(status.st_mode))
		return (status.st_mode & S_IRWXU) == S_IRWXU ?
			       0 :
			       fd_set_mode(path, (status.st_mode & 07777) | S_IRWXU);
	return unlinkat(fd, name, 0) < 0 || mkdirat(fd, name, 0700) < 0 ? -errno : 0;
}

static int go_down(struct mirror *mirror, const char *name)
{
	int result = 0, fd;

	if (mkdirat(mirror->fd, name, 0700) < 0)
		result = errno == EEXIST ? open_up(mirror->fd, name) : -errno;
	fd = result < 0 ? result : open_below(mirror->fd, name);
	if (fd < 0)
		return fd;
	fd_close(&mirror->fd);
	mirror->fd = fd;
	mirror->at++;
	return 0;
}

/* The name of the directory at a depth, from the path. */
static int name_at(const struct mirror *mirror, unsigned depth, char name[static NAME_MAX + 1])
{
	size_t from = mirror->levels[depth - 1].end, length;

	from += from > 0;
	length = mirror->levels[depth].end - from;
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, mirror->path.data + from, length);
	name[length] = '\0';
	return 0;
}

int mirror_make(struct mirror *mirror)
{
	char name[NAME_MAX + 1];
	int result = 0;

	while (result == 0 && mirror->at < mirror->depth) {
		result = name_at(mirror, mirror->at + 1, name);
		if (result == 0)
			result = go_down(mirror, name);
		if (result == 0)
			mirror->levels[mirror->at].is_made = true;
	}
	mirror->levels[0].is_made = true;
	return result < 0 ? result : mirror->fd;
}

const char *mirror_path(struct mirror *mirror, const char *name)
{
	mirror->path.length = mirror->levels[mirror->depth].end;
	if (name[0] && mirror->path.length)
		buffer_byte(&mirror->path, '/');
	buffer_append(&mirror->path, name, strlen(name) + 1);
	return mirror->path.failed ? NULL : mirror->path.data;
}

int mirror_finish(struct mirror *mirror)
{
	int result = 0;

	while (result == 0 && mirror->fd >= 0)
		result = go_up(mirror);
	return result;
}

void mirror_end(struct mirror *mirror)
{
	fd_close(&mirror->fd);
	buffer_free(&mirror->path);
	free(mirror->levels);
	*mirror = MIRROR_NONE;
}
