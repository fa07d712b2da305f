#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/terminal.h"

#define INPUT_LIMIT 1024

/* Filters in chunks of `chunk` bytes (0 = at once) and ends the stream. */
static size_t filter(const char *text, size_t length, size_t chunk, char *out)
{
	struct terminal_filter filter = { 0 };
	size_t used = 0;

	for (size_t at = 0; at < length;) {
		size_t part = chunk && chunk < length - at ? chunk : length - at;

		/* a copy of exact size: a read beyond the chunk is seen by ASan */
		char *copy = malloc(part);
		assert_non_null(copy);
		memcpy(copy, text + at, part);
		used += terminal_filter(&filter, copy, part, out + used);
		free(copy);
		at += part;
		assert_true(filter.held_length <= TERMINAL_SEQUENCE_BYTES);
	}
	used += terminal_filter_end(&filter, out + used);
	assert_int_equal(filter.held_length, 0);
	return used;
}

static void expect_bytes(const char *text, size_t length, const char *wanted)
{
	char out[TERMINAL_GROWTH * (INPUT_LIMIT + TERMINAL_SEQUENCE_BYTES)];

	assert_true(length <= INPUT_LIMIT);
	for (size_t chunk = 0; chunk <= 8 && chunk <= length; chunk++) {
		size_t used = filter(text, length, chunk, out);

		if (used != strlen(wanted) || memcmp(out, wanted, used) != 0)
			fail_msg("chunks of %zu: '%.*s' instead of '%s'", chunk, (int)used, out,
				 wanted);
	}
}

static void expect(const char *text, const char *wanted)
{
	expect_bytes(text, strlen(text), wanted);
}

static void passes(void **state)
{
	static const char *const texts[] = {
		"",
		"text",
		"a\r\n\tb",
		"\x1b[m",
		"\x1b[0m\x1b[1;31mred\x1b[0m",
		"\x1b[38;2;255;128;0mrgb\x1b[;;m",
		"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		"\xf4\x8f\xbf\xbd",
		"\\x1b[2J",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], texts[i]);
}

static void sequences(void **state)
{
	(void)state;
	expect("\x1b[2J", "\\x1b[2J");
	expect("\x1b[1;1H", "\\x1b[1;1H");
	expect("\x1b[?25l", "\\x1b[?25l");
	expect("\x1b[>4;2m", "\\x1b[>4;2m"); /* xterm's modifyOtherKeys is no colour */
	expect("\x1b[?1m", "\\x1b[?1m");
	expect("\x1b[1 m", "\\x1b[1 m");
	expect("\x1b[4:3m", "\\x1b[4:3m");
	expect("\x1b[6n", "\\x1b[6n"); /* would type an answer */
	expect("\x1b[21t", "\\x1b[21t");
	expect("\x1b"
	       "c",
	       "\\x1bc");
	expect("\x1b\x1b[31m", "\\x1b\x1b[31m");
	expect("\x1b[\x1b[31m", "\\x1b[\x1b[31m");
	expect("\x1b[3\x1b[1m", "\\x1b[3\x1b[1m");
	expect("\x1b[31\nm", "\\x1b[31\nm");
	/* titles, links, the clipboard; ended by BEL, by ST, not at all */
	expect("\x1b]0;title\x07", "\\x1b]0;title\\x07");
	expect("\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07");
	expect("\x1b]8;;http://x/\x1b\\a\x1b]8;;\x1b\\",
	       "\\x1b]8;;http://x/\\x1b\\a\\x1b]8;;\\x1b\\");
	expect("\x1b]8;;http://x/", "\\x1b]8;;http://x/");
	expect("\x1bPq#0\x1b\\", "\\x1bPq#0\\x1b\\");
	expect("\x1b_Gf=24\x1b\\\x1b^x\x1bXy", "\\x1b_Gf=24\\x1b\\\\x1b^x\\x1bXy");
	/* control bytes, C1 as UTF-8 and raw */
	expect_bytes("a\0b", 3, "a\\x00b");
	expect("\a\b\v\f\x0e\x0f\x7f", "\\x07\\x08\\x0b\\x0c\\x0e\\x0f\\x7f");
	expect("\xc2\x9b"
	       "31m",
	       "\\xc2\\x9b31m");
	expect("\x9b"
	       "31m",
	       "\\x9b31m");
	expect("\xc2\x9d"
	       "52;c;x\xc2\x9c",
	       "\\xc2\\x9d52;c;x\\xc2\\x9c");
}

