/*
 * A project's proposal, `.bawn.yaml` at the workspace's top, and the copy of it that the user
 * adopted. The proposal is a task's to write and is never read by a start, but for the hint that
 * there is one; what holds is the copy, in the user's store (workspace/policy_layers.h):
 *
 *     projects/HASH.yaml     the text; HASH is that of the workspace's path
 *     projects/HASH.origin   the text's SHA-256 when it was adopted, a blank, and the path
 *
 * A proposal that has changed since is not adopted any more; the copy goes on.
 */
#pragma once

#include "workspace/policy_file.h"

#include <stdbool.h>

struct arena;
struct error;
struct caller;

#define ADOPT_NAME ".bawn.yaml"

enum adopt_proposal {
	ADOPT_NONE,
	ADOPT_NEW,     /* there is one, and nothing was adopted here */
	ADOPT_CHANGED, /* it is not what was adopted */
	ADOPT_ADOPTED,
};

/* One system call where there is no proposal. What cannot be read is new, or changed. */
enum adopt_proposal adopt_look(const char *store, const char *workspace, struct arena *arena);

/*
 * The proposal, checked by the loader as every policy; its path is that of the workspace's file.
 * -ENOENT where there is none, -EINVAL with faults.
 */
int adopt_read(const struct caller *host, const char *workspace, struct arena *arena,
	       struct policy_file *ret_file, struct document_faults *faults, struct error *error);

/* Whether a policy is adopted for the workspace. */
bool adopt_is_kept(const char *store, const char *workspace, struct arena *arena);

/* Keeps the bytes that were read, on the disk when it returns. Makes the store where it lacks. */
int adopt_keep(const char *store, const char *workspace, const struct policy_file *file,
	       struct arena *arena, struct error *error);

/* -ENOENT where nothing is adopted for the workspace. */
int adopt_drop(const char *store, const char *workspace, struct arena *arena, struct error *error);
