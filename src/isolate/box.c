#include "isolate/box.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "isolate/internal.h"
#include "kernel/cgroup.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t plan_namespaces(const struct plan *plan)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_NAMESPACE)
			flags |= plan->ops[i].number;
	return flags;
}

const struct plan_op *plan_find(const struct plan *plan, enum plan_kind kind)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == kind)
			return &plan->ops[i];
	return NULL;
}

int operation_failed(const struct plan_op *op, struct error *error)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	plan_op_print(op, &text);
	return error_context(error, "set-up step \"%s\" failed", text.data ? text.data : "?");
}

int layer_refused(const struct policy *policy, const struct plan_op *op, struct error *error)
{
	if (op->kind == PLAN_OVERLAY && op->upper && (policy->flags & POLICY_LAYERED) &&
	    error->code != -ENOMEM)
		error->code = -BOX_NO_LAYER;
	return error->code;
}

/* Of one child at a time: we sleep while it runs. */
static struct namespace_stack child_stack;

void process_reap(struct process *process)
{
	if (process->pid > 0)
		process_wait(process->pid, NULL);
	fd_close(&process->pidfd);
	process->pid = -1;
}

/* What the builder has captured the network with. */
static int take_capture(struct box *box, const struct message *message)
{
	struct box_capture *capture = &box->capture;
	struct box_captured captured;

	if (message->type == BOX_PORT && message->length == 0 && message->fd_count == 1 &&
	    capture->udp >= 0 && capture->tcp < 0 && capture->port_count < BOX_LIMIT_PORTS) {
		capture->ports[capture->port_count++] = message->fds[0];
		return 0;
	}
	if (message->type != BOX_CAPTURE || message->length != sizeof(captured) ||
	    message->fd_count < 2 || message->fd_count > 3 || capture->udp >= 0)
		return -EPROTO;
	memcpy(&captured, message->bytes, sizeof(captured));
	capture->v6 = captured.v6 != 0;
	capture->udp = message->fds[0];
	capture->diag = message->fds[1];
	capture->tcp = message->fd_count == 3 ? message->fds[2] : -1;
	return 0;
}

int box_listen(struct box *box, bool wait, struct error *error)
{
	while (!box->ready) {
		struct pollfd control = { .fd = box->control, .events = POLLIN };
		struct message message;
		int result;

		if (!wait && poll(&control, 1, 0) == 0)
			return 0;
		result = message_receive(box->control, &message);
		if (result < 0)
			return error_set(error, result,
					 "the box's builder ended without a word (killed, or "
					 "process 1 could not run)");
		if (message.type == BOX_READY && message.length == 0 && message.fd_count == 0) {
			box->ready = true;
		} else if (message.type == BOX_LISTENER && message.fd_count == 1 &&
			   box->listener_count < POLICY_LIMIT_LISTENERS) {
			box->listeners[box->listener_count++] = message.fds[0];
		} else if (message.type == BOX_CAPTURE || message.type == BOX_PORT) {
			if (take_capture(box, &message) == 0)
				continue;
			message_close_fds(&message);
			return error_set(error, EPROTO, "the box's builder spoke out of turn");
		} else if (message.type == BOX_DEVPTS && message.fd_count == 1 &&
			   box->devpts_fd < 0) {
			box->devpts_fd = message.fds[0];
		} else if (message.type == BOX_ERROR && message.length == sizeof(*error)) {
			memcpy(error, message.bytes, sizeof(*error));
			error->message[sizeof(error->message) - 1] = '\0';
			return error->code < 0 ? error->code : -EPROTO;
		} else {
			message_close_fds(&message);
			return error_set(error, EPROTO, "the box's builder spoke out of turn");
		}
	}
	return 0;
}

int box_await(struct box *box, struct error *error)
{
	return box_listen(box, true, error);
}

int box_join_group(const struct box_options *options, struct error *error)
{
	if (!options->cgroup || !options->cgroup->count)
		return 0;
	/* 0 is who writes; before it joins namespaces, beyond whose roots no group can be named */
	return cgroup_attach(options->cgroup, 0, error);
}

