#include "base/content.h"

#include <errno.h>
#include <linux/fs.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BLOCK_BYTES 65536

static int copy_piece(int from_fd, int to_fd, off_t at, off_t end, uint64_t *left_bytes)
{
	char block[BLOCK_BYTES];

	while (at < end) {
		size_t want = end - at < BLOCK_BYTES ? (size_t)(end - at) : BLOCK_BYTES;
		ssize_t length = pread(from_fd, block, want, at), written;

		if (length < 0)
			return -errno;
		/* it became shorter: what is left is a hole */
		if (length == 0)
			return 0;
		if ((uint64_t)length > *left_bytes)
			return -EFBIG;
		*left_bytes -= (uint64_t)length;
		written = pwrite(to_fd, block, (size_t)length, at);
		if (written < 0)
			return -errno;
		at += written;
	}
	return 0;
}

int content_copy_within(int from_fd, int to_fd, off_t size_bytes, uint64_t *left_bytes)
{
	off_t at = 0;

	if (size_bytes && ioctl(to_fd, FICLONE, from_fd) == 0)
		return 1;
	while (at < size_bytes) {
		off_t data = lseek(from_fd, at, SEEK_DATA), hole;
		int result;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0) {
			data = at;
			hole = size_bytes;
		}
		result = copy_piece(from_fd, to_fd, data, hole < size_bytes ? hole : size_bytes,
				    left_bytes);
		if (result < 0)
			return result;
		at = hole;
	}
	return ftruncate(to_fd, size_bytes) < 0 ? -errno : 0;
}

int content_copy(int from_fd, int to_fd, off_t size_bytes)
{
	uint64_t left_bytes = UINT64_MAX;
	int result = content_copy_within(from_fd, to_fd, size_bytes, &left_bytes);

	return result < 0 ? result : 0;
}
