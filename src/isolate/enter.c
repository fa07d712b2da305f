/*
 * The action's process: executes the ENTER operations and becomes the command. It starts as a
 * child of the supervisor in the host's namespaces; its second half runs inside of the box. Until
 * the exec it is not dumpable, so that nothing in the box can look into it or steer it.
 */
#include "isolate/internal.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "kernel/capability.h"
#include "kernel/landlock.h"
#include "kernel/namespace.h"
#include "kernel/seccomp.h"
#include "kernel/status.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct enter {
	struct box *box;
	const struct action *action;
	const struct box_streams *streams;
	int status_fd;	/* reports to the supervisor; closes at exec */
	int ruleset_fd; /* Landlock rules gathered so far */
	size_t next;	/* the operation behind JOIN */
	bool occupied;
	bool prepared; /* by the zygote: what is in `once` is done */
	enum enter_failure failure;
	const char **script; /* room for the arguments of a script without "#!" */
	struct process *ret_inside;
};

typedef int operation(struct enter *enter, const struct plan_op *op, struct error *error);

int become_inside(const struct box_options *options, struct error *error)
{
	gid_t gid = options->policy->gid;
	uid_t uid = options->policy->uid;

	if (!options->host_root)
		return 0;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return error_errno(error, errno, "taking on the task's identity");
	return 0;
}

/* Tells the supervisor and ends. */
static void report(const struct enter *enter, const struct error *error) __attribute__((noreturn));

/* Everything from the operation at `from` on; never returns. */
static void go_on(struct enter *enter, size_t from) __attribute__((noreturn));

static int go_on_inside(void *argument)
{
	struct enter *enter = argument;

	go_on(enter, enter->next);
}

/* Of an action's process until its exec: one at a time in the supervisor, and in a zygote. */
static struct namespace_stack inside_stack;

/*
 * Starts the process that will be inside, our parent's child. Into an occupied box it goes with a
 * copy of the memory: see box.h.
 */
static int start_inside(struct enter *enter)
{
	struct process inside = PROCESS_NONE;
	int result;

	if (!enter->occupied)
		return namespace_vfork(CLONE_PARENT, go_on_inside, enter, &inside_stack,
				       enter->ret_inside);
	result = namespace_clone(CLONE_PARENT, &inside);
	if (result == 0)
		(void)go_on_inside(enter);
	enter->ret_inside->pid = inside.pid;
	return result < 0 ? result : 0;
}

static int join(const struct enter *enter, struct error *error)
{
	int result;

	/* an ordinary caller cannot drop groups, and they show nothing that the view does not */
	if (enter->box->options.host_root && setgroups(0, NULL) < 0)
		return error_errno(error, errno, "dropping supplementary groups");
	result = namespace_join(enter->box->init.pidfd,
				(int)plan_namespaces(enter->box->options.plan));
	return result < 0 ? error_errno(error, result, "joining the namespaces of the box") : 0;
}

/* The ids are changed out of the sight of whatever runs in the box. */
static int become_hidden(const struct enter *enter, struct error *error)
{
	if (become_inside(&enter->box->options, error) < 0)
		return error->code;
	/* a change of ids sets the flag to fs.suid_dumpable, which an administrator may have on */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ?
		       error_errno(error, errno, "prctl(PR_SET_DUMPABLE)") :
		       0;
}

/*
 * Joins the box's namespaces and goes on in a child: only children enter a joined pid namespace.
 * CLONE_PARENT makes that child the supervisor's own, so that the kernel tells its status to
 * the supervisor and to nobody inside.
 */
static int do_join(struct enter *enter, const struct plan_op *op, struct error *error)
{
	int result = join(enter, error);

	(void)op;
	if (result < 0)
		return result;
	/* not its name, but whose it is: by that the family is found (family.c) */
	if (box_has_families(&enter->box->options) && syscall(SYS_unshare, CLONE_NEWUTS) < 0)
		return error_errno(error, errno, "making the action's own UTS namespace");
	result = become_hidden(enter, error);
	if (result < 0)
		return result;
	result = start_inside(enter);
	if (result < 0)
		return error_errno(error, result, "starting the action's process");
	_exit(0);
}

