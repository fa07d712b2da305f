/* The listeners of the box: what waits at them becomes connections. */
#include "net/proxy_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of one listener before others have their turn. */
#define TURN_ACCEPTS 64

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
static bool refuse_one(struct proxy *proxy, int listen_fd)
{
	int fd;

	fd_close(&proxy->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse_accepted(proxy, fd);
	proxy->spare_fd = dup(proxy->epoll_fd);
	return fd >= 0;
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

void listener_accept(struct proxy *proxy, int listen_fd)
{
	for (int i = 0; i < TURN_ACCEPTS && !proxy->is_held; i++) {
		struct sockaddr_storage peer = { 0 };
		socklen_t length = sizeof(peer);
		int fd = accept4(listen_fd, (struct sockaddr *)&peer, &length,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			proxy->has_accepted = true;
			take_in(proxy, fd, &peer);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS)
			proxy->has_accepted |= refuse_one(proxy, listen_fd);
		else if (errno == EAGAIN)
			return;
		/* others are of the one connection that was lost meanwhile: accept(2) */
	}
}

int listener_add(struct proxy *proxy, int fd)
{
	if (proxy->listener_count == PROXY_LIMIT_LISTENERS)
		return -ENOBUFS;
	/* what is accepted has it from the listener (tcp(7)) */
	proxy_tune(fd);
	proxy->listeners[proxy->listener_count] = fd;
	return proxy_watch(proxy, fd, proxy->is_held ? 0 : EPOLLIN,
			   WATCH_LISTENER + proxy->listener_count++);
}

void listener_switch(struct proxy *proxy, bool is_on)
{
	struct epoll_event event = { .events = is_on ? EPOLLIN : 0, .data.u64 = WATCH_UDP };

	(void)epoll_ctl(proxy->epoll_fd, EPOLL_CTL_MOD, EGRESS_FD_UDP, &event);
	for (uint32_t i = 0; i < proxy->listener_count; i++) {
		event.data.u64 = WATCH_LISTENER + i;
		(void)epoll_ctl(proxy->epoll_fd, EPOLL_CTL_MOD, proxy->listeners[i], &event);
	}
}
