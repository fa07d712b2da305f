/*
 * What git keeps of an operation that is not finished (rebase-merge/, rebase-apply/, sequencer/):
 * `git rebase --continue` executes what stands there. Only files of known names whose content runs
 * nothing pass. Pure.
 */
#pragma once

#include <stddef.h>

/* A patch of a rebase by am is the largest usual one. */
#define GIT_SEQUENCE_LIMIT_BYTES (8u * 1024 * 1024)

/*
 * path: within the git directory, "rebase-merge/git-rebase-todo". Says why the file may not reach
 * the host, or NULL.
 */
const char *git_sequence_fault(const char *path, const char *bytes, size_t length);
