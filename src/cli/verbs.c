#include "cli/verbs.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

const struct verb *const verbs[] = {
	&verb_run,    &verb_shell,  &verb_task,	  &verb_ps,	    &verb_logs,	 &verb_attach,
	&verb_freeze, &verb_thaw,   &verb_stop,	  &verb_kill,	    &verb_plan,	 &verb_explain,
	&verb_policy, &verb_verify, &verb_doctor, &verb_diff,	    &verb_apply, &verb_discard,
	&verb_review, &verb_cache,  &verb_trace,  &verb_completion, &verb_help,
};
const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);

const struct verb *verb_at(size_t index)
{
	for (size_t i = 0; i < verb_count; i++) {
		if (!index--)
			return verbs[i];
		if (index < verbs[i]->sub_count)
			return verbs[i]->subs[index];
		index -= verbs[i]->sub_count;
	}
	return NULL;
}

const struct verb *verb_find(const char *name)
{
	const struct verb *verb;

	for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	return NULL;
}

const char *verb_word(const struct verb *verb)
{
	const char *space = strrchr(verb->name, ' ');

	return space ? space + 1 : verb->name;
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int verb_run_sub(const struct verb *verb, int argc, char **argv)
{
	char said[ERROR_MESSAGE_BYTES];

	for (size_t i = 0; argc > 1 && i < verb->sub_count; i++) {
		const struct verb *sub = verb->subs[i];

		if (strcmp(argv[1], verb_word(sub)) != 0)
			continue;
		if (argc == 3 && asks_help(argv[2]))
			return verb_help.run(3, (char *[]){ "help", argv[0], argv[1], NULL });
		return sub->run(argc - 1, argv + 1);
	}
	if (argc > 1)
		(void)snprintf(said, sizeof(said),
			       "unknown verb %s %.100s; `bawn help %s` lists them", verb->name,
			       argv[1], verb->name);
	else
		(void)snprintf(said, sizeof(said), "bawn %s what? `bawn help %s` lists its verbs",
			       verb->name, verb->name);
	complain(said);
	return 2;
}
