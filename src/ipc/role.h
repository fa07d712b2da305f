/*
 * Roles: small programs of ours that do one thing with foreign bytes or secrets, each exec'd anew
 * with a clean environment and nothing but its edge (edges.def).
 *
 * A role starts with 0, 1 and 2 on /dev/null, its configuration in a sealed memfd (ROLE_CONFIG),
 * one end of a SOCK_SEQPACKET pair (ROLE_CHANNEL, ipc/message.h), and what else is handed to it
 * from ROLE_FIRST on; signals that can be blocked are. It jails itself before it looks at any of
 * these. The program is found beside our own executable or in the installed directory, never by
 * PATH; a file that somebody else could have changed is refused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

enum { ROLE_CONFIG = 3, ROLE_CHANNEL = 4, ROLE_FIRST = 5 };

/* More descriptors than the largest role needs; a fault of the caller above. */
#define ROLE_LIMIT_FDS 8u

enum edge {
#define EDGE(from, to, transport, what) EDGE_##from##_##to,
#include "ipc/edges.def"
#undef EDGE
	EDGE_COUNT,
};

struct edge_text {
	const char *from, *to, *transport, *what;
};

const struct edge_text *edge_text(enum edge edge);

/* A running role. The owner ends it with role_end(). */
struct role {
	pid_t pid;
	int pidfd;
	int channel;
};

#define ROLE_NONE ((struct role){ .pid = -1, .pidfd = -1, .channel = -1 })

/* Bytes in a memfd that nobody can change any more. Returns the descriptor or a negative errno. */
int role_config(const void *bytes, size_t length);

/* Opens a program of ours (O_PATH), found as said above. */
int role_open_program(const char *name, int *ret_program_fd, struct error *error);

/* Opens the program of the role at the far end of an edge. */
int role_open(enum edge edge, int *ret_program_fd, struct error *error);

/* Starts an opened program. All descriptors stay the caller's. */
int role_start(int program_fd, enum edge edge, int config_fd, const int *fds, unsigned fd_count,
	       struct role *ret_role, struct error *error);

/* Both: finds and starts the role at the far end of an edge. */
int role_spawn(enum edge edge, int config_fd, const int *fds, unsigned fd_count,
	       struct role *ret_role, struct error *error);

/* Waits for a role that has closed its edge. Gives the status of waitpid(2), or negative errno. */
int role_wait(struct role *role);

/* Kills what still runs, waits for it and closes the edge. Accepts ROLE_NONE. */
void role_end(struct role *role);

#define CLEANUP_ROLE __attribute__((cleanup(role_end)))
