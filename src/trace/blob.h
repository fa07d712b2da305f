/*
 * Blobs: bytes that records of a task refer to, kept in trace/blobs/<task>/<sha256>[.zst]
 * (docs/TRACE.md). Written once: a blob has its name only when all of it is there, whatever ends
 * the writer; the same bytes are kept once in a task. Secrets are masked before anything is
 * written, so that the name, which is the SHA-256 of the kept bytes, may differ from that of the
 * bytes that went through.
 *
 * Large ones are compressed by bawn-pack (trace/pack.h). Where that is missing or fails, the bytes
 * are kept as they are, and the result says why. One writer per directory at a time; readers need
 * no lock. Files are opened by descriptors, no link followed, nothing but regular files read.
 *
 * Memory: less than a megabyte, whatever the size. Errors: negative errno, with what could not be
 * written and why; then nothing of the blob is left.
 */
#pragma once

#include "base/error.h"
#include "base/sha256.h"
#include "trace/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mask;
struct trace_store;

/*
 * From here on it is compressed. A role costs a start (1-2 ms): for less than this nobody should
 * wait at the end of an action.
 */
#define BLOB_PACK_BYTES (64u * 1024)
#define BLOB_SUFFIX ".zst"
/* What a reader takes where nobody knows how long a blob is. */
#define BLOB_LIMIT_BYTES (1ull << 40)

/* What was kept: the members of the `stream` record. */
struct blob {
	char sha256[SHA256_HEX_BYTES]; /* of exactly the bytes that were given */
	uint64_t bytes;
	char name[SHA256_HEX_BYTES]; /* of the kept bytes: their SHA-256 */
	uint64_t kept_bytes;
	uint64_t masked;       /* how many secrets they are without */
	uint64_t stored_bytes; /* what it takes on the disk */
	bool is_packed;
	struct error unpacked; /* code != 0: it was to be compressed and is not, for this reason */
};

/*
 * The directory of a task; made where it is missing if `make`, and then what a dead writer left in
 * it is removed. -EINVAL: no name of a task. -ENOENT.
 */
int blob_directory(const struct trace_store *store, const char *task, bool make, int *ret_fd,
		   struct error *error) __attribute__((warn_unused_result));

/* Keeps bytes in memory, as they are. mask NULL: as they are given. */
int blob_put(int directory_fd, const struct mask *mask, const void *bytes, size_t length,
	     struct blob *ret_blob, struct error *error) __attribute__((warn_unused_result));

/*
 * A file for the next short blob, made while there is time: a new inode is the most of what keeping
 * one costs (trace/spare.h). It has no name, and is gone with its descriptor. -EOPNOTSUPP: the file
 * system has no such files.
 */
int blob_prepare(int directory_fd) __attribute__((warn_unused_result));

/*
 * Keeps the bytes of a regular file, from its start to its end at the time of the call.
 * prepared_fd: from blob_prepare() or -1; taken if it is used, and -1 then. May be NULL. What is
 * short (BLOB_PACK_BYTES) and kept already needs no file.
 */
int blob_seal(int directory_fd, int *prepared_fd, const struct mask *mask, int fd,
	      struct blob *ret_blob, struct error *error) __attribute__((warn_unused_result));

struct blob_reader {
	int fd; /* owned; of the file */
	struct pack pack;
	bool is_packed, is_over;
	char name[SHA256_HEX_BYTES];
	struct sha256 hash;
	uint64_t bytes, limit_bytes;
};

#define BLOB_READER_NONE ((struct blob_reader){ .fd = -1, .pack = PACK_NONE })

/* True for 64 lower-case digits. */
bool blob_is_name(const char *name);

/*
 * Opens one to read its plain bytes; limit_bytes: how many it has by its record, or
 * BLOB_LIMIT_BYTES. -ENOENT: there is none (removed or missing, as the ledger says). -EBADMSG: what
 * has its name is no file of ours. Else it cannot be read, as the error says.
 */
int blob_open(int directory_fd, const char *name, uint64_t limit_bytes,
	      struct blob_reader *ret_reader, struct error *error)
	__attribute__((warn_unused_result));

/* The count; 0 at the end, -EBADMSG where it is not what its name says. */
ssize_t blob_read(struct blob_reader *reader, void *bytes, size_t length)
	__attribute__((warn_unused_result));

void blob_close(struct blob_reader *reader);

#define CLEANUP_BLOB_READER __attribute__((cleanup(blob_close)))

enum blob_state {
	BLOB_WHOLE,
	BLOB_MISSING,	 /* no such file: removed, where the ledger has that */
	BLOB_CHANGED,	 /* other bytes than its name says */
	BLOB_UNREADABLE, /* cannot be told: the error says why */
};

/* Reads all of it. */
enum blob_state blob_check(int directory_fd, const char *name, uint64_t limit_bytes,
			   struct error *error);

/* Removes one, compressed or not. -ENOENT: there was none. */
int blob_remove(int directory_fd, const char *name) __attribute__((warn_unused_result));
