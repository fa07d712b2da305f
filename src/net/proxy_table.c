/* The table of connections: how they come, wait, go on and end. */
#include "net/proxy_internal.h"

#include "base/error.h"
#include "ipc/message.h"

#include <errno.h>
#include <sys/epoll.h>

static uint32_t index_of(const struct proxy *proxy, const struct connection *connection)
{
	return (uint32_t)(connection - proxy->connections);
}

struct connection *connection_of_id(struct proxy *proxy, uint32_t id)
{
	struct connection *connection = &proxy->connections[id & ((1u << CONNECTION_BITS) - 1)];

	return connection->state != STATE_FREE && connection->id == id ? connection : NULL;
}

struct connection *connection_new(struct proxy *proxy)
{
	struct connection *connection;
	uint32_t id;

	if (proxy->free_count == 0)
		return NULL;
	connection = &proxy->connections[proxy->free[--proxy->free_count]];
	/* the generation, which is never 0, and behind it the number in the table */
	id = (connection->id | index_of(proxy, connection)) + (1u << CONNECTION_BITS);
	if (id < 1u << CONNECTION_BITS)
		id += 1u << CONNECTION_BITS;
	*connection = (struct connection){
		.id = id,
		.is_waiting = connection->is_waiting,
		.next_ready = connection->next_ready,
		.client = END_NONE,
		.upstream = END_NONE,
		.up = STREAM_NONE,
		.down = STREAM_NONE,
		.started_ns = proxy->now_ns,
	};
	connection->up.is_modest = true;
	connection->up.from = connection->down.to = &connection->client;
	connection->up.to = connection->down.from = &connection->upstream;
	return connection;
}

void connection_forget_dial(struct connection *connection)
{
	struct egress_cancel cancel = { .id = connection->dial_id };

	/* a cancel that is lost costs a descriptor that comes later and is closed then */
	if (connection->dial == DIAL_ASKED)
		(void)message_send(EGRESS_FD_PEER, EGRESS_CANCEL, &cancel, sizeof(cancel), NULL, 0);
	connection->dial = DIAL_NONE;
}

void connection_close(struct proxy *proxy, struct connection *connection)
{
	connection_forget_dial(connection);
	deadline_unlink(proxy, connection);
	relay_release(&proxy->relay, &connection->up);
	relay_release(&proxy->relay, &connection->down);
	if (connection->has_http)
		*http_of(proxy, connection) = (struct http_state){ 0 };
	end_close(&connection->client);
	end_close(&connection->upstream);
	connection->state = STATE_FREE;
	proxy->free[proxy->free_count++] = index_of(proxy, connection);
}

void connection_reset(struct proxy *proxy, struct connection *connection)
{
	end_reset(&connection->client);
	end_reset(&connection->upstream);
	connection_close(proxy, connection);
}

void connection_drop_upstream(struct proxy *proxy, struct connection *connection)
{
	connection_forget_dial(connection);
	end_close(&connection->upstream);
	connection->upstream_requests = 0;
	pool_give(&proxy->relay.pool, &connection->down.in);
	pool_give(&proxy->relay.pool, &connection->up.out);
}

void connection_ready(struct proxy *proxy, struct connection *connection)
{
	if (connection->is_waiting)
		return;
	connection->is_waiting = true;
	connection->next_ready = proxy->ready;
	proxy->ready = connection;
}

enum step connection_starve(struct proxy *proxy, struct connection *connection)
{
	connection->is_starved = proxy->is_starved = true;
	return STEP_WAIT;
}

/* Whoever has said its last and may have left makes room for one that is there. */
bool connection_hold(struct proxy *proxy, struct connection *connection)
{
	struct deadline_list *held = &proxy->deadlines[DEADLINE_ASK];
	struct deadline_list *left = &proxy->deadlines[DEADLINE_ASK_LEFT];

	if (held->count + left->count >= EGRESS_LIMIT_HELD) {
		if (!left->first)
			return false;
		(void)refuse_reset(proxy, left->first, "its client may have left, and others wait");
	}
	connection_wait(proxy, connection, DEADLINE_ASK);
	return true;
}

int connection_watch(struct proxy *proxy, struct connection *connection, struct end *end)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u64 = (uint64_t)connection->id << 1 | (end == &connection->upstream),
	};

	/* what is there already comes as an event, too; to try costs less than to wait for that */
	end->readable = end->writable = true;
	return epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, end->fd, &event) < 0 ? -errno : 0;
}

void connection_step(struct proxy *proxy, struct connection *connection)
{
	static enum step (*const steps[STATE_COUNT])(struct proxy * proxy,
						     struct connection * connection) = {
		[STATE_SNIFF] = step_sniff,   [STATE_DOOR] = step_door,
		[STATE_TUNNEL] = step_tunnel, [STATE_HTTP] = step_http,
		[STATE_LOOKUP] = step_lookup, [STATE_FLUSH] = step_flush,
		[STATE_DRAIN] = step_drain,
	};

	connection->is_starved = false;
	if (connection->client.is_gone &&
	    (connection->who == LEAVE_ASKED || connection->may == LEAVE_ASKED)) {
		(void)refuse_reset(proxy, connection, "its client left before the answer");
		return;
	}
	for (;;) {
		switch (steps[connection->state](proxy, connection)) {
		case STEP_NEXT:
			continue;
		case STEP_AGAIN:
			connection_ready(proxy, connection);
			return;
		case STEP_WAIT:
			if (connection->deadline == DEADLINE_ASK && connection->client.is_ending)
				connection_wait(proxy, connection, DEADLINE_ASK_LEFT);
			/* whatever it waits for, not for ever */
			if (connection->deadline == DEADLINE_NONE)
				connection_wait(proxy, connection,
						connection->state <= STATE_LOOKUP ? DEADLINE_HEAD :
										    DEADLINE_IDLE);
			return;
		case STEP_END:
			return;
		}
	}
}
