#include "broker/spool.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[SPOOL_STREAM_COUNT] = { [SPOOL_OUT] = "out", [SPOOL_ERR] = "err" };
static const char index_name[] = "index";
static const char magic[8] = { 'B', 'A', 'W', 'N', 'S', 'P', 'L', SPOOL_VERSION };

/* More than two streams that came at once and were cut have: a piece, a cut, an end each. */
#define TIMES_RECORDS 7

#define LENGTH_BITS 56
#define LENGTH_MASK ((1ull << LENGTH_BITS) - 1)

static void put_u64(unsigned char *at, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_u64(const unsigned char *at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

/* One component of ASCII letters, digits, '-' and '_' (and '.' behind the first). */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > 255 || name[0] == '.')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'z') ||
		      (name[i] >= 'A' && name[i] <= 'Z') || strchr("-_.", name[i])))
			return false;
	return true;
}

static void close_files(int files[static SPOOL_STREAM_COUNT], int *index)
{
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT; i++)
		fd_close(&files[i]);
	fd_close(index);
}

/* Writes all at the offset, or says how it failed; a part may have been written then. */
static int write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
	const char *at = bytes;

	while (length) {
		ssize_t count = pwrite(fd, at, length, (off_t)offset);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -EIO;
		at += count;
		offset += (uint64_t)count;
		length -= (size_t)count;
	}
	return 0;
}