/* The same without the child, which comes for each action (enter_start()). */
static int do_join_once(struct enter *enter, const struct plan_op *op, struct error *error)
{
	int result = join(enter, error);

	(void)op;
	return result < 0 ? result : become_hidden(enter, error);
}

static int do_session(struct enter *enter, const struct plan_op *op, struct error *error)
{
	(void)enter;
	(void)op;
	return setsid() < 0 ? error_errno(error, errno, "making a session") : 0;
}

static int above_standard(int fd)
{
	return fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/*
 * The host's /dev/null lies on a mount of the host's, which no rule of Landlock names: what opens
 * /dev/stdin would be refused. A reduced plan may have no other.
 */
static int input_fd(const struct enter *enter)
{
	int null_fd = enter->action->input == ACTION_INPUT_NULL ?
			      open("/dev/null", O_RDONLY | O_CLOEXEC) :
			      -1;

	return above_standard(null_fd < 0 ? enter->streams->in : null_fd);
}

static int do_streams(struct enter *enter, const struct plan_op *op, struct error *error)
{
	const struct box_streams *streams = enter->streams;
	/* above 2 first: 0, 1 and 2 may be among the sources in any order */
	int in = input_fd(enter);
	int out = above_standard(streams->out);
	int err = above_standard(streams->err);

	(void)op;
	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		return error_errno(error, errno, "arranging the standard streams");
	if (streams->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
		return error_errno(error, errno, "taking the terminal as the session's");
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return error_errno(error, errno, "closing descriptors");
	return 0;
}

/* _NSIG of every architecture of ours (asm-generic/signal.h) */
#define SIGNALS 64

static int do_signals(struct enter *enter, const struct plan_op *op, struct error *error)
{
	/* struct sigaction as the kernel has it: handler, flags, restorer, mask: all zero */
	static const uint64_t by_default[4];
	uint64_t ignored;
	sigset_t none;

	(void)op;
	/* the exec itself resets the handled ones; all of them where the kernel does not tell */
	if (status_ignored_signals(enter->box->proc_fd, &ignored) < 0)
		ignored = ~(uint64_t)0;
	for (int number = 1; number <= SIGNALS; number++)
		/* by the call itself: signal(3) refuses the C library's own two, 32 and 33 */
		if ((ignored & (uint64_t)1 << (number - 1)) && number != SIGKILL &&
		    number != SIGSTOP &&
		    syscall(SYS_rt_sigaction, number, by_default, NULL, sizeof(uint64_t)) < 0)
			return error_errno(error, errno, "resetting signal %d", number);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return error_errno(error, errno, "emptying the signal mask");
	return 0;
}

static int do_directory_change(struct enter *enter, const struct plan_op *op, struct error *error)
{
	const char *target = enter->action->cwd ? enter->action->cwd : op->target;
	char where[4096];

	if (chdir(target) < 0)
		return error_errno(error, errno, "entering the directory %s", target);
	/* what was resolved must be where we are: no link, nothing outside of the root */
	if (!getcwd(where, sizeof(where)) || where[0] != '/' || strcmp(where, target) != 0)
		return error_set(error, ENOTDIR, "the directory %s is not where it says", target);
	return 0;
}

static int do_limit(struct enter *enter, const struct plan_op *op, struct error *error)
{
	struct rlimit limit = { .rlim_cur = op->flags, .rlim_max = op->flags };
	struct rlimit before;

	(void)enter;
	/*
	 * Never above the caller's own; a soft limit of files stays (select(2), closing loops).
	 * Not so for core dumps: less would be weaker, as 0 does not stop a handler.
	 */
	if (op->number != RLIMIT_CORE && getrlimit((__rlimit_resource_t)op->number, &before) == 0) {
		if (before.rlim_max < limit.rlim_max)
			limit.rlim_cur = limit.rlim_max = before.rlim_max;
		if (op->number == RLIMIT_NOFILE && before.rlim_cur < limit.rlim_cur)
			limit.rlim_cur = before.rlim_cur;
	}
	if (setrlimit((__rlimit_resource_t)op->number, &limit) < 0)
		return error_errno(error, errno, "setting limit %u", (unsigned)op->number);
	return 0;
}

static int do_nothing(struct enter *enter, const struct plan_op *op, struct error *error)
{
	/* OOM_SCORE: inherited from the supervisor, which had it at the clone (box.c) */
	(void)enter;
	(void)op;
	(void)error;
	return 0;
}

static int do_capabilities(struct enter *enter, const struct plan_op *op, struct error *error)
{
	int result = enter->prepared ? 0 : capability_drop_future();

	(void)op;
	if (result == 0)
		result = capability_drop_held();
	return result < 0 ? error_errno(error, result, "dropping capabilities") : 0;
}

/* Those that the zygote holds itself are needed to make the namespaces of actions. */
static int do_capabilities_once(struct enter *enter, const struct plan_op *op, struct error *error)
{
	int result = capability_drop_future();

	(void)enter;
	(void)op;
	return result < 0 ? error_errno(error, result, "dropping capabilities") : 0;
}

static int do_no_new_privs(struct enter *enter, const struct plan_op *op, struct error *error)
{
	(void)enter;
	(void)op;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(error, errno, "setting no_new_privs");
	return 0;
}

static uint32_t planned_abi(const struct enter *enter)
{
	const struct plan_op *op = plan_find(enter->box->options.plan, PLAN_LANDLOCK);

	return op ? (uint32_t)op->number : 0;
}

static int do_landlock_allow(struct enter *enter, const struct plan_op *op, struct error *error)
{
	static const enum landlock_access accesses[] = {
		[PLAN_ACCESS_LIST] = LANDLOCK_LIST,
		[PLAN_ACCESS_READ] = LANDLOCK_READ,
		[PLAN_ACCESS_WRITE] = LANDLOCK_WRITE,
		[PLAN_ACCESS_DEVICE] = LANDLOCK_DEVICE,
		[PLAN_ACCESS_READ_DATA] = LANDLOCK_READ_DATA,
		[PLAN_ACCESS_WRITE_DATA] = LANDLOCK_WRITE_DATA,
	};
	int CLEANUP_FD object = -1;
	int result = 0;

	if (!planned_abi(enter))
		return 0;
	if (enter->ruleset_fd < 0)
		result = landlock_create(planned_abi(enter), true, &enter->ruleset_fd);
	if (result < 0)
		return error_errno(error, result, "making a Landlock ruleset");
	object = open(op->target, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (object < 0)
		return error_errno(error, errno, "opening %s for a Landlock rule", op->target);
	result = landlock_allow(enter->ruleset_fd, planned_abi(enter), object, true,
				accesses[op->number]);
	/* the rights of a directory are refused for what is none (landlock_add_rule(2)) */
	if (result == -EINVAL)
		result = landlock_allow(enter->ruleset_fd, planned_abi(enter), object, false,
					accesses[op->number]);
	if (result < 0)
		return error_errno(error, result, "adding a Landlock rule for %s", op->target);
	return 0;
}

static int do_landlock(struct enter *enter, const struct plan_op *op, struct error *error)
{
	bool scopes_only = op->flags & PLAN_OPTIONAL;
	int result = 0, canary;

	if (enter->ruleset_fd < 0)
		result = landlock_create((uint32_t)op->number, false, &enter->ruleset_fd);
	if (result == -EOPNOTSUPP && scopes_only)
		/* a nesting box on a kernel without scopes: the report says so */
		return 0;
	if (result == 0)
		result = landlock_restrict(enter->ruleset_fd);
	if (result < 0)
		return error_errno(error, result, "restricting by Landlock");
	if (scopes_only)
		return 0;
	/* measured, not believed: this file is readable but for the ruleset */
	canary = open(op->target, O_RDONLY | O_CLOEXEC);
	if (canary >= 0 || errno != EACCES) {
		fd_close(&canary);
		return error_set(error, EPROTO, "Landlock is not in force: its canary %s opened",
				 op->target);
	}
	return 0;
}

static int do_seccomp(struct enter *enter, const struct plan_op *op, struct error *error)
{
	static const enum seccomp_variant variants[] = {
		[PLAN_FILTER_DEFAULT] = SECCOMP_VARIANT_DEFAULT,
		[PLAN_FILTER_PTRACE] = SECCOMP_VARIANT_PTRACE,
		[PLAN_FILTER_NESTED] = SECCOMP_VARIANT_NESTED,
		[PLAN_FILTER_NESTED_PTRACE] = SECCOMP_VARIANT_NESTED_PTRACE,
		[PLAN_FILTER_STRICT] = SECCOMP_VARIANT_STRICT,
	};
	enum seccomp_variant variant = variants[op->number];
	int CLEANUP_FD listener = -1;
	int result = seccomp_install(variant, seccomp_notifies(variant) ? &listener : NULL);

	if (result < 0)
		return error_errno(error, result, "installing the system call filter");
	if (listener >= 0)
		result = message_send(enter->status_fd, ENTER_NOTIFY, NULL, 0, &listener, 1);
	if (result < 0)
		return error_errno(error, result, "passing the filter's listener");
	return 0;
}

/*
 * For the record: which file it is, from inside, since nobody outside can tell afterwards; a later
 * one of the search replaces it. Where that fails (a limit of few files) the record says that it is
 * not known.
 */
static void show_executable(const struct enter *enter, const char *path)
{
	int CLEANUP_FD fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0)
		(void)message_send(enter->status_fd, ENTER_EXECUTABLE, NULL, 0, &fd, 1);
}

/* As execvp(3): a file that is no program is a script of /bin/sh. */
static int execute(struct enter *enter, const char *path)
{
	const struct action *action = enter->action;
	char *const *argv = (char *const *)(uintptr_t)action->argv;
	char *const *environment = (char *const *)(uintptr_t)action->environ;

	show_executable(enter, path);
	(void)execve(path, argv, environment);
	if (errno != ENOEXEC)
		return -errno;
	enter->script[0] = "/bin/sh";
	enter->script[1] = path;
	for (size_t i = 1; i <= action->argc; i++)
		enter->script[i + 1] = action->argv[i];
	(void)execve("/bin/sh", (char *const *)(uintptr_t)enter->script, environment);
	return -errno;
}

static const char *search_path(const struct action *action)
{
	for (size_t i = 0; action->environ[i]; i++)
		if (strncmp(action->environ[i], "PATH=", 5) == 0)
			return action->environ[i] + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

static int search(struct enter *enter)
{
	const struct action *action = enter->action;
	const char *name = action->argv[0];
	int result = -ENOENT;

	if (!name[0])
		return -ENOENT;
	if (strchr(name, '/'))
		return execute(enter, name);
	for (const char *at = search_path(action); *at;) {
		size_t length = strcspn(at, ":");
		char path[4096];
		int attempt;

		/* an empty element means the current directory, which is the task's to fill */
		if (length && (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)length, at,
					       name) < sizeof(path)) {
			attempt = execute(enter, path);
			if (attempt == -EACCES)
				result = attempt;
			else if (attempt != -ENOENT && attempt != -ENOTDIR)
				return attempt;
		}
		at += length;
		at += *at == ':';
	}
	return result;
}

/* What a person would do about it depends on what it is that is not there. */
static const char *why_absent(const char *name)
{
	if (!strchr(name, '/'))
		return "command not found in the box; where it (or a script's interpreter) lies "
		       "must be shown: --read DIR";
	if (access(name, F_OK) == 0)
		return "it is there, but its interpreter (#!) or loader is not; where that lies "
		       "must be shown: --read DIR";
	return name[0] == '/' ? "command not found in the box; where it lies must be shown: "
				"--read DIR" :
				"no such file in the box";
}

static int do_exec(struct enter *enter, const struct plan_op *op, struct error *error)
{
	const char *name = enter->action->argv[0];
	int result;

	(void)op;
	/* not before process 1 has left the supervisor's memory and environment behind */
	result = box_listen(enter->box, true, error);
	if (result < 0)
		return result;
	/* without this word an end of ours is no end of the command's */
	result = message_send(enter->status_fd, ENTER_EXECUTES, NULL, 0, NULL, 0);
	if (result < 0)
		return error_errno(error, result, "telling that the command begins");
	result = search(enter);
	if (result == -ENOENT || result == -ENOTDIR) {
		enter->failure = ENTER_NOT_FOUND;
		return error_set(error, result, "%s: %s", name, why_absent(name));
	}
	enter->failure = ENTER_NOT_EXECUTABLE;
	return error_errno(error, result, "%s: cannot be executed", name);
}

static operation *const operations[PLAN_KIND_COUNT] = {
	[PLAN_JOIN] = do_join,
	[PLAN_SESSION] = do_session,
	[PLAN_STREAMS] = do_streams,
	[PLAN_SIGNALS] = do_signals,
	[PLAN_DIRECTORY_CHANGE] = do_directory_change,
	[PLAN_LIMIT] = do_limit,
	[PLAN_OOM_SCORE] = do_nothing,
	[PLAN_CAPABILITIES] = do_capabilities,
	[PLAN_NO_NEW_PRIVS] = do_no_new_privs,
	[PLAN_LANDLOCK_ALLOW] = do_landlock_allow,
	[PLAN_LANDLOCK] = do_landlock,
	[PLAN_SECCOMP] = do_seccomp,
	[PLAN_EXEC] = do_exec,
};

/*
 * What a zygote does once, for its children to inherit: settings of a process, and the ruleset,
 * which each action still puts in force for itself (LANDLOCK).
 */
static operation *const once[PLAN_KIND_COUNT] = {
	[PLAN_JOIN] = do_join_once,
	[PLAN_SIGNALS] = do_signals,
	[PLAN_CAPABILITIES] = do_capabilities_once,
	[PLAN_NO_NEW_PRIVS] = do_no_new_privs,
	[PLAN_LANDLOCK_ALLOW] = do_landlock_allow,
};

/* A part of it is each action's own. */
static bool is_done(const struct enter *enter, enum plan_kind kind)
{
	return enter->prepared && once[kind] && kind != PLAN_CAPABILITIES;
}

static void report(const struct enter *enter, const struct error *error)
{
	struct enter_report report = { .failure = enter->failure, .error = *error };

	(void)message_send(enter->status_fd, ENTER_FAILED, &report, sizeof(report), NULL, 0);
	_exit(125);
}

static void go_on(struct enter *enter, size_t from)
{
	const struct plan *plan = enter->box->options.plan;
	struct error error = ERROR_NONE;

	for (size_t i = from; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (plan_kind_phase(op->kind) != PLAN_ENTER || is_done(enter, op->kind))
			continue;
		enter->next = i + 1;
		if (operations[op->kind](enter, op, &error) < 0) {
			/* a directory that the action named is its caller's word, and no step's */
			if (enter->failure == ENTER_BROKEN &&
			    !(op->kind == PLAN_DIRECTORY_CHANGE && enter->action->cwd))
				operation_failed(op, &error);
			report(enter, &error);
		}
	}
	error_set(&error, EINVAL, "the plan has no exec");
	report(enter, &error);
}

int enter_run(void *argument)
{
	const struct enter_task *task = argument;
	struct enter enter = { .box = task->box,
			       .action = task->action,
			       .streams = task->streams,
			       .script = task->script,
			       .occupied = task->occupied,
			       .ret_inside = task->ret_inside,
			       .status_fd = task->status_fd,
			       .ruleset_fd = -1,
			       .failure = ENTER_BROKEN };
	struct error error = ERROR_NONE;

	if (box_join_group(&task->box->options, &error) < 0)
		report(&enter, &error);
	/* our memory is the supervisor's: not for those already in the box */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		error_errno(&error, errno, "prctl(PR_SET_DUMPABLE)");
		report(&enter, &error);
	}
	go_on(&enter, 0);
}

void enter_report(int status_fd, const struct error *error)
{
	struct enter_report report = { .failure = ENTER_BROKEN, .error = *error };

	(void)message_send(status_fd, ENTER_FAILED, &report, sizeof(report), NULL, 0);
}

/* Before anything else is opened: of what is the supervisor's nothing stays open but one. */
static int keep_fds(struct enter_zygote *zygote, struct error *error)
{
	/* in this order: neither of the sources is overwritten before it was moved */
	int fd = fcntl(zygote->fd, F_DUPFD_CLOEXEC, 5);
	int ruleset_fd = zygote->ruleset_fd < 0 ? -1 :
						  fcntl(zygote->ruleset_fd, F_DUPFD_CLOEXEC, 5);

	if (fd < 0 || (ruleset_fd < 0) != (zygote->ruleset_fd < 0) || dup3(fd, 3, O_CLOEXEC) < 0 ||
	    (ruleset_fd >= 0 && dup3(ruleset_fd, 4, O_CLOEXEC) < 0) ||
	    close_range(ruleset_fd >= 0 ? 5 : 4, ~0U, 0) < 0)
		return error_errno(error, errno, "closing descriptors");
	zygote->fd = 3;
	zygote->ruleset_fd = ruleset_fd >= 0 ? 4 : -1;
	return 0;
}

/* A frozen zygote sees its pair end no more, and may still hold what the supervisor held. */
static int die_with_supervisor(struct error *error)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ?
		       error_errno(error, errno, "prctl(PR_SET_PDEATHSIG)") :
		       0;
}

