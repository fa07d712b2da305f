/*
 * What of the trace goes, and how: whole tasks that have ended, with their blobs; single blobs;
 * compiled policies that no task has. The ledger has it first, through a power cut too: what is not
 * there and not on record is missing, and somebody will ask. What was on record and not done, since
 * the process died in between, is done by the next one.
 *
 * A task that lives holds a lock on its chain (trace/recorder.h); it is never touched.
 */
#pragma once

#include "base/sha256.h"
#include "policy/action.h"
#include "trace/chain.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct trace_store;

/* A task that is to go. */
struct retain_task {
	char id[ACTION_ID_BYTES];
	uint64_t records;
	char last[SHA256_HEX_BYTES]; /* "": not known */
	bool is_recorded;	     /* on record already: its removal was not finished */
};

/* True as long as somebody writes its chain. */
bool retain_is_live(const struct trace_store *store, const char *task);

/* True where there is anything of it. */
bool retain_exists(const struct trace_store *store, const char *task);

/* Bytes of its chain and its blobs. */
uint64_t retain_size(const struct trace_store *store, const char *task);

/*
 * Removes these tasks for the reason. ret_removed: how many were, the first ones of the list; one
 * that lives after all is passed over and does not count. On a failure the rest stays.
 */
int retain_remove(const struct trace_store *store, const struct chain_origin *origin,
		  const struct retain_task *tasks, size_t count, const char *reason,
		  size_t *ret_removed, struct error *error) __attribute__((warn_unused_result));

/* Removes one blob of a task for the reason. -ENOENT: there is none, and nothing is recorded. */
int retain_remove_blob(const struct trace_store *store, const struct chain_origin *origin,
		       const char *task, const char *blob, const char *reason, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Removes the kept policies that no chain refers to; none as long as a task is just beginning.
 * ret_removed: how many.
 */
int retain_policies(const struct trace_store *store, size_t *ret_removed, struct error *error)
	__attribute__((warn_unused_result));
