#include "trace/spare.h"

#include "base/fd.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIRECTORY "spares"
#define PATH_BYTES (sizeof(DIRECTORY) + 11)

static void path_of(unsigned number, char ret_path[static PATH_BYTES])
{
	(void)snprintf(ret_path, PATH_BYTES, DIRECTORY "/%u", number);
}

/* What was made here and not used, nor is anybody's else. */
static bool is_fresh(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
	       status.st_nlink == 1 && status.st_uid == getauxval(AT_EUID) &&
	       (status.st_mode & 07777) == 0600;
}

static int rename_one(const struct trace_store *store, const char *name)
{
	for (unsigned i = 0; i < SPARE_COUNT; i++) {
		char spare[PATH_BYTES];

		path_of(i, spare);
		if (syscall(SYS_renameat2, store->fd, spare, store->tasks_fd, name,
			    RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != ENOENT)
			return -errno;
	}
	return -ENOENT;
}

static int open_renamed(const struct trace_store *store, const char *name)
{
	int CLEANUP_FD fd = openat(store->tasks_fd, name,
				   O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && is_fresh(fd))
		return TAKE_FD(fd);
	/* none of ours, whatever it is: no chain begins in it */
	return unlinkat(store->tasks_fd, name, 0) < 0 ? -errno : -ENOENT;
}

int spare_take(const struct trace_store *store, const char *name)
{
	int result = rename_one(store, name);
	int fd = result == 0 ? open_renamed(store, name) : result;

	/* the name is taken, or there is no spare that could be had, for whatever reason */
	if (fd >= 0 || fd == -EEXIST)
		return fd;
	fd = openat(store->tasks_fd, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

void spare_make(const struct trace_store *store)
{
	int CLEANUP_FD directory_fd = trace_store_below(store, DIRECTORY);

	for (unsigned i = 0; directory_fd >= 0 && i < SPARE_COUNT; i++) {
		char path[PATH_BYTES];
		int CLEANUP_FD fd = -1;

		path_of(i, path);
		fd = openat(store->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0 || errno != EEXIST)
			return;
	}
}
