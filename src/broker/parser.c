#include "broker/parser.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "policy/shell_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

/* The role gives up after two seconds; on a machine that swaps its word may take longer. */
#define ANSWER_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)
/* Each has its processor time from one limit (bawn-parse): 10 ms for each is more than is used. */
#define TEXTS_OF_ONE_ROLE 1000u

_Static_assert(SHELL_WIRE_LIMIT_BYTES == MESSAGE_LIMIT_BYTES, "a part fits into a message");

static int start(struct parser *parser, struct error *error)
{
	static const struct parse_order order = { PARSE_SHELL };
	int CLEANUP_FD config_fd = role_config(&order, sizeof(order));

	if (config_fd < 0)
		return error_errno(error, config_fd, "the order of bawn-parse");
	parser->texts = 0;
	return role_spawn(EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &parser->role, error);
}

/* Waits until the channel can take or give a message. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd poller = { .fd = fd, .events = events };
	uint64_t now_ns;
	int count;

	do {
		now_ns = clock_monotonic_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		count = poll(&poller, 1, (int)((deadline_ns - now_ns) / 1000000 + 1));
	} while (count == 0 || (count < 0 && errno == EINTR));
	return count < 0 ? -errno : 0;
}

static int say(const struct parser *parser, const char *text, size_t length, uint64_t deadline_ns)
{
	unsigned char message[SHELL_WIRE_LIMIT_BYTES];
	size_t offset = 0, part;
	uint32_t type;
	int result;

	do {
		result = wait_for(parser->role.channel, POLLOUT, deadline_ns);
		if (result < 0)
			return result;
		offset = shell_text_put(text, length, offset, message, &type, &part);
		result = message_send(parser->role.channel, type, message, part, NULL, 0);
		if (result < 0)
			return result;
	} while (offset < length);
	return 0;
}

static int hear(const struct parser *parser, struct arena *arena, struct shell_answer *answer,
		uint64_t deadline_ns)
{
	struct message message;
	int result;

	do {
		result = wait_for(parser->role.channel, POLLIN, deadline_ns);
		if (result < 0)
			return result;
		result = message_receive(parser->role.channel, &message);
		if (result < 0)
			return result;
		if (message.fd_count) {
			message_close_fds(&message);
			return -EBADMSG;
		}
		result = shell_answer_take(answer, arena, message.type, message.bytes,
					   message.length);
	} while (result == 0);
	return result < 0 ? result : 0;
}

static int judge(const struct shell_answer *answer, struct error *error)
{
	switch (answer->code) {
	case PARSE_DONE:
		return 0;
	case PARSE_TOO_LARGE:
		return error_set(error, EFBIG, "the text has more than %u parts",
				 SHELL_LIMIT_NODES);
	case PARSE_TOO_LONG:
		return error_set(error, ETIMEDOUT, "the text takes too long to parse");
	default:
		return error_set(error, ENOSYS,
				 "this build has no parser for shell strings (tools/setup fetches "
				 "what it is made of)");
	}
}

int parser_read(struct parser *parser, struct arena *arena, const char *text, size_t length,
		struct shell_tree *ret_tree, struct error *error)
{
	struct shell_answer answer = { 0 };
	uint64_t deadline_ns;
	int result = 0;

	if (length > SHELL_LIMIT_BYTES)
		return error_set(error, EFBIG, "the text has more than %u bytes",
				 SHELL_LIMIT_BYTES);
	if (parser->texts == TEXTS_OF_ONE_ROLE)
		parser_end(parser);
	if (parser->role.pid <= 0)
		result = start(parser, error);
	if (result < 0)
		return result;
	parser->texts++;
	deadline_ns = clock_monotonic_ns() + ANSWER_LIMIT_NS;
	result = say(parser, text, length, deadline_ns);
	if (result == 0)
		result = hear(parser, arena, &answer, deadline_ns);
	if (result < 0) {
		parser_end(parser);
		return error_set(error, EBADMSG, "bawn-parse gave no good answer: %s",
				 error_text(result));
	}
	*ret_tree = (struct shell_tree){ text, length, answer.nodes, answer.count };
	return judge(&answer, error);
}

void parser_end(struct parser *parser)
{
	role_end(&parser->role);
	parser->texts = 0;
}
