/*
 * The control socket: the runtime directory, the supervisor's side against what a client may do
 * wrong, and the client's own look at tasks, with a supervisor of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/client.h"
#include "broker/control.h"
#include "broker/holder.h"
#include "broker/runtime.h"
#include "ipc/message.h"
#include "ipc/role.h"

#include "control_sample.h"

struct stage {
	struct fixture *fixture;
	struct state state;
	struct runtime runtime;
	struct control *control;
	struct client client;
	/* what the task's operations saw, and how they answer */
	int status_calls, signals, pauses, gone, ends, freezes, last_signal, rows, answer;
	enum control_end by;
	uint64_t grace_ns;
	struct control_peer *peer;
	char command[32], noted[32], attached[CONTROL_ID_BYTES];
	bool had_input;
	int out; /* kept from an exec */
};

static int open_runtime(struct stage *stage, enum runtime_use use, struct error *error)
{
	*error = ERROR_NONE;
	runtime_close(&stage->runtime);
	return runtime_open(&stage->fixture->host, &stage->state, false, use,
			    &stage->fixture->arena, &stage->runtime, error);
}

static int set_up(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct error error = ERROR_NONE;

	if (!stage)
		return -1;
	stage->fixture = fixture_new();
	(void)chmod(stage->fixture->state, 0700);
	stage->state = STATE_NONE;
	stage->runtime = RUNTIME_NONE;
	stage->client = CLIENT_NONE;
	stage->out = -1;
	*state = stage;
	return state_open(&stage->fixture->host, stage->fixture->state, &stage->fixture->arena,
			  &stage->state, &error);
}

static int tear_down(void **state)
{
	struct stage *stage = *state;

	control_close(stage->control);
	client_close(&stage->client);
	runtime_close(&stage->runtime);
	state_close(&stage->state);
	fd_close(&stage->out);
	fixture_free(stage->fixture);
	free(stage);
	return 0;
}

static void test_runtime(void **state)
{
	struct stage *stage = *state;
	struct error error;
	char path[128];
	struct stat status;

	snprintf(path, sizeof(path), "%s/run", stage->fixture->state);
	assert_int_equal(open_runtime(stage, RUNTIME_LOOK, &error), -ENOENT);
	assert_int_equal(open_runtime(stage, RUNTIME_MAKE, &error), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(open_runtime(stage, RUNTIME_LOOK, &error), 0);
	assert_int_equal(chmod(path, 0702), 0);
	assert_int_equal(open_runtime(stage, RUNTIME_MAKE, &error), -EPERM);
	assert_non_null(strstr(error.message, path));
	assert_non_null(strstr(error.message, "chmod 700"));
	assert_int_equal(rmdir(path), 0);
	make_link(stage->fixture, "state/run", "/tmp");
	assert_int_equal(open_runtime(stage, RUNTIME_MAKE, &error), -ENOTDIR);
	assert_non_null(strstr(error.message, "link"));
	assert_int_equal(unlink(path), 0);
	make(stage->fixture, "state/run", "a file");
	assert_int_equal(open_runtime(stage, RUNTIME_LOOK, &error), -ENOTDIR);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	/* another user's, which only root can make */
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(open_runtime(stage, RUNTIME_MAKE, &error), -EPERM);
	}
}

