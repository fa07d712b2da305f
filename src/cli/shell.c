#include "cli/verbs.h"

#include "base/arena.h"
#include "base/error.h"
#include "cli/request.h"
#include "workspace/host.h"

#include <string.h>

enum { OPTION_TASK = OPTION_OWN };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--task", "TASK", "in the box of this live task, instead of one of its own", false, false,
	  OPTION_TASK },
};

struct shell {
	struct arena *arena;
	const char **argv; /* of the verb that does the work */
	size_t count;
	const char *task;
};

static void push(struct shell *shell, const char *word)
{
	const char **grown =
		arena_push(shell->arena, shell->argv, shell->count, sizeof(*shell->argv));

	if (!grown)
		return;
	shell->argv = grown;
	shell->argv[shell->count++] = word;
}

/* Options are judged where the work is done. */
static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct shell *shell = context;

	(void)error;
	if (option->id == OPTION_TASK) {
		shell->task = value;
		return 0;
	}
	if (option->id == OPTION_TTY)
		return 0;
	push(shell, option->name);
	if (option->argument)
		push(shell, value);
	return 0;
}

/* The caller's shell is the password database's, as an agent could set a variable. */
static const char *shell_of(struct arena *arena, struct error *error)
{
	struct caller host;

	if (host_gather(arena, &host, error) < 0)
		return NULL;
	return host.shell && host.shell[0] == '/' ? host.shell : "/bin/sh";
}

static int shell_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct shell shell = { .arena = &arena };
	struct error error = ERROR_NONE;
	const char *program = NULL;
	int first;

	/* a place for the verb and the word behind it */
	push(&shell, "");
	push(&shell, "--tty");
	first = options_parse(&verb_shell, argc, argv, take, &shell, &error);
	if (first >= 0 && first == argc)
		program = shell_of(&arena, &error);
	if (first < 0 || (first == argc && !program)) {
		complain(error.message);
		return 125;
	}
	if (shell.task) {
		push(&shell, "exec");
		push(&shell, shell.task);
	}
	push(&shell, "--");
	if (program)
		push(&shell, program);
	for (int i = first; i < argc; i++)
		push(&shell, argv[i]);
	push(&shell, NULL);
	if (arena_failed(&arena)) {
		complain("out of memory");
		return 125;
	}
	shell.argv[0] = shell.task ? "task" : "run";
	return (shell.task ? verb_task : verb_run)
		.run((int)shell.count - 1, (char **)(uintptr_t)shell.argv);
}

const struct verb verb_shell = {
	.name = "shell",
	.synopsis = "[-- COMMAND [ARGUMENT...]]",
	.summary = "Open a shell inside of the wall, on a terminal of its own.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "as of run",
	.run = shell_verb,
};
