/*
 * A note on a task that has ended: a record of the ledger, since a chain is never added to once it
 * has ended (docs/TRACE.md). A note on one that lives is its supervisor's to write.
 */
#pragma once

#include "policy/action.h"

#include <stdint.h>

struct chain_origin;
struct error;
struct mask;
struct trace_store;

struct annotation {
	const char *task; /* its id */
	const char *text;
	const char *const *meta; /* "KEY=VALUE", NULL-ended; NULL: none */
};

/*
 * Adds it, and waits until it is on the disk. -EBUSY: the task lives (somebody holds its chain's
 * lock); -ENOENT: it has no chain, or that is being removed.
 */
int annotate(const struct trace_store *store, const struct chain_origin *origin,
	     const struct annotation *annotation, const struct mask *mask, struct error *error)
	__attribute__((warn_unused_result));
