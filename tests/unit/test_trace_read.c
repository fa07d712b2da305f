#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/error.h"
#include "trace/chain.h"
#include "trace/read.h"

#define HEAD                                                                                    \
	"{\"v\":1,\"seq\":0,\"time\":\"2026-11-30T12:00:00.123456789Z\",\"mono_ns\":5,"         \
	"\"boot\":\"b\",\"host\":\"h\",\"task\":null,\"action\":\"a-1\",\"parent\":null,"       \
	"\"layer\":\"ledger\",\"type\":\"note\",\"body\":{\"x\":[1]},\"prev\":\"" CHAIN_NO_HASH \
	"\""
/* sha256sum of HEAD */
#define HASH "f58e94f42257ed67a8b927a051a9d6b572f359c8946115fca62291861b92a8fa"
#define LINE HEAD ",\"hash\":\"" HASH "\"}"

/* The line, with one place of it replaced. */
static char *with(const char *from, const char *to)
{
	const char *place = strstr(LINE, from);
	char *text;

	assert_non_null(place);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(place - LINE), LINE, to,
			     place + strlen(from)) > 0);
	return text;
}

static void whole(void **state)
{
	struct trace_line line;
	char *changed = with("\"host\":\"h\"", "\"host\":\"i\"");

	(void)state;
	assert_true(trace_line_parse(LINE, strlen(LINE), &line));
	assert_int_equal(line.fault, TRACE_FINE);
	assert_int_equal(line.seq, 0);
	assert_int_equal(line.mono_ns, 5);
	assert_null(line.task.bytes);
	assert_true(json_view_is(line.action, "a-1"));
	assert_null(line.parent.bytes);
	assert_true(json_view_is(line.layer, "ledger"));
	assert_true(json_view_is(line.type, "note"));
	assert_true(json_view_is(line.time, "2026-11-30T12:00:00.123456789Z"));
	assert_true(json_view_is(line.prev, CHAIN_NO_HASH));
	assert_true(json_view_is(line.hash, HASH));
	assert_int_equal(line.body.length, strlen("{\"x\":[1]}"));
	assert_true(trace_line_is_intact(&line));

	assert_true(trace_line_parse(changed, strlen(changed), &line));
	assert_false(trace_line_is_intact(&line));
	free(changed);
}