/* A task's directory; locked by the descriptor that comes back. */
static int make_task(struct stage *stage, const char *id)
{
	int fd;

	assert_int_equal(mkdirat(stage->state.tasks_fd, id, 0700), 0);
	fd = openat(stage->state.tasks_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static void test_reap(void **state)
{
	struct stage *stage = *state;
	struct error error;
	int CLEANUP_FD live = make_task(stage, ID);
	int CLEANUP_FD dead = make_task(stage, OTHER_ID);
	struct stat status;

	assert_true(live >= 0);
	assert_int_equal(open_runtime(stage, RUNTIME_MAKE, &error), 0);
	assert_int_equal(mknodat(stage->runtime.fd, ID, S_IFSOCK | 0600, 0), 0);
	assert_int_equal(mknodat(stage->runtime.fd, OTHER_ID, S_IFSOCK | 0600, 0), 0);
	assert_int_equal(mknodat(stage->runtime.fd, "t-nobody", S_IFSOCK | 0600, 0), 0);
	assert_int_equal(mknodat(stage->runtime.fd, "other", S_IFSOCK | 0600, 0), 0);
	fd_close(&dead);
	runtime_reap(&stage->runtime, &stage->state);
	assert_int_equal(fstatat(stage->runtime.fd, ID, &status, 0), 0);
	assert_int_equal(fstatat(stage->runtime.fd, "other", &status, 0), 0);
	assert_int_equal(fstatat(stage->runtime.fd, OTHER_ID, &status, 0), -1);
	assert_int_equal(fstatat(stage->runtime.fd, "t-nobody", &status, 0), -1);
}

/* The supervisor's side */

static int op_info(void *task, struct arena *arena, struct info *ret_info)
{
	struct stage *stage = task;

	(void)arena;
	stage->status_calls++;
	*ret_info = some_info;
	return stage->answer;
}

static int op_exec(void *task, struct control_peer *peer, struct control_exec *exec,
		   struct error *error)
{
	struct stage *stage = task;

	snprintf(stage->command, sizeof(stage->command), "%s", exec->request.argv[0]);
	stage->had_input = exec->fds[0] >= 0;
	if (stage->answer < 0)
		return error_set(error, stage->answer, "no exec today");
	stage->peer = peer;
	control_set_context(peer, stage);
	fd_close(&stage->out);
	stage->out = TAKE_FD(exec->fds[1]);
	return 0;
}

static int op_attach(void *task, struct control_peer *peer, const char *action, int fds[static 3],
		     struct error *error)
{
	struct stage *stage = task;

	(void)error;
	snprintf(stage->attached, sizeof(stage->attached), "%s", action);
	stage->had_input = fds[0] >= 0;
	stage->peer = peer;
	control_started(peer, "a-x", CONTROL_TTY);
	/* ended already */
	control_result(peer, 7, NULL, NULL);
	return 0;
}

static void op_signal(void *task, struct control_peer *peer, int number)
{
	struct stage *stage = task;

	(void)peer;
	stage->signals++;
	stage->last_signal = number;
}

static void op_window(void *task, struct control_peer *peer, const struct winsize *window)
{
	(void)peer;
	((struct stage *)task)->rows = window->ws_row;
}

static void op_pause(void *task, struct control_peer *peer)
{
	(void)peer;
	((struct stage *)task)->pauses++;
}

static void op_gone(void *task, struct control_peer *peer)
{
	struct stage *stage = task;

	assert_ptr_equal(peer, stage->peer);
	assert_ptr_equal(control_context(peer), stage);
	/* late, and not heard */
	control_result(peer, 1, NULL, NULL);
	stage->gone++;
}

static int op_note(void *task, const struct control_note *note, struct error *error)
{
	struct stage *stage = task;

	snprintf(stage->noted, sizeof(stage->noted), "%s %s", note->text,
		 note->meta_count ? note->meta[0] : "-");
	return stage->answer < 0 ? error_set(error, stage->answer, "it keeps no record") : 0;
}

static int op_freeze(void *task, struct error *error)
{
	struct stage *stage = task;

	stage->freezes++;
	return stage->answer < 0 ? error_set(error, stage->answer, "it is ending") : 0;
}

static int op_thaw(void *task, struct error *error)
{
	(void)error;
	((struct stage *)task)->freezes--;
	return 0;
}

static int op_end(void *task, enum control_end by, uint64_t grace_ns, struct error *error)
{
	struct stage *stage = task;

	(void)error;
	stage->ends++;
	stage->by = by;
	stage->grace_ns = grace_ns;
	return 0;
}

static const struct control_ops ops = {
	.status = op_info,
	.exec = op_exec,
	.attach = op_attach,
	.signal = op_signal,
	.window = op_window,
	.pause = op_pause,
	.gone = op_gone,
	.note = op_note,
	.freeze = op_freeze,
	.thaw = op_thaw,
	.end = op_end,
};

static void open_client(struct stage *stage)
{
	struct error error = ERROR_NONE;

	client_close(&stage->client);
	assert_int_equal(
		client_open(stage->fixture->state, &stage->fixture->arena, &stage->client, &error),
		0);
}

static int set_up_control(void **state)
{
	struct stage *stage;
	struct error error;

	if (set_up(state) < 0)
		return -1;
	stage = *state;
	if (open_runtime(stage, RUNTIME_MAKE, &error) < 0)
		return -1;
	open_client(stage);
	return control_listen(stage->runtime.fd, ID, &ops, stage, &stage->control, &error);
}

static int join(struct stage *stage)
{
	struct error error = ERROR_NONE;
	pid_t pid = 0;
	int fd = -1;

	assert_int_equal(client_connect(&stage->client, ID, &fd, &pid, &error), 0);
	assert_int_equal(pid, getpid());
	control_step(stage->control);
	return fd;
}

static void say(struct stage *stage, int fd, unsigned type, const void *bytes, size_t length,
		const int *fds, unsigned count)
{
	assert_int_equal(message_send(fd, type, bytes, length, fds, count), 0);
	control_step(stage->control);
}

static void assert_closed(int fd)
{
	struct message message;
	struct error error = ERROR_NONE;

	assert_int_equal(client_receive(fd, soon(), &message, &error), -ECONNRESET);
}

/* The code of the next message, which is a REPLY. */
static int hear(int fd, struct error *error)
{
	struct message message;
	int result = client_receive(fd, soon(), &message, error);

	if (result == 0) {
		result = client_reply(&message, error);
		message_close_fds(&message);
	}
	return result;
}

static void test_socket(void **state)
{
	struct stage *stage = *state;
	struct control *again;
	struct error error = ERROR_NONE;
	struct stat status;
	int fd;

	assert_int_equal(fstatat(stage->runtime.fd, ID, &status, 0), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0600);
	/* a leftover of the same name is replaced */
	assert_int_equal(control_listen(stage->runtime.fd, ID, &ops, stage, &again, &error), 0);
	control_close(again);
	assert_int_equal(fstatat(stage->runtime.fd, ID, &status, 0), -1);
	assert_int_equal(client_connect(&stage->client, ID, &fd, NULL, &error), -ENOTCONN);
	assert_int_equal(control_listen(stage->runtime.fd, "../x", &ops, stage, &again, &error),
			 -EINVAL);
}

static void test_status(void **state)
{
	struct stage *stage = *state;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	struct info info;
	int CLEANUP_FD fd = join(stage);

	for (int i = 1; i < 3; i++) {
		say(stage, fd, CONTROL_STATUS, NULL, 0, NULL, 0);
		assert_int_equal(client_info(fd, soon(), &arena, &info, &error), 0);
		assert_int_equal(stage->status_calls, i);
		assert_string_equal(info.task, ID);
		assert_int_equal(info.pid, 4711);
	}
	stage->answer = -EIO;
	say(stage, fd, CONTROL_STATUS, NULL, 0, NULL, 0);
	assert_int_equal(client_info(fd, soon(), &arena, &info, &error), -EIO);
}

static void send_exec(struct stage *stage, int fd, uint32_t flags, unsigned count)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct control_request request = some_request();
	struct error error = ERROR_NONE;
	int fds[4];

	request.flags = flags;
	assert_int_equal(control_encode(&request, &blob, &error), 0);
	fds[0] = role_config(blob.data, blob.length);
	fds[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fds[2] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fds[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	say(stage, fd, CONTROL_EXEC, NULL, 0, fds, count);
	for (unsigned i = 0; i < 4; i++)
		close(fds[i]);
}

static void test_exec(void **state)
{
	struct stage *stage = *state;
	struct buffer CLEANUP_BUFFER json = { 0 }, text = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct control_signal signal = { .number = SIGINT };
	struct control_window window = { .rows = 50 };
	struct control_result result;
	struct message message;
	struct error error = ERROR_NONE;
	const char *bytes;
	size_t length;
	int CLEANUP_FD fd = join(stage);

	send_exec(stage, fd, CONTROL_INPUT | CONTROL_TTY, 4);
	assert_string_equal(stage->command, "npm");
	assert_true(stage->had_input);
	control_started(stage->peer, "a-new", CONTROL_TTY);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_STARTED);
	assert_int_equal(message.length, sizeof(struct control_started));
	say(stage, fd, CONTROL_SIGNAL, &signal, sizeof(signal), NULL, 0);
	say(stage, fd, CONTROL_WINDOW, &window, sizeof(window), NULL, 0);
	assert_int_equal(stage->last_signal, SIGINT);
	assert_int_equal(stage->rows, 50);
	say(stage, fd, CONTROL_PAUSE, NULL, 0, NULL, 0);
	assert_int_equal(stage->pauses, 1);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_PAUSED);
	buffer_text(&json, "{}\n");
	buffer_text(&text, "bawn: denied\n");
	control_result(stage->peer, 3, &json, &text);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_RESULT);
	memcpy(&result, message.bytes, sizeof(result));
	assert_int_equal(result.exit_status, 3);
	assert_int_equal(result.json_bytes, 3);
	assert_int_equal(control_read_sealed(message.fds[0], 100, &arena, &bytes, &length), 0);
	assert_string_equal(bytes, "{}\nbawn: denied\n");
	message_close_fds(&message);
	assert_closed(fd);
	assert_int_equal(stage->gone, 0);
}