/* Host root only: the maps are the supervisor's to write, then the builder may go on. */
static int grant_identity(struct box *box, struct error *error)
{
	const struct plan_op *op = plan_find(box->options.plan, PLAN_IDENTITY);
	int result;

	if (!box->options.host_root || !op)
		return 0;
	result = host_map_identity(box, op, error);
	if (result < 0)
		return operation_failed(op, error);
	result = message_send(box->control, BOX_GO, NULL, 0, NULL, 0);
	return result < 0 ? error_errno(error, result, "letting the builder go on") : 0;
}

/* The root's builder has its own memory: it waits for the maps that we write. */
static int fork_builder(struct box *box, struct build *build)
{
	int result = namespace_clone(plan_namespaces(box->options.plan), &box->init);

	if (result == 0) {
		(void)close(box->control);
		(void)build_run(build);
	}
	return result < 0 ? result : 0;
}

static int spawn_builder(struct box *box, struct error *error)
{
	struct build build = { .options = &box->options,
			       .box = box,
			       .control = -1,
			       .init_fd = -1,
			       .areas_fd = -1,
			       .root_fd = -1 };
	int CLEANUP_FD init_fd = -1, theirs = -1;
	int pair[2], result;

	result = message_pair(pair);
	if (result < 0)
		return error_errno(error, result, "making the control pair");
	box->control = pair[0];
	theirs = pair[1];
	result = host_init_image(&init_fd, error);
	if (result < 0)
		return result;
	result = host_clone_trees(&box->options, &build.trees, error);
	if (result < 0)
		return result;
	build.control = theirs;
	build.init_fd = init_fd;
	result = box->options.host_root ?
			 fork_builder(box, &build) :
			 namespace_vfork(plan_namespaces(box->options.plan), build_run, &build,
					 &child_stack, &box->init);
	host_close_trees(box->options.plan, build.trees);
	if (result == -EAGAIN)
		return error_errno(
			error, result,
			"making the namespaces of the box: the caller has as many processes as it "
			"may (`ulimit -u`, or pids.max of its control group)");
	if (result < 0)
		return error_errno(
			error, result,
			"making the namespaces of the box (`bawn doctor` tells what this "
			"host lacks)");
	return 0;
}

int box_start(const struct box_options *options, struct box *ret_box, struct error *error)
{
	struct box box = BOX_NONE;
	int result;

	box.options = *options;
	box.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (box.proc_fd < 0)
		return error_errno(error, errno, "opening /proc, which a box needs");
	result = host_execute(&box, error);
	if (result == 0)
		result = spawn_builder(&box, error);
	if (result == 0 && options->cgroup && options->cgroup->count)
		result = cgroup_attach(options->cgroup, box.init.pid, error);
	if (result == 0)
		result = grant_identity(&box, error);
	/* a builder that shared our memory has sent everything before it exec'd or ended */
	if (result == 0)
		result = box_listen(&box, options->host_root, error);
	if (result < 0) {
		box_end(&box);
		return result;
	}
	*ret_box = box;
	return 0;
}

/* The command may run already: what fails once, for want of memory, must not be its end. */
static int receive_word(int status_fd, struct message *ret_message)
{
	int result = message_receive(status_fd, ret_message);

	for (int i = 0; i < 3 && result < 0 && result != -EPIPE && result != -EBADMSG; i++)
		result = message_receive(status_fd, ret_message);
	return result;
}

/* One message of the entering processes. Returns 1 at the end of all that they had to say. */
static int hear(struct entering *entering)
{
	struct message message;
	struct enter_report report;
	int result = receive_word(entering->status_fd, &message);

	if (result == -EPIPE)
		return 1;
	if (result < 0)
		return error_errno(&entering->error, result, "listening to the action's process");
	if (message.type == ENTER_NOTIFY && message.fd_count == 1 &&
	    entering->entered.notify_fd < 0) {
		entering->entered.notify_fd = message.fds[0];
	} else if (message.type == ENTER_EXECUTES && message.fd_count == 0) {
		entering->announced = true;
	} else if (message.type == ENTER_EXECUTABLE && message.fd_count == 1) {
		fd_close(&entering->entered.executable_fd);
		entering->entered.executable_fd = message.fds[0];
	} else if (message.type == ENTER_FAILED && message.length == sizeof(report)) {
		memcpy(&report, message.bytes, sizeof(report));
		entering->error = report.error;
		entering->error.message[sizeof(entering->error.message) - 1] = '\0';
		entering->failure = report.failure;
		entering->outcome = report.error.code < 0 ? report.error.code : -EPROTO;
	} else {
		message_close_fds(&message);
		entering->outcome = error_set(&entering->error, EPROTO,
					      "the action's process spoke out of turn");
	}
	return 0;
}

