#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/chain.h"
#include "trace/scan.h"

#define LINES 20000

/* Lines of letters, empty ones and some that are longer than a block. */
static int make_file(unsigned seed, char **ret_bytes, size_t *ret_length)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	FILE *file;

	srand(seed);
	assert_true(fd >= 0);
	file = open_memstream(ret_bytes, ret_length);
	for (unsigned i = 0; i < LINES; i++) {
		size_t length = i % 5000 == 77 ? 1200000 : (size_t)(rand() % 60);

		for (size_t j = 0; j < length; j++)
			(void)fputc("abc"[rand() % 3], file);
		(void)fputc('\n', file);
	}
	(void)fclose(file);
	assert_int_equal(write(fd, *ret_bytes, *ret_length), *ret_length);
	return fd;
}

static bool holds(const char *line, size_t length, const char *text)
{
	return memmem(line, length, text, strlen(text)) != NULL;
}

/* Group 0: "aab" or "ccc"; group 1: "bb". The obvious way gives the same lines. */
static void gives_what_looking_at_each_line_gives(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed < 5; seed++) {
		struct scan_needles needles = { .count = 0 };
		struct trace_scan scan;
		struct scan_line line;
		char *bytes, *at;
		size_t length;
		uint64_t number = 0;
		int fd = make_file(seed, &bytes, &length);

		assert_true(scan_add(&needles, "aab", 3, 0));
		assert_true(scan_add(&needles, "ccc", 3, 0));
		assert_true(scan_add(&needles, "bb", 2, 1));
		scan_begin(&scan, fd, &needles, 0, 1);
		for (at = bytes; at < bytes + length;) {
			char *end = memchr(at, '\n', (size_t)(bytes + length - at));
			size_t one = (size_t)(end - at);

			number++;
			if ((holds(at, one, "aab") || holds(at, one, "ccc")) &&
			    holds(at, one, "bb")) {
				assert_int_equal(scan_next(&scan, &line), 1);
				assert_int_equal(line.number, number);
				assert_int_equal(line.offset, at - bytes);
				assert_int_equal(line.length, one);
				assert_memory_equal(line.bytes, at, one);
			}
			at = end + 1;
		}
		assert_int_equal(scan_next(&scan, &line), 0);
		scan_end(&scan);
		free(bytes);
		(void)close(fd);
	}
}

static void every_line_without_needles(void **state)
{
	struct trace_scan scan;
	struct scan_line line;
	char *bytes;
	size_t length;
	uint64_t count = 0, sum = 0;
	int fd = make_file(9, &bytes, &length);

	(void)state;
	scan_begin(&scan, fd, NULL, 0, 1);
	while (scan_next(&scan, &line) == 1) {
		assert_int_equal(line.number, ++count);
		sum += line.length + 1;
	}
	assert_int_equal(count, LINES);
	assert_int_equal(sum, length);
	scan_end(&scan);
	free(bytes);
	(void)close(fd);
}

static void a_line_waits_for_its_rest(void **state)
{
	int fd = memfd_create("torn", MFD_CLOEXEC);
	struct trace_scan scan;
	struct scan_line line;

	(void)state;
	assert_int_equal(write(fd, "one\ntw", 6), 6);
	scan_begin(&scan, fd, NULL, 0, 1);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_int_equal(scan_next(&scan, &line), 0);
	assert_int_equal(scan_rest(&scan), 2);
	assert_int_equal(scan_next(&scan, &line), 0);
	assert_int_equal(write(fd, "o\n\n", 3), 3);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_int_equal(line.length, 3);
	assert_memory_equal(line.bytes, "two", 3);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_int_equal(line.length, 0);
	assert_int_equal(scan_next(&scan, &line), 0);
	scan_end(&scan);
	(void)close(fd);
}

static void the_longest_line_and_one_more(void **state)
{
	int fd = memfd_create("long", MFD_CLOEXEC);
	struct trace_scan scan;
	struct scan_line line;
	char *bytes = malloc(CHAIN_LIMIT_LINE_BYTES + 1);

	(void)state;
	memset(bytes, 'x', CHAIN_LIMIT_LINE_BYTES + 1);
	assert_int_equal(write(fd, bytes, CHAIN_LIMIT_LINE_BYTES), CHAIN_LIMIT_LINE_BYTES);
	assert_int_equal(write(fd, "\n", 1), 1);
	assert_int_equal(write(fd, bytes, CHAIN_LIMIT_LINE_BYTES + 1), CHAIN_LIMIT_LINE_BYTES + 1);
	assert_int_equal(write(fd, "\nend\n", 5), 5);
	scan_begin(&scan, fd, NULL, 0, 1);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_false(line.is_long);
	assert_int_equal(line.length, CHAIN_LIMIT_LINE_BYTES);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_true(line.is_long);
	assert_int_equal(line.number, 2);
	assert_int_equal(scan_next(&scan, &line), 1);
	assert_int_equal(line.number, 3);
	assert_memory_equal(line.bytes, "end", 3);
	assert_int_equal(scan_next(&scan, &line), 0);
	scan_end(&scan);
	free(bytes);
	(void)close(fd);
}

/* Needles of any length in text that nearly is the needle, over and over: as memmem(3) finds it. */
static void finds_in_text_that_repeats_itself(void **state)
{
	const size_t length = 300000;
	char *text = malloc(length + 1), *needle = malloc(4001);
	int fd = memfd_create("same", MFD_CLOEXEC);

	(void)state;
	memset(text, 'a', length);
	text[length] = '\n';
	text[length - 5] = 'b';
	assert_int_equal(write(fd, text, length + 1), length + 1);
	memset(needle, 'a', 4001);
	for (size_t size = 1; size <= 4001; size = size * 3 / 2 + 1) {
		for (unsigned is_there = 0; is_there < 2; is_there++) {
			struct scan_needles needles = { .count = 0 };
			struct trace_scan scan;
			struct scan_line line;

			needle[size - 1] = is_there ? 'b' : 'c';
			assert_true(scan_add(&needles, needle, size, 0));
			scan_begin(&scan, fd, &needles, 0, 1);
			assert_int_equal(scan_next(&scan, &line), is_there);
			scan_end(&scan);
			needle[size - 1] = 'a';
		}
	}
	free(text);
	free(needle);
	(void)close(fd);
}

/* At each place before the end of what was read, and the longest that fit. */
static void finds_near_the_end(void **state)
{
	static const char needle[] = "\"Needle\":1";
	const size_t size = sizeof(needle) - 1;

	(void)state;
	for (size_t length = size; length < size + 40; length++) {
		for (size_t at = 0; at + size <= length; at++) {
			struct scan_needles needles = { .count = 0 };
			int fd = memfd_create("end", MFD_CLOEXEC);
			char text[64];
			struct trace_scan scan;
			struct scan_line line;

			memset(text, '"', sizeof(text));
			memcpy(text + at, needle, size);
			text[length] = '\n';
			assert_int_equal(write(fd, text, length + 1), length + 1);
			assert_true(scan_add(&needles, needle, size, 0));
			scan_begin(&scan, fd, &needles, 0, 1);
			assert_int_equal(scan_next(&scan, &line), 1);
			assert_int_equal(line.length, length);
			assert_int_equal(scan_next(&scan, &line), 0);
			scan_end(&scan);
			(void)close(fd);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_looking_at_each_line_gives),
		cmocka_unit_test(every_line_without_needles),
		cmocka_unit_test(a_line_waits_for_its_rest),
		cmocka_unit_test(the_longest_line_and_one_more),
		cmocka_unit_test(finds_in_text_that_repeats_itself),
		cmocka_unit_test(finds_near_the_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
