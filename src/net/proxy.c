#include "net/proxy.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "net/moment.h"
#include "net/proxy_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS (1000 * MILLISECOND_NS)

/* A connection has two descriptors; what all share: pipes, channels, listeners. */
#define SHARED_FDS (2 * RELAY_LIMIT_PIPES + PROXY_LIMIT_LISTENERS + 32)

/*
 * At the end of the task: how long nothing may move of what it sent, and how long all may take. An
 * upstream that takes its bytes gets them; whoever waits for the task's end does not wait for one
 * that does not.
 */
#define QUIET_NS (100 * MILLISECOND_NS)
#define ENDING_NS SECOND_NS

/* Of one kind before others have their turn. */
#define TURN_ACCEPTS 64
#define TURN_EVENTS 128

/* epoll's data of what is no connection; an id shifted by one is above all of them. */
enum watched { WATCH_CHANNEL = 1, WATCH_PEER, WATCH_UDP, WATCH_LISTENER };

static const uint64_t deadline_ns[DEADLINE_COUNT] = {
	[DEADLINE_SILENT] = 300 * MILLISECOND_NS,
	[DEADLINE_FIRST] = 30 * SECOND_NS,
	[DEADLINE_HEAD] = 15 * SECOND_NS,
	[DEADLINE_DIAL] = 30 * SECOND_NS,
	[DEADLINE_WHO] = EGRESS_LIMIT_ASK_S * SECOND_NS,
	[DEADLINE_ASK] = EGRESS_LIMIT_ASK_S * SECOND_NS,
	[DEADLINE_ASK_LEFT] = 60 * SECOND_NS,
	[DEADLINE_ANSWER] = 900 * SECOND_NS,
	[DEADLINE_KEEP] = 75 * SECOND_NS,
	[DEADLINE_IDLE] = 7200 * SECOND_NS,
	[DEADLINE_DRAIN] = 2 * SECOND_NS,
	[DEADLINE_PACE] = 50 * MILLISECOND_NS,
	/* and _ASK_LEFT: as long as the kernel keeps what a program closed (tcp_fin_timeout) */
	[DEADLINE_LEFT] = 60 * SECOND_NS,
};

static void connection_step(struct proxy *proxy, struct connection *connection);

/* --- the table */

static uint32_t index_of(const struct proxy *proxy, const struct connection *connection)
{
	return (uint32_t)(connection - proxy->connections);
}

static struct connection *connection_of_id(struct proxy *proxy, uint32_t id)
{
	struct connection *connection = &proxy->connections[id & ((1u << CONNECTION_BITS) - 1)];

	return connection->state != STATE_FREE && connection->id == id ? connection : NULL;
}

static struct connection *connection_new(struct proxy *proxy)
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

static void unlink_deadline(struct proxy *proxy, struct connection *connection)
{
	struct deadline_list *list = &proxy->deadlines[connection->deadline];

	if (connection->deadline == DEADLINE_NONE)
		return;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		list->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	else
		list->last = connection->previous;
	list->count--;
	connection->previous = connection->next = NULL;
	connection->deadline = DEADLINE_NONE;
}

void connection_wait(struct proxy *proxy, struct connection *connection, enum deadline deadline)
{
	struct deadline_list *list = &proxy->deadlines[deadline];

	unlink_deadline(proxy, connection);
	if (deadline == DEADLINE_NONE)
		return;
	connection->deadline = (uint8_t)deadline;
	connection->deadline_ns = proxy->now_ns + deadline_ns[deadline];
	connection->previous = list->last;
	if (list->last)
		list->last->next = connection;
	else
		list->first = connection;
	list->last = connection;
	list->count++;
}

static void forget_dial(struct connection *connection)
{
	struct egress_cancel cancel = { .id = connection->dial_id };

	/* a cancel that is lost costs a descriptor that comes later and is closed then */
	if (connection->dial == DIAL_ASKED)
		(void)message_send(EGRESS_FD_PEER, EGRESS_CANCEL, &cancel, sizeof(cancel), NULL, 0);
	connection->dial = DIAL_NONE;
}

