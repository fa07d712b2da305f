/*
 * What a task could read, write and connect to, from its kept policy: the first three of the five
 * questions that `bawn trace show` answers. The policy is a file that anybody may have changed: it
 * is used only where its bytes have the hash that the record says.
 */
#pragma once

#include "cli/trace_place.h"
#include "policy/policy.h"

struct buffer;
struct json;

struct trace_reach {
	bool is_known;
	const char *why; /* it is not known; the place's arena */
	struct policy policy;
};

/* kept: the policy's name in the record, NULL where there is none. */
void trace_reach_read(struct trace_place *place, const char *kept, struct trace_reach *ret_reach);

/* Lines of "    read       /usr /etc (built-in ...)"; all: every path, else some of each rule. */
void trace_reach_print(const struct trace_reach *reach, bool all, struct buffer *buffer);

/* Members read, write, hidden, connect; null where it is not known. */
void trace_reach_json(const struct trace_reach *reach, struct json *json);
