/* Connections whose bytes nobody looks at any more: tunnels, last words, and what is dropped. */
#include "net/proxy_internal.h"

#include <errno.h>

/* Of a client that does not stop sending after a refusal. */
#define DRAIN_BYTES (1024u * 1024)

enum step tunnel_end(struct proxy *proxy, struct connection *connection, const char *reason)
{
	/* of an upgrade: the request that asked for it */
	const struct http_state *http = http_of(proxy, connection);
	bool is_http = connection->has_http;

	connection->reason = reason;
	report_closed(proxy, connection, is_http ? http->status : 0, is_http ? http->method : NULL,
		      is_http ? http->path : NULL);
	if (reason)
		connection_reset(proxy, connection);
	else
		connection_close(proxy, connection);
	return STEP_END;
}

struct turn {
	enum relay_result result;
	bool is_paced, is_used_up;
};

static struct turn move(struct proxy *proxy, struct connection *connection, struct stream *stream)
{
	struct turn turn = { 0 };
	bool is_up = stream == &connection->up;
	uint64_t limit = quota_left(proxy, connection, is_up, &turn.is_paced);

	turn.result = relay_move(&proxy->relay, stream, limit);
	quota_charge(proxy, connection);
	limit = quota_left(proxy, connection, is_up, &turn.is_paced);
	/* and there is more: what came already counts as well as what is still to be read */
	turn.is_used_up = limit == 0 && !turn.is_paced &&
			  (chunk_length(stream->in) > 0 || end_has_more(stream->from));
	if (turn.result == RELAY_ENDED)
		end_shut(stream->to);
	return turn;
}

enum step step_tunnel(struct proxy *proxy, struct connection *connection)
{
	uint64_t before = connection->up.passed + connection->down.passed;
	struct turn up = move(proxy, connection, &connection->up);
	struct turn down = move(proxy, connection, &connection->down);

	if (up.result == RELAY_LOST || down.result == RELAY_LOST)
		return tunnel_end(proxy, connection, "a connection was reset");
	if (up.result == RELAY_ENDED && down.result == RELAY_ENDED)
		return tunnel_end(proxy, connection, NULL);
	if (up.is_used_up || down.is_used_up) {
		connection->answer.verdict = EGRESS_DENY;
		return tunnel_end(proxy, connection, "the quota of bytes is used up");
	}
	if (up.result == RELAY_AGAIN || down.result == RELAY_AGAIN)
		return STEP_AGAIN;
	if (up.is_paced || down.is_paced)
		connection_wait(proxy, connection, DEADLINE_PACE);
	else if (connection->deadline != DEADLINE_IDLE ||
		 connection->up.passed + connection->down.passed != before)
		connection_wait(proxy, connection, DEADLINE_IDLE);
	return STEP_WAIT;
}

/*
 * The program that is told no may be gone at once: where several actions run the supervisor looks
 * for it first. Nobody waits for long.
 */
static bool is_heard(struct proxy *proxy, struct connection *connection)
{
	if (!(proxy->order.flags & EGRESS_ORDER_LIVE) ||
	    connection->answer.verdict != EGRESS_DENY || connection->heard == LEAVE_YES)
		return true;
	if (connection->heard == LEAVE_NONE) {
		if (!report_question(proxy, connection, EGRESS_HEARD, NULL, NULL))
			return true;
		connection->heard = LEAVE_ASKED;
		connection_wait(proxy, connection, DEADLINE_DRAIN);
	}
	return false;
}

enum step step_flush(struct proxy *proxy, struct connection *connection)
{
	if (!is_heard(proxy, connection))
		return STEP_WAIT;
	if (connection->is_reset) {
		connection_reset(proxy, connection);
		return STEP_END;
	}
	switch (relay_flush(&proxy->relay, &connection->down)) {
	case RELAY_RAN:
		break;
	case RELAY_LOST:
		connection_close(proxy, connection);
		return STEP_END;
	case RELAY_WAIT:
	case RELAY_AGAIN:
	case RELAY_ENDED:
		if (connection->deadline != DEADLINE_DRAIN)
			connection_wait(proxy, connection, DEADLINE_DRAIN);
		return STEP_WAIT;
	}
	end_shut(&connection->client);
	connection->state = STATE_DRAIN;
	connection->up.run = DRAIN_BYTES;
	connection_wait(proxy, connection, DEADLINE_DRAIN);
	return STEP_NEXT;
}

/* With unread bytes a close would be a reset, and take our last word with it. */
enum step step_drain(struct proxy *proxy, struct connection *connection)
{
	while (!connection->client.is_done && connection->up.run > 0) {
		int count = relay_drop(&proxy->relay, &connection->client);

		if (count < 0)
			break;
		if (count == 0 && !connection->client.is_done)
			return STEP_WAIT;
		connection->up.run -= (uint64_t)count < connection->up.run ? (uint64_t)count :
									     connection->up.run;
	}
	connection_close(proxy, connection);
	return STEP_END;
}
