#include "cli/session.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/client.h"
#include "cli/options.h"
#include "ipc/message.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* Who asks that often wants to get rid of us, whatever the supervisor does. */
#define PATIENCE 3
#define INPUT_BYTES 4096
/* A supervisor that does not answer does not keep a person from ^Z. */
#define PAUSE_MS 300
/* Nor from ^C while the action has not begun, as far as we know. */
#define LEAVE_MS 3000

/* ^P and ^Q, one after the other: the keys that detach. */
enum { KEY_DETACH_FIRST = 0x10, KEY_DETACH = 0x11 };

enum { WATCH_CONNECTION, WATCH_SIGNALS, WATCH_INPUT, WATCH_COUNT };

struct talk {
	struct session *session;
	int asked;	 /* signals that asked to end */
	int asked_first; /* the first of them */
	bool is_started; /* the action runs */
	bool has_tty;	 /* a terminal of its own */
	bool is_over;
	bool is_pausing;       /* asked to stop (^Z): as soon as the terminal is clean */
	bool has_detach_first; /* held back: the first of the keys */
	char action[CONTROL_ID_BYTES];
	char pending[INPUT_BYTES + 1]; /* for the action */
	size_t pending_start, pending_end;
	int status;
};

/* The modes of the caller's terminal before us; one terminal per process. */
static struct termios saved_modes;
static bool has_saved_modes;

static void restore_terminal(void)
{
	if (has_saved_modes)
		(void)tcsetattr(0, TCSADRAIN, &saved_modes);
	has_saved_modes = false;
}

/* As cfmakeraw(3): every key is a byte for the action's own terminal. */
static void set_raw(void)
{
	static bool is_registered;
	struct termios modes;

	if (has_saved_modes || tcgetattr(0, &modes) < 0 || tcgetpgrp(0) != getpgrp())
		return;
	saved_modes = modes;
	cfmakeraw(&modes);
	if (!is_registered)
		is_registered = atexit(restore_terminal) == 0;
	has_saved_modes = tcsetattr(0, TCSADRAIN, &modes) == 0;
}

bool session_window(struct winsize *ret_window)
{
	for (int fd = 0; fd <= 2; fd++)
		if (ioctl(fd, TIOCGWINSZ, ret_window) == 0)
			return true;
	return false;
}

