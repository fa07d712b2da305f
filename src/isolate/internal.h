/*
 * What the parts of src/isolate share: host.c (supervisor's operations), build.c (builder's, with
 * build_internal.h), enter.c (action's) and box.c, which runs them. Not for others.
 */
#pragma once

#include "base/error.h"
#include "isolate/box.h"

#include <stdbool.h>

/* Messages of the supervisor-init edge (until the exec of init) and of an entering action. */
enum box_message {
	BOX_ERROR = 1,	  /* struct error */
	BOX_GO,		  /* supervisor: the id maps are written */
	BOX_LISTENER,	  /* one descriptor */
	BOX_READY,	  /* init runs; bawn-init.c knows its number */
	ENTER_NOTIFY,	  /* one descriptor */
	ENTER_EXECUTES,	  /* nothing: what comes now is the exec */
	ENTER_EXECUTABLE, /* one descriptor (O_PATH): what is executed next */
	ENTER_FAILED,	  /* struct enter_report */
	BOX_DEVPTS,	  /* one descriptor */
	BOX_CAPTURE,  /* struct box_captured; the sockets of DNS and of diag, and the listener */
	BOX_PORT,     /* without one: a listener of a port */
	ZYGOTE_ENTER, /* in, out, err, status; one byte where they are a terminal */
};

struct box_captured {
	uint32_t v6;
};

struct enter_report {
	enum enter_failure failure;
	struct error error;
};

/* The image of bawn-init, linked in. */
extern const unsigned char bawn_init_image[];
extern const size_t bawn_init_image_size;

/* Everything that the builder inherits from the supervisor. */
struct build {
	const struct box_options *options;
	const struct box *box;
	int control;	  /* the builder's end */
	int init_fd;	  /* sealed memfd with the image of init */
	int *trees;	  /* per operation: a tree that the supervisor cloned, or -1 */
	int areas_fd;	  /* the private areas' tmpfs */
	int root_fd;	  /* the new root */
	unsigned stages;  /* attached staging places so far */
	unsigned left;	  /* descriptors left to the exec */
	bool v6;	  /* every address of version 6 is the box's own, too */
	bool filter_init; /* INIT_SECCOMP is in the plan */
};

/* HOST phase and what the supervisor must do for the builder when it is the host's root. */
int host_execute(struct box *box, struct error *error);

/* The task's directory, by PLAN_TASK_DIRECTORY; left, under its lock, for a later task. */
int task_directory_make(struct box *box, const struct plan_op *op, struct error *error);
void task_directory_leave(const struct box *box);

int host_clone_trees(const struct box_options *options, int **ret_trees, struct error *error);
void host_close_trees(const struct plan *plan, int *trees);
void host_undo(struct box *box);
int host_init_image(int *ret_fd, struct error *error);
int host_map_identity(const struct box *box, const struct plan_op *op, struct error *error);

/*
 * BOX phase, in a child that may share the supervisor's memory; argument: struct build. Never
 * returns: exec, or _exit after a message.
 */
int build_run(void *argument) __attribute__((noreturn));

/*
 * For an error that is set: what could not be mounted is an overlay that the plan with a copy of
 * the workspace does without. Then its code becomes BOX_NO_LAYER. Returns the code.
 */
int layer_refused(const struct policy *policy, const struct plan_op *op, struct error *error);

/* What an action's first process is given. */
struct enter_task {
	struct box *box;
	const struct action *action;
	const struct box_streams *streams;
	const char **script; /* room for argc + 2 arguments */
	int status_fd;
	bool occupied; /* others run in the box already */
	/* set as soon as there is one, in the supervisor's memory; left alone without a JOIN */
	struct process *ret_inside;
};

/*
 * ENTER phase, in a child that shares the supervisor's memory at least until it is in the box;
 * argument: struct enter_task.
 */
int enter_run(void *argument) __attribute__((noreturn));

/*
 * What the actions of an occupied box inherit, done once in a process that then starts them
 * (zygote.c). enter_prepare() leaves only its descriptor and the ruleset open.
 */
struct enter_zygote {
	struct box *box;
	int fd;		/* kept open, as another number */
	int ruleset_fd; /* -1: the plan has none */
};

int enter_prepare(struct enter_zygote *zygote, struct error *error);

/* Starts the task's process and returns when it has exec'd or ended; failures are reported. */
void enter_start(const struct enter_zygote *zygote, const struct enter_task *task);

/* Tells the supervisor that the action's process could not be set up. */
void enter_report(int status_fd, const struct error *error);

/*
 * 1: the zygote was asked, and `entering` has it; 0: it is at work or the action is too long, and
 * the action goes in another way; negative errno: see entering->error.
 */
int zygote_enter(struct box *box, const struct enter_task *task, struct entering *entering);

/* The zygote has done it, well or not: takes its process over, where there is one. */
void zygote_settle(struct entering *entering);

/* The same for one that is not wanted any more, or was not set up well. Ends the zygote. */
void zygote_abandon(struct entering *entering);

/* Ends and reaps it; the next action has another one. */
void zygote_end(struct zygote *zygote);
void zygote_close(struct zygote *zygote);

/* Kills nothing: waits for the process, where there is one, and forgets it. */
void process_reap(struct process *process);

/*
 * Calls start(), which clones a process, while we have the out-of-memory score that actions are
 * to inherit.
 */
int box_clone_scored(const struct box *box,
		     int (*start)(void *argument, struct process *ret_process), void *argument,
		     struct process *ret_process, struct error *error);

/* Takes on the task's ids where the caller is the host's root; nothing otherwise. */
int become_inside(const struct box_options *options, struct error *error);

/* The calling process goes into the task's control group, where there is one. */
int box_join_group(const struct box_options *options, struct error *error);

/* Each action has a family (family.c). */
bool box_has_families(const struct box_options *options);

/* Reads what the builder and init say; with `wait` until init runs, else what is there already. */
int box_listen(struct box *box, bool wait, struct error *error);

/* Appends what the operation was to the error. */
int operation_failed(const struct plan_op *op, struct error *error);

/*
 * Opens (shared lock) the skeleton of the plan's kept operations, making it where it is missing.
 * Two starts may make the same one at once; one wins, and both use it.
 */
int skeleton_open(const struct plan *plan, const char *path, int *ret_fd, struct error *error);

/* The CLONE_NEW* flags of all NAMESPACE operations in the plan. */
uint64_t plan_namespaces(const struct plan *plan);
const struct plan_op *plan_find(const struct plan *plan, enum plan_kind kind);
