#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/quantity.h"
#include "broker/binding.h"
#include "broker/client.h"
#include "broker/ending.h"
#include "broker/isolation.h"
#include "broker/live.h"
#include "broker/refusal.h"
#include "cli/artifact.h"
#include "cli/request.h"
#include "cli/session.h"
#include "cli/takeover.h"
#include "ipc/role.h"
#include "policy/environment.h"
#include "policy/limit.h"
#include "trace/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OPTION_IDLE = OPTION_OWN,
	OPTION_LIFETIME,
	OPTION_JSON,
	OPTION_STATUS_FD,
	OPTION_QUIET,
	OPTION_ARTIFACT,
	OPTION_ARTIFACT_DIR,
};

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--idle", "DURATION", "start: end the task when no action has run for this time", false,
	  false, OPTION_IDLE },
	{ "--lifetime", "DURATION", "start: end the task after this time in any case", false, false,
	  OPTION_LIFETIME },
	{ "--json", NULL,
	  "exec, list: print the structured result on standard output (exec: after the command's "
	  "own output)",
	  false, false, OPTION_JSON },
	{ "--status-fd", "N", "exec: write the structured result to this descriptor", false, false,
	  OPTION_STATUS_FD },
	{ "--quiet", NULL, "exec: print no denial lines", false, false, OPTION_QUIET },
	{ "--artifact", "GLOB", "exec: " ARTIFACT_HELP, true, false, OPTION_ARTIFACT },
	{ "--artifact-dir", "DIR",
	  "exec: where the copies go; default: artifacts/TASK/ACTION in the state directory", false,
	  true, OPTION_ARTIFACT_DIR },
};

enum sub { SUB_NONE, SUB_START, SUB_EXEC, SUB_END, SUB_LIST };

static const struct sub_text {
	const char *word;
	int words; /* with the id, where there is one */
	bool has_command;
	int misuse; /* exit status of wrong use: 2 may be the command's own */
} subs[] = {
	[SUB_NONE] = { "", 0, false, 2 },      [SUB_START] = { "start", 1, false, 125 },
	[SUB_EXEC] = { "exec", 2, true, 125 }, [SUB_END] = { "end", 2, false, 2 },
	[SUB_LIST] = { "list", 1, false, 2 },
};

struct task_verb {
	struct arena *arena;
	struct request request;
	enum sub sub;
	const char *id;
	int count; /* words so far */
	uint64_t idle_ns, lifetime_ns, grace_ns;
	int status_fd;
	bool json, quiet;
	struct artifact_options artifacts;
	uint64_t given; /* 1 << id of each option */
};

#define GIVEN(id) (UINT64_C(1) << (id))

_Static_assert((int)OPTION_ARTIFACT_DIR < 64, "a bit of `given` for each option");

static int set_duration(uint64_t *place, const struct option *option, const char *value,
			struct error *error)
{
	if (quantity_duration(value, place) < 0)
		return error_set(error, EINVAL,
				 "option %s %.40s: not a duration; a number with ms, s, m, h or d, "
				 "as in 30s",
				 option->name, value);
	return 0;
}

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct task_verb *task = context;

	task->given |= GIVEN(option->id);
	switch (option->id) {
	case OPTION_IDLE:
		return set_duration(&task->idle_ns, option, value, error);
	case OPTION_LIFETIME:
		return set_duration(&task->lifetime_ns, option, value, error);
	case OPTION_GRACE:
		if (request_take(&task->request, task->arena, option, value, error) < 0)
			return error->code;
		return limit_parse(LIMIT_GRACE, value, &task->grace_ns, error);
	case OPTION_JSON:
		task->json = true;
		return 0;
	case OPTION_STATUS_FD:
		return option_status_fd(value, &task->status_fd, error);
	case OPTION_QUIET:
		task->quiet = true;
		return 0;
	case OPTION_ARTIFACT:
		return artifact_add(&task->artifacts, task->arena, value, error);
	case OPTION_ARTIFACT_DIR:
		return artifact_set_path(&task->artifacts, option, value, error);
	default:
		return request_take(&task->request, task->arena, option, value, error);
	}
}

