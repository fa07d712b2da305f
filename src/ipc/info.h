/*
 * What a supervisor says about its task for `bawn ps`: a value that the supervisor fills, encoded
 * into a sealed memfd and decoded by the client, which prints it as a tree or as JSON. Pure.
 *
 * Strings are bytes as the kernel or the task gave them: a printer escapes them (json.h,
 * buffer_visible()). Decoding believes nothing; errors as in ipc/control.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;
struct json;

/* A fork bomb is told by its first processes and their number. */
#define INFO_LIMIT_PROCESSES 4096u
#define INFO_LIMIT_ACTIONS 1024u
#define INFO_LIMIT_LIMITS 64u
/* Of an argv; what is longer is cut by the encoder, at an argument. */
#define INFO_LIMIT_ARGUMENTS 64u
#define INFO_LIMIT_ARGUMENT_BYTES 4096u

#define INFO_UNKNOWN UINT64_MAX

enum info_mode { INFO_RUN, INFO_LIVE, INFO_MODE_COUNT };

enum info_state {
	INFO_IDLE,    /* live, without an action */
	INFO_RUNNING, /* has actions */
	INFO_FROZEN,
	INFO_ENDING,
	INFO_ENDED, /* an action that has its result */
	INFO_STATE_COUNT,
};

enum info_freezer { INFO_NOT_FROZEN, INFO_BY_CGROUP, INFO_BY_SIGNALS, INFO_FREEZER_COUNT };

/* Units are the limit's (policy/limit.h). */
struct info_limit {
	const char *word;      /* of policy/limit.def */
	uint64_t value, usage; /* INFO_UNKNOWN: no limit; not known */
	const char *grade;     /* "exact", "polled", "absent" */
};

struct info_process {
	int32_t pid, parent; /* of the supervisor's pid namespace */
	const char *command;
	uint64_t cpu_ns, memory_bytes;
	const char *action; /* "" where it cannot be told */
};

struct info_action {
	const char *action;
	const char *const *argv; /* argc of them; a decoded one is NULL-ended */
	size_t argc;
	enum info_state state; /* RUNNING, FROZEN, ENDING, ENDED */
	uint64_t age_ns, cpu_ns, memory_bytes;
	uint32_t processes;
	int32_t exit; /* status as of run; -1 while it runs */
	bool tty;
};

struct info {
	const char *task;
	int32_t pid; /* the supervisor's */
	enum info_mode mode;
	enum info_state state;
	enum info_freezer freezer;
	uint64_t started_wall_ns, age_ns;
	const char *workspace;
	/* from now on; INFO_UNKNOWN: none */
	uint64_t idle_left_ns, lifetime_left_ns;
	uint64_t cpu_ns, memory_bytes; /* of the whole task */
	const struct info_limit *limits;
	size_t limit_count;
	const struct info_process *processes;
	size_t process_count;
	uint64_t process_total; /* may be more than are listed */
	const struct info_action *actions;
	size_t action_count;
};

/* Appends the blob; what is beyond a limit is left out. NULL strings count as "". */
void info_encode(const struct info *info, struct buffer *buffer);

/* Strings and arrays are the arena's. -EBADMSG, -EPROTONOSUPPORT, -E2BIG, -ENOMEM. */
int info_decode(const void *bytes, size_t length, struct arena *arena, struct info *ret_info);

/* As an object; name NULL inside of an array. */
void info_json(const struct info *info, struct json *json, const char *name);

const char *info_mode_name(enum info_mode mode);
const char *info_state_name(enum info_state state);
/* NULL for INFO_NOT_FROZEN. */
const char *info_freezer_name(enum info_freezer freezer);
