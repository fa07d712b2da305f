#include "broker/task.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/cover.h"
#include "broker/staging.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define TASK_LIMIT_WATCHES 160
#define SECOND_NS UINT64_C(1000000000)
/* Of two arrays with an entry for each row of the view; the pages come with the block. */
#define GUARD_BYTES (8u * 1024)

enum { WATCH_SIGNALS, WATCH_INIT, WATCH_NAMES, WATCH_JOBS };

int task_emit(struct task *task, struct event *event)
{
	event->task = task->options.effective->task;
	return event_emit(task->options.sink, event);
}

/* Before the start, since it may fail: nothing has been started then. Takes nothing over yet. */
static int watch_signals(struct task *task)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };

	sigemptyset(&task->ends);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct sigaction before;

		/* what the caller ignores (nohup) would come all the same once it is blocked */
		if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(&task->ends, ends[i]);
	}
	task->signal_fd = signalfd(-1, &task->ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (task->signal_fd < 0)
		return error_errno(task->error, errno, "watching signals");
	return 0;
}

static int emit_start(struct task *task)
{
	const struct effective *effective = task->options.effective;
	struct event start = { .type = EVENT_TASK_START,
			       .action = "",
			       .body.task_start = { .kind = task->options.live ? "live" : "run",
						    .workspace = effective->policy.workspace,
						    .tier = tier_name(effective->tier.tier),
						    .rung = TIER_RUNG,
						    .reason = effective->tier_reason,
						    .policy_hash = effective->hash,
						    .policy = &effective->policy,
						    .policy_blob = effective->blob,
						    .policy_bytes = effective->blob_length,
						    .uid = effective->host.uid,
						    .gid = effective->host.gid,
						    .host_root = effective->host.root,
						    .withheld = effective->withheld,
						    .withheld_count = effective->withheld_count,
						    .meta = task->options.meta } };

	return task_emit(task, &start);
}

int task_announce(struct task *task, const struct task_options *options, struct error *error)
{
	int result;

	*task = (struct task){ .options = *options,
			       .error = error,
			       .box = BOX_NONE,
			       .egress = EGRESS_OFF,
			       .names = WATCH_NONE,
			       .sweeping = SWEEPING_NONE,
			       .landing = LANDING_NONE,
			       .guard_arena = { .first_bytes = GUARD_BYTES },
			       .signal_fd = -1 };
	result = emit_start(task);
	if (result < 0) {
		event_why(task->options.sink, result, error);
		return error_context(error,
				     "the trace in %s cannot be written, so nothing was started",
				     options->effective->state.path);
	}
	return watch_signals(task);
}

int task_take_signals(struct task *task)
{
	static const int stops[] = { SIGTTIN, SIGTTOU };

	/* we must not stop while the box goes on: limits and hidden names would not be kept */
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		(void)signal(stops[i], SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &task->ends, NULL) < 0)
		return error_errno(task->error, errno, "blocking signals");
	(void)signal(SIGPIPE, SIG_IGN);
	return 0;
}

void task_kill(struct task *task)
{
	task->killed = true;
	if (task->box.init.pid > 0)
		(void)kill(task->box.init.pid, SIGKILL);
}

static int record_change(void *context, const struct watch_change *seen, uint64_t window_ns,
			 struct error *error)
{
	struct task *task = context;
	const struct view *view = &task->options.effective->policy.view;
	struct change_list *list = task->options.changes;
	struct change change = { .path = view->paths[seen->row].target,
				 .kind = seen->event == WATCH_CREATED ? CHANGE_CREATED :
									CHANGE_REPLACED,
				 .state = CHANGE_COVERED,
				 .window_ns = window_ns };
	struct event event = { .type = EVENT_CHANGE,
			       .action = task->jobs ? task->jobs->options.action->id : "",
			       .body.change = &change };
	int result;

	if (list && list->count < CHANGE_LIMIT)
		list->items[list->count++] = change;
	result = task_emit(task, &event);
	if (result < 0) {
		event_why(task->options.sink, result, error);
		return error_context(error, "%s: the trace cannot be written", change.path);
	}
	return 0;
}

static int cover(struct task *task)
{
	return cover_names(&task->names, &task->box, &task->options.effective->policy,
			   task->jobs_begun > 0, record_change, task, task->error);
}

