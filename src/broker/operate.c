#include "broker/operate.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/join.h"
#include "broker/survey.h"
#include "broker/ticker.h"
#include "kernel/usage.h"
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* While a task ends: how often we look whether it is empty. */
#define EMPTY_LOOK_NS (20ull * 1000 * 1000)
/*
 * Stopping everything without a freezer. Each blow is a process of ours inside, some 0.5 ms, and
 * then each process needs a processor for a moment, to stop: on a busy host it waits for that.
 */
#define STOP_LOOKS 4
#define STOP_LOOK_US 300
#define STOP_LOOK_MOST_US 5000
#define STOP_FIRST_NS (20ull * 1000 * 1000)
#define STOP_MOST_NS (1000ull * 1000 * 1000)
/* For a blow that comes by itself while the task is frozen: nothing waits for it. */
#define STOP_AGAIN_TIME_NS (20ull * 1000 * 1000)

/* A process that sleeps in the kernel keeps a freeze from being done. */
#define FREEZE_TIME_NS (1000ull * 1000 * 1000)

/*
 * True when nothing but process 1 is left: who loses its parent becomes its child. False too where
 * the kernel does not tell (CONFIG_PROC_CHILDREN); the grace ends such a box.
 */
static bool is_empty(const struct box *box)
{
	char path[64], byte;
	int CLEANUP_FD fd = -1;

	(void)snprintf(path, sizeof(path), "%d/task/%d/children", box->init.pid, box->init.pid);
	fd = openat(box->proc_fd, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &byte, 1) == 0;
}

static bool are_over(const struct task *task)
{
	for (const struct job *job = task->jobs; job; job = job->next)
		if (job->state < JOB_ENDED)
			return false;
	return true;
}

static void look_at_end(struct task *task, struct task_timer *timer)
{
	struct operate *operate =
		(struct operate *)((char *)timer - offsetof(struct operate, ending));
	uint64_t now = clock_monotonic_ns();

	if (now >= operate->ending_ns || (are_over(task) && is_empty(&task->box)))
		task_kill(task);
	else
		timer->at_ns = now + EMPTY_LOOK_NS;
}

static bool has_freezer(const struct task *task)
{
	return task->options.cgroup && cgroup_has(task->options.cgroup, CGROUP_FREEZE);
}

struct stillness {
	const struct box *box;
	bool all;
};

