/*
 * A signal for everything in a box but its process 1, at one blow: kill(-1) by a process inside,
 * which holds the kernel's list of processes meanwhile, so that no fork gets away (kill(2); a fork
 * with a signal pending begins anew). The sender is visible inside for that moment; it has a copy
 * of our memory, is not dumpable, and is given up when something there stops it.
 */
#include "isolate/internal.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDER_TIME_MS 1000

struct sending {
	const struct box *box;
	int number;
	pid_t sender; /* set in the supervisor's memory */
	int code;     /* of what failed before there was one */
};

static void send_inside(int number) __attribute__((noreturn));

static void send_inside(int number)
{
	/* nobody there is no failure */
	_exit(kill(-1, number) < 0 && errno != ESRCH ? 1 : 0);
}

/* In a child that shares our memory; only its own children are in the box. */
static int run_sender(void *argument)
{
	struct sending *sending = argument;
	struct process sender = PROCESS_NONE;
	int result = 0;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		result = -errno;
	if (result == 0)
		result = namespace_join(sending->box->init.pidfd,
					(int)(plan_namespaces(sending->box->options.plan) &
					      (CLONE_NEWUSER | CLONE_NEWPID)));
	if (result == 0)
		result = namespace_clone(CLONE_PARENT, &sender);
	if (result == 0)
		send_inside(sending->number);
	sending->code = result < 0 ? result : 0;
	sending->sender = sender.pid;
	_exit(0);
}

/* Our own child until it is waited for. */
static int await_sender(pid_t pid)
{
	int CLEANUP_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int status = 0, count;

	do
		count = poll(&ended, 1, SENDER_TIME_MS);
	while (count < 0 && errno == EINTR);
	if (count != 1)
		(void)kill(pid, SIGKILL);
	process_wait(pid, &status);
	if (count != 1)
		return -ETIMEDOUT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int box_signal(struct box *box, int number, struct error *error)
{
	static struct namespace_stack stack;
	struct sending sending = { .box = box, .number = number, .sender = -1 };
	struct process first = PROCESS_NONE;
	int result = box_listen(box, true, error);

	if (result < 0)
		return result;
	result = namespace_vfork(0, run_sender, &sending, &stack, &first);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (result == 0) {
		process_wait(first.pid, NULL);
		fd_close(&first.pidfd);
		result = sending.code;
	}
	if (result == 0)
		result = sending.sender > 0 ? await_sender(sending.sender) : -ECHILD;
	return result < 0 ? error_errno(error, result, "sending signal %d to everything in the box",
					number) :
			    0;
}
