/*
 * Artifacts: after an action, regular files of the workspace whose paths match a pattern are copied
 * to a directory that no task can write to, each with the SHA-256 of the bytes that were copied.
 *
 * The tree is a task's, and others may change it meanwhile: it is walked by descriptor
 * (base/walk.h), a file is opened beneath the directory that it was found in, no link followed and
 * without waiting, and looked at again once it is open. What is no regular file, hidden from the
 * task, or larger than what is left of the limit is named with the reason and not copied. Git
 * directories are not looked into. Of a staged or ephemeral workspace it is the task's view that is
 * taken: what its layer has, and what the layer does not hide of the host's. A copy appears under
 * its name as a whole; one that stands there is replaced, a link is not followed.
 */
#pragma once

#include "trace/artifact.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct policy;

/* Of one action, all together: some seconds of copying. */
#define COLLECT_LIMIT_BYTES (4ull * 1024 * 1024 * 1024)
/* Artifacts are what a person wants to have, one by one. */
#define COLLECT_LIMIT_FILES 4096u
/* Patterns: each is matched with each path. */
#define COLLECT_LIMIT_PATTERNS 64u

struct collect {
	const char *const *patterns; /* policy/glob.h, below the workspace */
	size_t pattern_count;
	const char *directory; /* clean; made with the first copy where it is missing */
};

/*
 * The real path of a directory as the caller gave it; its last name may be missing, all before it
 * is there.
 */
int collect_directory(const char *given, struct arena *arena, const char **ret_path,
		      struct error *error);

/*
 * Before the action: -EINVAL where a task could write to the directory or to what leads to it, and
 * for what is no pattern.
 */
int collect_check(const struct collect *collect, const struct policy *policy, struct error *error);

/*
 * After it. upper_fd: the layer over the workspace that the task wrote to, whose view is taken; -1:
 * it wrote in place. is_whole: what lies there is all that it saw, nothing of the host's. The list
 * is filled in any case; its memory is the arena's. Negative with the error where a copy could not
 * be written or the tree not be walked to its end.
 */
int collect_run(const struct collect *collect, const struct policy *policy, int upper_fd,
		bool is_whole, struct arena *arena, struct artifact_list *ret_list,
		struct error *error);
