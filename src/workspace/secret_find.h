/*
 * Secrets in the workspace: files that are named like such (policy/secret.h) are hidden, rule
 * workspace.secret, unless the caller shows them.
 *
 * They are looked for at every start, level by level from the top of the workspace: directories of
 * dependencies and of what tools made are left out. In a usual tree that costs a start some tenths
 * of a millisecond. The search ends at its limits, which is told (is_cut): what lies deeper is
 * shown, and `--hide GLOB` goes everywhere, and costs what it does. An empty file holds nothing.
 * What was found is remembered in <state>/secrets/<project>, and looked at first: no task can fill
 * the tree so that the next one sees it.
 *
 * What git has already stays visible: a tracked file whose content is the one of the index can be
 * read from the objects anyway, and hidden it would look changed. A tracked file with another
 * content is hidden by a mask that cannot be read, so that git fails instead of taking it for gone.
 * Any other is covered by a link that leads nowhere (PATH_KIND_LINK): programs find no such file.
 * For the box's git these names are ignored, so that `git add` never takes the link for the file.
 *
 * A second hard link, a copy, and a file that the host puts there later stay as they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct error;
struct git_found;
struct policy;

/* Directories looked into: each costs 5 us, all of them 20 ms. */
#define SECRET_LIMIT_DIRECTORIES 4096u
/* Names in them: 50 ns each. */
#define SECRET_LIMIT_NAMES 262144u
/* Files hidden: each costs a mount. With more there is no start. */
#define SECRET_LIMIT_FILES 1024u

struct secret_found {
	const char **tracked; /* paths that were left visible, since git has them */
	size_t tracked_count;
	bool is_cut; /* there was more to look through than the limits */
};

/*
 * Adds the rows; -E2BIG where there are more files to hide than the limit. The policy has all rows
 * of options; what one of them speaks of is left to it.
 */
int secret_find(const struct git_found *git, int state_fd, struct arena *arena,
		struct policy *policy, struct secret_found *ret_found, struct error *error);
