/*
 * bawn-dialer: connects to hosts for the proxy of one task (net/dialer.h). It jails itself first:
 * whatever a resolver or the proxy sends, there is no file, no program, no listener and no other
 * process to reach, and no byte of the task's to send anywhere.
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "kernel/jail.h"
#include "net/dialer.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum step {
	STEP_DONE,
	STEP_ORDER = JAIL_STEPS,
	STEP_RULES,
	STEP_READY,
	STEP_MESSAGE,
	STEP_FILES,
};

/*
 * It lives as long as its task. A connection takes some 40 us: an hour of processor time is enough
 * for 90 million. The rules are the largest part of its memory.
 */
static const struct jail jail = {
	.keep = EGRESS_FD_PEER + 1,
	.cpu_seconds = 3600,
	.memory_bytes = 64 * 1024 * 1024,
	.filter = SECCOMP_VARIANT_DIALER,
};

/*
 * Descriptors on their way count for the user, whoever sent them, and who sends one more must have
 * fewer than its soft limit of open files (ipc/message.c): the highest that it may have.
 */
static enum step raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return STEP_FILES;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? STEP_FILES : STEP_DONE;
}

static enum step read_order(struct arena *arena, struct egress_order *order,
			    struct egress_policy *policy)
{
	struct error error = { 0 };
	unsigned char *rules;

	if (fd_read_all(ROLE_CONFIG, order, sizeof(*order)) != (ssize_t)sizeof(*order) ||
	    !dialer_check(order))
		return STEP_ORDER;
	rules = arena_allocate(arena, (size_t)order->rules_bytes + 1);
	/* one byte more than there should be */
	if (!rules || fd_read_all(ROLE_CONFIG, rules, (size_t)order->rules_bytes + 1) !=
			      (ssize_t)order->rules_bytes)
		return STEP_ORDER;
	return egress_decode(rules, order->rules_bytes, arena, policy, &error) < 0 ? STEP_RULES :
										     STEP_DONE;
}

static enum step work(void)
{
	static struct arena arena;
	struct egress_order order;
	struct egress_policy policy = { 0 };
	enum step step = read_order(&arena, &order, &policy);

	if (step != STEP_DONE)
		return step;
	fd_close(&(int){ ROLE_CONFIG });
	if (message_send(ROLE_CHANNEL, EGRESS_READY, NULL, 0, NULL, 0) < 0)
		return STEP_READY;
	return dialer_run(EGRESS_FD_PEER, ROLE_CHANNEL, &order, &policy) < 0 ? STEP_MESSAGE :
									       STEP_DONE;
}

int main(void)
{
	int step = (int)raise_files();

	if (step == STEP_DONE)
		step = jail_enter(&jail);
	jail_leave(step ? step : (int)work());
}