int session_begin(struct session *session, struct error *error)
{
	static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct sigaction before;

		if (taken[i] == SIGTSTP && !session->has_progress)
			continue;
		/* what the caller ignores (nohup) stays so */
		if (sigaction(taken[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(&set, taken[i]);
	}
	session->signal_fd = -1;
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->signal_fd < 0)
		return error_errno(error, errno, "watching for signals");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	return 0;
}

static void send_window(const struct talk *talk)
{
	struct control_window window;
	struct error error;
	struct winsize size;

	if (!talk->is_started || !talk->has_tty || !session_window(&size))
		return;
	window = (struct control_window){ .rows = size.ws_row,
					  .columns = size.ws_col,
					  .x_pixels = size.ws_xpixel,
					  .y_pixels = size.ws_ypixel };
	(void)client_send(talk->session->fd, CONTROL_WINDOW, &window, sizeof(window), NULL, 0,
			  &error);
}

static void finish(struct talk *talk, int status)
{
	talk->is_over = true;
	talk->status = status;
}

static void detach(struct talk *talk)
{
	char text[128];

	restore_terminal();
	(void)snprintf(text, sizeof(text), "detached; %s goes on", talk->action);
	if (!talk->session->is_quiet)
		complain(text);
	finish(talk, 0);
}

/* Until somebody continues us. By the signal itself: nobody could continue an orphaned group. */
static void stop(struct talk *talk)
{
	sigset_t set;

	talk->is_pausing = false;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	(void)raise(SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void pause_action(struct talk *talk)
{
	struct error error;

	if (!talk->is_started ||
	    client_send(talk->session->fd, CONTROL_PAUSE, NULL, 0, NULL, 0, &error) < 0)
		stop(talk);
	else
		talk->is_pausing = true;
}

/* What is attached outlives us: only keys of the terminal are for it. */
static bool is_passed_on(const struct talk *talk, int number)
{
	return talk->session->is_exec ||
	       (talk->is_started && (number == SIGINT || number == SIGQUIT));
}

static void on_signal(struct talk *talk)
{
	struct signalfd_siginfo info;
	struct control_signal sent;
	struct error error;

	if (read(talk->session->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		send_window(talk);
		return;
	}
	if (info.ssi_signo == SIGTSTP) {
		pause_action(talk);
		return;
	}
	sent.number = (int)info.ssi_signo;
	if (!talk->asked++)
		talk->asked_first = sent.number;
	if (talk->asked >= PATIENCE || (talk->asked > 1 && !talk->is_started) ||
	    !is_passed_on(talk, sent.number)) {
		finish(talk, 128 + sent.number);
		return;
	}
	/* whether the action runs already is the supervisor's to say: else this ends its start */
	(void)client_send(talk->session->fd, CONTROL_SIGNAL, &sent, sizeof(sent), NULL, 0, &error);
}

static void on_started(struct talk *talk, const struct message *message)
{
	struct control_started started;

	if (message->length != sizeof(started) || talk->is_started) {
		complain("the supervisor's answer is none");
		finish(talk, 125);
		return;
	}
	memcpy(&started, message->bytes, sizeof(started));
	started.action[sizeof(started.action) - 1] = '\0';
	memcpy(talk->action, started.action, sizeof(talk->action));
	talk->is_started = true;
	talk->has_tty = (started.flags & CONTROL_TTY) != 0;
	if (talk->has_tty)
		set_raw();
	/* it may have changed since the request */
	send_window(talk);
}

/* False, after a complaint, where a result that was asked for is lost. */
static bool print_details(const struct session *session, const char *bytes,
			  const struct control_result *result)
{
	const char *json = bytes;
	size_t length = (size_t)result->json_bytes;
	bool is_whole = true;

	if (result->text_bytes && !session->is_quiet)
		(void)fd_write_all(2, bytes + length, (size_t)result->text_bytes);
	if (session->has_json && fd_write_all(1, json, length) < 0) {
		complain("the structured result could not be written to standard output");
		is_whole = false;
	}
	/* the newline before it is for the stream of a command that ended in mid-line */
	if (length && json[0] == '\n') {
		json++;
		length--;
	}
	if (session->status_fd >= 0 && fd_write_all(session->status_fd, json, length) < 0) {
		complain("the structured result could not be written to --status-fd");
		is_whole = false;
	}
	return is_whole;
}

/* The same for details that cannot be read. */
static bool take_details(const struct session *session, const struct message *message,
			 const struct control_result *result)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const char *bytes;
	size_t length;

	if (message->fd_count == 0)
		return true;
	if (control_read_sealed(message->fds[0], CONTROL_LIMIT_BLOB_BYTES, &arena, &bytes,
				&length) == 0 &&
	    result->json_bytes <= length && result->text_bytes == length - result->json_bytes)
		return print_details(session, bytes, result);
	complain("the details of the result could not be read");
	return !session->has_json && session->status_fd < 0;
}

static void on_result(struct talk *talk, const struct message *message)
{
	struct control_result result;

	restore_terminal();
	if (message->length != sizeof(result)) {
		complain("the supervisor's answer is none");
		finish(talk, 125);
		return;
	}
	memcpy(&result, message->bytes, sizeof(result));
	if (!talk->is_started && talk->asked)
		finish(talk, 128 + talk->asked_first);
	else
		finish(talk, result.exit_status <= 255 ? (int)result.exit_status : 125);
	if (!take_details(talk->session, message, &result) && !talk->status)
		talk->status = 125;
}

static void on_message(struct talk *talk)
{
	struct message message;
	struct error error = ERROR_NONE;

	/* it is there, so there is nothing to wait for */
	if (client_receive(talk->session->fd, 0, &message, &error) < 0) {
		restore_terminal();
		complain(talk->is_started ? "the task has ended, and the action with it" :
					    error.message);
		finish(talk, 125);
		return;
	}
	if (message.type == CONTROL_STARTED) {
		on_started(talk, &message);
	} else if (message.type == CONTROL_PAUSED && talk->session->has_progress) {
		/* late: we have stopped without it, and go on */
		if (talk->is_pausing)
			stop(talk);
	} else if (message.type == CONTROL_RESULT) {
		on_result(talk, &message);
	} else {
		restore_terminal();
		(void)client_reply(&message, &error);
		complain(error.message[0] ? error.message : "the supervisor's answer is none");
		finish(talk, 125);
	}
	message_close_fds(&message);
}

/* Takes the keys that detach out of what was read. True when both were there. */
static bool take_keys(struct talk *talk, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (talk->has_detach_first && bytes[i] == KEY_DETACH)
			return true;
		if (talk->has_detach_first)
			talk->pending[talk->pending_end++] = KEY_DETACH_FIRST;
		talk->has_detach_first = bytes[i] == KEY_DETACH_FIRST;
		if (!talk->has_detach_first)
			talk->pending[talk->pending_end++] = bytes[i];
	}
	return false;
}

static void put_input(struct talk *talk)
{
	size_t length = talk->pending_end - talk->pending_start;
	ssize_t count =
		length ? write(talk->session->input, talk->pending + talk->pending_start, length) :
			 0;

	if (count < 0 && errno != EAGAIN && errno != EINTR)
		/* the action does not read any more; its output goes on */
		fd_close(&talk->session->input);
	if (count > 0)
		talk->pending_start += (size_t)count;
	if (count < 0 || talk->pending_start < talk->pending_end)
		return;
	talk->pending_start = talk->pending_end = 0;
}

static void on_input(struct talk *talk)
{
	/* a byte that was held back may come out with them */
	char bytes[INPUT_BYTES / 2];
	ssize_t count;

	if (talk->pending_end) {
		put_input(talk);
		return;
	}
	count = read(0, bytes, sizeof(bytes));
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count > 0 && !take_keys(talk, bytes, (size_t)count)) {
		put_input(talk);
		return;
	}
	detach(talk);
}

/* Nothing came in the time that we wait at most. */
static void give_up(struct talk *talk)
{
	if (talk->is_pausing)
		stop(talk);
	else
		finish(talk, 128 + talk->asked_first);
}

static void step(struct talk *talk)
{
	bool waits_for_room = talk->pending_end != 0;
	int most_ms = talk->is_pausing		       ? PAUSE_MS :
		      talk->asked && !talk->is_started ? LEAVE_MS :
							 -1;
	struct pollfd watches[WATCH_COUNT] = {
		[WATCH_CONNECTION] = { .fd = talk->session->fd, .events = POLLIN },
		[WATCH_SIGNALS] = { .fd = talk->session->signal_fd, .events = POLLIN },
		[WATCH_INPUT] = { .fd = talk->session->input < 0 || !talk->is_started ? -1 :
					waits_for_room ? talk->session->input :
							 0,
				  .events = waits_for_room ? POLLOUT : POLLIN },
	};
	int count = poll(watches, WATCH_COUNT, most_ms);

	if (count == 0)
		give_up(talk);
	if (count <= 0) {
		if (count == 0 || errno == EINTR)
			return;
		restore_terminal();
		complain("waiting for the supervisor's answer failed");
		finish(talk, 125);
		return;
	}
	/* that it has started comes before a signal for it */
	if (watches[WATCH_CONNECTION].revents)
		on_message(talk);
	else if (watches[WATCH_INPUT].revents)
		on_input(talk);
	if (!talk->is_over && watches[WATCH_SIGNALS].revents)
		on_signal(talk);
}

int session_run(struct session *session)
{
	struct talk talk = { .session = session };

	while (!talk.is_over)
		step(&talk);
	restore_terminal();
	fd_close(&session->signal_fd);
	fd_close(&session->input);
	return talk.status;
}
