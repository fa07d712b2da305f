#include "base/walk.h"

#include "base/arena.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum state { STATE_BEGIN, STATE_LISTING, STATE_PENDING, STATE_LEAVING, STATE_END };

/* Behind each pending name and its NUL: its length (two bytes) and its tag. */
#define TRAILER_BYTES 3u

static struct walk_level *top(const struct walk *walk)
{
	return &walk->levels[walk->depth];
}

void walk_begin(struct walk *walk, int fd, unsigned char tag)
{
	*walk = (struct walk){ .fd = fd,
			       .parent_fd = -1,
			       .name = "",
			       .tag = tag,
			       .limit_names = WALK_LIMIT_NAMES,
			       .uid = geteuid(),
			       .state = STATE_BEGIN };
}

static enum walk_event stop(struct walk *walk, int code)
{
	walk->code = code;
	walk->state = STATE_END;
	return WALK_END;
}

static bool is_first(const struct walk *walk)
{
	return walk->levels == walk->first_levels;
}

static int make_room(struct walk *walk, unsigned depth)
{
	size_t room = walk->level_room * 2;
	struct walk_level *levels;

	if (depth >= WALK_LIMIT_DEPTH)
		return -E2BIG;
	if (depth < walk->level_room)
		return 0;
	if (!walk->levels) {
		walk->levels = walk->first_levels;
		walk->level_room = WALK_FIRST;
		return 0;
	}
	levels = reallocarray(is_first(walk) ? NULL : walk->levels, room, sizeof(*levels));
	if (!levels)
		return -ENOMEM;
	if (is_first(walk))
		memcpy(levels, walk->first_levels, sizeof(walk->first_levels));
	walk->levels = levels;
	walk->level_room = room;
	return 0;
}

/* The directory's names are next. It stays the level's, not the listing's. */
static enum walk_event list(struct walk *walk)
{
	struct walk_level *level = top(walk);

	directory_begin(&walk->directory, level->fd);
	walk->directories++;
	walk->fd = level->fd;
	walk->tag = level->tag;
	walk->name = walk->depth ? walk->pending.data + level->name : "";
	walk->state = STATE_LISTING;
	return WALK_ENTER;
}

static enum walk_event begin(struct walk *walk)
{
	int fd = walk->fd, result = fd < 0 ? fd : make_room(walk, 0);

	if (result < 0) {
		fd_close(&fd);
		walk->fd = -1;
		return stop(walk, result);
	}
	walk->levels[0] = (struct walk_level){ .fd = fd, .tag = walk->tag };
	return list(walk);
}

static unsigned char type_of(int fd, const char *name)
{
	struct stat status;

	return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN :
								     IFTODT(status.st_mode);
}

static enum walk_event next_name(struct walk *walk)
{
	const char *name;

	while ((name = directory_next(&walk->directory))) {
		if (walk->names++ >= walk->limit_names)
			return stop(walk, -E2BIG);
		walk->type = walk->directory.type;
		if (walk->type == DT_UNKNOWN)
			walk->type = type_of(walk->fd, name);
		if (walk->type == DT_UNKNOWN && walk_unlock(walk))
			walk->type = type_of(walk->fd, name);
		walk->name = name;
		/* it went meanwhile */
		if (walk->type != DT_UNKNOWN)
			return WALK_NAME;
	}
	/* one that was removed after it was opened has nothing in it: getdents(2) */
	walk->unread += walk->directory.code < 0 && walk->directory.code != -ENOENT;
	walk->state = STATE_PENDING;
	return WALK_LISTED;
}

void walk_descend(struct walk *walk, unsigned char tag)
{
	walk_descend_to(walk, walk->name, tag);
}

void walk_descend_to(struct walk *walk, const char *name, unsigned char tag)
{
	size_t length = strlen(name);

	buffer_append(&walk->pending, name, length + 1);
	buffer_byte(&walk->pending, (char)(length & 0xff));
	buffer_byte(&walk->pending, (char)(length >> 8));
	buffer_byte(&walk->pending, (char)tag);
}

void walk_skip(struct walk *walk)
{
	walk->pending.length = top(walk)->base;
}

void walk_again(struct walk *walk, unsigned char tag)
{
	walk_skip(walk);
	directory_rewind(&walk->directory);
	top(walk)->tag = walk->tag = tag;
	walk->state = STATE_LISTING;
}

bool walk_unlock(struct walk *walk)
{
	struct walk_level *level = top(walk);
	struct stat status;

	if (walk->leaves_modes || fstat(walk->fd, &status) < 0 || status.st_uid != walk->uid ||
	    (status.st_mode & S_IRWXU) == S_IRWXU ||
	    fchmod(walk->fd, (status.st_mode & 07777) | S_IRWXU) < 0)
		return false;
	if (!level->is_unlocked)
		level->mode = status.st_mode & 07777;
	level->is_unlocked = true;
	return true;
}

