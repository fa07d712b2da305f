/*
 * bawn-proxy: takes the connections of a task's box (net/proxy.h). It jails itself first: from then
 * on it has the descriptors it came with and those that the dialer hands over, and nothing else.
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "ipc/role.h"
#include "kernel/jail.h"
#include "net/edge.h"
#include "net/proxy.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum step {
	STEP_DONE,
	STEP_LIMITS = JAIL_STEPS,
	STEP_CONFIG,
	STEP_WORK,
	STEP_PROTOCOL,
};

/* Waiting bytes at their worst (net/pool.h), the tables, the rules. */
#define MEMORY_BYTES (256u * 1024 * 1024)

static const struct jail jail = {
	.keep = EGRESS_FD_DOOR + 1,
	.cpu_seconds = INT_MAX, /* as long as its task */
	.memory_bytes = MEMORY_BYTES,
	.filter = SECCOMP_VARIANT_PROXY,
};

/* Two descriptors for a connection: as many as the caller's own limit lets it have. */
static int raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

int main(void)
{
	const unsigned char *config;
	struct stat status;
	int step, result;

	if (raise_limit() < 0)
		jail_leave(STEP_LIMITS);
	/* nobody can change it any more, and nobody looks at it yet */
	if (fstat(ROLE_CONFIG, &status) < 0 || status.st_size <= 0)
		jail_leave(STEP_CONFIG);
	config = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, ROLE_CONFIG, 0);
	if (config == MAP_FAILED)
		jail_leave(STEP_CONFIG);
	step = jail_enter(&jail);
	if (step != 0)
		jail_leave(step);
	result = proxy_run(config, (size_t)status.st_size);
	jail_leave(result == 0 ? STEP_DONE : result == -EBADMSG ? STEP_PROTOCOL : STEP_WORK);
}
