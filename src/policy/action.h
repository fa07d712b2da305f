/*
 * What an agent asks to be done: the structured form of a command. Made once by the broker from
 * flags (later: a hook, MCP, the service), never changed afterwards, and borrowed by everybody
 * below. Its JSON stands in docs/schema/action.schema.json.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct json;

/* Linux itself stops at 2 MiB of arguments (execve(2)); what is longer cannot be started anyway. */
#define ACTION_ARGUMENTS_LIMIT 65536
/* "t-" or "a-" and 20 letters of base 32: 100 random bits. */
#define ACTION_ID_BYTES 24

enum action_input {
	ACTION_INPUT_NULL, /* /dev/null */
	ACTION_INPUT_PIPE, /* bytes copied from the caller's standard input */
	ACTION_INPUT_TTY,  /* a terminal of its own; output goes there too */
	ACTION_INPUT_COUNT,
};

struct action {
	char task[ACTION_ID_BYTES];
	char id[ACTION_ID_BYTES];
	char parent[ACTION_ID_BYTES]; /* "" for the first of a task */
	const char *const *argv;      /* NULL-ended */
	size_t argc;
	const char *cwd;	    /* clean path inside of the box */
	const char *const *environ; /* NULL-ended NAME=VALUE, the whole environment */
	enum action_input input;
	uint64_t timeout_ns; /* wall clock; 0 = none */
	const char *const
		*meta; /* NULL-ended KEY=VALUE: what the agent says of itself; NULL: nothing */
};

const char *action_input_name(enum action_input input);

/* The action as a JSON object: names of environment variables only, never their values. */
void action_json(const struct action *action, struct json *json, const char *name);
