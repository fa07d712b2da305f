/*
 * The layers and limits of a running action, read back from the kernel where that is possible; in
 * the words of enum enforcement.
 */
#pragma once

#include "policy/held.h"
#include "policy/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct action;
struct box;
struct effective;
struct entered;
struct plan;
struct result;

/* The namespaces of a box, which stay what they are: looked at once for all of its actions. */
struct evidence_namespaces {
	struct evidence_namespace {
		bool is_known, is_other;
		uint64_t inode;
	} of[LAYER_COUNT];
};

/* Fills result->layers: one row per layer, absent ones included. */
void evidence_gather(const struct plan *plan, const struct box *box, const struct entered *entered,
		     struct evidence_namespaces *namespaces, struct result *result);

/*
 * How each limit is held for the action. Those that the kernel keeps per process are read back
 * (prlimit(2)): the value is the one in force, which is lower where the caller's own is, and one
 * that is not in force is absent, whatever was planned. The action must not have been waited for.
 * Returns the count of rows: those that concern the task, in the table's order.
 */
size_t evidence_limits(const struct effective *effective, const struct action *action,
		       const struct entered *entered, struct held ret_rows[LIMIT_COUNT]);