static int look(struct task *task)
{
	return cover_look(&task->guard, &task->box, &task->options.effective->policy,
			  task->jobs_begun > 0, record_change, task, task->error);
}

/* A name that cannot be covered again ends the task: what it would show is not the task's. */
static void keep_covered(struct task *task, int (*find)(struct task *task))
{
	struct error *error = task->error;

	if (task->names_failed || find(task) == 0)
		return;
	error_context(error, "the task was ended, because a hidden or protected name could not be "
			     "kept so");
	task->names_failed = true;
	for (struct job *job = task->jobs; job; job = job->next) {
		job->options.result->cause = CAUSE_POLICY;
		job->options.result->message = error->message;
	}
	task_kill(task);
}

void task_look_at_names(struct task *task)
{
	if (task->names.fd >= 0)
		keep_covered(task, cover);
}

/* While no action runs a name may lie open; the next action's start looks first. */
static void look_around(struct task *task, struct task_timer *timer)
{
	timer->at_ns = task->jobs && !task->names_failed ? clock_monotonic_ns() + COVER_GRAIN_NS :
							   0;
	keep_covered(task, look);
}

/* Names that an option gave are watched from before the plan covers them, the others guarded. */
static int open_names(struct task *task)
{
	struct view watched;
	int result = cover_guard(&task->options.effective->policy, &task->guard_arena, &task->guard,
				 &watched, task->error);

	if (result == 0)
		result = watch_open(&watched, &task->names, task->error);
	if (result == 0 && task->guard.count) {
		task->guard_timer.fire = look_around;
		task_timer_add(task, &task->guard_timer);
	}
	return result;
}

const struct plan *task_plan(const struct task *task)
{
	return task->is_copied ? &task->options.effective->fallback :
				 &task->options.effective->plan;
}

/* What the host's git does while it is copied is then seen as done meanwhile, as it is. */
static int duplicate(void *context, int task_fd, const struct plan_op *op, struct error *error)
{
	struct task *task = context;
	int result = 0;

	if (!task->copied.started_ns)
		result = landing_begin(&task->landing, task->options.effective, task_fd, error);
	return result < 0 ? result :
			    staging_copy(task->options.effective, op, &task->copy_arena,
					 &task->copied, error);
}

static int start_box(struct task *task, struct error *error)
{
	const struct effective *effective = task->options.effective;
	const struct box_options options = { .plan = task_plan(task),
					     .policy = &effective->policy,
					     .host_root = effective->host.root,
					     .live = task->options.live,
					     .cgroup = task->options.cgroup,
					     .duplicate = duplicate,
					     .context = task,
					     .outside_uid = effective->host.uid,
					     .outside_gid = effective->host.gid };

	return box_start(&options, &task->box, error);
}

/* Without the operation, which names paths of the state directory. */
static const char *reason_of(const struct error *error)
{
	const char *failed = strstr(error->message, "\" failed: ");

	return failed ? failed + strlen("\" failed: ") : error->message;
}

static int too_large(struct task *task)
{
	const struct error why = *task->error;

	return error_set(task->error, EFBIG,
			 "the workspace cannot have a layer (%.160s), and %.160s; with another "
			 "--state-dir it may have one, and without --stage or --ephemeral the task "
			 "works in the workspace itself",
			 task->copied.why, reason_of(&why));
}

/* One whose workspace can have no layer works in a copy of it, if that is small enough. */
static int make_box(struct task *task)
{
	int result = start_box(task, task->error);

	if (result != -BOX_NO_LAYER || !task->options.effective->fallback.count)
		return result;
	task->is_copied = true;
	task->copied.why = arena_copy(&task->copy_arena, reason_of(task->error));
	if (!task->copied.why)
		return error_errno(task->error, ENOMEM, "copying the workspace");
	result = start_box(task, task->error);
	return result == -EFBIG ? too_large(task) : result;
}

int task_start(struct task *task)
{
	const struct effective *effective = task->options.effective;
	/* from before the plan covers the names: what happens meanwhile is covered below */
	int result = open_names(task);

	if (result == 0)
		result = make_box(task);
	if (result == 0)
		result = egress_begin(task, task->error);
	if (result == 0 && task->names.fd >= 0)
		result = cover(task);
	if (result == 0 && !task->is_copied)
		result = landing_begin(&task->landing, effective, task->box.task_fd, task->error);
	if (result == 0)
		result = staging_begin(effective, task->box.task_fd, &task->copied, task->error);
	if (result < 0)
		effective_diagnose(effective, task->error);
	return result;
}