static int make_file(int directory_fd, const char *name)
{
	struct open_how how = { .flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				.mode = 0600,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, directory_fd, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int make_head(struct spool *spool)
{
	unsigned char head[SPOOL_HEAD_BYTES] = { 0 };

	spool->start_ns = clock_monotonic_ns();
	memcpy(head, magic, sizeof(magic));
	put_u64(head + 8, clock_wall_ns());
	put_u64(head + 16, spool->start_ns);
	spool->index_bytes = sizeof(head);
	return write_at(spool->index, head, sizeof(head), 0);
}

static int make_files(int directory_fd, const char *action, struct spool *spool,
		      struct error *error)
{
	for (unsigned i = 0; i <= SPOOL_STREAM_COUNT; i++) {
		bool is_index = i == SPOOL_STREAM_COUNT;
		const char *name = is_index ? index_name : names[i];
		int fd = make_file(directory_fd, name);

		if (fd < 0)
			return error_errno(error, fd, "making the spool %s/%s", action, name);
		if (is_index)
			spool->index = fd;
		else
			spool->files[i] = fd;
	}
	return 0;
}

/* Makes the directory with its files; nothing of it is left on a failure. */
static int make_place(int task_fd, const char *action, struct spool *spool, struct error *error)
{
	int CLEANUP_FD directory = -1;
	int result;

	if (!is_name(action))
		return error_set(error, EINVAL, "an action's id is no name for its spool");
	if (mkdirat(task_fd, action, 0700) < 0)
		return error_errno(error, errno, "making the spool %s", action);
	directory = fd_open_beneath(task_fd, action, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (directory < 0)
		result = error_errno(error, directory, "opening the spool %s", action);
	else
		result = make_files(directory, action, spool, error);
	if (result == 0)
		return 0;
	/* only what was made by this call: the names are taken with O_EXCL */
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT; i++)
		if (spool->files[i] >= 0)
			(void)unlinkat(directory, names[i], 0);
	(void)unlinkat(task_fd, action, AT_REMOVEDIR);
	spool_close(spool);
	return result;
}

int spool_begin(int task_fd, const char *action, struct spool *ret_spool, struct error *error)
{
	struct spool spool = SPOOL_NONE;
	int result = make_place(task_fd, action, &spool, error);

	if (result < 0)
		return result;
	result = make_head(&spool);
	if (result < 0) {
		spool_close(&spool);
		spool_remove(task_fd, action);
		return error_errno(error, result, "writing the spool %s/%s", action, index_name);
	}
	*ret_spool = spool;
	return 0;
}

void spool_remove(int task_fd, const char *action)
{
	if (is_name(action))
		directory_remove_tree(task_fd, action);
}

int spool_begin_early(struct spool *ret_spool, struct error *error)
{
	struct spool spool = SPOOL_NONE;
	int result = 0;

	spool.is_early = true;
	for (unsigned i = 0; i <= SPOOL_STREAM_COUNT && result == 0; i++) {
		int fd = memfd_create("bawn-output", MFD_CLOEXEC);

		if (fd < 0)
			result = -errno;
		else if (i == SPOOL_STREAM_COUNT)
			spool.index = fd;
		else
			spool.files[i] = fd;
	}
	if (result == 0)
		result = make_head(&spool);
	if (result < 0) {
		spool_close(&spool);
		return error_errno(error, result, "keeping the output in memory");
	}
	*ret_spool = spool;
	return 0;
}

static int copy_file(int from, int to, uint64_t length)
{
	char bytes[16384];

	for (uint64_t at = 0; at < length;) {
		ssize_t count = pread(from, bytes, sizeof(bytes), (off_t)at);
		int result;

		if (count <= 0)
			return count < 0 ? -errno : -EIO;
		result = write_at(to, bytes, (size_t)count, at);
		if (result < 0)
			return result;
		at += (uint64_t)count;
	}
	return 0;
}

int spool_place(struct spool *spool, int task_fd, const char *action, struct error *error)
{
	struct spool placed = SPOOL_NONE;
	int result;

	if (!spool->is_early)
		return 0;
	result = make_place(task_fd, action, &placed, error);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT && result == 0; i++)
		result = copy_file(spool->files[i], placed.files[i], spool->bytes[i]);
	if (result == 0)
		result = copy_file(spool->index, placed.index, spool->index_bytes);
	if (result < 0) {
		spool_close(&placed);
		spool_remove(task_fd, action);
		return error_errno(error, result, "writing the spool %s", action);
	}
	spool_close(spool);
	memcpy(spool->files, placed.files, sizeof(placed.files));
	spool->index = placed.index;
	spool->is_early = false;
	return 0;
}

/* A record of which a part was written is written anew, at the same place. */
static int record(struct spool *spool, enum spool_kind kind, enum spool_stream stream,
		  uint64_t time_ns, uint64_t length)
{
	unsigned char bytes[SPOOL_RECORD_BYTES];

	put_u64(bytes, time_ns);
	put_u64(bytes + 8,
		(uint64_t)kind << 60 | (uint64_t)stream << LENGTH_BITS | (length & LENGTH_MASK));
	spool->index_failure = write_at(spool->index, bytes, sizeof(bytes), spool->index_bytes);
	if (spool->index_failure == 0)
		spool->index_bytes += sizeof(bytes);
	return spool->index_failure;
}

static void settle_stream(struct spool *spool, enum spool_stream stream)
{
	struct spool_merged *merged = &spool->merged[stream];

	if (merged->length &&
	    record(spool, SPOOL_BYTES, stream, merged->time_ns, merged->length) == 0)
		*merged = (struct spool_merged){ 0 };
	if (!merged->length && spool->cut[stream] == SPOOL_CUT_OWED &&
	    record(spool, SPOOL_CUT, stream, clock_monotonic_ns() - spool->start_ns, 0) == 0)
		spool->cut[stream] = SPOOL_CUT_TOLD;
}

void spool_settle(struct spool *spool)
{
	const struct spool_merged *out = &spool->merged[SPOOL_OUT];
	const struct spool_merged *err = &spool->merged[SPOOL_ERR];
	bool err_first = err->length && err->time_ns < out->time_ns;

	settle_stream(spool, err_first ? SPOOL_ERR : SPOOL_OUT);
	settle_stream(spool, err_first ? SPOOL_OUT : SPOOL_ERR);
}

/* Whether another record of `stream` may begin, now that it is `now_ns`. */
static bool is_due(const struct spool *spool, enum spool_stream stream, uint64_t now_ns)
{
	uint64_t data = spool->bytes[SPOOL_OUT] + spool->bytes[SPOOL_ERR];
	uint64_t since = now_ns - spool->recorded_ns;
	bool switched = spool->merged[!stream].length != 0;

	if (since >= SPOOL_COARSE_NS)
		return true;
	if (spool->index_bytes + 2 * SPOOL_RECORD_BYTES > SPOOL_FREE_BYTES + data / 128)
		return false;
	return switched || since >= SPOOL_MERGE_NS;
}

int spool_append(struct spool *spool, enum spool_stream stream, const void *bytes, size_t length)
{
	struct spool_merged *merged = &spool->merged[stream];
	uint64_t now;
	int result;

	if (!length)
		return 0;
	result = write_at(spool->files[stream], bytes, length, spool->bytes[stream]);
	if (result < 0) {
		/* what was not acknowledged is not there */
		if (ftruncate(spool->files[stream], (off_t)spool->bytes[stream]) < 0)
			return -errno;
		return result;
	}
	spool->bytes[stream] += length;
	now = clock_monotonic_ns() - spool->start_ns;
	/*
	 * A change of streams ends the record of the other one first. With this chunk's own record
	 * written at once or merged, order is exact as long as there is a budget.
	 */
	if (spool->merged[!stream].length && is_due(spool, stream, now)) {
		spool_settle(spool);
		spool->recorded_ns = now;
	}
	/* what came long before this is not of the same moment */
	if (merged->length && now - merged->time_ns >= SPOOL_MERGE_NS &&
	    is_due(spool, stream, now)) {
		settle_stream(spool, stream);
		spool->recorded_ns = now;
	}
	if (!merged->length)
		merged->time_ns = now;
	merged->length += length;
	if (!spool->merged[!stream].length && is_due(spool, stream, now)) {
		settle_stream(spool, stream);
		spool->recorded_ns = now;
	}
	return 0;
}

void spool_cut(struct spool *spool, enum spool_stream stream)
{
	if (spool->cut[stream] != SPOOL_WHOLE)
		return;
	spool->cut[stream] = SPOOL_CUT_OWED;
	spool_settle(spool);
}

int spool_end(struct spool *spool, const uint64_t dropped[static SPOOL_STREAM_COUNT],
	      struct error *error)
{
	uint64_t now = clock_monotonic_ns() - spool->start_ns;
	int result = 0;

	spool_settle(spool);
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT; i++)
		if (spool->merged[i].length || spool->cut[i] == SPOOL_CUT_OWED)
			result = spool->index_failure;
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT && result == 0; i++)
		result = record(spool, SPOOL_END, i, now, dropped[i]);
	if (result < 0)
		return error_errno(error, result,
				   "the index of the output lacks its last times (the output "
				   "itself is whole)");
	return 0;
}

