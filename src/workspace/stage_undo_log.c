/*
 * The log of an apply: in "undo" of the stage's directory, a file "log" to which each step is
 * appended, before it and behind it, and beside it what was replaced, under the step's number.
 * Bytes of ours; a kill may leave a torn record at the end, which was not yet acted upon.
 */
#include "workspace/stage_apply_internal.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "ipc/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "undo"
#define LOG "log"
/* Of STAGE_APPLY_LIMIT_ITEMS with paths of some hundred bytes; what has more is undone no more. */
#define LIMIT_LOG_BYTES (512u * 1024 * 1024)
/* What stands before a record: its length. */
#define HEAD_BYTES 4u

enum record { RECORD_BEGIN = 1, RECORD_DONE, RECORD_UNDONE };

void stage_undo_name(uint64_t number, char ret_name[static STAGE_UNDO_NAME_BYTES])
{
	(void)snprintf(ret_name, STAGE_UNDO_NAME_BYTES, "%" PRIu64, number);
}

static int append(const struct stage_undo_log *log, const struct buffer *record)
{
	struct buffer CLEANUP_BUFFER whole = { 0 };
	off_t at = lseek(log->log_fd, 0, SEEK_CUR);
	int result;

	codec_put_u32(&whole, (uint32_t)record->length);
	buffer_append(&whole, record->data, record->length);
	if (record->failed || whole.failed || at < 0)
		return -ENOMEM;
	result = fd_write_all(log->log_fd, whole.data, whole.length);
	/* half of one must not stand before the next */
	if (result < 0 && (ftruncate(log->log_fd, at) < 0 || lseek(log->log_fd, at, SEEK_SET) < 0))
		return -EIO;
	return result;
}

static void put_side(struct buffer *record, const struct stage_side *side)
{
	codec_put_u32(record, side->type);
	codec_put_u32(record, side->mode);
	codec_put_u64(record, side->size);
}

int stage_undo_log_begin(struct stage_undo_log *log, const struct stage_item *item,
			 const struct stat *status, uint64_t *ret_number)
{
	struct buffer CLEANUP_BUFFER record = { 0 };
	int result;

	*ret_number = 0;
	if (log->log_fd < 0)
		return 0;
	codec_put_u32(&record, RECORD_BEGIN);
	codec_put_u64(&record, log->next);
	codec_put_string(&record, item->path);
	codec_put_u32(&record, item->kind);
	put_side(&record, &item->before);
	put_side(&record, &item->after);
	codec_put_u64(&record, status ? status->st_dev : 0);
	codec_put_u64(&record, status ? status->st_ino : 0);
	codec_put_u64(&record, status ? (uint64_t)status->st_size : 0);
	codec_put_u64(&record, status ? (uint64_t)stage_file_ns(status->st_mtim) : 0);
	result = append(log, &record);
	if (result == 0)
		*ret_number = log->next++;
	return result;
}

int stage_undo_log_done(struct stage_undo_log *log, uint64_t number, const struct stat *status)
{
	struct buffer CLEANUP_BUFFER record = { 0 };
	char name[STAGE_UNDO_NAME_BYTES];
	struct stat kept;

	if (log->log_fd < 0 || !number)
		return 0;
	stage_undo_name(number, name);
	if (fstatat(log->directory_fd, name, &kept, AT_SYMLINK_NOFOLLOW) < 0)
		kept.st_ino = 0;
	codec_put_u32(&record, RECORD_DONE);
	codec_put_u64(&record, number);
	codec_put_u64(&record, status ? (uint64_t)stage_file_ns(status->st_ctim) : 0);
	codec_put_u64(&record, kept.st_ino);
	return append(log, &record);
}

