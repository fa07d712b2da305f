/*
 * The edge supervisor-pack: what bawn-pack is asked, and what it answers. It reads bytes of a task
 * and writes them in another form (Zstandard, RFC 8878); it knows no names of files.
 *
 * Its configuration is a struct pack_order. ROLE_FIRST is what it reads from, to the end of file,
 * and the next one what it writes to. It answers with one message and ends: PACK_DONE and a struct
 * pack_answer; or PACK_FAILED and the same, with the errno of what failed.
 */
#pragma once

#include <stdint.h>

enum pack_kind { PACK_COMPRESS = 1, PACK_DECOMPRESS = 2 };

struct pack_order {
	uint32_t kind;
	uint32_t reserved;
	uint64_t limit_bytes; /* of what is written; more is a failure: EFBIG */
};

enum { PACK_IN, PACK_OUT, PACK_FD_COUNT };

enum { PACK_DONE = 1, PACK_FAILED = 2 };

struct pack_answer {
	uint64_t read_bytes, written_bytes;
	int32_t code; /* EBADMSG: no Zstandard frame, or one that wants more memory than it gets */
	uint32_t reserved;
};

/* 8 MiB: what the strongest usual level asks of a reader; ours asks for less. */
#define PACK_WINDOW_LOG 23
