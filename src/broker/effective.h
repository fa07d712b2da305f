/*
 * The effective policy of a run: flags of an unconfined caller under the policies of the place and
 * those that are named (broker/binding.h), over the built-in defaults, with the facts of this host
 * filled in, compiled and hashed.
 */
#pragma once

#include "base/error.h"
#include "base/sha256.h"
#include "broker/capacity.h"
#include "broker/state.h"
#include "plan/plan.h"
#include "policy/action.h"
#include "policy/denial.h"
#include "policy/policy.h"
#include "workspace/git_find.h"
#include "workspace/host.h"
#include "workspace/policy_adopt.h"
#include "workspace/secret_find.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct binding;

struct request_path {
	enum path_class class;
	const char *path;     /* as given */
	const char *flag;     /* "--read"; of a policy: where it stands, for messages */
	uint32_t position;    /* in argv */
	const char *name;     /* of an input: as given, "" where none was; else NULL */
	struct rule_ref rule; /* of a policy; id NULL: the flag's */
};

/* Of a policy. */
struct request_variable {
	const char *name, *value;
	struct rule_ref rule;
};

/* What `bawn run`, plan, explain and verify take as options. */
struct request {
	const char *workspace, *cwd, *state_path; /* NULL: default */
	const char *policy_path, *preset;	  /* NULL: none */
	struct rule_ref workspace_rule;		  /* by which policy it is no plain one; id NULL */
	struct request_path *paths;
	size_t path_count;
	const char **environment; /* --env values: NAME or NAME=VALUE */
	size_t environment_count;
	struct request_variable *variables;
	size_t variable_count;
	const char *const *meta; /* --meta values, NULL-ended; NULL: none */
	size_t meta_count;
	uint64_t timeout_ns;   /* 0 = none */
	struct request_limit { /* as given */
		const char *option, *value;
	} limits[LIMIT_COUNT];
	size_t limit_count;
	uint32_t flags;	      /* enum policy_flag */
	bool input;	      /* --stdin */
	bool unrecorded;      /* --no-trace */
	bool tty;	      /* --tty */
	bool only_decides;    /* nothing will run: a policy may lie where a task could write */
	const char *widening; /* the first flag that widens, NULL where there is none */
	struct policy_listener listeners[POLICY_LIMIT_LISTENERS]; /* verify's */
	size_t listener_count;
	struct egress_rule *hosts; /* --allow-host */
	size_t host_count;
	const char *purpose;   /* --purpose; NULL: none */
	enum request_network { /* --network */
			       REQUEST_NETWORK_DEFAULT,
			       REQUEST_NETWORK_NONE,
			       REQUEST_NETWORK_POLICY,
	} network;
	struct egress_policy egress; /* of policies alone */
	const char *probe;	     /* verify's program, shown at BATTERY_PROGRAM; else NULL */
	uint64_t probe_timeout_ns;   /* in the place of --timeout, which is not for it */
};

struct effective {
	struct caller host;
	struct state state;    /* owned */
	bool state_is_default; /* no --state-dir */
	/* where it is to be, known before there is a policy; NULL: not even that */
	const char *workspace, *cwd;
	struct policy policy; /* decoded from blob */
	const unsigned char *blob;
	size_t blob_length;
	char hash[SHA256_HEX_BYTES];
	const struct binding *binding; /* NULL before it was made */
	bool unrecorded;	       /* --no-trace, or by a policy */
	enum adopt_proposal proposal;  /* of the workspace, which nothing here was read from */
	struct plan plan;
	struct plan fallback; /* with a copy of a workspace that can have no layer; may be empty */
	struct git_found git; /* the git directories that the box covers */
	struct secret_found secrets;
	struct tier_choice tier; /* of the task, before any action */
	const char *tier_reason;
	const char *task;      /* id */
	const char **withheld; /* names of variables that were not passed */
	size_t withheld_count;
	uint32_t landlock_abi;
	struct capacity capacity; /* owned */
	/* what git did in a task whose supervisor died, and why it did not come; code 0: nothing */
	struct error unlanded;
	struct limit_means means[LIMIT_COUNT];
};

#define EFFECTIVE_NONE ((struct effective){ .state = STATE_NONE, .capacity = CAPACITY_NONE })

/* Why a box starts no other: run refuses with it, and doctor says it. */
#define EFFECTIVE_INSIDE                                                                         \
	"inside of a box no second box is made: its system call filter has no openat2; run the " \
	"command itself, it is confined already"

enum effective_failure {
	EFFECTIVE_BROKEN, /* wrong use, or bawn failed: 125 */
	EFFECTIVE_DENIED, /* a request was refused before the start: 126 */
};

/*
 * Everything up to the plan; nothing has been started and only the state directory was touched.
 * All memory is the arena's. On a refusal by policy ret_failure says so and the denial is in
 * denials (when not NULL).
 */
int effective_make(const struct request *request, struct arena *arena, struct effective *ret,
		   enum effective_failure *ret_failure, struct denial_list *denials,
		   struct error *error);

/* -EMFILE where the caller's limit of open files is too low for any start; with the remedy. */
int effective_check_files(struct error *error);

/* What dead supervisors have left; host and state must be there. Every start does it, too. */
void effective_reap(struct effective *effective, struct arena *arena);

/* After a start that failed: where the host is to blame, the error is what `bawn doctor` says. */
void effective_diagnose(const struct effective *effective, struct error *error);

/*
 * Tries out, as doctor does, whether this would start at all. 0, or a negative errno and the words
 * with which `bawn run` refuses; ret_absent: the layers (bits of enum layer) that are lacking.
 */
int effective_probe(const struct effective *effective, uint32_t *ret_absent, struct error *refusal);

/* A new id: 't' for a task, 'a' for an action, and 100 random bits. -EIO without randomness. */
int effective_make_id(char kind, char ret_id[static ACTION_ID_BYTES]);

void effective_free(struct effective *effective);

#define CLEANUP_EFFECTIVE __attribute__((cleanup(effective_free)))
