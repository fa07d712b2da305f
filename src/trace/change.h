/*
 * A change to a file that a task's action (or the host meanwhile) made. One shape for the
 * result, the record and what is held back for review.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct json;

enum change_kind {
	CHANGE_CREATED,
	CHANGE_MODIFIED,
	CHANGE_REMOVED,
	CHANGE_REPLACED, /* another object stands under the name */
	CHANGE_KIND_COUNT,
};

enum change_state {
	CHANGE_APPLIED,	 /* it is on the host */
	CHANGE_COVERED,	 /* a hidden or protected name that was covered again */
	CHANGE_HELD,	 /* kept back for review */
	CHANGE_DEFERRED, /* half done: looked at again after the task's next action */
	CHANGE_STAGED,	 /* in the task's stage, and not on the host */
	CHANGE_STATE_COUNT,
};

struct change {
	const char *path; /* inside of the box, clean */
	enum change_kind kind;
	enum change_state state;
	uint64_t window_ns; /* COVERED: how long the name was uncovered, as far as we saw; else 0 */
	const char *key;    /* of a configuration file: the one that changed; else NULL */
	const char *reason; /* HELD, DEFERRED: why; APPLIED: why it is told; may be NULL */
	const char *review; /* HELD: the id that `bawn review` has for it; NULL: it has none */
};

/* One result lists at most this many; each further one is in the record alone. */
#define CHANGE_LIMIT 1024

struct change_list {
	struct change items[CHANGE_LIMIT];
	size_t count;
};

/* The words that stand in the object. */
const char *change_kind_name(enum change_kind kind);
const char *change_state_name(enum change_state state);

/* The members of the object, and the object. */
void change_members(const struct change *change, struct json *json);
void change_json(const struct change *change, struct json *json);
