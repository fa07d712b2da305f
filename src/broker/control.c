#include "broker/control.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/info.h"
#include "ipc/role.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* The listener's number among the entries of epoll; peers have theirs. */
#define LISTENER CONTROL_LIMIT_PEERS

/* A client that was stopped before it asked keeps its place that long. */
#define SILENCE_NS (1000ull * 1000 * 1000)

/* A usual request with its environment and result; each page of it would be cleared and copied. */
#define EXEC_BYTES (16u * 1024)

enum peer_state {
	PEER_FREE = 0,
	PEER_NEW = 1 << 0,
	PEER_ACTION = 1 << 1, /* exec or attach */
	PEER_WAITS = 1 << 2,  /* for the task's end */
};

struct control_peer {
	struct control *control;
	int fd; /* owned */
	pid_t pid;
	enum peer_state state;
	uint64_t since_ns;
	void *context;
};

/* Of a process: what the link to a namespace says; "" where it cannot be read. */
struct place {
	char name[64];
};

struct control {
	const struct control_ops *ops;
	void *task;
	char id[CONTROL_ID_BYTES];
	int runtime_fd, listen_fd, epoll_fd;
	struct place ours[2]; /* the namespaces of peers */
	int reserve_fd;	      /* given up for a moment when there are no descriptors left */
	struct control_peer peers[CONTROL_LIMIT_PEERS];
};

struct request {
	struct control_peer *peer;
	struct message *message;
	struct error error;
};

static int add(struct control *control, int fd, uint32_t number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };

	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void drop(struct control_peer *peer)
{
	fd_close(&peer->fd);
	peer->state = PEER_FREE;
}

/* The other end has gone, or broke the rules. */
static void lose(struct control_peer *peer)
{
	bool is_action = peer->state == PEER_ACTION;

	drop(peer);
	if (is_action)
		peer->control->ops->gone(peer->control->task, peer);
}

static int reply(const struct control_peer *peer, int code, const char *text, int fd)
{
	unsigned char bytes[sizeof(struct control_reply) + CONTROL_LIMIT_TEXT_BYTES];
	struct control_reply head = { .code = code };
	size_t length = strlen(text);

	if (length > CONTROL_LIMIT_TEXT_BYTES)
		length = CONTROL_LIMIT_TEXT_BYTES;
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), text, length);
	return message_send(peer->fd, CONTROL_REPLY, bytes, sizeof(head) + length, &fd, fd >= 0);
}

/* Answers a request that leaves the connection open; one that cannot take it is closed. */
static void answer(struct control_peer *peer, int code, const struct error *error)
{
	if (reply(peer, code < 0 ? code : 0, code < 0 ? error->message : "", -1) < 0)
		drop(peer);
}

void control_refuse(struct control_peer *peer, int code, const char *text)
{
	if (peer->state == PEER_FREE)
		return;
	(void)reply(peer, code, text, -1);
	drop(peer);
}

void control_started(struct control_peer *peer, const char *action, uint32_t flags)
{
	struct control_started started = { .flags = flags };

	if (peer->state != PEER_ACTION)
		return;
	(void)snprintf(started.action, sizeof(started.action), "%s", action);
	if (message_send(peer->fd, CONTROL_STARTED, &started, sizeof(started), NULL, 0) < 0)
		/* its owner must not be called back from here: the next step finds it gone */
		(void)shutdown(peer->fd, SHUT_RDWR);
}

/* With what it grows by it fits into a small block of an arena. */
#define SHORT_RESULT_BYTES (ARENA_SMALL_BYTES / 2 - 1)

