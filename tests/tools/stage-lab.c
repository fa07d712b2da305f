/*
 * bawn-stage-lab: what a stage changed, of two plain directories (tests/run/test_stage.py); and the
 * difference of two texts.
 *
 *   patch|stat|json UPPER LOWER   as a verb would show it
 *   walk UPPER LOWER              nothing but its changes, counted
 *   text BEFORE AFTER             the hunks, with file lines
 *
 * On standard error: microseconds, and the most memory that was used, in KiB.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/page.h"
#include "cli/stage_show.h"
#include "workspace/stage_changes.h"
#include "workspace/text_diff.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *message)
{
	(void)fprintf(stderr, "%s\n", message);
	return 1;
}

static int count_change(void *context, const struct stage_change *change)
{
	(void)change;
	++*(unsigned long *)context;
	return 0;
}

static int walk(struct stage *stage)
{
	unsigned long count = 0;
	struct error error = ERROR_NONE;

	stage->take = count_change;
	stage->context = &count;
	if (stage_changes(stage, &error) < 0)
		return fail(error.message);
	(void)printf("%lu\n", count);
	return 0;
}

static int show(const struct stage *stage, enum stage_format format)
{
	struct stage_totals totals = { 0 };
	struct error error = ERROR_NONE;
	struct page page;
	int result;

	page_open(&page, false);
	result = stage_show(stage, format, &page, &totals, &error);
	result = page_close(&page, result);
	return result < 0 ? fail(error.message) : 0;
}

static int stage(const char *verb, const char *upper, const char *lower)
{
	int CLEANUP_FD upper_fd = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int CLEANUP_FD lower_fd = open(lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stage directories = { .upper_fd = upper_fd, .lower_fd = lower_fd };

	if (upper_fd < 0 || lower_fd < 0)
		return fail("no such directory");
	if (strcmp(verb, "walk") == 0)
		return walk(&directories);
	if (strcmp(verb, "patch") == 0)
		return show(&directories, STAGE_PATCH);
	return show(&directories, strcmp(verb, "stat") == 0 ? STAGE_STAT : STAGE_JSON);
}

static int print_line(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	static const char signs[] = { [TEXT_DIFF_SAME] = ' ',
				      [TEXT_DIFF_REMOVED] = '-',
				      [TEXT_DIFF_ADDED] = '+',
				      [TEXT_DIFF_NO_NEWLINE] = '\\' };

	(void)context;
	if (kind != TEXT_DIFF_HUNK)
		(void)putchar(signs[kind]);
	(void)fwrite(bytes, 1, length, stdout);
	(void)putchar('\n');
	return 0;
}

static struct text read_text(const char *path)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = malloc(TEXT_DIFF_LIMIT_BYTES + 1);
	ssize_t length = fd < 0 || !bytes ? 0 : fd_read_all(fd, bytes, TEXT_DIFF_LIMIT_BYTES + 1);

	return (struct text){ bytes, length > 0 ? (size_t)length : 0 };
}

static int text(const char *before, const char *after)
{
	const struct text_diff diff = { .take = print_line };
	struct text_diff_count count;

	(void)printf("--- a\n+++ b\n");
	if (text_diff(read_text(before), read_text(after), &diff, &count) < 0)
		return fail("too large");
	(void)fprintf(stderr, "%s", count.is_coarse ? "coarse\n" : "");
	return 0;
}

/* Our own: the highest that getrusage(2) tells counts whoever forked us too. */
static unsigned long peak_kib(void)
{
	char text[4096], *at;
	int CLEANUP_FD fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	at = strstr(text, "VmHWM:");
	return at ? strtoul(at + 6, NULL, 10) : ~0ul;
}

int main(int argc, char **argv)
{
	uint64_t begun = clock_monotonic_ns();
	int status;

	if (argc != 4)
		return fail("usage: bawn-stage-lab patch|stat|json|walk|text A B");
	status = strcmp(argv[1], "text") == 0 ? text(argv[2], argv[3]) :
						stage(argv[1], argv[2], argv[3]);
	(void)fprintf(stderr, "%llu us, %lu KiB\n",
		      (unsigned long long)(clock_monotonic_ns() - begun) / 1000, peak_kib());
	return status;
}
