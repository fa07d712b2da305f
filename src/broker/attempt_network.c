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

/* The first connection of a box starts its proxy, too. */
#define ANSWER_MS ATTEMPT_PATIENCE_MS
/* A datagram may be lost, where its receiver has too many: it is sent again. */
#define DATAGRAM_MS 1500
#define DATAGRAM_TRIES 5

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

struct look_up {
	struct host host;
	uint16_t id;
	unsigned char question[2 + DNS_LIMIT_QUERY_BYTES]; /* its length, as over TCP, before it */
	size_t length;					   /* without that */
};

static int ask_by_datagram(const char *server, const struct look_up *look,
			   unsigned char reply[static DNS_LIMIT_UDP_BYTES], size_t *ret_length)
{
	struct pollfd ready = { .events = POLLIN };
	int CLEANUP_FD fd = -1;
	ssize_t length;
	int result = attempt_connect_to(server, "53", SOCK_DGRAM, &fd);

	if (result < 0)
		return result;
	ready.fd = fd;
	for (unsigned i = 0; i < DATAGRAM_TRIES; i++) {
		if (send(fd, look->question + 2, look->length, 0) < 0)
			return -EBADMSG;
		if (poll(&ready, 1, DATAGRAM_MS) != 1)
			continue;
		length = recv(fd, reply, DNS_LIMIT_UDP_BYTES, 0);
		if (length < 0)
			return -errno;
		*ret_length = (size_t)length;
		return 0;
	}
	return -ETIMEDOUT;
}

static int ask_by_stream(const char *server, const struct look_up *look,
			 unsigned char reply[static DNS_LIMIT_UDP_BYTES], size_t *ret_length)
{
	unsigned char frame[2 + DNS_LIMIT_UDP_BYTES];
	struct pollfd ready = { .events = POLLIN };
	int CLEANUP_FD fd = -1;
	size_t have = 0, whole;
	int result = attempt_connect_to(server, "53", SOCK_STREAM, &fd);

	if (result < 0)
		return result;
	ready.fd = fd;
	if (send(fd, look->question, 2 + look->length, MSG_NOSIGNAL) < 0)
		return -errno;
	do {
		ssize_t length;

		if (poll(&ready, 1, ANSWER_MS) != 1)
			return -ETIMEDOUT;
		length = recv(fd, frame + have, sizeof(frame) - have, 0);
		if (length <= 0)
			return length < 0 ? -errno : -ECONNRESET;
		have += (size_t)length;
		whole = dns_frame(frame, have);
	} while (!whole && have < sizeof(frame));
	if (!whole)
		return -EBADMSG;
	memcpy(reply, frame + 2, whole - 2);
	*ret_length = whole - 2;
	return 0;
}

/* The addresses that a name server has for a name, of version 4. */
static int look_up(const char *server, const char *name, int type, struct dns_result *ret_result)
{
	unsigned char reply[DNS_LIMIT_UDP_BYTES];
	struct look_up look;
	const char *why;
	size_t length = 0;
	int result = host_parse(name, strlen(name), &look.host, &why);

	if (result < 0)
		return result;
	if (getrandom(&look.id, sizeof(look.id), 0) != sizeof(look.id))
		return -EBADMSG;
	look.length = dns_write_query(look.id, &look.host, DNS_A, look.question + 2);
	look.question[0] = (unsigned char)(look.length >> 8);
	look.question[1] = (unsigned char)look.length;
	result = type == SOCK_DGRAM ? ask_by_datagram(server, &look, reply, &length) :
				      ask_by_stream(server, &look, reply, &length);
	if (result < 0)
		return result;
	return dns_parse_answer(reply, length, look.id, &look.host, DNS_A, ret_result) < 0 ?
		       -EBADMSG :
		       0;
}

int attempt_name(char *const *arguments)
{
	char address[ADDRESS_TEXT_BYTES];
	struct dns_result found;
	int CLEANUP_FD fd = -1;
	int result = look_up(PLACE_NAMESERVER_TEXT, arguments[0], SOCK_DGRAM, &found);

	/* a name that is not given at all is refused as well */
	if (result < 0 || found.address_count == 0)
		return -ECONNREFUSED;
	address_print(&found.addresses[0], address);
	result = attempt_connect_to(address, arguments[1], SOCK_STREAM, &fd);
	return result < 0 ? result : say_request(fd, arguments[0]);
}

/* Whoever is asked: either no address, or one that is the box's own. */
static int is_ours(const char *server, int type)
{
	const struct address ours = {
		.family = ADDRESS_V4, .bytes = { PLACE_NAMES_V4 >> 24, PLACE_NAMES_V4 >> 16 & 0xff }
	};
	struct dns_result found;
	int result = look_up(server, "x.invalid", type, &found);

	if (result < 0)
		return result;
	if (found.address_count == 0)
		return 0;
	return address_within(&found.addresses[0], &ours, PLACE_NAMES_V4_BITS) ? 0 : -ENOMSG;
}

int attempt_nameserver(char *const *arguments)
{
	return is_ours(arguments[0], SOCK_DGRAM);
}

int attempt_nameserver_stream(char *const *arguments)
{
	return is_ours(arguments[0], SOCK_STREAM);
}

/* All that comes until the end, or as much as there is room for; a text. */
static int hear_all(int fd, char *text, size_t room)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t have = 0;

	while (have < room - 1) {
		ssize_t length;

		if (poll(&ready, 1, ANSWER_MS) != 1)
			return -ETIMEDOUT;
		length = recv(fd, text + have, room - 1 - have, 0);
		if (length < 0)
			return -errno;
		if (length == 0)
			break;
		have += (size_t)length;
	}
	text[have] = '\0';
	return 0;
}

/*
 * Only the proxy's word about just that is a refusal: any other end may come from the address, or
 * from the way there.
 */
int attempt_rebound(char *const *arguments)
{
	char address[ADDRESS_TEXT_BYTES], text[2048];
	struct dns_result found;
	int CLEANUP_FD fd = -1;
	int result = look_up(PLACE_NAMESERVER_TEXT, arguments[1], SOCK_DGRAM, &found);

	if (result < 0 || found.address_count == 0)
		return -EBADMSG;
	address_print(&found.addresses[0], address);
	result = attempt_connect_to(address, "80", SOCK_STREAM, &fd);
	if (result < 0)
		return -EBADMSG;
	(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", arguments[1]);
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return -EBADMSG;
	result = hear_all(fd, text, sizeof(text));
	if (result < 0)
		return -ENOMSG;
	return strncmp(text, "HTTP/1.1 403 ", 13) == 0 && strstr(text, "\r\nProxy-Status: bawn;") &&
			       strstr(text, "is not of the public network") ?
		       -ECONNREFUSED :
		       -ENOMSG;
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
