/*
 * The way to a policy file or to a store of them: who could lead it elsewhere is who could have
 * written the file. So each directory and each link on it must be the caller's or root's, and
 * nobody else's to change; where a task could change one (its own workspace) is judged by whoever
 * knows the view.
 */
#pragma once

#include "workspace/git_way.h"

struct arena;
struct caller;
struct error;

/*
 * Where `path` (relative: from the current directory) leads to, and the links on the way. -EPERM
 * for what another could change, -ENOENT and so on; ret_way->real as of git_way_find().
 */
int policy_way_find(const struct caller *host, const char *path, struct arena *arena,
		    struct git_way *ret_way, struct error *error);

/* The end of a way, or a link on it, that lies in the directory; NULL: none does. */
const char *policy_way_lies_in(const char *real, const char *const *links, size_t count,
			       const char *directory);
