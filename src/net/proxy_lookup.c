/*
 * Names: every question is answered here, and none goes anywhere. A name that could be allowed gets
 * addresses of the box's own (names.h), and so does one that is denied: its connection is refused
 * in words, where "no such name" would be taken for a fault and tried again. That such a
 * name was asked for is on record, since a name can carry what a task knows.
 */
#include "net/dns.h"
#include "net/proxy_internal.h"
#include "policy/place.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define TURN_DATAGRAMS 64
/* Addresses stay a name's for the task's life; programs that ask again cost a datagram. */
#define TTL_S 60u
/* What may follow on a connection over TCP. */
#define FRAME_BYTES (2 + DNS_LIMIT_QUERY_BYTES)

struct asker {
	struct address address;
	uint16_t port;
};

static bool is_about(const struct egress_rule *rule, const struct host *host)
{
	size_t length = strlen(host->name), below = strlen(rule->name);

	if (rule->kind == EGRESS_EXACT)
		return strcmp(rule->name, host->name) == 0;
	if (rule->kind == EGRESS_BELOW)
		return length > below + 1 && host->name[length - below - 1] == '.' &&
		       strcmp(host->name + length - below, rule->name) == 0;
	return rule->kind == EGRESS_ANY;
}

/* Whether a rule could open it, on any port; what decided that none does otherwise. */
static bool is_open(const struct proxy *proxy, const struct host *host,
		    struct egress_answer *ret_answer)
{
	struct egress_question question = { .host = host, .wall_s = proxy->wall_s };

	*ret_answer = (struct egress_answer){ .verdict = EGRESS_DENY };
	for (size_t i = 0; i < proxy->policy.rule_count; i++) {
		const struct egress_rule *rule = &proxy->policy.rules[i];

		if (rule->verdict == EGRESS_DENY || !is_about(rule, host))
			continue;
		question.port = rule->ports[0].first;
		egress_decide(&proxy->policy, &question, ret_answer);
		if (ret_answer->verdict != EGRESS_DENY)
			return true;
	}
	return false;
}

/*
 * A name that was not asked for before. Denied connections are told when they come; here only that
 * a name was asked for which no rule could open, and that there is no room for another one. Of
 * those that no rule opens there is no end: beyond their room they are counted.
 */
static int give_new(struct proxy *proxy, const struct host *host, const struct asker *asker,
		    uint32_t *ret_index)
{
	static const struct host any = { .kind = HOST_NAME };
	struct egress_answer answer;
	int result;

	if (is_open(proxy, host, &answer)) {
		result = names_give(proxy->names, host->name, ret_index);
		if (result < 0)
			report_lookup(proxy, host, &answer, &asker->address, asker->port,
				      "the task has asked for more names than get an address");
		return result;
	}
	result = names_give_closed(proxy->names, host->name, ret_index);
	if (result < 0)
		report_lookup(proxy, &any, &(struct egress_answer){ .verdict = EGRESS_DENY },
			      &asker->address, asker->port,
			      "asked for more names that no rule opens than get an address");
	else
		report_lookup(proxy, host, &answer, &asker->address, asker->port,
			      "asked for a name that no rule opens");
	return result;
}

/* The length of the answer; 0: nothing is to be said. */
static size_t answer(struct proxy *proxy, const unsigned char *bytes, size_t length,
		     const struct asker *asker, unsigned char room[static DNS_LIMIT_ANSWER_BYTES])
{
	struct address addresses[2];
	struct dns_query query;
	uint32_t index;
	struct address literal;

	if (dns_parse_query(bytes, length, &query) < 0)
		return 0;
	if (query.code != DNS_NOERROR)
		return dns_write_answer(&query, query.code, NULL, 0, TTL_S, room);
	if (!query.has_host || query.host.kind != HOST_NAME ||
	    address_parse(query.host.name, strlen(query.host.name), &literal) == 0)
		return dns_write_answer(&query, DNS_NXDOMAIN, NULL, 0, TTL_S, room);
	if (names_find(proxy->names, query.host.name, &index) < 0 &&
	    give_new(proxy, &query.host, asker, &index) < 0)
		return dns_write_answer(&query, DNS_REFUSED, NULL, 0, TTL_S, room);
	names_address(index, ADDRESS_V4, &addresses[0]);
	names_address(index, ADDRESS_V6, &addresses[1]);
	return dns_write_answer(&query, DNS_NOERROR, addresses, 2, TTL_S, room);
}

/* --- datagrams: answered from the address that was asked */

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static void asker_of(const struct sockaddr_in6 *from, struct asker *ret_asker)
{
	*ret_asker = (struct asker){ .address.family = ADDRESS_V6, .port = ntohs(from->sin6_port) };
	memcpy(ret_asker->address.bytes, &from->sin6_addr, 16);
	if (IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
		ret_asker->address = (struct address){ .family = ADDRESS_V4 };
		memcpy(ret_asker->address.bytes, from->sin6_addr.s6_addr + 12, 4);
	}
}