void control_result(struct control_peer *peer, int exit_status, const struct buffer *json,
		    const struct buffer *text)
{
	struct control_result result = { .exit_status = (uint32_t)exit_status };
	struct arena CLEANUP_ARENA arena = { .first_bytes = ARENA_SMALL_BYTES };
	struct buffer CLEANUP_BUFFER both = { 0 };
	int CLEANUP_FD fd = -1;

	if (peer->state != PEER_ACTION)
		return;
	if ((json ? json->length : 0) + (text ? text->length : 0) < SHORT_RESULT_BYTES)
		both.arena = &arena;
	if (json && !json->failed && json->length)
		buffer_append(&both, json->data, json->length);
	if (!both.failed)
		result.json_bytes = both.length;
	if (text && !text->failed && text->length)
		buffer_append(&both, text->data, text->length);
	if (!both.failed)
		result.text_bytes = both.length - result.json_bytes;
	/* without room for its details the status still arrives */
	fd = both.failed ? -1 : role_config(both.data, both.length);
	if (fd < 0)
		result.json_bytes = result.text_bytes = 0;
	(void)message_send(peer->fd, CONTROL_RESULT, &result, sizeof(result), &fd, fd >= 0);
	drop(peer);
}

pid_t control_pid(const struct control_peer *peer)
{
	return peer->pid;
}

void control_set_context(struct control_peer *peer, void *context)
{
	peer->context = context;
}

void *control_context(const struct control_peer *peer)
{
	return peer->context;
}

static void on_status(struct request *request)
{
	struct control_peer *peer = request->peer;
	struct control *control = peer->control;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct info info = { 0 };
	int CLEANUP_FD fd = -1;
	int result = control->ops->status(control->task, &arena, &info);

	if (result == 0) {
		info_encode(&info, &blob);
		fd = blob.failed ? -ENOMEM : role_config(blob.data, blob.length);
		result = fd < 0 ? fd : 0;
	}
	if (result < 0)
		error_errno(&request->error, result, "the state of the task could not be told");
	if (reply(peer, result, result < 0 ? request->error.message : "", fd) < 0)
		drop(peer);
}

/* out and err come first, in is left out where there is none. */
static void take_streams(struct message *message, unsigned first, int fds[static 3])
{
	fds[1] = TAKE_FD(message->fds[first]);
	fds[2] = TAKE_FD(message->fds[first + 1]);
	fds[0] = message->fd_count > first + 2 ? TAKE_FD(message->fds[first + 2]) : -1;
}

/* The message for a blob that could not be read, or 0. */
static int judge_blob(struct request *request, int result)
{
	if (result == -EPROTONOSUPPORT)
		return error_set(
			&request->error, -result,
			"the task was started by another version of bawn; start a new one");
	return result < 0 ? error_errno(&request->error, result, "the request") : 0;
}

static int read_exec(struct request *request, struct control_exec *exec)
{
	const char *bytes;
	size_t length;
	int result = control_read_sealed(request->message->fds[0], CONTROL_LIMIT_REQUEST_BYTES,
					 &exec->arena, &bytes, &length);

	if (result == 0)
		result = control_decode(bytes, length, &exec->arena, &exec->request);
	if (result == 0 &&
	    ((exec->request.flags & CONTROL_INPUT) != 0) != (request->message->fd_count == 4))
		result = -EBADMSG;
	return judge_blob(request, result);
}

static void on_exec(struct request *request)
{
	struct control_exec exec = { .arena = { .first_bytes = EXEC_BYTES },
				     .fds = { -1, -1, -1 } };
	struct control_peer *peer = request->peer;
	struct control *control = peer->control;
	int result = read_exec(request, &exec);

	if (result == 0) {
		take_streams(request->message, 1, exec.fds);
		peer->state = PEER_ACTION;
		result = control->ops->exec(control->task, peer, &exec, &request->error);
	}
	for (unsigned i = 0; i < 3; i++)
		fd_close(&exec.fds[i]);
	arena_free(&exec.arena);
	if (result < 0)
		control_refuse(peer, result, request->error.message);
}

static void on_attach(struct request *request)
{
	struct control_peer *peer = request->peer;
	struct control *control = peer->control;
	struct control_attach attach;
	int fds[3] = { -1, -1, -1 };
	int result = -EBADMSG;

	memcpy(&attach, request->message->bytes, sizeof(attach));
	if ((attach.flags & ~(uint32_t)CONTROL_INPUT) ||
	    ((attach.flags & CONTROL_INPUT) != 0) != (request->message->fd_count == 3) ||
	    attach.action[sizeof(attach.action) - 1] ||
	    (attach.action[0] && !control_is_id(attach.action, 'a'))) {
		error_errno(&request->error, result, "the request");
	} else if (!control->ops->attach) {
		result = error_set(&request->error, EOPNOTSUPP,
				   "this task cannot be attached to; `bawn logs -f` follows it");
	} else {
		take_streams(request->message, 0, fds);
		peer->state = PEER_ACTION;
		result = control->ops->attach(control->task, peer, attach.action, fds,
					      &request->error);
	}
	for (unsigned i = 0; i < 3; i++)
		fd_close(&fds[i]);
	if (result < 0)
		control_refuse(peer, result, request->error.message);
}

