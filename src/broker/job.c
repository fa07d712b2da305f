#include "broker/job.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/egress.h"
#include "broker/evidence.h"
#include "broker/infer.h"
#include "broker/staging.h"
#include "broker/task.h"
#include "kernel/seccomp.h"
#include "trace/identify.h"
#include "workspace/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* One ^C comes twice where a parent (npm, timeout) passes on what the terminal sent us as well. */
#define SAME_SIGNAL_NS (100ull * 1000 * 1000)
/* After the wall clock: the time for what was written to find its reader. */
#define FLUSH_NS (5ull * 1000 * 1000 * 1000)

/* Nobody looks at what an action wrote that is over sooner. */
#define YOUNG_NS (100ull * 1000 * 1000)

/*
 * An action that is over sooner has its start written while the kernel takes its box down; its
 * intent is on record all the same. In a live task nothing is taken down: it is written at once.
 */
#define TELL_NS (2ull * 1000 * 1000)

/* Milliseconds as a rule. Whatever runs in the box already can stop who comes in. */
#define ENTER_NS (10ull * 1000 * 1000 * 1000)

enum { WATCH_PROCESS, WATCH_NOTIFY, WATCH_STREAMS };

static int emit_as_it_is(struct job *job, enum event_type type, struct event *event)
{
	event->type = type;
	event->action = job->options.action->id;
	event->parent = job->options.action->parent;
	return task_emit(job->task, event);
}

/* That it runs, and as what: on record before anything else of it is, and soon. */
static int tell_start(struct job *job)
{
	const struct cgroup *cgroup = job->task->options.cgroup;
	struct event event = { .wall_ns = job->options.result->started_wall_ns,
			       .monotonic_ns = job->started_ns,
			       .body.start = { .pid = job->entered.process.pid,
					       .executable_fd = job->entered.executable_fd,
					       .executable_path = job->executable_path,
					       .measured = job->options.result,
					       .cgroup = cgroup && cgroup->count ? cgroup->name :
										   NULL } };

	if (!job->tell_ns)
		return 0;
	job->tell_ns = 0;
	job->task->has_work = true;
	return emit_as_it_is(job, EVENT_ACTION_START, &event);
}

static int emit(struct job *job, enum event_type type, struct event *event)
{
	int result = tell_start(job);

	return result < 0 ? result : emit_as_it_is(job, type, event);
}

/* The first one stands before the intent. */
static int tell_verdicts(struct job *job)
{
	int result = 0;

	for (size_t i = 1; i < job->options.verdicts.count && result == 0; i++) {
		struct event verdict = { .body.verdict = job->options.verdicts.rows[i] };

		result = emit(job, EVENT_VERDICT, &verdict);
	}
	return result < 0 ? result : event_flush(job->task->options.sink);
}

/* The gate did not let it pass: that is its end. */
static int be_refused(struct job *job)
{
	const struct denial_list *denials = job->options.denials;
	struct result *result = job->options.result;
	int outcome = 0;

	result->end = RESULT_DENIED;
	result->cause = CAUSE_POLICY;
	result->message = job->options.refused->message;
	for (uint32_t i = 0; i < denials->count && outcome == 0; i++) {
		const struct denial *denial = &denials->items[i];
		struct event asked = { .body.approval = { .verb = denial_text(denial->kind)->verb,
							  .target = denial->object,
							  .shown = "",
							  .answer = "deny" } };
		struct event event = { .body.denial = denial };

		if (denial->kind == DENIAL_COMMAND_ASKED || denial->kind == DENIAL_ISOLATION_ASKED)
			outcome = emit(job, EVENT_APPROVAL, &asked);
		if (outcome == 0)
			outcome = emit(job, EVENT_DENIAL, &event);
	}
	return outcome;
}

