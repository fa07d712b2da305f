/*
 * Attempts in a network that is the policy's: connections begin, and have to end in the box. What
 * an upstream would say is told apart from what the proxy says: that closes, or refuses in the
 * words of the protocol.
 */
#include "broker/attempt_internal.h"

#include "base/fd.h"
#include "kernel/netlink.h"
#include "net/dns.h"
#include "policy/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first connection of a box starts its proxy; a busy machine takes its time. */
#define ANSWER_MS 5000

/*
 * What became of a connection that was made, on which a request in the clear was sent: 0 when
 * somebody answers, else how it was ended. The proxy's own 403 is no answer, others' are.
 */
static int hear_end(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char bytes[256] = "";
	ssize_t length;

	if (poll(&ready, 1, ANSWER_MS) != 1)
		return -ETIMEDOUT;
	length = recv(fd, bytes, sizeof(bytes) - 1, 0);
	if (length < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (length == 0 ||
	    (strncmp(bytes, "HTTP/1.1 403 ", 13) == 0 && strstr(bytes, "\r\nProxy-Status: bawn;")))
		return -ECONNRESET;
	return 0;
}

static int say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return -errno;
	return hear_end(fd);
}

static int say_request(int fd, const char *host)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	return say(fd, text);
}

/* Data in the first packet (tcp(7), MSG_FASTOPEN). */
static int open_fast(const char *address, const char *port)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct sockaddr_in there = { .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
	int CLEANUP_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || inet_pton(AF_INET, address, &there.sin_addr) != 1)
		return fd < 0 ? -errno : -EINVAL;
	if (sendto(fd, text, sizeof(text) - 1, MSG_FASTOPEN | MSG_NOSIGNAL,
		   (struct sockaddr *)&there, sizeof(there)) < 0)
		return -errno;
	return hear_end(fd);
}

int attempt_captured(char *const *arguments)
{
	int CLEANUP_FD fd = -1;
	int result;

	if (strcmp(arguments[2], "fast") == 0)
		return open_fast(arguments[0], arguments[1]);
	result = attempt_connect_to(arguments[0], arguments[1], SOCK_STREAM, &fd);
	return result < 0 ? result : say_request(fd, arguments[0]);
}

int attempt_door(char *const *arguments)
{
	int CLEANUP_FD fd = -1;
	char port[8], text[512];
	int result;

	(void)snprintf(port, sizeof(port), "%u", PLACE_DOOR_PORT);
	result = attempt_connect_to(PLACE_DOOR_TEXT, port, SOCK_STREAM, &fd);
	if (result < 0)
		return result;
	(void)snprintf(text, sizeof(text), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n",
		       arguments[0], arguments[1], arguments[0], arguments[1]);
	return say(fd, text);
}

/* The addresses that a name server has for a name, of version 4. */
static int look_up(const char *server, const char *name, struct dns_result *ret_result)
{
	unsigned char question[DNS_LIMIT_QUERY_BYTES], reply[DNS_LIMIT_UDP_BYTES];
	struct pollfd ready = { .events = POLLIN };
	int CLEANUP_FD fd = -1;
	struct host host;
	const char *why;
	uint16_t id;
	ssize_t length;
	int result = host_parse(name, strlen(name), &host, &why);

	if (result < 0)
		return result;
	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -EBADMSG;
	result = attempt_connect_to(server, "53", SOCK_DGRAM, &fd);
	if (result < 0)
		return result;
	ready.fd = fd;
	if (send(fd, question, dns_write_query(id, &host, DNS_A, question), 0) < 0)
		return -EBADMSG;
	if (poll(&ready, 1, ANSWER_MS) != 1)
		return -ETIMEDOUT;
	length = recv(fd, reply, sizeof(reply), 0);
	if (length < 0)
		return -errno;
	return dns_parse_answer(reply, (size_t)length, id, &host, DNS_A, ret_result) < 0 ?
		       -EBADMSG :
		       0;
}

int attempt_name(char *const *arguments)
{
	char address[ADDRESS_TEXT_BYTES];
	struct dns_result found;
	int CLEANUP_FD fd = -1;
	int result = look_up(PLACE_NAMESERVER_TEXT, arguments[0], &found);

	/* a name that is not given at all is refused as well */
	if (result < 0 || found.address_count == 0)
		return -ECONNREFUSED;
	address_print(&found.addresses[0], address);
	result = attempt_connect_to(address, arguments[1], SOCK_STREAM, &fd);
	return result < 0 ? result : say_request(fd, arguments[0]);
}

/* Whoever is asked: either no address, or one that is the box's own. */
int attempt_nameserver(char *const *arguments)
{
	const struct address ours = {
		.family = ADDRESS_V4, .bytes = { PLACE_NAMES_V4 >> 24, PLACE_NAMES_V4 >> 16 & 0xff }
	};
	struct dns_result found;
	int result = look_up(arguments[0], "x.invalid", &found);

	if (result < 0)
		return result;
	if (found.address_count == 0)
		return 0;
	return address_within(&found.addresses[0], &ours, PLACE_NAMES_V4_BITS) ? 0 : -ENOMSG;
}

static int change_network(char *const *arguments)
{
	const struct ifaddrmsg head = { .ifa_family = AF_INET,
					.ifa_prefixlen = 32,
					.ifa_index = 1 };
	const uint32_t address = htonl(0xC0000209u); /* 192.0.2.9 */
	struct netlink netlink = { .used = 0 };
	int CLEANUP_FD fd = -1;

	/* root of a namespace of its own has no right over the network of the one around it */
	if (strcmp(arguments[0], "nested") == 0 && unshare(CLONE_NEWUSER) < 0)
		return -EBADMSG;
	fd = netlink_open(NETLINK_ROUTE);
	if (fd < 0)
		return fd;
	netlink_begin(&netlink, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, &head, sizeof(head));
	netlink_put(&netlink, IFA_LOCAL, &address, sizeof(address));
	return netlink_call(fd, &netlink, 0);
}

int attempt_change_network(char *const *arguments)
{
	return attempt_in_child(change_network, arguments);
}
