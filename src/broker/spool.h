/*
 * The spool of an action: both output streams as files in the task's directory, and an index that
 * tells when what came.
 *
 *   <action>/out      the bytes of standard output, exactly
 *   <action>/err      those of standard error (empty with a terminal of its own: all is in out)
 *   <action>/index    a head and records, which give the interleaving
 *
 * The writer is the supervisor; it appends and never changes what was written, so that the files
 * can be sealed as they are. Readers (`bawn logs -f`, another process of the same user) follow the
 * files without a lock. The task reaches none of this. Everything is opened by a directory's
 * descriptor, no link followed, files with O_EXCL and 0600.
 *
 * **Order and loss.** Bytes are written before the record that tells of them, and before anybody
 * else gets them: what spool_append() acknowledged by 0 survives kill -9 of the supervisor (not a
 * power cut; nothing is synced). When it fails (ENOSPC, EDQUOT, EFBIG, EIO) the file is cut back to
 * what was acknowledged, nothing of the chunk counts, and the same chunk may be tried again: the
 * caller decides. An index that cannot be written loses times, not bytes: it is tried again with
 * later records, and spool_end() reports it. Ignore SIGXFSZ, as SIGPIPE.
 *
 * **The index.** Little-endian. Head of SPOOL_HEAD_BYTES (32):
 *
 *   0   8 bytes   "BAWNSPL" and the version, 1
 *   8   u64       wall clock at the start, ns since the epoch
 *   16  u64       monotonic clock at the start, ns since boot
 *   24  8 bytes   zero
 *
 * then records of SPOOL_RECORD_BYTES (16):
 *
 *   0   u64       monotonic ns since the start: when the first byte of the record was taken
 *   8   u64       bits 60-63 kind (SPOOL_BYTES ...), 56-59 stream, 0-55 length
 *
 * A record of bytes speaks of the next `length` bytes of its stream's file. SPOOL_CUT: the cap was
 * reached there, what came after is not in the file. SPOOL_END, one for each stream when it was
 * ended in order: length is the number of bytes after the cut that were dropped (0 when the writer
 * was ended instead). Times do not decrease within a stream.
 *
 * One record per chunk would make the index as large as the data of a program that writes single
 * bytes. So chunks that follow within SPOOL_MERGE_NS become one record, and a change of streams
 * starts one only as long as the index has at most SPOOL_FREE_BYTES + 1/128 of the data; then the
 * grain is SPOOL_COARSE_NS, at most 20 records per second. Merged records are written later; until
 * then a reader has their bytes without a time.
 *
 * Memory: none that grows. Errors: negative errno; a struct error names the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

#define SPOOL_HEAD_BYTES 32
#define SPOOL_RECORD_BYTES 16
#define SPOOL_VERSION 1

#define SPOOL_MERGE_NS (1000ull * 1000)
#define SPOOL_COARSE_NS (100ull * 1000 * 1000)
/* Some 4,000 changes of streams are told exactly, whatever their size. */
#define SPOOL_FREE_BYTES (64u * 1024)

enum spool_stream { SPOOL_OUT, SPOOL_ERR, SPOOL_STREAM_COUNT };

/* On disk; 0 is no kind, so that a hole after a power cut is no record. */
enum spool_kind { SPOOL_BYTES = 1, SPOOL_CUT = 2, SPOOL_END = 3 };

/* The record of a cut may have to wait for room. */
enum spool_cut_state { SPOOL_WHOLE, SPOOL_CUT_OWED, SPOOL_CUT_TOLD };

struct spool_merged {
	uint64_t time_ns, length;
};

struct spool {
	int files[SPOOL_STREAM_COUNT]; /* owned */
	int index;		       /* owned */
	uint64_t start_ns;	       /* monotonic */
	uint64_t bytes[SPOOL_STREAM_COUNT];
	uint64_t index_bytes;
	uint64_t recorded_ns; /* when the last record was written, since the start */
	struct spool_merged merged[SPOOL_STREAM_COUNT]; /* not in the index yet */
	enum spool_cut_state cut[SPOOL_STREAM_COUNT];
	int index_failure; /* negative errno of the last record; 0: it was written */
	bool is_early;	   /* in memory still */
};

