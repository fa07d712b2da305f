/*
 * The system part of a view: programs and libraries of the host, read-only, and a small /etc, of
 * which what is small and has not changed a moment ago is shown by copy (base/copy.h).
 */
#pragma once

#include <stdbool.h>

struct arena;
struct error;
struct caller;
struct policy;

/*
 * Adds rows for what exists on this host. The policy's identity (user, uid, gid, home, shell)
 * must be set; its rules are added to.
 */
int system_view(const struct caller *host, struct arena *arena, struct policy *policy,
		struct error *error);

/*
 * True for a path in a directory that holds programs and nothing else, which a policy with
 * exec.strict does not show.
 */
bool system_holds_programs(const char *path);
