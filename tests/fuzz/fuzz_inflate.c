/*
 * A zlib stream of a hostile file: what is taken for whole has the length that was told piece by
 * piece, and ends within the file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/inflate.h"

#define LIMIT_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static int count(void *context, const unsigned char *bytes, size_t length)
{
	uint64_t *total = context;

	require(bytes && length);
	*total += length;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	uint64_t offset = 0, total = 0;

	if (fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	    inflate_file(fd, &offset, LIMIT_BYTES, count, &total) == 0)
		require(offset <= size && total <= LIMIT_BYTES);
	else
		require(offset == 0);
	close(fd);
	return 0;
}