void connection_close(struct proxy *proxy, struct connection *connection)
{
	forget_dial(connection);
	unlink_deadline(proxy, connection);
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
	forget_dial(connection);
	end_close(&connection->upstream);
	connection->upstream_requests = 0;
	pool_give(&proxy->relay.pool, &connection->down.in);
	pool_give(&proxy->relay.pool, &connection->up.out);
	relay_empty(&proxy->relay, &connection->up);
	relay_empty(&proxy->relay, &connection->down);
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
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u64 = (uint64_t)connection->id << 1 | (end == &connection->upstream),
	};

	/* what is there already comes as an event, too; to try costs less than to wait for that */
	end->readable = end->writable = true;
	return epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, end->fd, &event) < 0 ? -errno : 0;
}

static void connection_step(struct proxy *proxy, struct connection *connection)
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

/* --- new connections */

static void address_of(const struct sockaddr_storage *from, struct address *ret_address,
		       uint16_t *ret_port)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct address address = { 0 };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	*ret_port = 0;
	if (from->ss_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		address.family = ADDRESS_V4;
		memcpy(address.bytes, &v4.sin_addr, 4);
		*ret_port = ntohs(v4.sin_port);
	} else if (from->ss_family == AF_INET6) {
		memcpy(&v6, from, sizeof(v6));
		address.family = ADDRESS_V6;
		memcpy(address.bytes, &v6.sin6_addr, 16);
		*ret_port = ntohs(v6.sin6_port);
		if (memcmp(address.bytes, mapped, sizeof(mapped)) == 0) {
			memmove(address.bytes, address.bytes + 12, 4);
			memset(address.bytes + 4, 0, 12);
			address.family = ADDRESS_V4;
		}
	}
	*ret_address = address;
}

static void refuse_accepted(struct proxy *proxy, int fd)
{
	struct end end = { .fd = fd };

	end_reset(&end);
	proxy->refused_accepts++;
}

