/*
 * What `bawn trace head` and `verify` do with bawn-sign, step by step, for tests/run. Never
 * installed.
 *
 *	ledger STATE	makes the ledger, and no key
 *	head STATE [N]	signs N times (1) and prints each head's line
 *	hold STATE	starts bawn-sign, prints its pid, waits for a line, signs, waits for another
 *	due STATE	signs where that is due, as at the end of a task; the hook runs
 *	check		checks the heads of its input's lines, prints 1 or 0 for each
 *	time STATE N	signs N times and prints the microseconds of each
 *
 * Exit 0; 1 with the error on standard error.
 */
#include "base/clock.h"
#include "base/error.h"
#include "trace/hook.h"
#include "trace/sign.h"
#include "trace/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLAIMS 1000

struct lab {
	struct trace_store store;
	struct chain_origin origin;
	struct error error;
};

static int head(struct lab *lab, bool is_timed)
{
	uint64_t start_ns = clock_monotonic_ns();
	char line[SIGN_LINE_BYTES];
	struct sign_claim claim;

	if (sign_head(&lab->store, &lab->origin, &claim, &lab->error) < 0)
		return -1;
	sign_line(&claim, line);
	if (is_timed)
		printf("%" PRIu64 "\n", (clock_monotonic_ns() - start_ns) / 1000);
	else
		puts(line);
	return 0;
}

static int hold(struct lab *lab)
{
	struct signing CLEANUP_SIGNING signing = SIGNING_NONE;
	char line[SIGN_LINE_BYTES];
	struct sign_claim claim;

	if (sign_start(&lab->store, &lab->origin, &signing, &lab->error) < 0)
		return -1;
	printf("%d\n", (int)signing.role.pid);
	(void)fflush(stdout);
	(void)getchar();
	if (sign_finish(&lab->store, &lab->origin, &signing, &claim, &lab->error) < 0)
		return -1;
	sign_line(&claim, line);
	puts(line);
	(void)fflush(stdout);
	(void)getchar();
	return 0;
}

static int ledger(struct lab *lab)
{
	struct chain CLEANUP_CHAIN chain = CHAIN_NONE;

	if (ledger_open(&lab->store, &lab->origin, &chain, &lab->error) < 0)
		return -1;
	return chain_flush(&chain, false);
}

static int check(struct lab *lab)
{
	static struct sign_claim claims[CLAIMS];
	static bool good[CLAIMS];
	struct sign_checker CLEANUP_SIGN_CHECKER checker = SIGN_CHECKER_NONE;
	char line[1024];
	size_t count = 0;

	while (count < CLAIMS && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (sign_line_read(line, strlen(line), &claims[count++]) < 0)
			return error_set(&lab->error, 1, "not a head: %.100s", line);
	}
	if (sign_check_begin(&checker, &lab->error) < 0 ||
	    sign_check(&checker, claims, count, good, &lab->error) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(good[i] ? "1" : "0");
	return 0;
}

static int open_lab(struct lab *lab, const char *state)
{
	int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	chain_origin_gather(NULL, &lab->origin);
	return fd < 0 ? error_set(&lab->error, 1, "no such state directory") :
			trace_store_open(fd, &lab->store, &lab->error);
}

static int run(struct lab *lab, int argc, char **argv)
{
	int times = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1, result = 0;

	if (strcmp(argv[1], "check") == 0)
		return check(lab);
	if (argc < 3 || open_lab(lab, argv[2]) < 0)
		return -1;
	if (strcmp(argv[1], "ledger") == 0)
		return ledger(lab);
	if (strcmp(argv[1], "hold") == 0)
		return hold(lab);
	if (strcmp(argv[1], "due") == 0)
		return hook_sign_when_due(&lab->store, &lab->origin, getenv("HOME"), &lab->error);
	for (int i = 0; i < times && result == 0; i++)
		result = head(lab, strcmp(argv[1], "time") == 0);
	return result;
}

int main(int argc, char **argv)
{
	struct lab lab = { .store = TRACE_STORE_NONE };
	int result = argc > 1 ? run(&lab, argc, argv) : -1;

	if (result < 0)
		(void)fprintf(stderr, "%s\n", lab.error.message);
	trace_store_close(&lab.store);
	return result < 0;
}