int job_announce(struct job *job, struct task *task, const struct job_options *options)
{
	const struct effective *effective = task->options.effective;
	struct event verdict = { .body.verdict = { .verdict = "allow",
						   .verb = "process.exec",
						   .target = options->action->argv[0],
						   .reason = rule_builtin_text(RULE_RUN_ALLOWED),
						   .tier = tier_name(effective->tier.tier),
						   .tier_reason = effective->tier_reason,
						   .rule = rule_builtin(RULE_RUN_ALLOWED) } };
	struct event intent = { .body.intent = { .action = options->action,
						 .meta = options->action->meta } };
	struct result *result = options->result;
	int outcome;

	*job = (struct job){ .task = task,
			     .options = *options,
			     .streams = STREAMS_NONE,
			     .entering = ENTERING_NONE,
			     .entered = ENTERED_NONE };
	result->end = RESULT_FAILED;
	result->cause = CAUSE_BAWN;
	result->action = options->action;
	result->policy_hash = effective->hash;
	result->view = &effective->policy.view;
	result->withheld = effective->withheld;
	result->withheld_count = effective->withheld_count;
	result->verdicts = options->verdicts.rows;
	result->verdict_count = options->verdicts.count;
	if (options->verdicts.count)
		verdict.body.verdict = options->verdicts.rows[0];
	result->tier = verdict.body.verdict.tier;
	result->tier_reason = verdict.body.verdict.tier_reason;
	outcome = emit(job, EVENT_VERDICT, &verdict);
	if (outcome == 0)
		outcome = emit(job, EVENT_ACTION_INTENT, &intent);
	/* behind the intent, by which the recorder knows what is secret in their words */
	if (outcome == 0 && options->verdicts.count)
		outcome = tell_verdicts(job);
	if (outcome == 0 && options->refused)
		outcome = be_refused(job);
	if (outcome < 0) {
		event_why(task->options.sink, outcome, options->error);
		error_context(options->error,
			      "the trace in %s cannot be written, so nothing was started",
			      effective->state.path);
		result->message = options->error->message;
	}
	return outcome;
}

/* The end a finished action has: its own, unless bawn or the box could not do it. */
static void settle_failure(struct job *job, enum enter_failure failure)
{
	static const enum result_end ends[] = { [ENTER_BROKEN] = RESULT_FAILED,
						[ENTER_NOT_FOUND] = RESULT_NOT_FOUND,
						[ENTER_NOT_EXECUTABLE] = RESULT_NOT_EXECUTABLE };
	struct result *result = job->options.result;

	if (failure == ENTER_BROKEN)
		effective_diagnose(job->task->options.effective, job->options.error);
	result->end = ends[failure];
	result->cause = failure == ENTER_BROKEN ? CAUSE_BAWN : CAUSE_COMMAND;
	result->message = job->options.error->message;
	streams_cut(&job->streams);
	job->state = JOB_OVER;
}

static void pass_signal(struct job *job, int number)
{
	pid_t pid = job->entered.process.pid;

	(void)kill(-pid, number);
	(void)kill(pid, number);
	if (number == SIGTERM || number == SIGHUP)
		job->grace_ns = clock_monotonic_ns() + job->task->options.grace_ns;
}

/* The command runs: from here on the action has a time, and a result of its own. */
static void begin_running(struct job *job)
{
	struct result *result = job->options.result;

	job->state = JOB_RUNNING;
	job->family = box_family(&job->task->box, &job->entered.process);
	result->end = RESULT_EXITED;
	result->cause = CAUSE_COMMAND;
	result->started_wall_ns = clock_wall_ns();
	job->started_ns = result->duration_ns = clock_monotonic_ns();
	job->tell_ns = job->started_ns + (job->task->options.live ? 0 : TELL_NS);
	/* the record has work of its own to do, now that the command has its processor */
	job->task->has_work = true;
	job->old_ns = result->duration_ns + YOUNG_NS;
	if (job->options.action->timeout_ns)
		job->deadline_ns = result->duration_ns + job->options.action->timeout_ns;
	if (job->options.evidence) {
		identify_path(job->entered.executable_fd, job->executable_path);
		evidence_gather(task_plan(job->task), &job->task->box, &job->entered,
				&job->task->namespaces, result);
		result->limit_count = evidence_limits(job->task->options.effective,
						      job->options.action, &job->entered,
						      result->limits);
	}
	if (job->options.started)
		job->options.started(job->options.context, &job->task->box);
	/* sent as it was about to be executed */
	if (job->asked) {
		result->cause = CAUSE_OPERATOR;
		pass_signal(job, job->asked_signal);
	}
}

