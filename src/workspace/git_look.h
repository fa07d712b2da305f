/*
 * What a git directory executes or obeys, and where in the workspace that lies: targets of
 * core.hooksPath and include.path, links among its hooks and configuration. An overlay on the git
 * directory does not cover them; each becomes a PATH_PROTECT row (rule workspace.protect),
 * read-only in the box. A file that has a second hard link could be changed by its other name, and
 * is refused.
 *
 * All of it is foreign: sizes, counts and links are bounded, only regular files are read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct caller;
struct policy;
struct stat;

/* A repository's configuration with thousands of branches; what is larger is refused. */
#define GIT_LOOK_LIMIT_CONFIG_BYTES (1024u * 1024)
/* Files that include one another; git stops at 10 levels. */
#define GIT_LOOK_LIMIT_INCLUDES 64u
/* Hooks that git knows are some thirty. */
#define GIT_LOOK_LIMIT_HOOKS 512u

struct git_look {
	const struct caller *host;
	struct arena *arena;
	struct policy *policy;
	struct error *error;
	uint32_t rule;
	/* clean paths in the workspace that would be obeyed and do not exist: uncovered */
	const char **absent;
	size_t absent_count;
};

/*
 * Makes what is at the path read-only in the box, where it lies in what the task may write in place
 * and no option says otherwise. -EMLINK for a file with a second hard link.
 */
int git_look_protect(struct git_look *look, const char *path, const struct stat *status);

/* The same for what a text names, relative to a clean directory, and for all links on the way. */
int git_look_way(struct git_look *look, const char *from, const char *text);

/* The same where the text names a directory of hooks, for what each of those leads to, too. */
int git_look_target(struct git_look *look, const char *from, const char *text);

/*
 * All of the above for one git directory, its descriptor given; worktree (clean, real) is where its
 * hooks run, NULL where that is not known.
 */
int git_look_directory(struct git_look *look, const char *path, int fd, const char *worktree);

/* The same for the caller's own and the system's configuration. */
int git_look_callers(struct git_look *look, const char *worktree);

/*
 * core.worktree of a git directory as a clean real path; NULL in ret_worktree where it has none or
 * leads nowhere.
 */
int git_look_worktree(struct git_look *look, const char *path, const char **ret_worktree);

/*
 * The content of a small regular file below the directory, without the line ends behind it:
 * -ENOENT, -EINVAL where it is no such file or has a NUL, -EFBIG above `room` (with its NUL).
 */
int git_look_read(int directory_fd, const char *name, char *ret_text, size_t room);
