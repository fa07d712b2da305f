#include "cli/takeover.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/client.h"
#include "cli/session.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_NO_STDIN, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--no-stdin", NULL, "only watch: the action gets no input from here", false, false,
	  OPTION_NO_STDIN },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct attaching {
	const char *state_path;
	bool is_watching;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct attaching *attaching = context;

	if (option->id == OPTION_NO_STDIN) {
		attaching->is_watching = true;
		return 0;
	}
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	attaching->state_path = value;
	return 0;
}

/*
 * Input goes by way of us and a pipe, so that the keys that detach can be taken out of it; output
 * comes straight from the supervisor.
 */
static int send_request(int fd, const char *action, struct session *session, struct error *error)
{
	struct control_attach attach = { .flags = session->input >= 0 ? CONTROL_INPUT : 0 };
	int ends[2] = { -1, -1 };
	int result = 0;

	memcpy(attach.action, action, strlen(action));
	if (session->input >= 0 && pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(error, errno, "making a pipe");
	session->input = ends[1];
	if (ends[1] >= 0 && fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
		result = error_errno(error, errno, "making a pipe");
	if (result == 0)
		result = client_send(fd, CONTROL_ATTACH, &attach, sizeof(attach),
				     (int[]){ 1, 2, ends[0] }, ends[0] >= 0 ? 3 : 2, error);
	fd_close(&ends[0]);
	return result;
}

static int attach(const struct attaching *attaching, const char *word, const char *action)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	struct session session = { .signal_fd = -1,
				   .input = attaching->is_watching ? -1 : 0,
				   .status_fd = -1 };
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = -1;
	const char *id;
	int status = takeover_open(attaching->state_path, word, &arena, &client, &id), result;

	if (status)
		return status;
	result = client_connect_patiently(&client, id, clock_monotonic_ns() + CLIENT_YOUNG_NS, &fd,
					  NULL, &error);
	session.fd = fd;
	if (result == 0)
		result = session_begin(&session, &error);
	if (result == 0)
		result = send_request(fd, action, &session, &error);
	if (result < 0) {
		complain(error.message);
		fd_close(&session.signal_fd);
		fd_close(&session.input);
		return 1;
	}
	return session_run(&session);
}

static int attach_verb(int argc, char **argv)
{
	struct attaching attaching = { .state_path = NULL };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_attach, argc, argv, take, &attaching, &error);
	const char *action = "";

	if (first >= 0 && (argc - first < 1 || argc - first > 2))
		first = error_set(&error, EINVAL,
				  "bawn attach takes a task, and one of its actions where it has "
				  "several; `bawn ps` lists them");
	if (first >= 0 && argc - first == 2) {
		action = argv[first + 1];
		if (!control_is_id(action, 'a'))
			first = error_set(&error, EINVAL, "%.40s is no action's id, as in a-...",
					  action);
	}
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	return attach(&attaching, argv[first], action);
}

const struct verb verb_attach = {
	.name = "attach",
	.synopsis = "TASK [ACTION]",
	.summary = "Join a running action; ^P^Q, or the end of the input (^D), detaches.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 detached; the action's own where it ended meanwhile; 1 no such task or "
		       "action; 2 wrong use; 125 bawn itself failed",
	.run = attach_verb,
};
