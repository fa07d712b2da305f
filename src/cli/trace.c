/* `bawn trace`: the verbs about what was recorded, each in a file of its own. */
#include "cli/trace_verbs.h"
#include "cli/verbs.h"

#include <string.h>

static const struct verb *const subs[] = {
	&verb_trace_ls,	    &verb_trace_show,	&verb_trace_query,  &verb_trace_stats,
	&verb_trace_tail,   &verb_trace_export, &verb_trace_verify, &verb_trace_head,
	&verb_trace_key,    &verb_trace_note,	&verb_trace_prune,  &verb_trace_replay,
	&verb_trace_redact,
};

static int trace_verb(int argc, char **argv)
{
	/* none of them has a command behind its words: options may stand there, too */
	for (size_t i = 0; argc > 1 && i < sizeof(subs) / sizeof(subs[0]); i++)
		if (strcmp(argv[1], verb_word(subs[i])) == 0)
			options_first(subs[i], argc - 1, argv + 1);
	return verb_run_sub(&verb_trace, argc, argv);
}

const struct verb verb_trace = {
	.name = "trace",
	.synopsis = "VERB [options] ...",
	.summary = "Read, search and verify the record of what was done.",
	.subs = subs,
	.sub_count = sizeof(subs) / sizeof(subs[0]),
	.exit_status = "of each verb, as `bawn help trace VERB` tells; 2 no such verb",
	.run = trace_verb,
};
