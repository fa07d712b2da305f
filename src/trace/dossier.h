/*
 * Where in a task's chain stands what is to be told of it: for the task and for each of its actions
 * the places of their records. `bawn trace show` and the exports read them one at a time, so that
 * what is held does not grow with what was said. Fed line by line; pure.
 *
 * Denials, limits and changes stand in the result as well; the places of their own records are kept
 * only as long as their action has none. Bounds: DOSSIER_LIMIT_ACTIONS actions, and
 * DOSSIER_LIMIT_ITEMS of all other records; beyond, is_cut.
 */
#pragma once

#include "policy/action.h"
#include "trace/id_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct trace_line;

#define DOSSIER_LIMIT_ACTIONS 65536u
#define DOSSIER_LIMIT_ITEMS 262144u
#define DOSSIER_STREAMS 3
#define DOSSIER_OF_TASK UINT32_MAX

/* The place of one line; length 0: there is none. */
struct dossier_place {
	uint64_t offset, number;
	uint32_t length;
};

struct dossier_action {
	char id[ACTION_ID_BYTES]; /* first: trace/id_table.h */
	char parent[ACTION_ID_BYTES];
	struct dossier_place intent, start, executable, result, streams[DOSSIER_STREAMS];
	size_t stream_count;
};

enum dossier_kind {
	DOSSIER_VERDICT,
	DOSSIER_APPROVAL,
	DOSSIER_NOTE,
	DOSSIER_DENIAL,
	DOSSIER_LIMIT,
	DOSSIER_CHANGE,
	DOSSIER_RESUMED,
	DOSSIER_KIND_COUNT,
};

struct dossier_item {
	struct dossier_place place;
	enum dossier_kind kind;
	uint32_t action; /* its number, or DOSSIER_OF_TASK */
};

struct dossier {
	struct arena *arena; /* borrowed */
	struct dossier_action *actions;
	size_t action_count;
	struct id_table by_id;	    /* owned */
	struct dossier_item *items; /* owned */
	size_t item_count, item_capacity;
	struct dossier_place task_start, task_end; /* task_end: or task.lost */
	bool is_lost, is_cut;
};

/* only: the id of the one action that is of interest, or NULL for all. False: out of memory. */
bool dossier_take(struct dossier *dossier, const struct trace_line *line, const char *only);

const struct dossier_action *dossier_find(const struct dossier *dossier, const char *id);

void dossier_free(struct dossier *dossier);

#define CLEANUP_DOSSIER __attribute__((cleanup(dossier_free)))
