#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"

static void expect_bytes(const char *bytes, size_t length, const char *wanted)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	json_begin(&json, &buffer);
	json_bytes(&json, NULL, bytes, length);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, wanted);
	assert_int_equal(buffer.length, strlen(wanted));
}

static void values(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	(void)state;
	json_begin(&json, &buffer);
	json_object(&json, NULL);
	json_string(&json, "text", "a");
	json_string(&json, "none", NULL);
	json_integer(&json, "low", INT64_MIN);
	json_unsigned(&json, "high", UINT64_MAX);
	json_array(&json, "list");
	json_bool(&json, NULL, true);
	json_bool(&json, NULL, false);
	json_null(&json, NULL);
	json_object(&json, NULL);
	json_object_end(&json);
	json_array(&json, NULL);
	json_array_end(&json);
	json_array_end(&json);
	json_string(&json, "a\"\x1b", "");
	json_object_end(&json);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data,
			    "{\"text\":\"a\",\"none\":null,\"low\":-9223372036854775808,"
			    "\"high\":18446744073709551615,\"list\":[true,false,null,{},[]],"
			    "\"a\\\"\\u001b\":\"\"}");
}

static void strings(void **state)
{
	(void)state;
	expect_bytes("", 0, "\"\"");
	expect_bytes("plain /\x7e", 8, "\"plain /~\"");
	expect_bytes("\"\\\b\f\n\r\t", 7, "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
	expect_bytes("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"");
	expect_bytes("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		     "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	/* an escape sequence, a C1 CSI, a bidi override and a tag character are shown, not sent */
	expect_bytes("\x1b]52;c;QQ==\x07", 12, "\"\\u001b]52;c;QQ==\\u0007\"");
	expect_bytes("\xc2\x9b", 2, "\"\\u009b\"");
	expect_bytes("\xe2\x80\xae", 3, "\"\\u202e\"");
	expect_bytes("\xf3\xa0\x81\x81", 4, "\"\\udb40\\udc41\"");
}

/* Vectors from Python: json.dumps(bytes.decode("utf-8", "surrogateescape")). */
static void invalid_bytes(void **state)
{
	(void)state;
	expect_bytes("\x80", 1, "\"\\udc80\"");
	expect_bytes("\xff\xfe", 2, "\"\\udcff\\udcfe\"");
	expect_bytes("a\xc3", 2, "\"a\\udcc3\"");
	expect_bytes("\xe2\x82", 2, "\"\\udce2\\udc82\"");
	expect_bytes("\xe2\x82z", 3, "\"\\udce2\\udc82z\"");
	expect_bytes("\xc0\xaf", 2, "\"\\udcc0\\udcaf\"");
	expect_bytes("\xe0\x80\xaf", 3, "\"\\udce0\\udc80\\udcaf\"");
	/* a surrogate written as UTF-8, the one that the escape itself uses included */
	expect_bytes("\xed\xb2\x80", 3, "\"\\udced\\udcb2\\udc80\"");
	expect_bytes("\xf4\x90\x80\x80", 4, "\"\\udcf4\\udc90\\udc80\\udc80\"");
	expect_bytes("\xf0\x9f\x98", 3, "\"\\udcf0\\udc9f\\udc98\"");
	/* behind a pair a lone one stays lone */
	expect_bytes("\xf3\xa0\x81\x81\x81", 5, "\"\\udb40\\udc41\\udc81\"");
}

static void depth(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	(void)state;
	json_begin(&json, &buffer);
	for (unsigned i = 0; i < JSON_DEPTH; i++)
		json_array(&json, NULL);
	json_null(&json, NULL);
	for (unsigned i = 0; i < JSON_DEPTH; i++)
		json_array_end(&json);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, "[[[[[[[[[[[[[[[[null]]]]]]]]]]]]]]]]");

	json_begin(&json, &buffer);
	for (unsigned i = 0; i < JSON_DEPTH; i++)
		json_array(&json, NULL);
	assert_false(buffer.failed);
	json_array(&json, NULL);
	assert_true(buffer.failed);
	/* nothing is written and nothing breaks from here on */
	for (unsigned i = 0; i < 4 * JSON_DEPTH; i++)
		json_object(&json, NULL);
	for (unsigned i = 0; i < 8 * JSON_DEPTH; i++)
		json_array_end(&json);
	assert_true(buffer.failed);
}

enum fault { END_ALONE, END_WRONG, NAME_IN_ARRAY, NAME_OUTSIDE, NO_NAME, SECOND_VALUE, FAULTS };

static void fault(struct json *json, enum fault which)
{
	switch (which) {
	case END_ALONE:
		json_object_end(json);
		break;
	case END_WRONG:
		json_array(json, NULL);
		json_object_end(json);
		break;
	case NAME_IN_ARRAY:
		json_array(json, NULL);
		json_null(json, "name");
		break;
	case NAME_OUTSIDE:
		json_string(json, "name", "text");
		break;
	case NO_NAME:
		json_object(json, NULL);
		json_integer(json, NULL, 1);
		break;
	default:
		json_null(json, NULL);
		json_null(json, NULL);
	}
}

static void faults(void **state)
{
	(void)state;
	for (int which = 0; which < FAULTS; which++) {
		CLEANUP_BUFFER struct buffer buffer = { 0 };
		struct json json;

		json_begin(&json, &buffer);
		fault(&json, (enum fault)which);
		if (!buffer.failed)
			fail_msg("fault %d passed", which);
	}
}

/* Several values in one buffer, as in JSON lines. */
static void lines(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	struct json json;

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_begin(&json, &buffer);
		json_array(&json, NULL);
		json_integer(&json, NULL, i);
		json_array_end(&json);
		buffer_text(&buffer, "\n");
	}
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, "[0]\n[1]\n");
}

/* Every single byte and every pair goes through Python's json and back. */
static void python_round_trip(void **state)
{
	static const char script[] =
		"import json,sys\n"
		"text=sys.stdin.buffer.read()\n"
		"assert all(b==10 or 32<=b!=127 for b in text)\n"
		"rows=text.decode().splitlines()\n"
		"assert len(rows)==256+65536\n"
		"for i,row in enumerate(rows):\n"
		"    want=bytes([i]) if i<256 else bytes([i-256>>8,i-256&255])\n"
		"    assert json.loads(row).encode('utf-8','surrogateescape')==want,(i,row)\n";
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	CLEANUP_BUFFER struct buffer command = { 0 };
	struct json json;
	FILE *python;

	(void)state;
	for (unsigned i = 0; i < 256 + 65536; i++) {
		char bytes[2] = { (char)(i < 256 ? i : (i - 256) >> 8), (char)(i - 256) };

		json_begin(&json, &buffer);
		json_bytes(&json, NULL, bytes, i < 256 ? 1 : 2);
		buffer_text(&buffer, "\n");
	}
	assert_false(buffer.failed);
	buffer_format(&command, "exec /usr/bin/python3 -S -c \"%s\"", script);
	python = popen(command.data, "we");
	assert_non_null(python);
	assert_int_equal(fwrite(buffer.data, 1, buffer.length, python), buffer.length);
	assert_int_equal(pclose(python), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(strings),
		cmocka_unit_test(invalid_bytes),
		cmocka_unit_test(depth),
		cmocka_unit_test(faults),
		cmocka_unit_test(lines),
		cmocka_unit_test(python_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
