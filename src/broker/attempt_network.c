/*
 * Attempts in a network that is the policy's: connections begin, and have to end in the box. What
 * an upstream would say is told apart from what the proxy says: that closes, or refuses in the
 * words of the protocol.
 */
#include "broker/attempt_internal.h"

#include "base/fd.h"
#include "kernel/netlink.h"
#include "policy/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
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

/* One question: a head of 12 bytes, a name, two numbers (RFC 1035, section 4.1). */
#define QUESTION_BYTES 64

/*
 * What became of a connection that was made: 0 when somebody answers as an upstream would, else
 * how it was ended. 403 is the proxy's word; an alert of TLS, too (RFC 8446, section 6).
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
	if (length == 0 || bytes[0] == 0x15 || strncmp(bytes, "HTTP/1.1 403 ", 13) == 0 ||
	    strncmp(bytes, "HTTP/1.0 403 ", 13) == 0)
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

int attempt_name(char *const *arguments)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char address[INET_ADDRSTRLEN] = "";
	int CLEANUP_FD fd = -1;
	int result;

	/* a name that is not given at all is refused as well */
	if (getaddrinfo(arguments[0], arguments[1], &hints, &found) != 0)
		return -ECONNREFUSED;
	(void)inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr, address,
			sizeof(address));
	freeaddrinfo(found);
	result = attempt_connect_to(address, arguments[1], SOCK_STREAM, &fd);
	return result < 0 ? result : say_request(fd, arguments[0]);
}

/* "x.invalid", type A, class IN. */
static size_t make_question(unsigned char bytes[static QUESTION_BYTES])
{
	static const unsigned char rest[] = { 1,   0,	0,   1,	  0,   0,   0,	 0, 0, 0, 1, 'x', 7,
					      'i', 'n', 'v', 'a', 'l', 'i', 'd', 0, 0, 1, 0, 1 };

	if (getrandom(bytes, 2, 0) != 2)
		return 0;
	memcpy(bytes + 2, rest, sizeof(rest));
	return 2 + sizeof(rest);
}

/* Whoever is asked: either no address, or one that is the box's own. */
static int judge_reply(const unsigned char *bytes, size_t length, size_t question)
{
	uint32_t address;

	if (length < question || !(bytes[2] & 0x80))
		return -EBADMSG;
	if (bytes[3] & 15 || (!bytes[6] && !bytes[7]))
		return 0;
	/* a pointer to the name, type, class, time to live, length, address */
	if (length < question + 16)
		return -ENOMSG;
	memcpy(&address, bytes + question + 12, sizeof(address));
	return (ntohl(address) & ~0u << (32 - PLACE_NAMES_V4_BITS)) == PLACE_NAMES_V4 ? 0 : -ENOMSG;
}

int attempt_nameserver(char *const *arguments)
{
	unsigned char question[QUESTION_BYTES], reply[512];
	size_t length = make_question(question);
	int CLEANUP_FD fd = -1;
	struct pollfd ready = { .events = POLLIN };
	ssize_t received;
	int result = attempt_connect_to(arguments[0], "53", SOCK_DGRAM, &fd);

	if (result < 0)
		return result;
	ready.fd = fd;
	if (!length || send(fd, question, length, 0) < 0)
		return -EBADMSG;
	if (poll(&ready, 1, ANSWER_MS) != 1)
		return -ETIMEDOUT;
	received = recv(fd, reply, sizeof(reply), 0);
	if (received < 0)
		return -errno;
	if (memcmp(reply, question, 2) != 0)
		return -EBADMSG;
	return judge_reply(reply, (size_t)received, length);
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