/* What the word takes; everything else is somebody else's option. */
static uint64_t allowed(enum sub sub)
{
	const uint64_t exec = GIVEN(OPTION_ENV) | GIVEN(OPTION_CWD) | GIVEN(OPTION_TIMEOUT) |
			      GIVEN(OPTION_STDIN) | GIVEN(OPTION_TTY) | GIVEN(OPTION_META);

	switch (sub) {
	case SUB_START:
		/* those of a request, less what is said of each command */
		return ((GIVEN(OPTION_OWN) - 1) & ~exec) | GIVEN(OPTION_ENV) | GIVEN(OPTION_CWD) |
		       GIVEN(OPTION_META) | GIVEN(OPTION_IDLE) | GIVEN(OPTION_LIFETIME);
	case SUB_EXEC:
		return exec | GIVEN(OPTION_STATE_DIR) | GIVEN(OPTION_JSON) |
		       GIVEN(OPTION_STATUS_FD) | GIVEN(OPTION_QUIET) | GIVEN(OPTION_ARTIFACT) |
		       GIVEN(OPTION_ARTIFACT_DIR);
	case SUB_END:
		return GIVEN(OPTION_STATE_DIR) | GIVEN(OPTION_GRACE);
	default:
		return GIVEN(OPTION_STATE_DIR) | GIVEN(OPTION_JSON);
	}
}

static int take_word(struct task_verb *task, const char *word, struct error *error)
{
	if (task->count++ == 1) {
		task->id = word;
		return 0;
	}
	for (size_t i = SUB_START; i < sizeof(subs) / sizeof(subs[0]); i++)
		if (strcmp(subs[i].word, word) == 0) {
			task->sub = (enum sub)i;
			return 0;
		}
	return error_set(error, EINVAL, "bawn task %.40s: it is start, exec, end or list", word);
}

static int check_options(const struct task_verb *task, struct error *error)
{
	uint64_t foreign = task->given & ~allowed(task->sub);

	for (size_t i = 0; foreign && i < sizeof(options) / sizeof(options[0]); i++)
		if (foreign & GIVEN(options[i].id))
			return error_set(error, EINVAL,
					 "option %s does not belong to `bawn task %s`",
					 options[i].name, subs[task->sub].word);
	return 0;
}

/* Options may stand before and behind the words. Returns where the command begins. */
static int parse(struct task_verb *task, int argc, char **argv, struct error *error)
{
	const struct sub_text *text;
	int at = 0;

	for (;;) {
		int next = options_parse(&verb_task, argc - at, argv + at, take, task, error);

		if (next < 0)
			return next;
		at += next;
		if (at >= argc || strcmp(argv[at - 1], "--") == 0 ||
		    (task->sub && task->count >= subs[task->sub].words))
			break;
		if (take_word(task, argv[at], error) < 0)
			return error->code;
	}
	text = &subs[task->sub];
	if (!task->sub)
		return error_set(error, EINVAL, "bawn task takes a word: start, exec, end or list");
	if (task->count < text->words)
		return error_set(error, EINVAL, "bawn task %s takes a task; `bawn ps` lists them",
				 text->word);
	if (text->has_command ? at >= argc : at < argc)
		return error_set(error, EINVAL,
				 text->has_command ?
					 "no command; usage: bawn task exec TASK -- COMMAND "
					 "[ARGUMENT...]" :
					 "bawn task %s takes no more words; commands are run by "
					 "`bawn task exec`",
				 text->word);
	return check_options(task, error) < 0 ? error->code : at;
}

/* What the supervisor of a new task says to the verb that started it. */
struct greeting {
	int32_t status;
	char text[ERROR_MESSAGE_BYTES * 4]; /* the id, or lines for standard error */
};

/* Of a supervisor that has to undo a start: what it removes is small. */
#define END_LIMIT_MS 10000

struct birth {
	int fd; /* owned: the verb's pipe */
	struct greeting greeting;
};

static int greet(struct birth *birth, int status, const char *text)
{
	int result;

	birth->greeting.status = status;
	(void)snprintf(birth->greeting.text, sizeof(birth->greeting.text), "%s", text);
	result = fd_write_all(birth->fd, &birth->greeting, sizeof(birth->greeting));
	fd_close(&birth->fd);
	return result;
}

