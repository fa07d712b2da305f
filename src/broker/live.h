/*
 * The supervisor of a live task: one box for many actions, which a client asks for by the control
 * socket (`bawn task exec`). Runs until it is ended by a client or a signal, has been idle for too
 * long or has reached its age, or its box is lost.
 */
#pragma once

#include "broker/effective.h"
#include "trace/event.h"

#include <stdint.h>

struct error;
struct runtime;

struct live_options {
	const struct effective *effective;
	struct event_sink *sink;
	const char *const *meta; /* of the task; NULL: none */
	const struct runtime *runtime;
	uint64_t idle_ns;     /* without an action; 0 = none */
	uint64_t lifetime_ns; /* in all; 0 = none */
	uint64_t grace_ns;    /* 0: the limit's */
	/* called once when the box stands and the socket is there */
	void (*ready)(void *context, const char *task);
	void *context;
};

/*
 * Serves until the end; background processes of its actions end with it. Returns 0, or a negative
 * errno with the error set when the box could not be made or was lost.
 */
int live_serve(const struct live_options *options, struct error *error);
