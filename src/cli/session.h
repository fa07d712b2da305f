/*
 * A verb's connection to an action of a task: `task exec` and `attach`. Passes signals and the size
 * of the window on, sets the terminal raw while the action has one of its own, prints what comes
 * with the result. The streams themselves are moved by the supervisor, straight from and to the
 * descriptors that it was given.
 */
#pragma once

#include "ipc/control.h"

#include <stdbool.h>

struct error;

struct session {
	int fd;		   /* borrowed: the connection, on which EXEC or ATTACH was sent */
	int signal_fd;	   /* owned; session_begin() */
	int input;	   /* attach: where input goes to, not blocking; owned, -1 without */
	bool is_exec;	   /* the action is ours: signals are its, and its status is ours */
	bool is_quiet;	   /* no lines on standard error */
	bool has_json;	   /* the result's JSON on standard output */
	int status_fd;	   /* and there; -1 */
	bool has_progress; /* the supervisor may draw on our terminal, until we are stopped */
};

/*
 * Takes signals, before the request is sent: the action may run, and have said so, before we come
 * to look at them. session_run() gives the descriptor back.
 */
int session_begin(struct session *session, struct error *error);

/* Until the result, the detaching, or the end of the supervisor. Returns the exit status. */
int session_run(struct session *session);

/* Size of the terminal that 0, 1 or 2 is; false where none is. */
bool session_window(struct winsize *ret_window);
