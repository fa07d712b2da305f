#include "broker/growth.h"

#include "base/directory.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/usage.h"
#include "plan/plan.h"
#include "policy/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Removed files that are still open: a program has a few. */
#define OPEN_LIMIT 512

struct walk {
	const struct growth *growth;
	uint64_t device; /* of the place: other file systems are places of their own */
	uint64_t bytes, files, entries;
	bool truncated;
	const struct usage *usage; /* the task's processes; NULL: not known */
	struct identity {
		uint64_t device, inode;
	} open[OPEN_LIMIT];
	size_t open_count;
};

static void add_place(struct growth *growth, const char *path)
{
	struct growth_place *place = &growth->places[growth->count];
	struct statvfs room;
	struct stat status;

	if (growth->count == GROWTH_LIMIT_PLACES)
		return;
	place->fd = fd_open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (place->fd < 0)
		return;
	if (fstatvfs(place->fd, &room) < 0 || fstat(place->fd, &status) < 0) {
		fd_close(&place->fd);
		return;
	}
	place->device = status.st_dev;
	place->free_bytes = (uint64_t)room.f_bfree * room.f_frsize;
	place->free_files = room.f_ffree;
	growth->count++;
}

void growth_begin(struct growth *growth, const struct view *view, const struct plan *plan)
{
	*growth = (struct growth){ 0 };
	/* the call itself, as in base/clock.c */
	(void)syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &growth->started);
	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		const char *path = row->class == PATH_WRITE ? row->source :
				   row->class == PATH_CACHE ? row->upper :
							      NULL;

		if (path && row->kind == PATH_KIND_DIRECTORY)
			add_place(growth, path);
	}
	/* not what the kernel keeps beside them, which nobody may enter */
	for (size_t i = 0; i < plan->count; i++) {
		char path[PATH_LIMIT_BYTES];

		if (plan->ops[i].kind == PLAN_DUPLICATE)
			add_place(growth, plan->ops[i].target);
		if (plan->ops[i].kind == PLAN_LAYERS &&
		    snprintf(path, sizeof(path), "%s/upper", plan->ops[i].target) <
			    (int)sizeof(path))
			add_place(growth, path);
	}
}

void growth_end(struct growth *growth)
{
	for (size_t i = 0; i < growth->count; i++)
		fd_close(&growth->places[i].fd);
	growth->count = 0;
}

/* Of each file system once. */
static void lost(const struct growth *growth, uint64_t *ret_bytes, uint64_t *ret_files)
{
	*ret_bytes = *ret_files = 0;
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_place *place = &growth->places[i];
		struct statvfs room;
		uint64_t free_bytes;
		bool known = false;

		for (size_t j = 0; j < i; j++)
			known = known || growth->places[j].device == place->device;
		if (known || fstatvfs(place->fd, &room) < 0)
			continue;
		free_bytes = (uint64_t)room.f_bfree * room.f_frsize;
		if (free_bytes < place->free_bytes)
			*ret_bytes += place->free_bytes - free_bytes;
		if (room.f_ffree < place->free_files)
			*ret_files += place->free_files - room.f_ffree;
	}
}

static bool is_since(const struct growth *growth, const struct stat *status)
{
	return status->st_ctim.tv_sec > growth->started.tv_sec ||
	       (status->st_ctim.tv_sec == growth->started.tv_sec &&
		status->st_ctim.tv_nsec >= growth->started.tv_nsec);
}

static void count_one(struct walk *walk, const struct stat *status)
{
	if (!is_since(walk->growth, status))
		return;
	walk->files++;
	/* a file with several names counts once, as far as it can be told */
	walk->bytes +=
		(uint64_t)status->st_blocks * 512u / (status->st_nlink ? status->st_nlink : 1);
}