static void text(void **state)
{
	(void)state;
	/* bidi override, isolate, zero-width, byte order mark, tag */
	expect("\xe2\x80\xae", "\\xe2\\x80\\xae");
	expect("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
	expect("a\xe2\x80\x8b"
	       "b",
	       "a\\xe2\\x80\\x8bb");
	expect("\xef\xbb\xbf", "\\xef\\xbb\\xbf");
	expect("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81");
	/* invalid: alone, cut by the end, cut by a byte, overlong ESC, surrogate, too large */
	expect("\x80", "\\x80");
	expect("\xff\xfe", "\\xff\\xfe");
	expect("a\xc3", "a\\xc3");
	expect("\xe2\x82", "\\xe2\\x82");
	expect("\xf0\x9f\x98", "\\xf0\\x9f\\x98");
	expect("\xe2\x82z", "\\xe2\\x82z");
	expect("\xe2\x82\x1b[31m", "\\xe2\\x82\x1b[31m");
	expect("\xe2\xe2\x82\xac", "\\xe2\xe2\x82\xac");
	expect("\xc0\x9b", "\\xc0\\x9b");
	expect("\xe0\x80\x9b", "\\xe0\\x80\\x9b");
	expect("\xed\xa0\x80", "\\xed\\xa0\\x80");
	expect("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
}

/* The end of the stream within a sequence, and a sequence that is longer than what is held. */
static void held(void **state)
{
	char input[2 * TERMINAL_SEQUENCE_BYTES + 1] = "\x1b[", wanted[sizeof(input) + 3];

	(void)state;
	expect("\x1b", "\\x1b");
	expect("\x1b[", "\\x1b[");
	expect("\x1b[31", "\\x1b[31");

	memset(input + 2, '1', sizeof(input) - 3);
	input[TERMINAL_SEQUENCE_BYTES - 1] = 'm';
	input[TERMINAL_SEQUENCE_BYTES] = '\0';
	expect(input, input);

	memset(input + 2, '1', sizeof(input) - 3);
	input[TERMINAL_SEQUENCE_BYTES] = 'm';
	input[TERMINAL_SEQUENCE_BYTES + 1] = '\0';
	snprintf(wanted, sizeof(wanted), "\\x1b%s", input + 1);
	expect(input, wanted);

	memset(input + 2, ';', sizeof(input) - 3);
	input[sizeof(input) - 1] = '\0';
	snprintf(wanted, sizeof(wanted), "\\x1b%s", input + 1);
	expect(input, wanted);
}

/* What is decided goes out at once: a prompt is not held back. */
static void prompt(void **state)
{
	char out[TERMINAL_GROWTH * (3 + TERMINAL_SEQUENCE_BYTES)];
	struct terminal_filter filter = { 0 };

	(void)state;
	assert_int_equal(terminal_filter(&filter, "> ", 2, out), 2);
	assert_int_equal(terminal_filter(&filter, "\x1b", 1, out), 0);
	assert_int_equal(terminal_filter(&filter, "[3", 2, out), 0);
	assert_int_equal(terminal_filter(&filter, "1m", 2, out), 5);
	assert_memory_equal(out, "\x1b[31m", 5);
	assert_int_equal(terminal_filter(&filter, "", 0, out), 0);
	assert_int_equal(terminal_filter(&filter, "\x07", 1, out), 4);
	/* no lead byte of UTF-8, and a lead without its tail */
	assert_int_equal(terminal_filter(&filter, "\xff", 1, out), 4);
	assert_int_equal(terminal_filter(&filter, "\xe2", 1, out), 0);
	assert_int_equal(terminal_filter(&filter, "z", 1, out), 5);
	assert_int_equal(terminal_filter_end(&filter, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes), cmocka_unit_test(sequences), cmocka_unit_test(text),
		cmocka_unit_test(held),	  cmocka_unit_test(prompt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
