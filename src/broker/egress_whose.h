/*
 * Whose a connection is: of a run the one action's; of a live task with several that run, that of
 * the program that has its other end (connector.h). A search takes as long as a look at /proc, so
 * each connection is searched for once, and all searches together get a part of the time: whose the
 * rest is cannot be told.
 */
#pragma once

#include "kernel/sockets.h"

#include <stdbool.h>
#include <stdint.h>

struct job;
struct task;

/* An action that was found to have a connection. */
struct egress_owner {
	uint32_t connection; /* the proxy's number */
	unsigned job;
};

/*
 * The action, or NULL; ret_several: it is one of those that run, and cannot be told. `here` is the
 * task's end; NULL or without an address: it is not known. connection 0: of none.
 */
struct job *egress_whose(struct task *task, uint32_t connection, const struct sockets_end *here,
			 const struct sockets_end *there, bool *ret_several);

/* The number of the action whose family it is, from its exec on; 0: of none that is left. */
unsigned egress_action_of(const struct task *task, uint64_t family);

/* Whether more than one action runs. */
bool egress_is_shared(const struct task *task);

/* It was found otherwise. */
void egress_note_owner(struct task *task, uint32_t connection, unsigned job);

void egress_forget_owners(struct task *task);
