/*
 * The effective policy of one task: immutable, encoded as one versioned, offset-based blob whose
 * SHA-256 names it. Today flags and built-in defaults are its only front end.
 *
 * policy_encode() makes the blob; policy_decode() checks *every* count, offset and string of
 * foreign bytes and gives a `struct policy` whose strings point into the blob. Everything behind
 * the front end (plan, explain, probe) is fed from a decoded blob, so that what was hashed is what
 * is used. Pure; memory is the arena's.
 */
#pragma once

#include "policy/egress.h"
#include "policy/limit.h"
#include "policy/rule.h"
#include "policy/ruling.h"
#include "policy/tier.h"
#include "policy/view.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define POLICY_VERSION 9u
/* A policy is text about one box; what is larger is not one. */
#define POLICY_LIMIT_BYTES (16u * 1024 * 1024)
#define POLICY_LIMIT_RULES 65536u
#define POLICY_LIMIT_VARIABLES 4096u
#define POLICY_LIMIT_LISTENERS 16u

enum policy_flag {
	POLICY_NESTED_USERNS = 1u << 0,
	POLICY_ALLOW_PTRACE = 1u << 1,
	POLICY_HIDE_STRICT = 1u << 2,
	POLICY_TTY = 1u << 3,	    /* actions may have a terminal of their own, made by bawn */
	POLICY_STAGE = 1u << 4,	    /* what is written in the workspace waits for `bawn apply` */
	POLICY_READ_ONLY = 1u << 5, /* nothing is written in the workspace */
	POLICY_SHOW_SECRETS = 1u << 6,
	POLICY_EPHEMERAL = 1u << 7, /* what is written in the workspace is gone at the end */
	/* what is no PATH_PROGRAM can neither be executed nor be mapped as code */
	POLICY_EXEC_STRICT = 1u << 8,
	POLICY_EMPTY = 1u << 9,	       /* with EPHEMERAL: nothing of the host's is in it either */
	POLICY_CAPTURE_ALL = 1u << 10, /* no start where not every connection is captured */
	POLICY_FLAGS_ALL = (1u << 11) - 1,
	/* an overlay of the task's own lies over the workspace (PATH_STAGE) */
	POLICY_LAYERED = POLICY_STAGE | POLICY_EPHEMERAL,
	/* of these at most one; none: it is written in place */
	POLICY_WORKSPACE = POLICY_LAYERED | POLICY_READ_ONLY,
};

struct policy_variable {
	const char *name, *value;
	uint32_t rule;
};

/* A listener on the box's loopback whose descriptor the supervisor gets. */
struct policy_listener {
	uint32_t family; /* AF_INET or AF_INET6 */
	uint32_t type;	 /* SOCK_STREAM or SOCK_DGRAM */
	uint32_t port;	 /* 0 = any free one */
};

struct policy {
	uint32_t flags;
	uint32_t uid, gid;    /* as seen inside */
	uint64_t timeout_ns;  /* of an action; 0 = none */
	struct limits limits; /* of the task; WALL_CLOCK is the above */
	/* of a limit that a policy file set: its rule; 0: a flag's, or built in */
	uint32_t limit_rules[LIMIT_COUNT];
	const char *user, *home, *shell, *workspace, *cwd;
	struct rule_ref *rules;
	size_t rule_count;
	struct view view;
	struct policy_variable *variables;
	size_t variable_count;
	struct policy_listener *listeners;
	size_t listener_count;
	struct egress_policy egress;
	enum ruling_approval approval;
	uint32_t approval_rule; /* 0: nothing beyond the default was said */
	struct ruling *rulings;
	size_t ruling_count;
	struct tier_policy tier;
};

/* Adds a rule (or finds an equal one); returns its index, or 0 when memory ran out (latched). */
uint32_t policy_rule(struct policy *policy, struct arena *arena, struct rule_ref rule);

/* Adds or replaces a variable by name. */
bool policy_variable(struct policy *policy, struct arena *arena, const char *name,
		     const char *value, uint32_t rule);

/* Gives the blob in the arena; -ENOMEM or -E2BIG. */
int policy_encode(const struct policy *policy, struct arena *arena, const unsigned char **ret_blob,
		  size_t *ret_length);

/* -EBADMSG with the reason for anything that policy_encode() would not have written. */
int policy_decode(const unsigned char *blob, size_t length, struct arena *arena,
		  struct policy *ret_policy, struct error *error);
