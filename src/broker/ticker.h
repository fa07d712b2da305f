/*
 * When the status line of an action (broker/progress.h) is shown: while it is at work for longer
 * and silent, with what its task uses. One for each action that a person waits for, in the
 * supervisor, which alone knows when output comes.
 */
#pragma once

#include "broker/progress.h"
#include "broker/task.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct operate;
struct watchdog;

/* All borrowed until ticker_end(). */
struct ticker_options {
	struct job *job;
	const struct operate *operate;
	const struct watchdog *watchdog;
	uint64_t started_ns; /* monotonic: the time that is shown counts from there */
	const char *term;    /* the terminal's type; NULL: unknown, so no line */
	pid_t client;	     /* whose terminal it is; 0: ours */
};

struct ticker {
	struct ticker_options options;
	struct task_timer timer;
	struct progress progress;
	bool was_disturbed; /* something was written since the last tick */
};

#define TICKER_NONE ((struct ticker){ .progress = PROGRESS_NONE })

/* The job need not have begun. */
void ticker_begin(struct ticker *ticker, struct task *task, const struct ticker_options *options);

/* Wipes the line: somebody else writes to the terminal. Accepts TICKER_NONE. */
void ticker_wipe(struct ticker *ticker);

/* Before the job is closed, and before anything is told of its end. Accepts TICKER_NONE. */
void ticker_end(struct ticker *ticker, struct task *task);
