#include "workspace/stage_look.h"

#include "base/fd.h"
#include "trace/mask.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES 65536u

const char *stage_digest(int fd, uint64_t size, unsigned char ret_digest[static SHA256_BYTES])
{
	unsigned char block[BLOCK_BYTES];
	struct sha256 hash;

	if (size > STAGE_LIMIT_HASH_BYTES)
		return "it is too large";
	sha256_begin(&hash);
	while (size) {
		size_t wanted = size < sizeof(block) ? (size_t)size : sizeof(block);
		ssize_t count = fd_read_all(fd, block, wanted);

		if (count < 0)
			return "it cannot be read";
		if ((size_t)count != wanted)
			return "it changed meanwhile";
		sha256_update(&hash, block, wanted);
		size -= wanted;
	}
	if (fd_read_all(fd, block, 1) != 0)
		return "it changed meanwhile";
	sha256_end(&hash, ret_digest);
	return NULL;
}

const char *stage_hash(const struct stage_change *change, enum stage_which which,
		       char ret_sha256[static SHA256_HEX_BYTES])
{
	const struct stage_side *side = which == STAGE_BEFORE ? &change->before : &change->after;
	int CLEANUP_FD fd = stage_open(change, which);
	unsigned char digest[SHA256_BYTES];
	const char *reason;

	if (fd < 0)
		return fd == -EINVAL ? "it is no file" : "it cannot be read";
	reason = stage_digest(fd, side->size, digest);
	if (!reason)
		sha256_hex(digest, ret_sha256);
	return reason;
}

static int drop(void *context, const void *bytes, size_t length)
{
	(void)context, (void)bytes, (void)length;
	return 0;
}

/*
 * The next bytes that are data; 0 at the end. A hole counts as the NUL that it reads as.
 */
static ssize_t next_data(int fd, char *block, bool *ret_has_hole)
{
	off_t here = lseek(fd, 0, SEEK_CUR), data = lseek(fd, here, SEEK_DATA);

	if (data < 0 && errno == ENXIO) {
		struct stat status;

		*ret_has_hole |= fstat(fd, &status) == 0 && status.st_size > here;
		return 0;
	}
	*ret_has_hole |= data > here;
	/* a file system without holes: from here on */
	if (data < 0 && lseek(fd, here, SEEK_SET) < 0)
		return -errno;
	return fd_read_all(fd, block, BLOCK_BYTES);
}

unsigned stage_look(const struct stage_change *change)
{
	static const unsigned char key[MASK_KEY_BYTES];
	struct mask CLEANUP_MASK mask = MASK_NONE;
	struct mask_stream CLEANUP_MASK_STREAM stream = { 0 };
	int CLEANUP_FD fd = change->after.size ? stage_open(change, STAGE_AFTER) : -1;
	bool has_nul = false, is_whole = false;
	char block[BLOCK_BYTES];
	uint64_t seen = 0;
	int result;

	if (fd < 0)
		return 0;
	mask_begin(&mask, key);
	result = mask_stream_begin(&stream, &mask, drop, NULL);
	while (result == 0 && seen < STAGE_LIMIT_LOOK_BYTES) {
		ssize_t count = next_data(fd, block, &has_nul);

		is_whole = count == 0;
		if (count <= 0)
			break;
		has_nul |= memchr(block, 0, (size_t)count) != NULL;
		result = mask_stream_feed(&stream, block, (size_t)count);
		seen += (uint64_t)count;
	}
	if (result == 0)
		result = mask_stream_finish(&stream);
	return (stream.count ? STAGE_MARK_CREDENTIAL : 0u) | (has_nul ? STAGE_MARK_BINARY : 0u) |
	       (is_whole && result == 0 ? 0u : STAGE_MARK_PARTLY);
}
