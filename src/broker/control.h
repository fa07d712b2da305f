/*
 * The supervisor's side of the control protocol (ipc/control.h): a listening socket in the runtime
 * directory, its connections, and a table of operations that the task's event loop implements.
 *
 * One `struct control` per task, made late (an action that ends at once needs none): its owner
 * polls one descriptor, calls control_step() when it is readable, and control_close() at the end,
 * which removes the socket. Nothing here blocks and no client can hold the loop: a reply that does
 * not find room closes its connection. Who may connect: the same user (SO_PEERCRED), from a process
 * in our own pid and user namespaces; so a box could not, even if it saw the socket.
 *
 * **Peers.** An exec or an attach keeps its connection as a `struct control_peer`, from the call of
 * ops->exec() or ops->attach() until control_result(), control_refuse() or ops->gone(), whichever
 * is first; the pointer is void then. The others are answered and forgotten.
 *
 * **Calls back** come from control_step() alone. They may call every function of this header but
 * control_step() and control_close(). Errors: negative errno, with a message for the person at the
 * other end.
 */
#pragma once

#include "ipc/control.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct control;
struct control_peer;
struct error;
struct info;

/*
 * Verbs of one person; beyond it the oldest that has not asked for anything goes, or the new one.
 */
#define CONTROL_LIMIT_PEERS 64
/* Per step: limits and signals are looked at between. */
#define CONTROL_STEP_MESSAGES 32

enum control_end {
	CONTROL_BY_END,	 /* `task end`: SIGTERM, grace, kill */
	CONTROL_BY_STOP, /* `stop`: the same, asked for by an operator */
	CONTROL_BY_KILL, /* at once */
};

/* An exec as it came. What is not taken over is released after the call. */
struct control_exec {
	struct control_request request;
	struct arena arena; /* owns the request's memory; take it by copying and zeroing it */
	int fds[3];	    /* in (-1: /dev/null), out, err; TAKE_FD() */
};

struct control_ops {
	/* Fills it; arena holds what it points to, until the reply is made. */
	int (*status)(void *task, struct arena *arena, struct info *ret_info);
	/*
	 * Starts an action. 0: it will be started, control_started() and control_result() follow
	 * (or came already); the peer is kept. Negative: refused with the error's message.
	 */
	int (*exec)(void *task, struct control_peer *peer, struct control_exec *exec,
		    struct error *error);
	/*
	 * Joins a running action ("": the newest); fds as above. 0 or negative as for exec; may be
	 * NULL.
	 */
	int (*attach)(void *task, struct control_peer *peer, const char *action, int fds[static 3],
		      struct error *error);
	void (*signal)(void *task, struct control_peer *peer, int number);
	void (*window)(void *task, struct control_peer *peer, const struct winsize *window);
	/* The client is about to be stopped (^Z): its terminal will be another's. */
	void (*pause)(void *task, struct control_peer *peer);
	/* The connection of an exec or an attach ended before its result. */
	void (*gone)(void *task, struct control_peer *peer);
	/* Puts it on record; 0 when it is. */
	int (*note)(void *task, const struct control_note *note, struct error *error);
	int (*freeze)(void *task, struct error *error);
	int (*thaw)(void *task, struct error *error);
	/*
	 * Begins the end; again: a shorter grace or a kill counts, else nothing. grace 0: its own.
	 */
	int (*end)(void *task, enum control_end by, uint64_t grace_ns, struct error *error);
};

/*
 * Makes the socket `task` (an id) in the runtime directory, 0600, and listens. A socket of that
 * name is a leftover, since ids are random and the task's directory is locked by us: it is
 * replaced. ops and task are borrowed; the directory is not, a descriptor of its own is kept.
 */
int control_listen(int runtime_fd, const char *id, const struct control_ops *ops, void *task,
		   struct control **ret_control, struct error *error)
	__attribute__((warn_unused_result));

/* The entry to wait for; false (and fd -1) for a NULL control. */
bool control_poll(const struct control *control, struct pollfd *ret_entry);

/* Takes what has come, at most CONTROL_STEP_MESSAGES; accepts NULL. */
void control_step(struct control *control);

/* The peer's action runs (or was joined). flags: CONTROL_TTY where it has a terminal. */
void control_started(struct control_peer *peer, const char *action, uint32_t flags);

/*
 * The end of the peer's action: its JSON and lines for standard error, either may be NULL. The JSON
 * begins with a newline where the command's output ends in mid-line.
 */
void control_result(struct control_peer *peer, int exit_status, const struct buffer *json,
		    const struct buffer *text);

/* Ends a peer without a result: the message of a start that failed later. */
void control_refuse(struct control_peer *peer, int code, const char *text);

/* The process that connected, as the kernel said then. */
pid_t control_pid(const struct control_peer *peer);

/* For the owner: a word of its own with each peer, NULL at first. */
void control_set_context(struct control_peer *peer, void *context);
void *control_context(const struct control_peer *peer);

/* Removes the socket and closes all connections, without gone(). Accepts NULL. */
void control_close(struct control *control);