static void on_ready(void *context, const char *id)
{
	/* nobody learns of the task: it ends */
	if (greet(context, 0, id) < 0)
		(void)kill(getpid(), SIGTERM);
}

/*
 * Nothing of the caller's stays open in a process that outlives it. Who is asked to end while he
 * still starts does so when he can undo it (broker/task.h takes the signal).
 */
static bool leave_caller(struct birth *birth)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	if (setsid() < 0 || null < 0 || sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
		return false;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return false;
	(void)close(null);
	if (birth->fd != 3 && dup3(birth->fd, 3, O_CLOEXEC) < 0)
		return false;
	birth->fd = 3;
	(void)signal(SIGPIPE, SIG_IGN);
	return syscall(SYS_close_range, 4, ~0U, 0) == 0;
}

static void say_refusal(struct birth *birth, enum effective_failure failure,
			const struct denial_list *denials, const struct error *error)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	buffer_text(&text, "bawn: ");
	buffer_visible(&text, error->message);
	buffer_text(&text, "\n");
	for (uint32_t i = 0; i < denials->count; i++) {
		buffer_text(&text, "bawn: ");
		denial_print(&denials->items[i], &text);
		buffer_text(&text, "\n");
	}
	(void)greet(birth, failure == EFFECTIVE_DENIED ? 126 : 125,
		    text.failed ? "bawn: out of memory\n" : text.data);
}

/* The shorter one of what a flag and a policy say; 0 is nothing. */
static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* What policies say of live tasks. */
static int bind_task(const struct task_verb *task, const struct effective *effective,
		     struct live_options *live, enum effective_failure *failure,
		     struct denial_list *denials, struct error *error)
{
	const struct binding *binding = effective->binding;
	struct tier_choice choice;
	const char *reason;

	if (!binding)
		return 0;
	live->idle_ns = shorter(task->idle_ns, binding->idle_ns);
	live->lifetime_ns = shorter(task->lifetime_ns, binding->lifetime_ns);
	*failure = EFFECTIVE_DENIED;
	if (!binding->live_rule.id)
		return isolation_pass(effective, 0, task->arena, &choice, &reason, denials, error);
	(void)denial_add(denials, DENIAL_POLICY_FLAG, binding->live_rule, "a live task", true);
	return error_set(error, EPERM, "a live task: %s:%u: tasks.live is false",
			 binding->live_rule.file, binding->live_rule.line);
}

static void serve(struct task_verb *task, struct birth *birth)
{
	static struct denial_list denials;
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct runtime CLEANUP_RUNTIME runtime = RUNTIME_NONE;
	struct recorder CLEANUP_RECORDER recorder = RECORDER_NONE;
	struct error error = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;
	struct live_options live = { .effective = &effective,
				     .meta = task->request.meta,
				     .runtime = &runtime,
				     .idle_ns = task->idle_ns,
				     .lifetime_ns = task->lifetime_ns,
				     .ready = on_ready,
				     .context = birth };
	int result;

	/* which of its commands will want a terminal is not known yet */
	task->request.flags |= POLICY_TTY;
	result =
		effective_make(&task->request, task->arena, &effective, &failure, &denials, &error);
	if (result == 0)
		result = bind_task(task, &effective, &live, &failure, &denials, &error);
	if (result == 0) {
		failure = EFFECTIVE_BROKEN;
		result = runtime_open(&effective.host, &effective.state, effective.state_is_default,
				      RUNTIME_MAKE, task->arena, &runtime, &error);
	}
	if (result == 0) {
		runtime_reap(&runtime, &effective.state);
		/* a directory that we stand in could not be unmounted or removed */
		if (chdir("/") < 0)
			result = error_errno(&error, errno, "changing to /");
	}
	if (result == 0)
		result = request_record(&effective, NULL, &recorder, &live.sink, &error);
	if (result == 0) {
		request_tell_unlanded(&effective);
		request_tell_more(&effective);
		result = live_serve(&live, &error);
	}
	if (result < 0 && birth->fd >= 0)
		say_refusal(birth, failure, &denials, &error);
	if (result < 0 && failure == EFFECTIVE_DENIED)
		refusal_record(&effective, &task->request, NULL, &denials,
			       &(struct result){ .end = RESULT_DENIED }, task->arena);
	else if (result == 0)
		request_sign(&effective, &recorder);
}

