/*
 * Decompression of zlib streams (RFC 1950, RFC 1951) without a library, for bytes that somebody
 * hostile may have written: bounded memory, nothing allocated, each byte checked. Where the
 * stream's file grows or shrinks meanwhile the stream is a broken one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Takes some of the content; a negative errno ends it all and is given back. */
typedef int inflate_sink(void *context, const unsigned char *bytes, size_t length);

/*
 * The one stream that begins at *offset of a file. On success *offset is where it ended. -EBADMSG:
 * it is no stream, or its checksum does not hold; -EFBIG: its content is longer than limit_bytes;
 * else the read's or the sink's error.
 */
int inflate_file(int fd, uint64_t *offset, uint64_t limit_bytes, inflate_sink *sink, void *context)
	__attribute__((warn_unused_result));

/* Adler-32 of RFC 1950; begins with 1. */
uint32_t inflate_adler(uint32_t sum, const unsigned char *bytes, size_t length);
