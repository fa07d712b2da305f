/*
 * Verbs and their options as tables: parser, help, man page and completion come from the same
 * rows. A verb's file brings its table; verbs.c lists the verbs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buffer;
struct error;

struct option {
	const char *name;     /* "--read" */
	const char *argument; /* "PATH", NULL for a switch */
	const char *help;     /* one sentence, lower case, no full stop */
	bool many;	      /* may be given more than once */
	bool widens;	      /* refused inside of a box */
	int id;		      /* the verb's own enumerator */
};

struct verb {
	const char *name;     /* "run"; of a sub-verb with its verb: "trace verify" */
	const char *synopsis; /* what follows the options: "-- COMMAND [ARGUMENT...]" or "" */
	const char *summary;  /* one line */
	const struct option *options;
	size_t option_count;
	const struct verb *const *subs; /* verbs below this one, which then has no options */
	size_t sub_count;
	const char *exit_status;	   /* one paragraph */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit status */
};

extern const struct verb *const verbs[];
extern const size_t verb_count;

/* All verbs, each followed by those below it; NULL behind the last. */
const struct verb *verb_at(size_t index);

/* By the whole name; NULL where there is none. */
const struct verb *verb_find(const char *name);

/*
 * "; did you mean WORD?" for a wrong word among the verbs (below a verb, where one is given), or
 * ";" where none is near. In memory of the function's own, until its next call.
 */
const char *verb_hint(const struct verb *above, const char *word);

/* The last word of its name, as it is typed. */
const char *verb_word(const struct verb *verb);

/* Runs the verb below that argv[1] names; wrong use is told, and 2. */
int verb_run_sub(const struct verb *verb, int argc, char **argv);

/*
 * Parses up to "--" or the first argument that is no option, calling take() for each.
 * Returns the index of the first argument behind the options ("--" skipped), or a negative errno
 * with a message that names the option and the remedy. take() returns 0 or a negative errno with
 * the error set. Values may follow as "--name VALUE" or "--name=VALUE".
 */
int options_parse(const struct verb *verb, int argc, char **argv,
		  int (*take)(void *context, const struct option *option, const char *value,
			      struct error *error),
		  void *context, struct error *error);

/*
 * For verbs whose arguments are no command: options that stand behind them come first, up to "--".
 */
void options_first(const struct verb *verb, int argc, char **argv);

/* The value of --status-fd: an open descriptor from 3 on, which becomes CLOEXEC. Borrowed. */
int option_status_fd(const char *value, int *ret_fd, struct error *error);

/* Usage and options of a verb, as `bawn help VERB` prints them. */
void options_help(const struct verb *verb, struct buffer *buffer);

/* The one form in which programs say what went wrong: "bawn: ...", control characters escaped. */
void complain(const char *message);

/* Prints on standard output, at once, what stands in the buffer; print_finish() tells a failure. */
void print_buffer(const struct buffer *text);

/* The verb's exit status, or 125 after a complaint where not all that it printed was written. */
int print_finish(int status);
