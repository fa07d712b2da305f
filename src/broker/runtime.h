/*
 * The runtime directory, where the sockets of live tasks lie: <runtime>/<task id>, 0600.
 *
 * It is /run/user/UID/bawn where /run/user/UID is the caller's own and 0700 (systemd makes it so),
 * else <state>/run; with --state-dir always that. 0700, the caller's own, no link, else refused:
 * whoever could write there could put a socket of his own in the place of a task's.
 *
 * Sockets are bound and connected by way of /proc/self/fd/N/<id>, since sun_path has 108 bytes and
 * the state directory's path may be longer (unix(7)). A socket without a locked task directory is a
 * leftover: any start and `bawn ps` remove it.
 */
#pragma once

#include <stdbool.h>

struct arena;
struct error;
struct caller;
struct state;

/* At most this many leftovers are looked at per call, as for STATE_REAP_LIMIT. */
#define RUNTIME_REAP_LIMIT 64

enum runtime_use {
	RUNTIME_MAKE, /* a supervisor: made where it is missing */
	RUNTIME_LOOK, /* a client: -ENOENT where it is missing */
};

struct runtime {
	const char *path; /* for messages */
	int fd;		  /* owned */
};

#define RUNTIME_NONE ((struct runtime){ .fd = -1 })

/*
 * is_default: the state directory is the default one (no --state-dir). -ENOENT: missing (LOOK);
 * -EPERM, -ENOTDIR: foreign, open to others, a link, with a message that names it and the remedy.
 */
int runtime_open(const struct caller *host, const struct state *state, bool is_default,
		 enum runtime_use use, struct arena *arena, struct runtime *ret_runtime,
		 struct error *error) __attribute__((warn_unused_result));

/* Removes sockets whose task has no supervisor. Failures are left for the next. */
void runtime_reap(const struct runtime *runtime, const struct state *state);

void runtime_close(struct runtime *runtime);

#define CLEANUP_RUNTIME __attribute__((cleanup(runtime_close)))
