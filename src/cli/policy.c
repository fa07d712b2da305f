/* `bawn policy`: the verbs about what an agent may do, each in a file of its own. */
#include "cli/policy_verbs.h"
#include "cli/verbs.h"

static const struct verb *const subs[] = {
	&verb_policy_check,  &verb_policy_show,	  &verb_policy_diff,
	&verb_policy_decide, &verb_policy_test,	  &verb_policy_exceptions,
	&verb_policy_adopt,  &verb_policy_import, &verb_policy_schema,
};

static int policy_verb(int argc, char **argv)
{
	return verb_run_sub(&verb_policy, argc, argv);
}

const struct verb verb_policy = {
	.name = "policy",
	.synopsis = "VERB [options] ...",
	.summary = "Check, show and compare policies, and tell what is said of a command.",
	.subs = subs,
	.sub_count = sizeof(subs) / sizeof(subs[0]),
	.exit_status = "of each verb, as `bawn help policy VERB` tells; 2 no such verb",
	.run = policy_verb,
};
