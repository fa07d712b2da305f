/*
 * Package caches: the host's is read, the project's own is written. Each cache row is an overlay
 * (or, where the host has none, the project's own directory alone). A row costs the start
 * 0.1-0.4 ms, so there is one only for a cache that the host has, or that the project is going to
 * use by the look of its top directory (package.json, Cargo.toml and the like); other tools keep
 * their caches in the private home, as long as the task lives.
 *
 * The project's own layers live in <state>/caches/<project>/<cache>/{upper,work}; <project> is
 * derived from the workspace's path. They are made here with mode 0700, checked at each start to
 * be real directories of the caller's (for a caller that is the host's root <cache> and what is
 * in it belong to the task's host id, as which the overlay is mounted). What an overlay leaves in
 * `work` (work/work, mode 000) is the kernel's and is cleared by the next mount.
 */
#pragma once

#include "base/sha256.h"

/* Digits of the workspace's hash: 64 bits keep one person's projects apart. */
#define CACHE_PROJECT_DIGITS 16

struct arena;
struct error;
struct caller;
struct policy;

/*
 * Adds PATH_CACHE rows (rule cache.overlay). state_path is the clean path of state_fd. The
 * policy's home and workspace are set. -EPERM where a layer's directory belongs to somebody else,
 * -ENOTDIR where it is a link or a file.
 */
int cache_view(const struct caller *host, int state_fd, const char *state_path, struct arena *arena,
	       struct policy *policy, struct error *error);

/* Whose caches the directory holds that has this name; NULL where that is not on record. */
const char *cache_workspace(int project_fd, const char *project, struct arena *arena);

/* The name of a workspace's directory among the caches. */
void cache_project(const char *workspace, char ret_project[static SHA256_HEX_BYTES]);
