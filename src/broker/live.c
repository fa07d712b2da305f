#include "broker/live.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "broker/binding.h"
#include "broker/enforce.h"
#include "broker/isolation.h"
#include "broker/keep.h"
#include "broker/join.h"
#include "broker/operate.h"
#include "broker/parser.h"
#include "broker/report.h"
#include "broker/runtime.h"
#include "broker/ticker.h"
#include "kernel/seccomp.h"
#include "workspace/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Filters of actions that have ended, whose background processes still ask. */
#define STRAYS_LIMIT 64

/* An action of a client. Large, so that the memory of the last one is kept for the next. */
struct live_job {
	struct job job;
	struct control_exec exec; /* the request's memory, the client's descriptors */
	struct operate_peer word;
	struct ticker ticker;
	struct action action;
	struct result result;
	struct denial_list denials;
	struct change_list changes;
	struct collect artifacts; /* none: pattern_count 0 */
	struct error error;
	bool stops; /* the task, when it is over */
};

/* The watchdog's first look. */
#define WATCH_AFTER_NS (100ull * 1000 * 1000)

struct stray {
	struct task_watch watch; /* its descriptor is ours; -1: free */
};

struct live {
	const struct live_options *options;
	struct task task;
	struct operate operate;
	struct enforce enforce;
	struct task_timer idle, lifetime;
	struct stray strays[STRAYS_LIMIT];
	unsigned next_stray;
	struct keep_later *unkept;
	struct parser parser;	/* of shell strings; from the first one on */
	struct live_job *spare; /* as the last action left it */
	uint32_t facts;		/* enum tier_fact: what actions have brought, beyond the task's */
};

#define OF(member, pointer) ((struct live *)((char *)(pointer)-offsetof(struct live, member)))

/* Refuses what is left of an ended action as its own filter would be answered. */
static void on_stray(struct task *task, struct task_watch *watch, short events)
{
	struct seccomp_notif_view call;

	if (!(events & POLLIN)) {
		/* its last process is gone */
		task_watch_remove(task, watch);
		fd_close(&watch->fd);
	} else if (seccomp_notif_receive(watch->fd, &call) == 0 &&
		   seccomp_notif_deny(watch->fd, call.id, EPERM) < 0) {
		/* it was killed meanwhile */
		return;
	}
}

/* The oldest gives way: its system calls then fail with ENOSYS instead of EPERM. */
static void keep_stray(struct live *live, int notify_fd)
{
	struct task_watch *watch = &live->strays[live->next_stray++ % STRAYS_LIMIT].watch;

	if (notify_fd < 0)
		return;
	if (watch->ready && watch->fd >= 0) {
		task_watch_remove(&live->task, watch);
		fd_close(&watch->fd);
	}
	*watch = (struct task_watch){ .fd = notify_fd, .ready = on_stray };
	task_watch_add(&live->task, watch);
}

static bool is_replaced(const char *variable, const struct control_request *request)
{
	size_t length = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < request->variable_count; i++)
		if (strncmp(request->variables[i], variable, length) == 0)
			return true;
	return false;
}

/* The task's environment with the request's own variables over it. */
static const char *const *environment(const struct policy *policy,
				      const struct control_request *request, struct arena *arena)
{
	size_t count = 0;
	const char **all = arena_array(arena, policy->variable_count + request->variable_count + 1,
				       sizeof(char *));

	for (size_t i = 0; all && i < policy->variable_count; i++) {
		char *variable = arena_format(arena, "%s=%s", policy->variables[i].name,
					      policy->variables[i].value);

		if (variable && !is_replaced(variable, request))
			all[count++] = variable;
	}
	for (size_t i = 0; all && i < request->variable_count; i++)
		all[count++] = request->variables[i];
	return all;
}

/*
 * A lock holds for what a client asks of a task, too. Its terminal's TERM is no variable of a flag.
 */
