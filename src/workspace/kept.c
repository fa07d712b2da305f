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

void kept_hash_file(struct sha256 *hash, const struct stat *status)
{
	const uint64_t facts[] = {
		status->st_dev,
		status->st_ino,
		(uint64_t)status->st_size,
		(uint64_t)status->st_ctim.tv_sec,
		(uint64_t)status->st_ctim.tv_nsec,
		(uint64_t)status->st_mtim.tv_sec,
		(uint64_t)status->st_mtim.tv_nsec,
	};

	sha256_update(hash, facts, sizeof(facts));
}

int kept_open(int state_fd, const char *folder)
{
	int made = mkdirat(state_fd, folder, 0700) < 0 ? -errno : 0, fd;
	struct stat status;

	if (made < 0 && made != -EEXIST && faccessat(state_fd, folder, F_OK, 0) < 0)
		return made;
	fd = openat(state_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* whoever may look into what holds it may look into it */
	if (made == 0 && fstat(state_fd, &status) == 0)
		(void)fchmod(fd, 0700 | (status.st_mode & 0055));
	return fd;
}

char *kept_read(int folder_fd, const char *name, size_t limit_bytes, struct arena *arena,
		size_t *ret_length)
{
	int CLEANUP_FD fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status, folder;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0 || fstat(folder_fd, &folder) < 0 ||
	    !S_ISREG(status.st_mode) || status.st_uid != folder.st_uid ||
	    ((status.st_mode | folder.st_mode) & 0022) || status.st_size > (off_t)limit_bytes)
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

static bool is_own(int folder_fd, struct stat *ret_status)
{
	return fstat(folder_fd, ret_status) == 0 && ret_status->st_uid == geteuid();
}

void kept_write(int folder_fd, const char *name, const void *bytes, size_t length, unsigned others)
{
	char draft[SHA256_HEX_BYTES + 16];
	int CLEANUP_FD fd = -1;
	struct stat folder;

	if (!is_own(folder_fd, &folder))
		return;
	remove_others(folder_fd, name, others);
	(void)snprintf(draft, sizeof(draft), "%s.%d", name, (int)getpid());
	fd = openat(folder_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (fchmod(fd, 0600 | (folder.st_mode & 0044)) < 0 || fd_write_all(fd, bytes, length) < 0 ||
	    renameat(folder_fd, draft, folder_fd, name) < 0)
		(void)unlinkat(folder_fd, draft, 0);
}

bool kept_link(int folder_fd, const char *name, const char *other)
{
	struct stat folder;

	if (!is_own(folder_fd, &folder))
		return false;
	/* what is there is of no use, or it would have been taken */
	(void)unlinkat(folder_fd, other, 0);
	return linkat(folder_fd, name, folder_fd, other, 0) == 0;
}
