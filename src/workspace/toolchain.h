/*
 * Toolchains that live in the caller's home: found by their well-known places, shown read-only,
 * their credential files absent. Places that variables (NVM_DIR, CARGO_HOME and the like) name are
 * not looked at: an agent can set those.
 *
 * A place behind a symbolic link is shown both where the home has it and at its real path, where
 * that path may be shown (see place_find()). Configuration files are shown only while nothing in
 * them looks like a secret.
 */
#pragma once

struct arena;
struct error;
struct caller;
struct policy;

/*
 * Adds PATH_READ rows (rule toolchain.read) for what exists, and PATH_HIDE rows (rule
 * toolchain.credential) for credential files that exist inside of those. The policy's home is
 * set; its workspace is never below a path that this shows through a link.
 */
int toolchain_view(const struct caller *host, struct arena *arena, struct policy *policy,
		   struct error *error);
