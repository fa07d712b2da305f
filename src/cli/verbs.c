#include "cli/verbs.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

/* Words that one wrong word is compared with. */
#define VERB_LIMIT 64u

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

const char *verb_hint(const struct verb *above, const char *word)
{
	static char hint[64];
	const char *words[VERB_LIMIT], *nearest;
	size_t count = above ? above->sub_count : verb_count;

	if (count > VERB_LIMIT)
		count = VERB_LIMIT;
	for (size_t i = 0; i < count; i++)
		words[i] = verb_word(above ? above->subs[i] : verbs[i]);
	nearest = nearest_word(word, words, count);
	(void)snprintf(hint, sizeof(hint), nearest ? "; did you mean %.40s?" : ";", nearest);
	return hint;
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

/* `bawn policy` alone: what can follow. */
static void complain_alone(const struct verb *verb)
{
	struct buffer CLEANUP_BUFFER said = { 0 };

	buffer_format(&said, "bawn %s what?", verb->name);
	for (size_t i = 0; i < verb->sub_count; i++)
		buffer_format(&said, "%s %s", i ? "," : "", verb_word(verb->subs[i]));
	buffer_format(&said, "; `bawn help %s` tells of them", verb->name);
	complain(said.failed ? "out of memory" : said.data);
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
	if (argc < 2) {
		complain_alone(verb);
		return 2;
	}
	(void)snprintf(said, sizeof(said), "unknown verb %s %.100s%s `bawn help %s` lists them",
		       verb->name, argv[1], verb_hint(verb, argv[1]), verb->name);
	complain(said);
	return 2;
}