static void step_in(struct job *job)
{
	enum enter_failure failure = ENTER_BROKEN;
	int outcome = box_enter_step(&job->entering, &job->entered, &failure, job->options.error);

	if (outcome > 0)
		begin_running(job);
	else if (outcome < 0)
		settle_failure(job, failure);
}

static uint64_t cap_of(const struct effective *effective)
{
	uint64_t cap = effective->policy.limits.values[LIMIT_OUTPUT];

	return cap == LIMIT_NONE ? 0 : cap;
}

static void hash_input(void *context, const void *bytes, size_t length)
{
	sha256_update(context, bytes, length);
}

int job_begin(struct job *job)
{
	const struct effective *effective = job->task->options.effective;
	bool terminal = job->options.action->input == ACTION_INPUT_TTY;
	struct streams_options streams = { .root = effective->host.root,
					   .in = job->options.in,
					   .out = job->options.out,
					   .err = job->options.err,
					   .devpts_fd = -1,
					   .cap_bytes = cap_of(effective),
					   .unkept = job->options.unkept,
					   .remote = job->options.window };
	bool occupied = job->task->jobs_begun > 0;
	int ends[3] = { -1, -1, -1 };
	int outcome = 0;

	job->number = ++job->task->jobs_begun;
	if (terminal) {
		outcome = box_await(&job->task->box, job->options.error);
		streams.devpts_fd = job->task->box.devpts_fd;
		if (outcome == 0 && streams.devpts_fd < 0)
			outcome = error_set(job->options.error, EOPNOTSUPP,
					    "the box was made without terminals");
	}
	if (outcome == 0)
		outcome = streams_open(&job->streams, &streams, ends, job->options.error);
	if (outcome == 0 && job->options.action->input == ACTION_INPUT_PIPE) {
		sha256_begin(&job->input);
		job->streams.in.tee = hash_input;
		job->streams.in.tee_context = &job->input;
	}
	if (outcome == 0 && job->options.arena)
		outcome = sweeping_begin(&job->task->sweeping, effective, job->options.error);
	/* what it changes in a layer is told apart from what earlier ones did */
	if (outcome == 0 && job->task->options.live && staging_is_layered(effective))
		job->staged_ns = sweep_stamp_now_ns();
	/* before anything of it runs: the supervisor may be killed at any moment */
	if (outcome == 0 && sweeping_keep(&job->task->sweeping, job->task->box.task_fd) < 0)
		outcome = error_set(job->options.error, EIO,
				    "what the workspace was before the action could not be kept in "
				    "the task's directory");
	if (outcome == 0) {
		struct box_streams inside = {
			.in = ends[0], .out = ends[1], .err = ends[2], .terminal = terminal
		};

		outcome = box_enter_begin(&job->task->box, job->options.action, &inside, occupied,
					  &job->entering, job->options.error);
	}
	for (unsigned i = 0; i < 3; i++)
		fd_close(&ends[i]);
	if (outcome < 0) {
		settle_failure(job, ENTER_BROKEN);
		return outcome;
	}
	job->state = JOB_ENTERING;
	job->enter_ns = clock_monotonic_ns() + ENTER_NS;
	if (job->options.action->timeout_ns)
		job->deadline_ns = clock_monotonic_ns() + job->options.action->timeout_ns;
	step_in(job);
	return job->state == JOB_OVER ? job->options.error->code : 0;
}

static enum denial_kind kind_of_call(int number)
{
	switch (seccomp_report_group(number)) {
	case SECCOMP_REPORT_MOUNT:
	case SECCOMP_REPORT_NAMESPACE:
		return DENIAL_SYS_NAMESPACE;
	case SECCOMP_REPORT_PTRACE:
		return DENIAL_SYS_PTRACE;
	default:
		return DENIAL_SYS_KERNEL;
	}
}

static enum rule_builtin rule_of_kind(enum denial_kind kind)
{
	return kind == DENIAL_SYS_NAMESPACE ? RULE_SYSCALL_NAMESPACE :
	       kind == DENIAL_SYS_PTRACE    ? RULE_SYSCALL_PTRACE :
					      RULE_SYSCALL_ALLOWLIST;
}