/* What the client says at that moment does not hide it. */
static void test_result_crosses_a_signal(void **state)
{
	struct stage *stage = *state;
	struct control_signal signal = { .number = SIGINT };
	struct message message;
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = join(stage);

	send_exec(stage, fd, 0, 3);
	assert_int_equal(message_send(fd, CONTROL_SIGNAL, &signal, sizeof(signal), NULL, 0), 0);
	control_result(stage->peer, 3, NULL, NULL);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_RESULT);
	message_close_fds(&message);
	assert_closed(fd);
}

static void test_exec_refused(void **state)
{
	struct stage *stage = *state;
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = join(stage);

	stage->answer = -EBUSY;
	send_exec(stage, fd, 0, 3);
	assert_int_equal(hear(fd, &error), -EBUSY);
	assert_string_equal(error.message, "no exec today");
	assert_false(stage->had_input);
	assert_closed(fd);
	assert_int_equal(stage->gone, 0);
	/* flags and descriptors must agree */
	fd_close(&fd);
	fd = join(stage);
	stage->command[0] = '\0';
	send_exec(stage, fd, CONTROL_INPUT, 3);
	assert_int_equal(hear(fd, &error), -EBADMSG);
	assert_closed(fd);
	assert_string_equal(stage->command, "");
}

static void test_gone(void **state)
{
	struct stage *stage = *state;
	struct control_signal signal = { .number = 65 };
	int fd = join(stage);

	send_exec(stage, fd, 0, 3);
	close(fd);
	control_step(stage->control);
	assert_int_equal(stage->gone, 1);
	control_step(stage->control);
	assert_int_equal(stage->gone, 1);
	/* rules are kept while an action runs, too */
	fd = join(stage);
	send_exec(stage, fd, 0, 3);
	say(stage, fd, CONTROL_SIGNAL, &signal, sizeof(signal), NULL, 0);
	assert_closed(fd);
	assert_int_equal(stage->gone, 2);
	assert_int_equal(stage->signals, 0);
	close(fd);
}

