/*
 * Verifying a whole trace, in the place where it is written or copied to another: the ledger, each
 * task's chain and its blobs, and that none is missing and none too many. What is written
 * meanwhile is taken as it was at the begin.
 */
#pragma once

#include "trace/verify.h"

struct verify_store {
	int fd;			  /* the directory of the trace; borrowed */
	const char *prefix;	  /* what stands before names in findings: "trace" */
	const char *const *tasks; /* only these chains; count 0: all of them */
	size_t task_count;
};

/* -ENOENT, and nothing told: there is neither a ledger nor a chain. Else as trace/verify.h. */
int verify_store(struct verify *verify, const struct verify_store *store)
	__attribute__((warn_unused_result));

/* True for what can be the id of a task: a name that leads nowhere else. */
bool verify_is_task(const char *name, size_t length);
