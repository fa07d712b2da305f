/*
 * bawn: the command. Finds the verb; everything else is the verb's (src/cli).
 */
#include "base/error.h"
#include "base/fd.h"
#include "base/prefault.h"
#include "cli/options.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Paths and lists of fixed size lie on it; 96 KiB are enough today. */
#define STACK_BYTES (256 * 1024)
/* What a start writes to. */
#define STACK_USED_BYTES (48 * 1024)

/* The forms that people try first. */
static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static const char *alias(const char *word)
{
	return asks_help(word) ? "help" : word;
}

/* Running out of it half way would leave things behind. */
static bool has_stack(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_BYTES;
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	if (fd_reserve_standard() < 0) {
		complain("descriptors 0, 1 and 2 cannot be opened on /dev/null where they are "
			 "closed");
		return 125;
	}
	if (!has_stack()) {
		complain("the limit of the stack is too small; at least: ulimit -s 256");
		return 125;
	}
	prefault_program();
	prefault_stack(STACK_USED_BYTES);
	/* a caller that ignores SIGCHLD would keep us from waiting for our children */
	(void)signal(SIGCHLD, SIG_DFL);
	/* a limit on file sizes is an error with a name, not a death without a word */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		complain("no verb; `bawn help` lists them");
		return 2;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("bawn " BAWN_VERSION);
		return print_finish(0);
	}
	verb = verb_find(alias(argv[1]));
	if (!verb) {
		char text[ERROR_MESSAGE_BYTES];

		(void)snprintf(text, sizeof(text), "unknown verb %.100s%s `bawn help` lists them",
			       argv[1], verb_hint(NULL, argv[1]));
		complain(text);
		return 2;
	}
	/* `bawn run --help` is `bawn help run` */
	if (argc == 3 && asks_help(argv[2]))
		return verb_find("help")->run(2, (char *[]){ "help", argv[1], NULL });
	return print_finish(verb->run(argc - 1, argv + 1));
}
