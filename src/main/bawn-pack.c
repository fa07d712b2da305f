/*
 * bawn-pack: compresses what a task wrote, and reads it again (ipc/pack.h). It jails itself before
 * it looks at a byte: whatever the bytes do to the library, there is no file, no socket, no program
 * and no other process to reach, only the descriptors it came with and the memory of one of them.
 *
 * Memory does not grow with the input: a bomb is written out to its reader, or until the limit. Its
 * exit status is its report: the number of the step that failed.
 */
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/pack.h"
#include "ipc/role.h"
#include "kernel/jail.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

enum step {
	STEP_DONE,
	STEP_ORDER = JAIL_STEPS,
	STEP_MEMORY,
	STEP_WORK,
	STEP_SEND,
};

/* An hour of work at 0.3 GB/s; who takes more is stuck. */
#define LIMIT_CPU_SECONDS 3600
#define LIMIT_MEMORY_BYTES (192u * 1024 * 1024)
#define LEVEL 1
/* The longest output that is compressed as well as it can be at a good pace. */
#define SMALL_BYTES (8u * 1024 * 1024)
#define CHUNK_BYTES (256u * 1024)

struct work {
	struct pack_order order;
	struct pack_answer answer;
	unsigned char *ring; /* NULL: none was given */
	unsigned char in[CHUNK_BYTES], out[CHUNK_BYTES];
};

static struct work work;

static int put(const ZSTD_outBuffer *out)
{
	if (out->pos > work.order.limit_bytes - work.answer.written_bytes)
		return -EFBIG;
	work.answer.written_bytes += out->pos;
	return fd_write_all(ROLE_FIRST + PACK_OUT, work.out, out->pos);
}

/* More than 0: bytes, as many as there is room for if so many come; 0: the end. */
static ssize_t take(void)
{
	ssize_t count = fd_read_all(ROLE_FIRST + PACK_IN, work.in, sizeof(work.in));

	if (count > 0)
		work.answer.read_bytes += (uint64_t)count;
	return count;
}

/* The piece of a slot, and behind it the room for what becomes of it. */
static const unsigned char *piece_of(uint64_t number)
{
	return work.ring + number % PACK_SLOTS * PACK_SLOT_BYTES;
}

static unsigned char *room_of(uint64_t number)
{
	return work.ring + number % PACK_SLOTS * PACK_SLOT_BYTES + PACK_PIECE_BYTES;
}

static int compress_piece(ZSTD_CCtx *context, const unsigned char *bytes, size_t length,
			  ZSTD_EndDirective how, ZSTD_outBuffer *out)
{
	ZSTD_inBuffer in = { bytes, length, 0 };
	size_t left;

	do {
		left = ZSTD_compressStream2(context, out, &in, how);
		if (ZSTD_isError(left))
			return -ENOMEM;
		if (left && out->pos == out->size)
			return -ENOBUFS;
	} while (left);
	return 0;
}

static int tell_length(const ZSTD_outBuffer *out)
{
	uint32_t length = (uint32_t)out->pos;

	work.answer.written_bytes += length;
	return fd_write_all(ROLE_FIRST + PACK_OUT, &length, sizeof(length));
}

/* More than 0: the length of the next piece; 0: the end. */
static ssize_t take_length(void)
{
	uint32_t length;
	ssize_t count = fd_read_all(ROLE_FIRST + PACK_IN, &length, sizeof(length));

	if (count <= 0)
		return count;
	if (count != sizeof(length) || !length || length > PACK_PIECE_BYTES)
		return -EPROTO;
	work.answer.read_bytes += length;
	return length;
}

struct parameter {
	ZSTD_cParameter name;
	int value;
};

/* Tables that stay in the processor's first cache: a fifth faster than level 1 alone, as small. */
static const struct parameter small[] = {
	{ ZSTD_c_compressionLevel, LEVEL },
	{ ZSTD_c_windowLog, 18 },
	{ ZSTD_c_hashLog, 12 },
};

/* Of text, a third faster again, and half as large again. */
static const struct parameter fast[] = {
	{ ZSTD_c_compressionLevel, LEVEL },
	{ ZSTD_c_windowLog, 17 },
	{ ZSTD_c_hashLog, 11 },
	{ ZSTD_c_targetLength, 4 },
};

