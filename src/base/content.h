/* The content of one regular file into another. */
#pragma once

#include <sys/types.h>

/*
 * Copies what the file has, with its holes: shared where the file system can, else only data is
 * read. `to` is empty and open for writing. 0, or a negative errno (-ENOSPC and so on).
 */
int content_copy(int from_fd, int to_fd, off_t size_bytes) __attribute__((warn_unused_result));
