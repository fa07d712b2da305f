#include "ipc/message.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct header {
	uint32_t type, length;
};

int message_pair(int ret_fds[static 2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0 ? -errno : 0;
}

/*
 * Descriptors on their way count for the user, whoever sent them, and who sends one more must have
 * fewer than its own soft limit of open files (unix(7), ETOOMANYREFS). A task could so keep every
 * process of its user from it: we use our hard limit for the moment.
 */
static ssize_t send_rights(int fd, const struct msghdr *packet)
{
	struct rlimit files, raised;
	ssize_t count;
	int code;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= files.rlim_max) {
		errno = ETOOMANYREFS;
		return -1;
	}
	raised = (struct rlimit){ .rlim_cur = files.rlim_max, .rlim_max = files.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &raised);
	count = sendmsg(fd, packet, MSG_NOSIGNAL);
	code = errno;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	errno = code;
	return count;
}

int message_send(int fd, uint32_t type, const void *bytes, size_t length, const int *fds,
		 unsigned fd_count)
{
	struct header header = { .type = type, .length = (uint32_t)length };
	struct iovec parts[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = length },
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_LIMIT_FDS)];
	} control = { 0 };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = length ? 2 : 1 };
	ssize_t count;

	if (length > MESSAGE_LIMIT_BYTES || fd_count > MESSAGE_LIMIT_FDS)
		return -EMSGSIZE;
	if (fd_count) {
		struct cmsghdr *rights = &control.align;

		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(rights), fds, sizeof(int) * fd_count);
	}
	do
		count = sendmsg(fd, &packet, MSG_NOSIGNAL);
	while (count < 0 && errno == EINTR);
	if (count < 0 && errno == ETOOMANYREFS)
		count = send_rights(fd, &packet);
	return count < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *packet, struct message *message)
{
	struct cmsghdr *rights;

	for (rights = CMSG_FIRSTHDR(packet); rights; rights = CMSG_NXTHDR(packet, rights)) {
		size_t bytes = rights->cmsg_len - CMSG_LEN(0);

		if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
			continue;
		/* the control buffer has room for MESSAGE_LIMIT_FDS and the kernel cuts the rest */
		message->fd_count = (unsigned)(bytes / sizeof(int));
		memcpy(message->fds, CMSG_DATA(rights), bytes);
	}
}

int message_receive(int fd, struct message *ret_message)
{
	struct header header = { 0 };
	struct iovec parts[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = ret_message->bytes, .iov_len = sizeof(ret_message->bytes) },
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_LIMIT_FDS)];
	} control;
	struct msghdr packet = { .msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t count;

	ret_message->fd_count = 0;
	do
		count = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return -errno;
	take_fds(&packet, ret_message);
	if (count == 0 && ret_message->fd_count == 0)
		return -EPIPE;
	if ((packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || (size_t)count < sizeof(header) ||
	    header.length != (size_t)count - sizeof(header)) {
		message_close_fds(ret_message);
		return -EBADMSG;
	}
	ret_message->type = header.type;
	ret_message->length = header.length;
	return 0;
}

void message_close_fds(struct message *message)
{
	for (unsigned i = 0; i < message->fd_count; i++)
		fd_close(&message->fds[i]);
	message->fd_count = 0;
}
