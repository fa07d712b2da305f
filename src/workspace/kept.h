/*
 * Answers of a role that are kept by the name of what they were made from, in the state directory
 * or where root keeps what is for everybody: a start asks the role only for what is new. Losing
 * one costs a role and nothing else. What is read is the word of whoever the folder belongs to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct sha256;
struct stat;

/*
 * For a name: what changes when a file is changed in place or replaced, so that an answer is of the
 * file as it was.
 */
void kept_hash_file(struct sha256 *hash, const struct stat *status);

/* Opens (and makes) the folder of answers: a descriptor, or a negative errno. */
int kept_open(int state_fd, const char *folder);

/* The answer's bytes, the arena's with a NUL behind them; NULL: none of the folder's owner. */
char *kept_read(int folder_fd, const char *name, size_t limit_bytes, struct arena *arena,
		size_t *ret_length);

/*
 * Keeps an answer in a folder of one's own, and at most `others` of those before it; which of them
 * is of no matter.
 */
void kept_write(int folder_fd, const char *name, const void *bytes, size_t length, unsigned others);

/* Keeps an answer by another name as well. */
bool kept_link(int folder_fd, const char *name, const char *other);
