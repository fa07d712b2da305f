/*
 * A job: one action in the box of a task, from its intent to its result. It owns the streams, the
 * action's process and the clock of the action; the task (broker/task.h) owns the box and the loop.
 *
 *   ENTERING   its process is on the way into the box
 *   RUNNING    the command runs
 *   ENDED      the command was waited for; what it wrote is still on its way
 *   OVER       the result stands
 */
#pragma once

#include "base/sha256.h"
#include "broker/gate.h"
#include "broker/streams.h"
#include "isolate/box.h"
#include "trace/event.h"
#include "trace/result.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct collect;
struct error;
struct task;
struct winsize;

struct job_options {
	const struct action *action; /* borrowed, as all below, until job_close() */
	struct result *result;
	struct denial_list *denials;
	struct change_list *changes; /* for the result; NULL: events only */
	struct arena *arena; /* the result's memory; NULL: the workspace is not looked through */
	struct error *error; /* holds the result's message */
	struct gate_verdicts verdicts;	 /* of the gate, which it has passed, or not */
	const struct error *refused;	 /* by the gate, as the denials tell; NULL: it may start */
	const struct collect *artifacts; /* NULL: none was asked for */
	bool evidence;			 /* read the layers back from the kernel for the result */
	bool unkept;		      /* the output is passed on, and not spooled for `bawn logs` */
	int in, out, err;	      /* the caller's; in -1: /dev/null */
	const struct winsize *window; /* of a client's terminal; NULL: the terminal is ours */
	/* called once when the command runs; NULL for none */
	void (*started)(void *context, const struct box *box);
	void *context;
};

enum job_state { JOB_NEW, JOB_ENTERING, JOB_RUNNING, JOB_ENDED, JOB_OVER };

struct job {
	struct job *next; /* in the task's list */
	struct task *task;
	struct job_options options;
	enum job_state state;
	struct streams streams;
	struct entering entering;
	struct entered entered;
	char executable_path[PATH_MAX]; /* of what it executed, in the box */
	uint64_t family;		/* of a live task's: what it started */
	int64_t staged_ns;    /* of a live task's: since when the layer's changes are its own */
	struct sha256 input;  /* what was passed on to its standard input */
	uint64_t deadline_ns; /* wall clock, 0 = none */
	uint64_t started_ns;  /* when it began to run, monotonic */
	uint64_t tell_ns;     /* its start is to be on record then; 0: it is, or it has none */
	uint64_t enter_ns;    /* until then it must have come into the box */
	uint64_t old_ns;      /* its output is spooled to the disk from then on */
	uint64_t grace_ns;    /* kill then, 0 = not asked to end */
	struct network_list *network; /* of the result's memory; NULL: nothing yet */
	unsigned number;	      /* among those of the task, from 1 on */
	struct joined *joined;	      /* who watches it from elsewhere (broker/join.h) */
	bool is_watched;	      /* by the watchdog */
	bool was_capped;	      /* its output reached the cap */
	bool is_gone;		      /* seen to be: neither it nor what it started runs */
	bool is_unlanded;  /* something of the task runs on: not now (broker/landing.h) */
	int asked;	   /* signals that asked it to end */
	uint64_t asked_ns; /* when the first came */
	int asked_signal;  /* which one it was */
};

/* How many entries job_poll() fills. */
#define JOB_WATCHES (2u + STREAMS_WATCHES)

/* What was decided and what is about to happen, on record before anything starts. */
int job_announce(struct job *job, struct task *task, const struct job_options *options);

/* Starts it: the box must be there. On a failure the result says why, and nothing runs. */
int job_begin(struct job *job);

void job_poll(const struct job *job, struct pollfd entries[static JOB_WATCHES]);
void job_step(struct job *job, const struct pollfd entries[static JOB_WATCHES]);

/* The next moment at which job_tick() has something to do, monotonic ns; 0 = none. */
uint64_t job_due(const struct job *job);

/* After each round of the loop: what is due, and whether the job is over. */
void job_tick(struct job *job, uint64_t now_ns);

/*
 * A signal for the action, from its caller or an operator. The first is the task's, in its own
 * session; a second one, or the grace, ends it all.
 */
void job_signal(struct job *job, int number);

/* A limit was reached while it ran: into its result. False where that stands there already. */
bool job_limit(struct job *job, const struct limit_hit *hit);

/* Something of the action for the record. What cannot be recorded ends it. */
void job_tell(struct job *job, enum event_type type, struct event *event);

/* A refusal that was measured: in the result, and on record where it is a new one. */
void job_deny(struct job *job, enum denial_kind kind, struct rule_ref rule, const char *object);

/* The same of what may have been refused to another action that runs; it says so. */
void job_deny_perhaps(struct job *job, enum denial_kind kind, struct rule_ref rule,
		      const char *object);

/* Its row of what it connected to; NULL: there are too many. */
struct network_target *job_target(struct job *job, const char *host, uint16_t port,
				  const char *verdict, const struct rule_ref *rule);

/* Kills what belongs to the action; the result follows. */
void job_kill(struct job *job);

/* The box is gone, by our hand or another's: whatever ran has been killed with it. */
void job_lose(struct job *job);

/* Ends the record of a job that is over, or that could not begin. */
void job_conclude(struct job *job);

void job_close(struct job *job);
