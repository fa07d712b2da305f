#include "kernel/sockets.h"

#include "base/clock.h"
#include "kernel/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Answers that nobody took, before one is looked for in vain. */
#define STALE_ANSWERS 16

static size_t address_bytes(const struct address *address)
{
	return address->family == ADDRESS_V4 ? 4 : 16;
}

int sockets_read(const unsigned char *bytes, size_t length, uint32_t sequence, uint64_t *ret_inode)
{
	struct nlmsghdr header;
	struct inet_diag_msg found;
	struct nlmsgerr report;

	if (length < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > length)
		return -EBADMSG;
	if (header.nlmsg_seq != sequence)
		return -EAGAIN;
	bytes += sizeof(header);
	length = header.nlmsg_len - sizeof(header);
	if (header.nlmsg_type == NLMSG_ERROR && length >= sizeof(report)) {
		memcpy(&report, bytes, sizeof(report));
		return report.error < 0 ? report.error : -EBADMSG;
	}
	if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || length < sizeof(found))
		return -EBADMSG;
	memcpy(&found, bytes, sizeof(found));
	if (!found.idiag_inode)
		return -ENOENT;
	*ret_inode = found.idiag_inode;
	return 0;
}

/* The answer to this question; one to an earlier, that was not taken then, is passed over. */
static int read_answer(int fd, uint32_t sequence, uint64_t *ret_inode)
{
	_Alignas(8) unsigned char bytes[NETLINK_LIMIT_BYTES];
	int result = -EAGAIN;

	for (unsigned i = 0; i < STALE_ANSWERS && result == -EAGAIN; i++) {
		ssize_t length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

		if (length < 0)
			return -errno;
		result = (size_t)length > sizeof(bytes) ?
				 -EMSGSIZE :
				 sockets_read(bytes, (size_t)length, sequence, ret_inode);
	}
	return result == -EAGAIN ? -EBADMSG : result;
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
	struct netlink netlink = { .sequence = (uint32_t)clock_monotonic_ns() };

	if (here->address.family == ADDRESS_NONE || here->address.family != there->address.family)
		return -EINVAL;
	memcpy(request.id.idiag_src, here->address.bytes, address_bytes(&here->address));
	memcpy(request.id.idiag_dst, there->address.bytes, address_bytes(&there->address));
	netlink_begin(&netlink, SOCK_DIAG_BY_FAMILY, 0, &request, sizeof(request));
	/* the answer is there when this returns */
	if (netlink.is_full || send(diag_fd, netlink.bytes, netlink.used, 0) < 0)
		return netlink.is_full ? -E2BIG : -errno;
	return read_answer(diag_fd, netlink.sequence, ret_inode);
}
