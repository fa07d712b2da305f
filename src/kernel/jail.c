#include "kernel/jail.h"

#include "base/fd.h"
#include "kernel/capability.h"
#include "kernel/landlock.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_the_edge_alone(const struct jail *jail)
{
	return syscall(SYS_close_range, jail->keep, ~0U, 0) < 0 ? -1 : 0;
}

/* It neither outlives its supervisor nor is looked into by what else the caller runs. */
static int bind_to_parent(const struct jail *jail)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -1;
	return jail->outlives ? 0 : prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static int limit_itself(const struct jail *jail)
{
	const struct {
		int number;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_CPU, jail->cpu_seconds },
		{ RLIMIT_AS, jail->memory_bytes },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = { limits[i].value, limits[i].value };

#ifdef __SANITIZE_ADDRESS__
		/* its shadow memory is terabytes of address space */
		if (limits[i].number == RLIMIT_AS)
			continue;
#endif
		if (setrlimit(limits[i].number, &limit) < 0)
			return -1;
	}
	return 0;
}

static int lose_the_privileges(const struct jail *jail)
{
	(void)jail;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || capability_drop_held() < 0 ? -1 : 0;
}

static int lose_the_files(const struct jail *jail)
{
	uint32_t abi = landlock_abi();
	int CLEANUP_FD ruleset_fd = -1;

	(void)jail;
	if (abi == 0)
		return 0;
	return landlock_create(abi, true, &ruleset_fd) < 0 || landlock_restrict(ruleset_fd) < 0 ?
		       -1 :
		       0;
}

static int lose_the_calls(const struct jail *jail)
{
	return seccomp_install(jail->filter, NULL);
}

int jail_enter(const struct jail *jail)
{
	static int (*const steps[])(const struct jail *jail) = {
		keep_the_edge_alone, bind_to_parent, limit_itself,
		lose_the_privileges, lose_the_files, lose_the_calls,
	};

	_Static_assert(sizeof(steps) / sizeof(steps[0]) == JAIL_STEPS - 1, "as jail.h counts");
	for (int i = 0; i < JAIL_STEPS - 1; i++)
		if (steps[i](jail) < 0)
			return i + 1;
	return 0;
}

void jail_leave(int status)
{
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
