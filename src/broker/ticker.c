#include "broker/ticker.h"

#include "base/clock.h"
#include "broker/operate.h"
#include "broker/watchdog.h"

#include <stddef.h>
#include <unistd.h>

static void before_output(void *context)
{
	struct ticker *ticker = context;

	ticker->was_disturbed = true;
	progress_wipe(&ticker->progress);
}

/*
 * Whether the status line can disturb nobody: what is typed for the action is echoed on its
 * terminal, and the reader of a pipe may write there too.
 */
static bool can_show(const struct job *job)
{
	const struct pump *out = &job->streams.out, *err = &job->streams.err;

	return !job->streams.has_pty && err->target == PUMP_TERMINAL && out->target != PUMP_PIPE &&
	       out->target != PUMP_SOCKET && (job->options.in < 0 || !isatty(job->options.in));
}

/* Nothing that the action began stands on the terminal's last line, and nothing is on its way. */
static bool is_at_line_start(const struct pump *pump)
{
	return !pump->is_terminal ||
	       (pump->pending_start == pump->pending_end && (!pump->bytes || pump->last == '\n'));
}

/* What is used and allowed is the task's: limits are of all that is in the box. */
static void show(struct ticker *ticker, const struct task *task, uint64_t now)
{
	const struct ticker_options *options = &ticker->options;
	const struct limits *limits = &task->options.effective->policy.limits;
	const struct usage_sample *sample = &options->watchdog->sample;
	uint64_t timeout = options->job->options.action->timeout_ns;
	struct progress_facts facts = {
		.state = options->operate->frozen ? "frozen" :
			 task->ending		  ? "ending" :
						    "running",
		.elapsed_ns = now - options->started_ns,
		.is_measured = options->watchdog->has_sample,
		.cpu_ns = sample->cpu_ns,
		.memory_bytes = sample->resident_bytes,
		/* process 1 is ours */
		.processes = sample->processes ? sample->processes - 1 : 0,
		.elapsed_limit_ns = timeout ? timeout : LIMIT_NONE,
		.cpu_limit_ns = limits->values[LIMIT_CPU_TIME],
		.memory_limit_bytes = limits->values[LIMIT_MEMORY],
		.process_limit = limits_is_asked(limits, LIMIT_PIDS) ? limits->values[LIMIT_PIDS] :
								       LIMIT_NONE,
	};

	progress_show(&ticker->progress, &facts);
}

static void on_tick(struct task *task, struct task_timer *timer)
{
	struct ticker *ticker = (struct ticker *)((char *)timer - offsetof(struct ticker, timer));
	struct job *job = ticker->options.job;
	struct streams *streams = &job->streams;
	uint64_t now = clock_monotonic_ns();

	if (!streams->before) {
		if (!can_show(job))
			return;
		progress_begin(&ticker->progress, job->options.err, ticker->options.term,
			       ticker->options.client);
		if (ticker->progress.fd < 0)
			return;
		streams->before = before_output;
		streams->before_context = ticker;
		/* it is shown after a silence only, so the first look is at how that begins */
		ticker->was_disturbed = true;
	}
	timer->at_ns = now + PROGRESS_INTERVAL_NS;
	/* who writes all the time shows by himself that something is going on */
	if (!ticker->was_disturbed && job->state == JOB_RUNNING &&
	    is_at_line_start(&streams->out) && is_at_line_start(&streams->err))
		show(ticker, task, now);
	ticker->was_disturbed = false;
}

void ticker_begin(struct ticker *ticker, struct task *task, const struct ticker_options *options)
{
	*ticker = TICKER_NONE;
	ticker->options = *options;
	ticker->timer = (struct task_timer){ .at_ns = options->started_ns + PROGRESS_AFTER_NS -
						      PROGRESS_INTERVAL_NS,
					     .fire = on_tick };
	task_timer_add(task, &ticker->timer);
}

void ticker_wipe(struct ticker *ticker)
{
	before_output(ticker);
}

void ticker_end(struct ticker *ticker, struct task *task)
{
	task_timer_remove(task, &ticker->timer);
	progress_end(&ticker->progress);
}
