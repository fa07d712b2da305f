#include "cli/options.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "base/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Of a verb; a longer wrong word is no slip. */
#define OPTION_LIMIT 96u
#define OPTION_BYTES 64u

void complain(const char *message)
{
	static const char out_of_memory[] = "bawn: out of memory\n";
	struct buffer CLEANUP_BUFFER line = { 0 };

	buffer_text(&line, "bawn: ");
	buffer_visible(&line, message);
	buffer_text(&line, "\n");
	if (line.data && !line.failed)
		(void)fd_write_all(2, line.data, line.length);
	else
		(void)fd_write_all(2, out_of_memory, sizeof(out_of_memory) - 1);
}

void print_buffer(const struct buffer *text)
{
	if (text->failed)
		complain("the output could not be made: out of memory");
	else
		(void)fwrite(text->data, 1, text->length, stdout);
	(void)fflush(stdout);
}

int print_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	complain("what was printed could not be written to standard output");
	return 125;
}

int option_status_fd(const char *value, int *ret_fd, struct error *error)
{
	uint64_t number;

	if (quantity_count(value, &number) < 0 || number < 3 || number > 1 << 20)
		return error_set(error, EINVAL,
				 "option --status-fd %.20s: a descriptor number from 3 on", value);
	if (fcntl((int)number, F_GETFD) < 0)
		return error_set(error, EBADF, "option --status-fd %s: that descriptor is not open",
				 value);
	(void)fcntl((int)number, F_SETFD, FD_CLOEXEC);
	*ret_fd = (int)number;
	return 0;
}

static const struct option *find(const struct verb *verb, const char *text, size_t length)
{
	for (size_t i = 0; i < verb->option_count; i++)
		if (strlen(verb->options[i].name) == length &&
		    strncmp(verb->options[i].name, text, length) == 0)
			return &verb->options[i];
	return NULL;
}

static const char *nearest_option(const struct verb *verb, const char *text, size_t length)
{
	const char *names[OPTION_LIMIT];
	char word[OPTION_BYTES];
	size_t count = 0;

	for (; count < verb->option_count && count < OPTION_LIMIT; count++)
		names[count] = verb->options[count].name;
	(void)snprintf(word, sizeof(word), "%.*s", (int)length, text);
	return nearest_word(word, names, count);
}

static int unknown(const struct verb *verb, const char *text, struct error *error)
{
	const char *nearest = nearest_option(verb, text, strcspn(text, "="));

	return error_set(error, EINVAL, "unknown option %s; %s%s%s`bawn help %s` lists them", text,
			 nearest ? "did you mean " : "", nearest ? nearest : "",
			 nearest ? "? " : "", verb->name);
}

/* The i-th option may be given once unless its row says otherwise. */
static bool given_before(const struct verb *verb, const struct option *option, int argc,
			 char **argv)
{
	size_t length = strlen(option->name);

	for (int i = 1; i < argc; i++) {
		const struct option *other = find(verb, argv[i], strcspn(argv[i], "="));

		if (strncmp(argv[i], option->name, length) == 0 &&
		    (argv[i][length] == '\0' || argv[i][length] == '='))
			return true;
		/* the value of another option may look like this one */
		if (other && other->argument && !strchr(argv[i], '='))
			i++;
	}
	return false;
}

void options_first(const struct verb *verb, int argc, char **argv)
{
	int front = 1;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct option *option = find(verb, argv[i], strcspn(argv[i], "="));
		int words =
			option && option->argument && !strchr(argv[i], '=') && i + 1 < argc ? 2 : 1;

		if (argv[i][0] != '-' || !argv[i][1])
			continue;
		/* what it lacks must not become what stood before it */
		if (words == 1 && option && option->argument && !strchr(argv[i], '='))
			return;
		for (int end = i + words; i < end; i++) {
			char *word = argv[i];

			memmove(&argv[front + 1], &argv[front],
				(size_t)(i - front) * sizeof(*argv));
			argv[front++] = word;
		}
		i--;
	}
}

int options_parse(const struct verb *verb, int argc, char **argv,
		  int (*take)(void *context, const struct option *option, const char *value,
			      struct error *error),
		  void *context, struct error *error)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-') {
		size_t length = strcspn(argv[i], "=");
		const char *value = argv[i][length] ? argv[i] + length + 1 : NULL;
		const struct option *option;
		int at = i, result;

		if (strcmp(argv[i], "--") == 0)
			return i + 1;
		/* a switch may have its value in its name */
		option = value ? find(verb, argv[i], strlen(argv[i])) : NULL;
		value = option ? NULL : value;
		if (!option)
			option = find(verb, argv[i], length);
		if (!option)
			return unknown(verb, argv[i], error);
		if (!option->argument && value)
			return error_set(error, EINVAL, "option %s takes no value", option->name);
		if (option->argument && !value) {
			if (++i >= argc || strcmp(argv[i], "--") == 0)
				return error_set(error, EINVAL, "option %s needs a value: %s %s",
						 option->name, option->name, option->argument);
			value = argv[i];
		}
		if (!option->many && given_before(verb, option, at, argv))
			return error_set(error, EINVAL, "option %s is given twice", option->name);
		result = take(context, option, value, error);
		if (result < 0)
			return result;
		i++;
	}
	return i;
}

void options_help(const struct verb *verb, struct buffer *buffer)
{
	buffer_format(buffer, "usage: bawn %s%s%s%s\n\n%s\n", verb->name,
		      verb->option_count ? " [options]" : "", verb->synopsis[0] ? " " : "",
		      verb->synopsis, verb->summary);
	if (verb->option_count)
		buffer_text(buffer, "\noptions:\n");
	for (size_t i = 0; i < verb->option_count; i++) {
		const struct option *option = &verb->options[i];
		size_t width = strlen(option->name);

		buffer_format(buffer, "  %s", option->name);
		if (option->argument) {
			buffer_format(buffer, " %s", option->argument);
			width += 1 + strlen(option->argument);
		}
		buffer_format(buffer, "%*s%s%s\n", (int)(width < 24 ? 24 - width : 1), "",
			      option->help, option->many ? " (may be repeated)" : "");
	}
	if (verb->sub_count)
		buffer_text(buffer, "\nverbs:\n");
	for (size_t i = 0; i < verb->sub_count; i++)
		buffer_format(buffer, "  %-9s %s\n", verb_word(verb->subs[i]),
			      verb->subs[i]->summary);
	if (verb->sub_count)
		buffer_format(buffer, "\n`bawn help %s VERB` tells the options of one.\n",
			      verb->name);
	buffer_format(buffer, "\nexit status: %s\n", verb->exit_status);
}
