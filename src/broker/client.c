#include "broker/client.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/holder.h"
#include "ipc/info.h"
#include "ipc/message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Between two looks for a socket that is not there yet. */
#define LOOK_NS (10ull * 1000 * 1000)

static int open_runtimes(struct client *client, bool is_default, struct arena *arena,
			 struct error *error)
{
	int result = runtime_open(&client->host, &client->state, false, RUNTIME_LOOK, arena,
				  &client->runtimes[1], error);

	if (is_default && (result == 0 || result == -ENOENT))
		result = runtime_open(&client->host, &client->state, true, RUNTIME_LOOK, arena,
				      &client->runtimes[0], error);
	return result == -ENOENT ? 0 : result;
}

int client_open(const char *state_path, struct arena *arena, struct client *ret_client,
		struct error *error)
{
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	int result = host_gather(arena, &client.host, error);

	if (result < 0)
		return result;
	if (client.host.inside)
		return error_set(error, EPERM,
				 "inside of a box no task is seen or controlled; use this verb on "
				 "the host");
	result = state_open(&client.host, state_path, arena, &client.state, error);
	if (result < 0)
		return result;
	/* looking is no reason to leave something behind */
	state_unmake(&client.state);
	result = open_runtimes(&client, !state_path, arena, error);
	if (result < 0)
		return result;
	*ret_client = client;
	client = CLIENT_NONE;
	return 0;
}

void client_close(struct client *client)
{
	runtime_close(&client->runtimes[0]);
	runtime_close(&client->runtimes[1]);
	state_close(&client->state);
}

static int compare(const void *first, const void *second)
{
	return strcmp(*(const char *const *)first, *(const char *const *)second);
}

int client_tasks(const struct client *client, struct arena *arena, const char ***ret_ids,
		 size_t *ret_count, struct error *error)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char **ids = NULL, *name;
	size_t count = 0;

	(void)directory_open(&directory, client->state.tasks_fd, ".", 0);
	while (count < CLIENT_LIMIT_TASKS && (name = directory_next(&directory))) {
		const char **grown;

		if (!control_is_id(name, 't') || !holder_exists(client->state.tasks_fd, name))
			continue;
		grown = arena_push(arena, ids, count, sizeof(*ids));
		if (!grown)
			return error_errno(error, ENOMEM, "listing the tasks");
		ids = grown;
		ids[count++] = arena_copy(arena, name);
	}
	if (directory.code < 0 && directory.code != -ENOENT)
		return error_errno(error, directory.code, "the state directory %s/tasks",
				   client->state.path);
	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "listing the tasks");
	if (count)
		qsort(ids, count, sizeof(*ids), compare);
	*ret_ids = ids;
	*ret_count = count;
	return 0;
}

static int no_such_task(const char *word, struct error *error)
{
	return error_set(error, ENOENT, "no task %.40s, or it has ended; `bawn ps` lists them",
			 word);
}

int client_find(const struct client *client, const char *word, struct arena *arena,
		const char **ret_id, struct error *error)
{
	const char *letters = strncmp(word, "t-", 2) == 0 ? word + 2 : word;
	const char **ids, *found = NULL;
	size_t count, length = strlen(letters);
	int result = client_tasks(client, arena, &ids, &count, error);

	if (result < 0)
		return result;
	for (size_t i = 0; i < count && length; i++) {
		if (strncmp(ids[i] + 2, letters, length) != 0)
			continue;
		if (found)
			return error_set(error, EEXIST,
					 "%.40s is the beginning of several tasks: %s, %s; give "
					 "more of it",
					 word, found, ids[i]);
		found = ids[i];
	}
	if (!found)
		return no_such_task(word, error);
	*ret_id = found;
	return 0;
}

void client_reap(const struct client *client)
{
	for (unsigned i = 0; i < 2; i++)
		if (client->runtimes[i].fd >= 0)
			runtime_reap(&client->runtimes[i], &client->state);
}

static int connect_below(int directory_fd, const char *name, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int result;

	/* by way of the directory's descriptor: sun_path is too short for every path */
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		       directory_fd, name);
	do
		result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : 0;
}

/* The other end by what the kernel knows of who listens; its uid must be ours. */
static int check_peer(int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	if (peer.uid != geteuid())
		return -EPERM;
	if (ret_pid)
		*ret_pid = peer.pid;
	return 0;
}

