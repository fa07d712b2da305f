/* The start of bawn-proxy and its loop. What there is and what becomes of it: proxy_internal.h. */
#include "net/proxy.h"

#include "base/arena.h"
#include "base/error.h"
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

/* A connection has two descriptors; what all share: channels, listeners. */
#define SHARED_FDS (PROXY_LIMIT_LISTENERS + 32)

/* Before expiries have their turn. */
#define TURN_EVENTS 128

void proxy_tune(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
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

void proxy_hold(struct proxy *proxy)
{
	if (!proxy->is_held)
		listener_switch(proxy, false);
	proxy->is_held = true;
	proxy->held_ns = proxy->now_ns;
}

/* The supervisor takes records again: what waited for that goes on. */
static void unhold(struct proxy *proxy)
{
	if (!proxy->is_held || !report_untold(proxy))
		return;
	proxy->is_held = false;
	listener_switch(proxy, true);
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
	if (event->events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end->readable = true;
	if (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		end->writable = true;
	if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end->is_ending = true;
	if (event->events & EPOLLPRI)
		end->is_marked = true;
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
		return event->events & ~(uint32_t)EPOLLOUT ?
			       proxy_take_messages(proxy, ROLE_CHANNEL) :
			       0;
	case WATCH_PEER:
		if (event->events & EPOLLOUT)
			dial_queued(proxy);
		return event->events & ~(uint32_t)EPOLLOUT ?
			       proxy_take_messages(proxy, EGRESS_FD_PEER) :
			       0;
	case WATCH_UDP:
		lookup_datagrams(proxy);
		return 0;
	default:
		if (event->data.u64 < WATCH_LISTENER + proxy->listener_count)
			listener_accept(proxy, proxy->listeners[event->data.u64 - WATCH_LISTENER]);
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
	relay_rest(&proxy->relay);
}

static void look_at_clock(struct proxy *proxy)
{
	struct moment moment = moment_now();

	proxy->now_ns = moment.now_ns;
	proxy->wall_s = moment.wall_s;
	proxy->wall_part_ns = moment.wall_part_ns;
}

static int timeout_ms(const struct proxy *proxy)
{
	if (proxy->is_ending)
		return ending_ms(proxy);
	return proxy->mark && !proxy->is_held ? 0 : deadline_timeout_ms(proxy);
}

static int loop(struct proxy *proxy)
{
	struct epoll_event events[TURN_EVENTS];

	for (;;) {
		int count = epoll_wait(proxy->epoll_fd, events, TURN_EVENTS, timeout_ms(proxy));

		if (count < 0 && errno != EINTR)
			return -errno;
		look_at_clock(proxy);
		dates_look(proxy);
		proxy->has_accepted = false;
		for (int i = 0; i < count; i++) {
			int result = take(proxy, &events[i]);

			if (result < 0) {
				/* what ended in this turn did so all the same */
				(void)report_untold(proxy);
				return result == -EPIPE ? 0 : result;
			}
		}
		/* where memory was short and not the channel full, no event says that it is back */
		if (proxy->is_held && proxy->now_ns - proxy->held_ns >= SECOND_NS)
			unhold(proxy);
		deadline_expire_all(proxy);
		deadline_trim_heads(proxy);
		feed_starved(proxy);
		go_on(proxy);
		if (proxy->is_over_full)
			return -ENOBUFS;
		if (proxy->is_ending && ending_is_over(proxy, count != 0))
			return ending_say_last(proxy);
		report_repeated(proxy);
		report_mark(proxy, count != 0);
		if (!proxy->is_held)
			(void)report_untold(proxy);
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

int proxy_watch(struct proxy *proxy, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_all(struct proxy *proxy)
{
	int result;

	proxy->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	proxy->spare_fd = dup(proxy->epoll_fd);
	if (proxy->epoll_fd < 0 || proxy->spare_fd < 0)
		return -errno;
	result = proxy_watch(proxy, ROLE_CHANNEL, EPOLLIN | EPOLLOUT | EPOLLET, WATCH_CHANNEL);
	if (result == 0)
		result = proxy_watch(proxy, EGRESS_FD_PEER, EPOLLIN | EPOLLOUT | EPOLLET,
				     WATCH_PEER);
	if (result == 0)
		result = proxy_watch(proxy, EGRESS_FD_UDP, EPOLLIN, WATCH_UDP);
	if (result == 0)
		result = listener_add(proxy, EGRESS_FD_TCP);
	if (result == 0 && proxy->order.flags & EGRESS_ORDER_DOOR)
		result = listener_add(proxy, EGRESS_FD_DOOR);
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
	dates_begin(&proxy);
	return loop(&proxy);
}
