#include "kernel/sockets.h"

#include "kernel/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static size_t address_bytes(const struct address *address)
{
	return address->family == ADDRESS_V4 ? 4 : 16;
}

static int read_answer(int fd, uint64_t *ret_inode)
{
	_Alignas(8) unsigned char bytes[NETLINK_LIMIT_BYTES];
	ssize_t length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct nlmsghdr header;
	struct inet_diag_msg found;
	struct nlmsgerr report;

	if (length < 0)
		return -errno;
	if ((size_t)length < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (header.nlmsg_type == NLMSG_ERROR && (size_t)length >= sizeof(header) + sizeof(report)) {
		memcpy(&report, bytes + sizeof(header), sizeof(report));
		return report.error < 0 ? report.error : -EBADMSG;
	}
	if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    (size_t)length < sizeof(header) + sizeof(found))
		return -EBADMSG;
	memcpy(&found, bytes + sizeof(header), sizeof(found));
	*ret_inode = found.idiag_inode;
	return found.idiag_inode ? 0 : -ENOENT;
}

int sockets_find(int diag_fd, const struct sockets_end *here, const struct sockets_end *there,
		 uint64_t *ret_inode)
{
	struct inet_diag_req_v2 request = {
		.sdiag_family = here->address.family == ADDRESS_V4 ? AF_INET : AF_INET6,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = ~0u,
		.id = { .idiag_sport = htons(here->port),
			.idiag_dport = htons(there->port),
			.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	struct netlink netlink = { .used = 0 };

	if (here->address.family == ADDRESS_NONE || here->address.family != there->address.family)
		return -EINVAL;
	memcpy(request.id.idiag_src, here->address.bytes, address_bytes(&here->address));
	memcpy(request.id.idiag_dst, there->address.bytes, address_bytes(&there->address));
	netlink_begin(&netlink, SOCK_DIAG_BY_FAMILY, 0, &request, sizeof(request));
	/* the answer is there when this returns */
	if (netlink.is_full || send(diag_fd, netlink.bytes, netlink.used, 0) < 0)
		return netlink.is_full ? -E2BIG : -errno;
	return read_answer(diag_fd, ret_inode);
}