static void test_attach(void **state)
{
	struct stage *stage = *state;
	struct control_attach attach = { .action = "a-one", .flags = CONTROL_INPUT };
	struct message message;
	struct error error = ERROR_NONE;
	int fds[3] = { 1, 2, 0 };
	int CLEANUP_FD fd = join(stage);

	say(stage, fd, CONTROL_ATTACH, &attach, sizeof(attach), fds, 3);
	assert_string_equal(stage->attached, "a-one");
	assert_true(stage->had_input);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_STARTED);
	assert_int_equal(client_receive(fd, soon(), &message, &error), 0);
	assert_int_equal(message.type, CONTROL_RESULT);
	assert_closed(fd);
	/* an id that is none */
	fd_close(&fd);
	fd = join(stage);
	memset(attach.action, 'a', sizeof(attach.action));
	say(stage, fd, CONTROL_ATTACH, &attach, sizeof(attach), fds, 3);
	assert_int_equal(hear(fd, &error), -EBADMSG);
	assert_closed(fd);
	assert_string_equal(stage->attached, "a-one");
}

static void test_freeze(void **state)
{
	struct stage *stage = *state;
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = join(stage);

	say(stage, fd, CONTROL_FREEZE, NULL, 0, NULL, 0);
	assert_int_equal(hear(fd, &error), 0);
	assert_int_equal(stage->freezes, 1);
	say(stage, fd, CONTROL_THAW, NULL, 0, NULL, 0);
	assert_int_equal(hear(fd, &error), 0);
	assert_int_equal(stage->freezes, 0);
	stage->answer = -EINPROGRESS;
	say(stage, fd, CONTROL_FREEZE, NULL, 0, NULL, 0);
	assert_int_equal(hear(fd, &error), -EINPROGRESS);
	assert_string_equal(error.message, "it is ending");
}

