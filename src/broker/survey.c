#include "broker/survey.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/task.h"
#include "kernel/usage.h"
#include "policy/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct look {
	const struct task *task;
	struct arena *arena;
	const struct usage *usage;
	struct info *info;
	struct info_process *processes;
	struct info_action *actions;
};

/* The name of the program; it is the task's own word, and escaped by whoever prints it. */
static const char *command_of(const struct look *look, pid_t pid)
{
	char path[32], name[32] = "";
	int CLEANUP_FD fd = -1;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "%d/comm", pid);
	fd = openat(look->task->box.proc_fd, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
	while (length > 0 && name[length - 1] == '\n')
		length--;
	return arena_copy_bytes(look->arena, name, length > 0 ? (size_t)length : 0);
}

/* Actions are our own children: what descends from their first process is theirs. */
static struct info_action *action_of(const struct look *look, pid_t pid)
{
	size_t number = 0;

	for (const struct job *job = look->task->jobs; job; job = job->next, number++)
		if (job->entered.process.pid == pid && job->state == JOB_RUNNING)
			return &look->actions[number];
	/* parents are listed before, or are none of ours */
	for (size_t i = 0; i < look->info->process_count; i++)
		if (look->processes[i].pid == pid)
			for (size_t j = 0; j < look->info->action_count; j++)
				if (strcmp(look->actions[j].action, look->processes[i].action) == 0)
					return &look->actions[j];
	return NULL;
}

static void add_process(void *context, const struct usage_process *process)
{
	struct look *look = context;
	struct info_process *row;
	struct info_action *action = action_of(look, process->pid);

	look->info->process_total++;
	if (look->info->process_count == INFO_LIMIT_PROCESSES)
		return;
	if (!action)
		action = action_of(look, process->parent);
	row = &look->processes[look->info->process_count++];
	*row = (struct info_process){
		.pid = process->pid,
		.parent = process->parent,
		.command = command_of(look, process->pid),
		.cpu_ns = (process->own_ticks + process->ended_ticks) * look->usage->tick_ns,
		.memory_bytes = process->resident_pages * look->usage->page_bytes,
		.action = action ? action->action : "",
	};
	if (action) {
		action->cpu_ns += row->cpu_ns;
		action->memory_bytes += row->memory_bytes;
		action->processes++;
	}
}

static void add_actions(struct look *look)
{
	uint64_t now = clock_wall_ns();

	for (const struct job *job = look->task->jobs; job; job = job->next) {
		const struct action *action = job->options.action;
		uint64_t started = job->options.result->started_wall_ns;

		look->actions[look->info->action_count++] = (struct info_action){
			.action = action->id,
			.argv = action->argv,
			.argc = action->argc < INFO_LIMIT_ARGUMENTS ? action->argc :
								      INFO_LIMIT_ARGUMENTS,
			.state = job->state < JOB_ENDED ? INFO_RUNNING : INFO_ENDED,
			.age_ns = started && now > started ? now - started : 0,
			.exit = job->state < JOB_ENDED ? -1 : result_status(job->options.result),
		};
	}
}

static void add_limits(struct look *look, const struct usage_sample *sample)
{
	const struct effective *effective = look->task->options.effective;
	struct info_limit *rows = arena_array(look->arena, LIMIT_COUNT, sizeof(*rows));

	for (enum limit limit = 0; rows && limit < LIMIT_COUNT; limit++) {
		if (!held_concerns(limit, &effective->policy.view))
			continue;
		rows[look->info->limit_count++] = (struct info_limit){
			.word = limit_text(limit)->word,
			.value = effective->policy.limits.values[limit],
			.usage = limit == LIMIT_MEMORY	 ? sample->resident_bytes :
				 limit == LIMIT_CPU_TIME ? sample->cpu_ns :
				 limit == LIMIT_PIDS	 ? sample->threads :
							   INFO_UNKNOWN,
			.grade = enforcement_name(effective->means[limit].grade),
		};
	}
	look->info->limits = rows;
}

int survey_task(const struct task *task, struct arena *arena, struct info *ret_info,
		struct error *error)
{
	struct info info = { .task = task->options.effective->task,
			     .pid = getpid(),
			     .mode = task->options.live ? INFO_LIVE : INFO_RUN,
			     .state = task->ending ? INFO_ENDING :
				      task->jobs   ? INFO_RUNNING :
						     INFO_IDLE,
			     .workspace = task->options.effective->policy.workspace,
			     .idle_left_ns = INFO_UNKNOWN,
			     .lifetime_left_ns = INFO_UNKNOWN };
	struct usage usage;
	struct look look = { .task = task, .arena = arena, .usage = &usage, .info = &info };
	struct usage_sample sample = { 0 };
	int result = usage_begin(&usage, task->box.proc_fd, error);

	if (result < 0)
		return result;
	look.processes = arena_array(arena, INFO_LIMIT_PROCESSES, sizeof(*look.processes));
	look.actions = arena_array(arena, TASK_LIMIT_JOBS, sizeof(*look.actions));
	if (!look.processes || !look.actions) {
		usage_end(&usage);
		return error_errno(error, ENOMEM, "looking at the task");
	}
	add_actions(&look);
	/* a root that has just ended is none */
	(void)usage_add_root(&usage, task->box.init.pid, task->box.init.pidfd, error);
	for (const struct job *job = task->jobs; job; job = job->next)
		if (job->state == JOB_RUNNING)
			(void)usage_add_root(&usage, job->entered.process.pid,
					     job->entered.process.pidfd, error);
	if (usage_poll(&usage, &sample) == 0)
		usage_each(&usage, add_process, &look);
	add_limits(&look, &sample);
	info.cpu_ns = sample.cpu_ns;
	info.memory_bytes = sample.resident_bytes;
	info.processes = look.processes;
	info.actions = look.actions;
	usage_end(&usage);
	*ret_info = info;
	return 0;
}
