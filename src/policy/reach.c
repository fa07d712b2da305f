#include "policy/reach.h"

#include <string.h>

bool reach_decide(const struct egress_policy *policy, const char *target, uint64_t wall_s,
		  struct egress_answer *ret_answer)
{
	struct egress_question question = { .wall_s = wall_s };
	struct host host;
	const char *why;

	if (policy->mode != EGRESS_POLICY ||
	    host_parse_port(target, strlen(target), 0, &host, &question.port, &why) < 0)
		return false;
	question.host = &host;
	egress_decide(policy, &question, ret_answer);
	return true;
}

const char *reach_reason(const struct egress_answer *answer)
{
	if (answer->special)
		return answer->special;
	if (answer->verdict == EGRESS_DENY)
		return answer->rule ? "a rule of the network denies it" :
				      "no rule of the network allows it";
	if (answer->verdict == EGRESS_ASK)
		return "a rule of the network asks about it";
	return answer->needs ? "a rule of the network may allow it: what is sent decides" :
			       "a rule of the network allows it";
}
