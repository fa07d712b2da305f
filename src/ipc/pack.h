/*
 * The edge supervisor-pack: what bawn-pack is asked, and what it answers. It turns bytes of a task
 * into another form (Zstandard, RFC 8878) and back; it knows no names of files.
 *
 * Its configuration is a struct pack_order. To decompress, PACK_IN is what it reads from, to the
 * end of file, and PACK_OUT what it writes to.
 *
 * To compress, bytes go through memory of both (PACK_RING), since a pipe would copy each twice: it
 * has PACK_SLOTS slots, each with room for a piece and for what becomes of it. PACK_IN is a pipe of
 * lengths (uint32_t): piece n lies in slot n % PACK_SLOTS. PACK_OUT is one back, a length for each
 * piece, and behind the end of PACK_IN one more. No more than PACK_SLOTS - 1 pieces are on their
 * way, so that there is room for that last one.
 *
 * It answers with one message and ends: PACK_DONE and a struct pack_answer; or PACK_FAILED and the
 * same, with the errno of what failed.
 */
#pragma once

#include <stdint.h>

enum pack_kind { PACK_COMPRESS = 1, PACK_DECOMPRESS = 2 };

struct pack_order {
	uint32_t kind;
	uint32_t reserved;
	uint64_t limit_bytes; /* of what is written; more is a failure: EFBIG */
};

/* What there is to decompress comes without the last one. */
enum { PACK_IN, PACK_OUT, PACK_RING, PACK_FD_COUNT };

#define PACK_SLOTS 4u
#define PACK_PIECE_BYTES (256u * 1024)
/* A piece that cannot be compressed, with the heads of frames and blocks. */
#define PACK_ROOM_BYTES (PACK_PIECE_BYTES + 16u * 1024)
#define PACK_SLOT_BYTES (PACK_PIECE_BYTES + PACK_ROOM_BYTES)
#define PACK_RING_BYTES (PACK_SLOTS * PACK_SLOT_BYTES)

enum { PACK_DONE = 1, PACK_FAILED = 2 };

struct pack_answer {
	uint64_t read_bytes, written_bytes;
	int32_t code; /* EBADMSG: no Zstandard frame, or one that wants more memory than it gets */
	uint32_t reserved;
};

/* 8 MiB: what the strongest usual level asks of a reader; ours asks for less. */
#define PACK_WINDOW_LOG 23
