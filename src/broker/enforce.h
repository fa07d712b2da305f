/*
 * Holding the limits of a task while it lives: its control group where one was needed, the
 * watchdog, and what happens when a limit is reached.
 */
#pragma once

#include "broker/watchdog.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct task;

struct enforce {
	struct cgroup cgroup; /* owned; count 0: none */
	struct watchdog watchdog;
	bool watches;
};

/*
 * Makes the control group that the limits need, where need be in a scope that systemd is asked for
 * (this process is moved into it), before the box; task_start() and each action enter
 * it. Nothing is left on a failure.
 */
int enforce_prepare(struct enforce *enforce, const struct effective *effective, struct error *error)
	__attribute__((warn_unused_result));

/* The box stands: watches from delay_ns on. */
void enforce_begin(struct enforce *enforce, struct task *task, uint64_t delay_ns);

/* An action has ended, and its result is about to be made. */
void enforce_look_back(struct enforce *enforce);

/* The box is gone: removes the group. */
void enforce_end(struct enforce *enforce);

/* A limit was reached: recorded for what runs, which ends where the kernel does not hold it. */
void enforce_reached(struct task *task, const struct limit_hit *hit);
