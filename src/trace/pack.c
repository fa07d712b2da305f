#include "trace/pack.h"

#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Fewer changes between the two; what an unprivileged user may have (pipe(7)). */
#define PIPE_BYTES (1024 * 1024)

/* The role's two descriptors and its order; theirs: which of them is the far end of our pipe. */
static int start(const struct pack_order *order, int file, unsigned theirs, struct pack *ret_pack,
		 struct error *error)
{
	struct pack CLEANUP_PACK pack = PACK_NONE;
	int CLEANUP_FD config = role_config(order, sizeof(*order));
	int pair[2], fds[PACK_FD_COUNT], result, CLEANUP_FD far = -1;

	if (config < 0)
		return error_errno(error, config, "the order of bawn-pack");
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(error, errno, "the pipe of bawn-pack");
	/* ours does not block, so that a role that hangs does not hang us */
	pack.pipe = pair[theirs == PACK_IN];
	far = pair[theirs != PACK_IN];
	(void)fcntl(pack.pipe, F_SETPIPE_SZ, PIPE_BYTES);
	if (fcntl(pack.pipe, F_SETFL, O_NONBLOCK) < 0)
		return error_errno(error, errno, "the pipe of bawn-pack");
	fds[theirs] = far;
	fds[theirs == PACK_IN ? PACK_OUT : PACK_IN] = file;
	result = role_spawn(EDGE_SUPERVISOR_PACK, config, fds, PACK_FD_COUNT, &pack.role, error);
	if (result < 0)
		return result;
	*ret_pack = pack;
	pack = PACK_NONE;
	return 0;
}

static int wait_for(int fd, short events)
{
	struct pollfd poller = { .fd = fd, .events = events };
	int count;

	do
		count = poll(&poller, 1, PACK_WAIT_MS);
	while (count < 0 && errno == EINTR);
	return count > 0 ? 0 : count < 0 ? -errno : -ETIMEDOUT;
}

/* Its answer, which is its last word. */
static int hear(struct pack *pack, uint64_t *ret_written)
{
	struct pack_answer answer;
	struct message message;
	int result = wait_for(pack->role.channel, POLLIN);

	if (result < 0)
		return result;
	/* one that was killed has said nothing */
	if (message_receive(pack->role.channel, &message) < 0)
		return -EIO;
	message_close_fds(&message);
	if (message.length != sizeof(answer))
		return -EIO;
	memcpy(&answer, message.bytes, sizeof(answer));
	if (message.type != PACK_DONE)
		return answer.code > 0 && answer.code < 4096 ? -answer.code : -EIO;
	*ret_written = answer.written_bytes;
	return 0;
}

int pack_begin(int out_fd, struct pack *ret_pack, struct error *error)
{
	const struct pack_order order = { .kind = PACK_COMPRESS, .limit_bytes = UINT64_MAX };

	return start(&order, out_fd, PACK_IN, ret_pack, error);
}

int pack_feed(struct pack *pack, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t count = write(pack->pipe, at, length);

		if (count < 0 && errno == EAGAIN) {
			int result = wait_for(pack->pipe, POLLOUT);

			if (result < 0)
				return result;
			continue;
		}
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		at += count;
		length -= (size_t)count;
	}
	return 0;
}

int pack_finish(struct pack *pack, uint64_t *ret_bytes)
{
	fd_close(&pack->pipe);
	return hear(pack, ret_bytes);
}

int unpack_begin(int in_fd, uint64_t limit_bytes, struct pack *ret_pack, struct error *error)
{
	const struct pack_order order = { .kind = PACK_DECOMPRESS, .limit_bytes = limit_bytes };

	return start(&order, in_fd, PACK_OUT, ret_pack, error);
}

ssize_t unpack_read(struct pack *pack, void *bytes, size_t length)
{
	for (;;) {
		ssize_t count = read(pack->pipe, bytes, length);
		int result;

		if (count >= 0)
			return count;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		result = wait_for(pack->pipe, POLLIN);
		if (result < 0)
			return result;
	}
}

int unpack_finish(struct pack *pack)
{
	uint64_t written;

	return hear(pack, &written);
}

void pack_end(struct pack *pack)
{
	fd_close(&pack->pipe);
	role_end(&pack->role);
}