static int set_up(ZSTD_CCtx *context, const struct parameter *parameters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(context, parameters[i].name,
							parameters[i].value)))
			return -EINVAL;
	return 0;
}

#define SET_UP(context, parameters) \
	set_up(context, parameters, sizeof(parameters) / sizeof((parameters)[0]))

/* Whoever writes so much is not to wait for us: the rest is a frame of its own. */
static int hurry(ZSTD_CCtx *context, ZSTD_outBuffer *out)
{
	int result = compress_piece(context, NULL, 0, ZSTD_e_end, out);

	return result < 0 ? result : SET_UP(context, fast);
}

static int compress_all(void)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	bool is_fast = false;
	ssize_t length = 0;
	uint64_t number = 0;
	int result = 0;

	if (!context || !work.ring || SET_UP(context, small) < 0)
		return -ENOMEM;
	for (; result == 0 && (length = take_length()) > 0; number++) {
		ZSTD_outBuffer out = { room_of(number), PACK_ROOM_BYTES, 0 };

		if (!is_fast && work.answer.read_bytes > SMALL_BYTES) {
			is_fast = true;
			result = hurry(context, &out);
		}
		if (result == 0)
			result = compress_piece(context, piece_of(number), (size_t)length,
						ZSTD_e_flush, &out);
		if (result == 0)
			result = tell_length(&out);
	}
	if (result == 0 && length == 0) {
		ZSTD_outBuffer out = { room_of(number), PACK_ROOM_BYTES, 0 };

		result = compress_piece(context, NULL, 0, ZSTD_e_end, &out);
		if (result == 0)
			result = tell_length(&out);
	}
	ZSTD_freeCCtx(context);
	return result < 0 ? result : (int)length;
}

/* ret_left: 0 where a frame has just ended. */
static int decompress_some(ZSTD_DCtx *context, size_t length, size_t *ret_left)
{
	ZSTD_inBuffer in = { work.in, length, 0 };
	ZSTD_outBuffer out;

	do {
		int result;

		out = (ZSTD_outBuffer){ work.out, sizeof(work.out), 0 };
		*ret_left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_isError(*ret_left))
			return -EBADMSG;
		result = put(&out);
		if (result < 0)
			return result;
		/* behind a frame's end an empty input would be a new one's begin */
	} while (in.pos < in.size || (*ret_left && out.pos == out.size));
	return 0;
}

static int decompress_all(void)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	size_t left = 1; /* no frame at all is none that ended */
	ssize_t count = 0;
	int result = 0;

	if (!context ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, PACK_WINDOW_LOG)))
		return -ENOMEM;
	while (result == 0 && (count = take()) > 0)
		result = decompress_some(context, (size_t)count, &left);
	ZSTD_freeDCtx(context);
	if (result < 0 || count < 0)
		return result < 0 ? result : (int)count;
	return left ? -EBADMSG : 0;
}

static enum step run(void)
{
	struct pack_answer *answer = &work.answer;
	int result;

	if (fd_read_all(ROLE_CONFIG, &work.order, sizeof(work.order)) != sizeof(work.order) ||
	    (work.order.kind != PACK_COMPRESS && work.order.kind != PACK_DECOMPRESS))
		return STEP_ORDER;
	result = work.order.kind == PACK_COMPRESS ? compress_all() : decompress_all();
	answer->code = -result;
	/* a reader of a pipe sees its end only then */
	(void)close(ROLE_FIRST + PACK_OUT);
	if (message_send(ROLE_CHANNEL, result < 0 ? PACK_FAILED : PACK_DONE, answer,
			 sizeof(*answer), NULL, 0) < 0)
		return STEP_SEND;
	return result < 0 ? STEP_WORK : STEP_DONE;
}

int main(void)
{
	const struct jail jail = {
		.keep = ROLE_FIRST + PACK_FD_COUNT,
		.cpu_seconds = LIMIT_CPU_SECONDS,
		.memory_bytes = LIMIT_MEMORY_BYTES,
		.filter = SECCOMP_VARIANT_PACK,
	};
	/* nothing can be mapped afterwards; what lies in it is not looked at before */
	void *ring = mmap(NULL, PACK_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  ROLE_FIRST + PACK_RING, 0);
	int failed = jail_enter(&jail);

	work.ring = ring == MAP_FAILED ? NULL : ring;

	jail_leave(failed ? failed : (int)run());
}
