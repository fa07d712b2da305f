#include "trace/blob.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/directory.h"
#include "base/fd.h"
#include "trace/mask.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (256u * 1024)
#define NAME_BYTES (SHA256_HEX_BYTES + sizeof(BLOB_SUFFIX))
/* Files on their way to a name, where the file system knows no O_TMPFILE. */
#define NEW_PREFIX ".new-"
#define NEW_BYTES 32

/* ---- places ---- */

bool blob_is_name(const char *name)
{
	return strlen(name) == SHA256_HEX_BYTES - 1 &&
	       strspn(name, "0123456789abcdef") == SHA256_HEX_BYTES - 1;
}

static bool is_component(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 128;
}

static int open_own(int parent_fd, const char *name, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (make && mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent_fd, name, flags);
	if (fd < 0 || fstat(fd, &status) < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (status.st_uid != geteuid() || (status.st_mode & 022))
		return -EPERM;
	return TAKE_FD(fd);
}

static void remove_new(int directory_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	if (directory_open(&directory, directory_fd, ".", 0) < 0)
		return;
	while ((name = directory_next(&directory)))
		if (strncmp(name, NEW_PREFIX, sizeof(NEW_PREFIX) - 1) == 0)
			(void)unlinkat(directory_fd, name, 0);
}

int blob_directory(const struct trace_store *store, const char *task, bool make, int *ret_fd,
		   struct error *error)
{
	int CLEANUP_FD blobs = -1, CLEANUP_FD fd = -1;

	if (!is_component(task))
		return error_set(error, EINVAL, "%.60s is no name of a task", task);
	blobs = open_own(store->fd, TRACE_BLOBS, make);
	fd = blobs < 0 ? blobs : open_own(blobs, task, make);
	if (fd < 0)
		return error_errno(error, fd, "trace/" TRACE_BLOBS "/%s", blobs < 0 ? "" : task);
	if (make)
		remove_new(fd);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void file_name(char name[static NAME_BYTES], const char *sha256, bool is_packed)
{
	(void)snprintf(name, NAME_BYTES, "%s%s", sha256, is_packed ? BLOB_SUFFIX : "");
}

/* A file of this blob is there already; ret_is_packed says which, ret_bytes how large. */
static bool is_kept(int directory_fd, struct blob *blob)
{
	for (int packed = 0; packed < 2; packed++) {
		char name[NAME_BYTES];
		struct stat status;

		file_name(name, blob->name, packed);
		if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		blob->is_packed = packed;
		blob->stored_bytes = (uint64_t)status.st_size;
		return true;
	}
	return false;
}

/* ---- a file on its way to its name ---- */

struct fresh {
	int directory_fd;     /* borrowed */
	int fd;		      /* owned */
	char name[NEW_BYTES]; /* "": none */
};

static void fresh_end(struct fresh *fresh)
{
	if (fresh->name[0])
		(void)unlinkat(fresh->directory_fd, fresh->name, 0);
	fd_close(&fresh->fd);
}

#define CLEANUP_FRESH __attribute__((cleanup(fresh_end)))

int blob_prepare(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* prepared_fd is taken, where there is one. */
static int fresh_begin(int directory_fd, int *prepared_fd, struct fresh *ret_fresh)
{
	struct fresh fresh = { .directory_fd = directory_fd };
	uint64_t number = 0;

	if (prepared_fd && *prepared_fd >= 0) {
		fresh.fd = TAKE_FD(*prepared_fd);
	} else {
		fresh.fd = blob_prepare(directory_fd);
		errno = -fresh.fd;
	}
	/* EISDIR: a kernel that does not know it; EOPNOTSUPP: such a file system */
	if (fresh.fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		if (getrandom(&number, sizeof(number), 0) < 0)
			return -errno;
		(void)snprintf(fresh.name, sizeof(fresh.name), NEW_PREFIX "%016llx",
			       (unsigned long long)number);
		fresh.fd = openat(directory_fd, fresh.name,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fresh.fd < 0)
		return -errno;
	*ret_fresh = fresh;
	return 0;
}

/* One that another gave the name meanwhile is as good. */
static int fresh_name(struct fresh *fresh, const char *name)
{
	char path[32];
	int result;

	if (fresh->name[0]) {
		result = linkat(fresh->directory_fd, fresh->name, fresh->directory_fd, name, 0);
	} else {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fresh->fd);
		result = linkat(AT_FDCWD, path, fresh->directory_fd, name, AT_SYMLINK_FOLLOW);
	}
	return result < 0 && errno != EEXIST ? -errno : 0;
}

/* ---- keeping ---- */

/*
 * Bytes on their way: in as they are given, out as they are kept. As long as nothing was masked,
 * both are the same, and so is their hash: only then a second one is begun.
 */
struct flow {
	const struct mask *mask;
	struct mask_stream stream;
	struct sha256 given, kept;
	bool is_split; /* something was masked: the hashes differ */
	uint64_t kept_bytes;
	/* where kept bytes go: one of these */
	struct buffer *held;
	struct pack *pack;
	int out_fd;
	int failure; /* of the pack alone */
};

static int take_kept(void *context, const void *bytes, size_t length)
{
	struct flow *flow = context;

	if (!flow->is_split && flow->stream.count) {
		flow->kept = flow->given;
		flow->is_split = true;
	}
	sha256_update(flow->is_split ? &flow->kept : &flow->given, bytes, length);
	flow->kept_bytes += length;
	if (flow->held) {
		buffer_append(flow->held, bytes, length);
		return flow->held->failed ? -ENOMEM : 0;
	}
	if (!flow->pack)
		return fd_write_all(flow->out_fd, bytes, length);
	if (flow->failure == 0)
		flow->failure = pack_feed(flow->pack, bytes, length);
	return flow->failure;
}

/* As set: mask and where it goes. */
static int flow_begin(struct flow *flow)
{
	const struct mask *mask = flow->mask;

	sha256_begin(&flow->given);
	return mask ? mask_stream_begin(&flow->stream, mask, take_kept, flow) : 0;
}

static int flow_feed(struct flow *flow, const void *bytes, size_t length)
{
	return flow->mask ? mask_stream_feed(&flow->stream, bytes, length) :
			    take_kept(flow, bytes, length);
}

static int flow_finish(struct flow *flow)
{
	return flow->mask ? mask_stream_finish(&flow->stream) : 0;
}

static void flow_end(struct flow *flow)
{
	mask_stream_free(&flow->stream);
}

#define CLEANUP_FLOW __attribute__((cleanup(flow_end)))

static void digits(struct sha256 hash, char ret_text[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];

	sha256_end(&hash, digest);
	sha256_hex(digest, ret_text);
}

/* What the flow knows when all is through; bytes: how many were given. */
static void tell(const struct flow *flow, uint64_t bytes, struct blob *blob)
{
	digits(flow->given, blob->sha256);
	digits(flow->is_split ? flow->kept : flow->given, blob->name);
	blob->bytes = bytes;
	blob->kept_bytes = flow->kept_bytes;
	blob->masked = flow->stream.count;
}

static int give_name(struct fresh *fresh, struct blob *blob)
{
	char name[NAME_BYTES];

	if (is_kept(fresh->directory_fd, blob))
		return 0;
	file_name(name, blob->name, blob->is_packed);
	return fresh_name(fresh, name);
}

/* What is short is held until its name is known: where there is such a file, it takes none. */
static int put_held(int directory_fd, int *prepared_fd, const struct buffer *held,
		    struct blob *blob)
{
	struct fresh CLEANUP_FRESH fresh = { .fd = -1 };
	int result;

	blob->stored_bytes = blob->kept_bytes;
	if (is_kept(directory_fd, blob))
		return 0;
	result = fresh_begin(directory_fd, prepared_fd, &fresh);
	if (result == 0)
		result = fd_write_all(fresh.fd, held->data, held->length);
	return result == 0 ? fresh_name(&fresh, blob->name) : result;
}

int blob_put(int directory_fd, const struct mask *mask, const void *bytes, size_t length,
	     struct blob *ret_blob, struct error *error)
{
	struct buffer CLEANUP_BUFFER held = { 0 };
	struct flow CLEANUP_FLOW flow = { .mask = mask, .held = &held };
	struct blob blob = { 0 };
	int result = flow_begin(&flow);

	if (result == 0)
		result = flow_feed(&flow, bytes, length);
	if (result == 0)
		result = flow_finish(&flow);
	if (result == 0) {
		struct sha256 given;

		/* the flow hashes what was given only as far as it is what is kept */
		tell(&flow, length, &blob);
		sha256_begin(&given);
		sha256_update(&given, bytes, length);
		digits(given, blob.sha256);
		result = put_held(directory_fd, NULL, &held, &blob);
	}
	if (result < 0)
		return error_errno(error, result, "writing a blob");
	*ret_blob = blob;
	return 0;
}

/* A file that is being sealed. */
struct source {
	int fd;
	uint64_t length;
	unsigned char *chunk; /* of CHUNK_BYTES, or all of the length */
};

static ssize_t read_chunk(const struct source *source, uint64_t at)
{
	uint64_t left = source->length - at;
	size_t part = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	ssize_t count;

	do
		count = pread(source->fd, source->chunk, part, (off_t)at);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

/* Goes on with the hash of what was given, up to `to`: what is kept has gone another way. */
static int catch_up(const struct source *source, struct flow *flow, uint64_t to)
{
	while (flow->given.length_bytes < to) {
		ssize_t count = read_chunk(source, flow->given.length_bytes);

		if (count <= 0)
			return count < 0 ? (int)count : -EIO;
		if ((uint64_t)count > to - flow->given.length_bytes)
			count = (ssize_t)(to - flow->given.length_bytes);
		sha256_update(&flow->given, source->chunk, (size_t)count);
	}
	return 0;
}

/* All of the file through the flow. */
static int pour(struct source *source, struct flow *flow)
{
	uint64_t at = 0;
	int result = 0;

	while (result == 0 && at < source->length) {
		ssize_t count = read_chunk(source, at);

		if (count < 0)
			return (int)count;
		if (count == 0) {
			source->length = at; /* it became shorter under our hands */
			break;
		}
		if (flow->is_split && flow->given.length_bytes == at)
			sha256_update(&flow->given, source->chunk, (size_t)count);
		result = flow_feed(flow, source->chunk, (size_t)count);
		at += (uint64_t)count;
		if (result == 0 && flow->is_split)
			result = catch_up(source, flow, at);
	}
	if (result == 0)
		result = flow_finish(flow);
	return result == 0 && flow->is_split ? catch_up(source, flow, at) : result;
}

/* Through bawn-pack. 1: it is not to be so, for the reason in blob->unpacked. */
static int seal_packed(int directory_fd, const struct mask *mask, struct source *source,
		       struct blob *blob)
{
	struct fresh CLEANUP_FRESH fresh = { .fd = -1 };
	struct pack CLEANUP_PACK pack = PACK_NONE;
	struct flow CLEANUP_FLOW flow = { .mask = mask, .pack = &pack };
	int finished, result = fresh_begin(directory_fd, NULL, &fresh);

	if (result < 0)
		return result;
	if (pack_begin(fresh.fd, &pack, &blob->unpacked) < 0)
		return 1;
	result = flow_begin(&flow);
	if (result == 0)
		result = pour(source, &flow);
	if (result < 0 && flow.failure == 0)
		return result;
	finished = flow.failure == -ETIMEDOUT ? flow.failure :
						pack_finish(&pack, &blob->stored_bytes);
	/* nor would it fit as it is */
	if (finished == -ENOSPC || finished == -EDQUOT)
		return finished;
	if (finished < 0 || flow.failure < 0) {
		(void)error_errno(&blob->unpacked, finished < 0 ? finished : flow.failure,
				  "bawn-pack");
		return 1;
	}
	tell(&flow, source->length, blob);
	if (is_kept(directory_fd, blob))
		return 0;
	if (blob->stored_bytes >= blob->kept_bytes)
		return 1;
	blob->is_packed = true;
	return give_name(&fresh, blob);
}

static int seal_short(int directory_fd, int *prepared_fd, const struct mask *mask,
		      struct source *source, struct blob *blob)
{
	struct arena CLEANUP_ARENA arena = { .first_bytes = ARENA_SMALL_BYTES };
	struct buffer CLEANUP_BUFFER held = { .arena = &arena };
	struct flow CLEANUP_FLOW flow = { .mask = mask, .held = &held };
	int result = flow_begin(&flow);

	if (result == 0)
		result = pour(source, &flow);
	if (result < 0)
		return result;
	tell(&flow, source->length, blob);
	return put_held(directory_fd, prepared_fd, &held, blob);
}

/* What was to be packed and is not. */
static int seal_plain(int directory_fd, const struct mask *mask, struct source *source,
		      struct blob *blob)
{
	struct fresh CLEANUP_FRESH fresh = { .fd = -1 };
	struct flow CLEANUP_FLOW flow = { .mask = mask };
	int result = fresh_begin(directory_fd, NULL, &fresh);

	flow.out_fd = fresh.fd;
	if (result == 0)
		result = flow_begin(&flow);
	if (result == 0)
		result = pour(source, &flow);
	if (result < 0)
		return result;
	tell(&flow, source->length, blob);
	blob->stored_bytes = blob->kept_bytes;
	return give_name(&fresh, blob);
}

int blob_seal(int directory_fd, int *prepared_fd, const struct mask *mask, int fd,
	      struct blob *ret_blob, struct error *error)
{
	struct source source = { .fd = fd };
	struct blob blob = { 0 };
	struct stat status;
	int result;

	if (fstat(fd, &status) < 0)
		return error_errno(error, errno, "a stream's file");
	if (!S_ISREG(status.st_mode))
		return error_set(error, EINVAL, "a stream's file is no regular file");
	source.length = (uint64_t)status.st_size;
	/* most outputs are short, and a large room costs their action some faults */
	source.chunk =
		malloc(source.length < CHUNK_BYTES ? (size_t)source.length + 1 : CHUNK_BYTES);
	if (!source.chunk)
		return error_errno(error, ENOMEM, "sealing a stream");
	if (source.length < BLOB_PACK_BYTES)
		result = seal_short(directory_fd, prepared_fd, mask, &source, &blob);
	else
		result = seal_packed(directory_fd, mask, &source, &blob);
	if (result == 1)
		result = seal_plain(directory_fd, mask, &source, &blob);
	free(source.chunk);
	if (result < 0)
		return error_errno(error, result, "writing a blob of %llu bytes",
				   (unsigned long long)source.length);
	*ret_blob = blob;
	return 0;
}

/* ---- reading ---- */

static int open_file(int directory_fd, const char *sha256, bool *ret_is_packed)
{
	for (int packed = 0; packed < 2; packed++) {
		int CLEANUP_FD fd = -1;
		char name[NAME_BYTES];
		struct stat status;

		file_name(name, sha256, packed);
		fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return errno == ELOOP || errno == ENXIO ? -EBADMSG : -errno;
		if (fstat(fd, &status) < 0)
			return -errno;
		if (!S_ISREG(status.st_mode))
			return -EBADMSG;
		*ret_is_packed = packed;
		return TAKE_FD(fd);
	}
	return -ENOENT;
}

int blob_open(int directory_fd, const char *name, uint64_t limit_bytes,
	      struct blob_reader *ret_reader, struct error *error)
{
	struct blob_reader CLEANUP_BLOB_READER reader = BLOB_READER_NONE;

	if (!blob_is_name(name))
		return error_set(error, EBADMSG, "%.80s is no name of a blob", name);
	memcpy(reader.name, name, sizeof(reader.name));
	reader.limit_bytes = limit_bytes;
	reader.fd = open_file(directory_fd, name, &reader.is_packed);
	if (reader.fd < 0)
		return reader.fd == -EBADMSG ?
			       error_set(error, EBADMSG, "blob %s is no file of ours", name) :
			       error_errno(error, reader.fd, "blob %s", name);
	if (reader.is_packed) {
		int result = unpack_begin(reader.fd, limit_bytes, &reader.pack, error);

		if (result < 0)
			return result == -ENOENT || result == -EBADMSG ?
				       error_set(error, EIO, "blob %s cannot be read: %.300s", name,
						 error->message) :
				       result;
	}
	sha256_begin(&reader.hash);
	*ret_reader = reader;
	reader = BLOB_READER_NONE;
	return 0;
}

static ssize_t read_plain(const struct blob_reader *reader, void *bytes, size_t length)
{
	ssize_t count;

	do
		count = read(reader->fd, bytes, length);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

/* At its end: whether it was what its name says. */
static int judge(struct blob_reader *reader)
{
	char text[SHA256_HEX_BYTES];
	int result = reader->is_packed ? unpack_finish(&reader->pack) : 0;

	if (result < 0)
		return result == -EFBIG ? -EBADMSG : result;
	digits(reader->hash, text);
	return strcmp(text, reader->name) == 0 ? 0 : -EBADMSG;
}

ssize_t blob_read(struct blob_reader *reader, void *bytes, size_t length)
{
	ssize_t count;

	if (reader->is_over)
		return 0;
	count = reader->is_packed ? unpack_read(&reader->pack, bytes, length) :
				    read_plain(reader, bytes, length);
	if (count > 0) {
		reader->bytes += (uint64_t)count;
		if (reader->bytes > reader->limit_bytes)
			return -EBADMSG;
		sha256_update(&reader->hash, bytes, (size_t)count);
	}
	if (count == 0 && length) {
		reader->is_over = true;
		return judge(reader);
	}
	return count;
}

void blob_close(struct blob_reader *reader)
{
	pack_end(&reader->pack);
	fd_close(&reader->fd);
}

enum blob_state blob_check(int directory_fd, const char *name, uint64_t limit_bytes,
			   struct error *error)
{
	struct blob_reader CLEANUP_BLOB_READER reader = BLOB_READER_NONE;
	int result = blob_open(directory_fd, name, limit_bytes, &reader, error);
	unsigned char *chunk;
	ssize_t count = result;

	if (result == 0) {
		chunk = malloc(CHUNK_BYTES);
		count = chunk ? 1 : -ENOMEM;
		while (count > 0)
			count = blob_read(&reader, chunk, CHUNK_BYTES);
		free(chunk);
		if (count < 0)
			(void)error_errno(error, (int)count, "blob %s", name);
	}
	return count == 0	 ? BLOB_WHOLE :
	       count == -ENOENT	 ? BLOB_MISSING :
	       count == -EBADMSG ? BLOB_CHANGED :
				   BLOB_UNREADABLE;
}

int blob_remove(int directory_fd, const char *name)
{
	int result = -ENOENT;

	if (!blob_is_name(name))
		return -EINVAL;
	for (int packed = 0; packed < 2; packed++) {
		char file[NAME_BYTES];

		file_name(file, name, packed);
		if (unlinkat(directory_fd, file, 0) == 0)
			result = 0;
		else if (errno != ENOENT)
			return -errno;
	}
	return result;
}
