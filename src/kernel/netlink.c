#include "kernel/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int netlink_open(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	return fd < 0 ? -errno : fd;
}

/* Room for so many bytes, zeroed up to the next multiple of 4; NULL: none is left. */
static unsigned char *take(struct netlink *netlink, size_t length)
{
	size_t whole = NLMSG_ALIGN(length);
	unsigned char *room = netlink->bytes + netlink->used;

	if (netlink->is_full || length > NETLINK_LIMIT_BYTES ||
	    whole > NETLINK_LIMIT_BYTES - netlink->used) {
		netlink->is_full = true;
		return NULL;
	}
	memset(room, 0, whole);
	netlink->used += whole;
	return room;
}

/* The message is as long as what was put into it. */
static void settle_length(struct netlink *netlink)
{
	uint32_t length = (uint32_t)(netlink->used - netlink->message);

	memcpy(netlink->bytes + netlink->message, &length, sizeof(length));
}

void netlink_begin(struct netlink *netlink, unsigned type, unsigned flags, const void *head,
		   size_t length)
{
	size_t message = netlink->used;
	struct nlmsghdr header = { .nlmsg_type = (uint16_t)type,
				   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
				   .nlmsg_seq = netlink->sequence + 1 };
	unsigned char *room = take(netlink, sizeof(header) + length);

	if (!room)
		return;
	netlink->message = message;
	netlink->sequence++;
	netlink->asked += flags & NLM_F_ACK ? 1 : 0;
	memcpy(room, &header, sizeof(header));
	memcpy(room + sizeof(header), head, length);
	settle_length(netlink);
}

void netlink_put(struct netlink *netlink, unsigned attribute, const void *bytes, size_t length)
{
	struct nlattr head = { .nla_len = (uint16_t)(sizeof(head) + length),
			       .nla_type = (uint16_t)attribute };
	unsigned char *room = take(netlink, sizeof(head) + length);

	if (!room)
		return;
	memcpy(room, &head, sizeof(head));
	memcpy(room + sizeof(head), bytes, length);
	settle_length(netlink);
}

void netlink_put_text(struct netlink *netlink, unsigned attribute, const char *text)
{
	netlink_put(netlink, attribute, text, strlen(text) + 1);
}

void netlink_put_u32_be(struct netlink *netlink, unsigned attribute, uint32_t value)
{
	uint32_t number = htonl(value);

	netlink_put(netlink, attribute, &number, sizeof(number));
}

size_t netlink_nest(struct netlink *netlink, unsigned attribute)
{
	size_t nest = netlink->used;

	netlink_put(netlink, attribute | NLA_F_NESTED, "", 0);
	return nest;
}

void netlink_nest_end(struct netlink *netlink, size_t nest)
{
	uint16_t length = (uint16_t)(netlink->used - nest);

	if (!netlink->is_full)
		memcpy(netlink->bytes + nest, &length, sizeof(length));
}

/* One packet of answers; returns the first error in it, and counts them. */
static int read_answers(int fd, int accepted, unsigned *answers)
{
	_Alignas(4) unsigned char bytes[NETLINK_LIMIT_BYTES];
	ssize_t received = recv(fd, bytes, sizeof(bytes), 0);
	size_t at = 0;

	if (received < 0)
		return errno == EINTR ? 0 : -errno;
	while ((size_t)received - at >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr header;
		struct nlmsgerr report;

		memcpy(&header, bytes + at, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > (size_t)received - at)
			return -EBADMSG;
		if (header.nlmsg_type == NLMSG_ERROR) {
			if (header.nlmsg_len < sizeof(header) + sizeof(report))
				return -EBADMSG;
			memcpy(&report, bytes + at + sizeof(header), sizeof(report));
			if (report.error < 0 && report.error != -accepted)
				return report.error;
			++*answers;
		}
		at += NLMSG_ALIGN(header.nlmsg_len);
		if (at > (size_t)received)
			break;
	}
	return 0;
}

int netlink_call(int fd, const struct netlink *netlink, int accepted)
{
	unsigned answers = 0;
	int result = 0;

	if (netlink->is_full)
		return -E2BIG;
	if (send(fd, netlink->bytes, netlink->used, 0) != (ssize_t)netlink->used)
		return -errno;
	while (result == 0 && answers < netlink->asked)
		result = read_answers(fd, accepted, &answers);
	return result;
}
