#include "broker/sweeping_file.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "ipc/codec.h"
#include "policy/action.h"
#include "workspace/git_find.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 1u
/* A start keeps some hundred bytes; what was seen of a million files does not fit in. */
#define LIMIT_BYTES (32u * 1024 * 1024)
/* A look through a tree of a million files at the start, on a file system without stamps. */
#define LIMIT_KNOWN 1000000u
#define FEW_KNOWN 1024u

/* Behind it: the body, of which this is the length and the digest. */
struct head {
	uint64_t length;
	unsigned char digest[SHA256_BYTES];
};

static void digest_of(const void *bytes, size_t length, unsigned char ret[static SHA256_BYTES])
{
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, bytes, length);
	sha256_end(&hash, ret);
}

static void put_known(struct buffer *buffer, const struct sweep_known *known, size_t count)
{
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		codec_put_u64(buffer, known[i].device);
		codec_put_u64(buffer, known[i].inode);
		codec_put_u64(buffer, (uint64_t)known[i].changed_ns);
	}
}

static void put_copies(struct buffer *buffer, const struct sweep *sweep)
{
	codec_put_u32(buffer, (uint32_t)sweep->copy_count);
	for (size_t i = 0; i < sweep->copy_count; i++) {
		const struct sweep_copy *copy = &sweep->copies[i];

		codec_put_string(buffer, copy->name);
		codec_put_u32(buffer, copy->is_link);
		codec_put_u32(buffer, copy->mode);
		codec_put_u32(buffer, copy->uid);
		codec_put_u32(buffer, copy->gid);
		codec_put_u64(buffer, (uint64_t)copy->modified_ns);
		codec_put_u32(buffer, (uint32_t)copy->length);
		buffer_append(buffer, copy->bytes, copy->length);
	}
}

static void put_names(struct buffer *buffer, const char *const *names, size_t count)
{
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		codec_put_string(buffer, names[i]);
}

static void put_all(struct buffer *buffer, const struct sweeping_kept *kept)
{
	codec_put_u32(buffer, VERSION);
	codec_put_string(buffer, kept->task);
	codec_put_string(buffer, kept->workspace);
	codec_put_string(buffer, kept->boot);
	codec_put_u32(buffer, kept->sweep.clock);
	codec_put_u64(buffer, (uint64_t)kept->sweep.begin_ns);
	codec_put_u64(buffer, (uint64_t)kept->sweep.wall_offset_ns);
	put_known(buffer, kept->sweep.known, kept->sweep.known_count);
	put_copies(buffer, &kept->sweep);
	put_known(buffer, kept->covered, kept->covered_count);
	put_names(buffer, kept->absent, kept->absent_count);
	put_names(buffer, kept->gits, kept->git_count);
	codec_put_u32(buffer, (uint32_t)kept->link_count);
	for (size_t i = 0; i < kept->link_count; i++)
		codec_put_string(buffer, kept->links[i].path);
}

void sweeping_file_boot(char ret_boot[static SWEEPING_BOOT_BYTES])
{
	(void)snprintf(ret_boot, SWEEPING_BOOT_BYTES, "%s", clock_boot_id());
}

int sweeping_file_write(int task_fd, const struct sweeping_kept *kept)
{
	struct arena CLEANUP_ARENA arena = { .first_bytes = ARENA_SMALL_BYTES };
	/* most starts have little to keep; an arena is no place for a text that grows long */
	bool is_short = kept->sweep.known_count <= FEW_KNOWN;
	struct buffer CLEANUP_BUFFER buffer = { .arena = is_short ? &arena : NULL };
	int CLEANUP_FD fd = fd_open_own(task_fd, SWEEPING_FILE, O_WRONLY);
	struct head head = { 0 };
	int result = -EFBIG;

	if (fd < 0)
		return fd;
	buffer_append(&buffer, &head, sizeof(head));
	put_all(&buffer, kept);
	if (!buffer.failed && buffer.length - sizeof(head) <= LIMIT_BYTES) {
		head.length = buffer.length - sizeof(head);
		digest_of(buffer.data + sizeof(head), head.length, head.digest);
		memcpy(buffer.data, &head, sizeof(head));
		result = fd_write_all(fd, buffer.data, buffer.length);
	}
	/* one that is neither empty nor whole takes no room on a full disk */
	return result < 0 && ftruncate(fd, 1) < 0 ? -errno : 0;
}

/* --- reading */

static struct sweep_known *take_known(struct codec_cursor *cursor, size_t *ret_count)
{
	struct sweep_known *known;