void job_tell(struct job *job, enum event_type type, struct event *event)
{
	/* the action runs already */
	if (emit(job, type, event) < 0)
		job_kill(job);
}

static void deny(struct job *job, enum denial_kind kind, struct rule_ref rule, const char *object,
		 const char *doubt)
{
	struct denial_list *denials = job->options.denials;

	if (denial_add(denials, kind, rule, object, !doubt)) {
		struct denial *denial = &denials->items[denials->count - 1];
		struct event event = { .body.denial = denial };

		denial->reason = doubt;
		job_tell(job, EVENT_DENIAL, &event);
	}
}

void job_deny(struct job *job, enum denial_kind kind, struct rule_ref rule, const char *object)
{
	deny(job, kind, rule, object, NULL);
}

void job_deny_perhaps(struct job *job, enum denial_kind kind, struct rule_ref rule,
		      const char *object)
{
	deny(job, kind, rule, object,
	     "of an action that ran then, perhaps not this one: which cannot be told");
}

struct network_target *job_target(struct job *job, const char *host, uint16_t port,
				  const char *verdict, const struct rule_ref *rule)
{
	if (!job->network && job->options.arena)
		job->network = arena_array(job->options.arena, 1, sizeof(*job->network));
	return job->network ? network_find(job->network, host, port, verdict, rule) : NULL;
}

static void answer_call(struct job *job)
{
	struct seccomp_notif_view call;
	enum denial_kind kind;
	const char *name;

	if (seccomp_notif_receive(job->entered.notify_fd, &call) < 0)
		return;
	if (seccomp_notif_deny(job->entered.notify_fd, call.id, EPERM) < 0)
		/* it was killed meanwhile, or the box is ending */
		return;
	name = seccomp_syscall_name(call.nr);
	kind = kind_of_call(call.nr);
	job_deny(job, kind, rule_builtin(rule_of_kind(kind)), name ? name : "?");
}

static void take_usage(struct result *result, const struct rusage *usage)
{
	result->duration_ns = clock_monotonic_ns() - result->duration_ns;
	result->user_us =
		(uint64_t)usage->ru_utime.tv_sec * 1000000u + (uint64_t)usage->ru_utime.tv_usec;
	result->system_us =
		(uint64_t)usage->ru_stime.tv_sec * 1000000u + (uint64_t)usage->ru_stime.tv_usec;
	result->peak_memory_bytes = (uint64_t)usage->ru_maxrss * 1024u;
}

/* Told by the kernel as the last process that has the filter exits (do_exit(), Linux 6.11). */
static bool has_lost_filter(const struct job *job)
{
	struct pollfd notify = { .fd = job->entered.notify_fd };

	return notify.fd >= 0 && poll(&notify, 1, 0) == 1 && (notify.revents & POLLHUP);
}

static void reap(struct job *job)
{
	struct result *result = job->options.result;
	struct rusage usage;
	int status;

	if (wait4(job->entered.process.pid, &status, 0, &usage) < 0)
		return;
	job->state = JOB_ENDED;
	job->is_gone |= has_lost_filter(job);
	fd_close(&job->entered.process.pidfd);
	take_usage(result, &usage);
	if (result->end == RESULT_TIMED_OUT) {
		result->signal = SIGKILL;
	} else if (WIFEXITED(status)) {
		result->end = RESULT_EXITED;
		result->code = WEXITSTATUS(status);
	} else {
		result->end = RESULT_SIGNALED;
		result->signal = WTERMSIG(status);
		result->core_dumped = WCOREDUMP(status);
	}
	task_job_ended(job->task, job);
	/* the result tells what was lost */
	(void)tell_start(job);
	/* what others of the task still write is not this action's any more */
	streams_drain(&job->streams, job->task->options.live);
}

