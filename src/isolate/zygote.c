/*
 * The zygote of an occupied box. What runs in such a box has the ids of an action's process that
 * comes in and can stop it there; with vfork semantics it would stop whose memory that process
 * shares. A copy of the memory would be safe and is dear (page tables, and a fault for each page).
 * So the memory shared is that of a process which may be held up: the zygote, a copy of the
 * supervisor made once. It has joined the namespaces of the box but for its pid namespace, so that
 * nothing in there can see, signal or trace it, and has done once what actions inherit (enter.c).
 *
 * It holds its end of one pair and a Landlock ruleset, ends with that pair or its supervisor, and
 * is the box's: in its control group, with its out-of-memory score, one of its user's processes.
 */
#include "isolate/internal.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "kernel/namespace.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* An action's strings and their arrays. A longer one goes in with a copy of the memory. */
#define ROOM_BYTES (64u * 1024)

/* Mapped by both at one address, so that pointers into it hold in both. */
struct zygote_share {
	struct process inside; /* the action's process, written by the kernel before it runs */
	struct action action;
	const char **script;
	size_t used;
	_Alignas(16) char room[ROOM_BYTES];
};

static void *take_room(struct zygote_share *share, size_t bytes)
{
	size_t rounded = (bytes + 15) & ~(size_t)15;
	void *room = share->room + share->used;

	if (rounded < bytes || rounded > ROOM_BYTES - share->used)
		return NULL;
	share->used += rounded;
	return room;
}

static const char *copy_string(struct zygote_share *share, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = take_room(share, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

static const char *const *copy_strings(struct zygote_share *share, const char *const *strings,
				       size_t count)
{
	const char **copy = NULL;

	if (count < ROOM_BYTES / sizeof(char *))
		copy = take_room(share, (count + 1) * sizeof(char *));
	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = copy_string(share, strings[i]);
		if (!copy[i])
			return NULL;
	}
	if (copy)
		copy[count] = NULL;
	return copy;
}

/* False: there is no room. */
static bool put_action(struct zygote_share *share, const struct action *action)
{
	size_t variables = 0;

	while (action->environ[variables])
		variables++;
	share->used = 0;
	share->action = *action;
	share->action.argv = copy_strings(share, action->argv, action->argc);
	if (!share->action.argv)
		return false;
	share->action.environ = copy_strings(share, action->environ, variables);
	share->action.cwd = action->cwd ? copy_string(share, action->cwd) : NULL;
	share->script = take_room(share, (action->argc + 2) * sizeof(char *));
	return share->action.environ && (share->action.cwd || !action->cwd) && share->script;
}

struct birth {
	struct box *box;
	int fd;	    /* the zygote's end */
	int far_fd; /* the supervisor's: not for the zygote */
};

static void serve(const struct birth *birth) __attribute__((noreturn));

/* One action after the other, each from its request until its exec or its end. */
static void serve(const struct birth *birth)
{
	struct box *box = birth->box;
	struct zygote_share *share = box->zygote.share;
	struct error error = ERROR_NONE;
	struct enter_zygote prepared = { .box = box, .fd = birth->fd };
	struct message message;
	int result;

	(void)close(birth->far_fd);
	result = enter_prepare(&prepared, &error);
	while (message_receive(prepared.fd, &message) == 0) {
		struct box_streams streams;
		struct enter_task task;

		if (message.type != ZYGOTE_ENTER || message.fd_count != 4)
			break;
		if (result < 0) {
			enter_report(message.fds[3], &error);
			break;
		}
		streams = (struct box_streams){ .in = message.fds[0],
						.out = message.fds[1],
						.err = message.fds[2],
						.terminal = message.length > 0 };
		task = (struct enter_task){ .box = box,
					    .action = &share->action,
					    .streams = &streams,
					    .script = share->script,
					    .status_fd = message.fds[3],
					    .ret_inside = &share->inside };
		enter_start(&prepared, &task);
		/* the end of all that there is to say */
		message_close_fds(&message);
	}
	_exit(0);
}

static int fork_zygote(void *argument, struct process *ret_process)
{
	struct birth *birth = argument;
	int result = namespace_clone(0, ret_process);

	if (result == 0)
		serve(birth);
	return result < 0 ? result : 0;
}

void zygote_end(struct zygote *zygote)
{
	fd_close(&zygote->fd);
	/* its memory may be held up by who stopped the process that shares it */
	if (zygote->process.pid > 0)
		(void)kill(zygote->process.pid, SIGKILL);
	process_reap(&zygote->process);
	zygote->is_busy = false;
}

static int begin(struct box *box, struct error *error)
{
	struct zygote *zygote = &box->zygote;
	struct birth birth = { .box = box };
	void *room;
	int pair[2], result;

	/* no other than a clean one: what it knew of the last action is nothing to us */
	zygote_end(zygote);
	if (!zygote->share) {
		room = mmap(NULL, sizeof(*zygote->share), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (room == MAP_FAILED)
			return error_errno(error, errno, "making the memory of the zygote");
		zygote->share = room;
	}
	result = message_pair(pair);
	if (result < 0)
		return error_errno(error, result, "making the pair of the zygote");
	zygote->fd = birth.far_fd = pair[0];
	birth.fd = pair[1];
	result = box_clone_scored(box, fork_zygote, &birth, &zygote->process, error);
	fd_close(&birth.fd);
	/* our own child, waited for by nobody else: its number is enough */
	fd_close(&zygote->process.pidfd);
	if (result < 0)
		zygote_end(zygote);
	return result;
}

static int ask(struct zygote *zygote, const struct enter_task *task)
{
	const struct box_streams *streams = task->streams;
	const int fds[4] = { streams->in, streams->out, streams->err, task->status_fd };
	const char terminal = 0;

	return message_send(zygote->fd, ZYGOTE_ENTER, &terminal, streams->terminal ? 1 : 0, fds, 4);
}

int zygote_enter(struct box *box, const struct enter_task *task, struct entering *entering)
{
	struct zygote *zygote = &box->zygote;
	bool is_new = zygote->fd < 0;
	int result = 0;

	if (zygote->is_busy)
		return 0;
	if (is_new)
		result = begin(box, &entering->error);
	if (result < 0)
		return result;
	if (!put_action(zygote->share, task->action))
		return 0;
	zygote->share->inside = PROCESS_NONE;
	result = ask(zygote, task);
	/* something on the host ended it */
	if (result == -EPIPE || result == -ECONNRESET) {
		result = begin(box, &entering->error);
		if (result < 0)
			return result;
		result = ask(zygote, task);
	}
	if (result < 0)
		return error_errno(&entering->error, result, "asking the zygote");
	zygote->is_busy = true;
	entering->zygote = zygote;
	return 1;
}

void zygote_settle(struct entering *entering)
{
	struct zygote *zygote = entering->zygote;

	entering->zygote = NULL;
	zygote->is_busy = false;
	entering->entered.process.pid = zygote->share->inside.pid;
}

void zygote_abandon(struct entering *entering)
{
	struct zygote *zygote = entering->zygote;

	/* first: afterwards nothing is started any more, and what was is known */
	zygote_end(zygote);
	zygote_settle(entering);
}

void zygote_close(struct zygote *zygote)
{
	zygote_end(zygote);
	if (zygote->share)
		(void)munmap(zygote->share, sizeof(*zygote->share));
	zygote->share = NULL;
}
