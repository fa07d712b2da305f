/* `bawn policy`: the verbs about what an agent may do, each in a file of its own. */
#include "cli/policy_verbs.h"
#include "cli/verbs.h"

static const struct verb *const subs[] = {
	&verb_policy_check,
	&verb_policy_decide,
};

static int policy_verb(int argc, char **argv)
{
	return verb_run_sub(&verb_policy, argc, argv);
}

const struct verb verb_policy = {
	.name = "policy",
	.synopsis = "VERB [options] ...",
	.summary = "Check policies, and tell what they say of a command.",
	.subs = subs,
	.sub_count = sizeof(subs) / sizeof(subs[0]),
	.exit_status = "of each verb, as `bawn help policy VERB` tells; 2 no such verb",
	.run = policy_verb,
};