static void walk_place(struct walk *walk, int place_fd)
{
	struct directory stack[GROWTH_LIMIT_DEPTH];
	int depth = 0;

	(void)directory_open(&stack[0], place_fd, ".", O_NOFOLLOW);
	while (depth >= 0) {
		const char *name = directory_next(&stack[depth]);
		struct stat status;
		int fd;

		if (!name) {
			directory_end(&stack[depth--]);
			continue;
		}
		if (++walk->entries > GROWTH_LIMIT_ENTRIES) {
			walk->truncated = true;
			for (; depth >= 0; depth--)
				directory_end(&stack[depth]);
			return;
		}
		if (fstatat(stack[depth].fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    status.st_dev != walk->device)
			continue;
		count_one(walk, &status);
		if (!S_ISDIR(status.st_mode))
			continue;
		fd = openat(stack[depth].fd, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		/* what the task closed to us may hold anything */
		if ((fd < 0 && errno == EACCES) || depth + 1 == GROWTH_LIMIT_DEPTH) {
			walk->truncated = true;
			fd_close(&fd);
		} else if (fd >= 0) {
			directory_begin(&stack[++depth], fd);
		}
	}
}

/* An open file counts once, however many descriptors lead to it. */
static bool is_new(struct walk *walk, const struct stat *status)
{
	for (size_t i = 0; i < walk->open_count; i++)
		if (walk->open[i].device == status->st_dev && walk->open[i].inode == status->st_ino)
			return false;
	if (walk->open_count == OPEN_LIMIT) {
		walk->truncated = true;
		return false;
	}
	walk->open[walk->open_count++] =
		(struct identity){ .device = status->st_dev, .inode = status->st_ino };
	return true;
}

static bool is_of_place(const struct growth *growth, uint64_t device)
{
	for (size_t i = 0; i < growth->count; i++)
		if (growth->places[i].device == device)
			return true;
	return false;
}

/* Files that were removed while the process has them open. */
static void count_open(void *context, const struct usage_process *process)
{
	struct walk *walk = context;
	struct directory CLEANUP_DIRECTORY directory;
	char path[32];
	const char *name;
	int result;

	(void)snprintf(path, sizeof(path), "%d/fd", process->pid);
	result = directory_open(&directory, walk->usage->proc_fd, path, 0);
	if (result < 0 && result != -ENOENT && result != -ESRCH)
		walk->truncated = true;
	while (!walk->truncated && (name = directory_next(&directory))) {
		struct stat status;

		if (fstatat(directory.fd, name, &status, 0) < 0 || !S_ISREG(status.st_mode) ||
		    status.st_nlink || !is_of_place(walk->growth, status.st_dev) ||
		    !is_new(walk, &status))
			continue;
		walk->files++;
		walk->bytes += (uint64_t)status.st_blocks * 512u;
	}
}

/* What the last walk counted stands until much more is lost; but too much is looked at anew. */
static bool is_worth(uint64_t loss, uint64_t limit, uint64_t last_loss, uint64_t counted)
{
	return loss >= limit && (counted >= limit || loss >= last_loss + limit / 16);
}

void growth_look(struct growth *growth, const struct usage *usage, uint64_t limit_bytes,
		 uint64_t limit_files, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct walk walk = { .growth = growth, .usage = usage };
	uint64_t bytes, files;

	lost(growth, &bytes, &files);
	/* room that came back since the last walk can be taken again without being walked */
	if (bytes < growth->lost_bytes)
		growth->lost_bytes = bytes;
	if (files < growth->lost_files)
		growth->lost_files = files;
	if (!is_worth(bytes, limit_bytes, growth->lost_bytes, growth->bytes) &&
	    !is_worth(files, limit_files, growth->lost_files, growth->files)) {
		/* no more can have been added than is lost */
		*ret_bytes = bytes < limit_bytes ? bytes : growth->bytes;
		*ret_files = files < limit_files ? files : growth->files;
		return;
	}
	for (size_t i = 0; i < growth->count && !walk.truncated; i++) {
		walk.device = growth->places[i].device;
		walk_place(&walk, growth->places[i].fd);
	}
	if (usage)
		usage_each(usage, count_open, &walk);
	growth->lost_bytes = bytes;
	growth->lost_files = files;
	growth->bytes = walk.truncated || walk.bytes > bytes ? bytes : walk.bytes;
	growth->files = walk.truncated || walk.files > files ? files : walk.files;
	*ret_bytes = growth->bytes;
	*ret_files = growth->files;
}