static int check_variables(const struct effective *effective, const struct control_request *request,
			   struct error *error)
{
	const struct document *document = &effective->binding->layers.document;
	const struct document_statement *lock = document_lock(document, DOCUMENT_SET);

	if (!lock)
		lock = document_lock(document, DOCUMENT_PASS);
	for (size_t i = 0; lock && i < request->variable_count; i++)
		if (!(request->flags & CONTROL_TTY) ||
		    strncmp(request->variables[i], "TERM=", 5) != 0)
			return error_set(error, EPERM, "--env: the environment is locked by %s:%u",
					 lock->rule.file ? lock->rule.file : "a policy",
					 lock->rule.line);
	return 0;
}

/* What a client asks for makes no more of the task's policy than a flag could at its start. */
static int check_request(const struct effective *effective, const struct control_request *request,
			 struct error *error)
{
	uint64_t most_ns = effective->policy.timeout_ns;

	if (most_ns && request->timeout_ns > most_ns)
		return error_set(error, EPERM,
				 "--timeout: it is longer than the task's own, which a policy or "
				 "flag of its start set");
	return effective->binding ? check_variables(effective, request, error) : 0;
}

static int make_action(struct live *live, struct live_job *mine, struct error *error)
{
	const struct effective *effective = live->options->effective;
	const struct control_request *request = &mine->exec.request;
	struct arena *arena = &mine->exec.arena;
	const char *cwd = request->cwd[0] ? path_clean(arena, effective->policy.cwd, request->cwd) :
					    effective->policy.cwd;
	struct action action = {
		.argv = request->argv,
		.argc = request->argc,
		.cwd = cwd,
		.environ = environment(&effective->policy, request, arena),
		.input = request->flags & CONTROL_TTY ? ACTION_INPUT_TTY :
			 mine->exec.fds[0] >= 0	      ? ACTION_INPUT_PIPE :
							ACTION_INPUT_NULL,
		.timeout_ns = request->timeout_ns ? request->timeout_ns :
						    effective->policy.timeout_ns,
		.meta = request->meta,
	};
	int result;

	if (arena_failed(arena) || !cwd)
		return error_errno(error, ENOMEM, "making the action");
	result = check_request(effective, request, error);
	if (result < 0)
		return result;
	if (!path_is_under(cwd, effective->policy.workspace))
		return error_set(error, EINVAL, "--cwd %s: it lies outside of the workspace %s",
				 cwd, effective->policy.workspace);
	(void)snprintf(action.task, sizeof(action.task), "%s", effective->task);
	if (effective_make_id('a', action.id) < 0)
		return error_errno(error, errno, "getting random bytes for the action's id");
	mine->action = action;
	return 0;
}

/* A task whose start had other options may write there. */
static int plan_artifacts(struct live *live, struct live_job *mine, struct error *error)
{
	const struct effective *effective = live->options->effective;
	const struct control_request *request = &mine->exec.request;
	struct collect *collect = &mine->artifacts;

	if (!request->artifact_count)
		return 0;
	*collect = (struct collect){ .patterns = request->artifacts,
				     .pattern_count = request->artifact_count };
	/* resolved here: another client may have left a link in it */
	if (request->artifact_path[0] &&
	    collect_directory(request->artifact_path, &mine->exec.arena, &collect->directory,
			      error) < 0)
		return -EINVAL;
	if (!collect->directory)
		collect->directory = arena_format(&mine->exec.arena, "%s/artifacts/%s/%s",
						  effective->state.path, effective->task,
						  mine->action.id);
	return collect->directory ? collect_check(collect, &effective->policy, error) :
				    error_errno(error, ENOMEM, "the directory of artifacts");
}

static void free_job(struct live *live, struct live_job *mine)
{
	job_close(&mine->job);
	for (unsigned i = 0; i < 3; i++)
		fd_close(&mine->exec.fds[i]);
	arena_free(&mine->exec.arena);
	if (live->spare)
		free(mine);
	else
		live->spare = mine;
}

