/*
 * A box: the live sandbox of a task.
 *
 * box_start() executes the HOST and BOX operations of a plan: the supervisor's own (task
 * directory, leases, id maps), then those of the builder, a child in new namespaces that ends by
 * exec'ing bawn-init as the box's process 1. box_enter() is the only way to start an action: it
 * executes the ENTER operations in a child of the *supervisor's* own, so that the exit status
 * comes from the kernel's wait. box_end() undoes the plan; it accepts a half-started box.
 *
 * An action may be set up while process 1 still starts; only its exec waits for that (box->ready).
 *
 * The children share the supervisor's memory until they exec (vfork semantics: half of a start's
 * time would go into copying page tables); they are not dumpable meanwhile, and the supervisor
 * sleeps. Not so the builder of a host-root caller, whose id maps only the supervisor can write,
 * and not the process of an action that enters an *occupied* box: what runs there has the same ids
 * and could stop it, and would stop the supervisor with it. That one shares the memory of another
 * process, the box's zygote (zygote.c), or has a copy where the zygote is at work already or the
 * action is longer than its room; the supervisor goes on with its other work meanwhile
 * (box_enter_step()).
 *
 * Each operation that fails ends the start with a message that names it; nothing is left behind
 * and no action has run. Nothing here weakens a plan: a layer is missing only where its operation
 * is not in the list.
 */
#pragma once

#include "base/error.h"
#include "kernel/namespace.h"
#include "plan/plan.h"
#include "policy/action.h"

/*
 * The code of a start that failed because an overlay was refused that a plan with a copy of the
 * workspace does without; nothing else fails with it.
 */
#define BOX_NO_LAYER EMEDIUMTYPE

struct box_options {
	const struct plan *plan;
	const struct policy *policy;
	bool host_root; /* as in struct plan_facts */
	uint32_t outside_uid, outside_gid;
	bool live;		     /* many actions: each can be ended with all that it started */
	const struct cgroup *cgroup; /* everything in the box is in it; NULL or count 0: none */
	/* DUPLICATE: fills the empty directory of the operation's target; NULL: no plan has one */
	int (*duplicate)(void *context, int task_fd, const struct plan_op *op, struct error *error);
	void *context;
};

/*
 * Without the rules of nft each port that a connection may go to has a listener: as many, so that
 * their descriptors fit beside those of a start.
 */
#define BOX_LIMIT_PORTS 32u

/* What a box whose network is the policy's has handed out; -1 and 0 where it has none. */
struct box_capture {
	int tcp;  /* the listener of all connections; in its place, without the rules: ports */
	int udp;  /* gets the datagrams to port 53 */
	int diag; /* of sock_diag(7), in the box's network: who has which socket */
	int ports[BOX_LIMIT_PORTS];
	unsigned port_count;
	bool v6;
};

#define BOX_CAPTURE_NONE ((struct box_capture){ .tcp = -1, .udp = -1, .diag = -1 })

/* Starts the actions of an occupied box (zygote.c); made for the first of them. */
struct zygote {
	struct process process;
	struct zygote_share *share; /* owned; NULL: not yet */
	int fd;			    /* our end; its end of file is the zygote's end; -1: none */
	bool is_busy;		    /* an action is between its start and its exec */
};

#define ZYGOTE_NONE ((struct zygote){ .process = PROCESS_NONE, .fd = -1 })

struct box {
	struct box_options options;
	struct process init;
	struct zygote zygote;
	int control;	 /* supervisor-init edge: its end of file is the end of the box */
	bool ready;	 /* process 1 runs, and nothing of the supervisor is left in it */
	int proc_fd;	 /* the host's /proc */
	int skeleton_fd; /* locked against removal */
	int task_fd;	 /* locked directory of the task in the state directory */
	bool is_kept;	 /* that directory stays as it is, for a later start to look at */
	int *leases;	 /* locked cache directories, per LEASE in the plan's order; -1: not ours */
	size_t lease_count;
	int devpts_fd; /* root of the box's devpts, where the plan hands it out; else -1 */
	int listeners[POLICY_LIMIT_LISTENERS];
	size_t listener_count;
	struct box_capture capture;
};

#define BOX_NONE                                    \
	((struct box){ .init = PROCESS_NONE,        \
		       .zygote = ZYGOTE_NONE,       \
		       .control = -1,               \
		       .proc_fd = -1,               \
		       .skeleton_fd = -1,           \
		       .devpts_fd = -1,             \
		       .capture = BOX_CAPTURE_NONE, \
		       .task_fd = -1 })

/* Waits until process 1 runs: its builder has handed over everything then. */
int box_await(struct box *box, struct error *error) __attribute__((warn_unused_result));

