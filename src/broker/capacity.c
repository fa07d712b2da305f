#include "broker/capacity.h"

#include "base/error.h"
#include "base/fd.h"
#include "broker/scope.h"
#include "kernel/usage.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Its processes are dead, or die now: process 1 went with the supervisor. */
#define REAP_TIME_NS (1000ull * 1000 * 1000)

static const struct {
	enum limit limit;
	enum cgroup_controller controller;
} by_group[] = {
	{ LIMIT_MEMORY, CGROUP_MEMORY },    { LIMIT_PIDS, CGROUP_PIDS }, { LIMIT_CPUS, CGROUP_CPU },
	{ LIMIT_CPU_TIME, CGROUP_ACCOUNT }, { LIMIT_IO, CGROUP_IO },
};

static void look_for_groups(struct capacity *capacity)
{
	struct cgroup_source source;
	struct error ignored = ERROR_NONE;

	if (cgroup_source_open(&source, &ignored) < 0)
		return;
	if (cgroup_host_open(&source, &capacity->cgroups, &ignored) == 0)
		for (size_t i = 0; i < sizeof(by_group) / sizeof(by_group[0]); i++)
			capacity->facts.cgroup[by_group[i].limit] = (uint8_t)cgroup_host_version(
				&capacity->cgroups, by_group[i].controller);
	fd_close(&source.root_fd);
	fd_close(&source.self_fd);
}

void capacity_gather(bool with_groups, struct capacity *ret_capacity)
{
	struct sysinfo memory;
	struct rlimit files;

	*ret_capacity = CAPACITY_NONE;
	/* both are part of every box (Linux 5.15), and its id inside is never the host's uid 0 */
	ret_capacity->facts.rlimit_processes = true;
	ret_capacity->facts.sized_areas = true;
	ret_capacity->facts.watchdog_grain_ns = USAGE_INTERVAL_MAX_NS;
	ret_capacity->facts.workspace_grain_ns = USAGE_INTERVAL_MAX_NS;
	if (sysinfo(&memory) == 0)
		ret_capacity->facts.memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		ret_capacity->facts.files = files.rlim_max;
	if (with_groups)
		look_for_groups(ret_capacity);
}

/* The limits, as 1 << enum limit, that these controllers would hold. */
static uint32_t held_by(uint32_t controllers)
{
	uint32_t limits = 0;

	for (size_t i = 0; i < sizeof(by_group) / sizeof(by_group[0]); i++)
		if (controllers & CGROUP_BIT(by_group[i].controller))
			limits |= UINT32_C(1) << by_group[i].limit;
	return limits;
}

void capacity_consider_scope(struct capacity *capacity, const struct limits *limits)
{
	struct capacity most = { .facts = capacity->facts };
	struct cgroup_source source;
	struct error ignored = ERROR_NONE;

	/* what it could be at the best: mostly nothing is gained, and nothing more is looked at */
	limits_offer(&most.facts, UINT32_MAX);
	if (!capacity_needs_scope(&most, limits) || cgroup_source_open(&source, &ignored) < 0)
		return;
	limits_offer(&capacity->facts, held_by(scope_offered(&source, geteuid())));
	fd_close(&source.root_fd);
	fd_close(&source.self_fd);
}

/* The controllers that only a scope has. */
static uint32_t scope_needs(const struct capacity *capacity, const struct limits *limits)
{
	uint32_t needs = 0;

	for (size_t i = 0; i < sizeof(by_group) / sizeof(by_group[0]); i++)
		if (limits_is_asked(limits, by_group[i].limit) &&
		    capacity->facts.cgroup[by_group[i].limit] == LIMIT_GROUP_SCOPE)
			needs |= CGROUP_BIT(by_group[i].controller);
	return needs;
}

bool capacity_needs_scope(const struct capacity *capacity, const struct limits *limits)
{
	return scope_needs(capacity, limits) != 0;
}

int capacity_join_scope(struct capacity *capacity, const struct limits *limits, const char *task,
			struct error *error)
{
	uint32_t needs = scope_needs(capacity, limits);
	struct cgroup_source source;
	int result;

	if (!needs)
		return 0;
	result = cgroup_source_open(&source, error);
	if (result < 0)
		return result;
	result = scope_join(&source, geteuid(), task, needs, &capacity->cgroups, error);
	fd_close(&source.root_fd);
	fd_close(&source.self_fd);
	for (size_t i = 0; result < 0 && i < sizeof(by_group) / sizeof(by_group[0]); i++)
		if (needs & CGROUP_BIT(by_group[i].controller))
			(void)error_context(error, "limit %s (%s) cannot be held here",
					    limit_text(by_group[i].limit)->word,
					    limit_text(by_group[i].limit)->option);
	return result;
}

void capacity_reap(const char *task)
{
	struct capacity capacity = CAPACITY_NONE;
	struct error ignored = ERROR_NONE;
	struct cgroup cgroup = CGROUP_NONE;

	look_for_groups(&capacity);
	if (cgroup_open(&capacity.cgroups, task, &cgroup, &ignored) == 0 && cgroup.count)
		(void)cgroup_destroy(&cgroup, REAP_TIME_NS, &ignored);
	capacity_close(&capacity);
}

void capacity_close(struct capacity *capacity)
{
	cgroup_host_close(&capacity->cgroups);
	*capacity = CAPACITY_NONE;
}

uint32_t capacity_needs(const struct capacity *capacity, const struct limits *limits)
{
	uint32_t needs = 0;

	for (size_t i = 0; i < sizeof(by_group) / sizeof(by_group[0]); i++)
		if (limits_is_asked(limits, by_group[i].limit) &&
		    capacity->facts.cgroup[by_group[i].limit])
			needs |= CGROUP_BIT(by_group[i].controller);
	/* with a group there is a better way to stop and to kill, too */
	for (unsigned extra = CGROUP_FREEZE; needs && extra <= CGROUP_KILL; extra++)
		if (cgroup_host_version(&capacity->cgroups, (enum cgroup_controller)extra))
			needs |= CGROUP_BIT(extra);
	return needs;
}
