/*
 * Which directory is the workspace, and where in it the command starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;
struct caller;

struct root {
	const char *path; /* clean, real (no link in it), a directory of the caller's own */
	const char *cwd;  /* clean, real, path itself or below it */
	uint64_t device, inode;
};

/*
 * workspace NULL: the current directory's git root, or the current directory. cwd NULL: the
 * current directory where it lies in the workspace, else the workspace. Never /, the caller's
 * home or an ancestor of it, nor a directory of somebody else: refused with the remedy.
 */
int root_find(const struct caller *host, const char *workspace, const char *cwd,
	      struct arena *arena, struct root *ret_root, struct error *error);

/* A path as the user gave it, made absolute and real; -errno with a message that names it. */
int root_resolve(const char *path, struct arena *arena, const char **ret_path, struct error *error);

/*
 * True for where programs keep the caller's keys, and for what holds such a place. Nobody works
 * there; one gets there by a link that a task left in a project. home may be NULL.
 */
bool root_holds_keys(const char *home, const char *path);