struct box_streams {
	int in, out, err; /* borrowed */
	bool terminal;	  /* they are the slave of a pseudo terminal, to control the session */
};

/* An action's process. */
struct entered {
	struct process process;
	int notify_fd;	   /* denied system calls wait here; -1 where the filter reports none */
	int executable_fd; /* O_PATH: the file that the command is, in the box; -1: not known */
};

#define ENTERED_NONE \
	((struct entered){ .process = PROCESS_NONE, .notify_fd = -1, .executable_fd = -1 })

enum enter_failure {
	ENTER_BROKEN,	      /* a layer could not be set up: bawn failed */
	ENTER_NOT_FOUND,      /* no such command in the box */
	ENTER_NOT_EXECUTABLE, /* it cannot be executed */
};

int box_start(const struct box_options *options, struct box *ret_box, struct error *error)
	__attribute__((warn_unused_result));

/* An action between its start and the exec of its command. */
struct entering {
	struct entered entered; /* so far */
	struct zygote *zygote;	/* that starts it; NULL: it was started by us */
	int status_fd;		/* poll it for reading: there is something to do; -1 = none */
	bool announced;		/* its process came as far as the exec */
	int outcome;		/* negative errno that its process reported */
	enum enter_failure failure;
	struct error error;
};

#define ENTERING_NONE ((struct entering){ .entered = ENTERED_NONE, .status_fd = -1 })

/*
 * Starts the action's process. What is borrowed (action, streams) may go when this returns. Where
 * the box is empty but for process 1 (occupied false) the command runs on return, or has failed.
 */
int box_enter_begin(struct box *box, const struct action *action, const struct box_streams *streams,
		    bool occupied, struct entering *ret_entering, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Takes what the process said, without waiting. Returns 1 when the command runs (ret_entered is the
 * caller's now), 0 when it is not there yet, or a negative errno with ret_failure and error set and
 * nothing left.
 */
int box_enter_step(struct entering *entering, struct entered *ret_entered,
		   enum enter_failure *ret_failure, struct error *error)
	__attribute__((warn_unused_result));

/* Kills and reaps the process of an action that is not wanted any more; accepts ENTERING_NONE. */
void box_enter_abandon(struct entering *entering);

/* Both, for an action that is the first of its box: returns when its command runs. */
int box_enter(struct box *box, const struct action *action, const struct box_streams *streams,
	      struct entered *ret_entered, enum enter_failure *ret_failure, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Kills everything in the box and waits for it. What the plan made on the host stays, and with it
 * the lock by which others see that the task is not over; box_end() follows.
 */
void box_stop(struct box *box);

/* Closes what was handed out: whoever connects then is refused. */
void box_close_capture(struct box *box);

/* The same, and removes what the plan made on the host. */
void box_end(struct box *box);

/*
 * Readies one directory that an earlier task left for a later one (task_directory.c), while nobody
 * waits for us; true where there are more of them.
 */
bool box_tidy(struct box *box);

/*
 * Sends a signal to every process in the box but process 1, at once: none escapes by forking.
 * -ETIMEDOUT when something inside held the sender up for a second.
 */
int box_signal(struct box *box, int number, struct error *error)
	__attribute__((warn_unused_result));

/*
 * The family of a live task's action: what its process and all that descends from it have in
 * common, and nobody else. 0 where there is none, or the process has ended.
 */
uint64_t box_family(const struct box *box, const struct process *process);

/*
 * Kills the family, daemons included; takes about as long as a look at /proc. Where somebody forks
 * faster than that, the box is stopped for up to a quarter of a second. Accepts 0.
 */
void box_kill_family(struct box *box, uint64_t family);

/* A name in a tree that is written in place, to be covered again. */
struct box_cover {
	/*
	 * PATH_HIDE: a mask; PATH_OBJECTS: nothing is covered, and the overlay of the git directory
	 * forgets what it remembers of the host's names; others: bound to itself, read-only
	 */
	enum path_class class;
	const char *target;  /* clean path inside of the box */
	const char *root;    /* target of the writable row that it lies in */
	bool covered;	     /* given back: it was uncovered, and is covered now */
	uint64_t covered_ns; /* given back: the monotonic clock at that moment */
};

/*
 * Covers hidden and protected names again, after the host put other objects under them: what the
 * plan's MASK and PIN did. What is covered already, or is not there, stays as it is. Runs in one
 * child that enters the box's mount namespace, and takes a bounded time. Fails as a whole.
 */
int box_mask(struct box *box, struct box_cover *covers, size_t count, struct error *error)
	__attribute__((warn_unused_result));
