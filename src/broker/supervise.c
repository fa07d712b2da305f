#include "broker/supervise.h"

#include "base/clock.h"
#include "base/error.h"
#include "broker/enforce.h"
#include "broker/join.h"
#include "broker/keep.h"
#include "broker/operate.h"
#include "broker/runtime.h"
#include "broker/task.h"
#include "broker/ticker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* An action that ends sooner needs no control socket, and does not pay for one. */
#define LISTEN_AFTER_NS (100ull * 1000 * 1000)

/* A task of one action. */
struct one {
	const struct supervise_options *options;
	struct task task;
	struct job job;
	struct operate operate;
	struct task_timer listen;
	struct runtime runtime;
	struct enforce enforce;
	struct ticker ticker;
};

#define OF(member, pointer) ((struct one *)((char *)(pointer)-offsetof(struct one, member)))

/* Without a socket the action runs on: `bawn ps` then says that it has none. */
static void start_listening(struct task *task, struct task_timer *timer)
{
	struct one *one = OF(listen, timer);
	const struct effective *effective = one->options->effective;
	struct error ignored = ERROR_NONE;

	(void)task;
	if (runtime_open(&effective->host, &effective->state, effective->state_is_default,
			 RUNTIME_MAKE, one->options->arena, &one->runtime, &ignored) < 0)
		return;
	one->operate.options.runtime_fd = one->runtime.fd;
	if (operate_listen(&one->operate, &ignored) < 0)
		one->operate.options.runtime_fd = -1;
}

static void suspend(struct one *one)
{
	struct pty *pty = &one->job.streams.pty;

	ticker_wipe(&one->ticker);
	if (one->job.streams.has_pty)
		pty_suspend(pty);
	operate_suspend(&one->operate);
	if (one->job.streams.has_pty)
		pty_continue(pty);
}

static void on_signalled(struct task *task, int number)
{
	struct one *one = OF(task, task);

	if (number == SIGWINCH)
		ticker_wipe(&one->ticker);
	if (number == SIGWINCH && one->job.streams.has_pty)
		pty_resize(&one->job.streams.pty);
	else if (number == SIGTSTP)
		suspend(one);
	else if (number != SIGWINCH)
		job_signal(&one->job, number);
}

static int run(struct one *one, const struct task_options *of_task,
	       const struct job_options *of_job, struct error *error)
{
	struct operate_options of_operate = { .runtime_fd = -1,
					      .started_wall_ns = clock_wall_ns(),
					      .started_ns = clock_monotonic_ns() };
	int result = task_announce(&one->task, of_task, error);
	int announced = job_announce(&one->job, &one->task, of_job);

	operate_begin(&one->operate, &one->task, &of_operate);
	if (one->options->arena) {
		one->listen = (struct task_timer){ .at_ns = of_operate.started_ns + LISTEN_AFTER_NS,
						   .fire = start_listening };
		task_timer_add(&one->task, &one->listen);
	}
	if (one->options->progress)
		ticker_begin(&one->ticker, &one->task,
			     &(struct ticker_options){ .job = &one->job,
						       .operate = &one->operate,
						       .watchdog = &one->enforce.watchdog,
						       .started_ns = of_operate.started_ns,
						       .term = getenv("TERM") });
	if (result == 0)
		result = announced;
	if (result == 0)
		result = enforce_prepare(&one->enforce, one->options->effective, error);
	if (result == 0)
		result = task_start(&one->task);
	if (result == 0)
		enforce_begin(&one->enforce, &one->task, LISTEN_AFTER_NS);
	if (result == 0)
		result = task_add(&one->task, &one->job);
	if (result == 0 && one->options->watch)
		task_watch_add(&one->task, one->options->watch);
	if (result == 0)
		result = task_take_signals(&one->task);
	if (result < 0)
		task_kill(&one->task);
	while (result == 0 && one->job.state != JOB_OVER)
		task_step(&one->task);
	ticker_end(&one->ticker, &one->task);
	enforce_look_back(&one->enforce);
	return result;
}

int supervise(const struct supervise_options *options, struct denial_list *denials,
	      struct result *result, struct error *error)
{
	struct task_options of_task = {
		.effective = options->effective,
		.sink = options->sink,
		.changes = options->changes,
		.names_port = options->names_port,
		.grace_ns = options->effective->policy.limits.values[LIMIT_GRACE],
		.signalled = on_signalled,
		.meta = options->action->meta
	};
	struct job_options of_job = { .action = options->action,
				      .result = result,
				      .denials = denials,
				      .changes = options->changes,
				      .arena = options->arena,
				      .artifacts = options->artifacts,
				      .error = error,
				      .verdicts = options->verdicts,
				      .evidence = options->evidence,
				      .unkept = options->unkept,
				      .in = options->action->input == ACTION_INPUT_NULL ? -1 : 0,
				      .out = options->out,
				      .err = options->err,
				      .started = options->started,
				      .context = options->context };
	struct one one = { .options = options, .runtime = RUNTIME_NONE, .ticker = TICKER_NONE };
	struct error unrecorded = ERROR_NONE;
	int outcome;

	of_task.cgroup = &one.enforce.cgroup;
	outcome = run(&one, &of_task, &of_job, error);
	if (outcome < 0)
		result->message = error->message;
	join_finish(&one.job);
	operate_close(&one.operate);
	runtime_close(&one.runtime);
	/* the ends of its connections belong to the result */
	egress_end(&one.task);
	/* where nothing is left of it, the kernel takes the box down while its end is recorded */
	if (!one.job.is_gone || one.enforce.cgroup.count)
		task_stop(&one.task);
	enforce_end(&one.enforce);
	job_conclude(&one.job);
	if (keep_streams(&one.job) < 0 && !result->message)
		result->message = "the output could not be recorded";
	job_close(&one.job);
	if (event_end(options->sink, outcome < 0 ? "failed" : "end", &unrecorded) < 0 &&
	    !result->message) {
		error_context(&unrecorded, "the end of the task could not be recorded");
		*error = unrecorded;
		result->message = error->message;
	}
	task_end(&one.task);
	return outcome < 0 && result->end == RESULT_FAILED ? outcome : 0;
}