void job_poll(const struct job *job, struct pollfd entries[static JOB_WATCHES])
{
	bool runs = job->state == JOB_RUNNING;

	entries[WATCH_PROCESS] = (struct pollfd){ .fd = job->state == JOB_ENTERING ?
								job->entering.status_fd :
							runs ? job->entered.process.pidfd :
							       -1,
						  .events = POLLIN };
	entries[WATCH_NOTIFY] =
		(struct pollfd){ .fd = runs ? job->entered.notify_fd : -1, .events = POLLIN };
	streams_poll(&job->streams, runs, &entries[WATCH_STREAMS]);
}

/*
 * No process has the filter any more: all that the action ever was is on its way out, and its
 * status is fixed. The box of `bawn run` can end with it (task_job_ended()) rather than after it.
 */
static void lose_filter(struct job *job)
{
	job->is_gone = true;
	fd_close(&job->entered.notify_fd);
	if (!job->task->options.live)
		task_kill(job->task);
}

void job_step(struct job *job, const struct pollfd entries[static JOB_WATCHES])
{
	streams_step(&job->streams, &entries[WATCH_STREAMS]);
	if (job->state == JOB_RUNNING && (entries[WATCH_NOTIFY].revents & POLLIN))
		answer_call(job);
	else if (job->state == JOB_RUNNING && entries[WATCH_NOTIFY].revents)
		lose_filter(job);
	if (job->state == JOB_ENTERING && entries[WATCH_PROCESS].revents)
		step_in(job);
	else if (job->state == JOB_RUNNING && entries[WATCH_PROCESS].revents)
		reap(job);
}

uint64_t job_due(const struct job *job)
{
	uint64_t due = job->deadline_ns;

	if (job->tell_ns && (!due || job->tell_ns < due))
		due = job->tell_ns;
	if (job->state == JOB_ENTERING && (!due || job->enter_ns < due))
		due = job->enter_ns;
	if (job->state != JOB_ENDED && job->grace_ns && (!due || job->grace_ns < due))
		due = job->grace_ns;
	if (job->streams.has_spool && job->streams.spool.is_early && (!due || job->old_ns < due))
		due = job->old_ns;
	return job->state == JOB_OVER ? 0 : due;
}

/* A full disk does not stop the action: its output goes on, and what is told is that it is lost. */
static void look_at_spool(struct job *job, uint64_t now_ns)
{
	struct error error = ERROR_NONE;

	if (!streams_wants_place(&job->streams, now_ns >= job->old_ns))
		return;
	job->task->has_spools = true;
	if (streams_place_spool(&job->streams, job->task->box.task_fd, job->options.action->id,
				&error) ||
	    job->options.result->message)
		return;
	error_context(&error, "the output is passed on, but no longer kept for `bawn logs`");
	*job->options.error = error;
	job->options.result->message = job->options.error->message;
}

bool job_limit(struct job *job, const struct limit_hit *hit)
{
	struct result *result = job->options.result;

	for (size_t i = 0; i < result->hit_count; i++)
		if (result->hits[i].limit == hit->limit)
			return false;
	result->hits[result->hit_count++] = *hit;
	/* a refusal by the kernel is the command's to deal with */
	if (hit->enforcement != ENFORCEMENT_EXACT || hit->limit == LIMIT_OUTPUT)
		result->cause = CAUSE_LIMIT;
	return true;
}

/* More than the cap came: the action stands in its write, until it is ended. */
static void look_at_cap(struct job *job)
{
	const struct pump *out = streams_out(&job->streams), *err = streams_err(&job->streams);
	const struct limits *limits = &job->task->options.effective->policy.limits;
	struct limit_hit hit = { .limit = LIMIT_OUTPUT,
				 .value = limits->values[LIMIT_OUTPUT],
				 .enforcement = ENFORCEMENT_EXACT };
	struct event event = { .body.limit = &hit };

	if (job->was_capped || !((out->capped && out->stopped) || (err->capped && err->stopped)))
		return;
	job->was_capped = true;
	hit.usage = out->capped ? out->bytes : err->bytes;
	(void)job_limit(job, &hit);
	if (emit(job, EVENT_LIMIT, &event) < 0)
		job->options.result->message = "a limit could not be recorded";
	job_kill(job);
}

