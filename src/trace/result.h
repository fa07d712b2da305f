/*
 * What became of an action. Its JSON (docs/schema/result.schema.json) is what --json and
 * --status-fd print and what the record keeps.
 */
#pragma once

#include "policy/action.h"
#include "policy/denial.h"
#include "policy/held.h"
#include "policy/layer.h"
#include "policy/limit.h"
#include "trace/artifact.h"
#include "trace/change.h"
#include "trace/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct view;

#define RESULT_VERSION 1

enum result_end {
	RESULT_EXITED,	       /* code */
	RESULT_SIGNALED,       /* signal */
	RESULT_TIMED_OUT,      /* the wall-clock limit */
	RESULT_NOT_FOUND,      /* no such command in the box */
	RESULT_NOT_EXECUTABLE, /* it cannot be executed */
	RESULT_DENIED,	       /* refused before the start */
	RESULT_FAILED,	       /* bawn itself failed; message says where */
	RESULT_END_COUNT,
};

enum result_cause {
	CAUSE_COMMAND,
	CAUSE_POLICY,
	CAUSE_LIMIT,
	CAUSE_OPERATOR,
	CAUSE_BAWN,
	CAUSE_COUNT
};

/* One layer of the wall as it really was, read back from the kernel where that is possible. */
struct result_layer {
	enum layer layer;
	enum enforcement enforcement;
	char evidence[64]; /* "Seccomp 2", "canary EACCES", "planned" */
};

struct result_stream {
	uint64_t bytes; /* that the command wrote */
	bool ends_open; /* the last of them is no newline */
};

/* A limit that was reached. */
struct limit_hit {
	enum limit limit;
	uint64_t value, usage; /* in the limit's unit; usage: what was seen, at least */
	enum enforcement enforcement;
	uint64_t grain_ns; /* ENFORCEMENT_POLLED: the longest delay */
};

/* What became of a request, or of an action as a whole. */
struct event_verdict {
	const char *verdict, *verb, *target, *reason;
	const char *segment;		/* the command that it is about; NULL: the whole */
	const char *tier, *tier_reason; /* of an action as a whole, where it was chosen for it */
	struct rule_ref rule;
};

/* The workspace could have no layer: the task had a copy of it. */
struct result_copied {
	const char *why;	 /* what the layer failed with */
	int64_t started_ns;	 /* by the clock of files; 0: it was not copied */
	uint64_t names, bytes;	 /* objects, and what was read of them */
	uint64_t shared;	 /* files that share their data with the workspace's */
	const char *const *left; /* paths below it that were left out */
	size_t left_count;
};

struct result {
	const struct action *action;
	const char *policy_hash;
	const char *tier, *tier_reason; /* in which it ran, or would have; NULL: not chosen */
	enum result_end end;
	enum result_cause cause;
	int code, signal;
	bool core_dumped;
	uint64_t started_wall_ns, duration_ns;
	uint64_t user_us, system_us, peak_memory_bytes;
	struct result_stream output, error;
	struct result_layer layers[LAYER_COUNT];
	size_t layer_count;
	struct held limits[LIMIT_COUNT]; /* as they were held */
	size_t limit_count;
	struct limit_hit hits[LIMIT_COUNT]; /* each limit once */
	size_t hit_count;
	const struct event_verdict *verdicts; /* of its requests, where they were judged */
	size_t verdict_count;
	const struct denial_list *denials;
	const struct network_list *network; /* NULL: the box had none but its own loopback */
	const struct change *changes;
	size_t change_count;
	uint64_t unlisted_changes; /* more of the workspace */
	const char *changes_cut; /* why it is not known what they are, static; NULL: it is known */
	struct artifact_list artifacts;
	const struct view *view;     /* its inputs are told; NULL: there was none */
	const char *const *withheld; /* names of the caller's variables that were not passed */
	size_t withheld_count;
	const char *stage; /* the task whose stage the changes are in; NULL: it has none */
	const struct result_copied *copied; /* NULL: the workspace was no copy */
	bool is_ephemeral;		    /* the workspace was: nothing of it is kept */
	bool has_dropped;		    /* and the task had changed something there */
	const char *message;		    /* RESULT_FAILED and kin; NULL otherwise */
};

/* The exit status of `bawn run` for a result (docs/SPECIFICATION.md). */
int result_status(const struct result *result);

const char *result_end_name(enum result_end end);
const char *result_cause_name(enum result_cause cause);

/* The members of the object, and the object. */
void result_members(const struct result *result, struct json *json);
void result_json(const struct result *result, struct json *json);
/* The members of one of its verdicts, and of that event. */
void result_verdict_members(const struct event_verdict *verdict, struct json *json);
/* Its member `layers`. */
void result_layers(const struct result *result, struct json *json);
void limit_hit_members(const struct limit_hit *hit, struct json *json);