static int open_name(int fd, const char *name)
{
	return fd_open_beneath(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/*
 * Its mode closes it. Who owns it opens it up; a directory of another's that may be searched by
 * who knows the names in it is counted; one that may not is closed to the task as well.
 */
static int open_closed(struct walk *walk, int parent_fd, const char *name, struct walk_level *level)
{
	int CLEANUP_FD fd = fd_open_beneath(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	struct stat status;
	int result;

	if (fd < 0 || fstat(fd, &status) < 0)
		return fd < 0 ? fd : -errno;
	if (status.st_uid != walk->uid || walk->leaves_modes) {
		walk->unread += faccessat(fd, ".", F_OK, 0) == 0;
		return -EACCES;
	}
	level->mode = status.st_mode & 07777;
	result = fd_set_mode(fd, level->mode | S_IRWXU);
	if (result < 0)
		return result;
	level->is_unlocked = true;
	result = open_name(parent_fd, name);
	if (result < 0)
		(void)fd_set_mode(fd, level->mode);
	return result;
}

static int open_child(struct walk *walk, const char *name, struct walk_level *level)
{
	int fd = open_name(walk->fd, name);

	if (fd == -EACCES && walk_unlock(walk))
		fd = open_name(walk->fd, name);
	return fd == -EACCES ? open_closed(walk, walk->fd, name, level) : fd;
}

/* What a name that could not be opened means for the walk: it goes on, or it ends. */
static bool is_end(struct walk *walk, int code)
{
	switch (code) {
	case -ENOENT: /* it went, or is another object by now: whoever made that answers for it */
	case -ENOTDIR:
	case -ELOOP:
	case -EACCES:
		return false;
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return true;
	default:
		walk->unread++;
		return false;
	}
}

/* A descriptor above is given up; what it was is remembered. */
static int give_up(struct walk_level *level)
{
	struct stat status;

	if (fstat(level->fd, &status) < 0)
		return -errno;
	level->device = status.st_dev;
	level->inode = status.st_ino;
	fd_close(&level->fd);
	return 0;
}

/* 0: entered; 1: it is none by now. */
static int enter(struct walk *walk)
{
	size_t length = walk->pending.length;
	const unsigned char *trailer =
		(const unsigned char *)walk->pending.data + length - TRAILER_BYTES;
	size_t bytes = (trailer[0] | (size_t)trailer[1] << 8) + 1;
	struct walk_level level = { .name = length - TRAILER_BYTES - bytes,
				    .base = length,
				    .tag = trailer[2] };
	int result = make_room(walk, walk->depth + 1);

	if (result < 0)
		return result;
	level.fd = open_child(walk, walk->pending.data + level.name, &level);
	if (level.fd < 0) {
		walk->pending.length = level.name;
		return is_end(walk, level.fd) ? level.fd : 1;
	}
	if (walk->depth >= WALK_KEEP)
		result = give_up(top(walk));
	walk->levels[++walk->depth] = level;
	return result;
}

/* The directory above: only the one from which this one was entered. */
static int open_above(struct walk *walk)
{
	struct walk_level *above = &walk->levels[walk->depth - 1];
	struct stat status;

	if (above->fd >= 0)
		return 0;
	above->fd = openat(walk->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above->fd < 0)
		return -errno;
	if (fstat(above->fd, &status) == 0 && status.st_dev == above->device &&
	    status.st_ino == above->inode)
		return 0;
	fd_close(&above->fd);
	return -ESTALE;
}

static enum walk_event leave(struct walk *walk)
{
	struct walk_level *level = top(walk);
	int result = walk->depth ? open_above(walk) : 0;

	if (level->is_unlocked)
		(void)fchmod(walk->fd, level->mode);
	if (result < 0)
		return stop(walk, result);
	walk->parent_fd = walk->depth ? walk->levels[walk->depth - 1].fd : -1;
	walk->name = walk->depth ? walk->pending.data + level->name : "";
	walk->tag = level->tag;
	walk->state = STATE_LEAVING;
	return WALK_LEAVE;
}

static enum walk_event next_pending(struct walk *walk)
{
	int result = walk->pending.failed ? -ENOMEM : 1;

	while (result == 1 && walk->pending.length > top(walk)->base)
		result = enter(walk);
	if (result < 0)
		return stop(walk, result);
	return result == 0 ? list(walk) : leave(walk);
}

static enum walk_event left(struct walk *walk)
{
	struct walk_level *level = top(walk);

	walk->parent_fd = -1;
	if (!walk->depth)
		return stop(walk, 0);
	walk->pending.length = level->name;
	fd_close(&level->fd);
	walk->depth--;
	walk->fd = top(walk)->fd;
	return next_pending(walk);
}

enum walk_event walk_next(struct walk *walk)
{
	switch ((enum state)walk->state) {
	case STATE_BEGIN:
		return begin(walk);
	case STATE_LISTING:
		return next_name(walk);
	case STATE_PENDING:
		return next_pending(walk);
	case STATE_LEAVING:
		return left(walk);
	case STATE_END:
		break;
	}
	return WALK_END;
}

char *walk_path(const struct walk *walk, const char *name, size_t limit_bytes, struct arena *arena)
{
	size_t length = 0, at = 0;
	char *path;

	for (unsigned i = 1; i <= walk->depth; i++)
		length += strlen(walk->pending.data + walk->levels[i].name) + 1;
	length += strlen(name) + 1;
	path = length <= limit_bytes ? arena_allocate(arena, length) : NULL;
	for (unsigned i = 1; path && i <= walk->depth; i++) {
		const char *part = walk->pending.data + walk->levels[i].name;
		size_t bytes = strlen(part);

		memcpy(path + at, part, bytes);
		at += bytes;
		if (i < walk->depth || *name)
			path[at++] = '/';
	}
	if (path)
		memcpy(path + at, name, strlen(name) + 1);
	return path;
}

void walk_end(struct walk *walk)
{
	if (walk->state == STATE_BEGIN)
		fd_close(&walk->fd);
	for (unsigned i = 0; walk->levels && i <= walk->depth; i++) {
		struct walk_level *level = &walk->levels[i];

		/* where it ended early, as far as their descriptors are there */
		if (level->fd >= 0 && level->is_unlocked)
			(void)fchmod(level->fd, level->mode);
		fd_close(&level->fd);
	}
	if (!is_first(walk))
		free(walk->levels);
	walk->levels = NULL;
	buffer_free(&walk->pending);
	walk->fd = -1;
}
