/*
 * The watchdog: looks at what a task uses, and tells when a limit that the kernel does not hold is
 * reached (policy/limit.h: *polled*). One timer of the task's loop, whose interval follows the
 * headroom; it begins when the task is no longer young, so that short ones do not pay for it.
 *
 *   memory      the sum over the task's processes (kernel/usage.h)
 *   cpu time    the same, or the control group's account
 *   disk, files what was added to writable places (broker/growth.h)
 *
 * With a control group it reads the group's events: processes killed for memory, forks refused.
 */
#pragma once

#include "broker/growth.h"
#include "broker/task.h"
#include "kernel/cgroup.h"
#include "kernel/usage.h"
#include "policy/limit.h"
#include "trace/result.h"

#include <stdbool.h>
#include <stdint.h>

struct watchdog {
	struct task *task;
	const struct cgroup *cgroup; /* borrowed; count 0: none */
	struct task_timer timer;
	struct usage usage;
	bool has_usage;
	/* what the last look found, at most an interval old; for people */
	struct usage_sample sample;
	bool has_sample;
	bool was_empty; /* at the last look nothing but process 1 was there */
	struct growth growth;
	struct cgroup_events events;
	/* a limit is reached: at each look that finds it so, as a live task goes on */
	void (*reached)(struct task *task, const struct limit_hit *hit);
};

/* Notes what is there now, and begins to look delay_ns later. */
void watchdog_begin(struct watchdog *watchdog, struct task *task, const struct cgroup *cgroup,
		    uint64_t delay_ns,
		    void (*reached)(struct task *task, const struct limit_hit *hit));

/*
 * An action begins: looks again. In a box that is empty, and stays so, there is nothing to look at,
 * and a hundred tasks that wait cost nothing.
 */
void watchdog_wake(struct watchdog *watchdog);

/* An action has ended: what its control group tells of it, before its result is made. */
void watchdog_look_back(struct watchdog *watchdog);

void watchdog_end(struct watchdog *watchdog);
