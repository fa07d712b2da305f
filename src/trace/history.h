/*
 * What a task's chain tells of its actions: the tree that `bawn trace ls` prints, and the counts of
 * stats. Fed line by line, so that it serves a chain that still grows. Pure.
 *
 * An action's denials and changes come from its result; one without a result has them counted from
 * their own records, as far as they are there. Memory: some hundred bytes for each action and its
 * command's beginning, in the caller's arena but for the table of ids; beyond
 * HISTORY_LIMIT_ACTIONS actions are counted only.
 */
#pragma once

#include "base/json_tree.h"
#include "policy/action.h"
#include "trace/id_table.h"
#include "trace/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct trace_line;

#define HISTORY_LIMIT_ACTIONS 65536u
/* Of a command's text in a list. */
#define HISTORY_COMMAND_BYTES 300

struct history_action {
	char id[ACTION_ID_BYTES]; /* first: trace/id_table.h */
	char parent[ACTION_ID_BYTES];
	const char *command; /* visible, cut; NULL: its intent is not there */
	const char *end;     /* "exit 2", "signal 9", "timed-out"; NULL: none on record */
	const char *cause;   /* "command" ...; NULL as above */
	const char *limit;   /* the first limit that was reached, visible; NULL: none */
	uint64_t started_ns, duration_us; /* started: wall clock of the intent */
	uint64_t status;		  /* exit status of bawn run */
	uint64_t denials, network_denials, changes;
};

struct history {
	struct arena *arena; /* borrowed: everything is there */
	struct history_action *actions;
	size_t count;
	struct id_table by_id; /* owned */
	uint64_t action_total; /* with those beyond the limit */
	uint64_t started_ns, last_ns;
	const char *kind, *workspace, *meta; /* visible; NULL: no task.start */
	const char *cause;		     /* of task.end or task.lost */
	bool is_ended, is_lost;
};

/*
 * Adds the needles of the lines that a history is made of; all of them in one group. Where all
 * actions have results, as in a task that ended, nothing else is looked at.
 */
void history_needles(struct scan_needles *needles, unsigned group, bool has_results);

/* body: of the line, as a tree; not kept. False when memory ran out (the arena has latched it). */
bool history_take(struct history *history, const struct trace_line *line,
		  const struct json_node *body);

/* The action before this index that it is a part of, or NULL: parents stand first. */
const struct history_action *history_parent(const struct history *history,
					    const struct history_action *action);

void history_free(struct history *history);

#define CLEANUP_HISTORY __attribute__((cleanup(history_free)))
