/*
 * The builder: a child of the supervisor in the box's new namespaces. It executes the BOX
 * operations one after the other, reports the first that fails, and becomes process 1. Here are the
 * table of operations and those of identity and network; build_internal.h tells of the others.
 */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "kernel/namespace.h"
#include "kernel/network.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int do_nothing(struct build *build, const struct plan_op *op, struct error *error)
{
	/* NAMESPACE: done by the clone that made this process */
	(void)build;
	(void)op;
	(void)error;
	return 0;
}

static int do_identity(struct build *build, const struct plan_op *op, struct error *error)
{
	const struct box_options *options = build->options;
	struct message message;
	int result;

	if (!options->host_root) {
		result = namespace_map(build->box->proc_fd, 0, (uint32_t)op->number,
				       options->outside_uid, (uint32_t)op->flags,
				       options->outside_gid, 1);
		if (result < 0)
			return error_errno(error, result, "writing the id maps");
		return 0;
	}
	result = message_receive(build->control, &message);
	if (result < 0 || message.type != BOX_GO)
		return error_set(error, EPIPE, "the supervisor went away");
	if (setgroups(0, NULL) < 0)
		return error_errno(error, errno, "dropping supplementary groups");
	return become_inside(options, error);
}

static int do_hostname(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)build;
	if (sethostname(op->source, strlen(op->source)) < 0)
		return error_errno(error, errno, "setting the host name");
	return 0;
}

static int do_loopback(struct build *build, const struct plan_op *op, struct error *error)
{
	int result = network_loopback_up();

	(void)build;
	(void)op;
	if (result < 0)
		return error_errno(error, result, "bringing the loopback up");
	return 0;
}

static int do_listener(struct build *build, const struct plan_op *op, struct error *error)
{
	const struct policy_listener *listener = &build->options->policy->listeners[op->number];
	int CLEANUP_FD fd = -1;
	int result = network_listener(listener->family, listener->type, listener->port, &fd);

	if (result == 0)
		result = message_send(build->control, BOX_LISTENER, NULL, 0, &fd, 1);
	if (result < 0)
		return error_errno(error, result, "listening on port %u of the loopback",
				   listener->port);
	return 0;
}

static operation *const operations[PLAN_KIND_COUNT] = {
	[PLAN_NAMESPACE] = do_nothing,
	[PLAN_IDENTITY] = do_identity,
	[PLAN_HOSTNAME] = do_hostname,
	[PLAN_LOOPBACK] = do_loopback,
	[PLAN_LISTENER] = do_listener,
	[PLAN_ROUTES] = catch_routes,
	[PLAN_CAPTURE] = catch_connections,
	[PLAN_AREAS] = build_areas,
	[PLAN_AREA_DIRECTORY] = build_area_directory,
	[PLAN_AREA_FILE] = build_area_file,
	[PLAN_AREA_LINK] = build_area_link,
	[PLAN_WHITEOUT] = build_whiteout,
	[PLAN_ROOT] = build_root,
	[PLAN_DIRECTORY] = build_directory,
	[PLAN_LINK] = build_link,
	[PLAN_FILE] = build_file,
	[PLAN_BIND] = build_bind,
	[PLAN_AREA] = build_area,
	[PLAN_OVERLAY] = build_overlay,
	[PLAN_OBJECTS] = build_objects,
	[PLAN_PROC] = build_proc,
	[PLAN_DEVPTS] = build_devpts,
	[PLAN_MASK] = build_mask,
	[PLAN_PIN] = build_pin,
	[PLAN_PIVOT] = build_pivot,
	[PLAN_COUNT] = build_count,
	[PLAN_NESTED_USER] = build_nested_user,
	[PLAN_NO_CGROUP_NAMESPACES] = build_no_cgroup_namespaces,
	[PLAN_INIT_CAPABILITIES] = build_init_capabilities,
	[PLAN_INIT_NO_NEW_PRIVS] = build_init_no_new_privs,
	[PLAN_INIT_LANDLOCK] = build_init_landlock,
	[PLAN_INIT_SECCOMP] = build_init_seccomp,
	[PLAN_INIT] = build_init,
};

int build_run(void *argument)
{
	struct build *build = argument;
	const struct plan *plan = build->options->plan;
	struct error error = ERROR_NONE;
	int result = 0;

	/* the supervisor's death ends us even before init watches the control descriptor */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)umask(0);
	for (size_t i = 0; i < plan->count && result == 0; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (plan_kind_phase(op->kind) != PLAN_BOX || plan_is_kept(op))
			continue;
		result = operations[op->kind](build, op, &error);
		if (result < 0)
			operation_failed(op, &error);
	}
	if (result == 0)
		error_set(&error, EINVAL, "the plan has no init");
	(void)message_send(build->control, BOX_ERROR, &error, sizeof(error), NULL, 0);
	_exit(125);
}
