/*
 * A program of the host's that reads what a task or a stranger may have written, and is not trusted
 * to come to an end: its output is counted, its time is limited, it gets no environment but ours
 * and no descriptors but those given. Whoever reaches a limit is killed.
 *
 * Who may use it: a verb, or the supervisor where it has no child but this one meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The descriptors of its own that a program finds from here on; behind the standard ones. */
#define HOST_PROGRAM_FIRST_FD 10
/* More have no use yet. */
#define HOST_PROGRAM_LIMIT_FDS 3
/* What it may have of memory of its own: a delta of git's is unpacked whole. */
#define HOST_PROGRAM_LIMIT_MEMORY_BYTES (256u * 1024 * 1024)

struct host_program {
	const char *path;
	char *const *argv;
	char *const *environment;
	const int *fds; /* it has them as HOST_PROGRAM_FIRST_FD and so on */
	size_t fd_count;
	int out_fd; /* takes what it writes to standard output */
	uint64_t limit_bytes;
	uint64_t limit_ns;
};

/*
 * Runs it. Returns its exit status, or a negative errno: -EFBIG more output than it may have,
 * -ETIME it took too long, -ECHILD a signal ended it; of writing to out_fd. ret_said: it wrote to
 * standard error, which goes nowhere.
 */
int host_program_run(const struct host_program *program, bool *ret_said)
	__attribute__((warn_unused_result));