#define SPOOL_NONE ((struct spool){ .files = { -1, -1 }, .index = -1 })

/*
 * Makes the directory `action` (one component) and its files below task_fd. Leaves nothing behind
 * when it fails. -EINVAL: no name for a directory; -EEXIST: there is one.
 */
int spool_begin(int task_fd, const char *action, struct spool *ret_spool, struct error *error)
	__attribute__((warn_unused_result));

/*
 * The same in memory, for an action that may be over before anybody could look: cheap, and of no
 * name until spool_place(), which its owner calls after a moment or SPOOL_EARLY_BYTES.
 */
int spool_begin_early(struct spool *ret_spool, struct error *error)
	__attribute__((warn_unused_result));

/* Gives an early spool its directory and files. On a failure it stays in memory. */
int spool_place(struct spool *spool, int task_fd, const char *action, struct error *error)
	__attribute__((warn_unused_result));

#define SPOOL_EARLY_BYTES (1024u * 1024)

/* Appends all of the bytes, or none (see above). May block as long as the disk does. */
int spool_append(struct spool *spool, enum spool_stream stream, const void *bytes, size_t length)
	__attribute__((warn_unused_result));

/* The stream's cap is reached: nothing more will be appended to it. */
void spool_cut(struct spool *spool, enum spool_stream stream);

/* Writes merged records now: worth it before waiting for long. Costs nothing without any. */
void spool_settle(struct spool *spool);

/*
 * Ends both streams in order; the files can still be read, until spool_close(). dropped: bytes
 * after the cut, per stream. Negative when the index lacks records; the streams' bytes are whole
 * all the same.
 */
int spool_end(struct spool *spool, const uint64_t dropped[static SPOOL_STREAM_COUNT],
	      struct error *error);

/* Closes without the end records, as a death would; accepts SPOOL_NONE. */
void spool_close(struct spool *spool);

/* Removes the action's spool, if there is one. */
void spool_remove(int task_fd, const char *action);

/* What a reader of the files is at. */
struct spool_reader {
	int files[SPOOL_STREAM_COUNT]; /* owned */
	int index;		       /* owned */
	uint64_t start_wall_ns;
	uint64_t at;			      /* of the next record in the index */
	uint64_t indexed[SPOOL_STREAM_COUNT]; /* bytes that records spoke of */
	uint64_t given[SPOOL_STREAM_COUNT];   /* bytes that were given to the caller */
	bool ended[SPOOL_STREAM_COUNT];
};

#define SPOOL_READER_NONE ((struct spool_reader){ .files = { -1, -1 }, .index = -1 })

struct spool_chunk {
	enum spool_kind kind;
	enum spool_stream stream;
	bool timed;	  /* false: the bytes are there, their record is not (yet) */
	uint64_t time_ns; /* since the start */
	uint64_t offset;  /* SPOOL_BYTES: in the stream's file */
	uint64_t length;  /* SPOOL_BYTES: how many; SPOOL_END: how many were dropped */
};

/* -ENOENT: no such action, or not yet; -EPROTO: not an index, or of another version. */
int spool_open_read(int task_fd, const char *action, struct spool_reader *ret_reader,
		    struct error *error) __attribute__((warn_unused_result));

/*
 * The next piece in the order of the index; what has no record follows when the records are used
 * up, out before err. Returns 1 with ret_chunk set; 0 when there is nothing more for now (a torn
 * last record is nothing); -EPROTO for an index that no writer of ours made, which is final.
 */
int spool_next(struct spool_reader *reader, struct spool_chunk *ret_chunk);

/*
 * Reads bytes of a chunk, from `from` bytes behind its start. Returns the count (0: behind its
 * end) or a negative errno.
 */
ssize_t spool_read(const struct spool_reader *reader, const struct spool_chunk *chunk,
		   uint64_t from, void *bytes, size_t length);

/* False where all that the index tells came at once. */
bool spool_has_times(int index_fd);

/* Both streams were ended in order: once spool_next() returns 0 now, nothing more comes. */
bool spool_is_over(const struct spool_reader *reader);

void spool_reader_close(struct spool_reader *reader);
