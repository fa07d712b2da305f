/*
 * Where policies come from without being named, and all of them as one (policy/authority.h):
 *
 *     /etc/bawn/policy.d/NAME.yaml            managed: root's, for everybody, in the order of names
 *     ~/.config/bawn/policy.yaml              the user's own
 *     ~/.config/bawn/projects/HASH.yaml       what the user adopted for the workspace of this hash
 *     --policy and --preset                   the caller's word for this start
 *
 * The home is that of the password database. Nothing is read from a workspace. What cannot be read,
 * is no policy, or could have been written by somebody else ends the start: it is never left out.
 */
#pragma once

#include "policy/authority.h"
#include "workspace/policy_file.h"

struct arena;
struct error;
struct caller;

#define POLICY_MANAGED "/etc/bawn/policy.d"
/* Each is a file to be read at every start. */
#define POLICY_LIMIT_MANAGED 64u

struct policy_layer {
	enum authority authority;
	struct policy_stack stack;
};

struct policy_layers {
	struct policy_layer *rows; /* in the order in which they count */
	size_t count;
	struct document document; /* all of it */
	/* the real place of the user's store, there or not; NULL: the caller has no home */
	const char *store;
	const char **store_links; /* on the way to it, each in a directory without links */
	size_t store_link_count;
};

struct policy_asked {
	const char *path, *preset; /* --policy and --preset; NULL: none */
	const char *workspace;	   /* whose adopted policy; real; NULL: none */
};

/*
 * -EPERM also for what a later layer says against a lock of an earlier one; other errors as of
 * policy_file_load(). faults are those of the file that is wrong, if one is.
 */
int policy_layers_load(const struct caller *host, const struct policy_asked *asked, int state_fd,
		       struct arena *arena, struct policy_layers *ret_layers,
		       struct document_faults *faults, struct error *error);

/* Makes `document` of the rows, as they are now. -EPERM, -ENOMEM. */
int policy_layers_join(struct policy_layers *layers, struct arena *arena, struct error *error);

/* Adds a layer behind those of its authority and before those of later ones. -ENOMEM. */
int policy_layers_add(struct policy_layers *layers, enum authority authority,
		      const struct policy_stack *stack, struct arena *arena, struct error *error);

/* The authority of the layer that a rule's file is of; AUTHORITY_COUNT where it is of none. */
enum authority policy_layers_of(const struct policy_layers *layers, const char *file);

/* "projects/HASH.yaml", below the store. */
const char *policy_adopted_name(const char *workspace, struct arena *arena);