/* At the limit of descriptors nothing could be accepted, and what waits would wake us for ever. */
static void refuse_one(struct proxy *proxy, int listen_fd)
{
	int fd;

	fd_close(&proxy->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse_accepted(proxy, fd);
	proxy->spare_fd = dup(proxy->epoll_fd);
}

static void take_in(struct proxy *proxy, int fd, const struct sockaddr_storage *peer)
{
	struct connection *connection = connection_new(proxy);
	struct sockaddr_storage local = { 0 };
	socklen_t length = sizeof(local);

	if (connection == NULL) {
		refuse_accepted(proxy, fd);
		return;
	}
	connection->client.fd = fd;
	connection->state = STATE_SNIFF;
	address_of(peer, &connection->peer, &connection->peer_port);
	if (getsockname(fd, (struct sockaddr *)&local, &length) < 0 ||
	    connection_watch(proxy, connection, &connection->client) < 0) {
		connection_reset(proxy, connection);
		return;
	}
	address_of(&local, &connection->local, &connection->local_port);
	connection_open(proxy, connection);
	connection_step(proxy, connection);
}

static void accept_some(struct proxy *proxy, int listen_fd)
{
	for (int i = 0; i < TURN_ACCEPTS && !proxy->is_held; i++) {
		struct sockaddr_storage peer = { 0 };
		socklen_t length = sizeof(peer);
		int fd = accept4(listen_fd, (struct sockaddr *)&peer, &length,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			take_in(proxy, fd, &peer);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			refuse_one(proxy, listen_fd);
		else if (errno == EAGAIN)
			return;
		/* others are of the one connection that was lost meanwhile: accept(2) */
	}
}

/* --- the other processes */

/* Small writes do not wait; of a door's unix socket they never do. */
static void send_at_once(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

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
		send_at_once(connection->upstream.fd);
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

static int watch(struct proxy *proxy, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int add_listener(struct proxy *proxy, int fd)
{
	if (proxy->listener_count == PROXY_LIMIT_LISTENERS)
		return -ENOBUFS;
	/* what is accepted has it from the listener (tcp(7)) */
	send_at_once(fd);
	proxy->listeners[proxy->listener_count] = fd;
	return watch(proxy, fd, proxy->is_held ? 0 : EPOLLIN,
		     WATCH_LISTENER + proxy->listener_count++);
}

/* One more port, where the kernel has no rules that bring all of them to one. */
static int take_listener(struct proxy *proxy, struct message *message)
{
	if (message->length != 0 || message->fd_count != 1)
		return -EBADMSG;
	message->fd_count = 0;
	return add_listener(proxy, message->fds[0]);
}

/* What was asked of the supervisor is not answered, or not in time. */
static void give_up_question(struct connection *connection)
{
	if (connection->who == LEAVE_ASKED) {
		connection->who = LEAVE_NO;
		connection->known |= EGRESS_FACT_TOOL;
	}
	if (connection->may == LEAVE_ASKED)
		connection->may = LEAVE_NO;
}

/* The supervisor says nothing more, and listens until we end. */
static void begin_ending(struct proxy *proxy)
{
	if (proxy->is_ending)
		return;
	proxy->is_ending = true;
	proxy->ending_ns = proxy->quiet_ns = proxy->now_ns;
	for (uint32_t i = 0; i < proxy->limit_connections; i++) {
		struct connection *connection = &proxy->connections[i];

		if (connection->state == STATE_FREE)
			continue;
		give_up_question(connection);
		connection_ready(proxy, connection);
	}
}

/* 0 when all was taken, -EPIPE when the peer has gone, else what it did wrong. */
static int take_messages(struct proxy *proxy, int fd)
{
	struct message message;

	for (;;) {
		int result = message_receive(fd, &message);

		if (result == -EAGAIN)
			return 0;
		if (result == -EINTR)
			continue;
		if (result == -EPIPE && fd == ROLE_CHANNEL) {
			begin_ending(proxy);
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
		else
			result = -EBADMSG;
		message_close_fds(&message);
		if (result < 0)
			return result;
	}
}

/* --- time */

static enum step refuse_head(struct proxy *proxy, struct connection *connection, unsigned status,
			     const char *reason)
{
	return connection->state == STATE_HTTP ? refuse_http(proxy, connection, status, reason) :
						 refuse_reset(proxy, connection, reason);
}

static enum step expire_state(struct proxy *proxy, struct connection *connection,
			      enum deadline deadline)
{
	switch (deadline) {
	case DEADLINE_SILENT:
		connection->is_silent = true;
		break;
	case DEADLINE_DIAL:
		forget_dial(connection);
		connection->dial = DIAL_FAILED;
		connection->outcome = EGRESS_TIMEOUT;
		break;
	case DEADLINE_ASK_LEFT:
		return refuse_reset(proxy, connection, "its client left before the answer");
	case DEADLINE_WHO:
	case DEADLINE_ASK:
		give_up_question(connection);
		break;
	case DEADLINE_PACE:
		break;
	case DEADLINE_FIRST:
	case DEADLINE_HEAD:
		return connection->is_starved ?
			       refuse_head(proxy, connection, 503,
					   "there was no memory for it in time") :
			       refuse_head(proxy, connection, 408, "nothing came in time");
	case DEADLINE_ANSWER:
	case DEADLINE_LEFT:
		return refuse_http(proxy, connection, 504, "the server did not answer in time");
	case DEADLINE_IDLE:
		return refuse_reset(proxy, connection, "nothing moved for too long");
	case DEADLINE_KEEP:
	case DEADLINE_DRAIN:
		connection_close(proxy, connection);
		return STEP_END;
	case DEADLINE_NONE:
	case DEADLINE_COUNT:
		break;
	}
	return STEP_NEXT;
}

static void expire(struct proxy *proxy, struct connection *connection)
{
	enum deadline deadline = connection->deadline;

	unlink_deadline(proxy, connection);
	if (expire_state(proxy, connection, deadline) == STEP_NEXT)
		connection_step(proxy, connection);
}

static void expire_all(struct proxy *proxy)
{
	for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++) {
		struct deadline_list *list = &proxy->deadlines[i];

		while (list->first && list->first->deadline_ns <= proxy->now_ns)
			expire(proxy, list->first);
	}
}

/* Whoever begins to say something and does not go on must not keep others from it. */
static void trim_heads(struct proxy *proxy)
{
	const struct deadline_list *heads = &proxy->deadlines[DEADLINE_HEAD];

	while (heads->count > PROXY_LIMIT_HEADS) {
		struct connection *oldest = heads->first;

		unlink_deadline(proxy, oldest);
		if (refuse_head(proxy, oldest, 503,
				"too many requests are unfinished at once, and it is the oldest") ==
		    STEP_NEXT)
			connection_step(proxy, oldest);
	}
}

/* Memory was given back: whoever waits for it tries again. */
static void feed_starved(struct proxy *proxy)
{
	if (!proxy->is_starved || !proxy->relay.pool.is_given)
		return;
	proxy->is_starved = proxy->relay.pool.is_given = false;
	for (uint32_t i = 0; i < proxy->limit_connections; i++)
		if (proxy->connections[i].state != STATE_FREE && proxy->connections[i].is_starved)
			connection_ready(proxy, &proxy->connections[i]);
}

/* What is looked at each second where there is something. */
static bool proxy_is_restless(const struct proxy *proxy)
{
	return report_is_due(proxy) || proxy->is_held || pool_is_warm(&proxy->relay.pool);
}

static int timeout_ms(const struct proxy *proxy)
{
	uint64_t until = proxy->now_ns + SECOND_NS;

	if (proxy->ready)
		return 0;
	for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++)
		if (proxy->deadlines[i].first && proxy->deadlines[i].first->deadline_ns < until)
			until = proxy->deadlines[i].first->deadline_ns;
	if (until <= proxy->now_ns)
		return 0;
	if (until == proxy->now_ns + SECOND_NS && !proxy_is_restless(proxy))
		/* the next deadline is farther than a second: one look a minute costs nothing */
		return 60 * 1000;
	return (int)((until - proxy->now_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
}

/* --- the loop */

static void go_on(struct proxy *proxy)
{
	struct connection *connection = proxy->ready;

	proxy->ready = NULL;
	while (connection) {
		struct connection *next = connection->next_ready;

		connection->is_waiting = false;
		connection->next_ready = NULL;
		if (connection->state != STATE_FREE)
			connection_step(proxy, connection);
		connection = next;
	}
}

static void listen_to(struct proxy *proxy, bool is_on)
{
	struct epoll_event event = { .events = is_on ? EPOLLIN : 0, .data.u64 = WATCH_UDP };

	(void)epoll_ctl(proxy->epoll_fd, EPOLL_CTL_MOD, EGRESS_FD_UDP, &event);
	for (uint32_t i = 0; i < proxy->listener_count; i++) {
		event.data.u64 = WATCH_LISTENER + i;
		(void)epoll_ctl(proxy->epoll_fd, EPOLL_CTL_MOD, proxy->listeners[i], &event);
	}
}

void proxy_hold(struct proxy *proxy)
{
	if (!proxy->is_held)
		listen_to(proxy, false);
	proxy->is_held = true;
	proxy->held_ns = proxy->now_ns;
}

/* The supervisor takes records again: what waited for that goes on. */
static void unhold(struct proxy *proxy)
{
	if (!proxy->is_held || !report_untold(proxy))
		return;
	proxy->is_held = false;
	listen_to(proxy, true);
	for (uint32_t i = 0; i < proxy->limit_connections; i++)
		if (proxy->connections[i].state != STATE_FREE && !proxy->connections[i].is_opened)
			connection_ready(proxy, &proxy->connections[i]);
}

/* The dialer takes dials again. */
static void dial_queued(struct proxy *proxy)
{
	if (!proxy->is_peer_full)
		return;
	proxy->is_peer_full = false;
	for (uint32_t i = 0; i < proxy->limit_connections && !proxy->is_peer_full; i++)
		if (proxy->connections[i].state != STATE_FREE &&
		    proxy->connections[i].dial == DIAL_QUEUED)
			connection_dial(proxy, &proxy->connections[i]);
}

static void take_event(struct proxy *proxy, const struct epoll_event *event)
{
	struct connection *connection = connection_of_id(proxy, (uint32_t)(event->data.u64 >> 1));
	struct end *end;

	if (connection == NULL)
		return;
	end = event->data.u64 & 1 ? &connection->upstream : &connection->client;
	if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end->readable = true;
	if (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		end->writable = true;
	if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end->is_ending = true;
	if (event->events & (EPOLLHUP | EPOLLERR))
		end->is_gone = true;
	connection_step(proxy, connection);
}

static int take(struct proxy *proxy, const struct epoll_event *event)
{
	switch (event->data.u64) {
	case WATCH_CHANNEL:
		/* it has gone, and not only said its last */
		if (event->events & (EPOLLHUP | EPOLLERR))
			return -EPIPE;
		if (event->events & EPOLLOUT)
			unhold(proxy);
		return event->events & ~(uint32_t)EPOLLOUT ? take_messages(proxy, ROLE_CHANNEL) : 0;
	case WATCH_PEER:
		if (event->events & EPOLLOUT)
			dial_queued(proxy);
		return event->events & ~(uint32_t)EPOLLOUT ? take_messages(proxy, EGRESS_FD_PEER) :
							     0;
	case WATCH_UDP:
		lookup_datagrams(proxy);
		return 0;
	default:
		if (event->data.u64 < WATCH_LISTENER + proxy->listener_count)
			accept_some(proxy, proxy->listeners[event->data.u64 - WATCH_LISTENER]);
		else
			take_event(proxy, event);
		return 0;
	}
}

/* What a burst took is given back when it is over. */
static void rest(struct proxy *proxy)
{
	if (proxy->now_ns - proxy->rested_ns < SECOND_NS)
		return;
	proxy->rested_ns = proxy->now_ns;
	pool_rest(&proxy->relay.pool);
}

static void look_at_clock(struct proxy *proxy)
{
	struct moment moment = moment_now();

	proxy->now_ns = moment.now_ns;
	proxy->wall_s = moment.wall_s;
}

/* --- the end of the task */

/* It may go to an upstream, and has not gone there yet. */
static bool is_sending(const struct connection *connection)
{
	const struct end *client = &connection->client;

	if (connection->state == STATE_FREE || connection->state >= STATE_FLUSH ||
	    connection->state == STATE_LOOKUP || connection->is_refused)
		return false;
	if (!connection->is_opened && !connection_is_dialing(connection))
		return false;
	return stream_waiting(&connection->up) > 0 || chunk_length(connection->up.in) > 0 ||
	       (client->readable && !client->is_done && !client->is_lost);
}

static bool is_any_sending(const struct proxy *proxy)
{
	for (uint32_t i = 0; i < proxy->limit_connections; i++)
		if (is_sending(&proxy->connections[i]))
			return true;
	return false;
}

/* After a turn with so many events. */
static bool is_over(struct proxy *proxy, int events)
{
	if (proxy->now_ns - proxy->ending_ns >= ENDING_NS)
		return true;
	if (events > 0 || proxy->ready) {
		proxy->quiet_ns = proxy->now_ns;
		return false;
	}
	return proxy->now_ns - proxy->quiet_ns >= QUIET_NS || !is_any_sending(proxy);
}

/* The next look: at once, until a turn has shown that nothing happens. */
static int ending_ms(const struct proxy *proxy)
{
	return proxy->quiet_ns == proxy->now_ns ? 0 : (int)(QUIET_NS / MILLISECOND_NS / 10);
}

/* What it has to say it says now, however long the supervisor takes to hear it. */
static int say_last(struct proxy *proxy)
{
	int flags = fcntl(ROLE_CHANNEL, F_GETFL);

	if (flags < 0 || fcntl(ROLE_CHANNEL, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	report_last(proxy);
	return 0;
}

static int loop(struct proxy *proxy)
{
	struct epoll_event events[TURN_EVENTS];

	for (;;) {
		int count = epoll_wait(proxy->epoll_fd, events, TURN_EVENTS,
				       proxy->is_ending ? ending_ms(proxy) : timeout_ms(proxy));

		if (count < 0 && errno != EINTR)
			return -errno;
		look_at_clock(proxy);
		for (int i = 0; i < count; i++) {
			int result = take(proxy, &events[i]);

			if (result < 0)
				return result == -EPIPE ? 0 : result;
		}
		/* where memory was short and not the channel full, no event says that it is back */
		if (proxy->is_held && proxy->now_ns - proxy->held_ns >= SECOND_NS)
			unhold(proxy);
		expire_all(proxy);
		trim_heads(proxy);
		feed_starved(proxy);
		go_on(proxy);
		if (proxy->is_over_full)
			return -ENOBUFS;
		if (proxy->is_ending && is_over(proxy, count))
			return say_last(proxy);
		report_repeated(proxy);
		rest(proxy);
	}
}

/* --- the start */

static void *room(size_t count, size_t bytes)
{
	void *memory = mmap(NULL, count * bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int read_order(struct proxy *proxy, const unsigned char *config, size_t length)
{
	static struct arena arena; /* of the rules: for the process's life */
	struct error error = ERROR_NONE;

	if (length < sizeof(proxy->order))
		return -EBADMSG;
	memcpy(&proxy->order, config, sizeof(proxy->order));
	if (proxy->order.version != EGRESS_ORDER_VERSION ||
	    proxy->order.rules_bytes != length - sizeof(proxy->order))
		return -EBADMSG;
	return egress_decode(config + sizeof(proxy->order), proxy->order.rules_bytes, &arena,
			     &proxy->policy, &error);
}

static int make_room(struct proxy *proxy)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	if (files.rlim_cur < SHARED_FDS + 64)
		return -EMFILE;
	proxy->limit_connections = EGRESS_LIMIT_CONNECTIONS;
	if ((files.rlim_cur - SHARED_FDS) / 2 < proxy->limit_connections)
		proxy->limit_connections = (uint32_t)((files.rlim_cur - SHARED_FDS) / 2);
	proxy->connections = room(EGRESS_LIMIT_CONNECTIONS, sizeof(*proxy->connections));
	proxy->free = room(EGRESS_LIMIT_CONNECTIONS, sizeof(*proxy->free));
	proxy->usage = room(proxy->policy.rule_count + 1, sizeof(*proxy->usage));
	proxy->http = room(EGRESS_LIMIT_CONNECTIONS, sizeof(*proxy->http));
	proxy->names = room(1, sizeof(*proxy->names));
	proxy->untold = room(PROXY_LIMIT_UNTOLD, sizeof(*proxy->untold));
	if (!proxy->connections || !proxy->free || !proxy->usage || !proxy->http || !proxy->names ||
	    !proxy->untold)
		return -ENOMEM;
	if (getrandom(&proxy->names->key, sizeof(proxy->names->key), 0) < 0)
		return -errno;
	for (uint32_t i = proxy->limit_connections; i > 0; i--)
		proxy->free[proxy->free_count++] = i - 1;
	return 0;
}

static int watch_all(struct proxy *proxy)
{
	int result;

	proxy->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	proxy->spare_fd = dup(proxy->epoll_fd);
	if (proxy->epoll_fd < 0 || proxy->spare_fd < 0)
		return -errno;
	result = watch(proxy, ROLE_CHANNEL, EPOLLIN | EPOLLOUT | EPOLLET, WATCH_CHANNEL);
	if (result == 0)
		result = watch(proxy, EGRESS_FD_PEER, EPOLLIN | EPOLLOUT | EPOLLET, WATCH_PEER);
	if (result == 0)
		result = watch(proxy, EGRESS_FD_UDP, EPOLLIN, WATCH_UDP);
	if (result == 0)
		result = add_listener(proxy, EGRESS_FD_TCP);
	if (result == 0 && proxy->order.flags & EGRESS_ORDER_DOOR)
		result = add_listener(proxy, EGRESS_FD_DOOR);
	return result;
}

int proxy_run(const unsigned char *config, size_t length)
{
	static struct proxy proxy;
	int result = read_order(&proxy, config, length);

	if (result == 0)
		result = relay_make(&proxy.relay);
	if (result == 0)
		result = make_room(&proxy);
	if (result == 0)
		result = watch_all(&proxy);
	if (result == 0)
		result = message_send(ROLE_CHANNEL, EGRESS_READY, NULL, 0, NULL, 0);
	if (result < 0)
		return result;
	look_at_clock(&proxy);
	return loop(&proxy);
}
