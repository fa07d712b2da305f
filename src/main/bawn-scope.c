/*
 * bawn-scope: asks systemd's manager for one scope (ipc/systemd.h) and tells what became of it. It
 * jails itself first: whatever comes over the bus, there is no file, no other socket, no program
 * and no other process to reach. It holds the connection that its supervisor made and checked, and
 * nothing of its answer is believed but that it is one (broker/scope.h).
 *
 * Its supervisor may be killed before the manager comes to move it. So the role goes on then, out
 * of reach of what is sent to a whole group of processes, and stops the scope, which nobody is in.
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "ipc/scope.h"
#include "ipc/systemd.h"
#include "kernel/jail.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

enum step {
	STEP_DONE,
	STEP_REQUEST = JAIL_STEPS,
	STEP_ANSWER,
	STEP_SESSION,
};

/* A conversation takes some 10 messages of a kilobyte. */
static const struct jail jail = {
	.keep = ROLE_FIRST + 1,
	.cpu_seconds = 2,
	.memory_bytes = 64 * 1024 * 1024,
	.filter = SECCOMP_VARIANT_SCOPE,
	.outlives = true,
};

static enum step read_request(struct arena *arena, struct systemd_scope *ret_scope)
{
	unsigned char bytes[SCOPE_LIMIT_REQUEST_BYTES];
	struct codec_cursor cursor;
	ssize_t length = fd_read_all(ROLE_CONFIG, bytes, sizeof(bytes));

	if (length < 0)
		return STEP_REQUEST;
	codec_begin(&cursor, bytes, (size_t)length, arena);
	ret_scope->uid = codec_u32(&cursor);
	ret_scope->unit = codec_string(&cursor, SCOPE_LIMIT_REQUEST_BYTES);
	ret_scope->description = codec_string(&cursor, SCOPE_LIMIT_REQUEST_BYTES);
	return codec_end(&cursor) < 0 ? STEP_REQUEST : STEP_DONE;
}

/* True when the supervisor has said that it has the answer: it lives, and is where it should be. */
static bool answer(const struct buffer *bytes)
{
	char received[sizeof(struct message)];
	ssize_t length;

	if (message_send(ROLE_CHANNEL, SCOPE_ANSWER, bytes->data, bytes->length, NULL, 0) < 0)
		return false;
	do
		length = read(ROLE_CHANNEL, received, sizeof(received));
	while (length < 0 && errno == EINTR);
	return length > 0;
}

static enum step work(void)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER bytes = { 0 };
	struct systemd_scope scope;
	struct systemd_answer what;
	enum step step = read_request(&arena, &scope);

	if (step != STEP_DONE)
		return step;
	systemd_start_scope(ROLE_FIRST, &scope, clock_monotonic_ns() + SCOPE_TIME_NS, &what);
	codec_put_u32(&bytes, what.outcome);
	codec_put_string(&bytes, what.text);
	if (bytes.failed)
		return STEP_ANSWER;
	if (!answer(&bytes) && what.outcome == SYSTEMD_DONE)
		systemd_stop_scope(ROLE_FIRST, &scope, clock_monotonic_ns() + SCOPE_TIME_NS);
	return STEP_DONE;
}

int main(void)
{
	int step = setsid() < 0 ? STEP_SESSION : jail_enter(&jail);

	jail_leave(step ? step : (int)work());
}