	*ret_count = codec_count(cursor, LIMIT_KNOWN, 24);
	known = codec_array(cursor, *ret_count, sizeof(*known));
	for (size_t i = 0; known && i < *ret_count; i++) {
		known[i].device = codec_u64(cursor);
		known[i].inode = codec_u64(cursor);
		known[i].changed_ns = (int64_t)codec_u64(cursor);
	}
	return known;
}

/* With a NUL behind it, as a link's text needs. */
static const char *take_bytes(struct codec_cursor *cursor, size_t *ret_length)
{
	const char *bytes;

	*ret_length = codec_count(cursor, SWEEP_LIMIT_COPY_BYTES, 1);
	bytes = arena_copy_bytes(cursor->arena, cursor->at, *ret_length);
	if (!bytes)
		codec_fail(cursor, -ENOMEM);
	else
		cursor->at += *ret_length;
	return bytes;
}

static void take_copies(struct codec_cursor *cursor, struct sweep *sweep)
{
	struct sweep_copy *copies;

	sweep->copy_count = codec_count(cursor, SWEEP_LIMIT_TOP, 4);
	copies = codec_array(cursor, sweep->copy_count, sizeof(*copies));
	sweep->copies = copies;
	for (size_t i = 0; copies && i < sweep->copy_count; i++) {
		copies[i].name = codec_string(cursor, NAME_MAX + 1);
		copies[i].is_link = codec_u32(cursor);
		copies[i].mode = codec_u32(cursor) & 0777;
		copies[i].uid = codec_u32(cursor);
		copies[i].gid = codec_u32(cursor);
		copies[i].modified_ns = (int64_t)codec_u64(cursor);
		copies[i].bytes = take_bytes(cursor, &copies[i].length);
	}
}

static const char **take_names(struct codec_cursor *cursor, size_t *ret_count)
{
	const char **names;

	*ret_count = codec_count(cursor, GIT_FIND_LIMIT, 4);
	names = codec_array(cursor, *ret_count, sizeof(*names));
	for (size_t i = 0; names && i < *ret_count; i++)
		names[i] = codec_string(cursor, PATH_MAX);
	return names;
}

static void take_links(struct codec_cursor *cursor, struct sweeping_kept *kept)
{
	kept->link_count = codec_count(cursor, SWEEP_LIMIT_LINKS, 4);
	kept->links = codec_array(cursor, kept->link_count, sizeof(*kept->links));
	for (size_t i = 0; kept->links && i < kept->link_count; i++)
		kept->links[i].path = codec_string(cursor, PATH_MAX);
}

static int decode(const char *bytes, size_t length, struct arena *arena, struct sweeping_kept *kept)
{
	struct codec_cursor cursor;

	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != VERSION)
		codec_fail(&cursor, -EBADMSG);
	kept->task = codec_string(&cursor, ACTION_ID_BYTES);
	kept->workspace = codec_string(&cursor, PATH_MAX);
	(void)snprintf(kept->boot, sizeof(kept->boot), "%s",
		       codec_string(&cursor, SWEEPING_BOOT_BYTES));
	kept->sweep = SWEEP_NONE;
	kept->sweep.clock = (enum sweep_clock)codec_enum(&cursor, SWEEP_CLOCK_OTHER + 1);
	kept->sweep.begin_ns = (int64_t)codec_u64(&cursor);
	kept->sweep.wall_offset_ns = (int64_t)codec_u64(&cursor);
	kept->sweep.known = take_known(&cursor, &kept->sweep.known_count);
	take_copies(&cursor, &kept->sweep);
	kept->covered = take_known(&cursor, &kept->covered_count);
	kept->absent = take_names(&cursor, &kept->absent_count);
	kept->gits = take_names(&cursor, &kept->git_count);
	take_links(&cursor, kept);
	return codec_end(&cursor);
}

int sweeping_file_read(int task_fd, struct arena *arena, struct sweeping_kept *ret_kept)
{
	int CLEANUP_FD fd =
		openat(task_fd, SWEEPING_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	unsigned char digest[SHA256_BYTES];
	struct head head;
	struct stat status;
	char *bytes;
	ssize_t length;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (S_ISREG(status.st_mode) && status.st_size == 0)
		return -ENOENT;
	if (!S_ISREG(status.st_mode) || fd_read_all(fd, &head, sizeof(head)) != sizeof(head) ||
	    head.length > LIMIT_BYTES)
		return -EBADMSG;
	bytes = arena_allocate(arena, head.length + 1);
	length = bytes ? fd_read_all(fd, bytes, head.length) : -ENOMEM;
	if (length < 0)
		return (int)length;
	digest_of(bytes, (size_t)length, digest);
	if ((size_t)length != head.length || memcmp(digest, head.digest, sizeof(digest)) != 0)
		return -EBADMSG;
	return decode(bytes, head.length, arena, ret_kept);
}
