/* What the dialer and the supervisor say. */
#include "net/proxy_internal.h"

#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"

#include <errno.h>
#include <string.h>

static int take_dialed(struct proxy *proxy, struct message *message)
{
	struct egress_dialed dialed;
	struct connection *connection;

	if (message->length != sizeof(dialed))
		return -EBADMSG;
	memcpy(&dialed, message->bytes, sizeof(dialed));
	if (dialed.outcome >= EGRESS_CANCELLED ||
	    message->fd_count != (dialed.outcome == EGRESS_DONE))
		return -EBADMSG;
	connection = &proxy->connections[dialed.id & ((1u << CONNECTION_BITS) - 1)];
	if (connection->state == STATE_FREE || connection->dial != DIAL_ASKED ||
	    connection->dial_id != dialed.id)
		return 0; /* nobody waits for it any more */
	connection->outcome = dialed.outcome;
	connection->address = dialed.address;
	connection->dial = DIAL_FAILED;
	if (dialed.outcome == EGRESS_DONE) {
		connection->dial = DIAL_DONE;
		connection->upstream = END_NONE;
		connection->upstream.fd = TAKE_FD(message->fds[0]);
		message->fd_count = 0;
		proxy_tune(connection->upstream.fd);
		if (connection_watch(proxy, connection, &connection->upstream) < 0) {
			end_close(&connection->upstream);
			connection->dial = DIAL_FAILED;
			connection->outcome = EGRESS_UNREACHABLE;
		}
	}
	if (connection->deadline == DEADLINE_DIAL)
		connection_wait(proxy, connection, DEADLINE_NONE);
	connection_step(proxy, connection);
	return 0;
}

static int take_reply(struct proxy *proxy, const struct message *message)
{
	struct egress_reply reply;
	struct connection *connection;
	enum leave *leave;

	if (message->length != sizeof(reply) || message->fd_count > 0)
		return -EBADMSG;
	memcpy(&reply, message->bytes, sizeof(reply));
	if (reply.kind >= EGRESS_QUESTION_KIND_COUNT ||
	    reply.yes >= (reply.kind == EGRESS_WHO ? EGRESS_WHO_COUNT : 2u))
		return -EBADMSG;
	connection = connection_of_id(proxy, reply.id);
	if (connection == NULL)
		return 0;
	leave = reply.kind == EGRESS_WHO ? &connection->who :
		reply.kind == EGRESS_MAY ? &connection->may :
					   &connection->heard;
	if (*leave != LEAVE_ASKED)
		return 0;
	*leave = reply.yes == 1 ? LEAVE_YES : LEAVE_NO;
	if (reply.kind == EGRESS_WHO) {
		connection->known |= EGRESS_FACT_TOOL;
		connection->has_tool = reply.yes == EGRESS_WHO_KNOWN;
		connection->is_crowded = reply.yes == EGRESS_WHO_TOO_MANY;
		connection->action = reply.action;
		connection->tool.device = reply.tool_device;
		connection->tool.inode = reply.tool_inode;
	}
	if (connection->deadline == DEADLINE_WHO || connection->deadline == DEADLINE_ASK ||
	    connection->deadline == DEADLINE_ASK_LEFT)
		connection_wait(proxy, connection, DEADLINE_NONE);
	connection_step(proxy, connection);
	return 0;
}

/* One more port, where the kernel has no rules that bring all of them to one. */
static int take_listener(struct proxy *proxy, struct message *message)
{
	if (message->length != 0 || message->fd_count != 1)
		return -EBADMSG;
	message->fd_count = 0;
	return listener_add(proxy, message->fds[0]);
}

static int take_mark(struct proxy *proxy, const struct message *message)
{
	struct egress_mark mark;

	if (message->length != sizeof(mark) || message->fd_count > 0)
		return -EBADMSG;
	memcpy(&mark, message->bytes, sizeof(mark));
	proxy->mark = mark.number;
	proxy->mark_turns = 0;
	return mark.number ? 0 : -EBADMSG;
}

/* 0 when all was taken, -EPIPE when the peer has gone, else what it did wrong. */
int proxy_take_messages(struct proxy *proxy, int fd)
{
	struct message message;

	for (;;) {
		int result = message_receive(fd, &message);

		if (result == -EAGAIN)
			return 0;
		if (result == -EINTR)
			continue;
		if (result == -EPIPE && fd == ROLE_CHANNEL) {
			ending_begin(proxy);
			return 0;
		}
		if (result < 0)
			return result;
		if (fd == EGRESS_FD_PEER && message.type == EGRESS_DIALED)
			result = take_dialed(proxy, &message);
		else if (fd == ROLE_CHANNEL && message.type == EGRESS_REPLY)
			result = take_reply(proxy, &message);
		else if (fd == ROLE_CHANNEL && message.type == EGRESS_LISTENER)
			result = take_listener(proxy, &message);
		else if (fd == ROLE_CHANNEL && message.type == EGRESS_MARK)
			result = take_mark(proxy, &message);
		else
			result = -EBADMSG;
		message_close_fds(&message);
		if (result < 0)
			return result;
	}
}