static int land(struct task *task, enum landing_moment moment, struct arena *arena,
		struct sweeping_list *list, struct error *error)
{
	struct change *changes = NULL, *all;
	size_t count = 0;
	int result = 0;

	task->landing.holds_index = list->fault;
	if (moment == LANDING_LAST ||
	    (moment == LANDING_BETWEEN && landing_has_news(&task->landing)))
		result = landing_run(&task->landing, moment, arena, &changes, &count, error);
	if (result < 0 && moment == LANDING_LAST) {
		/* the next start tries again (landing_resume()) */
		sweeping_forget(&task->sweeping, task->box.task_fd);
		task->box.is_kept = true;
	}
	if (result < 0)
		return error_context(error, "what git did in the box has not come to the host yet; "
					    "the next start of bawn tries again");
	all = arena_array(arena, list->count + count + 1, sizeof(*all));
	if (!all)
		return error_errno(error, ENOMEM, "what changed");
	for (size_t i = 0; i < list->count; i++)
		all[i] = list->changes[i];
	for (size_t i = 0; i < count; i++)
		all[list->count + i] = changes[i];
	list->changes = all;
	list->count += count;
	return 0;
}

/* What was told already, as held or left, is not told as a change to the workspace again. */
static bool is_told(const struct sweeping_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->changes[i].path, path) == 0)
			return true;
	return false;
}

static int join_tree(const struct sweeping_list *list, struct arena *arena,
		     struct task_landed *ret_landed)
{
	const struct tree_list *tree = &list->tree;
	struct task_landed landed = { .count = list->count,
				      .unlisted = tree->unlisted,
				      .cut = tree->cut };

	landed.changes = arena_array(arena, list->count + tree->count + 1, sizeof(*landed.changes));
	if (!landed.changes)
		return -ENOMEM;
	if (list->count)
		memcpy(landed.changes, list->changes, list->count * sizeof(*landed.changes));
	for (size_t i = 0; i < tree->count; i++)
		if (!is_told(list, tree->changes[i].path))
			landed.changes[landed.count++] = tree->changes[i];
	*ret_landed = landed;
	return 0;
}

int task_land(struct task *task, enum landing_moment moment, struct arena *arena,
	      struct task_landed *ret_landed, struct error *error)
{
	struct sweeping_list list = { 0 };
	int result = sweeping_look(&task->sweeping, moment, arena, &list, error);

	if (result == 0)
		result = land(task, moment, arena, &list, error);
	else if (moment == LANDING_LAST)
		task->box.is_kept = true; /* for the next start, which looks and lands */
	/* also where the landing failed: what did not come to the host is nothing to lead to */
	if (list.looked) {
		struct error second = ERROR_NONE;
		int settled = sweeping_settle(&task->sweeping, moment, arena, &list, &second);

		if (settled < 0 && result == 0) {
			*error = second;
			result = settled;
		}
	}
	*ret_landed = (struct task_landed){ .changes = list.changes, .count = list.count };
	if (join_tree(&list, arena, ret_landed) < 0 && result == 0)
		result = error_errno(error, ENOMEM, "what changed");
	return result < 0 || !list.fault ? result : error_set(error, EUCLEAN, "%s", list.fault);
}

int task_add(struct task *task, struct job *job)
{
	if (task->guard.count && task->jobs_begun)
		keep_covered(task, look);
	if (task->guard.count)
		task->guard_timer.at_ns = clock_monotonic_ns() + COVER_GRAIN_NS;
	job->next = task->jobs;
	task->jobs = job;
	return job_begin(job);
}

void task_remove(struct task *task, struct job *job)
{
	for (struct job **at = &task->jobs; *at; at = &(*at)->next)
		if (*at == job) {
			*at = job->next;
			return;
		}
}

void task_watch_add(struct task *task, struct task_watch *watch)
{
	watch->next = task->watches;
	task->watches = watch;
	task->watch_changes++;
}

