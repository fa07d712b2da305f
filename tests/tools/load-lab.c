/*
 * What a policy file costs before anything is decided by it: reads it again and again in one
 * process, as a start does. Prints a JSON object: processor time of a load by the parser and of one
 * from what is kept of the file, and of making rules of it; microseconds, the least of some rounds.
 * Never installed.
 *
 *     bawn-load-lab ROUNDS POLICY STATE-DIRECTORY
 */
#include "base/arena.h"
#include "base/error.h"
#include "policy/egress_compile.h"
#include "policy/policy.h"
#include "policy/ruling.h"
#include "workspace/host.h"
#include "workspace/policy_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

struct lab {
	struct caller host;
	const char *path;
	int state_fd; /* -1: nothing is kept */
};

static double microseconds(const struct timeval *time)
{
	return (double)time->tv_sec * 1e6 + (double)time->tv_usec;
}

/* Of this process, and of those that have ended below it. */
static double spent_us(void)
{
	struct rusage children;
	struct timespec own;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	return (double)own.tv_sec * 1e6 + (double)own.tv_nsec / 1e3 +
	       microseconds(&children.ru_utime) + microseconds(&children.ru_stime);
}

static int load(const struct lab *lab, struct arena *arena, struct policy_stack *ret_stack)
{
	struct document_faults faults;
	struct error error = ERROR_NONE;
	int result = policy_stack_load(&lab->host, lab->path, NULL, lab->state_fd, arena, ret_stack,
				       &faults, &error);

	if (result < 0)
		fprintf(stderr, "bawn-load-lab: %s\n", error.message);
	return result;
}

static int compile(const struct policy_stack *stack, struct arena *arena)
{
	struct policy policy = { 0 };
	struct error error = ERROR_NONE;
	int result = egress_compile(&stack->document, arena, &policy.egress, &error);

	return result == 0 ? ruling_compile(&stack->document, &policy, arena) : result;
}

/* The least of the rounds, of loading and of compiling. */
static int measure(const struct lab *lab, int rounds, double ret_us[static 2])
{
	/* one that is used again, as that of a supervisor: its first pages are no load's */
	struct arena CLEANUP_ARENA arena = { 0 };

	for (int i = 0; i <= rounds; i++) {
		struct policy_stack stack;
		double begun = spent_us(), loaded, compiled;

		if (load(lab, &arena, &stack) < 0)
			return -1;
		loaded = spent_us();
		if (compile(&stack, &arena) < 0)
			return -1;
		compiled = spent_us();
		arena_reset(&arena);
		/* the first one writes what is kept */
		if (i == 1 || loaded - begun < ret_us[0])
			ret_us[0] = loaded - begun;
		if (i == 1 || compiled - loaded < ret_us[1])
			ret_us[1] = compiled - loaded;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	struct lab lab = { .path = argc == 4 ? argv[2] : NULL, .state_fd = -1 };
	int rounds = argc == 4 ? atoi(argv[1]) : 0;
	double plain[2] = { 0 }, kept[2] = { 0 };

	if (rounds <= 0 || host_gather(&arena, &lab.host, &error) < 0) {
		fprintf(stderr, "usage: bawn-load-lab ROUNDS POLICY STATE-DIRECTORY\n");
		return 2;
	}
	if (measure(&lab, rounds, plain) < 0)
		return 1;
	lab.state_fd = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lab.state_fd < 0 || measure(&lab, rounds, kept) < 0)
		return 1;
	printf("{\"load_us\": %.1f, \"kept_us\": %.1f, \"compile_us\": %.1f}\n", plain[0], kept[0],
	       kept[1]);
	return 0;
}
