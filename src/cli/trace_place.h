/*
 * What the reading verbs of `bawn trace` share: the store below the state directory, tasks and
 * actions by the beginning of their ids, one line of a chain as a tree, and complaints about lines
 * that are none.
 */
#pragma once

#include "base/arena.h"
#include "base/json_tree.h"
#include "broker/state.h"
#include "trace/catalogue.h"
#include "trace/read.h"
#include "trace/store.h"
#include "workspace/host.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct scan_line;

/* Of one file at most this many bad lines are named; then they are counted. */
#define TRACE_PLACE_LIMIT_TOLD 5

/* The file that is read, for complaints. */
struct trace_file {
	char name[64];
	uint64_t bad; /* lines that were none */
};

struct trace_place {
	struct arena arena;   /* of what lives as long as the place */
	struct arena scratch; /* of one line; trace_place_line() begins it anew */
	struct caller host;
	struct state state;
	struct trace_store store;
	bool is_empty; /* there is no trace yet */
	struct trace_file file;
};

#define TRACE_PLACE_NONE ((struct trace_place){ .state = STATE_NONE, .store = TRACE_STORE_NONE })

/* Opens it to read, making nothing. 0, or the exit status after a complaint: 1 or 125. */
int trace_place_open(struct trace_place *place, const char *state_path);

void trace_place_close(struct trace_place *place);

#define CLEANUP_TRACE_PLACE __attribute__((cleanup(trace_place_close)))

/* The catalogue of tasks; 0, or the exit status after a complaint. */
int trace_place_catalogue(struct trace_place *place, struct catalogue *ret_catalogue);

/*
 * "live", "unfinished" (it has no end and nobody runs it) or the catalogue's word.
 */
const char *trace_place_state(const struct trace_place *place, const struct catalogue_task *task);

/* Opens the chain of a task; its name is that of complaints. Negative errno, after a complaint. */
int trace_place_chain(struct trace_place *place, const char *id, int *ret_fd);

/* Opens the ledger. The descriptor, or a negative errno: silently where there is none. */
int trace_place_ledger(struct trace_place *place);

/*
 * Takes a line apart; its body is a tree in the scratch arena. False, after a complaint that names
 * file and line, where it is none.
 */
bool trace_place_line(struct trace_place *place, const struct scan_line *found,
		      struct trace_line *ret_line, const struct json_node **ret_body);

/* The same for its envelope alone. */
bool trace_place_envelope(struct trace_place *place, const struct scan_line *found,
			  struct trace_line *ret_line);

/* The line as it is; for a terminal what it would obey is escaped: the file may not be ours. */
void trace_raw_line(const struct trace_line *line, bool is_terminal, struct buffer *buffer);

/* Says how many bad lines there were beyond those that were named. */
void trace_place_told(struct trace_place *place);

/* What a word names: a task, or an action of it (action[0]). */
struct trace_found {
	char task[ACTION_ID_BYTES], action[ACTION_ID_BYTES];
};

/*
 * Finds the one task (or, where actions are wanted and no task has it, action) whose id begins with
 * the word, "t-" or "a-" or not. Returns 0, or the exit status after a complaint that names the
 * word: 1, 2 or 125.
 */
int trace_place_find(struct trace_place *place, const char *word, bool wants_actions,
		     struct trace_found *ret_found);

/* As `complain()`, formatted. */
void trace_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
