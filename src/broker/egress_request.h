/*
 * The network rules of a start: those of its policies, then the caller's own (--allow-host), then
 * how much of a network it is at all (--network). A denial of a policy beats what a flag allows.
 */
#pragma once

struct arena;
struct egress_policy;
struct error;
struct request;

/*
 * Fills the policy; strings are the arena's or the request's. Programs that rules name are looked
 * up on the host, by the paths that a box has, too: one that is not there allows nothing. -EINVAL
 * for flags that contradict each other.
 */
int egress_request(const struct request *request, struct arena *arena,
		   struct egress_policy *ret_policy, struct error *error);