static void send_note(struct stage *stage, int fd, const void *bytes, size_t length)
{
	int CLEANUP_FD config = role_config(bytes, length);

	say(stage, fd, CONTROL_NOTE, NULL, 0, &config, 1);
}

static void test_note(void **state)
{
	struct stage *stage = *state;
	struct control_note note = { .text = "odd", .meta = some_meta, .meta_count = 2 };
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = join(stage);

	assert_int_equal(control_encode_note(&note, &blob, &error), 0);
	send_note(stage, fd, blob.data, blob.length);
	assert_int_equal(hear(fd, &error), 0);
	assert_string_equal(stage->noted, "odd turn=3");
	/* the connection stays: it may ask for more */
	stage->answer = -ENODATA;
	send_note(stage, fd, blob.data, blob.length);
	assert_int_equal(hear(fd, &error), -ENODATA);
	assert_string_equal(error.message, "it keeps no record");
	stage->noted[0] = '\0';
	send_note(stage, fd, blob.data, blob.length - 1);
	assert_int_equal(hear(fd, &error), -EBADMSG);
	blob.data[0]++;
	send_note(stage, fd, blob.data, blob.length);
	assert_int_equal(hear(fd, &error), -EPROTONOSUPPORT);
	assert_non_null(strstr(error.message, "another version"));
	assert_string_equal(stage->noted, "");
}

static void test_end(void **state)
{
	struct stage *stage = *state;
	struct control_stop stop = { .grace_ns = 5 };
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = join(stage), second = join(stage);

	say(stage, fd, CONTROL_END, &stop, sizeof(stop), NULL, 0);
	assert_int_equal(hear(fd, &error), 0);
	assert_int_equal(stage->by, CONTROL_BY_END);
	assert_int_equal(stage->grace_ns, 5);
	say(stage, second, CONTROL_STOP, &stop, sizeof(stop), NULL, 0);
	assert_int_equal(hear(second, &error), 0);
	assert_int_equal(stage->by, CONTROL_BY_STOP);
	/* harder, on the same connection */
	say(stage, fd, CONTROL_KILL, NULL, 0, NULL, 0);
	assert_int_equal(hear(fd, &error), 0);
	assert_int_equal(stage->by, CONTROL_BY_KILL);
	assert_int_equal(stage->ends, 3);
	/* both hear of the end by the end of their connections */
	control_close(stage->control);
	stage->control = NULL;
	assert_closed(fd);
	assert_closed(second);
	assert_int_equal(stage->gone, 0);
}