int client_connect(const struct client *client, const char *id, int *ret_fd, pid_t *ret_pid,
		   struct error *error)
{
	/* a full queue of a supervisor that hangs must not hang us */
	const struct timeval most = { .tv_sec = CLIENT_ANSWER_NS / (1000u * 1000 * 1000) };
	int CLEANUP_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int result = -ENOENT;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0)
		return error_errno(error, errno, "making a socket");
	for (unsigned i = 0; i < 2 && (result == -ENOENT || result == -ECONNREFUSED); i++)
		if (client->runtimes[i].fd >= 0)
			result = connect_below(client->runtimes[i].fd, id, fd);
	if (result == -ENOENT || result == -ECONNREFUSED)
		return error_set(error, ENOTCONN, "the task %s has no control socket", id);
	if (result == -EAGAIN)
		return error_set(error, ETIMEDOUT, "the supervisor of %s does not answer", id);
	if (result == 0)
		result = check_peer(fd, ret_pid);
	if (result == -EPERM)
		return error_set(error, EPERM, "the control socket of %s is another user's", id);
	if (result < 0)
		return error_errno(error, result, "connecting to the task %s", id);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int client_connect_patiently(const struct client *client, const char *id, uint64_t deadline_ns,
			     int *ret_fd, pid_t *ret_pid, struct error *error)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	for (;;) {
		int result = client_connect(client, id, ret_fd, ret_pid, error);

		if (result != -ENOTCONN || clock_monotonic_ns() >= deadline_ns)
			return result;
		if (!holder_exists(client->state.tasks_fd, id))
			return no_such_task(id, error);
		(void)nanosleep(&pause, NULL);
	}
}

static int gone(struct error *error)
{
	return error_set(error, ECONNRESET, "the supervisor has ended");
}

static int foreign(struct error *error)
{
	return error_set(error, EPROTO,
			 "the supervisor's answer is none: it is another version of bawn?");
}

int client_reply(const struct message *message, struct error *error)
{
	struct control_reply reply;
	char text[CONTROL_LIMIT_TEXT_BYTES + 1];
	size_t length;

	if (message->type != CONTROL_REPLY || message->length < sizeof(reply) ||
	    message->length > sizeof(reply) + CONTROL_LIMIT_TEXT_BYTES)
		return foreign(error);
	memcpy(&reply, message->bytes, sizeof(reply));
	if (reply.code == 0)
		return 0;
	length = message->length - sizeof(reply);
	memcpy(text, message->bytes + sizeof(reply), length);
	text[length] = '\0';
	return reply.code > -4096 && reply.code < 0 ? error_set(error, reply.code, "%s", text) :
						      foreign(error);
}

int client_send(int fd, enum control_type type, const void *bytes, size_t length, const int *fds,
		unsigned fd_count, struct error *error)
{
	int result = message_send(fd, type, bytes, length, fds, fd_count);

	/* who refuses a connection says why and closes it: that is still to be read */
	if (result == -EPIPE || result == -ECONNRESET)
		return 0;
	if (result == -EAGAIN)
		return error_set(error, ETIMEDOUT, "the supervisor does not answer");
	return result < 0 ? error_errno(error, result, "asking the supervisor") : 0;
}

int client_receive(int fd, uint64_t deadline_ns, struct message *ret_message, struct error *error)
{
	int result = holder_wait(fd, deadline_ns);

	if (result == 0)
		result = message_receive(fd, ret_message);
	/* it closed with something of ours unread, which is told before what it said to the end */
	if (result == -ECONNRESET)
		result = message_receive(fd, ret_message);
	if (result == -EPIPE || result == -ECONNRESET)
		return gone(error);
	if (result == -ETIMEDOUT)
		return error_set(error, ETIMEDOUT, "the supervisor does not answer");
	return result < 0 ? error_errno(error, result, "the supervisor's answer") : 0;
}

int client_ask(int fd, enum control_type type, const void *bytes, size_t length,
	       uint64_t deadline_ns, struct error *error)
{
	struct message message;
	int result = client_send(fd, type, bytes, length, NULL, 0, error);

	if (result == 0)
		result = client_receive(fd, deadline_ns, &message, error);
	if (result < 0)
		return result;
	result = client_reply(&message, error);
	message_close_fds(&message);
	return result;
}

int client_info(int fd, uint64_t deadline_ns, struct arena *arena, struct info *ret_info,
		struct error *error)
{
	struct message message;
	const char *bytes;
	size_t length;
	int result = client_receive(fd, deadline_ns, &message, error);

	if (result < 0)
		return result;
	result = client_reply(&message, error);
	if (result == 0 && message.fd_count != 1)
		result = foreign(error);
	else if (result == 0 && (control_read_sealed(message.fds[0], CONTROL_LIMIT_BLOB_BYTES,
						     arena, &bytes, &length) < 0 ||
				 info_decode(bytes, length, arena, ret_info) < 0))
		result = foreign(error);
	message_close_fds(&message);
	return result;
}
