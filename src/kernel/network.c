#include "kernel/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A supervisor that is busy elsewhere must not refuse connections at once. */
#define BACKLOG 128

int network_loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result = 0;

	if (fd < 0)
		return -errno;
	request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		result = -errno;
	(void)close(fd);
	return result;
}

int network_listener(uint32_t family, uint32_t type, uint32_t port, int *ret_fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { 0 };
	socklen_t length;
	int fd, result = 0;

	if (family == AF_INET) {
		address.v4 = (struct sockaddr_in){ .sin_family = AF_INET,
						   .sin_port = htons((uint16_t)port),
						   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		length = sizeof(address.v4);
	} else {
		address.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						    .sin6_port = htons((uint16_t)port),
						    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		length = sizeof(address.v6);
	}
	fd = socket((int)family, (int)type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, &address.any, length) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		result = -errno;
	if (result < 0)
		(void)close(fd);
	else
		*ret_fd = fd;
	return result;
}