/* Each on a connection of its own: it is closed, and nothing was done. */
static void test_broken_rules(void **state)
{
	struct stage *stage = *state;
	struct {
		unsigned type;
		size_t length;
		unsigned fds;
	} cases[] = {
		{ 0, 0, 0 },
		{ 99, 0, 0 },
		{ CONTROL_REPLY, 4, 0 },
		{ CONTROL_STATUS, 1, 0 },
		{ CONTROL_STATUS, 0, 1 },
		{ CONTROL_EXEC, 0, 2 },
		{ CONTROL_EXEC, 8, 4 },
		{ CONTROL_ATTACH, 3, 2 },
		{ CONTROL_ATTACH, sizeof(struct control_attach), 1 },
		{ CONTROL_SIGNAL, sizeof(struct control_signal), 0 },
		{ CONTROL_WINDOW, sizeof(struct control_window), 0 },
		{ CONTROL_STOP, 0, 0 },
		{ CONTROL_KILL, 8, 0 },
		{ CONTROL_END, 4096, 0 },
		{ CONTROL_PAUSE, 0, 0 },
		{ CONTROL_NOTE, 0, 0 },
		{ CONTROL_NOTE, 0, 2 },
		{ CONTROL_NOTE, 1, 1 },
	};
	const char zeros[4096] = { 0 };
	const int fds[4] = { 0, 1, 2, 1 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int CLEANUP_FD fd = join(stage);

		say(stage, fd, cases[i].type, zeros, cases[i].length, fds, cases[i].fds);
		assert_closed(fd);
	}
	/* packets that are no messages */
	for (size_t length = 1; length < 16; length++) {
		int CLEANUP_FD fd = join(stage);

		assert_int_equal(send(fd, "\1\0\0\0\0\0\0\1xxxxxxxx", length, 0), (ssize_t)length);
		control_step(stage->control);
		assert_closed(fd);
	}
	assert_int_equal(stage->status_calls + stage->ends + stage->signals + stage->gone, 0);
	assert_string_equal(stage->command, "");
}

static void test_no_descriptor_stays(void **state)
{
	struct stage *stage = *state;
	int before, after;

	before = dup(1);
	close(before);
	for (int i = 0; i < 20; i++) {
		int fd = join(stage);

		stage->answer = i % 2 ? -EBUSY : 0;
		send_exec(stage, fd, i % 3 ? CONTROL_INPUT : 0, i % 4 ? 4 : 3);
		close(fd);
		control_step(stage->control);
		fd_close(&stage->out);
	}
	after = dup(1);
	close(after);
	assert_int_equal(before, after);
}

static void test_crowd(void **state)
{
	struct stage *stage = *state;
	int fds[CONTROL_LIMIT_PEERS], CLEANUP_FD late = -1, CLEANUP_FD later = -1;
	struct error error = ERROR_NONE;

	for (unsigned i = 0; i < CONTROL_LIMIT_PEERS; i++)
		fds[i] = join(stage);
	late = join(stage);
	/* said before it was asked, and closed */
	assert_int_equal(client_send(late, CONTROL_FREEZE, NULL, 0, NULL, 0, &error), 0);
	assert_int_equal(hear(late, &error), -EPERM);
	assert_non_null(strstr(error.message, "too many"));
	assert_closed(late);
	/* who has said nothing for a second makes room */
	usleep(1050 * 1000);
	later = join(stage);
	say(stage, later, CONTROL_FREEZE, NULL, 0, NULL, 0);
	assert_int_equal(hear(later, &error), 0);
	assert_closed(fds[0]);
	for (unsigned i = 0; i < CONTROL_LIMIT_PEERS; i++)
		close(fds[i]);
}

/* Asks without reading: neither the loop nor its memory is held. */
static void test_deaf_peer(void **state)
{
	struct stage *stage = *state;
	int CLEANUP_FD fd = join(stage);
	int result = 0;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 100000 && result == 0; i++) {
		result = message_send(fd, CONTROL_FREEZE, NULL, 0, NULL, 0);
		control_step(stage->control);
	}
	/* closed by the other end */
	assert_true(result == -EPIPE || result == -ECONNRESET);
}

static void test_foreign_namespace(void **state)
{
	struct stage *stage = *state;
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct error error = ERROR_NONE;
		int fd, code = 99;

		/* a process of a box has a user namespace of its own */
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		if (client_connect(&stage->client, ID, &fd, NULL, &error) == 0)
			code = hear(fd, &error) == -EPERM ? 0 : 1;
		_exit(code);
	}
	assert_true(child > 0);
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct pollfd entry;

		assert_true(control_poll(stage->control, &entry));
		(void)poll(&entry, 1, 10);
		control_step(stage->control);
	}
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The client's look at tasks */

