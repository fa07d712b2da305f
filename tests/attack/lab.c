/*
 * The laboratory of the attack tests: runs a command as `bawn run` does, in a plan from which
 * layers were left out. Never installed.
 *
 *	lab [--layers all|none|NAME,... | --without NAME,...] [--landlock-abi N] [options of run]
 *	    -- COMMAND [ARGUMENT...]
 *	lab --list
 *
 * A layer counts when its attack succeeds in a plan without it and fails in that plan plus the
 * layer alone. So an operation stays when its layer is listed. Some stay always, since nothing
 * would run without them: the task's directory, process 1, signals at their default, the exec.
 * Where a missing layer leaves a hole that something must fill, what fills it is the weakest thing
 * of its kind:
 *
 *	mount view    the host's own tree; nothing else can be mounted then, so proc, hide,
 *		      protect and devpts are left out with it. Landlock's rules for private
 *		      areas are left out too: on the host those names are the caller's files.
 *	proc	      a writable, unmasked proc; the host's own where there is no pid namespace
 *	hide	      an overlay becomes a plain mount
 *	environment   the caller's whole environment
 *	init	      this program as process 1: dumpable, with the caller's environment
 *	no_new_privs  stays with landlock and seccomp, which the kernel refuses without it
 *	user namespace  for the host's root: no id map, the task is the host's uid 0
 *
 * Attacks succeed here, and root's would change the host: so root's lab begins by leaving the
 * host's mount and uts namespaces, which is no layer of any plan.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/supervise.h"
#include "cli/options.h"
#include "cli/request.h"
#include "policy/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in src/isolate/internal.h: what process 1 says when it runs. */
#define BOX_READY 4u
/* World-readable, on every host, and below no path that a rule of Landlock shows. */
#define CANARY "/sys/kernel/uevent_seqnum"

enum { OPTION_LAYERS = OPTION_OWN, OPTION_WITHOUT, OPTION_ABI };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--layers", "NAMES", "keep only these layers", false, false, OPTION_LAYERS },
	{ "--without", "NAMES", "leave these layers out", false, false, OPTION_WITHOUT },
	{ "--landlock-abi", "N", "use no later ABI of Landlock", false, false, OPTION_ABI },
};

static const struct verb verb_lab = {
	.name = "lab",
	.synopsis = "-- COMMAND [ARGUMENT...]",
	.summary = "Run one command in a reduced plan.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

struct lab {
	struct request request;
	struct arena *arena;
	bool has[LAYER_COUNT];
	uint32_t abi; /* 0 = the kernel's */
};

/* What __wrap_syscall() executes in place of bawn-init; -1: nothing is replaced. */
static int weak_init_fd = -1;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* The exec of process 1 passes here (--wrap=syscall), and every other raw call unchanged. */
long __wrap_syscall(long number, ...)
{
	static char *const argv[] = { (char *)"lab", (char *)"--process-1", NULL };
	va_list list;
	long a[6];

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_execveat && weak_init_fd >= 0)
		return __real_syscall(number, weak_init_fd, "", argv, environ, AT_EMPTY_PATH);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Process 1 as a naive program would be it. */
static int be_process_1(void)
{
	static const uint32_t ready[2] = { BOX_READY, 0 };
	struct pollfd watched = { .fd = 3, .events = POLLIN };

	if (write(3, ready, sizeof(ready)) != sizeof(ready))
		return 125;
	while (poll(&watched, 1, 100) == 0)
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	return 0;
}

/* A layer's word as an argument: "user-namespace". */
static bool is_layer(enum layer layer, const char *name, size_t length)
{
	const char *word = layer_name(layer);

	for (size_t i = 0; i < length; i++)
		if ((word[i] == ' ' ? '-' : word[i]) != name[i])
			return false;
	return word[length] == '\0';
}

static int set_layers(struct lab *lab, const char *names, bool value, struct error *error)
{
	for (const char *at = names; *at; at += at[0] == ',') {
		size_t length = strcspn(at, ",");
		unsigned layer = 0;

		while (layer < LAYER_COUNT && !is_layer(layer, at, length))
			layer++;
		if (layer == LAYER_COUNT)
			return error_set(error, EINVAL, "no layer %.*s", (int)length, at);
		lab->has[layer] = value;
		at += length;
	}
	return 0;
}

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct lab *lab = context;

	switch (option->id) {
	case OPTION_LAYERS:
		for (unsigned i = 0; i < LAYER_COUNT; i++)
			lab->has[i] = strcmp(value, "all") == 0;
		if (strcmp(value, "all") == 0 || strcmp(value, "none") == 0)
			return 0;
		return set_layers(lab, value, true, error);
	case OPTION_WITHOUT:
		return set_layers(lab, value, false, error);
	case OPTION_ABI:
		lab->abi = (uint32_t)strtoul(value, NULL, 10);
		return 0;
	default:
		return request_take(&lab->request, lab->arena, option, value, error);
	}
}

static bool has_namespace(const struct lab *lab, const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_NAMESPACE && lab->has[plan->ops[i].layer])
			return true;
	return false;
}

static bool is_written(const struct view *view, const char *target)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_WRITE &&
		    strcmp(view->paths[i].target, target) == 0)
			return true;
	return false;
}