void box_enter_abandon(struct entering *entering)
{
	if (entering->zygote)
		zygote_abandon(entering);
	if (entering->entered.process.pid > 0)
		(void)kill(entering->entered.process.pid, SIGKILL);
	process_reap(&entering->entered.process);
	fd_close(&entering->entered.notify_fd);
	fd_close(&entering->entered.executable_fd);
	fd_close(&entering->status_fd);
}

/*
 * The out-of-memory score of the action is inherited by the clone: a process that is not dumpable
 * cannot set its own, and one that shares our memory would set ours with it (__set_oom_adj()). We
 * have it for that moment; going back needs no right (proc_pid_oom_score_adj(5)).
 */
static int open_oom_score(const struct box *box, int *ret_fd, char before[static 16])
{
	int CLEANUP_FD fd = openat(box->proc_fd, "self/oom_score_adj", O_RDWR | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = pread(fd, before, 15, 0);
	if (length <= 0)
		return -EIO;
	before[length] = '\0';
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int set_oom_score(int fd, const char *value)
{
	return pwrite(fd, value, strlen(value), 0) < 0 ? -errno : 0;
}

/*
 * A child that shares our memory took our dumpable flag with it; without that our other children
 * could not write their id maps. So it is tried again, as is the score.
 */
static void go_back(int score_fd, const char *score)
{
	for (int i = 0; i < 2 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0; i++)
		;
	for (int i = 0; score_fd >= 0 && i < 2 && set_oom_score(score_fd, score) < 0; i++)
		;
}

int box_clone_scored(const struct box *box,
		     int (*start)(void *argument, struct process *ret_process), void *argument,
		     struct process *ret_process, struct error *error)
{
	const struct plan_op *score = plan_find(box->options.plan, PLAN_OOM_SCORE);
	char value[16], before[16];
	int CLEANUP_FD score_fd = -1;
	int result = 0;

	if (score) {
		(void)snprintf(value, sizeof(value), "%u", (unsigned)score->number);
		result = open_oom_score(box, &score_fd, before);
		if (result == 0)
			result = set_oom_score(score_fd, value);
		if (result < 0) {
			error_errno(error, result, "oom_score_adj");
			return operation_failed(score, error);
		}
	}
	result = start(argument, ret_process);
	go_back(score_fd, before);
	return result < 0 ? error_errno(error, result, "starting the action's process") : 0;
}

static int vfork_action(void *argument, struct process *ret_process)
{
	return namespace_vfork(0, enter_run, argument, &child_stack, ret_process);
}

/* Runs the action's first process to its end; with a JOIN in the plan a second one goes on. */
static int spawn_action(struct enter_task *task, struct entering *entering)
{
	struct process first = PROCESS_NONE;
	int result = box_clone_scored(task->box, vfork_action, task, &first, &entering->error);

	if (result < 0)
		return result;
	if (plan_find(task->box->options.plan, PLAN_JOIN))
		process_reap(&first);
	else
		entering->entered.process = first;
	return 0;
}

#define FEW_WORDS 16u

/* From our own memory, shared or copied. */
static int spawn_with_script(struct enter_task *task, struct entering *entering)
{
	/* most commands are short, and the memory of a vfork is ours */
	char *few[FEW_WORDS + 2] = { NULL };
	bool is_short = task->action->argc <= FEW_WORDS;
	int result;

	task->script = is_short ? few : calloc(task->action->argc + 2, sizeof(char *));
	if (!task->script)
		return error_errno(&entering->error, ENOMEM, "starting the action's process");
	result = spawn_action(task, entering);
	if (!is_short)
		free(task->script);
	task->script = NULL;
	return result;
}

int box_enter_begin(struct box *box, const struct action *action, const struct box_streams *streams,
		    bool occupied, struct entering *ret_entering, struct error *error)
{
	struct entering entering = ENTERING_NONE;
	struct enter_task task = { .box = box,
				   .action = action,
				   .streams = streams,
				   .occupied = occupied,
				   .ret_inside = &entering.entered.process };
	int pair[2], result = 0;

	/* what it hears is not heard again by a process with a copy of the box */
	if (occupied)
		result = box_listen(box, true, error);
	if (result < 0)
		return result;
	result = message_pair(pair);
	if (result < 0)
		return error_errno(error, result, "making the status pair");
	entering.status_fd = pair[0];
	task.status_fd = pair[1];
	if (occupied && plan_find(box->options.plan, PLAN_JOIN))
		result = zygote_enter(box, &task, &entering);
	if (result == 0)
		result = spawn_with_script(&task, &entering);
	fd_close(&task.status_fd);
	if (result < 0) {
		*error = entering.error;
		box_enter_abandon(&entering);
		return result;
	}
	*ret_entering = entering;
	return 0;
}

/* The command runs: what it takes to watch it. */
static int settle(struct entering *entering)
{
	struct process *process = &entering->entered.process;

	if (process->pid <= 0)
		return error_set(&entering->error, EPROTO,
				 "the action's process ended before it was in the box");
	if (!entering->announced)
		return error_set(&entering->error, EPROTO,
				 "the action's process was killed before its command began");
	if (process->pidfd >= 0)
		return 0;
	/* unreaped and our own child, so the number is still its own */
	process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	return process->pidfd < 0 ?
		       error_errno(&entering->error, errno, "watching the action's process") :
		       0;
}

int box_enter_step(struct entering *entering, struct entered *ret_entered,
		   enum enter_failure *ret_failure, struct error *error)
{
	struct pollfd status = { .fd = entering->status_fd, .events = POLLIN };
	int result = 0;

	/* both ends of theirs are closed by the exec, or by their death */
	while (result == 0 && poll(&status, 1, 0) == 1)
		result = hear(entering);
	if (result == 0)
		return 0;
	/* one whose process failed to set a layer up starts no other */
	if (entering->zygote && result > 0 &&
	    (entering->outcome == 0 || entering->failure != ENTER_BROKEN))
		zygote_settle(entering);
	if (result > 0)
		result = entering->outcome < 0 ? entering->outcome : settle(entering);
	if (result < 0) {
		*error = entering->error;
		*ret_failure = entering->failure;
		box_enter_abandon(entering);
		return result;
	}
	fd_close(&entering->status_fd);
	*ret_entered = entering->entered;
	*entering = ENTERING_NONE;
	return 1;
}

int box_enter(struct box *box, const struct action *action, const struct box_streams *streams,
	      struct entered *ret_entered, enum enter_failure *ret_failure, struct error *error)
{
	struct entering entering = ENTERING_NONE;
	int result;

	*ret_failure = ENTER_BROKEN;
	result = box_enter_begin(box, action, streams, false, &entering, error);
	while (result == 0) {
		struct pollfd status = { .fd = entering.status_fd, .events = POLLIN };

		(void)poll(&status, 1, -1);
		result = box_enter_step(&entering, ret_entered, ret_failure, error);
	}
	return result < 0 ? result : 0;
}

/*
 * Process 1 is gone only when every process of its namespace has been waited for, and some of
 * those may be children of ours that we never came to know (their first process was killed before
 * it could tell): whoever is ours ends here.
 */
static void reap_box(struct box *box)
{
	pid_t pid;

	if (box->init.pid <= 0)
		return;
	(void)kill(box->init.pid, SIGKILL);
	do
		pid = waitpid(-1, NULL, 0);
	while (pid != box->init.pid && (pid > 0 || errno == EINTR));
	box->init.pid = -1;
	fd_close(&box->init.pidfd);
}

void box_close_capture(struct box *box)
{
	struct box_capture *capture = &box->capture;

	fd_close(&capture->tcp);
	fd_close(&capture->udp);
	fd_close(&capture->diag);
	for (unsigned i = 0; i < capture->port_count; i++)
		fd_close(&capture->ports[i]);
	capture->port_count = 0;
}

void box_stop(struct box *box)
{
	zygote_close(&box->zygote);
	reap_box(box);
	fd_close(&box->control);
	for (size_t i = 0; i < box->listener_count; i++)
		fd_close(&box->listeners[i]);
	box->listener_count = 0;
	box_close_capture(box);
	fd_close(&box->devpts_fd);
}

void box_end(struct box *box)
{
	box_stop(box);
	if (box->options.plan)
		host_undo(box);
	fd_close(&box->proc_fd);
}
