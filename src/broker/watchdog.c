#include "broker/watchdog.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* For the exact memory of a task that is at its limit: a child walks its page tables. */
#define MEASURE_TIME_NS (200ull * 1000 * 1000)

/* After the beginning of an action in a box that was empty: short ones do not pay for a look. */
#define WAKE_NS (100ull * 1000 * 1000)

static const struct limits *limits_of(const struct watchdog *watchdog)
{
	return &watchdog->task->options.effective->policy.limits;
}

static uint64_t value_of(const struct watchdog *watchdog, enum limit limit)
{
	return limits_of(watchdog)->values[limit];
}

static void tell(struct watchdog *watchdog, enum limit limit, uint64_t usage)
{
	const struct limit_means *means = &watchdog->task->options.effective->means[limit];
	struct limit_hit hit = { .limit = limit,
				 .value = value_of(watchdog, limit),
				 .usage = usage,
				 .enforcement = means->grade,
				 .grain_ns = means->grain_ns };

	watchdog->reached(watchdog->task, &hit);
}

/* One that has ended needs no watching. */
static bool add_root(struct watchdog *watchdog, const struct process *process)
{
	struct error ignored = ERROR_NONE;
	int result = usage_add_root(&watchdog->usage, process->pid, process->pidfd, &ignored);

	return result == 0 || result == -ESRCH;
}

/* Process 1 holds what loses its parent; each action is a child of ours. */
static bool add_roots(struct watchdog *watchdog)
{
	struct task *task = watchdog->task;
	struct error ignored = ERROR_NONE;
	bool all = true;

	if (!watchdog->has_usage) {
		if (usage_begin(&watchdog->usage, task->box.proc_fd, &ignored) < 0)
			return false;
		watchdog->has_usage = true;
		all = add_root(watchdog, &task->box.init);
	}
	for (struct job *job = task->jobs; job; job = job->next) {
		if (job->state != JOB_RUNNING || job->is_watched)
			continue;
		job->is_watched = add_root(watchdog, &job->entered.process);
		all = all && job->is_watched;
	}
	return all;
}

static bool is_held(const struct watchdog *watchdog, enum cgroup_controller controller)
{
	return watchdog->cgroup && cgroup_has(watchdog->cgroup, controller);
}

static void look_at_memory(struct watchdog *watchdog, const struct usage_sample *sample)
{
	uint64_t limit = value_of(watchdog, LIMIT_MEMORY), bytes = sample->resident_bytes;

	if (is_held(watchdog, CGROUP_MEMORY))
		return;
	/* shared pages count once for each process in the cheap sum */
	if (bytes >= limit && usage_measure(&watchdog->usage, MEASURE_TIME_NS, &bytes) < 0)
		bytes = sample->resident_bytes;
	/* more processes than can be looked at: what they use is not known */
	if (bytes >= limit || sample->truncated)
		tell(watchdog, LIMIT_MEMORY, bytes);
}

/* What was asked for is held by the group alone: without it the task does not go on. */
static void lose_group(struct watchdog *watchdog)
{
	struct task *task = watchdog->task;

	(void)error_set(task->error, ESTALE,
			"the task was ended, because its control group %s, which held its limits, "
			"was removed",
			watchdog->cgroup->name);
	for (struct job *job = task->jobs; job; job = job->next) {
		job->options.result->cause = CAUSE_LIMIT;
		job->options.result->message = task->error->message;
	}
	task_kill(task);
}

static void look_at_group(struct watchdog *watchdog, uint64_t *cpu_ns)
{
	struct cgroup_usage usage;
	struct cgroup_events events;

	if (!watchdog->cgroup || !watchdog->cgroup->count)
		return;
	if (is_held(watchdog, CGROUP_ACCOUNT) && cgroup_read_usage(watchdog->cgroup, &usage) == 0 &&
	    usage.cpu_ns != CGROUP_UNLIMITED)
		*cpu_ns = usage.cpu_ns;
	if (cgroup_read_events(watchdog->cgroup, &events) < 0)
		return;
	if (events.oom_kills > watchdog->events.oom_kills)
		tell(watchdog, LIMIT_MEMORY, value_of(watchdog, LIMIT_MEMORY));
	if (events.pids_hits > watchdog->events.pids_hits)
		tell(watchdog, LIMIT_PIDS, value_of(watchdog, LIMIT_PIDS));
	watchdog->events = events;
}

