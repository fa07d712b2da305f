/*
 * A hostile pack. The index is made for it, so that the look comes as far as the entries: the first
 * byte says how many there are, each of the next ones how far behind the one before an entry
 * begins. No content has the name that it is given here.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sha1.h"
#include "workspace/git_content.h"

#define COUNT_MOST 16u
#define HEADER_BYTES 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void put(uint8_t **at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		*(*at)++ = (uint8_t)(value >> (24 - 8 * i));
}

static int make_file(const void *bytes, size_t length)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	return fd;
}

static int make_pack(const uint8_t *data, size_t size, uint32_t count)
{
	uint8_t *bytes = calloc(1, HEADER_BYTES + size + SHA1_BYTES), *at = bytes + 8;
	int fd;

	require(bytes);
	memcpy(bytes, "PACK\0\0\0\2", 8);
	put(&at, count);
	if (size)
		memcpy(at, data, size);
	fd = make_file(bytes, HEADER_BYTES + size + SHA1_BYTES);
	free(bytes);
	return fd;
}

static int make_index(const uint8_t *steps, uint32_t count)
{
	static const uint8_t magic[] = { 0xff, 't', 'O', 'c', 0, 0, 0, 2 };
	uint8_t bytes[2048] = { 0 }, *at = bytes + sizeof(magic);
	uint32_t offset = HEADER_BYTES;

	memcpy(bytes, magic, sizeof(magic));
	for (uint32_t i = 0; i < 256; i++)
		put(&at, i < count ? i + 1 : count);
	for (uint32_t i = 0; i < count; i++, at += SHA1_BYTES)
		*at = (uint8_t)i;
	at += 4 * (size_t)count;
	for (uint32_t i = 0; i < count; i++) {
		put(&at, offset);
		offset += steps[i] + 1u;
	}
	/* the pack's checksum is zeros */
	at += SHA1_BYTES;
	sha1(bytes, (size_t)(at - bytes), at);
	return make_file(bytes, (size_t)(at - bytes) + SHA1_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t count = size ? data[0] % COUNT_MOST + 1 : 0;
	struct git_pack *pack = NULL;
	int pack_fd, index_fd;

	if (!count || size < count + 1)
		return 0;
	pack_fd = make_pack(data + 1 + count, size - 1 - count, count);
	index_fd = make_index(data + 1, count);
	if (git_pack_open(pack_fd, index_fd, SHA1_BYTES, &pack) == 0) {
		for (uint32_t i = 0; i < count; i++) {
			uint64_t work_bytes = 1u << 22;
			int fd = memfd_create("fuzz", MFD_CLOEXEC);

			require(git_pack_save(pack, i, fd, &work_bytes) < 0);
			require(work_bytes <= 1u << 22);
			close(fd);
		}
		git_pack_close(pack);
	}
	close(index_fd);
	close(pack_fd);
	return 0;
}