/* Stopped, traced and stopped, or ended: the letters of proc(5). */
static void look_whether_still(void *context, const struct usage_process *process)
{
	struct stillness *stillness = context;
	char path[32], text[128], *state = NULL;
	int CLEANUP_FD fd = -1;
	ssize_t length;

	if (process->pid == stillness->box->init.pid)
		return;
	(void)snprintf(path, sizeof(path), "%d/stat", process->pid);
	fd = openat(stillness->box->proc_fd, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (length > 0) {
		text[length] = '\0';
		/* the name in parentheses is the task's own word */
		state = strrchr(text, ')');
	}
	if (state && state[1] == ' ' && !strchr("TtZX", state[2]))
		stillness->all = false;
}

/* False too where it cannot be told. Who forked since is seen by the next look. */
static bool is_still(const struct task *task)
{
	struct stillness stillness = { .box = &task->box, .all = true };
	struct usage_sample sample;
	struct usage usage;
	struct error ignored = ERROR_NONE;

	if (usage_begin(&usage, task->box.proc_fd, &ignored) < 0)
		return false;
	(void)usage_add_root(&usage, task->box.init.pid, task->box.init.pidfd, &ignored);
	for (const struct job *job = task->jobs; job; job = job->next)
		if (job->state == JOB_RUNNING)
			(void)usage_add_root(&usage, job->entered.process.pid,
					     job->entered.process.pidfd, &ignored);
	if (usage_poll(&usage, &sample) < 0)
		stillness.all = false;
	usage_each(&usage, look_whether_still, &stillness);
	usage_end(&usage);
	return stillness.all;
}

/*
 * A process that was about to send SIGCONT when the blow fell wakes another, and that one the rest:
 * the blow falls until everything stands or the time is over, and again while the task is frozen.
 */
static int stop_all(struct task *task, uint64_t time_ns, struct error *error)
{
	uint64_t until_ns = clock_monotonic_ns() + time_ns;
	unsigned pause_us = STOP_LOOK_US;

	do {
		int result = box_signal(&task->box, SIGSTOP, error);

		if (result < 0)
			return result;
		for (unsigned look = 0; look < STOP_LOOKS; look++) {
			if (is_still(task))
				return 0;
			(void)usleep(pause_us);
		}
		pause_us = pause_us < STOP_LOOK_MOST_US / 2 ? pause_us * 2 : STOP_LOOK_MOST_US;
	} while (clock_monotonic_ns() < until_ns);
	return 0;
}

static void stop_again(struct task *task, struct task_timer *timer)
{
	struct operate *operate =
		(struct operate *)((char *)timer - offsetof(struct operate, stopping));
	struct error ignored = ERROR_NONE;

	if (!operate->frozen || task->ending || task->killed)
		return;
	if (is_still(task))
		operate->stopping_ns = operate->stopping_ns < STOP_MOST_NS / 2 ?
					       operate->stopping_ns * 2 :
					       STOP_MOST_NS;
	/* a blow that cannot be made is tried again */
	else if (stop_all(task, STOP_AGAIN_TIME_NS, &ignored) == 0)
		operate->stopping_ns = STOP_FIRST_NS;
	timer->at_ns = clock_monotonic_ns() + operate->stopping_ns;
}

/* By the freezer where the task has one; otherwise by signals, which a task can see. */
static int freeze(struct task *task, struct error *error)
{
	struct error ignored = ERROR_NONE;
	int result;

	if (!has_freezer(task))
		return stop_all(task, FREEZE_TIME_NS, error);
	result = cgroup_freeze(task->options.cgroup, FREEZE_TIME_NS, error);
	/* what stood by then would stand for good */
	if (result < 0)
		(void)cgroup_thaw(task->options.cgroup, FREEZE_TIME_NS, &ignored);
	return result;
}

static int thaw(struct task *task, struct error *error)
{
	return has_freezer(task) ? cgroup_thaw(task->options.cgroup, FREEZE_TIME_NS, error) :
				   box_signal(&task->box, SIGCONT, error);
}

static int set_frozen(struct operate *operate, bool frozen, struct error *error)
{
	struct task *task = operate->task;
	int result = frozen ? freeze(task, error) : thaw(task, error);

	if (result < 0)
		return result;
	egress_hold(task, frozen);
	operate->frozen = frozen;
	operate->stopping_ns = STOP_FIRST_NS;
	operate->stopping.at_ns =
		frozen && !has_freezer(task) ? clock_monotonic_ns() + STOP_FIRST_NS : 0;
	return 0;
}

static void let_go_on(struct operate *operate)
{
	struct error ignored = ERROR_NONE;

	/* what does not go on now is killed after the grace */
	if (operate->frozen)
		(void)set_frozen(operate, false, &ignored);
}

void operate_stop(struct operate *operate, uint64_t grace_ns)
{
	struct task *task = operate->task;
	uint64_t until = clock_monotonic_ns() + (grace_ns ? grace_ns : task->options.grace_ns);
	struct error ignored = ERROR_NONE;

	if (task->killed || (task->ending && until >= operate->ending_ns))
		return;
	operate->ending_ns = until;
	operate->ending.at_ns = 1;
	if (task->ending)
		return;
	task->ending = true;
	for (struct job *job = task->jobs; job; job = job->next)
		if (job->state < JOB_ENDED)
			job->options.result->cause = CAUSE_OPERATOR;
	/* also what actions left running */
	if (box_signal(&task->box, SIGTERM, &ignored) < 0)
		for (struct job *job = task->jobs; job; job = job->next)
			job_signal(job, SIGTERM);
	let_go_on(operate);
}

void operate_kill(struct operate *operate)
{
	struct task *task = operate->task;

	task->ending = true;
	for (struct job *job = task->jobs; job; job = job->next)
		if (job->state < JOB_ENDED)
			job->options.result->cause = CAUSE_OPERATOR;
	task_kill(task);
}

static int on_status(void *context, struct arena *arena, struct info *ret_info)
{
	struct error error = ERROR_NONE;
	struct operate *operate = context;
	uint64_t now = clock_monotonic_ns();
	uint64_t idle = operate->options.idle_at ? *operate->options.idle_at : 0;
	uint64_t lifetime = operate->options.lifetime_at ? *operate->options.lifetime_at : 0;
	int result = survey_task(operate->task, arena, ret_info, &error);

	if (result < 0)
		return result;
	if (operate->frozen) {
		ret_info->state = INFO_FROZEN;
		ret_info->freezer = has_freezer(operate->task) ? INFO_BY_CGROUP : INFO_BY_SIGNALS;
	}
	ret_info->started_wall_ns = operate->options.started_wall_ns;
	ret_info->age_ns = now - operate->options.started_ns;
	if (idle)
		ret_info->idle_left_ns = idle > now ? idle - now : 0;
	if (lifetime)
		ret_info->lifetime_left_ns = lifetime > now ? lifetime - now : 0;
	return 0;
}

static int on_exec(void *context, struct control_peer *peer, struct control_exec *exec,
		   struct error *error)
{
	struct operate *operate = context;

	if (operate->task->ending)
		return error_set(error, ESHUTDOWN, "the task is ending");
	if (operate->frozen)
		return error_set(error, EBUSY, "the task is frozen; `bawn thaw` lets it go on");
	if (!operate->options.exec)
		return error_set(error, EOPNOTSUPP,
				 "this task runs one command; `bawn task start` makes one that "
				 "takes more");
	return operate->options.exec(operate, peer, exec, error);
}

static void on_signal(void *context, struct control_peer *peer, int number)
{
	struct operate_peer *word = control_context(peer);

	(void)context;
	job_signal(word->job, number);
}

static void on_window(void *context, struct control_peer *peer, const struct winsize *window)
{
	struct operate_peer *word = control_context(peer);

	(void)context;
	if (word->job->streams.has_pty)
		pty_set_window(&word->job->streams.pty, window);
}

static void on_pause(void *context, struct control_peer *peer)
{
	const struct operate_peer *word = control_context(peer);

	(void)context;
	if (word->ticker)
		ticker_wipe(word->ticker);
}

/* Who started the action takes it along; who joined it leaves it alone. */
static void on_gone(void *context, struct control_peer *peer)
{
	struct operate_peer *word = control_context(peer);

	(void)context;
	word->peer = NULL;
	if (word->joined) {
		join_leave(word->joined);
		free(word);
	} else if (word->job->state < JOB_ENDED) {
		job_signal(word->job, SIGHUP);
	}
}

static struct job *find_job(const struct task *task, const char *action)
{
	for (struct job *job = task->jobs; job; job = job->next)
		if (job->state == JOB_RUNNING &&
		    (!action[0] || strcmp(job->options.action->id, action) == 0))
			return job;
	return NULL;
}

static int on_attach(void *context, struct control_peer *peer, const char *action,
		     int fds[static 3], struct error *error)
{
	struct operate *operate = context;
	struct job *job = find_job(operate->task, action);
	struct operate_peer *word;
	int result;

	if (!job)
		return error_set(error, ESRCH, "no such action runs in the task");
	word = calloc(1, sizeof(*word));
	if (!word)
		return error_errno(error, ENOMEM, "joining the action");
	word->peer = peer;
	word->job = job;
	result = join_begin(operate->task, job, word, fds, &word->joined, error);
	if (result < 0) {
		free(word);
		return result;
	}
	control_set_context(peer, word);
	control_started(peer, job->options.action->id, job->streams.has_pty ? CONTROL_TTY : 0);
	return 0;
}

static int on_freeze(void *context, struct error *error)
{
	struct operate *operate = context;

	if (operate->frozen)
		return 0;
	if (operate->task->ending)
		return error_set(error, ESHUTDOWN, "the task is ending");
	return set_frozen(operate, true, error);
}

static int on_thaw(void *context, struct error *error)
{
	struct operate *operate = context;

	return operate->frozen ? set_frozen(operate, false, error) : 0;
}

static int on_note(void *context, const struct control_note *note, struct error *error)
{
	struct operate *operate = context;
	struct event event = { .type = EVENT_NOTE,
			       .action = "",
			       .body.note = {
				       .text = note->text, .meta = note->meta, .from = "client" } };
	int result;

	if (operate->task->options.sink == &event_null_sink)
		return error_set(error, ENODATA,
				 "it keeps no record (--no-trace), so a note has no place");
	result = task_emit(operate->task, &event);
	if (result < 0) {
		event_why(operate->task->options.sink, result, error);
		return error_context(error, "the note could not be recorded");
	}
	return 0;
}

void operate_suspend(struct operate *operate)
{
	struct task *task = operate->task;
	bool was_frozen = operate->frozen;
	struct error ignored = ERROR_NONE;

	if (task->ending || task->killed)
		return;
	/* signals do not hold what a timer wakes: names that we cover must not lie open */
	if (!has_freezer(task) && task->names.fd >= 0)
		return;
	if (!was_frozen && set_frozen(operate, true, &ignored) < 0)
		return;
	/* what does not stand goes on, and we with it */
	if (has_freezer(task) || is_still(task))
		(void)kill(getpid(), SIGSTOP);
	/* continued: first what the host did to hidden names, then the task */
	task_look_at_names(task);
	if (!was_frozen && set_frozen(operate, false, &ignored) < 0)
		task_kill(task);
}

bool operate_has_freezer(const struct operate *operate)
{
	return has_freezer(operate->task);
}

bool operate_hold(struct operate *operate)
{
	struct error ignored = ERROR_NONE;

	operate->is_held = !operate->frozen && set_frozen(operate, true, &ignored) == 0;
	return operate->frozen && (has_freezer(operate->task) || is_still(operate->task));
}

void operate_release(struct operate *operate)
{
	struct error ignored = ERROR_NONE;

	if (operate->is_held && set_frozen(operate, false, &ignored) < 0)
		task_kill(operate->task);
	operate->is_held = false;
}

static int on_end(void *context, enum control_end by, uint64_t grace_ns, struct error *error)
{
	struct operate *operate = context;

	(void)error;
	if (by == CONTROL_BY_KILL)
		operate_kill(operate);
	else
		operate_stop(operate, grace_ns);
	return 0;
}

static const struct control_ops ops = {
	.status = on_status,
	.exec = on_exec,
	.attach = on_attach,
	.signal = on_signal,
	.window = on_window,
	.pause = on_pause,
	.gone = on_gone,
	.note = on_note,
	.freeze = on_freeze,
	.thaw = on_thaw,
	.end = on_end,
};

static void on_control(struct task *task, struct task_watch *watch, short events)
{
	struct operate *operate =
		(struct operate *)((char *)watch - offsetof(struct operate, watch));

	(void)task;
	(void)events;
	control_step(operate->control);
}

void operate_begin(struct operate *operate, struct task *task,
		   const struct operate_options *options)
{
	*operate = (struct operate){ .options = *options,
				     .task = task,
				     .watch = { .fd = -1, .ready = on_control },
				     .ending = { .fire = look_at_end },
				     .stopping = { .fire = stop_again } };
	task_timer_add(task, &operate->ending);
	task_timer_add(task, &operate->stopping);
}

int operate_listen(struct operate *operate, struct error *error)
{
	struct pollfd entry = { .fd = -1 };
	int result;

	if (operate->options.runtime_fd < 0)
		return error_set(error, ENOENT, "there is no runtime directory");
	result = control_listen(operate->options.runtime_fd, operate->task->options.effective->task,
				&ops, operate, &operate->control, error);
	if (result < 0)
		return result;
	(void)control_poll(operate->control, &entry);
	operate->watch.fd = entry.fd;
	task_watch_add(operate->task, &operate->watch);
	return 0;
}

void operate_close(struct operate *operate)
{
	task_watch_remove(operate->task, &operate->watch);
	control_close(operate->control);
	operate->control = NULL;
}
