/*
 * Taking over: what a person's verbs (ps, stop, kill, freeze, thaw, attach) do to a task, by way of
 * its control socket (broker/control.h). Every supervisor has this; a live task takes actions too
 * (broker/live.h).
 */
#pragma once

#include "broker/control.h"
#include "broker/task.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct operate;

struct operate_options {
	int runtime_fd; /* borrowed until operate_listen(); -1: no socket */
	/* an action for a live task; NULL: the task takes none */
	int (*exec)(struct operate *operate, struct control_peer *peer, struct control_exec *exec,
		    struct error *error);
	uint64_t started_wall_ns, started_ns;
	/* monotonic moments at which the task ends by itself, 0 = not now; NULL: none */
	const uint64_t *idle_at, *lifetime_at;
};

/* What a connection is for: the word that the control socket keeps with its peer. */
struct operate_peer {
	struct control_peer *peer; /* NULL: it has gone */
	struct job *job;
	struct joined *joined; /* it only joined; owned */
	struct ticker *ticker; /* of the status line on its terminal; NULL: none */
};

struct operate {
	struct operate_options options;
	struct task *task;
	struct control *control;
	struct task_watch watch;
	struct task_timer ending; /* looks whether the box is empty; kills at ending_ns */
	uint64_t ending_ns;
	struct task_timer stopping; /* frozen by signals: stops again what was woken meanwhile */
	uint64_t stopping_ns;	    /* the time until the next blow */
	bool frozen;
	bool is_held; /* by operate_hold() alone */
};

void operate_begin(struct operate *operate, struct task *task,
		   const struct operate_options *options);

/* Makes the socket. */
int operate_listen(struct operate *operate, struct error *error);

/* Begins the end of the task: SIGTERM to all of it, the grace (0: the task's own), the kill. */
void operate_stop(struct operate *operate, uint64_t grace_ns);

/* At once. */
void operate_kill(struct operate *operate);

/*
 * The supervisor was asked to stop (^Z): stops everything in the box, then itself, and goes on
 * with it when it is continued. Without a freezer a task that wakes itself by a timer would run
 * unwatched meanwhile: nothing stops where it does not stand, or where names are kept covered in
 * place.
 */
void operate_suspend(struct operate *operate);

/*
 * For a moment in which nothing of the task may run. True when all of it stands; in any case
 * operate_release() ends it.
 */
bool operate_hold(struct operate *operate);
/* Nothing that is held sees it; by signals, calls that wait are interrupted. */
bool operate_has_freezer(const struct operate *operate);
void operate_release(struct operate *operate);

/* Removes the socket. */
void operate_close(struct operate *operate);
