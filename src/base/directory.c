#include "base/directory.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

void directory_remove_tree(int parent_fd, const char *name)
{
	struct directory stack[DIRECTORY_REMOVE_DEPTH];
	char names[DIRECTORY_REMOVE_DEPTH][NAME_MAX + 1];
	int depth = 0;

	(void)directory_open(&stack[0], parent_fd, name, O_NOFOLLOW);
	while (depth >= 0 && stack[depth].fd >= 0) {
		const char *entry = directory_next(&stack[depth]);
		int here = stack[depth].fd, fd;

		if (!entry) {
			directory_end(&stack[depth]);
			if (--depth >= 0)
				(void)unlinkat(stack[depth].fd, names[depth], AT_REMOVEDIR);
			continue;
		}
		if (unlinkat(here, entry, 0) == 0)
			continue;
		fd = openat(here, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || depth + 1 == DIRECTORY_REMOVE_DEPTH) {
			fd_close(&fd);
			continue;
		}
		(void)snprintf(names[depth], sizeof(names[depth]), "%s", entry);
		directory_begin(&stack[++depth], fd);
	}
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}
