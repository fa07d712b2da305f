/*
 * A task while it lives: its box, the jobs (actions) in it, and what is watched meanwhile, in one
 * event loop of one thread. The supervisor of `bawn run` has a task of one job, with which the box
 * ends; a *live* task (`bawn task start`) takes jobs until it is ended.
 *
 * The process must have SIGCHLD at its default and be the parent of nothing else: the end of the
 * box waits for every child there is.
 */
#pragma once

#include "base/arena.h"
#include "broker/cover.h"
#include "broker/effective.h"
#include "broker/egress.h"
#include "broker/evidence.h"
#include "broker/job.h"
#include "broker/landing.h"
#include "broker/sweeping.h"
#include "broker/task_loop.h"
#include "isolate/box.h"
#include "trace/event.h"
#include "trace/result.h"
#include "workspace/watch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct change_list;
struct error;

/* Jobs at once; a task that wants more has lost count. */
#define TASK_LIMIT_JOBS 64

struct task_options {
	const struct effective *effective; /* borrowed, as all here */
	struct event_sink *sink;
	const struct cgroup *cgroup; /* the box and its actions are in; NULL or count 0: none */
	struct change_list *changes; /* names that were covered again; NULL: events only */
	uint64_t grace_ns;	     /* between a polite end (SIGTERM, SIGHUP) and the kill */
	/* a signal for the supervisor itself; NULL: it is passed on to the jobs */
	void (*signalled)(struct task *task, int number);
	bool live;
	uint16_t names_port;	 /* of a name server at the host's loopback; 0: the host's own */
	const char *const *meta; /* of the task, for the record; NULL: none */
};

struct task {
	struct task_options options;
	struct error *error; /* why the box ended, where that was not asked for */
	struct box box;
	struct egress egress;
	struct evidence_namespaces namespaces; /* of the box */
	struct watch names; /* hidden and protected ones in trees that are written in place */
	struct arena guard_arena, copy_arena;
	struct cover_guard guard; /* those that built-in rules keep */
	struct task_timer guard_timer;
	struct sweeping sweeping;    /* of its workspace */
	struct landing landing;	     /* of what its git did */
	struct result_copied copied; /* of its workspace, where is_copied */
	sigset_t ends; /* signals that ask us to end, unless the caller ignores them */
	int signal_fd; /* reads those */
	struct job *jobs;
	struct task_watch *watches;
	unsigned watch_changes; /* of that list */
	struct task_timer *timers;
	unsigned jobs_begun;
	bool has_work;	      /* the record has something to do that can wait */
	unsigned busy_rounds; /* since the last idle moment, while it has */
	bool has_spools;      /* output lies in the task's directory */
	bool is_copied;	      /* the box was made by the fallback's plan */
	bool names_failed;    /* a name could not be covered again */
	bool killed;	      /* the box, by us */
	bool lost;	      /* the box, by another */
	bool has_received;    /* something in it has connected, whoever of its actions that was */
	bool ending;	      /* no more jobs are taken */
};

/* Stamps the event with the task and hands it to the sink. */
int task_emit(struct task *task, struct event *event);

/* On record, and signals prepared; nothing has been started and no signal is taken over yet. */
int task_announce(struct task *task, const struct task_options *options, struct error *error);

/*
 * Makes the box. A signal meanwhile ends us as it would any program, and the box with us: a file
 * system that hangs must not make a start that only SIGKILL ends.
 */
int task_start(struct task *task);

/* By which the box was made. */
const struct plan *task_plan(const struct task *task);

struct task_landed {
	struct change *changes; /* the arena's; first those that a person should see */
	size_t count;
	uint64_t unlisted; /* more that changed in the workspace */
	const char *cut;   /* why it is not known what changed in the workspace; NULL: it is */
};

/*
 * Looks through the workspace (broker/sweeping.h), then lands what git did (broker/landing.h).
 * Nothing of the task may run meanwhile, but for LANDING_NOT_NOW. What fails at the last moment
 * keeps the task's directory for the next start. The changes are told on an error too.
 */
int task_land(struct task *task, enum landing_moment moment, struct arena *arena,
	      struct task_landed *ret_landed, struct error *error);

/* From here on signals are for the jobs. */
int task_take_signals(struct task *task);

/* Adds a job that job_announce() made, and begins it. On a failure its result says why. */
int task_add(struct task *task, struct job *job);

/* Takes a job out of the list; its owner closes it. */
void task_remove(struct task *task, struct job *job);

void task_watch_add(struct task *task, struct task_watch *watch);
void task_watch_remove(struct task *task, struct task_watch *watch);
void task_timer_add(struct task *task, struct task_timer *timer);
/* Not from a timer that fires. One that was never added is nothing to remove. */
void task_timer_remove(struct task *task, struct task_timer *timer);

/* One round of the loop: waits for what comes next, at most until the jobs' next moment. */
void task_step(struct task *task);

/* A job's command has ended (called by the job). */
void task_job_ended(struct task *task, struct job *job);

/* Covers what the host put under hidden names by now; the loop does so by itself. */
void task_look_at_names(struct task *task);

/* Kills everything in the box; its end follows. */
void task_kill(struct task *task);

/*
 * Ends everything in the box and waits for it. Its directory with the spools stays, and its lock:
 * whoever dies between this and task_end() has not brought the record to its end, and the next
 * start does.
 */
void task_stop(struct task *task);

/* Ends the box and what belongs to it. The jobs must have been closed, or be over. */
void task_end(struct task *task);