static void faults(void **state)
{
	static const struct {
		const char *from, *to;
		enum trace_fault fault;
	} cases[] = {
		{ "{\"v\"", "[\"v\"", TRACE_FOREIGN },
		{ "{\"v\"", " {\"v\"", TRACE_FOREIGN },
		{ "{\"v\":1", "{\"v\":2", TRACE_VERSION },
		{ "{\"v\":1", "{\"v\":0", TRACE_VERSION },
		{ "{\"v\":1", "{\"v\":01", TRACE_FORM },
		{ "{\"v\":1", "{\"v\":\"1\"", TRACE_FORM },
		{ "\"seq\":0", "\"seq\":-1", TRACE_FORM },
		{ "\"seq\":0", "\"seq\":00", TRACE_FORM },
		{ "\"seq\":0", "\"seq\":18446744073709551616", TRACE_FORM },
		{ "\"seq\":0", "\"seq\": 0", TRACE_FORM },
		{ "\"seq\":0,", "", TRACE_FORM },
		{ "30T12", "30 12", TRACE_FORM },
		{ "789Z", "78Z", TRACE_FORM },
		{ "\"mono_ns\":5", "\"mono_ns\":5.0", TRACE_FORM },
		{ "\"boot\":\"b\"", "\"boot\":null", TRACE_FORM },
		{ "\"host\":\"h\"", "\"host\":\"h\n\"", TRACE_FORM },
		{ "\"host\":\"h\"", "\"host\":\"\xff\"", TRACE_FORM },
		{ "\"boot\":\"b\",\"host\":\"h\"", "\"host\":\"h\",\"boot\":\"b\"", TRACE_FORM },
		{ "\"task\":null", "\"task\":5", TRACE_FORM },
		{ "\"parent\":null,", "\"parent\":null,\"extra\":1,", TRACE_FORM },
		{ "\"layer\":\"ledger\"", "\"layer\":null", TRACE_FORM },
		{ "\"body\":{\"x\":[1]}", "\"body\":[]", TRACE_FORM },
		{ "\"body\":{\"x\":[1]}", "\"body\":null", TRACE_FORM },
		{ "\"body\":{\"x\":[1]}", "\"body\":{\"x\":[1}", TRACE_FORM },
		{ "\"body\":{\"x\":[1]}",
		  "\"body\":{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		  "1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
		  TRACE_FORM },
		{ "\"prev\":\"0", "\"prev\":\"g", TRACE_FORM },
		{ "\"prev\":\"0", "\"prev\":\"00", TRACE_FORM },
		{ "\"prev\":\"0", "\"prev\":\"", TRACE_FORM },
		{ HASH, "ABCDEF0000000000000000000000000000000000000000000000000000000000",
		  TRACE_FORM },
		{ "\"}", "\",\"more\":1}", TRACE_FORM },
		{ HASH "\"}", HASH "\"} ", TRACE_FORM },
		{ HASH "\"}", HASH "\"", TRACE_FORM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = with(cases[i].from, cases[i].to);
		struct trace_line line;

		if (trace_line_parse(text, strlen(text), &line) || line.fault != cases[i].fault ||
		    !line.what || line.type.bytes)
			fail_msg("%s -> %s: %d", cases[i].from, cases[i].to, line.fault);
		free(text);
	}
	for (size_t i = 0; i < strlen(LINE); i++) {
		char *text = malloc(i ? i : 1);
		struct trace_line line;

		memcpy(text, LINE, i);
		assert_false(trace_line_parse(text, i, &line));
		free(text);
	}
}

/* A file of these bytes, open for reading; nothing of it stays. */
static void reader_of(const char *bytes, size_t length, struct trace_reader *ret_reader)
{
	char name[] = "/tmp/bawn-trace-XXXXXX";
	struct error error = ERROR_NONE;
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
	assert_int_equal(trace_read_open(ret_reader, AT_FDCWD, name, &error), 0);
	unlink(name);
}

static void lines(void **state)
{
	CLEANUP_TRACE_READER struct trace_reader reader = TRACE_READER_NONE;
	CLEANUP_BUFFER struct buffer text = { 0 };
	struct trace_line line;
	const size_t size = strlen(LINE) + 1;

	(void)state;
	for (int i = 0; i < 2000; i++)
		buffer_text(&text, i == 7 ? "none of ours\n" : LINE "\n");
	buffer_append(&text, LINE, 50);
	reader_of(text.data, text.length, &reader);
	for (uint64_t i = 0; i < 2000; i++) {
		assert_int_equal(trace_read_next(&reader, &line), 1);
		assert_int_equal(line.number, i + 1);
		assert_int_equal(line.offset, i <= 7 ? i * size : (i - 1) * size + 13);
		assert_int_equal(line.fault, i == 7 ? TRACE_FOREIGN : TRACE_FINE);
	}
	assert_int_equal(trace_read_next(&reader, &line), 1);
	assert_int_equal(line.fault, TRACE_TORN);
	assert_int_equal(line.raw.length, 50);
	assert_int_equal(trace_read_next(&reader, &line), 0);
	assert_int_equal(trace_read_next(&reader, &line), 0);

	trace_read_seek(&reader, 3 * size, 4);
	assert_int_equal(trace_read_next(&reader, &line), 1);
	assert_int_equal(line.number, 4);
	assert_int_equal(line.offset, 3 * size);
	assert_true(trace_line_is_intact(&line));
	trace_read_seek(&reader, UINT64_MAX, 1);
	assert_int_equal(trace_read_next(&reader, &line), 0);

	trace_read_seek(&reader, 0, 1);
	reader.limit = 3 * size;
	for (int i = 0; i < 3; i++)
		assert_int_equal(trace_read_next(&reader, &line), 1);
	assert_int_equal(trace_read_next(&reader, &line), 0);
}

/* The longest line that is allowed, and one byte more: with the newline, and without any. */
static void long_lines(void **state)
{
	static const char tail[] = "\"},\"prev\":\"" CHAIN_NO_HASH "\",\"hash\":\"" CHAIN_NO_HASH
				   "\"}\n";
	const char *body = strstr(HEAD, "{\"x\"");

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		CLEANUP_TRACE_READER struct trace_reader reader = TRACE_READER_NONE;
		CLEANUP_BUFFER struct buffer text = { 0 };
		struct trace_line line;

		buffer_append(&text, HEAD, (size_t)(body - HEAD));
		buffer_text(&text, "{\"x\":\"");
		while (text.length < CHAIN_LIMIT_LINE_BYTES - (sizeof(tail) - 1) + more)
			buffer_text(&text, "x");
		buffer_text(&text, tail);
		buffer_text(&text, LINE "\n");
		reader_of(text.data, text.length, &reader);
		assert_int_equal(trace_read_next(&reader, &line), 1);
		assert_int_equal(line.fault, more ? TRACE_LONG : TRACE_FINE);
		assert_int_equal(trace_read_next(&reader, &line), more ? 0 : 1);
	}
}

/* A line of 1 GiB (a hole: nothing but NULs) costs no more memory than the longest line. */
static void giant(void **state)
{
	CLEANUP_TRACE_READER struct trace_reader reader = TRACE_READER_NONE;
	struct trace_line line;
	char name[] = "/tmp/bawn-trace-XXXXXX";
	struct error error = ERROR_NONE;
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0 && ftruncate(fd, 1 << 30) == 0);
	assert_int_equal(trace_read_take(&reader, fd, name, &error), 0);
	unlink(name);
	assert_int_equal(trace_read_next(&reader, &line), 1);
	assert_int_equal(line.fault, TRACE_LONG);
	assert_true(line.raw.length < CHAIN_LIMIT_LINE_BYTES + (1 << 20));
	assert_int_equal(trace_read_next(&reader, &line), 0);
}

static void expect_refusal(const char *name, int code)
{
	struct trace_reader reader;
	struct error error = ERROR_NONE;

	assert_int_equal(trace_read_open(&reader, AT_FDCWD, name, &error), -code);
	assert_non_null(strstr(error.message, name));
}

static void other_files(void **state)
{
	char dir[] = "/tmp/bawn-trace-XXXXXX", path[64];
	CLEANUP_TRACE_READER struct trace_reader reader = TRACE_READER_NONE;
	struct trace_line line;

	(void)state;
	assert_non_null(mkdtemp(dir));
	expect_refusal(dir, EISDIR);
	expect_refusal("/dev/zero", EINVAL);
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refusal(path, EINVAL);
	unlink(path);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	expect_refusal(path, ELOOP);
	unlink(path);
	expect_refusal(path, ENOENT);
	rmdir(dir);
	reader_of("", 0, &reader);
	assert_int_equal(trace_read_next(&reader, &line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole), cmocka_unit_test(faults),
		cmocka_unit_test(lines), cmocka_unit_test(long_lines),
		cmocka_unit_test(giant), cmocka_unit_test(other_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