int stage_undo_log_undone(struct stage_undo_log *log, uint64_t number, const struct stat *status)
{
	struct buffer CLEANUP_BUFFER record = { 0 };

	codec_put_u32(&record, RECORD_UNDONE);
	codec_put_u64(&record, number);
	codec_put_u64(&record, status ? status->st_dev : 0);
	codec_put_u64(&record, status ? status->st_ino : 0);
	codec_put_u64(&record, status ? (uint64_t)stage_file_ns(status->st_ctim) : 0);
	return append(log, &record);
}

int stage_undo_keep(int undo_fd, uint64_t number, int from_fd, const char *name)
{
	char kept[STAGE_UNDO_NAME_BYTES];

	stage_undo_name(number, kept);
	return stage_move(from_fd, name, undo_fd, kept);
}

/* ---- reading ---- */

/* The bytes of the whole records at the front; freed by the caller. */
static int read_log(int fd, char **ret_bytes, size_t *ret_length)
{
	struct stat status;
	ssize_t length;
	size_t at = 0;
	uint32_t record;
	char *bytes;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > LIMIT_LOG_BYTES)
		return -EFBIG;
	bytes = malloc((size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -ENOMEM;
	if (length < 0) {
		free(bytes);
		return (int)length;
	}
	while ((size_t)length - at >= HEAD_BYTES) {
		memcpy(&record, bytes + at, HEAD_BYTES);
		if (record > (size_t)length - at - HEAD_BYTES)
			break;
		at += HEAD_BYTES + record;
	}
	*ret_bytes = bytes;
	*ret_length = at;
	return 0;
}

/* The next record of it, or false. */
static bool next_record(const char *bytes, size_t length, size_t *at, struct arena *arena,
			struct codec_cursor *ret_cursor)
{
	uint32_t record;

	if (*at == length)
		return false;
	memcpy(&record, bytes + *at, HEAD_BYTES);
	codec_begin(ret_cursor, bytes + *at + HEAD_BYTES, record, arena);
	*at += HEAD_BYTES + record;
	return true;
}

static struct stage_side get_side(struct codec_cursor *cursor)
{
	struct stage_side side = { .type = (enum stage_type)codec_enum(cursor, STAGE_TYPE_COUNT) };

	side.mode = codec_u32(cursor) & 07777;
	side.size = codec_u64(cursor);
	return side;
}

static bool is_wanted(const char *path, const char *const *paths, size_t count,
		      const struct stage_side *before)
{
	for (size_t i = 0; i < count; i++)
		/* a directory that was removed comes with what was in it */
		if (stage_is_under(path, paths[i]) ||
		    (before->type == STAGE_DIRECTORY && stage_is_under(paths[i], path)))
			return true;
	return !count;
}

static struct stage_step *find_step(struct stage_step *steps, size_t count, uint64_t number)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].number == number)
			return &steps[middle];
		if (steps[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A step of another path is left out; false where it could not be read. */
static bool get_step(struct codec_cursor *cursor, struct stage_step *step)
{
	step->number = codec_u64(cursor);
	step->path = codec_string(cursor, STAGE_LIMIT_PATH_BYTES);
	step->kind = (enum stage_kind)codec_enum(cursor, STAGE_KIND_COUNT);
	step->before = get_side(cursor);
	step->after = get_side(cursor);
	step->device = codec_u64(cursor);
	step->inode = codec_u64(cursor);
	step->size = codec_u64(cursor);
	step->mtime_ns = (int64_t)codec_u64(cursor);
	return codec_end(cursor) == 0;
}

static int settle_step(struct codec_cursor *cursor, uint32_t record, struct stage_step *steps,
		       size_t count)
{
	struct stage_step ignored;
	struct stage_step *step = find_step(steps, count, codec_u64(cursor));

	if (!step)
		step = &ignored;
	if (record == RECORD_DONE) {
		step->is_done = true;
		step->ctime_ns = (int64_t)codec_u64(cursor);
		step->kept_inode = codec_u64(cursor);
	} else {
		step->is_undone = true;
		step->back_device = codec_u64(cursor);
		step->back_inode = codec_u64(cursor);
		step->back_ctime_ns = (int64_t)codec_u64(cursor);
	}
	return codec_end(cursor);
}

static int get_steps(const char *bytes, size_t length, const char *const *paths, size_t path_count,
		     struct arena *arena, struct stage_step *steps, size_t *ret_count)
{
	struct codec_cursor cursor;
	size_t at = 0, count = 0;

	while (next_record(bytes, length, &at, arena, &cursor)) {
		uint32_t record = codec_u32(&cursor);
		struct stage_step step = { 0 };
		int result = 0;

		if (record == RECORD_DONE || record == RECORD_UNDONE)
			result = settle_step(&cursor, record, steps, count);
		else if (record != RECORD_BEGIN || !get_step(&cursor, &step))
			result = arena_failed(arena) ? -ENOMEM : -EBADMSG;
		else if (is_wanted(step.path, paths, path_count, &step.before))
			steps[count++] = step;
		if (result < 0)
			return result;
	}
	*ret_count = count;
	return 0;
}

/* At most so many steps are in it, each with one record of the least length. */
static size_t count_begins(const char *bytes, size_t length)
{
	size_t at = 0, count = 0;
	struct codec_cursor cursor;

	while (next_record(bytes, length, &at, NULL, &cursor))
		count += codec_u32(&cursor) == RECORD_BEGIN;
	return count;
}

static int open_directory(int stage_fd)
{
	int fd = openat(stage_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int stage_undo_log_read(int stage_fd, const char *const *paths, size_t path_count,
			struct arena *arena, struct stage_step **ret_steps, size_t *ret_count)
{
	int CLEANUP_FD directory = open_directory(stage_fd);
	int CLEANUP_FD fd = directory < 0 ? directory :
					    openat(directory, LOG,
						   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stage_step *steps;
	char *bytes = NULL;
	size_t length = 0;
	int result;

	if (fd < 0)
		return directory < 0 ? directory : -errno;
	result = read_log(fd, &bytes, &length);
	if (result < 0)
		return result;
	steps = arena_array(arena, count_begins(bytes, length) + 1, sizeof(*steps));
	result = steps ? get_steps(bytes, length, paths, path_count, arena, steps, ret_count) :
			 -ENOMEM;
	free(bytes);
	if (result == 0)
		*ret_steps = steps;
	return result;
}

/* ---- opening ---- */

/* Where the next record stands, and its number: one more than the last. */
static int find_end(int fd, uint64_t *ret_next, size_t *ret_length)
{
	struct codec_cursor cursor;
	char *bytes = NULL;
	size_t length = 0, at = 0;
	int result = read_log(fd, &bytes, &length);

	*ret_next = 1;
	while (result == 0 && next_record(bytes, length, &at, NULL, &cursor))
		if (codec_u32(&cursor) == RECORD_BEGIN)
			*ret_next = codec_u64(&cursor) + 1;
	free(bytes);
	*ret_length = length;
	return result;
}

int stage_undo_log_open(int stage_fd, struct stage_undo_log *ret_log)
{
	struct stage_undo_log log = STAGE_UNDO_LOG_NONE;
	size_t length = 0;
	int result = 0;

	if (mkdirat(stage_fd, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	log.directory_fd = open_directory(stage_fd);
	if (log.directory_fd < 0)
		return log.directory_fd;
	log.log_fd = fd_open_own(log.directory_fd, LOG, O_RDWR);
	if (log.log_fd < 0)
		result = log.log_fd;
	if (result == 0)
		result = find_end(log.log_fd, &log.next, &length);
	if (result == 0 && (ftruncate(log.log_fd, (off_t)length) < 0 ||
			    lseek(log.log_fd, (off_t)length, SEEK_SET) < 0))
		result = -errno;
	if (result < 0) {
		stage_undo_log_close(&log);
		return result;
	}
	*ret_log = log;
	return 0;
}

void stage_undo_log_close(struct stage_undo_log *log)
{
	fd_close(&log->directory_fd);
	fd_close(&log->log_fd);
}
