#include "trace/spare.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_BYTES 16

static void name_of(unsigned number, char ret_name[static NAME_BYTES])
{
	(void)snprintf(ret_name, NAME_BYTES, "spare-%u", number);
}

/* What was made here and not used, nor is anybody's else. */
static bool is_fresh(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
	       status.st_nlink == 1 && status.st_uid == getauxval(AT_EUID) &&
	       (status.st_mode & 07777) == 0600;
}

static int rename_one(int directory_fd, const char *name)
{
	for (unsigned i = 0; i < SPARE_COUNT; i++) {
		char spare[NAME_BYTES];

		name_of(i, spare);
		if (syscall(SYS_renameat2, directory_fd, spare, directory_fd, name,
			    RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != ENOENT)
			return -errno;
	}
	return -ENOENT;
}

int spare_take(int directory_fd, const char *name)
{
	int CLEANUP_FD fd = -1;
	int result = rename_one(directory_fd, name);

	if (result < 0)
		return result;
	fd = openat(directory_fd, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && is_fresh(fd))
		return TAKE_FD(fd);
	/* none of ours, whatever it is: a chain does not begin in it */
	return unlinkat(directory_fd, name, 0) < 0 ? -errno : -ENOENT;
}

void spare_make(int directory_fd)
{
	for (unsigned i = 0; i < SPARE_COUNT; i++) {
		char spare[NAME_BYTES];
		int fd;

		name_of(i, spare);
		fd = openat(directory_fd, spare,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		fd_close(&fd);
		return;
	}
}
