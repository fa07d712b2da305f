#include "base/directory.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel writes it (getdents64(2)). */
struct entry {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

void directory_begin(struct directory *directory, int fd)
{
	directory->fd = fd;
	directory->code = 0;
	directory->type = 0;
	directory->offset = 0;
	directory->at = directory->end = 0;
}

int directory_open(struct directory *directory, int parent_fd, const char *name, int flags)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	int result = fd < 0 ? -errno : 0;

	directory_begin(directory, fd);
	return result;
}

static const struct entry *next_entry(struct directory *directory)
{
	const struct entry *entry;

	if (directory->fd < 0 || directory->code < 0)
		return NULL;
	if (directory->at == directory->end) {
		long length = syscall(SYS_getdents64, directory->fd, directory->bytes,
				      sizeof(directory->bytes));

		directory->code = length < 0 ? -errno : 0;
		directory->at = 0;
		directory->end = length > 0 ? (size_t)length : 0;
		if (length <= 0)
			return NULL;
	}
	entry = (const struct entry *)(const void *)(directory->bytes + directory->at);
	directory->at += entry->length;
	return entry;
}

const char *directory_next(struct directory *directory)
{
	const struct entry *entry;

	while ((entry = next_entry(directory))) {
		if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
			continue;
		directory->type = entry->type;
		directory->offset = entry->offset;
		return entry->name;
	}
	return NULL;
}

void directory_seek(struct directory *directory, int64_t offset)
{
	if (directory->fd >= 0)
		(void)lseek(directory->fd, offset, SEEK_SET);
	directory->code = 0;
	directory->offset = offset;
	directory->at = directory->end = 0;
}

void directory_rewind(struct directory *directory)
{
	directory_seek(directory, 0);
}

void directory_end(struct directory *directory)
{
	fd_close(&directory->fd);
}

struct removal {
	struct directory stack[DIRECTORY_REMOVE_DEPTH];
	char names[DIRECTORY_REMOVE_DEPTH][NAME_MAX + 1];
	int depth;
	unsigned lifted; /* directories that were too deep, so far */
	bool again;	 /* there is one of them at the top now */
};

bool directory_let_enter(int parent_fd, const char *name)
{
	struct stat status;

	return fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(status.st_mode) && fchmodat(parent_fd, name, 0700, 0) == 0;
}

/* Makes a directory (and nothing that a link leads to) its owner's to read and to change. */
static int open_to_remove(int parent_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent_fd, name, flags);
	struct stat status;

	if (fd < 0 && errno == EACCES && directory_let_enter(parent_fd, name))
		return openat(parent_fd, name, flags);
	if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	return fd;
}

/* A directory below as many others as are open at once goes to the top, and is removed there. */
static void lift(struct removal *removal, const char *entry)
{
	int here = removal->stack[removal->depth].fd, result;
	char name[32];

	do {
		(void)snprintf(name, sizeof(name), "lifted-%u", removal->lifted++);
		result = (int)syscall(SYS_renameat2, here, entry, removal->stack[0].fd, name,
				      RENAME_NOREPLACE);
	} while (result < 0 && errno == EEXIST);
	removal->again |= result == 0;
}

static void remove_entry(struct removal *removal, const char *entry)
{
	int here = removal->stack[removal->depth].fd;
	int CLEANUP_FD fd = -1;

	if (unlinkat(here, entry, 0) == 0)
		return;
	fd = open_to_remove(here, entry);
	if (fd < 0)
		return;
	if (removal->depth + 1 == DIRECTORY_REMOVE_DEPTH) {
		lift(removal, entry);
		return;
	}
	(void)snprintf(removal->names[removal->depth], NAME_MAX + 1, "%s", entry);
	directory_begin(&removal->stack[++removal->depth], TAKE_FD(fd));
}

/* All that is not too deep. */
static void remove_some(struct removal *removal)
{
	removal->again = false;
	while (removal->depth >= 0) {
		const char *entry = directory_next(&removal->stack[removal->depth]);

		if (entry) {
			remove_entry(removal, entry);
			continue;
		}
		if (removal->depth == 0)
			return;
		directory_end(&removal->stack[removal->depth--]);
		(void)unlinkat(removal->stack[removal->depth].fd, removal->names[removal->depth],
			       AT_REMOVEDIR);
	}
}

void directory_remove_content(int parent_fd, const char *name)
{
	struct removal removal;

	removal.depth = 0;
	removal.lifted = 0;
	directory_begin(&removal.stack[0], open_to_remove(parent_fd, name));
	do {
		directory_rewind(&removal.stack[0]);
		remove_some(&removal);
	} while (removal.again);
	directory_end(&removal.stack[0]);
}

void directory_remove_tree(int parent_fd, const char *name)
{
	directory_remove_content(parent_fd, name);
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}
