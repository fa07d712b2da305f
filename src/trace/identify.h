/*
 * Which file an action is: its path in the box, and its SHA-256 (trace/executable.h). One that was
 * not seen before is hashed in small steps while the actions run.
 */
#pragma once

#include "trace/event.h"
#include "trace/executable.h"

#include <limits.h>

struct trace_store;

/* Read at once: some tenths of a millisecond. */
#define IDENTIFY_STEP_BYTES (256u * 1024)

/* A file that is being hashed. */
struct identify_pending;

struct identify {
	struct executable_cache cache;
	struct identify_pending *pending;
	bool is_open;
};

#define IDENTIFY_NONE ((struct identify){ .cache = EXECUTABLE_CACHE_NONE })

/* What an event says of the file; its strings are in here. */
struct identity {
	struct event_executable event;
	char path[PATH_MAX];
	char sha256[SHA256_HEX_BYTES];
};

/*
 * Where a file of a box lies in it, as long as the box stands: the kernel goes up its mounts. "":
 * not known.
 */
void identify_path(int fd, char ret_path[static PATH_MAX]);

/*
 * Fills ret_identity for the file of an EVENT_ACTION_START. What is not known yet is begun, for the
 * action with this id, and ret_identity says "later". False where nothing can be said at all.
 */
bool identify(struct identify *identify, const struct trace_store *store, const struct event *event,
	      struct identity *ret_identity);

/*
 * One step. Returns true when a file is done: ret_identity is that of the action with ret_action.
 */
bool identify_step(struct identify *identify, struct identity *ret_identity,
		   char ret_action[static ACTION_ID_BYTES],
		   char ret_parent[static ACTION_ID_BYTES]);

static inline bool identify_has_work(const struct identify *identify)
{
	return identify->pending != NULL;
}

void identify_end(struct identify *identify);