/* Something in the box holds it up; its own time passes too. */
static void look_at_entry(struct job *job, uint64_t now_ns)
{
	struct result *result = job->options.result;
	bool is_due = job->deadline_ns && now_ns >= job->deadline_ns;

	if (!is_due && now_ns < job->enter_ns)
		return;
	box_enter_abandon(&job->entering);
	error_set(job->options.error, ETIMEDOUT,
		  "the command did not get into the box in time: what runs there stops it; `bawn "
		  "ps` shows it, `bawn kill` ends it");
	settle_failure(job, ENTER_BROKEN);
	if (!is_due)
		return;
	result->end = RESULT_TIMED_OUT;
	result->cause = CAUSE_LIMIT;
	result->signal = SIGKILL;
}

static void end_by_clock(struct job *job, uint64_t now_ns)
{
	struct limit_hit hit = { .limit = LIMIT_WALL_CLOCK,
				 .value = job->options.action->timeout_ns,
				 .usage = now_ns - job->started_ns,
				 .enforcement = ENFORCEMENT_EXACT };
	struct event event = { .body.limit = &hit };

	job->deadline_ns = now_ns + FLUSH_NS;
	job->options.result->end = RESULT_TIMED_OUT;
	job->options.result->cause = CAUSE_LIMIT;
	job_kill(job);
	/* its end is told by the result as well */
	(void)emit(job, EVENT_LIMIT, &event);
}

void job_tick(struct job *job, uint64_t now_ns)
{
	bool is_due = job->deadline_ns && now_ns >= job->deadline_ns;

	if (job->tell_ns && now_ns >= job->tell_ns && tell_start(job) < 0)
		job_kill(job);
	look_at_spool(job, now_ns);
	if (job->state == JOB_RUNNING)
		look_at_cap(job);
	if (job->state == JOB_ENTERING) {
		look_at_entry(job, now_ns);
		return;
	}
	if (job->state == JOB_ENDED) {
		/* what is left in the pipes has a reader that does not read */
		if (is_due)
			streams_cut(&job->streams);
		if (!streams_done(&job->streams))
			return;
		if (job->task->options.live)
			egress_settle(job->task);
		job->state = JOB_OVER;
		return;
	}
	if (is_due)
		end_by_clock(job, now_ns);
	if (job->grace_ns && now_ns >= job->grace_ns) {
		job->grace_ns = 0;
		job_kill(job);
	}
}

void job_kill(struct job *job)
{
	if (!job->task->options.live) {
		task_kill(job->task);
	} else if (job->state == JOB_ENTERING) {
		box_enter_abandon(&job->entering);
		error_set(job->options.error, ECANCELED, "it was ended before it began");
		settle_failure(job, ENTER_BROKEN);
	} else if (job->state == JOB_RUNNING) {
		/* the group at one blow, then whoever left it */
		(void)kill(-job->entered.process.pid, SIGKILL);
		(void)kill(job->entered.process.pid, SIGKILL);
		box_kill_family(&job->task->box, job->family);
	}
}

void job_signal(struct job *job, int number)
{
	uint64_t now = clock_monotonic_ns();

	/* it may run already, and have said so to somebody who then sent this */
	if (job->state == JOB_ENTERING) {
		step_in(job);
		if (job->state == JOB_OVER)
			return;
	}
	job->options.result->cause = CAUSE_OPERATOR;
	if (job->asked && job->asked_signal == number && now < job->asked_ns + SAME_SIGNAL_NS)
		return;
	if (!job->asked) {
		job->asked_ns = now;
		job->asked_signal = number;
	}
	if (job->asked++ || (job->state != JOB_RUNNING && !job->entering.announced)) {
		job_kill(job);
		streams_cut(&job->streams);
	} else if (job->state == JOB_RUNNING) {
		pass_signal(job, number);
	}
}

void job_lose(struct job *job)
{
	struct result *result = job->options.result;

	if (job->state == JOB_ENTERING) {
		box_enter_abandon(&job->entering);
		settle_failure(job, ENTER_BROKEN);
	} else if (job->state == JOB_RUNNING) {
		reap(job);
	}
	if (!job->task->lost)
		return;
	result->end = RESULT_FAILED;
	result->cause = CAUSE_BAWN;
	result->message = job->task->error->message;
}

