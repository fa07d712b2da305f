/*
 * One action of a task from its intent to its result: starts the box, enters it, pumps the
 * streams, answers refused system calls, keeps the wall clock, ends everything.
 *
 * The caller's process must have SIGCHLD at its default, and one thread. Standard descriptors of
 * the caller are used as they are.
 */
#pragma once

#include "broker/effective.h"
#include "broker/gate.h"
#include "trace/event.h"
#include "trace/result.h"

#include <stdbool.h>

struct arena;
struct box;
struct collect;
struct error;
struct task_watch;

struct supervise_options {
	const struct effective *effective;
	const struct action *action;
	struct event_sink *sink;
	const struct collect *artifacts; /* what to copy out afterwards; NULL: nothing */
	struct gate_verdicts verdicts;	 /* of the gate, which it has passed */
	bool evidence;			 /* read the layers back from the kernel for the result */
	bool unkept;			 /* the output is not spooled for `bawn logs` */
	bool progress;		     /* a status line where a person waits (broker/progress.h) */
	struct change_list *changes; /* for the result; NULL: events only */
	struct arena *arena; /* the result's memory; NULL: the workspace is not looked through */
	int out, err;	     /* where the streams go: 1 and 2, or elsewhere (verify) */
	/* called once when the action runs; NULL for none */
	void (*started)(void *context, const struct box *box);
	void *context;
	struct task_watch *watch; /* one more thing for the task's loop; NULL: none */
	uint16_t names_port; /* the name server at this port of the host's loopback; 0: its own */
};

/*
 * Fills the result in every case; denials are added to the list. Returns 0, or a negative errno
 * when bawn itself failed (result->end is RESULT_FAILED and error says why).
 */
int supervise(const struct supervise_options *options, struct denial_list *denials,
	      struct result *result, struct error *error);
