#include "workspace/sweep_internal.h"

#include "base/clock.h"
#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/sweep_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
/* The process may lose the processor between two looks at clocks; hardly each time. */
#define OFFSET_TRIES 4
/* It did not: three readings take less, also where a call is dear. */
#define OFFSET_CLOSE_NS 4000

int64_t sweep_stamp_ns(const struct stat *status)
{
	return status->st_ctim.tv_sec * SECOND_NS + status->st_ctim.tv_nsec;
}

static int by_object(const void *a, const void *b)
{
	const struct sweep_known *left = a, *right = b;

	if (left->device != right->device)
		return left->device < right->device ? -1 : 1;
	return left->inode < right->inode ? -1 : left->inode > right->inode;
}

void sweep_sort(struct sweep_known *known, size_t count)
{
	if (count)
		qsort(known, count, sizeof(*known), by_object);
}

const struct sweep_known *sweep_find(const struct sweep_known *known, size_t count,
				     const struct stat *status)
{
	const struct sweep_known key = { .device = status->st_dev, .inode = status->st_ino };

	return count ? bsearch(&key, known, count, sizeof(*known), by_object) : NULL;
}

/* File systems on which nobody but this kernel says when a file was changed. */
enum sweep_clock sweep_clock_of(int fd)
{
	static const unsigned long kernels[] = {
		EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC,		 BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,	      F2FS_SUPER_MAGIC,		 OVERLAYFS_SUPER_MAGIC,
		0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */,
	};
	struct statfs status;

	if (fstatfs(fd, &status) < 0)
		return SWEEP_CLOCK_OTHER;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if ((unsigned long)status.f_type == kernels[i])
			return SWEEP_CLOCK_KERNEL;
	return SWEEP_CLOCK_OTHER;
}

static int add_known(struct sweep *sweep, struct arena *arena, struct sweep_known known)
{
	struct sweep_known *items =
		arena_push(arena, sweep->known, sweep->known_count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	sweep->known = items;
	items[sweep->known_count++] = known;
	return 0;
}

static int read_link(int fd, const char *name, struct arena *arena, struct sweep_copy *copy)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(fd, name, text, sizeof(text));

	if (length < 0 || (size_t)length == sizeof(text))
		return -EFBIG;
	copy->bytes = arena_copy_bytes(arena, text, (size_t)length);
	copy->length = (size_t)length;
	return copy->bytes ? 0 : -ENOMEM;
}

static int read_file(int fd, const char *name, const struct stat *status, struct arena *arena,
		     struct sweep_copy *copy)
{
	int CLEANUP_FD file = -1;
	ssize_t length;
	char *bytes;

	if (status->st_size > SWEEP_LIMIT_COPY_BYTES)
		return -EFBIG;
	file = fd_open_beneath(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		return file;
	bytes = arena_allocate(arena, (size_t)status->st_size + 1);
	if (!bytes)
		return -ENOMEM;
	length = fd_read_all(file, bytes, (size_t)status->st_size + 1);
	if (length != status->st_size)
		return length < 0 ? (int)length : -EAGAIN;
	copy->bytes = bytes;
	copy->length = (size_t)length;
	return 0;
}

/* What cannot be copied has no copy: its change is held all the same. */
static int add_copy(struct sweep *sweep, const char *name, const struct stat *status,
		    struct arena *arena)
{
	struct sweep_copy copy = {
		.is_link = S_ISLNK(status->st_mode),
		.mode = status->st_mode & 0777,
		.uid = status->st_uid,
		.gid = status->st_gid,
		.modified_ns = status->st_mtim.tv_sec * SECOND_NS + status->st_mtim.tv_nsec,
	};
	struct sweep_copy *copies;
	int result = copy.is_link ? read_link(sweep->root_fd, name, arena, &copy) :
				    read_file(sweep->root_fd, name, status, arena, &copy);

	if (result < 0)
		return result == -ENOMEM ? result : 0;
	copy.name = arena_copy(arena, name);
	copies = arena_push(arena, sweep->copies, sweep->copy_count, sizeof(*copies));
	if (!copy.name || !copies)
		return -ENOMEM;
	sweep->copies = copies;
	copies[sweep->copy_count++] = copy;
	return 0;
}

static int look_at_top(struct sweep *sweep, struct arena *arena)
{
	struct directory CLEANUP_DIRECTORY directory;
	unsigned count = 0;
	const char *name;
	/* opened already: its mode may keep it from being opened */
	int fd = fcntl(sweep->root_fd, F_DUPFD_CLOEXEC, 3), result = fd < 0 ? -errno : 0;

	/* a duplicate goes on where the other stopped */
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	directory_begin(&directory, fd);
	while (result == 0 && count++ < SWEEP_LIMIT_TOP && (name = directory_next(&directory))) {
		bool is_exact;
		const struct sweep_name *row = sweep_name_find(SWEEP_IN_TREE, name, &is_exact);
		struct stat status;

		if (!row || (row->class > SWEEP_SETTINGS && row->class != SWEEP_FORGE) ||
		    fstatat(sweep->root_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(status.st_mode))
			result = add_known(sweep, arena,
					   (struct sweep_known){ .device = status.st_dev,
								 .inode = status.st_ino });
		else if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))
			result = add_copy(sweep, name, &status, arena);
	}
	return result;
}