static void note_change(struct job *job, const struct change *change)
{
	struct change_list *list = job->options.changes;
	struct event event = { .body.change = change };

	if (list && list->count < CHANGE_LIMIT)
		list->items[list->count++] = *change;
	else if (list)
		job->options.result->unlisted_changes++;
	if (emit(job, EVENT_CHANGE, &event) < 0)
		job->options.result->message = "a change could not be recorded";
}

/* It comes after a later action, or at the end of the task. */
static void note_unlanded(struct job *job)
{
	struct landing *landing = &job->task->landing;
	const struct change change = { .path = landing->count ? landing->covers[0].path : NULL,
				       .kind = CHANGE_MODIFIED,
				       .state = CHANGE_DEFERRED,
				       .reason = "something of the task ran on" };

	if (landing_has_news(landing))
		note_change(job, &change);
}

/* What did not come to the host must not look like success. */
static void note_landed(struct job *job)
{
	struct task *task = job->task;
	struct result *result = job->options.result;
	struct task_landed landed;
	int outcome;

	if (job->is_unlanded)
		note_unlanded(job);
	if (!job->options.arena)
		return;
	outcome = task_land(task,
			    !task->options.live ? LANDING_LAST :
			    job->is_unlanded	? LANDING_NOT_NOW :
						  LANDING_BETWEEN,
			    job->options.arena, &landed, job->options.error);
	for (size_t i = 0; i < landed.count; i++)
		note_change(job, &landed.changes[i]);
	result->unlisted_changes += landed.unlisted;
	if (landed.cut)
		result->changes_cut = landed.cut;
	if (outcome == 0)
		return;
	result->message = job->options.error->message;
	if (result->end == RESULT_EXITED && result->code == 0) {
		result->end = RESULT_FAILED;
		result->cause = CAUSE_BAWN;
	}
}

/* It stays in the task's directory, for the next start to make a stage of; no success meanwhile. */
static void lose_stage(struct job *job, const struct error *error)
{
	const struct effective *effective = job->task->options.effective;
	struct result *result = job->options.result;

	result->changes_cut = "what was staged could not be read";
	if (!staging_is_on(effective) || result->end != RESULT_EXITED || result->code != 0)
		return;
	result->end = RESULT_FAILED;
	result->cause = CAUSE_BAWN;
	if (job->options.arena)
		result->message = arena_format(job->options.arena,
					       "what was staged could not be read: %s; it lies in "
					       "%s/tasks/%s",
					       error->message, effective->state.path,
					       effective->task);
}

/* Where nothing of the task runs any more, or is stopped, it is listed. */
static void note_staged(struct job *job)
{
	struct task *task = job->task;
	const struct effective *effective = task->options.effective;
	struct result *result = job->options.result;
	struct error error = ERROR_NONE;
	struct staging_list list;

	result->is_ephemeral = effective->policy.flags & POLICY_EPHEMERAL;
	if (task->is_copied && job->options.arena)
		result->copied = staging_tell(&task->copied, job->options.arena);
	if (task->box.task_fd < 0)
		return;
	if (staging_settle(effective, task->box.task_fd, &error) < 0) {
		lose_stage(job, &error);
		return;
	}
	result->has_dropped = staging_has_ephemeral(effective, task->box.task_fd);
	if (staging_has_news(effective, task->box.task_fd))
		result->stage = effective->task;
	if ((!result->stage && !result->has_dropped) || job->is_unlanded || !job->options.arena)
		return;
	if (staging_list(effective, task->box.task_fd, job->staged_ns, job->options.arena, &list,
			 &error) < 0) {
		lose_stage(job, &error);
		return;
	}
	if (list.cut)
		result->changes_cut = list.cut;
	for (size_t i = 0; i < list.count; i++)
		note_change(job, &list.changes[i]);
	result->unlisted_changes += list.unlisted;
}

/* What did not arrive must not look like success. A reader that has gone is no failure. */
static void note_lost_bytes(struct job *job)
{
	struct result *result = job->options.result;
	const char *what;
	int code = streams_failure(&job->streams, &what);

	if (!code || result->message)
		return;
	error_set(job->options.error, code, "%s: %s", what, strerror(code));
	result->message = job->options.error->message;
	if (result->end == RESULT_EXITED && result->code == 0) {
		result->end = RESULT_FAILED;
		result->cause = CAUSE_BAWN;
	}
}