/*
 * Who is told that nothing was started finds nothing of it: the supervisor, a child of ours that
 * nobody has waited for, ends first. One that hangs is killed, and the next start removes the rest.
 */
static void await_end(pid_t supervisor)
{
	int CLEANUP_FD pidfd = (int)syscall(SYS_pidfd_open, supervisor, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0 || poll(&end, 1, END_LIMIT_MS) != 1)
		(void)kill(supervisor, SIGKILL);
	while (waitpid(supervisor, NULL, 0) < 0 && errno == EINTR)
		;
}

static int hear(int fd, pid_t supervisor)
{
	struct greeting greeting = { 0 };
	ssize_t length = fd_read_all(fd, &greeting, sizeof(greeting));

	if (length != (ssize_t)sizeof(greeting)) {
		complain(length < 0 ? "the word of the task's supervisor could not be read" :
				      "the supervisor of the task ended during its start");
		/* a task that nobody knows of ends */
		(void)kill(supervisor, SIGTERM);
		await_end(supervisor);
		return 125;
	}
	greeting.text[sizeof(greeting.text) - 1] = '\0';
	if (greeting.status) {
		(void)fd_write_all(2, greeting.text, strlen(greeting.text));
		await_end(supervisor);
		return greeting.status == 126 ? 126 : 125;
	}
	if (printf("%s\n", greeting.text) < 0 || fflush(stdout) != 0) {
		complain("the task's id could not be printed; `bawn ps` tells it");
		return 125;
	}
	return 0;
}

/* The supervisor is a process of its own from the first moment: its state is nobody else's. */
static int start(struct task_verb *task)
{
	struct birth birth = { .fd = -1 };
	struct error error = ERROR_NONE;
	int ends[2];
	pid_t child;
	int status;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		(void)error_errno(&error, errno, "making a pipe to the task's supervisor");
		complain(error.message);
		return 125;
	}
	child = fork();
	if (child == 0) {
		birth.fd = ends[1];
		if (leave_caller(&birth))
			serve(task, &birth);
		else
			(void)greet(&birth, 125,
				    "bawn: the task's supervisor could not leave the caller's "
				    "session and close its descriptors\n");
		_exit(0);
	}
	if (child < 0) {
		(void)error_errno(&error, errno, "making the task's supervisor");
		complain(error.message);
	}
	(void)close(ends[1]);
	status = child < 0 ? 125 : hear(ends[0], child);
	(void)close(ends[0]);
	return status;
}

/* NAME passes the caller's value, NAME=VALUE sets one, as for run. */
static int add_variable(struct control_request *request, const char **place, const char *given,
			struct arena *arena, struct error *error)
{
	size_t length = strcspn(given, "=");
	char *name = arena_copy_bytes(arena, given, length);
	const char *value;

	if (!name || !environment_is_name(name))
		return error_set(error, EINVAL,
				 "--env %.100s: not a variable's name; --env NAME or NAME=VALUE",
				 name ? name : "");
	value = given[length] ? given + length + 1 : getenv(name);
	if (!value)
		return error_set(error, EINVAL, "--env %s: the caller has no such variable", name);
	place[request->variable_count++] = arena_format(arena, "%s=%s", name, value);
	return 0;
}

/* As for run: where a person waits, and the terminal can erase what was shown. */
static bool wants_progress(const struct task_verb *task, const char *term)
{
	return !task->quiet && !(task->json && isatty(1)) && !task->request.tty && isatty(2) &&
	       term && term[0] && strcmp(term, "dumb") != 0;
}

static int fill_request(struct task_verb *task, int argc, char **argv,
			struct control_request *request, struct error *error)
{
	const char **variables =
		arena_array(task->arena, task->request.environment_count + 2, sizeof(char *));
	const char *term = getenv("TERM"), *path;
	int result;