static void on_signal(struct request *request)
{
	struct control *control = request->peer->control;
	struct control_signal sent;

	memcpy(&sent, request->message->bytes, sizeof(sent));
	if (sent.number < 1 || sent.number > SIGRTMAX)
		lose(request->peer);
	else
		control->ops->signal(control->task, request->peer, sent.number);
}

static void on_window(struct request *request)
{
	struct control *control = request->peer->control;
	struct control_window sent;

	memcpy(&sent, request->message->bytes, sizeof(sent));
	control->ops->window(control->task, request->peer,
			     &(struct winsize){ .ws_row = sent.rows,
						.ws_col = sent.columns,
						.ws_xpixel = sent.x_pixels,
						.ws_ypixel = sent.y_pixels });
}

static void on_pause(struct request *request)
{
	struct control_peer *peer = request->peer;

	peer->control->ops->pause(peer->control->task, peer);
	if (message_send(peer->fd, CONTROL_PAUSED, NULL, 0, NULL, 0) < 0)
		lose(peer);
}

static void on_freeze(struct request *request)
{
	struct control *control = request->peer->control;

	answer(request->peer, control->ops->freeze(control->task, &request->error),
	       &request->error);
}

static void on_thaw(struct request *request)
{
	struct control *control = request->peer->control;

	answer(request->peer, control->ops->thaw(control->task, &request->error), &request->error);
}

static void on_note(struct request *request)
{
	struct control *control = request->peer->control;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct control_note note;
	const char *bytes;
	size_t length;
	int result = control_read_sealed(request->message->fds[0], CONTROL_LIMIT_NOTE_BLOB_BYTES,
					 &arena, &bytes, &length);

	if (result == 0)
		result = control_decode_note(bytes, length, &arena, &note);
	result = judge_blob(request, result);
	if (result == 0)
		result = control->ops->note(control->task, &note, &request->error);
	answer(request->peer, result, &request->error);
}

static void on_end(struct request *request)
{
	struct control_peer *peer = request->peer;
	struct control *control = peer->control;
	struct control_stop stop = { 0 };
	enum control_end by = request->message->type == CONTROL_KILL ? CONTROL_BY_KILL :
			      request->message->type == CONTROL_STOP ? CONTROL_BY_STOP :
								       CONTROL_BY_END;
	int result;

	if (by != CONTROL_BY_KILL)
		memcpy(&stop, request->message->bytes, sizeof(stop));
	if (stop.grace_ns > INT64_MAX) {
		lose(peer);
		return;
	}
	result = control->ops->end(control->task, by, stop.grace_ns, &request->error);
	if (result == 0)
		peer->state = PEER_WAITS;
	answer(peer, result, &request->error);
}

/* What may come in which state, with what length and descriptors. Nothing else may. */
static const struct handler {
	uint32_t type;
	unsigned states;
	size_t length;
	unsigned fds_least, fds_most;
	void (*handle)(struct request *request);
} handlers[] = {
	{ CONTROL_STATUS, PEER_NEW, 0, 0, 0, on_status },
	{ CONTROL_EXEC, PEER_NEW, 0, 3, 4, on_exec },
	{ CONTROL_ATTACH, PEER_NEW, sizeof(struct control_attach), 2, 3, on_attach },
	{ CONTROL_SIGNAL, PEER_ACTION, sizeof(struct control_signal), 0, 0, on_signal },
	{ CONTROL_WINDOW, PEER_ACTION, sizeof(struct control_window), 0, 0, on_window },
	{ CONTROL_PAUSE, PEER_ACTION, 0, 0, 0, on_pause },
	{ CONTROL_FREEZE, PEER_NEW, 0, 0, 0, on_freeze },
	{ CONTROL_THAW, PEER_NEW, 0, 0, 0, on_thaw },
	{ CONTROL_STOP, PEER_NEW | PEER_WAITS, sizeof(struct control_stop), 0, 0, on_end },
	{ CONTROL_KILL, PEER_NEW | PEER_WAITS, 0, 0, 0, on_end },
	{ CONTROL_END, PEER_NEW | PEER_WAITS, sizeof(struct control_stop), 0, 0, on_end },
	{ CONTROL_NOTE, PEER_NEW, 0, 1, 1, on_note },
};

