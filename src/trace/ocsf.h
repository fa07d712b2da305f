/*
 * Records as events of the Open Cybersecurity Schema Framework, version 1.3 (schema.ocsf.io), one
 * JSON object each:
 *
 *   action.start, action.result     1007 Process Activity: Launch, Terminate
 *   denials and verdicts of net.*   4001 Network Activity: Refuse, Open
 *   other denials, verdicts and
 *   approvals, changes, limits      6003 API Activity
 *
 * Others have no class of theirs there. Strings of OCSF are Unicode: bytes of a task that are not
 * UTF-8 become U+FFFD. Pure.
 */
#pragma once

#include "base/json_tree.h"

#include <stdbool.h>

struct buffer;
struct trace_line;

/*
 * What a record leaves out and its events need: of the task's first record and the action's
 * intent.
 */
struct ocsf_context {
	const char *command; /* visible; NULL: not known */
	const char *path;    /* of the executable; NULL: not known */
	uint64_t uid, pid;
};

/* Appends the event and a newline; false where there is no class for the record. */
bool ocsf_event(const struct ocsf_context *context, const struct trace_line *line,
		const struct json_node *body, struct buffer *buffer);
