/*
 * Deciding again: what was recorded of requests, under another policy than that of its task, by the
 * functions that decide in runs (broker/decide.h, policy/egress.h). Runs nothing, sends nothing.
 *
 * The policy is what a start in the task's workspace would make of it now: its layers, this host's
 * paths and programs, today's date. Flags of the task's own start are not among it. What the record
 * does not hold (a masked word, a protocol that was never seen, a count that is over) is no
 * ground to guess from: such a request cannot be decided again, and why is said.
 *
 * Memory: REPLAY_LIMIT_PLACES effective policies; a decision's is the caller's arena.
 */
#pragma once

#include "broker/effective.h"
#include "broker/parser.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct json_node;

/* Tasks of more workspaces than that in turn have theirs made again. */
#define REPLAY_LIMIT_PLACES 4u

struct replay_place {
	char *workspace; /* owned; NULL: free */
	struct arena arena;
	struct effective effective;
	const char *why; /* there is no policy for it; the arena's */
};

struct replay {
	struct request request; /* the policy, state and purpose; strings are borrowed */
	struct parser parser;
	struct replay_place places[REPLAY_LIMIT_PLACES];
	size_t next;
};

#define REPLAY_NONE ((struct replay){ .parser = PARSER_NONE })

struct replay_answer {
	const char *verdict; /* "allow", "ask", "deny"; NULL: it cannot be decided again */
	const char *reason;  /* of the verdict, or why there is none */
	struct rule_ref rule;
};

/* intent, flow: bodies of such records. Reasons live as long as arena and replay do. */
void replay_command(struct replay *replay, const char *workspace, const struct json_node *intent,
		    struct arena *arena, struct replay_answer *ret);
void replay_flow(struct replay *replay, const char *workspace, const struct json_node *flow,
		 struct arena *arena, struct replay_answer *ret);

/* Whether a text holds what stands for a secret that was masked. */
bool replay_is_masked(const char *text);

void replay_end(struct replay *replay);

#define CLEANUP_REPLAY __attribute__((cleanup(replay_end)))