static void test_find(void **state)
{
	struct stage *stage = *state;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	int CLEANUP_FD first = make_task(stage, ID);
	int CLEANUP_FD second = make_task(stage, OTHER_ID);
	const char **ids, *id;
	size_t count;

	assert_true(first >= 0 && second >= 0);
	make(stage->fixture, "state/tasks/t-ended", NULL);
	make(stage->fixture, "state/tasks/t-file", "x");
	assert_int_equal(client_tasks(&stage->client, &arena, &ids, &count, &error), 0);
	assert_int_equal(count, 2);
	assert_string_equal(ids[0], ID);
	assert_string_equal(ids[1], OTHER_ID);
	assert_int_equal(client_find(&stage->client, "t-abc", &arena, &id, &error), 0);
	assert_string_equal(id, ID);
	assert_int_equal(client_find(&stage->client, "abx", &arena, &id, &error), 0);
	assert_string_equal(id, OTHER_ID);
	assert_int_equal(client_find(&stage->client, "t-ab", &arena, &id, &error), -EEXIST);
	assert_non_null(strstr(error.message, OTHER_ID));
	assert_int_equal(client_find(&stage->client, "t-ended", &arena, &id, &error), -ENOENT);
	assert_non_null(strstr(error.message, "bawn ps"));
	assert_int_equal(client_find(&stage->client, "", &arena, &id, &error), -ENOENT);
	assert_int_equal(client_find(&stage->client, "t-", &arena, &id, &error), -ENOENT);
}

static int set_up_client(void **state)
{
	if (set_up(state) < 0)
		return -1;
	open_client(*state);
	return 0;
}

/* A supervisor of two processes, of which nothing answers. */
static pid_t start_fake(struct stage *stage, const char *id, pid_t *ret_child)
{
	int ready[2];
	pid_t pid, child = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int fd = make_task(stage, id);

		/* a test that fails leaves nobody behind */
		(void)alarm(20);
		child = fork();
		if (child == 0) {
			(void)alarm(20);
			close(fd);
			for (;;)
				pause();
		}
		(void)!write(ready[1], &child, sizeof(child));
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], ret_child, sizeof(*ret_child)), sizeof(*ret_child));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_holder(void **state)
{
	struct stage *stage = *state;
	struct process CLEANUP_HOLDER process = PROCESS_NONE;
	struct error error = ERROR_NONE;
	pid_t child, pid = start_fake(stage, ID, &child);
	int fd, status;

	assert_true(holder_exists(stage->state.tasks_fd, ID));
	assert_false(holder_exists(stage->state.tasks_fd, OTHER_ID));
	assert_int_equal(client_connect_patiently(&stage->client, ID,
						  clock_monotonic_ns() + SECOND_NS / 20, &fd, NULL,
						  &error),
			 -ENOTCONN);
	assert_int_equal(holder_find(stage->state.tasks_fd, ID, &process, &error), 0);
	assert_int_equal(process.pid, pid);
	assert_int_equal(holder_wait(process.pidfd, clock_monotonic_ns()), -ETIMEDOUT);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(holder_kill(&process, soon(), &error), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* its child is dead, though nobody's death signal did it */
	for (int i = 0; i < 500 && kill(child, 0) == 0; i++) {
		char path[64], text[256] = "";
		int CLEANUP_FD stat_fd = -1;

		snprintf(path, sizeof(path), "/proc/%d/stat", child);
		stat_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (stat_fd < 0 || read(stat_fd, text, sizeof(text) - 1) <= 0 ||
		    strstr(text, ") Z "))
			break;
		assert_true(i < 499);
		usleep(10000);
	}
	assert_false(holder_exists(stage->state.tasks_fd, ID));
	holder_close(&process);
	assert_int_equal(holder_find(stage->state.tasks_fd, ID, &process, &error), -ESRCH);
	assert_int_equal(client_connect_patiently(&stage->client, ID, soon(), &fd, NULL, &error),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runtime, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_socket, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_status, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_exec, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_result_crosses_a_signal, set_up_control,
						tear_down),
		cmocka_unit_test_setup_teardown(test_exec_refused, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_gone, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_attach, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_freeze, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_note, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_end, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_broken_rules, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_no_descriptor_stays, set_up_control,
						tear_down),
		cmocka_unit_test_setup_teardown(test_crowd, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_deaf_peer, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign_namespace, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_find, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(test_holder, set_up_client, tear_down),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
