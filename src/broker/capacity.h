/*
 * What this host offers to hold limits with: the facts behind policy/limit.h.
 *
 * Control groups cost a start more than all else that holds a limit (looking for them reads
 * mountinfo; attaching may wait for RCU), so that they are looked for only where a limit was asked
 * for, or to tell people. What is built in is held by resource limits, sized areas and a watchdog.
 *
 * The order of use: gather, consider_scope once it is known what was asked for, join_scope in the
 * process that is going to be the supervisor, needs.
 */
#pragma once

#include "kernel/cgroup.h"
#include "policy/limit.h"

#include <stdbool.h>

struct error;

struct capacity {
	struct limit_facts facts;
	struct cgroup_host cgroups; /* owned; count 0 unless they were looked for */
};

#define CAPACITY_NONE ((struct capacity){ .cgroups = { .reason = "" } })

/* Fills the facts; with_groups: control groups too. Never fails: what cannot be found is absent. */
void capacity_gather(bool with_groups, struct capacity *ret_capacity);

/*
 * Where a limit that was asked for would be held better in a group of systemd's manager, and there
 * is one to ask (broker/scope.h), the facts say so from here on. Asks nothing yet, and looks only
 * where that could be so.
 */
void capacity_consider_scope(struct capacity *capacity, const struct limits *limits);

/* True where a start is to ask for a scope. */
bool capacity_needs_scope(const struct capacity *capacity, const struct limits *limits);

/* Asks, where capacity_needs_scope() says so: this process may be in another group afterwards. */
int capacity_join_scope(struct capacity *capacity, const struct limits *limits, const char *task,
			struct error *error) __attribute__((warn_unused_result));

/* Removes the control groups that a dead task left, by its id. */
void capacity_reap(const char *task);

void capacity_close(struct capacity *capacity);

/* The controllers (CGROUP_BIT()s) that the limits which were asked for need here. */
uint32_t capacity_needs(const struct capacity *capacity, const struct limits *limits);
