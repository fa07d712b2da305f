/*
 * Facts about the caller: who runs bawn, by the kernel and the password database, never by
 * variables (an agent can set those).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

struct caller {
	uint32_t uid, gid;
	bool root;	  /* uid 0 of the host's own user namespace, not of a nested one */
	bool inside;	  /* we run inside of a box already */
	const char *user; /* from the password database; "user" where it has no entry */
	const char *home; /* clean and existing, else NULL */
	/* the same without links, for comparison with real paths; NULL where there is none */
	const char *real_home;
	const char *shell;
	bool known; /* the password database has the caller */
};

/*
 * True when the caller may write to a cgroup that it is in (systemd delegates to users), or when
 * that cannot be told. Asked for only where it matters: it reads /proc and looks at some files.
 */
bool host_owns_cgroup(const struct caller *host);

int host_gather(struct arena *arena, struct caller *ret_host, struct error *error);
