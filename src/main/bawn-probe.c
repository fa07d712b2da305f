/*
 * bawn-probe: the inside of `bawn verify`. Reads attempts, makes them, tells what became of each
 * (broker/attempt.h). It is an ordinary command of a box and has no power of its own.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "broker/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A script names each path of a view at most thrice: far below this. */
#define SCRIPT_LIMIT_BYTES (16u * 1024 * 1024)

/* Cuts a line at its tabs; the words are NULL-ended. False when there are too many. */
static int cut(char *line, char **words)
{
	size_t count = 0;

	for (char *at = line; at && count < ATTEMPT_LIMIT_ARGUMENTS;) {
		char *tab = strchr(at, '\t');

		words[count++] = at;
		if (tab)
			*tab = '\0';
		at = tab ? tab + 1 : NULL;
		if (!at) {
			words[count] = NULL;
			return 1;
		}
	}
	return 0;
}

static int try_line(unsigned number, char *line)
{
	static char *words[ATTEMPT_LIMIT_ARGUMENTS + 1];
	enum attempt attempt;
	uint64_t start;
	int result;

	if (!cut(line, words))
		return 3;
	attempt = attempt_find(words[0]);
	if (attempt == ATTEMPT_COUNT)
		return 4;
	start = clock_monotonic_ns();
	result = attempt_make(attempt, words + 1);
	printf("%u\t%s\t%d\t%llu\n", number, result < 0 ? "failed" : "done",
	       result < 0 ? -result : 0,
	       (unsigned long long)((clock_monotonic_ns() - start) / 1000u));
	/* line by line: should the next one end us, this one has been told */
	return fflush(stdout) == 0 ? 0 : 5;
}

int main(void)
{
	char *script = malloc(SCRIPT_LIMIT_BYTES + 1), *line = script;
	ssize_t length = script ? fd_read_all(0, script, SCRIPT_LIMIT_BYTES) : -1;
	int status = 0;

	if (length < 0 || length == (ssize_t)SCRIPT_LIMIT_BYTES)
		return 2;
	script[length] = '\0';
	for (unsigned number = 0; line && *line && status == 0; number++) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		status = try_line(number, line);
		line = end ? end + 1 : NULL;
	}
	free(script);
	return status;
}
