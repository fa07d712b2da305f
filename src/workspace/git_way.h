/*
 * The way to what a path names: each symbolic link on it, and where it ends. What a git file, a
 * link or a value of git's configuration names is foreign text, and each link on the way is as good
 * a place to lead git elsewhere as the text itself. Nothing is opened but directories' names
 * (lstat(2), readlink(2)); all is bounded.
 */
#pragma once

#include <stddef.h>

struct arena;
struct stat;

/* As the kernel's own (path_resolution(7)). */
#define GIT_WAY_LIMIT_LINKS 40

struct git_way {
	const char *real;   /* clean, without links; the first name that is missing; else NULL */
	const char **links; /* clean paths of the links, each in a directory without links */
	size_t link_count;
};

/*
 * Follows `text` (relative: from the clean directory). ret_way is set in every case, as far as the
 * way went; ret_status is that of the end. -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EACCES and
 * others.
 */
int git_way_find(struct arena *arena, const char *from, const char *text, struct git_way *ret_way,
		 struct stat *ret_status);