/* The command runs: the client is told. */
static void tell_started(void *context, const struct box *box)
{
	struct live_job *mine = context;

	(void)box;
	if (mine->word.peer)
		control_started(mine->word.peer, mine->action.id,
				mine->exec.request.flags & CONTROL_TTY);
}

/* Something of the task is still there when the action has ended, or may be. */
static bool runs_on(const struct live *live, const struct live_job *mine)
{
	bool has_stray = false;

	for (unsigned i = 0; i < STRAYS_LIMIT; i++)
		has_stray |= live->strays[i].watch.ready && live->strays[i].watch.fd >= 0;
	return has_stray || live->task.jobs || !mine->job.is_gone;
}

/* Looked through and brought to the host while nothing of the task runs, else after a later one. */
static void conclude(struct live *live, struct live_job *mine)
{
	struct operate *operate = &live->operate;
	bool goes_on = runs_on(live, mine);
	/* for the look alone nothing is stopped by signals, which it would see */
	bool is_held = goes_on &&
		       (operate_has_freezer(operate) || landing_has_news(&live->task.landing));

	egress_tell(&live->task);
	mine->job.is_unlanded = goes_on && !(is_held && operate_hold(operate));
	job_conclude(&mine->job);
	live->task.sweeping.is_idle = !goes_on;
	if (is_held)
		operate_release(operate);
}

/* After the last action: what waited for an end of what ran on. */
static void land_last(struct live *live, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct task_landed landed;

	(void)task_land(&live->task, LANDING_LAST, &arena, &landed, error);
	for (size_t i = 0; i < landed.count; i++) {
		struct event event = { .type = EVENT_CHANGE,
				       .action = "",
				       .body.change = &landed.changes[i] };

		/* what is lost is counted in the record */
		(void)task_emit(&live->task, &event);
	}
}

/* Zeroed, the spare one first. */
static struct live_job *make_job(struct live *live)
{
	struct live_job *mine = live->spare;

	live->spare = NULL;
	if (!mine)
		return calloc(1, sizeof(*mine));
	memset(mine, 0, sizeof(*mine));
	return mine;
}

/* The record of an action that is over, and its answer. */
static void finish(struct live *live, struct live_job *mine)
{
	struct arena CLEANUP_ARENA arena = { .first_bytes = ARENA_SMALL_BYTES };
	struct buffer CLEANUP_BUFFER json = { 0 }, text = { 0 };
	struct json writer;
	bool stops;

	ticker_end(&mine->ticker, &live->task);
	enforce_look_back(&live->enforce);
	task_remove(&live->task, &mine->job);
	conclude(live, mine);
	/* most results are short; an arena is no place for one that grows long */
	if (!mine->changes.count && !mine->denials.count)
		json.arena = &arena;
	/* on a line of its own, whatever the command wrote last */
	if (mine->result.output.ends_open)
		buffer_text(&json, "\n");
	json_begin(&writer, &json);
	result_json(&mine->result, &writer);
	buffer_text(&json, "\n");
	report_lines(&mine->result, &text);
	join_finish(&mine->job);
	if (mine->word.peer)
		control_result(mine->word.peer, result_status(&mine->result), &json, &text);
	/* what is lost is counted in the record */
	(void)keep_or_defer(&mine->job, &live->unkept);
	keep_stray(live, TAKE_FD(mine->job.entered.notify_fd));
	stops = mine->stops;
	free_job(live, mine);
	if (stops)
		operate_stop(&live->operate, 0);
	if (live->options->idle_ns && !live->task.jobs)
		live->idle.at_ns = clock_monotonic_ns() + live->options->idle_ns;
}

static void finish_all(struct live *live)
{
	struct job *next;

	for (struct job *job = live->task.jobs; job; job = next) {
		next = job->next;
		if (job->state == JOB_OVER)
			finish(live,
			       (struct live_job *)((char *)job - offsetof(struct live_job, job)));
	}
}

static size_t count_jobs(const struct task *task)
{
	size_t count = 0;

	for (const struct job *job = task->jobs; job; job = job->next)
		count++;
	return count;
}

