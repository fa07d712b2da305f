/*
 * A change to a file that a task's action (or the host meanwhile) made. One shape for the
 * result, the record and what is held back for review.
 */
#pragma once

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

enum change_kind {
	CHANGE_CREATED,
	CHANGE_MODIFIED,
	CHANGE_REMOVED,
	CHANGE_REPLACED,   /* another object stands under the name */
	CHANGE_RENAMED,	   /* the same object, from `from` */
	CHANGE_ATTRIBUTES, /* mode, owner or times: the content is the same */
	CHANGE_KIND_COUNT,
};

enum change_state {
	CHANGE_APPLIED,	 /* it is on the host */
	CHANGE_COVERED,	 /* a hidden or protected name that was covered again */
	CHANGE_HELD,	 /* kept back for review */
	CHANGE_DEFERRED, /* half done: looked at again after the task's next action */
	CHANGE_STAGED,	 /* in the task's stage, and not on the host */
	CHANGE_DROPPED,	 /* in an ephemeral workspace: gone with the task */
	CHANGE_STATE_COUNT,
};

/* What stood, or stands, under the name. */
struct change_side {
	const char *type; /* "file", "link", "directory", ...: static */
	uint32_t mode;	  /* permission bits */
	uint64_t bytes;
	char sha256[SHA256_HEX_BYTES]; /* of a file, or of a link's target; "" where not known */
};

/* When `before` was seen. */
enum change_seen {
	CHANGE_SEEN_START,   /* as the action began */
	CHANGE_SEEN_EARLIER, /* by an earlier action's look: the host may have changed it since */
};

struct change {
	const char *path; /* inside of the box, clean */
	enum change_kind kind;
	enum change_state state;
	uint64_t window_ns; /* COVERED: how long the name was uncovered, as far as we saw; else 0 */
	const char *key;    /* of a configuration file: the one that changed; else NULL */
	const char *reason; /* HELD, DEFERRED: why; APPLIED: why it is told; may be NULL */
	const char *review; /* HELD: the id that `bawn review` has for it; NULL: it has none */
	const char *from;   /* RENAMED: the path before; else NULL */
	/* NULL: nothing stood there, or it is not known */
	const struct change_side *before, *after;
	enum change_seen seen;
	bool is_inferred; /* the kind, since nobody saw what was there before */
	uint64_t below;	  /* of a directory: so many changes in it are not told one by one */
};

/* One result lists at most this many; of the others it tells how many there were. */
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