void task_watch_remove(struct task *task, struct task_watch *watch)
{
	for (struct task_watch **at = &task->watches; *at; at = &(*at)->next)
		if (*at == watch) {
			*at = watch->next;
			task->watch_changes++;
			return;
		}
}

void task_timer_add(struct task *task, struct task_timer *timer)
{
	timer->next = task->timers;
	task->timers = timer;
}

void task_timer_remove(struct task *task, struct task_timer *timer)
{
	struct task_timer **place = &task->timers;

	while (*place && *place != timer)
		place = &(*place)->next;
	if (*place)
		*place = timer->next;
}

/* Process 1 has gone, by our hand or another's; the kernel then ends the rest of the box. */
static void lose_box(struct task *task)
{
	if (!task->killed) {
		error_set(task->error, ECHILD,
			  "process 1 of the box ended (it failed, or something outside killed it), "
			  "and everything in the box with it");
		task->lost = true;
	}
	task_kill(task);
	task->ending = true;
}

void task_job_ended(struct task *task, struct job *job)
{
	struct pollfd control = { .fd = task->box.control };

	/* its descriptors go first, then the rest of the box: the end may be news of process 1 */
	if (poll(&control, 1, 0) == 1)
		lose_box(task);
	if (task->lost)
		job_lose(job);
	/* the action is the task: what it left running ends with it, and then the pipes do */
	if (!task->options.live)
		task_kill(task);
}

