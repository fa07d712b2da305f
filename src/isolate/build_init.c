/*
 * After the last mount: what the kernel counts for the box, the nested user namespace, and how the
 * builder gives up what it may and becomes process 1.
 */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "kernel/capability.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where the host's /proc is read-only, as in containers, one of our own has the same files. */
static int open_count(struct build *build, const char *path)
{
	int CLEANUP_FD mount_fd = -1;
	int fd = openat(build->box->proc_fd, path, O_WRONLY | O_CLOEXEC);
	int result;

	if (fd >= 0 || errno != EROFS)
		return fd < 0 ? -errno : fd;
	result = mount_new("proc", (const struct mount_option[]){ { NULL, NULL } }, 0, &mount_fd);
	if (result < 0)
		return result;
	fd = openat(mount_fd, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * user_namespaces(7), "/proc/sys/user": the file is that of the user namespace of whoever opens it.
 * The number holds for all of the namespace and those below it, which have no right to raise it.
 */
int build_count(struct build *build, const struct plan_op *op, struct error *error)
{
	char path[64], number[24];
	int CLEANUP_FD fd = -1;
	int result;

	/* a plan without the namespace would change the host's own number */
	if (!(plan_namespaces(build->options->plan) & CLONE_NEWUSER))
		return error_set(error, EINVAL, "%s without a user namespace", op->target);
	(void)snprintf(path, sizeof(path), "sys/user/%s", op->target);
	(void)snprintf(number, sizeof(number), "%" PRIu64, op->number);
	fd = open_count(build, path);
	result = fd < 0 ? fd : fd_write_all(fd, number, strlen(number));
	return result < 0 ? error_errno(error, result, "writing %s to /proc/%s", number, path) : 0;
}

int build_nested_user(struct build *build, const struct plan_op *op, struct error *error)
{
	int result;

	/* after the change of identity of a root caller we are not dumpable, and a process that
	 * is not cannot write its own maps (proc(5)) */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return error_errno(error, errno, "prctl(PR_SET_DUMPABLE)");
	if (unshare(CLONE_NEWUSER) < 0)
		return error_errno(error, errno, "making the nested user namespace");
	result = namespace_map(build->box->proc_fd, 0, (uint32_t)op->number, (uint32_t)op->number,
			       (uint32_t)op->flags, (uint32_t)op->flags, 1);
	if (result < 0)
		return error_errno(error, result, "writing the id maps of the nested namespace");
	return 0;
}

/*
 * user_namespaces(7), "/proc/sys/user": the limit is that of the nested namespace, holds for all
 * below it, and is raised by nobody in them.
 */
int build_no_cgroup_namespaces(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD fd = open("/proc/sys/user/max_cgroup_namespaces", O_WRONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : fd_write_all(fd, "0", 1);

	(void)build;
	(void)op;
	return result < 0 ? error_errno(error, result, "forbidding cgroup namespaces") : 0;
}

int build_init_capabilities(struct build *build, const struct plan_op *op, struct error *error)
{
	/* what it holds; the bounding set is for those who gain by exec, and it never will */
	int result = capability_drop_held();

	(void)build;
	(void)op;
	return result < 0 ? error_errno(error, result, "dropping capabilities") : 0;
}

int build_init_no_new_privs(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)build;
	(void)op;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(error, errno, "setting no_new_privs");
	return 0;
}

int build_init_landlock(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD ruleset = -1;
	/* no rule: init opens nothing. Its image is no path of any file system. */
	int result = landlock_create(1, true, &ruleset);

	(void)build;
	(void)op;
	if (result == 0)
		result = landlock_restrict(ruleset);
	return result < 0 ? error_errno(error, result, "restricting process 1 by Landlock") : 0;
}

int build_init_seccomp(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)op;
	(void)error;
	/* the filter allows little beyond the exec of init: do_init() installs it last */
	build->filter_init = true;
	return 0;
}

/* Leaves the control descriptor as number 3 and nothing else to what is exec'd. */
static int leave_control_only(struct build *build)
{
	/* out of the way of 0-3 */
	build->init_fd = fcntl(build->init_fd, F_DUPFD_CLOEXEC, 4);
	build->control = fcntl(build->control, F_DUPFD_CLOEXEC, 4);
	if (build->init_fd < 0 || build->control < 0 ||
	    close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0 || dup2(build->control, 3) < 0)
		return -errno;
	return 0;
}

int build_init(struct build *build, const struct plan_op *op, struct error *error)
{
	static char *const argv[] = { (char *)"bawn-init", NULL };
	static char *const environment[] = { NULL };
	int result = leave_control_only(build);

	(void)op;
	if (result < 0)
		return error_errno(error, result, "passing the control descriptor");
	if (build->filter_init)
		result = seccomp_install(SECCOMP_VARIANT_INIT, NULL);
	if (result < 0)
		return error_errno(error, result, "installing the system call filter");
	(void)syscall(SYS_execveat, build->init_fd, "", argv, environment, AT_EMPTY_PATH);
	return error_errno(error, errno, "starting process 1");
}