/* The address that the datagram was for is where the answer has to come from. */
static void keep_place(struct msghdr *message, union control *control)
{
	struct in6_pktinfo v6 = { 0 };
	struct in_pktinfo v4;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(at), sizeof(v6));
		} else if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(at), sizeof(v4));
			v6.ipi6_addr.s6_addr[10] = v6.ipi6_addr.s6_addr[11] = 0xff;
			memcpy(v6.ipi6_addr.s6_addr + 12, &v4.ipi_addr, 4);
		}
	}
	v6.ipi6_ifindex = 0;
	memset(control, 0, sizeof(*control));
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(sizeof(v6));
	control->header = (struct cmsghdr){ .cmsg_level = IPPROTO_IPV6,
					    .cmsg_type = IPV6_PKTINFO,
					    .cmsg_len = CMSG_LEN(sizeof(v6)) };
	memcpy(CMSG_DATA(&control->header), &v6, sizeof(v6));
}

/* False when none is left. */
static bool one_datagram(struct proxy *proxy)
{
	unsigned char bytes[DNS_LIMIT_QUERY_BYTES + 1], room[DNS_LIMIT_ANSWER_BYTES];
	struct sockaddr_in6 from = { 0 };
	union control control;
	struct iovec iovec = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = { .msg_name = &from,
				  .msg_namelen = sizeof(from),
				  .msg_iov = &iovec,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t count = recvmsg(EGRESS_FD_UDP, &message, MSG_DONTWAIT);
	struct asker asker;
	size_t length;

	if (count < 0)
		return errno == EINTR;
	if (message.msg_flags & MSG_TRUNC || from.sin6_family != AF_INET6)
		return true;
	asker_of(&from, &asker);
	length = answer(proxy, bytes, (size_t)count, &asker, room);
	if (length == 0)
		return true;
	keep_place(&message, &control);
	message.msg_flags = 0;
	iovec = (struct iovec){ .iov_base = room, .iov_len = length };
	/* who asks and does not read its answers loses them */
	(void)sendmsg(EGRESS_FD_UDP, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

void lookup_datagrams(struct proxy *proxy)
{
	for (int i = 0; i < TURN_DATAGRAMS && !proxy->is_held; i++)
		if (!one_datagram(proxy))
			return;
}

/* --- over TCP: the same in frames */

static bool one_frame(struct proxy *proxy, struct connection *connection, size_t frame)
{
	unsigned char room[2 + DNS_LIMIT_ANSWER_BYTES];
	const struct asker asker = { connection->peer, connection->peer_port };
	struct chunk *in = connection->up.in;
	size_t length = answer(proxy, in->bytes + in->start + 2, frame - 2, &asker, room + 2);

	stream_skip(&proxy->relay, &connection->up, frame);
	if (length == 0)
		return false;
	room[0] = (unsigned char)(length >> 8);
	room[1] = (unsigned char)length;
	return relay_put(&proxy->relay, &connection->down, room, 2 + length);
}

static enum step end_lookup(struct proxy *proxy, struct connection *connection)
{
	connection_close(proxy, connection);
	return STEP_END;
}

enum step step_lookup(struct proxy *proxy, struct connection *connection)
{
	for (int turn = 0; turn < TURN_DATAGRAMS; turn++) {
		struct chunk *in;
		size_t frame;
		int count;

		/* a name may be a record */
		if (proxy->is_held)
			return STEP_WAIT;
		switch (relay_flush(&proxy->relay, &connection->down)) {
		case RELAY_RAN:
			break;
		case RELAY_LOST:
			connection_close(proxy, connection);
			return STEP_END;
		case RELAY_WAIT:
		case RELAY_AGAIN:
		case RELAY_ENDED:
			return STEP_WAIT;
		}
		count = relay_fill(&proxy->relay, &connection->up);
		if (count == -ENOMEM || !relay_has_room(&proxy->relay, &connection->down))
			return connection_starve(proxy, connection);
		if (count < 0)
			return end_lookup(proxy, connection);
		in = connection->up.in;
		frame = in ? dns_frame(in->bytes + in->start, chunk_length(in)) : 0;
		if (frame == 0) {
			if (connection->client.is_done || chunk_length(in) > FRAME_BYTES)
				return end_lookup(proxy, connection);
			connection_wait(proxy, connection, DEADLINE_HEAD);
			return STEP_WAIT;
		}
		if (frame < 2 || frame > FRAME_BYTES || !one_frame(proxy, connection, frame))
			return end_lookup(proxy, connection);
	}
	return STEP_AGAIN;
}
