/*
 * Which tasks the trace tells of: from the ledger, and from the chains that lie beside it. A task
 * of the ledger without its chain was removed (on record) or is missing (not on record); a chain
 * without a record in the ledger is foreign. Whether a task still runs is not written down: the
 * caller knows (broker/holder.h).
 *
 * Memory: a hundred bytes for each task, at most CATALOGUE_LIMIT_TASKS; of more the newest are
 * kept. Lines that are none are told to the caller, and the rest is read.
 */
#pragma once

#include "base/sha256.h"
#include "policy/action.h"
#include "trace/id_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct trace_line;
struct trace_store;

#define CATALOGUE_LIMIT_TASKS (1u << 20)

enum catalogue_state {
	CATALOGUE_OPEN, /* no end on record: it runs, or its supervisor died unseen */
	CATALOGUE_ENDED,
	CATALOGUE_LOST,	   /* its supervisor died */
	CATALOGUE_REMOVED, /* its chain was removed, on record */
	CATALOGUE_MISSING, /* its chain is not there, and nobody said so */
	CATALOGUE_FOREIGN, /* a chain that the ledger does not know */
	CATALOGUE_STATE_COUNT,
};

struct catalogue_task {
	char id[ACTION_ID_BYTES]; /* first: trace/id_table.h */
	enum catalogue_state state;
	bool has_chain;
	uint64_t started_ns, ended_ns; /* wall clock; 0: not known */
	uint64_t records;	       /* of its end's record */
	char last[SHA256_HEX_BYTES];   /* "": not known */
};

struct catalogue {
	struct catalogue_task *tasks; /* oldest first */
	size_t count;
	bool is_cut; /* there were older ones */
	size_t capacity;
	struct id_table by_id;
};

/*
 * Reads both. told: what is no line of the ledger (NULL: nobody is told). A store without a ledger
 * has only foreign tasks. Negative errno with a message otherwise.
 */
int catalogue_read(const struct trace_store *store, struct catalogue *ret_catalogue,
		   void (*told)(void *context, const struct trace_line *fault), void *context,
		   struct error *error) __attribute__((warn_unused_result));

struct catalogue_task *catalogue_find(const struct catalogue *catalogue, const char *id);

const char *catalogue_state_name(enum catalogue_state state);

void catalogue_free(struct catalogue *catalogue);

#define CLEANUP_CATALOGUE __attribute__((cleanup(catalogue_free)))
