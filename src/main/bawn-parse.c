/*
 * bawn-parse: reads foreign text and gives back what of it may be used (ipc/parse.h): the caller's
 * git configuration, a policy file or settings, as their outline, or shell strings, as their trees.
 * It jails itself first: whatever the text does to its reader, there is no file, no socket, no
 * program and no other process to reach, only the one edge it came with (ipc/role.h).
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
#include "policy/shell_parse.h"
#include "workspace/identity.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum step {
	STEP_DONE,
	STEP_TEXT = JAIL_STEPS,
	STEP_FILTER,
	STEP_RESULT,
	STEP_SEND,
	STEP_MESSAGE,
};

/*
 * A text at its limit takes milliseconds and some megabytes; a loop or a leak ends here. Who has
 * many texts takes another process before these seconds are used up (broker/parser.h).
 */
static const struct jail jail = {
	.keep = ROLE_FIRST,
	.cpu_seconds = 10,
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

static enum step outline(int (*parse)(const char *text, size_t length, struct buffer *buffer),
			 const char *text, size_t length)
{
	struct buffer bytes = { 0 };

	if (parse(text, length, &bytes) < 0)
		return STEP_FILTER;
	return answer(PARSE_OUTLINE_RESULT, bytes.data, bytes.length);
}

static enum step answer_tree(const struct shell_answer *tree)
{
	unsigned char message[SHELL_WIRE_LIMIT_BYTES];
	size_t offset = 0, length;
	uint32_t type;

	do {
		offset = shell_answer_put(tree, offset, message, &type, &length);
		if (message_send(ROLE_CHANNEL, type, message, length, NULL, 0) < 0)
			return STEP_SEND;
	} while (offset < tree->count);
	return STEP_DONE;
}

static enum step answer_shell(const struct shell_text *text)
{
	struct shell_parser *parser = shell_parser_get();
	struct shell_answer tree = { .code = PARSE_NOT_BUILT };

	if (parser)
		tree = shell_parse(parser, text->bytes, text->length);
	return answer_tree(&tree);
}

/* Texts until the channel closes. */
static enum step parse_shells(void)
{
	static struct shell_text text;
	static struct message message;
	enum step step = STEP_DONE;

	while (step == STEP_DONE) {
		int result = message_receive(ROLE_CHANNEL, &message);

		if (result == -EPIPE && !text.begun)
			return STEP_DONE;
		if (result < 0 || message.fd_count)
			return STEP_MESSAGE;
		result = shell_text_take(&text, message.type, message.bytes, message.length);
		if (result < 0)
			return STEP_MESSAGE;
		if (result > 0) {
			step = answer_shell(&text);
			text.length = text.expected = 0;
			text.begun = false;
		}
	}
	return step;
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
	if (order.kind == PARSE_SHELL)
		return length ? STEP_TEXT : parse_shells();
	if (order.kind == PARSE_OUTLINE)
		return outline(outline_parse, text, length);
	if (order.kind == PARSE_TOML)
		return outline(outline_parse_toml, text, length);
	if (order.kind == PARSE_RULES)
		return outline(outline_parse_rules, text, length);
	return order.kind == PARSE_IDENTITY ? filter_identity(&arena, text, length) : STEP_TEXT;
}

int main(void)
{
	int step = jail_enter(&jail);

	jail_leave(step ? step : (int)work());
}
