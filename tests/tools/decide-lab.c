/*
 * What decisions cost: reads command lines, one a line, and decides each of them again and again
 * in one process. Prints a JSON object: processor time for a decision as an argv (split at blanks),
 * as a shell's text in a live parser (the role's own time in it), and for the start of a role with
 * its first text; microseconds, the least of some rounds. Never installed.
 *
 *     bawn-decide-lab ROUNDS < LINES
 *     bawn-decide-lab verdicts < LINES    the verdict on each line, as a shell's text where we
 *                                         are; a pilcrow in it stands for a newline
 */
#include "base/arena.h"
#include "base/error.h"
#include "broker/decide.h"
#include "workspace/host.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINES 2000
#define WORDS 256

static char *lines[LINES];
static size_t line_count;

static void read_lines(void)
{
	char *line = NULL;
	size_t room = 0;

	while (line_count < LINES && getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		lines[line_count++] = line;
		line = NULL;
		room = 0;
	}
	free(line);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Of this process and of those that have ended below it. */
static double spent_us(void)
{
	struct rusage own, children;

	(void)getrusage(RUSAGE_SELF, &own);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	return (seconds(&own.ru_utime) + seconds(&own.ru_stime) + seconds(&children.ru_utime) +
		seconds(&children.ru_stime)) *
	       1e6;
}

/* Its memory is kept, as a supervisor keeps it. */
static void decide_words(struct parser *parser, const struct caller *host, struct arena *arena,
			 const char *line)
{
	struct decision decision = { 0 };
	char *text = strdup(line), *save = NULL;
	const char *argv[WORDS];
	size_t argc = 0;

	for (char *word = text ? strtok_r(text, " ", &save) : NULL; word && argc < WORDS;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	decide_argv(&decision, arena, parser, &(struct decide_place){ .host = host, .cwd = "/tmp" },
		    argv, argc);
	arena_reset(arena);
	free(text);
}

static void decide_text(struct parser *parser, const struct caller *host, struct arena *arena,
			const char *line)
{
	struct decision decision = { 0 };

	decide_shell(&decision, arena, parser,
		     &(struct decide_place){ .host = host, .cwd = "/tmp" }, line, strlen(line));
	arena_reset(arena);
}

static void words_of_all(const struct caller *host)
{
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	struct arena CLEANUP_ARENA arena = { 0 };

	for (size_t i = 0; i < line_count; i++)
		decide_words(&parser, host, &arena, lines[i]);
}

static void texts_of_all(const struct caller *host)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct parser CLEANUP_PARSER parser = PARSER_NONE;

	for (size_t i = 0; i < line_count; i++)
		decide_text(&parser, host, &arena, lines[i]);
}

static void starts_of_all(const struct caller *host)
{
	struct arena CLEANUP_ARENA arena = { 0 };

	for (size_t i = 0; i < line_count; i++) {
		struct parser CLEANUP_PARSER parser = PARSER_NONE;

		decide_text(&parser, host, &arena, lines[i]);
	}
}

static void measure(const char *name, const struct caller *host, int rounds,
		    void (*all)(const struct caller *host), const char *behind)
{
	double least = 0;

	for (int i = 0; i < rounds; i++) {
		double before = spent_us(), each;

		all(host);
		each = (spent_us() - before) / (double)line_count;
		least = i == 0 || each < least ? each : least;
	}
	printf("\"%s\": %.1f%s", name, least, behind);
}

static void give_newlines(char *line)
{
	static const char pilcrow[] = "\xc2\xb6";

	for (char *at = strstr(line, pilcrow); at; at = strstr(at, pilcrow)) {
		*at = '\n';
		memmove(at + 1, at + 2, strlen(at + 2) + 1);
	}
}

static int print_verdicts(const struct caller *host)
{
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	char cwd[PATH_MAX];

	for (size_t i = 0; getcwd(cwd, sizeof(cwd)) && i < line_count; i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct decision decision = { 0 };

		give_newlines(lines[i]);
		decide_shell(&decision, &arena, &parser,
			     &(struct decide_place){ .host = host, .cwd = cwd }, lines[i],
			     strlen(lines[i]));
		puts(verdict_word(decision.verdicts.whole.judgement));
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	struct caller host;
	int rounds = argc > 1 ? atoi(argv[1]) : 0;

	read_lines();
	if (argc > 1 && strcmp(argv[1], "verdicts") == 0)
		return host_gather(&arena, &host, &error) < 0 ? 2 : print_verdicts(&host);
	if (rounds <= 0 || !line_count || host_gather(&arena, &host, &error) < 0) {
		fprintf(stderr, "usage: bawn-decide-lab ROUNDS < LINES\n");
		return 2;
	}
	printf("{");
	measure("argv_us", &host, rounds, words_of_all, ", ");
	measure("shell_us", &host, rounds, texts_of_all, ", ");
	measure("start_us", &host, rounds, starts_of_all, "}\n");
	return 0;
}
