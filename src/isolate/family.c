/*
 * What descends from an action of a live task, whatever it did to its session, its group and its
 * parents. Each action's process enters with a UTS namespace of its own (enter.c, do_join()), a
 * copy of the box's: all that it forks is in it, nothing inside may make or join another (but with
 * --nested-userns, see SECURITY.md), and /proc tells which one a process is in.
 */
#include "isolate/internal.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Who forks faster than we look is stopped after that time, with all the rest of the box. */
#define CHASE_NS (50ull * 1000 * 1000)
#define STOPPED_NS (250ull * 1000 * 1000)

bool box_has_families(const struct box_options *options)
{
	const uint64_t both = CLONE_NEWUTS | CLONE_NEWUSER;

	return options->live && (plan_namespaces(options->plan) & both) == both;
}

static uint64_t family_of(const struct box *box, long pid)
{
	char path[48];
	struct stat status;

	(void)snprintf(path, sizeof(path), "%ld/ns/uts", pid);
	return fstatat(box->proc_fd, path, &status, 0) < 0 ? 0 : status.st_ino;
}

uint64_t box_family(const struct box *box, const struct process *process)
{
	/* a child of ours that was not waited for: the number is still its own */
	return box_has_families(&box->options) ? family_of(box, process->pid) : 0;
}

static bool kill_member(const struct box *box, uint64_t family, long pid)
{
	int CLEANUP_FD pidfd = -1;

	if (family_of(box, pid) != family)
		return false;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	/* what was looked at is still what was opened */
	if (pidfd >= 0 && family_of(box, pid) == family)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	return true;
}

/* Upwards by number, so that children that are made meanwhile are met as well. */
static bool kill_members(const struct box *box, uint64_t family)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	bool found = false;

	(void)directory_open(&directory, box->proc_fd, ".", 0);
	while ((name = directory_next(&directory))) {
		char *end;
		long pid = strtol(name, &end, 10);

		if (pid > 0 && !*end && kill_member(box, family, pid))
			found = true;
	}
	return found;
}

/* Until a look finds nobody who is not a zombie. */
static bool chase(const struct box *box, uint64_t family, uint64_t time_ns)
{
	uint64_t end = clock_monotonic_ns() + time_ns;

	while (kill_members(box, family))
		if (clock_monotonic_ns() > end)
			return false;
	return true;
}

void box_kill_family(struct box *box, uint64_t family)
{
	struct error ignored = ERROR_NONE;

	if (!family || chase(box, family, CHASE_NS))
		return;
	if (box_signal(box, SIGSTOP, &ignored) < 0)
		return;
	(void)chase(box, family, STOPPED_NS);
	/* who stays stopped is ended with the task */
	if (box_signal(box, SIGCONT, &ignored) < 0)
		return;
}
