/*
 * A file that both the task and the host changed, merged three-way. The third is what git has of it
 * at the task's start: HEAD as the host's reflog has it then. Where the reflog does not reach so
 * far, or git has no such file, nothing is merged; nor where both changed the same lines: no file
 * with conflict markers is ever made.
 *
 * The host's git reads one blob and merges three files of ours, by `cat-file` and `merge-file`,
 * with an environment of nothing, the repository's directory given to it, no hooks, no fsmonitor,
 * no transports; neither of the two runs filters or merge drivers. What it prints is counted, and
 * it is killed at a limit of bytes or time (workspace/host_program.h).
 *
 * Who may use it: a verb that holds the stage's lock for a change.
 */
#pragma once

#include "workspace/stage_apply.h"

struct error;

/* Of one file, each of its three sides; source code has less. */
#define STAGE_MERGE_LIMIT_BYTES (16u * 1024 * 1024)
/* Files of one apply: two starts of git each, some milliseconds. */
#define STAGE_MERGE_LIMIT_FILES 1000u
/* One start of git; that which takes longer is stuck, and is not asked again in this apply. */
#define STAGE_MERGE_LIMIT_NS (5ull * 1000 * 1000 * 1000)

/* Merges the conflicts that can be: they become ready, and say so. 0 or a negative errno. */
int stage_merge_all(const struct stage_kept *kept, struct stage_applied *applied,
		    struct error *error) __attribute__((warn_unused_result));

/* Opens what was merged for an item. */
int stage_merge_open(const struct stage_kept *kept, const struct stage_item *item);

void stage_merge_end(const struct stage_kept *kept);
