/*
 * What the host's tools run later: names in the workspace whose content a program outside would
 * execute (git's hooks and configuration, editors' tasks, agents' settings, direnv). This version
 * does not hold changes to them back; it sees that they changed and says so.
 *
 * A snapshot before an action and one after it are compared by object and change time, and a small
 * file by its content (git writes its configuration anew without changing it), through descriptors
 * beneath the workspace, no link followed: hostile trees neither hang nor fool it.
 */
#pragma once

#include "trace/change.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define PLANTED_NAMES 18

struct planted {
	int root_fd; /* O_PATH of the workspace, owned; -1 where it could not be opened */
	bool git_is_covered;
	struct planted_state {
		uint64_t device, inode;
		int64_t changed_s, changed_ns; /* ctime, which a task cannot set back */
		uint64_t entries;	       /* a directory: over its entries' own states */
		uint64_t content;	       /* a small file: of its SHA-256; 0 = not read */
	} states[PLANTED_NAMES];
};

/* git_is_covered: names of its git directory are the landing's business (broker/landing.h). */
void planted_begin(const char *workspace, bool git_is_covered, struct planted *ret_planted);

/*
 * The names that changed since planted_begin(), as rows in the arena (paths as in the box).
 * Returns their count.
 */
size_t planted_end(struct planted *planted, const char *workspace, struct arena *arena,
		   struct change **ret_changes);
