/*
 * bawn-parse: reads one foreign text and gives back what of it may be used. It jails itself first:
 * whatever the text does to its reader, there is no file, no socket, no program and no other
 * process to reach, only the one edge it came with (ipc/role.h).
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "base/arena.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "kernel/jail.h"
#include "workspace/identity.h"

#include <string.h>
#include <unistd.h>

enum step {
	STEP_DONE,
	STEP_TEXT = JAIL_STEPS,
	STEP_FILTER,
	STEP_RESULT,
	STEP_SEND,
};

/* A text at its limit takes milliseconds and some megabytes; a loop or a leak ends here. */
static const struct jail jail = {
	.keep = ROLE_FIRST,
	.cpu_seconds = 2,
	.memory_bytes = 128 * 1024 * 1024,
	.filter = SECCOMP_VARIANT_PARSE,
};

static enum step read_text(struct arena *arena, char **ret_text)
{
	off_t length = lseek(ROLE_CONFIG, 0, SEEK_END);
	char *text;

	if (length < 0 || length > (off_t)IDENTITY_LIMIT_BYTES ||
	    lseek(ROLE_CONFIG, 0, SEEK_SET) < 0)
		return STEP_TEXT;
	text = arena_allocate(arena, (size_t)length + 1);
	if (!text || fd_read_all(ROLE_CONFIG, text, (size_t)length) != length ||
	    memchr(text, '\0', (size_t)length))
		return STEP_TEXT;
	*ret_text = text;
	return STEP_DONE;
}

static enum step answer(const char *text)
{
	int CLEANUP_FD fd = role_config(text, strlen(text));

	if (fd < 0)
		return STEP_RESULT;
	return message_send(ROLE_CHANNEL, IDENTITY_RESULT, NULL, 0, &fd, 1) < 0 ? STEP_SEND :
										  STEP_DONE;
}

static enum step work(void)
{
	struct arena arena = { 0 };
	char *text = NULL, *result;
	enum step step = read_text(&arena, &text);

	if (step != STEP_DONE)
		return step;
	result = identity_filter(&arena, text);
	return result ? answer(result) : STEP_FILTER;
}

int main(void)
{
	int step = jail_enter(&jail);

	jail_leave(step ? step : (int)work());
}