int enter_prepare(struct enter_zygote *zygote, struct error *error)
{
	const struct plan *plan = zygote->box->options.plan;
	struct enter enter = { .box = zygote->box, .ruleset_fd = -1 };
	struct error ignored = ERROR_NONE;
	int result = die_with_supervisor(error);

	if (result == 0)
		result = box_join_group(&zygote->box->options, error);
	if (result == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		result = error_errno(error, errno, "prctl(PR_SET_DUMPABLE)");
	for (size_t i = 0; i < plan->count && result == 0; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (plan_kind_phase(op->kind) != PLAN_ENTER || !once[op->kind])
			continue;
		result = once[op->kind](&enter, op, error);
		if (result < 0)
			operation_failed(op, error);
		else
			/* a change of ids clears it */
			result = die_with_supervisor(error);
	}
	zygote->ruleset_fd = enter.ruleset_fd;
	/* whatever failed: what is the supervisor's is not kept open */
	return keep_fds(zygote, result < 0 ? &ignored : error) < 0 && result == 0 ? error->code :
										    result;
}

void enter_start(const struct enter_zygote *zygote, const struct enter_task *task)
{
	struct enter enter = { .box = task->box,
			       .action = task->action,
			       .streams = task->streams,
			       .script = task->script,
			       .prepared = true,
			       .ret_inside = task->ret_inside,
			       .status_fd = task->status_fd,
			       .ruleset_fd = zygote->ruleset_fd,
			       .failure = ENTER_BROKEN };
	/* not its name, but whose it is: by that the family is found (family.c) */
	uint64_t family = box_has_families(&task->box->options) ? CLONE_NEWUTS : 0;
	int result = namespace_vfork(CLONE_PARENT | family, go_on_inside, &enter, &inside_stack,
				     task->ret_inside);
	struct error error = ERROR_NONE;

	if (result < 0) {
		error_errno(&error, result, "starting the action's process");
		enter_report(task->status_fd, &error);
	}
}
