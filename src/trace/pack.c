#include "trace/pack.h"

#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What an unprivileged user may have (pipe(7)). */
#define PIPE_BYTES (1024 * 1024)

/* Our ends do not block, so that a role that hangs does not hang us. ours: 0 reads, 1 writes. */
static int open_pipe(int ours, int *ret_ours, int *ret_theirs, struct error *error)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(error, errno, "the pipe of bawn-pack");
	*ret_ours = pair[ours];
	*ret_theirs = pair[!ours];
	if (fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0)
		return error_errno(error, errno, "the pipe of bawn-pack");
	return 0;
}

static int start(const struct pack_order *order, const int *fds, unsigned count, struct pack *pack,
		 struct error *error)
{
	int CLEANUP_FD config = role_config(order, sizeof(*order));

	if (config < 0)
		return error_errno(error, config, "the order of bawn-pack");
	return role_spawn(EDGE_SUPERVISOR_PACK, config, fds, count, &pack->role, error);
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

/* ---- compressing ---- */

/* Memory of both. Nobody makes it shorter: a page that is gone would end us. */
static int open_ring(struct pack *pack, int *ret_fd, struct error *error)
{
	int CLEANUP_FD fd = memfd_create("bawn-pack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *ring;

	if (fd < 0 || ftruncate(fd, PACK_RING_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return error_errno(error, errno, "the memory of bawn-pack");
	ring = mmap(NULL, PACK_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return error_errno(error, errno, "the memory of bawn-pack");
	pack->ring = ring;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int pack_begin(int out_fd, struct pack *ret_pack, struct error *error)
{
	const struct pack_order order = { .kind = PACK_COMPRESS, .limit_bytes = UINT64_MAX };
	struct pack CLEANUP_PACK pack = PACK_NONE;
	int CLEANUP_FD in = -1, CLEANUP_FD out = -1, CLEANUP_FD ring = -1;
	int result = open_pipe(1, &pack.pipe, &in, error);

	if (result == 0)
		result = open_pipe(0, &pack.lengths, &out, error);
	if (result == 0)
		result = open_ring(&pack, &ring, error);
	if (result == 0) {
		const int fds[PACK_FD_COUNT] = {
			[PACK_IN] = in, [PACK_OUT] = out, [PACK_RING] = ring
		};

		result = start(&order, fds, PACK_FD_COUNT, &pack, error);
	}
	if (result < 0)
		return result;
	pack.out_fd = out_fd;
	*ret_pack = pack;
	pack = PACK_NONE;
	return 0;
}

static unsigned char *slot_of(const struct pack *pack, uint64_t number)
{
	return pack->ring + number % PACK_SLOTS * PACK_SLOT_BYTES;
}

/* 1: a length has come; 0: none will. The role writes each at once, so that none is torn. */
static int hear_length(const struct pack *pack, uint32_t *ret_length)
{
	for (;;) {
		ssize_t count = read(pack->lengths, ret_length, sizeof(*ret_length));
		int result;

		if (count == sizeof(*ret_length))
			return *ret_length <= PACK_ROOM_BYTES ? 1 : -EPROTO;
		if (count == 0)
			return 0;
		if (count > 0)
			return -EPROTO;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		result = wait_for(pack->lengths, POLLIN);
		if (result < 0)
			return result;
	}
}

/* Writes what became of the oldest piece. 1: written; 0: nothing more comes. */
static int write_next(struct pack *pack)
{
	uint32_t length;
	int result = hear_length(pack, &length);

	if (result <= 0)
		return result;
	result = fd_write_all(pack->out_fd, slot_of(pack, pack->heard) + PACK_PIECE_BYTES, length);
	if (result < 0) {
		pack->failure = result;
		return result;
	}
	pack->heard++;
	pack->written_bytes += length;
	return 1;
}

/* The piece is on its way; there is room for the next one. */
static int send_piece(struct pack *pack)
{
	uint32_t length = (uint32_t)pack->filled;
	int result = fd_write_all(pack->pipe, &length, sizeof(length));

	if (result < 0)
		return result;
	pack->sent++;
	pack->filled = 0;
	if (pack->sent - pack->heard < PACK_SLOTS - 1)
		return 0;
	result = write_next(pack);
	return result == 0 ? -EPIPE : result < 0 ? result : 0;
}

int pack_feed(struct pack *pack, const void *bytes, size_t length)
{
	const char *at = bytes;
	int result = 0;

	while (result == 0 && length) {
		size_t room = PACK_PIECE_BYTES - pack->filled;
		size_t part = length < room ? length : room;

		memcpy(slot_of(pack, pack->sent) + pack->filled, at, part);
		pack->filled += part;
		at += part;
		length -= part;
		if (pack->filled == PACK_PIECE_BYTES)
			result = send_piece(pack);
	}
	return result;
}

int pack_finish(struct pack *pack, uint64_t *ret_bytes)
{
	uint64_t written;
	int result = pack->failure;

	if (result == 0 && pack->filled)
		result = send_piece(pack);
	fd_close(&pack->pipe);
	if (result < 0 && result != -EPIPE)
		return result;
	while ((result = write_next(pack)) > 0)
		;
	if (result == 0)
		result = hear(pack, &written);
	if (result == 0)
		*ret_bytes = pack->written_bytes;
	return result == 0 && written != pack->written_bytes ? -EIO : result;
}

/* ---- reading ---- */

int unpack_begin(int in_fd, uint64_t limit_bytes, struct pack *ret_pack, struct error *error)
{
	const struct pack_order order = { .kind = PACK_DECOMPRESS, .limit_bytes = limit_bytes };
	struct pack CLEANUP_PACK pack = PACK_NONE;
	int CLEANUP_FD out = -1;
	int result = open_pipe(0, &pack.pipe, &out, error);

	if (result < 0)
		return result;
	/* fewer changes between the two */
	(void)fcntl(pack.pipe, F_SETPIPE_SZ, PIPE_BYTES);
	result = start(&order, (const int[]){ [PACK_IN] = in_fd, [PACK_OUT] = out }, PACK_RING,
		       &pack, error);
	if (result < 0)
		return result;
	*ret_pack = pack;
	pack = PACK_NONE;
	return 0;
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
	fd_close(&pack->lengths);
	if (pack->ring)
		(void)munmap(pack->ring, PACK_RING_BYTES);
	pack->ring = NULL;
	role_end(&pack->role);
}
