#include "workspace/git_object.h"

#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_BYTES 32
#define INDEX_END ".idx"
/* gitformat-pack(5), version 2: a magic, the version, 256 sums, then the ids in their order */
#define SUMS_AT 8
#define IDS_AT (SUMS_AT + 256 * 4)

static const unsigned char magic[SUMS_AT] = { 0xff, 't', 'O', 'c', 0, 0, 0, 2 };

static bool is_index(const char *name)
{
	size_t length = strlen(name), end = strlen(INDEX_END);

	return length > end && strcmp(name + length - end, INDEX_END) == 0;
}

static bool has_magic(int fd)
{
	unsigned char bytes[SUMS_AT];

	return pread(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       memcmp(bytes, magic, sizeof(bytes)) == 0;
}

static void add_pack(struct git_objects *objects, int directory_fd, const char *name)
{
	int CLEANUP_FD fd = fd_open_beneath(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || objects->count == GIT_OBJECT_LIMIT_PACKS || !has_magic(fd))
		objects->is_partly_known = true;
	else
		objects->packs[objects->count++] = TAKE_FD(fd);
}

void git_objects_open(struct git_objects *objects, int directory_fd, size_t id_bytes)
{
	struct directory CLEANUP_DIRECTORY directory;
	struct stat status;
	const char *name;
	int result;

	*objects = GIT_OBJECTS_NONE;
	objects->is_open = true;
	objects->id_bytes = id_bytes;
	objects->fd = fd_open_beneath(directory_fd, "objects", O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (objects->fd < 0)
		return;
	objects->is_partly_known = fstatat(objects->fd, "info/alternates", &status, 0) == 0;
	result = directory_open(&directory, objects->fd, "pack", 0);
	while (result == 0 && (name = directory_next(&directory)))
		if (is_index(name))
			add_pack(objects, directory.fd, name);
}

static unsigned value_of(char digit)
{
	return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)(digit - 'a' + 10);
}

static bool take_sum(int fd, unsigned which, uint64_t *ret_sum)
{
	unsigned char bytes[4];

	if (pread(fd, bytes, sizeof(bytes), SUMS_AT + (off_t)which * 4) != sizeof(bytes))
		return false;
	*ret_sum = (uint64_t)bytes[0] << 24 | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 8 |
		   bytes[3];
	return true;
}

static bool is_in_pack(int fd, const unsigned char *id, size_t id_bytes)
{
	unsigned char found[ID_BYTES];
	uint64_t low = 0, high;

	if ((id[0] && !take_sum(fd, id[0] - 1u, &low)) || !take_sum(fd, id[0], &high))
		return false;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order;

		if (pread(fd, found, id_bytes, IDS_AT + (off_t)(middle * id_bytes)) !=
		    (ssize_t)id_bytes)
			return false;
		order = memcmp(found, id, id_bytes);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool is_loose(const struct git_objects *objects, const char *id)
{
	char path[2 * ID_BYTES + 2];
	struct stat status;

	path[0] = id[0];
	path[1] = id[1];
	path[2] = '/';
	memcpy(path + 3, id + 2, 2 * objects->id_bytes - 1);
	return fstatat(objects->fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool git_objects_may_have(const struct git_objects *objects, const char *id)
{
	unsigned char bytes[ID_BYTES];

	if (objects->fd < 0 || objects->is_partly_known || objects->id_bytes > sizeof(bytes) ||
	    strlen(id) != 2 * objects->id_bytes)
		return true;
	if (is_loose(objects, id))
		return true;
	for (size_t i = 0; i < objects->id_bytes; i++)
		bytes[i] = (unsigned char)(value_of(id[2 * i]) << 4 | value_of(id[2 * i + 1]));
	for (size_t i = 0; i < objects->count; i++)
		if (is_in_pack(objects->packs[i], bytes, objects->id_bytes))
			return true;
	return false;
}

void git_objects_close(struct git_objects *objects)
{
	if (!objects->is_open)
		return;
	for (size_t i = 0; i < objects->count; i++)
		fd_close(&objects->packs[i]);
	fd_close(&objects->fd);
	*objects = GIT_OBJECTS_NONE;
}
