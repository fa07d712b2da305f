/*
 * broker/scope on its own: joins a scope in the tree that it is given, and tells what it found.
 * Never installed; beside bawn-scope.
 *
 *	scope-lab ROOT SELF TASK [NEED...]
 *
 * ROOT is what "/" is, SELF what /proc/self is; where ROOT is "/" only cgroupfs counts. NEED is
 * memory, pids, cpu, io, account, freeze or kill. Prints "offered:" with the controllers that the
 * manager has, "joined:" with what is usable afterwards, makes the task's group and prints "made:"
 * with its name, waits for the end of its input, and removes it, where it is one of cgroupfs.
 * Exit 0; 1: refused, in words on standard error.
 */
#include "base/error.h"
#include "base/fd.h"
#include "broker/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static const char *const names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids",	  [CGROUP_CPU] = "cpu",
	[CGROUP_IO] = "io",	    [CGROUP_ACCOUNT] = "account", [CGROUP_FREEZE] = "freeze",
	[CGROUP_KILL] = "kill",
};

static uint32_t bits_of(char **words)
{
	uint32_t bits = 0;

	for (; *words; words++)
		for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++)
			if (strcmp(names[i], *words) == 0)
				bits |= CGROUP_BIT(i);
	return bits;
}

static void tell(const char *what, uint32_t bits)
{
	(void)printf("%s:", what);
	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++)
		if (bits & CGROUP_BIT(i))
			(void)printf(" %s", names[i]);
	(void)printf("\n");
	(void)fflush(stdout);
}

static uint32_t usable(const struct cgroup_host *host)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++)
		if (cgroup_host_version(host, (enum cgroup_controller)i) == 2)
			bits |= CGROUP_BIT(i);
	return bits;
}

static int use(struct cgroup_host *host, const char *task, uint32_t needs, bool any_filesystem,
	       struct error *error)
{
	struct cgroup cgroup = CGROUP_NONE;
	int result = cgroup_create(host, task, needs, &cgroup, error);
	char byte;

	if (result < 0)
		return result;
	(void)printf("made: %s\n", cgroup.name);
	(void)fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	if (any_filesystem) {
		cgroup_close(&cgroup);
		return 0;
	}
	return cgroup_destroy(&cgroup, SECOND_NS, error);
}

int main(int argc, char **argv)
{
	struct cgroup_source source = { .self = getpid() };
	struct cgroup_host host = { .count = 0 };
	struct error error = ERROR_NONE;
	uint32_t needs;
	int result;

	if (argc < 4)
		return 2;
	needs = bits_of(argv + 4);
	source.root_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	source.self_fd = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	source.any_filesystem = strcmp(argv[1], "/") != 0;
	tell("offered", scope_offered(&source, geteuid()));
	result = scope_join(&source, geteuid(), argv[3], needs, &host, &error);
	if (result == 0) {
		tell("joined", usable(&host));
		result = use(&host, argv[3], needs, source.any_filesystem, &error);
	}
	cgroup_host_close(&host);
	if (result < 0)
		(void)fprintf(stderr, "scope-lab: %s\n", error.message);
	return result < 0;
}
