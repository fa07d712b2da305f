/*
 * The supervisor's side of bawn-pack (ipc/pack.h): bytes on their way to a compressed file, which
 * is written here, and back from one. The role is one process for one file. Whoever does not hear
 * of it for PACK_WAIT_MS gives it up; then, as where it is missing, the caller does without.
 */
#pragma once

#include "ipc/role.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* It works at hundreds of megabytes a second: after this it was stopped, or its disk was. */
#define PACK_WAIT_MS 30000

struct pack {
	struct role role;
	int pipe;    /* owned: lengths of pieces go in, or what was compressed comes out */
	int lengths; /* owned: of what became of the pieces */
	int out_fd;  /* borrowed */
	unsigned char *ring;
	size_t filled; /* of the piece that is next */
	uint64_t sent, heard, written_bytes;
	int failure; /* of writing to out_fd */
};

#define PACK_NONE ((struct pack){ .role = ROLE_NONE, .pipe = -1, .lengths = -1, .out_fd = -1 })

/* What is fed will be written to out_fd, compressed; out_fd is borrowed until pack_end(). */
int pack_begin(int out_fd, struct pack *ret_pack, struct error *error)
	__attribute__((warn_unused_result));
/* -EPIPE: it has ended; pack_finish() tells why. -ETIMEDOUT. */
int pack_feed(struct pack *pack, const void *bytes, size_t length)
	__attribute__((warn_unused_result));
/*
 * Nothing more comes. ret_bytes: the size of the file. -ENOSPC and others as writing it gave them.
 */
int pack_finish(struct pack *pack, uint64_t *ret_bytes) __attribute__((warn_unused_result));

/* Begins to read a compressed file, from its offset on. limit_bytes: more is a failure. */
int unpack_begin(int in_fd, uint64_t limit_bytes, struct pack *ret_pack, struct error *error)
	__attribute__((warn_unused_result));
/* The count; 0 at the end, which is a whole one only if unpack_finish() says so. */
ssize_t unpack_read(struct pack *pack, void *bytes, size_t length)
	__attribute__((warn_unused_result));
/* -EBADMSG: not what we compress; -EFBIG: beyond the limit; -EIO: the role failed. */
int unpack_finish(struct pack *pack) __attribute__((warn_unused_result));

/* Ends what still runs; accepts PACK_NONE. */
void pack_end(struct pack *pack);

#define CLEANUP_PACK __attribute__((cleanup(pack_end)))
