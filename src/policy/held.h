/*
 * A limit as a task has it: its value and what holds it here. The row that explain, doctor and the
 * result tell of it, from one place, so that the three cannot say different things. Pure.
 *
 * Values are in the units of policy/limit.h; LIMIT_NONE is "no limit". A limit that nobody asked
 * for is held without control groups, since these are made only for what was asked for
 * (broker/capacity.h): the facts may have them, its row does not.
 */
#pragma once

#include "policy/limit.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct json;
struct view;

struct held {
	enum limit limit;
	uint64_t value;
	bool asked;
	struct limit_means means;
};

/* One row for each limit, in the order of the table. */
void held_fill(const struct limits *limits, const struct limit_facts *facts,
	       struct held ret_rows[LIMIT_COUNT]);

/* Whether it says something of a task that sees this: not so a GPU's time where none is shown. */
bool held_concerns(enum limit limit, const struct view *view);

/*
 * "memory: 2G, polled (1s; watchdog over the task's processes)"; "io rate: none", and why, where
 * the limit has no option: "gpu share: none, absent (...)".
 */
void held_print(const struct held *held, struct buffer *buffer);

/*
 * {limit, value, text, enforcement, grain_ms, mechanism}: value null for none, text as printed, a
 * limit that is none is "absent", without a mechanism (null) unless it has no option. name is NULL
 * inside of an array.
 */
void held_json(const struct held *held, const char *name, struct json *json);
