/* What the tests of the control protocol say to each other. */
#pragma once

#include "base/clock.h"
#include "broker/control.h"
#include "ipc/info.h"

#include <stdint.h>

#define ID "t-abcdefghij2345672345"
#define OTHER_ID "t-abxdefghij2345672345"
#define SECOND_NS (1000ull * 1000 * 1000)

static inline uint64_t soon(void)
{
	return clock_monotonic_ns() + 5 * SECOND_NS;
}

static const char *const some_argv[] = { "npm", "", "a\nb\xff", NULL };
static const char *const some_variables[] = { "A=", "B=c=d", NULL };
static const char *const some_meta[] = { "turn=3", "goal=", NULL };

static const char *const some_patterns[] = { "dist/**", "*.log", NULL };

static inline struct control_request some_request(void)
{
	return (struct control_request){ .argv = some_argv,
					 .argc = 3,
					 .cwd = "/work/dir",
					 .variables = some_variables,
					 .variable_count = 2,
					 .meta = some_meta,
					 .meta_count = 2,
					 .artifacts = some_patterns,
					 .artifact_count = 2,
					 .artifact_path = "/out",
					 .timeout_ns = 77,
					 .flags = CONTROL_INPUT | CONTROL_TTY,
					 .window = { .ws_row = 24, .ws_col = 65535 } };
}
static const struct info_limit limits[] = {
	{ .word = "memory", .value = 1 << 20, .usage = 5, .grade = "exact" },
	{ .word = "disk", .value = INFO_UNKNOWN, .usage = INFO_UNKNOWN, .grade = "absent" },
};
static const struct info_process processes[] = {
	{ .pid = 12, .parent = 1, .command = "sh\x1b[m", .cpu_ns = 7, .action = "a-x" },
};
static const struct info_action actions[] = {
	{ .action = "a-x", .argv = some_argv, .argc = 3, .state = INFO_RUNNING, .exit = -1 },
	{ .action = "a-y",
	  .argv = some_argv,
	  .argc = 1,
	  .state = INFO_ENDED,
	  .exit = 143,
	  .tty = true },
};
static const struct info some_info = {
	.task = ID,
	.pid = 4711,
	.mode = INFO_LIVE,
	.state = INFO_FROZEN,
	.freezer = INFO_BY_SIGNALS,
	.age_ns = 1,
	.workspace = "/work",
	.idle_left_ns = INFO_UNKNOWN,
	.limits = limits,
	.limit_count = 2,
	.processes = processes,
	.process_count = 1,
	.process_total = 9,
	.actions = actions,
	.action_count = 2,
};
