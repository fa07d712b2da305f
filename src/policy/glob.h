/*
 * Path patterns as in a policy's globs. Pure; linear in pattern x path, no recursion.
 *
 *   ?       one character but '/'          *    any run without '/'
 *   [a-z]   a set ([!...] or [^...] negated)   **   as a whole component: any number of
 *   \c      c itself, in a set too                  components, none included
 * Matching is on bytes; a leading dot is matched like any other character. Paths are relative
 * (no leading slash) and clean; so are patterns. Since "**" may stand for nothing, "a"
 * followed by it matches "a" itself too. In a set a ']' at its front and a '-' at its ends stand
 * for themselves.
 */
#pragma once

#include <stdbool.h>

/* A pattern longer than this or with more components is refused: it is matched per file. */
#define GLOB_LIMIT_BYTES 1024
#define GLOB_LIMIT_COMPONENTS 64

/* True when text has a pattern character at all. */
bool glob_is_pattern(const char *text);

/*
 * 0, or -EINVAL: empty, too long, not clean, a set that is not closed within its component, has a
 * reversed range or a class like [:alpha:], "**" not alone in its component, trailing '\'.
 */
int glob_check(const char *pattern);

/* True when the whole path matches; false for a pattern that glob_check() refuses. */
bool glob_match(const char *pattern, const char *path);

/*
 * Whether a pattern, or a path without wildcards, is the path or something that it lies in. Both
 * relative to the same directory; false for a path longer than PATH_LIMIT_BYTES.
 */
bool glob_covers(const char *pattern, const char *path);

/*
 * True when some path below the directory `path` (clean, relative, "" = the root) could match:
 * lets a tree walk skip directories. False for a pattern that glob_check() refuses.
 */
bool glob_can_match_below(const char *pattern, const char *path);
