#include "broker/ending.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/holder.h"
#include "ipc/info.h"
#include "ipc/message.h"
#include "policy/limit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a supervisor takes for the rest, once everything in its box is dead. */
#define UNDO_NS (3ull * 1000 * 1000 * 1000)
/* For SIGKILL to do its work. */
#define KILL_NS (5ull * 1000 * 1000 * 1000)
#define LOOK_NS (5ull * 1000 * 1000)

struct ending {
	const char *id;
	int fd; /* owned; -1: no connection */
	struct process process;
	uint64_t grace_ns;
	bool is_ended;
	bool is_asked; /* it is on its way */
	struct error error;
};

static const enum control_type types[] = {
	[ENDING_END] = CONTROL_END, [ENDING_STOP] = CONTROL_STOP, [ENDING_KILL] = CONTROL_KILL
};

static bool is_gone(const struct client *client, struct ending *ending)
{
	if (!ending->is_ended)
		ending->is_ended = !holder_exists(client->state.tasks_fd, ending->id);
	return ending->is_ended;
}

/* The task's own grace, by its supervisor's word; this is also the question whether it answers. */
static int learn_grace(struct ending *ending, uint64_t deadline_ns)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct info info;
	int result = client_info(ending->fd, deadline_ns, &arena, &info, &ending->error);

	ending->grace_ns = limit_text(LIMIT_GRACE)->value;
	for (size_t i = 0; result == 0 && i < info.limit_count; i++)
		if (strcmp(info.limits[i].word, limit_text(LIMIT_GRACE)->word) == 0 &&
		    info.limits[i].value != INFO_UNKNOWN)
			ending->grace_ns = info.limits[i].value;
	return result;
}

/* One that has no socket and never will is asked by a signal. */
static int ask_by_signal(const struct client *client, struct ending *ending,
			 const struct ending_options *options)
{
	int result =
		holder_find(client->state.tasks_fd, ending->id, &ending->process, &ending->error);

	if (result < 0 || options->how == ENDING_KILL)
		return result;
	ending->grace_ns = limit_text(LIMIT_GRACE)->value;
	result = holder_signal(&ending->process, SIGTERM);
	ending->is_asked = result == 0;
	return result;
}

static int ask(struct ending *ending, const struct ending_options *options)
{
	struct control_stop stop = { .grace_ns = options->grace_ns };
	bool is_kill = options->how == ENDING_KILL;
	int result = client_ask(ending->fd, types[options->how], is_kill ? NULL : &stop,
				is_kill ? 0 : sizeof(stop), clock_monotonic_ns() + CLIENT_ANSWER_NS,
				&ending->error);

	ending->is_asked = result == 0;
	if (options->grace_ns)
		ending->grace_ns = options->grace_ns;
	return result;
}

static void begin(const struct client *client, struct ending *ending, uint64_t young_ns)
{
	int result = client_connect_patiently(client, ending->id, young_ns, &ending->fd, NULL,
					      &ending->error);

	if (result == 0)
		(void)client_send(ending->fd, CONTROL_STATUS, NULL, 0, NULL, 0, &ending->error);
}

static void proceed(const struct client *client, struct ending *ending,
		    const struct ending_options *options, uint64_t deadline_ns)
{
	int result;

	if (is_gone(client, ending))
		return;
	if (ending->fd < 0)
		result = ask_by_signal(client, ending, options);
	else
		result = learn_grace(ending, deadline_ns);
	if (result == 0 && ending->fd >= 0)
		(void)ask(ending, options);
}

/* Its directory is let go of a moment after everything else. */
static void await(const struct client *client, struct ending *ending, uint64_t deadline_ns)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	while (!is_gone(client, ending) && clock_monotonic_ns() < deadline_ns) {
		struct message message;

		/* nothing more comes but the end of the connection */
		if (ending->fd >= 0 &&
		    client_receive(ending->fd, deadline_ns, &message, &ending->error) < 0)
			fd_close(&ending->fd);
		else if (ending->fd >= 0)
			message_close_fds(&message);
		else
			(void)nanosleep(&pause, NULL);
	}
}

static void force(const struct client *client, struct ending *ending)
{
	int result = 0;

	if (ending->process.pidfd < 0)
		result = holder_find(client->state.tasks_fd, ending->id, &ending->process,
				     &ending->error);
	if (result == 0)
		result = holder_kill(&ending->process, clock_monotonic_ns() + KILL_NS,
				     &ending->error);
	if (result == 0)
		await(client, ending, clock_monotonic_ns() + UNDO_NS);
}

static void finish(const struct client *client, struct ending *ending,
		   const struct ending_options *options, uint64_t begun_ns)
{
	uint64_t grace_ns = options->how == ENDING_KILL ? 0 : ending->grace_ns;

	if (ending->is_asked)
		await(client, ending, begun_ns + grace_ns + UNDO_NS);
	if (!is_gone(client, ending) && (options->is_forced || options->how == ENDING_KILL))
		force(client, ending);
	if (is_gone(client, ending))
		options->told(options->context, ending->id, NULL);
	else if (ending->is_asked && !options->is_forced && options->how != ENDING_KILL)
		options->told(options->context, ending->id,
			      "it has not ended in time; `bawn kill` ends it at once");
	else
		options->told(options->context, ending->id, ending->error.message);
	fd_close(&ending->fd);
	holder_close(&ending->process);
}

int ending_run(const struct client *client, const char *const *ids, size_t count,
	       const struct ending_options *options, struct error *error)
{
	struct ending *endings = calloc(count ? count : 1, sizeof(*endings));
	uint64_t now = clock_monotonic_ns();
	int left = 0;

	if (!endings)
		return error_errno(error, ENOMEM, "ending tasks");
	for (size_t i = 0; i < count; i++) {
		endings[i] = (struct ending){ .id = ids[i], .fd = -1, .process = PROCESS_NONE };
		begin(client, &endings[i], now + CLIENT_YOUNG_NS);
	}
	/* all have the same second to answer in */
	now = clock_monotonic_ns();
	for (size_t i = 0; i < count; i++)
		proceed(client, &endings[i], options, now + CLIENT_ANSWER_NS);
	now = clock_monotonic_ns();
	for (size_t i = 0; i < count; i++) {
		finish(client, &endings[i], options, now);
		left += !endings[i].is_ended;
	}
	free(endings);
	return left;
}
