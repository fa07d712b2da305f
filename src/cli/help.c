#include "cli/verbs.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"

#include <stdio.h>
#include <string.h>

enum { OPTION_TABLE };

static const struct option options[] = {
	{ "--table", NULL, "print verbs and options as lines of tab-separated fields, for scripts",
	  false, false, OPTION_TABLE },
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	(void)option;
	(void)value;
	(void)error;
	*(bool *)context = true;
	return 0;
}

/* verb, option, argument ("-" for none), "many" or "once", help */
static void print_table(struct buffer *buffer)
{
	const struct verb *verb;

	for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
		buffer_format(buffer, "%s\t-\t-\t-\t%s\n", verb->name, verb->summary);
		for (size_t j = 0; j < verb->option_count; j++)
			buffer_format(
				buffer, "%s\t%s\t%s\t%s\t%s\n", verb->name, verb->options[j].name,
				verb->options[j].argument ? verb->options[j].argument : "-",
				verb->options[j].many ? "many" : "once", verb->options[j].help);
	}
}

static void print_overview(struct buffer *buffer)
{
	buffer_text(buffer, "usage: bawn VERB [options] ...\n\n"
			    "The wall around an AI agent's commands.\n\nverbs:\n");
	for (size_t i = 0; i < verb_count; i++)
		buffer_format(buffer, "  %-9s %s\n", verbs[i]->name, verbs[i]->summary);
	buffer_text(buffer, "\n`bawn help VERB` tells the options of one.\n"
			    "A first try: bawn run -- git status\n");
}

/* The verb that all the words name together: "run", "trace verify". */
static const struct verb *find(int count, char **words)
{
	struct buffer CLEANUP_BUFFER name = { 0 };

	for (int i = 0; i < count; i++)
		buffer_format(&name, "%s%s", i ? " " : "", words[i]);
	return name.failed ? NULL : verb_find(name.data);
}

static int help_verb(int argc, char **argv)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	bool table = false;
	int first = options_parse(&verb_help, argc, argv, take, &table, &error);
	const struct verb *verb = NULL;

	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if (first < argc) {
		verb = find(argc - first, argv + first);
		if (!verb) {
			char said[ERROR_MESSAGE_BYTES];

			(void)snprintf(said, sizeof(said),
				       "unknown verb %.100s%s%.100s%s `bawn help` lists them",
				       argv[first], first + 1 < argc ? " " : "",
				       first + 1 < argc ? argv[first + 1] : "",
				       verb_hint(NULL, argv[first]));
			complain(said);
			return 2;
		}
	}
	if (table)
		print_table(&text);
	else if (verb)
		options_help(verb, &text);
	else
		print_overview(&text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the help could not be printed");
		return 125;
	}
	return 0;
}

const struct verb verb_help = {
	.name = "help",
	.synopsis = "[VERB]",
	.summary = "Tell what the verbs do and which options they take.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 2 no such verb",
	.run = help_verb,
};
