#include "broker/isolation.h"

#include "base/arena.h"
#include "base/error.h"
#include "broker/approval.h"
#include "broker/decide.h"
#include "broker/effective.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

uint32_t isolation_look(const struct effective *effective)
{
	enum adopt_proposal proposal = effective->proposal;
	uint32_t facts = proposal == ADOPT_NEW || proposal == ADOPT_CHANGED ? TIER_HAS(UNREVIEWED) :
									      0;
	struct stat status;

	/* of a group it is not told who is in it: the caller's own has no other */
	if (stat(effective->policy.workspace, &status) < 0 || status.st_mode & S_IWOTH ||
	    (status.st_mode & S_IWGRP && status.st_gid != effective->host.gid) ||
	    getxattr(effective->policy.workspace, "system.posix_acl_access", NULL, 0) > 0)
		facts |= TIER_HAS(SHARED);
	return facts;
}

static void note_answer(const struct approval_request *request, enum approval_answer answer,
			const char *why, void *context)
{
	(void)request;
	(void)why;
	*(enum approval_answer *)context = answer;
}

static bool is_granted(const struct tier_choice *choice, struct rule_ref rule, const char *reason)
{
	struct approval_request request = { .verb = denial_text(DENIAL_ISOLATION_ASKED)->verb,
					    .target = tier_name(choice->tier),
					    .rule = rule,
					    .reason = reason };
	enum approval_answer answer = APPROVAL_DENY;

	return approval_ask(&request, 0, note_answer, &answer) == 0 && answer == APPROVAL_ONCE;
}

static int refuse(const struct tier_choice *choice, struct rule_ref rule, const char *reason,
		  struct denial_list *denials, struct error *error)
{
	static const char *const words[] = {
		[TIER_IS_MISSING] = "which this build lacks",
		[TIER_ASKS] = "and nobody allowed to go on without",
		[TIER_STOPS] = "and then it stops",
	};
	uint32_t before = denials ? denials->count : 0;

	if (denials)
		(void)denial_add(denials,
				 choice->verdict == TIER_ASKS ? DENIAL_ISOLATION_ASKED :
								DENIAL_ISOLATION_TIER,
				 rule, tier_name(choice->tier), true);
	if (denials && denials->count > before)
		denials->items[before].reason = reason;
	return error_set(error, EPERM, "isolation: the facts call for the %s tier, %s: %s",
			 tier_name(choice->tier), words[choice->verdict], reason);
}

int isolation_pass(const struct effective *effective, uint32_t facts, struct arena *arena,
		   struct tier_choice *ret_choice, const char **ret_reason,
		   struct denial_list *denials, struct error *error)
{
	const struct policy *policy = &effective->policy;
	struct rule_ref rule;

	*ret_choice = tier_choose(&policy->tier, effective->tier.facts | facts);
	*ret_reason = tier_reason(&policy->tier, ret_choice, arena);
	if (!*ret_reason)
		return error_errno(error, ENOMEM, "choosing a tier");
	rule = tier_rule(policy, ret_choice);
	if (ret_choice->verdict == TIER_RUNS ||
	    (ret_choice->verdict == TIER_ASKS && is_granted(ret_choice, rule, *ret_reason)))
		return 0;
	return refuse(ret_choice, rule, *ret_reason, denials, error);
}

void isolation_decide(const struct effective *effective, struct decision *decision)
{
	const struct policy *policy = &effective->policy;
	struct verdict *whole = &decision->verdicts.whole;
	struct tier_choice choice = tier_choose(
		&policy->tier, effective->tier.facts | tier_facts_of(&decision->classify));

	decision->tier = choice;
	decision->tier_reason = tier_reason(&policy->tier, &choice, decision->classify.arena);
	if (!decision->tier_reason)
		decision->tier_reason = choice.why;
	if (choice.verdict == TIER_RUNS || whole->judgement != WANTED_ALLOWS)
		return;
	*whole = (struct verdict){ choice.verdict == TIER_ASKS ? WANTED_ASKS : WANTED_DENIES,
				   tier_rule(policy, &choice), decision->tier_reason };
	decision->verdicts.request = decision->classify.wanted_count;
}