static bool is_idle(const struct live *live)
{
	for (unsigned i = 0; i < STRAYS_LIMIT; i++)
		if (live->strays[i].watch.ready && live->strays[i].watch.fd >= 0)
			return false;
	return !live->task.jobs;
}

static int on_exec(struct operate *operate, struct control_peer *peer, struct control_exec *exec,
		   struct error *error)
{
	struct live *live = OF(operate, operate);
	struct gate_verdicts verdicts;
	struct job_options options;
	struct live_job *mine;
	struct gate gate;
	bool refused;
	int result;

	if (count_jobs(&live->task) >= TASK_LIMIT_JOBS)
		return error_set(error, EAGAIN, "%d actions of the task are at work already",
				 TASK_LIMIT_JOBS);
	mine = make_job(live);
	if (!mine)
		return error_errno(error, ENOMEM, "making the action");
	mine->exec = *exec;
	mine->word =
		(struct operate_peer){ .peer = peer, .job = &mine->job, .ticker = &mine->ticker };
	mine->job.entering = ENTERING_NONE;
	mine->job.entered = ENTERED_NONE;
	mine->job.streams = STREAMS_NONE;
	mine->ticker = TICKER_NONE;
	exec->arena = (struct arena){ 0 };
	for (unsigned i = 0; i < 3; i++)
		exec->fds[i] = -1;
	result = make_action(live, mine, error);
	if (result == 0)
		result = plan_artifacts(live, mine, error);
	if (result < 0) {
		free_job(live, mine);
		return result;
	}
	gate = (struct gate){ .effective = live->options->effective,
			      .parser = &live->parser,
			      .arena = &mine->exec.arena,
			      .facts = live->facts |
				       (live->task.has_received ? TIER_HAS(RECEIVED) : 0u) };
	refused = gate_pass(&gate, &mine->action, &verdicts, &mine->denials, &mine->error) < 0;
	mine->stops = verdicts.stops;
	/* what did not run has brought nothing */
	live->facts |= refused ? 0 : verdicts.facts;
	options = (struct job_options){ .action = &mine->action,
					.verdicts = verdicts,
					.refused = refused ? &mine->error : NULL,
					.result = &mine->result,
					.denials = &mine->denials,
					.changes = &mine->changes,
					.arena = &mine->exec.arena,
					.artifacts = mine->artifacts.pattern_count ?
							     &mine->artifacts :
							     NULL,
					.error = &mine->error,
					.evidence = mine->exec.request.flags & CONTROL_EVIDENCE ||
						    live->options->sink != &event_null_sink,
					.in = mine->exec.fds[0],
					.out = mine->exec.fds[1],
					.err = mine->exec.fds[2],
					.window = &mine->exec.request.window,
					.started = tell_started,
					.context = mine };
	watchdog_wake(&live->enforce.watchdog);
	control_set_context(peer, &mine->word);
	live->idle.at_ns = 0;
	if (is_idle(live))
		landing_look_again(&live->task.landing, &live->task.box);
	result = job_announce(&mine->job, &live->task, &options);
	/* the client has looked at its terminal's type */
	if (mine->exec.request.flags & CONTROL_PROGRESS)
		ticker_begin(&mine->ticker, &live->task,
			     &(struct ticker_options){ .job = &mine->job,
						       .operate = &live->operate,
						       .watchdog = &live->enforce.watchdog,
						       .started_ns = clock_monotonic_ns(),
						       .term = "of the client",
						       .client = control_pid(peer) });
	if (result < 0 || refused)
		mine->job.state = JOB_OVER;
	else
		/* a failure is in the result, and told as one */
		(void)task_add(&live->task, &mine->job);
	if (result < 0 || refused) {
		mine->job.next = live->task.jobs;
		live->task.jobs = &mine->job;
	}
	return 0;
}

static void on_idle(struct task *task, struct task_timer *timer)
{
	struct live *live = OF(idle, timer);

	if (!task->jobs)
		operate_stop(&live->operate, 0);
}

