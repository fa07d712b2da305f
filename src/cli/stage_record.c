#include "cli/stage_record.h"

#include "base/error.h"
#include "cli/trace_reach.h"

#include <errno.h>
#include <stdio.h>

/* A task begins its chain; what comes before it are lines about the chain itself. */
#define LIMIT_LINES 4

/* The name of the policy in the task's first record; NULL: there is none. */
static const char *policy_of(struct trace_place *place, const char *task)
{
	struct trace_reader CLEANUP_TRACE_READER reader = TRACE_READER_NONE;
	char name[ACTION_ID_BYTES + sizeof(TRACE_SUFFIX)];
	struct error ignored = ERROR_NONE;
	const struct json_node *body;
	struct trace_line line;

	if ((size_t)snprintf(name, sizeof(name), "%s" TRACE_SUFFIX, task) >= sizeof(name) ||
	    trace_read_open(&reader, place->store.tasks_fd, name, &ignored) < 0)
		return NULL;
	for (unsigned i = 0; i < LIMIT_LINES && trace_read_next(&reader, &line) > 0; i++)
		if (line.fault == TRACE_FINE && json_view_is(line.type, "task.start") &&
		    trace_line_read(line.raw.bytes, line.raw.length, &place->arena, &line, &body) ==
			    0)
			return json_tree_text(body, "policy_kept");
	return NULL;
}

bool stage_record_is_ephemeral(int state_fd, const char *task)
{
	struct trace_place CLEANUP_TRACE_PLACE place = TRACE_PLACE_NONE;
	struct error ignored = ERROR_NONE;
	struct trace_reach reach;

	if (trace_store_open_read(state_fd, &place.store, &ignored) < 0)
		return false;
	trace_reach_read(&place, policy_of(&place, task), &reach);
	return reach.is_known && (reach.policy.flags & POLICY_EPHEMERAL);
}
