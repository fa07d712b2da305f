/*
 * What a record costs: record-lab STATE COUNT writes COUNT denials to the chain of one task below
 * the state directory STATE, and prints {"records", "ns"}. For tests/bench; never installed.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "trace/recorder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int write_records(struct recorder *recorder, uint64_t count)
{
	struct denial denial = { .kind = DENIAL_SYS_PTRACE,
				 .rule = rule_builtin(RULE_SYSCALL_PTRACE),
				 .object = "process_vm_readv",
				 .count = 1,
				 .measured = true };
	struct event event = { .type = EVENT_DENIAL, .action = "a-bench", .body.denial = &denial };
	int result = 0;

	for (uint64_t i = 0; i < count && result == 0; i++) {
		event.monotonic_ns = 0;
		result = event_emit(&recorder->sink, &event);
	}
	return result;
}

int main(int argc, char **argv)
{
	struct recorder CLEANUP_RECORDER recorder = RECORDER_NONE;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct recorder_options options = { .task = "t-bench",
					    .environment = environ,
					    .arena = &arena };
	struct error error = ERROR_NONE;
	uint64_t begin, end, count;

	if (argc != 3)
		return 2;
	count = strtoull(argv[2], NULL, 10);
	options.state_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (recorder_begin(&recorder, &options, &error) < 0) {
		(void)fprintf(stderr, "record-lab: %s\n", error.message);
		return 1;
	}
	begin = clock_monotonic_ns();
	if (write_records(&recorder, count) < 0)
		return 1;
	end = clock_monotonic_ns();
	if (event_end(&recorder.sink, "end", &error) < 0)
		return 1;
	printf("{\"records\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", count, end - begin);
	return 0;
}