static const struct handler *find(const struct control_peer *peer, const struct message *message)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		const struct handler *handler = &handlers[i];

		if (handler->type == message->type && (handler->states & peer->state) &&
		    handler->length == message->length && message->fd_count >= handler->fds_least &&
		    message->fd_count <= handler->fds_most)
			return handler;
	}
	return NULL;
}

static void receive(struct control_peer *peer)
{
	struct message message;
	struct request request = { .peer = peer, .message = &message };
	const struct handler *handler;
	int result = peer->fd < 0 ? -EAGAIN : message_receive(peer->fd, &message);

	/* news of a connection that another of this round's events closed */
	if (result == -EAGAIN)
		return;
	handler = result < 0 ? NULL : find(peer, &message);
	if (handler)
		handler->handle(&request);
	else
		lose(peer);
	if (result == 0)
		message_close_fds(&message);
}

static const char *const kinds[] = { "pid", "user" };

static void read_place(const char *process, const char *kind, struct place *ret_place)
{
	char path[48];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, kind);
	length = readlink(path, ret_place->name, sizeof(ret_place->name) - 1);
	ret_place->name[length > 0 ? length : 0] = '\0';
}

/* A process in our own namespaces? Fails closed: one that cannot be looked at is not. */
static bool is_near(struct control *control, pid_t pid)
{
	char process[16];
	struct place theirs;

	(void)snprintf(process, sizeof(process), "%d", pid);
	for (unsigned i = 0; i < 2; i++) {
		/* a look at our own that failed is not kept: nobody could end the task */
		if (!control->ours[i].name[0])
			read_place("self", kinds[i], &control->ours[i]);
		read_place(process, kinds[i], &theirs);
		if (!theirs.name[0] || strcmp(theirs.name, control->ours[i].name) != 0)
			return false;
	}
	return true;
}

/* ret_pid: who connected. */
static const char *objection(struct control *control, int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int CLEANUP_FD pidfd = -1;
	struct pollfd end = { .events = POLLIN };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid())
		return "the task is another user's";
	if (peer.pid > 0)
		pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	end.fd = pidfd;
	if (pidfd < 0 || !is_near(control, peer.pid) ||
	    /* what was looked at is still what was opened */
	    poll(&end, 1, 0) != 0)
		return "a task is controlled from the namespaces it was started in";
	*ret_pid = peer.pid;
	return NULL;
}

static struct control_peer *free_place(struct control *control, uint64_t now)
{
	struct control_peer *oldest = NULL;

	for (unsigned i = 0; i < CONTROL_LIMIT_PEERS; i++) {
		struct control_peer *peer = &control->peers[i];

		if (peer->state == PEER_FREE)
			return peer;
		if (peer->state == PEER_NEW && (!oldest || peer->since_ns < oldest->since_ns))
			oldest = peer;
	}
	if (!oldest || now - oldest->since_ns < SILENCE_NS)
		return NULL;
	drop(oldest);
	return oldest;
}