void spool_close(struct spool *spool)
{
	close_files(spool->files, &spool->index);
}

/* A regular file of ours; whatever else lies there is not opened (a FIFO would hang). */
static int open_file(int directory_fd, const char *name)
{
	int CLEANUP_FD fd =
		fd_open_beneath(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EPROTO;
	return TAKE_FD(fd);
}

static int read_head(struct spool_reader *reader)
{
	unsigned char head[SPOOL_HEAD_BYTES];
	ssize_t count = pread(reader->index, head, sizeof(head), 0);

	if (count < 0)
		return -errno;
	if (count < (ssize_t)sizeof(head))
		/* its writer is about to write it, or died */
		return -ENOENT;
	if (memcmp(head, magic, sizeof(magic)) != 0)
		return -EPROTO;
	reader->start_wall_ns = get_u64(head + 8);
	reader->at = sizeof(head);
	return 0;
}

int spool_open_read(int task_fd, const char *action, struct spool_reader *ret_reader,
		    struct error *error)
{
	struct spool_reader reader = SPOOL_READER_NONE;
	int CLEANUP_FD directory = -1;
	int result = 0;

	if (!is_name(action))
		return error_set(error, EINVAL, "not an action's id");
	directory = fd_open_beneath(task_fd, action, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (directory < 0)
		return error_errno(error, directory, "the output of action %s", action);
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT && result >= 0; i++)
		result = reader.files[i] = open_file(directory, names[i]);
	if (result >= 0)
		result = reader.index = open_file(directory, index_name);
	if (result >= 0)
		result = read_head(&reader);
	if (result < 0) {
		spool_reader_close(&reader);
		return error_errno(error, result, "the output of action %s", action);
	}
	*ret_reader = reader;
	return 0;
}

bool spool_has_times(int index_fd)
{
	unsigned char bytes[SPOOL_HEAD_BYTES + TIMES_RECORDS * SPOOL_RECORD_BYTES];
	ssize_t count = index_fd < 0 ? -1 : pread(index_fd, bytes, sizeof(bytes), 0);
	uint64_t first = 0;
	bool has_first = false;

	for (size_t at = SPOOL_HEAD_BYTES; at + SPOOL_RECORD_BYTES <= (size_t)count && count > 0;
	     at += SPOOL_RECORD_BYTES) {
		uint64_t time_ns = get_u64(bytes + at);

		if (get_u64(bytes + at + 8) >> 60 != SPOOL_BYTES)
			continue;
		if (has_first && time_ns - first >= SPOOL_MERGE_NS)
			return true;
		first = has_first ? first : time_ns;
		has_first = true;
	}
	return count == (ssize_t)sizeof(bytes);
}

static int file_size(int fd, uint64_t *ret_bytes)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	*ret_bytes = (uint64_t)status.st_size;
	return 0;
}

