/*
 * Joining a running action from another terminal (`bawn attach`): copies of its output go to the
 * client, and where it has a terminal of its own, the client's input to that.
 *
 * A copy passes a pipe of ours; a client that does not read what fills it is let go, and the action
 * never waits for it.
 */
#pragma once

#include "broker/control.h"
#include "broker/pump.h"
#include "broker/task.h"

#include <stdbool.h>

struct error;
struct joined;
struct operate_peer;

/* As many terminals as one action can be watched from. */
#define JOIN_LIMIT 8

/*
 * Takes the descriptors (in -1: none) over. The client is told of the end of the action by
 * join_finish(), which frees its word, unless it goes before (join_leave()).
 */
int join_begin(struct task *task, struct job *job, struct operate_peer *word, int fds[static 3],
	       struct joined **ret_joined, struct error *error) __attribute__((warn_unused_result));

/* The client has gone. */
void join_leave(struct joined *joined);

/* The action is over: passes on what is left without waiting long, and tells all who joined. */
void join_finish(struct job *job);
