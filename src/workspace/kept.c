#include "workspace/kept.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/fd.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int kept_open(int state_fd, const char *folder)
{
	int fd;

	if (mkdirat(state_fd, folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(state_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

char *kept_read(int folder_fd, const char *name, size_t limit_bytes, struct arena *arena,
		size_t *ret_length)
{
	int CLEANUP_FD fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid() || status.st_size > (off_t)limit_bytes)
		return NULL;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!bytes || fd_read_all(fd, bytes, (size_t)status.st_size) != status.st_size)
		return NULL;
	*ret_length = (size_t)status.st_size;
	return bytes;
}

static void remove_others(int folder_fd, const char *name, unsigned others)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *entry;

	(void)directory_open(&directory, folder_fd, ".", 0);
	while ((entry = directory_next(&directory))) {
		if (entry[0] == '.' || strcmp(entry, name) == 0)
			continue;
		if (others)
			others--;
		else
			(void)unlinkat(folder_fd, entry, 0);
	}
}

void kept_write(int folder_fd, const char *name, const void *bytes, size_t length, unsigned others)
{
	char draft[SHA256_HEX_BYTES + 16];
	int CLEANUP_FD fd = -1;

	remove_others(folder_fd, name, others);
	(void)snprintf(draft, sizeof(draft), "%s.%d", name, (int)getpid());
	fd = openat(folder_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (fd_write_all(fd, bytes, length) < 0 || renameat(folder_fd, draft, folder_fd, name) < 0)
		(void)unlinkat(folder_fd, draft, 0);
}
