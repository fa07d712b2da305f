/*
 * --hide and --protect: names and globs become rows.
 *
 * Arguments speak of paths inside of the box, so these rows are made last, when the view shows
 * all that it will. Globs match what exists at the start of a task: a walk through the host's
 * tree. In a tree that is written in place (PATH_WRITE) hiding and protecting work on one name;
 * a file with a second hard link is refused there, and of files in a hidden directory the other
 * links are not looked for.
 */
#pragma once

#include "policy/view.h"

#include <stdint.h>

struct arena;
struct error;
struct policy;

/* A tree larger than this is not walked for globs: the start would take seconds. */
#define HIDE_LIMIT_ENTRIES 200000u
/*
 * Nor is one deeper than this: no project is, and every directory above a hidden name in a
 * writable tree costs a mount. A tree that is deeper where the glob could match is an error.
 */
#define HIDE_LIMIT_DEPTH 256u

/*
 * Adds rows of the class (PATH_HIDE or PATH_PROTECT) for one argument: a clean absolute path, one
 * relative to the workspace, or a glob. A glob is expanded by a walk below the deepest shown path
 * without pattern characters (openat2 beneath, no link followed, hostile trees neither hang nor
 * fool it); matches are added by name, directories without what lies below them. -E2BIG names the
 * limit when the tree is larger than HIDE_LIMIT_ENTRIES or deeper than HIDE_LIMIT_DEPTH.
 *
 * A link is hidden together with what it leads to. A name that does not exist is hidden all the
 * same (PATH_KIND_MISSING), and cannot be protected: -ENOENT, also for a glob without a match.
 * -EMLINK for a file with several hard links, but for one to be protected that is not written in
 * place; -EINVAL for a malformed argument and for the workspace or a path above it.
 */
int hide_view(enum path_class class, const char *argument, uint32_t rule, struct arena *arena,
	      struct policy *policy, struct error *error);

/*
 * After all names: an input (policy/input.h) may lie in what else is shown, or above it. What is
 * hidden there by its name is so in the input, too, but for an input that it is itself: that was
 * asked for.
 */
int hide_inputs(struct arena *arena, struct policy *policy, struct error *error);
