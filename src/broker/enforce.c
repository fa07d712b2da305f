#include "broker/enforce.h"

#include "base/error.h"
#include "base/fd.h"
#include "broker/capacity.h"
#include "broker/effective.h"
#include "broker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Processes that do not go in this time sleep in the kernel; the next start removes the group. */
#define DESTROY_TIME_NS (1000ull * 1000 * 1000)

static uint64_t group_value(const struct limits *limits, const struct capacity *capacity,
			    enum limit limit)
{
	return limits_is_asked(limits, limit) && capacity->facts.cgroup[limit] ?
		       limits->values[limit] :
		       CGROUP_UNLIMITED;
}

static int read_number_pair(const char *path, unsigned *ret_major, unsigned *ret_minor)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (length <= 0)
		return -ENOENT;
	text[length] = '\0';
	return sscanf(text, "%u:%u", ret_major, ret_minor) == 2 ? 0 : -EPROTO;
}

/* The whole disk that the workspace lies on: the kernel takes no partition (sysfs(5)). */
static int find_disk(const char *workspace, dev_t *ret_disk, struct error *error)
{
	char path[96];
	struct stat status;
	unsigned number[2];

	if (stat(workspace, &status) < 0)
		return error_errno(error, errno, "%s", workspace);
	number[0] = major(status.st_dev);
	number[1] = minor(status.st_dev);
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", number[0], number[1]);
	if (access(path, F_OK) == 0) {
		(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", number[0],
			       number[1]);
		if (read_number_pair(path, &number[0], &number[1]) < 0)
			number[0] = 0;
	}
	if (number[0] == 0)
		return error_set(error, EOPNOTSUPP,
				 "limit io rate (--io) cannot be held here: the file system of %s "
				 "is on no single disk; leave the option out",
				 workspace);
	*ret_disk = makedev(number[0], number[1]);
	return 0;
}

int enforce_prepare(struct enforce *enforce, const struct effective *effective, struct error *error)
{
	const struct limits *limits = &effective->policy.limits;
	struct capacity *capacity = (struct capacity *)(uintptr_t)&effective->capacity;
	struct cgroup_limits values = CGROUP_NO_LIMITS;
	uint32_t needs;
	dev_t disk;
	int result;

	*enforce = (struct enforce){ .cgroup = CGROUP_NONE };
	result = capacity_join_scope(capacity, limits, effective->task, error);
	if (result < 0)
		return result;
	needs = capacity_needs(capacity, limits);
	if (!needs)
		return 0;
	result = cgroup_create(&capacity->cgroups, effective->task, needs, &enforce->cgroup, error);
	if (result < 0)
		return result;
	values.memory_bytes = group_value(limits, capacity, LIMIT_MEMORY);
	values.pids = group_value(limits, capacity, LIMIT_PIDS);
	values.cpu_thousandths = group_value(limits, capacity, LIMIT_CPUS);
	values.io_bytes_per_second = group_value(limits, capacity, LIMIT_IO);
	if (values.io_bytes_per_second != CGROUP_UNLIMITED) {
		result = find_disk(effective->policy.workspace, &disk, error);
		if (result < 0) {
			enforce_end(enforce);
			return result;
		}
		values.devices = &disk;
		values.device_count = 1;
	}
	result = cgroup_limit(&enforce->cgroup, &values, error);
	if (result < 0)
		enforce_end(enforce);
	return result;
}

void enforce_begin(struct enforce *enforce, struct task *task, uint64_t delay_ns)
{
	watchdog_begin(&enforce->watchdog, task, &enforce->cgroup, delay_ns, enforce_reached);
	enforce->watches = true;
}

void enforce_look_back(struct enforce *enforce)
{
	if (enforce->watches)
		watchdog_look_back(&enforce->watchdog);
}

void enforce_end(struct enforce *enforce)
{
	struct error ignored = ERROR_NONE;

	if (enforce->watches)
		watchdog_end(&enforce->watchdog);
	enforce->watches = false;
	if (enforce->cgroup.count)
		(void)cgroup_destroy(&enforce->cgroup, DESTROY_TIME_NS, &ignored);
	enforce->cgroup = CGROUP_NONE;
}

/* The kernel refuses, or ends a process, by itself where it holds a limit exactly. */
static void end_what_runs(struct task *task, const struct limit_hit *hit)
{
	struct error ignored = ERROR_NONE;

	if (hit->enforcement == ENFORCEMENT_EXACT)
		return;
	/* a live task goes on without what used too much; its time does not come back */
	if (!task->options.live || hit->limit == LIMIT_CPU_TIME ||
	    box_signal(&task->box, SIGKILL, &ignored) < 0)
		task_kill(task);
}

void enforce_reached(struct task *task, const struct limit_hit *hit)
{
	struct event event = { .type = EVENT_LIMIT, .action = "", .body.limit = hit };
	bool is_news = !task->jobs;

	for (struct job *job = task->jobs; job; job = job->next)
		if (job->state >= JOB_RUNNING && job_limit(job, hit))
			is_news = true;
	if (!is_news || task_emit(task, &event) == 0)
		end_what_runs(task, hit);
	else
		task_kill(task);
}
