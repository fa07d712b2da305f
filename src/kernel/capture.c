#include "kernel/capture.h"

#include "base/fd.h"
#include "kernel/netlink.h"
#include "policy/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* <linux/in.h> and <linux/in6.h>, which cannot stand beside those of the C library */
#define IPV6_TRANSPARENT_ 75
#define IPV6_FREEBIND_ 78

/* <linux/if_link.h> of Linux 6.3 */
#define IFLA_GSO_IPV4_MAX_SIZE_ 63
/* GSO_MAX_SIZE (include/linux/netdevice.h): what a loopback has at the most */
#define PACKET_BYTES (8u * 65535)

/* The first interface of every network namespace (net/core/net_namespace.c). */
#define LOOPBACK_INDEX 1u
/*
 * Connections that wait until they are accepted: as many as a task may have at once (net/edge.h),
 * so that a burst is not taken for a network that drops.
 */
#define BACKLOG 4096

#define TABLE "bawn"
#define CHAIN "capture"
/* NF_IP_PRI_MANGLE, where tproxy belongs */
#define PRIORITY ((uint32_t)-150)

static const uint8_t box_v6[16] = PLACE_BOX_V6;

static void put_address(struct netlink *netlink, uint8_t family, const void *bytes, size_t length)
{
	const struct ifaddrmsg head = { .ifa_family = family,
					.ifa_prefixlen = (uint8_t)(length * 8),
					.ifa_scope = RT_SCOPE_UNIVERSE,
					.ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT,
					.ifa_index = LOOPBACK_INDEX };

	netlink_begin(netlink, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head,
		      sizeof(head));
	netlink_put(netlink, IFA_LOCAL, bytes, length);
	netlink_put(netlink, IFA_ADDRESS, bytes, length);
}

/* Without a source a program that connects from port p to port p would connect to itself. */
static void put_route(struct netlink *netlink, uint8_t family, const void *source, size_t length)
{
	const struct rtmsg head = { .rtm_family = family,
				    .rtm_table = RT_TABLE_LOCAL,
				    .rtm_protocol = RTPROT_BOOT,
				    .rtm_scope = family == AF_INET ? RT_SCOPE_HOST :
								     RT_SCOPE_UNIVERSE,
				    .rtm_type = RTN_LOCAL };
	const uint32_t index = LOOPBACK_INDEX;

	netlink_begin(netlink, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head,
		      sizeof(head));
	netlink_put(netlink, RTA_OIF, &index, sizeof(index));
	netlink_put(netlink, RTA_PREFSRC, source, length);
}

/*
 * What a body is sent in, within the box: with 512 KiB instead of 64 at a time a large one takes
 * less of everybody's time. Where the kernel has no such thing (Linux before 6.3) all is as ever.
 */
static void widen(int fd)
{
	const struct ifinfomsg head = { .ifi_index = LOOPBACK_INDEX };
	const uint32_t bytes = PACKET_BYTES;
	struct netlink netlink = { .used = 0 };

	netlink_begin(&netlink, RTM_NEWLINK, NLM_F_ACK, &head, sizeof(head));
	netlink_put(&netlink, IFLA_GSO_MAX_SIZE, &bytes, sizeof(bytes));
	netlink_put(&netlink, IFLA_GSO_IPV4_MAX_SIZE_, &bytes, sizeof(bytes));
	(void)netlink_call(fd, &netlink, 0);
}

static int make_local(int fd, uint8_t family, const void *source, size_t length)
{
	struct netlink netlink = { .used = 0 };

	put_address(&netlink, family, source, length);
	put_route(&netlink, family, source, length);
	return netlink_call(fd, &netlink, 0);
}

int capture_routes(bool *ret_v6)
{
	const uint32_t box_v4 = htonl(PLACE_BOX_V4);
	int CLEANUP_FD fd = netlink_open(NETLINK_ROUTE);
	int result = fd;

	if (fd >= 0)
		result = make_local(fd, AF_INET, &box_v4, sizeof(box_v4));
	if (result < 0)
		return result;
	/* a host that has switched version 6 off: then no program in the box reaches it either */
	*ret_v6 = make_local(fd, AF_INET6, box_v6, sizeof(box_v6)) == 0;
	widen(fd);
	return 0;
}

