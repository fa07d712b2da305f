/*
 * bawn-parse: reads one foreign text and gives back what of it may be used (ipc/parse.h): the
 * caller's git configuration, or a policy file, as its outline. It jails itself first: whatever
 * the text does to its reader, there is no file, no socket, no program and no other process to
 * reach, only the one edge it came with (ipc/role.h).
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/parse.h"
#include "ipc/role.h"
#include "kernel/jail.h"
#include "policy/outline.h"
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

/* The order, and the text behind it. */
static enum step read_config(struct arena *arena, struct parse_order *order, char **ret_text,
			     size_t *ret_length)
{
	off_t length = lseek(ROLE_CONFIG, 0, SEEK_END) - (off_t)sizeof(*order);
	char *text;

	if (length < 0 || length > (off_t)OUTLINE_LIMIT_BYTES ||
	    lseek(ROLE_CONFIG, 0, SEEK_SET) < 0 ||
	    fd_read_all(ROLE_CONFIG, order, sizeof(*order)) != (ssize_t)sizeof(*order))
		return STEP_TEXT;
	text = arena_allocate(arena, (size_t)length + 1);
	if (!text || fd_read_all(ROLE_CONFIG, text, (size_t)length) != length)
		return STEP_TEXT;
	*ret_text = text;
	*ret_length = (size_t)length;
	return STEP_DONE;
}

static enum step answer(uint32_t type, const void *bytes, size_t length)
{
	int CLEANUP_FD fd = role_config(bytes, length);

	if (fd < 0)
		return STEP_RESULT;
	return message_send(ROLE_CHANNEL, type, NULL, 0, &fd, 1) < 0 ? STEP_SEND : STEP_DONE;
}

static enum step filter_identity(struct arena *arena, const char *text, size_t length)
{
	char *result;

	if (length > IDENTITY_LIMIT_BYTES || strlen(text) != length)
		return STEP_TEXT;
	result = identity_filter(arena, text);
	return result ? answer(IDENTITY_RESULT, result, strlen(result)) : STEP_FILTER;
}

static enum step outline(const char *text, size_t length)
{
	struct buffer bytes = { 0 };

	if (outline_parse(text, length, &bytes) < 0)
		return STEP_FILTER;
	return answer(PARSE_OUTLINE_RESULT, bytes.data, bytes.length);
}

static enum step work(void)
{
	struct parse_order order = { 0 };
	struct arena arena = { 0 };
	char *text = NULL;
	size_t length = 0;
	enum step step = read_config(&arena, &order, &text, &length);

	if (step != STEP_DONE)
		return step;
	if (order.kind == PARSE_OUTLINE)
		return outline(text, length);
	return order.kind == PARSE_IDENTITY ? filter_identity(&arena, text, length) : STEP_TEXT;
}

int main(void)
{
	int step = jail_enter(&jail);

	jail_leave(step ? step : (int)work());
}