/* A rule of Landlock in the host's own tree. */
static bool keeps_rule(const struct policy *policy, const struct plan_op *op)
{
	if (op->number == PLAN_ACCESS_WRITE && !is_written(&policy->view, op->target))
		return false;
	return access(op->target, F_OK) == 0;
}

static bool is_kept(const struct lab *lab, const struct effective *effective, struct plan_op *op)
{
	bool view = lab->has[LAYER_MOUNT];

	switch (op->kind) {
	case PLAN_TASK_DIRECTORY:
	case PLAN_INIT:
	case PLAN_SIGNALS:
	case PLAN_EXEC:
		return true;
	case PLAN_JOIN:
		return has_namespace(lab, &effective->plan);
	case PLAN_PROC:
		if (lab->has[LAYER_PROC] || !view)
			return view;
		op->flags = 0;
		if (!lab->has[LAYER_PID]) {
			op->kind = PLAN_BIND;
			op->source = "/proc";
		}
		return true;
	case PLAN_OVERLAY:
		if (op->layer == LAYER_PROTECT && !lab->has[LAYER_PROTECT])
			return false;
		if (view && !lab->has[LAYER_HIDE] && op->shade) {
			op->shade = NULL;
			op->kind = op->upper ? PLAN_OVERLAY : PLAN_BIND;
		}
		return view;
	case PLAN_DEVPTS:
		return view && lab->has[op->layer];
	case PLAN_NO_CGROUP_NAMESPACES:
		/* without a user namespace it would be the host's own limit */
		return view && lab->has[op->layer] && lab->has[LAYER_USER_NAMESPACE];
	case PLAN_INIT_CAPABILITIES:
	case PLAN_INIT_LANDLOCK:
	case PLAN_INIT_SECCOMP:
		/* made for bawn-init, which needs next to nothing */
		return lab->has[op->layer] && lab->has[LAYER_INIT];
	case PLAN_NO_NEW_PRIVS:
	case PLAN_INIT_NO_NEW_PRIVS:
		return lab->has[op->layer] || lab->has[LAYER_LANDLOCK] || lab->has[LAYER_SECCOMP];
	case PLAN_LANDLOCK_ALLOW:
		return lab->has[op->layer] && (view || keeps_rule(&effective->policy, op));
	case PLAN_LANDLOCK:
		if (!view)
			op->target = CANARY;
		return lab->has[op->layer];
	default:
		if (op->layer == LAYER_PROC || op->layer == LAYER_HIDE ||
		    op->layer == LAYER_PROTECT)
			return view && lab->has[op->layer];
		return lab->has[op->layer];
	}
}

static int reduce(const struct lab *lab, struct effective *effective, struct error *error)
{
	struct plan *plan = &effective->plan;
	struct plan kept = { .ops = arena_array(lab->arena, plan->count, sizeof(*kept.ops)) };

	if (!kept.ops)
		return error_errno(error, ENOMEM, "reducing the plan");
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_op op = plan->ops[i];

		if (op.kind == PLAN_LANDLOCK && lab->abi && op.number > lab->abi)
			op.number = lab->abi;
		if (is_kept(lab, effective, &op))
			kept.ops[kept.count++] = op;
	}
	*plan = kept;
	if (!lab->has[LAYER_USER_NAMESPACE])
		effective->host.root = false;
	if (!lab->has[LAYER_INIT]) {
		weak_init_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		if (weak_init_fd < 0)
			return error_errno(error, errno, "opening /proc/self/exe");
	}
	return 0;
}

static int run(struct lab *lab, char **argv, int argc, struct error *error)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct denial_list denials = { 0 };
	struct result result = { 0 };
	struct action action;
	enum effective_failure failure;
	int outcome =
		effective_make(&lab->request, lab->arena, &effective, &failure, &denials, error);

	if (outcome == 0)
		outcome = request_action(&lab->request, &effective, lab->arena, argv, argc, &action,
					 error);
	if (outcome == 0)
		outcome = reduce(lab, &effective, error);
	if (outcome < 0)
		return 125;
	if (!lab->has[LAYER_ENVIRONMENT])
		action.environ = (const char *const *)environ;
	outcome = supervise(&(struct supervise_options){ .effective = &effective,
							 .action = &action,
							 .sink = &event_null_sink,
							 .out = 1,
							 .err = 2 },
			    &denials, &result, error);
	return outcome < 0 ? 125 : result_status(&result);
}

/* What an attack mounts or names must end with it. */
static int leave_host(struct error *error)
{
	if (geteuid() != 0)
		return 0;
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_errno(error, errno, "leaving the host's mount and uts namespaces");
	return 0;
}

int main(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct lab lab = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first, status;

	if (argc == 2 && strcmp(argv[1], "--process-1") == 0)
		return be_process_1();
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (unsigned i = 0; i < LAYER_COUNT; i++)
			puts(layer_name(i));
		return 0;
	}
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		lab.has[i] = true;
	first = options_parse(&verb_lab, argc, argv, take, &lab, &error);
	if (first < 0 || first >= argc) {
		complain(first < 0 ? error.message : "no command");
		return 125;
	}
	status = leave_host(&error) < 0 ? 125 : run(&lab, argv + first, argc - first, &error);
	if (error.message[0])
		complain(error.message);
	return status;
}
