#include "workspace/git_object.h"

#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_BYTES 32
#define INDEX_END ".idx"
#define PROMISOR_END ".promisor"
/* gitformat-pack(5), version 2: a magic, the version, 256 sums, then the ids in their order */
#define SUMS_AT 8
#define IDS_AT (SUMS_AT + 256 * 4)
/* Ids that are looked at together. */
#define MARK_STEP 4096u

static const unsigned char magic[SUMS_AT] = { 0xff, 't', 'O', 'c', 0, 0, 0, 2 };

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), size = strlen(end);

	return length > size && strcmp(name + length - size, end) == 0;
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
		if (ends_with(name, INDEX_END))
			add_pack(objects, directory.fd, name);
		else if (ends_with(name, PROMISOR_END))
			objects->is_partly_known = true; /* a server has the rest */
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

void git_object_path(const unsigned char *id, size_t id_bytes,
		     char path[static GIT_OBJECT_PATH_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;

	for (size_t i = 0; i < id_bytes && i < ID_BYTES; i++) {
		path[at++] = digits[id[i] >> 4];
		path[at++] = digits[id[i] & 15];
		if (!i)
			path[at++] = '/';
	}
	path[at] = '\0';
}

bool git_object_id(const char *path, size_t id_bytes, unsigned char *ret_id)
{
	char digits[2 * ID_BYTES + 1];
	size_t length = strlen(path);

	if (id_bytes > ID_BYTES || length != 2 * id_bytes + 1 || path[2] != '/')
		return false;
	digits[0] = path[0];
	digits[1] = path[1];
	memcpy(digits + 2, path + 3, length - 2);
	if (strspn(digits, "0123456789abcdef") != 2 * id_bytes)
		return false;
	for (size_t i = 0; i < id_bytes; i++)
		ret_id[i] =
			(unsigned char)(value_of(digits[2 * i]) << 4 | value_of(digits[2 * i + 1]));
	return true;
}

static bool is_loose(const struct git_objects *objects, const unsigned char *id)
{
	char path[GIT_OBJECT_PATH_BYTES];
	struct stat status;

	git_object_path(id, objects->id_bytes, path);
	return fstatat(objects->fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool git_objects_has(const struct git_objects *objects, const unsigned char *id)
{
	if (objects->fd < 0 || objects->id_bytes > ID_BYTES)
		return false;
	if (is_loose(objects, id))
		return true;
	for (size_t i = 0; i < objects->count; i++)
		if (is_in_pack(objects->packs[i], id, objects->id_bytes))
			return true;
	return false;
}

/* Both sorted: one walk through each piece of the pack's ids. */
static int mark_pack(int fd, const unsigned char *ids, size_t count, size_t id_bytes,
		     bool *is_there)
{
	unsigned char *found = malloc(MARK_STEP * id_bytes);
	uint64_t left = 0, offset = IDS_AT;
	size_t at = 0;
	bool is_whole = found && take_sum(fd, 255, &left);

	while (is_whole && left && at < count) {
		size_t step = left < MARK_STEP ? (size_t)left : MARK_STEP;

		is_whole = pread(fd, found, step * id_bytes, (off_t)offset) ==
			   (ssize_t)(step * id_bytes);
		for (size_t i = 0; is_whole && i < step && at < count;) {
			int order = memcmp(ids + at * id_bytes, found + i * id_bytes, id_bytes);

			if (order == 0)
				is_there[at] = true;
			at += order <= 0;
			i += order >= 0;
		}
		offset += step * id_bytes;
		left -= step;
	}
	free(found);
	return found ? 0 : -ENOMEM;
}

int git_objects_mark(const struct git_objects *objects, const unsigned char *ids, size_t count,
		     bool *is_there)
{
	int result = 0;

	if (objects->fd < 0 || objects->id_bytes > ID_BYTES)
		return 0;
	for (size_t i = 0; result == 0 && i < objects->count; i++)
		result = mark_pack(objects->packs[i], ids, count, objects->id_bytes, is_there);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (!is_there[i])
			is_there[i] = is_loose(objects, ids + i * objects->id_bytes);
	return result;
}

bool git_objects_may_have(const struct git_objects *objects, const char *id)
{
	char path[GIT_OBJECT_PATH_BYTES];
	unsigned char bytes[ID_BYTES];

	if (objects->fd < 0 || objects->is_partly_known || objects->id_bytes > sizeof(bytes) ||
	    strlen(id) != 2 * objects->id_bytes)
		return true;
	(void)snprintf(path, sizeof(path), "%.2s/%s", id, id + 2);
	return !git_object_id(path, objects->id_bytes, bytes) || git_objects_has(objects, bytes);
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