/*
 * Gives what is in the file up to `limit` and was not given yet. Returns 0 when that is nothing:
 * it was given before its record came, or a power cut took it.
 */
static int give(struct spool_reader *reader, enum spool_stream stream, uint64_t limit,
		struct spool_chunk *ret_chunk)
{
	uint64_t size = 0, start = reader->given[stream];
	int result = file_size(reader->files[stream], &size);

	if (result < 0)
		return result;
	if (size < limit)
		limit = size;
	if (limit <= start)
		return 0;
	ret_chunk->kind = SPOOL_BYTES;
	ret_chunk->stream = stream;
	ret_chunk->offset = start;
	ret_chunk->length = limit - start;
	reader->given[stream] = limit;
	return 1;
}

static int give_record(struct spool_reader *reader, const unsigned char *bytes,
		       struct spool_chunk *ret_chunk)
{
	struct spool_chunk chunk = { .timed = true, .time_ns = get_u64(bytes) };
	uint64_t word = get_u64(bytes + 8);
	uint64_t kind = word >> 60, stream = word >> LENGTH_BITS & 15;
	int result = 1;

	if (kind < SPOOL_BYTES || kind > SPOOL_END || stream >= SPOOL_STREAM_COUNT ||
	    reader->ended[stream])
		return -EPROTO;
	chunk.kind = (enum spool_kind)kind;
	chunk.stream = (enum spool_stream)stream;
	chunk.length = word & LENGTH_MASK;
	if (kind == SPOOL_BYTES) {
		/* 2^56 records of 2^56 bytes do not fit a file: no overflow in one that is */
		if (reader->indexed[stream] > INT64_MAX - chunk.length)
			return -EPROTO;
		reader->indexed[stream] += chunk.length;
		result = give(reader, chunk.stream, reader->indexed[stream], &chunk);
	} else if (kind == SPOOL_END) {
		reader->ended[stream] = true;
	}
	if (result == 1)
		*ret_chunk = chunk;
	return result;
}

static bool is_hole(const unsigned char *bytes)
{
	for (unsigned i = 8; i < SPOOL_RECORD_BYTES; i++)
		if (bytes[i])
			return false;
	return true;
}

int spool_next(struct spool_reader *reader, struct spool_chunk *ret_chunk)
{
	unsigned char bytes[SPOOL_RECORD_BYTES];
	struct spool_chunk chunk = { .timed = false };
	int result = 0;

	for (;;) {
		ssize_t count = pread(reader->index, bytes, sizeof(bytes), (off_t)reader->at);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count < (ssize_t)sizeof(bytes) || is_hole(bytes))
			break;
		result = give_record(reader, bytes, ret_chunk);
		if (result < 0)
			return result;
		reader->at += sizeof(bytes);
		if (result == 1)
			return 1;
	}
	for (unsigned i = 0; i < SPOOL_STREAM_COUNT && result == 0; i++)
		result = give(reader, i, UINT64_MAX, &chunk);
	if (result == 1)
		*ret_chunk = chunk;
	return result;
}

ssize_t spool_read(const struct spool_reader *reader, const struct spool_chunk *chunk,
		   uint64_t from, void *bytes, size_t length)
{
	ssize_t count;

	if (chunk->kind != SPOOL_BYTES || from >= chunk->length)
		return 0;
	if (length > chunk->length - from)
		length = (size_t)(chunk->length - from);
	do
		count = pread(reader->files[chunk->stream], bytes, length,
			      (off_t)(chunk->offset + from));
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

bool spool_is_over(const struct spool_reader *reader)
{
	return reader->ended[SPOOL_OUT] && reader->ended[SPOOL_ERR];
}

void spool_reader_close(struct spool_reader *reader)
{
	close_files(reader->files, &reader->index);
}
