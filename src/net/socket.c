#include "net/socket.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

union socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill(union socket_address *out, const struct address *address, uint16_t port)
{
	memset(out, 0, sizeof(*out));
	if (address->family == ADDRESS_V4) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		memcpy(&out->v4.sin_addr, address->bytes, sizeof(out->v4.sin_addr));
		return sizeof(out->v4);
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(port);
	memcpy(&out->v6.sin6_addr, address->bytes, sizeof(out->v6.sin6_addr));
	return sizeof(out->v6);
}

int socket_connect(int type, const struct address *address, uint16_t port)
{
	union socket_address to;
	socklen_t length = fill(&to, address, port);
	int CLEANUP_FD fd = socket(to.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, &to.any, length) < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

int socket_error(int fd)
{
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return -errno;
	return -error;
}

int socket_settled(int fd, const struct address *address, uint16_t port)
{
	union socket_address to;
	socklen_t length = fill(&to, address, port);

	if (connect(fd, &to.any, length) == 0 || errno == EISCONN)
		return 0;
	return errno == EALREADY ? -EINPROGRESS : -errno;
}

static int control(int epoll_fd, int operation, int fd, enum socket_event event, uint64_t data)
{
	struct epoll_event wanted = { .events = event == SOCKET_READ ? EPOLLIN : EPOLLOUT,
				      .data.u64 = data };

	return epoll_ctl(epoll_fd, operation, fd, &wanted) < 0 ? -errno : 0;
}

int socket_watch(int epoll_fd, int fd, enum socket_event event, uint64_t data)
{
	return control(epoll_fd, EPOLL_CTL_ADD, fd, event, data);
}

int socket_rewatch(int epoll_fd, int fd, enum socket_event event, uint64_t data)
{
	return control(epoll_fd, EPOLL_CTL_MOD, fd, event, data);
}

int socket_unwatch(int epoll_fd, int fd)
{
	return epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0 ? -errno : 0;
}
