/*
 * What the rules of the network say of a target that a command names as HOST:PORT, before anything
 * of it runs. Pure.
 */
#pragma once

#include "policy/egress.h"

/* Seconds of a day, as the rules' windows of time have them. */
#define REACH_DAY_S 86400u

/*
 * False: the policy gives no network, or the target is no host with a port; nothing is said then.
 * What is sent is not known: the answer may have `needs`.
 */
bool reach_decide(const struct egress_policy *policy, const char *target, uint64_t wall_s,
		  struct egress_answer *ret_answer);

/* The reason of such an answer, a sentence. */
const char *reach_reason(const struct egress_answer *answer);
