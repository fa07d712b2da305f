/*
 * The difference of two texts by lines, as a unified diff has it (POSIX, diff -u): what patch(1)
 * and `git apply` make the new text of, byte for byte. Pure.
 *
 * The shortest script by Myers' algorithm in linear space (Algorithmica 1, 1986, 251-266), without
 * recursion. Texts are foreign: work is bounded, and where it is used up the script is correct but
 * no longer the shortest, in the end "all of it is replaced".
 *
 * Lines are bytes: whoever shows them to a person escapes them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Lock files of large projects have some megabytes; two texts and their tables need 32 MB. */
#define TEXT_DIFF_LIMIT_BYTES (4u * 1024 * 1024)
#define TEXT_DIFF_LIMIT_LINES 200000u
/* Unchanged lines around a change. */
#define TEXT_DIFF_CONTEXT 3u
/* How far one search goes before it is content with what it has; half a millisecond. */
#define TEXT_DIFF_LIMIT_COST 256u
/* Steps of all searches; a quarter of a second. */
#define TEXT_DIFF_LIMIT_WORK 50000000u

struct text {
	const char *bytes;
	size_t length;
};

enum text_diff_line {
	TEXT_DIFF_HUNK, /* "@@ -1,2 +1,3 @@" */
	TEXT_DIFF_SAME,
	TEXT_DIFF_REMOVED,
	TEXT_DIFF_ADDED,
	TEXT_DIFF_NO_NEWLINE, /* "\ No newline at end of file": of the line before */
};

struct text_diff {
	/*
	 * Takes a line without its newline and without the sign in front. 0, or a negative errno
	 * that ends the call. NULL: the lines are only counted.
	 */
	int (*take)(void *context, enum text_diff_line kind, const char *bytes, size_t length);
	void *context;
	unsigned work; /* 0: TEXT_DIFF_LIMIT_WORK; tests set less */
};

struct text_diff_count {
	size_t added, removed; /* lines */
	bool is_coarse;	       /* the work was used up */
};

/* True where a text has a NUL, and so is no lines of text. */
bool text_is_binary(struct text text);

/* 0; -EFBIG beyond the limits, -ENOMEM. Equal texts have no lines. */
int text_diff(struct text before, struct text after, const struct text_diff *diff,
	      struct text_diff_count *ret_count) __attribute__((warn_unused_result));
