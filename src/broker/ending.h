/*
 * Ends tasks from outside: asks their supervisors, all at once, waits for them, and where one does
 * not answer ends it without its help, if the caller wants that. A task has ended when nobody holds
 * its directory any longer: its box, its processes and its socket have gone before.
 */
#pragma once

#include "broker/client.h"

#include <stdbool.h>

enum ending_how {
	ENDING_END,  /* `task end` */
	ENDING_STOP, /* `stop`: SIGTERM, grace, kill */
	ENDING_KILL,
};

struct ending_options {
	enum ending_how how;
	uint64_t grace_ns; /* 0: each task's own */
	bool is_forced;	   /* SIGKILL for a supervisor that does not answer; always with KILL */
	/* told of each task, in the order given: NULL when it has ended, else why not */
	void (*told)(void *context, const char *id, const char *message);
	void *context;
};

/* Returns how many of them have not ended, or a negative errno. */
int ending_run(const struct client *client, const char *const *ids, size_t count,
	       const struct ending_options *options, struct error *error);