static int64_t now_ns(clockid_t clock)
{
	return (int64_t)clock_of_ns(clock);
}

struct sweep_offset sweep_wall_offset(void)
{
	struct sweep_offset best = { .most_ns = INT64_MAX };

	for (int i = 0; i < OFFSET_TRIES && best.most_ns - best.least_ns > OFFSET_CLOSE_NS; i++) {
		int64_t before_ns = now_ns(CLOCK_BOOTTIME);
		int64_t wall_ns = now_ns(CLOCK_REALTIME);
		int64_t after_ns = now_ns(CLOCK_BOOTTIME);

		if (after_ns - before_ns < best.most_ns - best.least_ns)
			best = (struct sweep_offset){ .least_ns = wall_ns - after_ns,
						      .most_ns = wall_ns - before_ns };
	}
	return best;
}

int64_t sweep_booted_ns(void)
{
	return sweep_wall_offset().most_ns;
}

/*
 * What any file is stamped with from now on is not before this. Since Linux 6.13 stamps are finer
 * than a tick where somebody looked at the last one, and none is before one that was given to any
 * file: so a file of ours is stamped.
 */
int64_t sweep_stamp_now_ns(void)
{
	int CLEANUP_FD fd = memfd_create("stamp", MFD_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || fchmod(fd, 0600) < 0 || fstat(fd, &status) < 0)
		return now_ns(CLOCK_REALTIME_COARSE);
	return sweep_stamp_ns(&status);
}

/* All that is judged later, exactly as it is now. */
static int survey(struct sweep *sweep, struct arena *arena, struct error *error)
{
	struct sweeper sweeper = {
		.mode = SWEEP_SURVEY, .arena = arena, .error = error, .store_fd = -1
	};
	int result = sweep_look(&sweeper, fcntl(sweep->root_fd, F_DUPFD_CLOEXEC, 3));

	if (result == 0 && sweeper.result.unfinished)
		return error_set(error, EIO, "the workspace: %s", sweeper.result.unfinished);
	sweep->known = sweeper.result.seen;
	sweep->known_count = sweeper.result.seen_count;
	return result;
}

/* What was there before, as far as it is to be known. */
static int find_known(struct sweep *sweep, const struct sweep_start *start, struct arena *arena,
		      struct error *error)
{
	int result = 0;

	sweep->clock = start->clock == SWEEP_CLOCK_OTHER ? SWEEP_CLOCK_OTHER :
							   sweep_clock_of(sweep->root_fd);
	if (sweep->clock == SWEEP_CLOCK_OTHER)
		result = survey(sweep, arena, error);
	else
		for (size_t i = 0; i < start->seen_count && result == 0; i++)
			result = add_known(sweep, arena, start->seen[i]);
	if (result == 0)
		result = look_at_top(sweep, arena);
	sweep_sort(sweep->known, sweep->known_count);
	return result;
}

/* One that its owner, the caller, may not list is opened up for that moment. */
int sweep_open_root(const char *path)
{
	int CLEANUP_FD name = -1;
	struct stat status;
	int fd = fd_open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	if (fd != -EACCES)
		return fd;
	name = fd_open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (name < 0 || fstat(name, &status) < 0 || status.st_uid != geteuid() ||
	    fd_set_mode(name, (status.st_mode & 07777) | S_IRWXU) < 0)
		return -EACCES;
	fd = fd_open_resolved(name, ".", O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	(void)fd_set_mode(name, status.st_mode & 07777);
	return fd;
}

int sweep_begin(const struct sweep_start *start, struct arena *arena, struct sweep *ret_sweep,
		struct error *error)
{
	struct sweep CLEANUP_SWEEP sweep = SWEEP_NONE;
	int result;

	sweep.root_fd = sweep_open_root(start->workspace);
	result = sweep.root_fd < 0 ? sweep.root_fd : find_known(&sweep, start, arena, error);
	if (result < 0)
		return error->code ?
			       error->code :
			       error_errno(error, result, "the workspace %s", start->workspace);
	/* first, so that a clock that is set back between the two is seen at the end */
	sweep.wall_offset_ns = sweep_wall_offset().most_ns;
	sweep.begin_ns = sweep_stamp_now_ns();
	*ret_sweep = sweep;
	sweep.root_fd = -1;
	return 0;
}

void sweep_close(struct sweep *sweep)
{
	fd_close(&sweep->root_fd);
}
