/* The content of one regular file into another. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * Copies what the file has, with its holes: shared where the file system can, else only data is
 * read. `to` is empty and open for writing. 0, or a negative errno (-ENOSPC and so on).
 */
int content_copy(int from_fd, int to_fd, off_t size_bytes) __attribute__((warn_unused_result));

/*
 * The same, and no more than so many bytes are read: -EFBIG where there is more. *left_bytes
 * becomes what is left of them. 1 where all is shared, which takes nothing of it.
 */
int content_copy_within(int from_fd, int to_fd, off_t size_bytes, uint64_t *left_bytes)
	__attribute__((warn_unused_result));
