#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json_tree.h"
#include "trace/gist.h"
#include "trace/read.h"

static struct json_node string(const char *text)
{
	return (struct json_node){ .type = JSON_STRING, .text = text, .length = strlen(text) };
}

/* Behind other text, which stays; a code point is whole or not there. */
static void texts_are_cut(void **state)
{
	static const struct {
		const char *text;
		size_t most;
		const char *wanted;
	} rows[] = {
		{ "", 4, "|" },
		{ "abcd", 4, "|abcd" },
		{ "abcde", 4, "|abcd..." },
		{ "abc\xc3\xa4", 4, "|abc..." },
		{ "abc\xc3\xa4", 5, "|abc\xc3\xa4" },
		{ "ab\xf0\x9f\x98\x80x", 5, "|ab..." },
		{ "\xf0\x9f\x98\x80", 3, "|..." },
		{ "a\nb", 4, "|a\\x0..." },
		{ "a\nb", 6, "|a\\x0ab" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4", 4, "|aaaa..." },
		/* as many bytes as are looked at end within a code point */
		{ "abcdefghijk\xc3\xa4nopqrst", 4, "|abcd..." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer CLEANUP_BUFFER buffer = { 0 };
		struct json_node node = string(rows[i].text);

		buffer_text(&buffer, "|");
		gist_text(&node, rows[i].most, &buffer);
		assert_string_equal(buffer.data, rows[i].wanted);
	}
}

static void command(const char *const *words, size_t count, size_t most, const char *wanted)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct json_node nodes[4], argv = { .type = JSON_ARRAY };

	for (size_t i = 0; i < count; i++) {
		nodes[i] = string(words[i]);
		nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
	}
	argv.first = nodes;
	buffer_text(&buffer, "|");
	gist_command(&argv, most, &buffer);
	assert_string_equal(buffer.data, wanted);
}

static void commands_as_a_shell_takes_them(void **state)
{
	(void)state;
	command((const char *[]){ "echo", "it's", "", "a\x1b[31m" }, 4, 400,
		"|echo 'it'\\''s' '' 'a\\x1b[31m'");
	command((const char *[]){ "echo", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b" }, 3, 8,
		"|echo aaa...");
	/* a blank far behind what is shown makes it quoted all the same */
	command((const char *[]){ "echo", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b" }, 2, 8,
		"|echo 'aa...");
	command((const char *[]){ "a", "b" }, 2, 3, "|a b");
	command((const char *[]){ "abc", "b" }, 2, 3, "|abc...");
}

/* What is kept for a line does not grow with a giant string of a foreign record. */
static void giants_take_no_room(void **state)
{
	const size_t length = 16 * 1024 * 1024;
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	char *text = malloc(length + 1);
	struct json_node node;

	(void)state;
	memset(text, '\n', length);
	text[length] = '\0';
	node = string(text);
	gist_text(&node, 200, &buffer);
	gist_command(&(struct json_node){ .type = JSON_ARRAY, .first = &node }, 400, &buffer);
	assert_false(buffer.failed);
	assert_int_equal(buffer.length, 200 + 3 + 400 + 3);
	assert_true(buffer.capacity <= 4096);
	free(text);
}

#define NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

static void lines_have_columns(void **state)
{
	static const char text[] =
		"{\"v\":1,\"seq\":0,\"time\":\"2026-11-30T12:00:00.123456789Z\",\"mono_ns\":5,"
		"\"boot\":\"b\",\"host\":\"h\",\"task\":\"t-1\",\"action\":null,\"parent\":null,"
		"\"layer\":\"execution\",\"type\":\"den\\u0069al\",\"body\":{\"code\":\"fs.read\","
		"\"object\":\"/x\",\"rule\":{\"id\":\"r\",\"file\":\"p\\u001b\",\"line\":12},"
		"\"evidence\":\"inferred\",\"count\":3,\"remedy\":\"--read /x\"},"
		"\"prev\":\"" NO_HASH "\",\"hash\":\"" NO_HASH "\"}";
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	const struct json_node *body;
	struct trace_line line;
	char wanted[256];

	(void)state;
	assert_int_equal(trace_line_read(text, strlen(text), &arena, &line, &body), 0);
	gist_line(&line, body, &buffer);
	(void)snprintf(wanted, sizeof(wanted),
		       "2026-11-30T12:00:00.123Z  %-10s  %-10s  %-14s fs.read /x (\"r\" p\\x1b:12, "
		       "inferred) x3; to allow: --read /x",
		       "t-1", "-", "denial");
	assert_string_equal(buffer.data, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_cut),
		cmocka_unit_test(commands_as_a_shell_takes_them),
		cmocka_unit_test(giants_take_no_room),
		cmocka_unit_test(lines_have_columns),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