static void on_lifetime(struct task *task, struct task_timer *timer)
{
	(void)task;
	operate_stop(&OF(lifetime, timer)->operate, 0);
}

static void on_signalled(struct task *task, int number)
{
	struct live *live = OF(task, task);

	/* asked once: politely; again: at once */
	if ((task->ending && number == SIGTERM) || number == SIGQUIT)
		operate_kill(&live->operate);
	else if (number != SIGTSTP && number != SIGWINCH)
		operate_stop(&live->operate, 0);
}

static void serve(struct live *live)
{
	uint64_t now = clock_monotonic_ns();

	if (live->options->idle_ns)
		live->idle.at_ns = now + live->options->idle_ns;
	if (live->options->lifetime_ns)
		live->lifetime.at_ns = now + live->options->lifetime_ns;
	live->options->ready(live->options->context, live->options->effective->task);
	while (!(live->task.killed || live->task.lost) || live->task.jobs) {
		task_step(&live->task);
		finish_all(live);
	}
}

int live_serve(const struct live_options *options, struct error *error)
{
	struct live *live = calloc(1, sizeof(*live));
	struct task_options of_task = {
		.effective = options->effective,
		.sink = options->sink,
		.grace_ns = options->grace_ns ?
				    options->grace_ns :
				    options->effective->policy.limits.values[LIMIT_GRACE],
		.signalled = on_signalled,
		.meta = options->meta,
		.live = true
	};
	struct operate_options of_operate = { .runtime_fd = options->runtime->fd,
					      .exec = on_exec,
					      .started_wall_ns = clock_wall_ns(),
					      .started_ns = clock_monotonic_ns() };
	struct error unrecorded = ERROR_NONE;
	int result, ended;

	if (!live)
		return error_errno(error, ENOMEM, "serving a task");
	live->options = options;
	live->parser = PARSER_NONE;
	live->idle.fire = on_idle;
	live->lifetime.fire = on_lifetime;
	of_operate.idle_at = &live->idle.at_ns;
	of_operate.lifetime_at = &live->lifetime.at_ns;
	of_task.cgroup = &live->enforce.cgroup;
	result = task_announce(&live->task, &of_task, error);
	operate_begin(&live->operate, &live->task, &of_operate);
	task_timer_add(&live->task, &live->idle);
	task_timer_add(&live->task, &live->lifetime);
	if (result == 0)
		result = enforce_prepare(&live->enforce, options->effective, error);
	if (result == 0)
		result = task_start(&live->task);
	if (result == 0)
		enforce_begin(&live->enforce, &live->task, WATCH_AFTER_NS);
	/* the word of process 1 would be taken for its end */
	if (result == 0)
		result = box_await(&live->task.box, error);
	if (result == 0)
		result = task_take_signals(&live->task);
	if (result == 0)
		result = operate_listen(&live->operate, error);
	if (result == 0)
		serve(live);
	else
		task_kill(&live->task);
	operate_close(&live->operate);
	parser_end(&live->parser);
	/* it is dead at once, and its output is kept after that */
	task_stop(&live->task);
	if (live->task.landing.count || live->task.sweeping.is_begun)
		land_last(live, error);
	(void)keep_deferred(&live->task, &live->unkept);
	enforce_end(&live->enforce);
	for (unsigned i = 0; i < STRAYS_LIMIT; i++)
		if (live->strays[i].watch.ready)
			fd_close(&live->strays[i].watch.fd);
	if (result == 0 && (live->task.lost || live->task.names_failed))
		result = error->code < 0 ? error->code : -ECHILD;
	ended = event_end(options->sink, result < 0 ? "failed" : "end", &unrecorded);
	if (ended < 0 && result == 0) {
		*error = unrecorded;
		result = error_context(error, "the end of the task could not be recorded");
	}
	task_end(&live->task);
	free(live->spare);
	free(live);
	return result;
}