static void pass_signals(struct task *task)
{
	struct signalfd_siginfo info;

	if (read(task->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (task->options.signalled) {
		task->options.signalled(task, (int)info.ssi_signo);
		return;
	}
	for (struct job *job = task->jobs; job; job = job->next)
		job_signal(job, (int)info.ssi_signo);
}

/* NULL: for ever. */
static const struct timespec *wait_time(const struct task *task, struct timespec *ret_wait)
{
	uint64_t next = 0, now, left;

	for (const struct job *job = task->jobs; job; job = job->next) {
		uint64_t due = job_due(job);

		if (due && (!next || due < next))
			next = due;
	}
	for (const struct task_timer *timer = task->timers; timer; timer = timer->next)
		if (timer->at_ns && (!next || timer->at_ns < next))
			next = timer->at_ns;
	if (task->has_work)
		next = 1;
	if (!next)
		return NULL;
	now = clock_monotonic_ns();
	left = next <= now ? 0 : next - now;
	*ret_wait = (struct timespec){ .tv_sec = (time_t)(left / SECOND_NS),
				       .tv_nsec = (long)(left % SECOND_NS) };
	return ret_wait;
}

/* Returns how many entries there are. */
static size_t fill_watches(const struct task *task, struct pollfd *watches)
{
	size_t count = WATCH_JOBS;
	bool runs = false;

	for (const struct job *job = task->jobs; job; job = job->next) {
		job_poll(job, watches + count);
		count += JOB_WATCHES;
		runs = runs || job->state < JOB_ENDED;
	}
	/* the end of a box whose only action has ended is no news */
	runs = runs || (task->options.live && !task->killed);
	watches[WATCH_SIGNALS] = (struct pollfd){ .fd = task->signal_fd, .events = POLLIN };
	/* only the end of process 1: its word may come when the action has failed already */
	watches[WATCH_INIT] = (struct pollfd){ .fd = runs ? task->box.control : -1 };
	watches[WATCH_NAMES] =
		(struct pollfd){ .fd = runs && !task->names_failed ? task->names.fd : -1,
				 .events = POLLIN };
	for (struct task_watch *watch = task->watches;
	     watch && count < WATCH_JOBS + TASK_LIMIT_JOBS * JOB_WATCHES + TASK_LIMIT_WATCHES;
	     watch = watch->next) {
		if (watch->prepare)
			watch->prepare(watch);
		watches[count++] =
			(struct pollfd){ .fd = watch->fd,
					 .events = watch->events ? watch->events : POLLIN };
	}
	return count;
}

/* What is called may add and remove watches, its own and others. */
static void step_watches(struct task *task, const struct pollfd *entries, size_t count)
{
	struct task_watch *watch = task->watches;

	for (size_t i = 0; watch && i < count; watch = watch->next, i++)
		watch->happened = entries[i].revents;
	for (watch = task->watches; watch;) {
		short events = watch->happened;

		watch->happened = 0;
		if (events)
			watch->ready(task, watch, events);
		/* from the start again: what came next may be gone */
		watch = events ? task->watches : watch->next;
	}
}

static void fire_timers(struct task *task, uint64_t now_ns)
{
	for (struct task_timer *timer = task->timers; timer; timer = timer->next)
		if (timer->at_ns && now_ns >= timer->at_ns) {
			timer->at_ns = 0;
			timer->fire(task, timer);
		}
}

/*
 * A task that writes all the time leaves no idle moment; what a later start needs, should we be
 * killed, is kept all the same after so many rounds.
 */
#define KEEP_ROUNDS 16

void task_step(struct task *task)
{
	struct pollfd watches[WATCH_JOBS + TASK_LIMIT_JOBS * JOB_WATCHES + TASK_LIMIT_WATCHES];
	size_t at = WATCH_JOBS, count = fill_watches(task, watches);
	unsigned watch_changes = task->watch_changes;
	struct timespec wait;
	int ready = ppoll(watches, count, wait_time(task, &wait), NULL);
	uint64_t now;

	if (ready < 0) {
		if (errno != EINTR) {
			error_errno(task->error, errno, "waiting for what the task does (poll)");
			task->lost = true;
			task_kill(task);
		}
		return;
	}
	/* the record's own work, while there is nothing else to do */
	if (task->has_work && (ready == 0 || ++task->busy_rounds == KEEP_ROUNDS)) {
		/* the one from before the action is there, or the action was refused */
		(void)sweeping_keep(&task->sweeping, task->box.task_fd);
		(void)landing_work(&task->landing);
	}
	if (ready == 0 && task->has_work) {
		task->busy_rounds = 0;
		task->has_work = event_work(task->options.sink) || sweeping_work(&task->sweeping) ||
				 box_tidy(&task->box);
	}
	/* first: a name lies open */
	if (watches[WATCH_NAMES].revents)
		keep_covered(task, cover);
	if (watches[WATCH_SIGNALS].revents)
		pass_signals(task);
	for (struct job *job = task->jobs; job; job = job->next, at += JOB_WATCHES)
		job_step(job, watches + at);
	/* `at` is now that of the first other watch */
	if (watches[WATCH_INIT].revents && !task->lost) {
		lose_box(task);
		for (struct job *job = task->jobs; job; job = job->next)
			job_lose(job);
	}
	now = clock_monotonic_ns();
	for (struct job *job = task->jobs; job; job = job->next)
		job_tick(job, now);
	fire_timers(task, now);
	/* what happened now is on record before more of it is waited for; else it ends */
	if (event_flush(task->options.sink) < 0)
		for (struct job *job = task->jobs; job; job = job->next)
			job_kill(job);
	/* last: they may add jobs and watches; if others did, what is ready waits for a turn */
	if (task->watch_changes == watch_changes)
		step_watches(task, watches + at, count - at);
}

/* The directory becomes another task's, or goes. */
static void clear_directory(const struct task *task)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	(void)directory_open(&directory, task->box.task_fd, ".", 0);
	while ((name = directory_next(&directory)))
		directory_remove_tree(task->box.task_fd, name);
}

void task_stop(struct task *task)
{
	egress_end(task);
	box_stop(&task->box);
}

/* What the task's git did is told apart from the host's by what landing keeps beside it. */
static void keep_stage(struct task *task)
{
	const struct effective *effective = task->options.effective;

	if (task->box.task_fd < 0 || !staging_is_on(effective))
		return;
	landing_keep(&task->landing);
	/* where it cannot be made one now, the next start does */
	if (staging_keep(effective, task->box.task_fd) != 0)
		task->box.is_kept = true;
}

void task_end(struct task *task)
{
	/* before the box, whose end waits for every child of ours */
	egress_end(task);
	keep_stage(task);
	/* what did not land lies there: the next start removes the spools with the rest */
	if (task->has_spools && !task->box.is_kept)
		clear_directory(task);
	sweeping_end(&task->sweeping);
	landing_end(&task->landing);
	box_end(&task->box);
	watch_close(&task->names);
	arena_free(&task->guard_arena);
	arena_free(&task->copy_arena);
	fd_close(&task->signal_fd);
}