static int write_setting(int proc_fd, const char *path, const char *value)
{
	int CLEANUP_FD fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int capture_refuse_each(int proc_fd)
{
	/* kernel: Documentation/networking/ip-sysctl.rst: types of messages that are limited */
	int result = write_setting(proc_fd, "sys/net/ipv4/icmp_ratemask", "0");
	int v6 = write_setting(proc_fd, "sys/net/ipv6/icmp/ratemask", "\n");

	if (result == 0 && v6 != -ENOENT)
		result = v6;
	return result;
}

/* One expression of a rule, up to end_expression(). */
struct expression {
	size_t element, data;
};

static struct expression begin_expression(struct netlink *netlink, const char *name)
{
	struct expression expression = { .element = netlink_nest(netlink, NFTA_LIST_ELEM) };

	netlink_put_text(netlink, NFTA_EXPR_NAME, name);
	expression.data = netlink_nest(netlink, NFTA_EXPR_DATA);
	return expression;
}

static void end_expression(struct netlink *netlink, struct expression expression)
{
	netlink_nest_end(netlink, expression.data);
	netlink_nest_end(netlink, expression.element);
}

static void put_meta(struct netlink *netlink, uint32_t key)
{
	struct expression expression = begin_expression(netlink, "meta");

	netlink_put_u32_be(netlink, NFTA_META_DREG, NFT_REG_1);
	netlink_put_u32_be(netlink, NFTA_META_KEY, key);
	end_expression(netlink, expression);
}

static void put_payload(struct netlink *netlink, uint32_t base, uint32_t offset, uint32_t length)
{
	struct expression expression = begin_expression(netlink, "payload");

	netlink_put_u32_be(netlink, NFTA_PAYLOAD_DREG, NFT_REG_1);
	netlink_put_u32_be(netlink, NFTA_PAYLOAD_BASE, base);
	netlink_put_u32_be(netlink, NFTA_PAYLOAD_OFFSET, offset);
	netlink_put_u32_be(netlink, NFTA_PAYLOAD_LEN, length);
	end_expression(netlink, expression);
}

static void put_equals(struct netlink *netlink, const void *bytes, size_t length)
{
	struct expression expression = begin_expression(netlink, "cmp");
	size_t data;

	netlink_put_u32_be(netlink, NFTA_CMP_SREG, NFT_REG_1);
	netlink_put_u32_be(netlink, NFTA_CMP_OP, NFT_CMP_EQ);
	data = netlink_nest(netlink, NFTA_CMP_DATA);
	netlink_put(netlink, NFTA_DATA_VALUE, bytes, length);
	netlink_nest_end(netlink, data);
	end_expression(netlink, expression);
}

static void put_accept(struct netlink *netlink)
{
	struct expression expression = begin_expression(netlink, "immediate");
	size_t data, verdict;

	netlink_put_u32_be(netlink, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = netlink_nest(netlink, NFTA_IMMEDIATE_DATA);
	verdict = netlink_nest(netlink, NFTA_DATA_VERDICT);
	netlink_put_u32_be(netlink, NFTA_VERDICT_CODE, NF_ACCEPT);
	netlink_nest_end(netlink, verdict);
	netlink_nest_end(netlink, data);
	end_expression(netlink, expression);
}

/* tproxy to the port, at the address of the interface that it came by: the loopback's */
static void put_tproxy(struct netlink *netlink, uint16_t port)
{
	const uint16_t number = htons(port);
	struct expression expression = begin_expression(netlink, "immediate");
	size_t data;

	netlink_put_u32_be(netlink, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	data = netlink_nest(netlink, NFTA_IMMEDIATE_DATA);
	netlink_put(netlink, NFTA_DATA_VALUE, &number, sizeof(number));
	netlink_nest_end(netlink, data);
	end_expression(netlink, expression);

	expression = begin_expression(netlink, "tproxy");
	netlink_put_u32_be(netlink, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC);
	netlink_put_u32_be(netlink, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	end_expression(netlink, expression);
}

static void put_reject(struct netlink *netlink, uint32_t type, uint8_t code)
{
	struct expression expression = begin_expression(netlink, "reject");

	netlink_put_u32_be(netlink, NFTA_REJECT_TYPE, type);
	netlink_put(netlink, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end_expression(netlink, expression);
}

static const struct nfgenmsg of_inet = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

static void begin_nft(struct netlink *netlink, unsigned type, unsigned flags)
{
	netlink_begin(netlink, (NFNL_SUBSYS_NFTABLES << 8) | type, NLM_F_CREATE | flags, &of_inet,
		      sizeof(of_inet));
}

static void put_batch_edge(struct netlink *netlink, unsigned type)
{
	const struct nfgenmsg head = { .nfgen_family = AF_UNSPEC,
				       .version = NFNETLINK_V0,
				       .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	netlink_begin(netlink, type, 0, &head, sizeof(head));
}

static void put_chain(struct netlink *netlink)
{
	size_t hook;

	begin_nft(netlink, NFT_MSG_NEWTABLE, 0);
	netlink_put_text(netlink, NFTA_TABLE_NAME, TABLE);
	begin_nft(netlink, NFT_MSG_NEWCHAIN, 0);
	netlink_put_text(netlink, NFTA_CHAIN_TABLE, TABLE);
	netlink_put_text(netlink, NFTA_CHAIN_NAME, CHAIN);
	netlink_put_text(netlink, NFTA_CHAIN_TYPE, "filter");
	hook = netlink_nest(netlink, NFTA_CHAIN_HOOK);
	netlink_put_u32_be(netlink, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	netlink_put_u32_be(netlink, NFTA_HOOK_PRIORITY, PRIORITY);
	netlink_nest_end(netlink, hook);
	netlink_put_u32_be(netlink, NFTA_CHAIN_POLICY, NF_ACCEPT);
}

/* A rule, and the list of its expressions, up to the end of the nest. */
static size_t begin_rule(struct netlink *netlink, unsigned flags)
{
	begin_nft(netlink, NFT_MSG_NEWRULE, NLM_F_APPEND | flags);
	netlink_put_text(netlink, NFTA_RULE_TABLE, TABLE);
	netlink_put_text(netlink, NFTA_RULE_CHAIN, CHAIN);
	return netlink_nest(netlink, NFTA_RULE_EXPRESSIONS);
}

/* Of the family, to that address or prefix: not captured. */
static void put_exempt(struct netlink *netlink, uint8_t family, const void *address, size_t length)
{
	/* where the destination lies in the headers (RFC 791, RFC 8200) */
	uint32_t offset = family == NFPROTO_IPV4 ? 16 : 24;
	size_t rule = begin_rule(netlink, 0);

	put_meta(netlink, NFT_META_NFPROTO);
	put_equals(netlink, &family, sizeof(family));
	put_payload(netlink, NFT_PAYLOAD_NETWORK_HEADER, offset, (uint32_t)length);
	put_equals(netlink, address, length);
	put_accept(netlink);
	netlink_nest_end(netlink, rule);
}

static void put_protocol(struct netlink *netlink, uint8_t protocol)
{
	put_meta(netlink, NFT_META_L4PROTO);
	put_equals(netlink, &protocol, sizeof(protocol));
}

static void put_exemptions(struct netlink *netlink)
{
	const uint32_t box_v4 = htonl(PLACE_BOX_V4);
	const uint8_t loopback_v4 = 127;
	const struct in6_addr loopback_v6 = IN6ADDR_LOOPBACK_INIT;

	put_exempt(netlink, NFPROTO_IPV4, &loopback_v4, sizeof(loopback_v4));
	put_exempt(netlink, NFPROTO_IPV6, &loopback_v6, sizeof(loopback_v6));
	put_exempt(netlink, NFPROTO_IPV4, &box_v4, sizeof(box_v4));
	put_exempt(netlink, NFPROTO_IPV6, box_v6, sizeof(box_v6));
}

/* tests/unit/test_capture.c has them as nft(8) lists them. */
static void put_rules(struct netlink *netlink)
{
	const uint16_t dns = htons(PLACE_NAMESERVER_PORT);
	size_t rule;

	put_exemptions(netlink);
	rule = begin_rule(netlink, 0);
	put_protocol(netlink, IPPROTO_TCP);
	put_tproxy(netlink, PLACE_LISTENER_PORT);
	put_accept(netlink);
	netlink_nest_end(netlink, rule);
	/* nobody listens any more: refused, and by no message of ICMP, for which v6 would wait */
	rule = begin_rule(netlink, 0);
	put_protocol(netlink, IPPROTO_TCP);
	put_reject(netlink, NFT_REJECT_TCP_RST, 0);
	netlink_nest_end(netlink, rule);
	rule = begin_rule(netlink, 0);
	put_protocol(netlink, IPPROTO_UDP);
	put_payload(netlink, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(dns));
	put_equals(netlink, &dns, sizeof(dns));
	put_accept(netlink);
	netlink_nest_end(netlink, rule);
	/* the last one's answer is that of all: an error of any comes before it */
	rule = begin_rule(netlink, NLM_F_ACK);
	put_reject(netlink, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
	netlink_nest_end(netlink, rule);
}

int capture_rules(void)
{
	struct netlink netlink = { .used = 0 };
	int CLEANUP_FD fd = netlink_open(NETLINK_NETFILTER);
	int result = fd;

	if (fd >= 0) {
		put_batch_edge(&netlink, NFNL_MSG_BATCH_BEGIN);
		put_chain(&netlink);
		put_rules(&netlink);
		put_batch_edge(&netlink, NFNL_MSG_BATCH_END);
		result = netlink_call(fd, &netlink, 0);
	}
	/* no netlink for netfilter; no nf_tables; not the expression tproxy or reject */
	return result == -EPROTONOSUPPORT || result == -EINVAL || result == -ENOENT ? -EOPNOTSUPP :
										      result;
}

static int set_option(int fd, int level, int option)
{
	const int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* Of both families, at every address; of version 4 alone where the kernel has no other. */
static int bind_everywhere(int type, uint16_t port, bool transparent, int *ret_fd)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const int off = 0;
	int CLEANUP_FD fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool has_v6 = fd >= 0;
	int result = 0;

	if (!has_v6)
		fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (has_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	if (transparent)
		result = has_v6 ? set_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT_) :
				  set_option(fd, IPPROTO_IP, IP_TRANSPARENT);
	if (result < 0)
		return result;
	if (bind(fd, has_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
		 has_v6 ? sizeof(v6) : sizeof(v4)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return has_v6;
}

static int listen_everywhere(uint16_t port, bool transparent, int *ret_fd)
{
	int CLEANUP_FD fd = -1;
	int result = bind_everywhere(SOCK_STREAM, port, transparent, &fd);

	if (result < 0)
		return result;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int capture_listener(int *ret_fd)
{
	return listen_everywhere(PLACE_LISTENER_PORT, true, ret_fd);
}

int capture_port_listener(uint16_t port, int *ret_fd)
{
	return listen_everywhere(port, false, ret_fd);
}

int capture_datagrams(int *ret_fd)
{
	int CLEANUP_FD fd = -1;
	int result = bind_everywhere(SOCK_DGRAM, PLACE_NAMESERVER_PORT, false, &fd);

	if (result < 0)
		return result;
	/* of a socket of version 6 both: what came by version 4 has a mapped address */
	if (result > 0)
		result = set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	if (result == 0)
		result = set_option(fd, IPPROTO_IPV6, IPV6_FREEBIND_);
	if (result >= 0)
		result = set_option(fd, IPPROTO_IP, IP_PKTINFO);
	if (result < 0)
		return result;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
