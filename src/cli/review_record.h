/*
 * What `bawn review accept` and `reject` put on record of the things they settle
 * (trace/decision.h): one decision for each task.
 */
#pragma once

#include "trace/decision.h"
#include "workspace/git_held.h"
#include "workspace/git_held_tree.h"

struct arena;

/*
 * One thing that is held, of either store; the other is NULL. outcome is that of a plan, "ready".
 * scratch is for its contents, which are read for their digests and not kept. 0 or -ENOMEM.
 */
int review_record_add(struct decision_list *list, int state_fd, const struct git_held *git,
		      const struct git_held_tree *tree, struct arena *arena, struct arena *scratch)
	__attribute__((warn_unused_result));

/* How the thing of this number in the order of the list came out. */
void review_record_outcome(struct decision_list *list, size_t number, const char *outcome,
			   const char *reason);
