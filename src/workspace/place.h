/*
 * Well-known places in the caller's home, as toolchains and caches look for them. The home is
 * the password database's; variables that move a place elsewhere are not trusted.
 */
#pragma once

#include "policy/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct caller;

struct home {
	int fd;		   /* O_PATH; -1: there is no home */
	const char *path;  /* without symbolic links */
	const char *avoid; /* a shown path never lies above this one (the workspace); may be NULL */
	uint32_t uid;
	/* names in the home, each NUL-ended, when it has few enough; else NULL */
	const char *names;
	size_t names_length;
};

struct place {
	const char *path; /* without symbolic links */
	enum path_kind kind;
	uint64_t device, inode;
	bool linked; /* a symbolic link on the way leads it to another path than the name says */
};

/* The caller owns ret_home->fd. A caller without a home is no error. */
int place_home(const struct caller *host, const char *avoid, struct arena *arena,
	       struct home *ret_home, struct error *error);

/* False when the home surely has no such first component: spares a look-up for each place. */
bool place_may_exist(const struct home *home, const char *below);

/*
 * Finds a directory or regular file below the home. -ENOENT where there is none; -EPERM where it
 * belongs to another user than the caller or root, or where links lead to a path that must not
 * be shown: the home, the path to avoid, what is above them, the kernel's file systems, or
 * something of another name that is no system's program.
 */
int place_find(const struct home *home, const char *below, struct arena *arena,
	       struct place *ret_place);