static void welcome(struct control *control, int fd)
{
	uint64_t now = clock_monotonic_ns();
	struct control_peer unknown = { .fd = fd, .state = PEER_NEW };
	const char *text = objection(control, fd, &unknown.pid);
	struct control_peer *peer = text ? NULL : free_place(control, now);

	if (!text && !peer)
		text = "too many connections to the task";
	if (text) {
		control_refuse(&unknown, -EPERM, text);
		return;
	}
	*peer = (struct control_peer){
		.control = control, .fd = fd, .pid = unknown.pid, .state = PEER_NEW, .since_ns = now
	};
	if (add(control, fd, (uint32_t)(peer - control->peers)) < 0)
		drop(peer);
}

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_one(struct control *control)
{
	int fd = accept4(control->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		welcome(control, fd);
		return;
	}
	if (errno != EMFILE && errno != ENFILE)
		return;
	/* it would be ready for ever: taken with the descriptor that was kept for it, and closed */
	fd_close(&control->reserve_fd);
	fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	fd_close(&fd);
	control->reserve_fd = open_reserve();
}

/* By way of the directory's descriptor: sun_path is too short for every path. */
static int bind_below(int directory_fd, const char *name, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		       directory_fd, name);
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int open_listener(struct control *control)
{
	int CLEANUP_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int result;

	/* what bind(2) makes has the socket's own mode, less the umask */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return -errno;
	result = bind_below(control->runtime_fd, control->id, fd);
	if (result == -EADDRINUSE && unlinkat(control->runtime_fd, control->id, 0) == 0)
		result = bind_below(control->runtime_fd, control->id, fd);
	if (result < 0)
		return result;
	if (listen(fd, CONTROL_LIMIT_PEERS) < 0) {
		result = -errno;
		(void)unlinkat(control->runtime_fd, control->id, 0);
		return result;
	}
	return TAKE_FD(fd);
}

static int open_all(struct control *control, int runtime_fd)
{
	control->runtime_fd = fcntl(runtime_fd, F_DUPFD_CLOEXEC, 3);
	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	control->reserve_fd = open_reserve();
	if (control->runtime_fd < 0 || control->epoll_fd < 0 || control->reserve_fd < 0)
		return -errno;
	control->listen_fd = open_listener(control);
	return control->listen_fd < 0 ? control->listen_fd :
					add(control, control->listen_fd, LISTENER);
}

int control_listen(int runtime_fd, const char *id, const struct control_ops *ops, void *task,
		   struct control **ret_control, struct error *error)
{
	struct control *control;
	int result;

	if (!control_is_id(id, 't'))
		return error_set(error, EINVAL, "%.40s is no task's id", id);
	control = calloc(1, sizeof(*control));
	if (!control)
		return error_errno(error, ENOMEM, "the control socket");
	control->ops = ops;
	control->task = task;
	control->runtime_fd = control->listen_fd = control->epoll_fd = control->reserve_fd = -1;
	(void)snprintf(control->id, sizeof(control->id), "%s", id);
	for (unsigned i = 0; i < CONTROL_LIMIT_PEERS; i++)
		control->peers[i] = (struct control_peer){ .control = control, .fd = -1 };
	for (unsigned i = 0; i < 2; i++)
		read_place("self", kinds[i], &control->ours[i]);
	result = open_all(control, runtime_fd);
	if (result < 0) {
		control_close(control);
		return error_errno(error, result, "the control socket of the task");
	}
	*ret_control = control;
	return 0;
}

bool control_poll(const struct control *control, struct pollfd *ret_entry)
{
	*ret_entry = (struct pollfd){ .fd = control ? control->epoll_fd : -1, .events = POLLIN };
	return control != NULL;
}

void control_step(struct control *control)
{
	struct epoll_event events[CONTROL_STEP_MESSAGES];
	int count = control ? epoll_wait(control->epoll_fd, events, CONTROL_STEP_MESSAGES, 0) : 0;

	for (int i = 0; i < count; i++)
		if (events[i].data.u32 == LISTENER)
			accept_one(control);
		else
			receive(&control->peers[events[i].data.u32]);
}

void control_close(struct control *control)
{
	if (!control)
		return;
	/* the name first: who finds it finds us */
	if (control->listen_fd >= 0)
		(void)unlinkat(control->runtime_fd, control->id, 0);
	for (unsigned i = 0; i < CONTROL_LIMIT_PEERS; i++)
		drop(&control->peers[i]);
	fd_close(&control->listen_fd);
	fd_close(&control->epoll_fd);
	fd_close(&control->reserve_fd);
	fd_close(&control->runtime_fd);
	free(control);
}
