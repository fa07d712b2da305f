/*
 * What the verbs that settle a stage (apply, discard) put on record of it (trace/decision.h): the
 * paths, and of files the digests of what the host has and what the task made of it.
 */
#pragma once

#include "trace/decision.h"
#include "workspace/stage_apply.h"

/* Bytes that one decision reads for digests, of both sides: some ten milliseconds of work. */
#define DECIDE_LIMIT_DIGEST_BYTES (64ull * 1024 * 1024)

struct decide_digests {
	const struct stage_kept *kept;
	uint64_t left; /* bytes that may still be read */
};

/* Digests of the files of a path below the workspace, as far as there is room for them. */
void decide_digest(struct decide_digests *digests, const char *path,
		   const struct stage_side *before, const struct stage_side *after,
		   struct decision_item *item);

/*
 * The list of an apply as it was judged, with digests. What no path names is not in it. 0 or
 * -ENOMEM.
 */
int decide_plan(const struct stage_kept *kept, const struct stage_applied *applied,
		struct arena *arena, struct decision_list *ret_list)
	__attribute__((warn_unused_result));

/* The same list when it has been done; digests are those of the plan. */
int decide_done(const struct stage_kept *kept, const struct stage_applied *applied,
		const struct decision_list *plan, struct arena *arena,
		struct decision_list *ret_list) __attribute__((warn_unused_result));

/* What discarding a stage drops, with digests; what of it cannot be read is not listed. */
int decide_drop(const struct stage_kept *kept, struct arena *arena, struct decision_list *ret_list)
	__attribute__((warn_unused_result));

/* All of a list came out the same way. */
void decide_outcome(struct decision_list *list, const char *outcome);
