/*
 * What stands in a changed file: its digest, and what a person should know before it is applied.
 * Asked for row by row, since it costs reading the file. Reads regular files only, at most so many
 * bytes, and no holes.
 */
#pragma once

#include "base/sha256.h"
#include "workspace/stage.h"

/* A third of a second of work; what is larger has no digest. */
#define STAGE_LIMIT_HASH_BYTES (512ull * 1024 * 1024)
/* As far as a file is looked through for credentials and NUL bytes. */
#define STAGE_LIMIT_LOOK_BYTES (16ull * 1024 * 1024)

/*
 * SHA-256 of one side of a change, during the call that handed it over. Returns NULL with the
 * digest set, or why there is none (static words).
 */
const char *stage_hash(const struct stage_change *change, enum stage_which which,
		       char ret_sha256[static SHA256_HEX_BYTES]);

/* The same of an open file that is to have this size, as bytes. */
const char *stage_digest(int fd, uint64_t size, unsigned char ret_digest[static SHA256_BYTES]);

/* The marks of the new file's content; 0 where there is none. */
unsigned stage_look(const struct stage_change *change);