static void look_at_growth(struct watchdog *watchdog)
{
	uint64_t limit_bytes = value_of(watchdog, LIMIT_DISK);
	uint64_t limit_files = value_of(watchdog, LIMIT_INODES);
	uint64_t bytes, files;

	growth_look(&watchdog->growth, watchdog->has_usage ? &watchdog->usage : NULL, limit_bytes,
		    limit_files, &bytes, &files);
	if (bytes >= limit_bytes)
		tell(watchdog, LIMIT_DISK, bytes);
	if (files >= limit_files)
		tell(watchdog, LIMIT_INODES, files);
}

/*
 * Nobody is there but process 1, which starts nothing by itself. Twice, as a process that changes
 * parents can be missed once.
 */
static bool stays_empty(struct watchdog *watchdog, const struct usage_sample *sample)
{
	bool was_empty = watchdog->was_empty;

	watchdog->was_empty = !watchdog->task->jobs && !sample->truncated && sample->processes <= 1;
	return was_empty && watchdog->was_empty;
}

static void look(struct task *task, struct task_timer *timer)
{
	struct watchdog *watchdog =
		(struct watchdog *)((char *)timer - offsetof(struct watchdog, timer));
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct usage_bounds bounds = { .memory_bytes = value_of(watchdog, LIMIT_MEMORY),
				       .cpu_ns = value_of(watchdog, LIMIT_CPU_TIME),
				       .processors = processors > 0 ? (uint32_t)processors : 1 };
	struct usage_sample sample = { 0 };

	if (task->killed)
		return;
	if (watchdog->cgroup && cgroup_is_gone(watchdog->cgroup)) {
		lose_group(watchdog);
		return;
	}
	/* what cannot be looked at is taken for too much */
	if (!add_roots(watchdog) || usage_poll(&watchdog->usage, &sample) < 0)
		sample.truncated = true;
	look_at_group(watchdog, &sample.cpu_ns);
	watchdog->sample = sample;
	watchdog->has_sample = !sample.truncated;
	look_at_memory(watchdog, &sample);
	if (sample.cpu_ns >= bounds.cpu_ns)
		tell(watchdog, LIMIT_CPU_TIME, sample.cpu_ns);
	if (sample.threads >= value_of(watchdog, LIMIT_PIDS))
		tell(watchdog, LIMIT_PIDS, sample.threads);
	look_at_growth(watchdog);
	if (stays_empty(watchdog, &sample))
		return;
	timer->at_ns = clock_monotonic_ns() + usage_interval(&bounds, sample.resident_bytes,
							     sample.cpu_ns, sample.cost_ns);
}

void watchdog_begin(struct watchdog *watchdog, struct task *task, const struct cgroup *cgroup,
		    uint64_t delay_ns,
		    void (*reached)(struct task *task, const struct limit_hit *hit))
{
	*watchdog = (struct watchdog){ .task = task,
				       .cgroup = cgroup,
				       .timer = { .at_ns = clock_monotonic_ns() + delay_ns,
						  .fire = look },
				       .reached = reached };
	growth_begin(&watchdog->growth, &task->options.effective->policy.view, task_plan(task));
	task_timer_add(task, &watchdog->timer);
}

void watchdog_wake(struct watchdog *watchdog)
{
	watchdog->was_empty = false;
	if (!watchdog->timer.at_ns)
		watchdog->timer.at_ns = clock_monotonic_ns() + WAKE_NS;
}

void watchdog_look_back(struct watchdog *watchdog)
{
	uint64_t cpu_ns = 0;

	look_at_group(watchdog, &cpu_ns);
}

void watchdog_end(struct watchdog *watchdog)
{
	watchdog->timer.at_ns = 0;
	if (watchdog->has_usage)
		usage_end(&watchdog->usage);
	watchdog->has_usage = false;
	growth_end(&watchdog->growth);
}