/* Nobody but the kernel, for the limit, kills in a task that has reached it. */
static void note_memory(struct result *result)
{
	for (size_t i = 0; i < result->hit_count; i++)
		if (result->hits[i].limit == LIMIT_MEMORY && result->end == RESULT_SIGNALED &&
		    result->signal == SIGKILL && result->cause == CAUSE_COMMAND)
			result->cause = CAUSE_LIMIT;
}

/* What the command's words and its last errors say was refused. */
static void note_inferred(struct job *job, const struct pump *err)
{
	const struct action *action = job->options.action;
	struct denial_list *denials = job->options.denials;
	uint32_t first = denials->count;

	infer_denials(&job->task->options.effective->policy, action->argv, action->cwd,
		      err->held->tail, err->tail_length, denials);
	for (uint32_t i = first; i < denials->count; i++) {
		struct event event = { .body.denial = &denials->items[i] };

		infer_settle(&job->task->options.effective->policy, &denials->items[i]);
		/* the result has them too */
		(void)emit(job, EVENT_DENIAL, &event);
	}
}

/* What was asked for and could not be written must not look like success. */
static void note_artifacts(struct job *job)
{
	const struct effective *effective = job->task->options.effective;
	struct result *result = job->options.result;
	bool is_whole = job->task->is_copied || effective->policy.flags & POLICY_EMPTY;
	int CLEANUP_FD upper = -1;

	if (!job->options.artifacts || !job->options.arena)
		return;
	upper = staging_open(effective, job->task->box.task_fd);
	/* nothing of it has run: what lies there is none of its work */
	if (staging_is_layered(effective) && upper < 0) {
		result->artifacts.directory = job->options.artifacts->directory;
		return;
	}
	if (job->task->is_copied) {
		fd_close(&upper);
		upper = fd_open_beneath(job->task->box.task_fd,
					PLAN_STAGE_LAYERS "/" PLAN_STAGE_COPY,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	}
	if (collect_run(job->options.artifacts, &effective->policy, upper, is_whole,
			job->options.arena, &result->artifacts, job->options.error) == 0)
		return;
	result->message = job->options.error->message;
	if (result->end == RESULT_EXITED && result->code == 0) {
		result->end = RESULT_FAILED;
		result->cause = CAUSE_BAWN;
	}
}

void job_conclude(struct job *job)
{
	const struct pump *out = streams_out(&job->streams), *err = streams_err(&job->streams);
	struct result *result = job->options.result;
	struct event final = { .body.result = result };
	bool failed;
	int outcome;

	note_lost_bytes(job);
	streams_end_spool(&job->streams);
	note_memory(result);
	failed = result->end != RESULT_EXITED || result->code != 0;
	result->output.bytes = out->bytes;
	result->output.ends_open = out->bytes && out->last != '\n';
	result->error.bytes = err == out ? 0 : err->bytes;
	if (failed && result->end == RESULT_EXITED && err->held)
		note_inferred(job, err);
	result->denials = job->options.denials;
	if (job->network)
		job->network->by_ports = job->task->egress.by_ports;
	result->network = job->network;
	note_landed(job);
	note_staged(job);
	note_artifacts(job);
	if (job->options.changes) {
		result->changes = job->options.changes->items;
		result->change_count = job->options.changes->count;
	}
	if (failed && result->cause == CAUSE_COMMAND && job->options.denials->count)
		result->cause = CAUSE_POLICY;
	outcome = emit(job, EVENT_ACTION_RESULT, &final);
	if (outcome < 0 && !result->message) {
		event_why(job->task->options.sink, outcome, job->options.error);
		error_context(job->options.error, "the end of the action could not be recorded");
		result->message = job->options.error->message;
	}
}

void job_close(struct job *job)
{
	box_enter_abandon(&job->entering);
	streams_close(&job->streams);
	fd_close(&job->entered.process.pidfd);
	fd_close(&job->entered.notify_fd);
	fd_close(&job->entered.executable_fd);
}
