/*
 * Paths as text. Pure: nothing here looks at a file system.
 *
 * A *clean* path is absolute, has no empty, "." or ".." component and no trailing slash ("/"
 * itself excepted). ".." is refused rather than folded, because folding it as text is wrong where
 * a component is a symbolic link.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Linux's PATH_MAX counts the NUL; longer ones cannot be named in one system call. */
#define PATH_LIMIT_BYTES 4096

bool path_is_absolute(const char *path);

/* True for a clean path as defined above. */
bool path_is_clean(const char *path);

/* True when path is `root` or lies under it; both clean. */
bool path_is_under(const char *path, const char *root);

/* What follows root in path, without a leading slash ("" for root itself); path is under root. */
const char *path_below(const char *path, const char *root);

/*
 * Joins and cleans: `path` alone when it is absolute, else below `base` (clean).
 * NULL when there is a ".." component, when it is empty or too long, or when memory ran out.
 */
char *path_clean(struct arena *arena, const char *base, const char *path);

/*
 * As path_clean(), but ".." in front of a relative path leads up from base. That must be free of
 * links, as getcwd(2) and realpath(3) give it; behind a name ".." stays refused, since the name may
 * be a link.
 */
char *path_clean_up(struct arena *arena, const char *base, const char *path);

/* Directory part of a clean path ("/" for "/" and "/a"). */
char *path_parent(struct arena *arena, const char *path);

/* Last component of a clean path ("" for "/"). */
const char *path_name(const char *path);

/* Number of components: 0 for "/". */
size_t path_depth(const char *path);