	*request = (struct control_request){ .argv = (const char *const *)argv,
					     .argc = (size_t)argc,
					     .cwd = task->request.cwd ? task->request.cwd : "",
					     .variables = variables,
					     .meta = task->request.meta,
					     .meta_count = task->request.meta_count,
					     .artifacts = task->artifacts.patterns,
					     .artifact_count = task->artifacts.count,
					     .artifact_path = "",
					     .timeout_ns = task->request.timeout_ns };
	if (!variables)
		return error_errno(error, ENOMEM, "making the request");
	/* by this process's own current directory, which the supervisor does not have */
	result = artifact_find_path(&task->artifacts, task->arena, &path, error);
	if (result < 0)
		return result;
	if (path)
		request->artifact_path = path;
	/* the terminal is this one, and not that of whoever started the task */
	if (task->request.tty && term)
		result = add_variable(request, variables, "TERM", task->arena, error);
	for (size_t i = 0; i < task->request.environment_count && result == 0; i++)
		result = add_variable(request, variables, task->request.environment[i], task->arena,
				      error);
	if (arena_failed(task->arena))
		return error_errno(error, ENOMEM, "making the request");
	if (task->request.input || task->request.tty)
		request->flags |= CONTROL_INPUT;
	if (task->json || task->status_fd >= 0)
		request->flags |= CONTROL_EVIDENCE;
	if (wants_progress(task, term))
		request->flags |= CONTROL_PROGRESS;
	if (task->request.tty) {
		request->flags |= CONTROL_TTY;
		(void)session_window(&request->window);
	}
	return result;
}

static int send_request(int fd, const struct control_request *request, struct error *error)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	int CLEANUP_FD config = -1;
	int result = control_encode(request, &blob, error);

	if (result < 0)
		return result;
	config = role_config(blob.data, blob.length);
	if (config < 0)
		return error_errno(error, config, "making the request");
	return client_send(fd, CONTROL_EXEC, NULL, 0, (int[]){ config, 1, 2, 0 },
			   request->flags & CONTROL_INPUT ? 4 : 3, error);
}

static int exec_command(struct task_verb *task, int argc, char **argv)
{
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	struct session session = { .signal_fd = -1,
				   .input = -1,
				   .is_exec = true,
				   .is_quiet = task->quiet,
				   .has_json = task->json,
				   .status_fd = task->status_fd };
	struct control_request request;
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = -1;
	const char *id;
	int result;

	if (takeover_open(task->request.state_path, task->id, task->arena, &client, &id) != 0)
		return 125;
	result = fill_request(task, argc, argv, &request, &error);
	if (result == 0)
		result = client_connect(&client, id, &fd, NULL, &error);
	session.fd = fd;
	session.has_progress = result == 0 && (request.flags & CONTROL_PROGRESS);
	if (result == 0)
		result = session_begin(&session, &error);
	if (result == 0)
		result = send_request(fd, &request, &error);
	if (result < 0) {
		complain(error.message);
		fd_close(&session.signal_fd);
		return 125;
	}
	return session_run(&session);
}

static int end(struct task_verb *task)
{
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	const char *id;
	int status = takeover_open(task->request.state_path, task->id, task->arena, &client, &id);

	if (status)
		return status;
	return takeover_end(
		&client, &id, 1,
		&(struct ending_options){ .how = ENDING_END, .grace_ns = task->grace_ns });
}

static int task_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct task_verb task = { .arena = &arena, .status_fd = -1 };
	struct error error = ERROR_NONE;
	int first = parse(&task, argc, argv, &error);

	if (first < 0) {
		complain(error.message);
		return subs[task.sub].misuse;
	}
	switch (task.sub) {
	case SUB_START:
		return start(&task);
	case SUB_EXEC:
		return exec_command(&task, argc - first, argv + first);
	case SUB_END:
		return end(&task);
	default:
		return ps_print(task.request.state_path, task.json);
	}
}

const struct verb verb_task = {
	.name = "task",
	.synopsis = "start | exec TASK -- COMMAND [ARGUMENT...] | end TASK | list",
	.summary = "Keep one box for many commands: start it, run in it, end it.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"of exec, as of run; of start, 0 the task runs and its id was printed, 125 and 126 "
		"as of run; of end and list, 0 done, 1 no such task or it has not ended, 2 wrong "
		"use, 125 bawn itself failed",
	.run = task_verb,
};
