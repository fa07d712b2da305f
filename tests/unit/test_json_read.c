#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/json_read.h"

/* A copy that is exactly as long as the text, so that a read beyond it is seen by ASan. */
static char *exact(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	memcpy(copy, text, length);
	return copy;
}

struct verdict {
	enum json_fault fault;
	size_t at;
};

static struct verdict judge(const char *text, size_t length)
{
	char *copy = exact(text, length);
	struct json_reader reader;
	struct verdict verdict;

	json_read_begin(&reader, copy, length, JSON_READ_DEPTH);
	(void)json_read_skip(&reader);
	(void)json_read_end(&reader);
	verdict = (struct verdict){ reader.fault, reader.at };
	free(copy);
	return verdict;
}

static void values_that_are(void **state)
{
	static const char *const good[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"1",
		"-1",
		"10",
		"0.5",
		"1e9",
		"-1.25E-3",
		"0e0",
		"\"\"",
		"\"a\"",
		"[]",
		"{}",
		" [ ] ",
		"\t{\r\n}\n",
		"[1,2]",
		"[ 1 , 2 ]",
		"{\"a\":1}",
		"{\"a\":1,\"a\":2}",
		"{ \"a\" : [ { } , null ] }",
		"[[[]],{}]",
		"\"\\u0000\\uD83D\\ude00\\/\\b\\f\\n\\r\\t\\\\\\\"\"",
		"\"\\udc80\\udcff\"",
		"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
		"\"eight byte words: 0123456789abcdef\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (judge(good[i], strlen(good[i])).fault)
			fail_msg("refused: %s", good[i]);
}

static void values_that_are_not(void **state)
{
	static const struct {
		const char *text;
		enum json_fault fault;
		size_t at;
	} bad[] = {
		{ "", JSON_SHORT, 0 },
		{ "  ", JSON_SHORT, 2 },
		{ "nul", JSON_SHORT, 3 },
		{ "nulL", JSON_SYNTAX, 3 },
		{ "True", JSON_SYNTAX, 0 },
		{ "NaN", JSON_SYNTAX, 0 },
		{ "Infinity", JSON_SYNTAX, 0 },
		{ "+1", JSON_SYNTAX, 0 },
		{ "-", JSON_SHORT, 1 },
		{ "-x", JSON_SYNTAX, 1 },
		{ "01", JSON_BEHIND, 1 },
		{ "-01", JSON_BEHIND, 2 },
		{ "1.", JSON_SHORT, 2 },
		{ ".1", JSON_SYNTAX, 0 },
		{ "1.e1", JSON_SYNTAX, 2 },
		{ "1e", JSON_SHORT, 2 },
		{ "1e+", JSON_SHORT, 3 },
		{ "0x1", JSON_BEHIND, 1 },
		{ "1 2", JSON_BEHIND, 2 },
		{ "{}{}", JSON_BEHIND, 2 },
		{ "[", JSON_SHORT, 1 },
		{ "[1", JSON_SHORT, 2 },
		{ "[1,", JSON_SHORT, 3 },
		{ "[1,]", JSON_SYNTAX, 3 },
		{ "[,1]", JSON_SYNTAX, 1 },
		{ "[1 2]", JSON_SYNTAX, 3 },
		{ "[1}", JSON_SYNTAX, 2 },
		{ "]", JSON_SYNTAX, 0 },
		{ "{", JSON_SHORT, 1 },
		{ "{1:2}", JSON_SYNTAX, 1 },
		{ "{\"a\"}", JSON_SYNTAX, 4 },
		{ "{\"a\":}", JSON_SYNTAX, 5 },
		{ "{\"a\":1,}", JSON_SYNTAX, 7 },
		{ "{\"a\" 1}", JSON_SYNTAX, 5 },
		{ "{'a':1}", JSON_SYNTAX, 1 },
		{ "/**/1", JSON_SYNTAX, 0 },
		{ "\xef\xbb\xbf{}", JSON_SYNTAX, 0 },
		{ "\"", JSON_SHORT, 1 },
		{ "\"abc", JSON_SHORT, 4 },
		{ "\"\\", JSON_SHORT, 1 },
		{ "\"\\u12", JSON_SHORT, 1 },
		{ "\"\\x41\"", JSON_SYNTAX, 1 },
		{ "\"\\u12g4\"", JSON_SYNTAX, 1 },
		{ "\"\t\"", JSON_CONTROL, 1 },
		{ "\"0123456789\x1f\"", JSON_CONTROL, 11 },
		{ "\"\xff\"", JSON_UTF8, 1 },
		{ "\"\xc0\xaf\"", JSON_UTF8, 1 },
		{ "\"\xed\xa0\x80\"", JSON_UTF8, 1 },
		{ "\"\xf4\x90\x80\x80\"", JSON_UTF8, 1 },
		{ "\"a\xe2\x82\"", JSON_UTF8, 2 },
		{ "\"\\ud83d\"", JSON_SURROGATE, 1 },
		{ "\"\\ud83dx\\ude00\"", JSON_SURROGATE, 1 },
		{ "\"\\ud83d\\ud83d\"", JSON_SURROGATE, 1 },
		{ "\"\\ude00\"", JSON_SURROGATE, 1 },
		/* 'A' needs no such escape, and dd00 is no byte */
		{ "\"\\udc41\"", JSON_SURROGATE, 1 },
		{ "\"\\udd00\"", JSON_SURROGATE, 1 },
		{ "{\"\\udc41\":1}", JSON_SURROGATE, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct verdict verdict = judge(bad[i].text, strlen(bad[i].text));

		if (verdict.fault != bad[i].fault || verdict.at != bad[i].at)
			fail_msg("%s: %s at %zu", bad[i].text, json_fault_text(verdict.fault),
				 verdict.at);
	}
	assert_int_equal(judge("\"a\0b\"", 5).fault, JSON_CONTROL);
	assert_int_equal(judge("1\0", 2).fault, JSON_BEHIND);
}

static void depth(void **state)
{
	static char text[1 << 20];
	struct json_reader reader;

	(void)state;
	for (unsigned limit = 0; limit <= JSON_READ_LIMIT_DEPTH + 1; limit++) {
		unsigned real = limit < JSON_READ_LIMIT_DEPTH ? limit : JSON_READ_LIMIT_DEPTH;

		for (unsigned more = 0; more < 2; more++) {
			size_t deep = real + more;

			memset(text, '[', deep);
			memset(text + deep, ']', deep);
			json_read_begin(&reader, text, 2 * deep, limit);
			(void)json_read_skip(&reader);
			if (deep)
				assert_int_equal(json_read_end(&reader), !more);
			assert_int_equal(reader.fault, more ? JSON_DEEP : deep ? 0 : JSON_SHORT);
		}
	}
	memset(text, '[', sizeof(text));
	assert_int_equal(judge(text, sizeof(text)).fault, JSON_DEEP);
	for (size_t i = 0; i < sizeof(text); i += 4)
		memcpy(text + i, "{\"\":", 4);
	assert_int_equal(judge(text, sizeof(text)).fault, JSON_DEEP);
}

static void integers(void **state)
{
	static const struct {
		const char *text;
		bool is_unsigned, is_integer;
		uint64_t value;
	} cases[] = {
		{ "0", true, true, 0 },
		{ "7", true, true, 7 },
		{ "9223372036854775807", true, true, INT64_MAX },
		{ "9223372036854775808", true, false, UINT64_C(1) << 63 },
		{ "18446744073709551615", true, false, UINT64_MAX },
		{ "18446744073709551616", false, false, 0 },
		{ "99999999999999999999999", false, false, 0 },
		{ "-1", false, true, (uint64_t)-1 },
		{ "-9223372036854775808", false, true, UINT64_C(1) << 63 },
		{ "-9223372036854775809", false, false, 0 },
		{ "1.0", false, false, 0 },
		{ "1e2", false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;
		struct json_reader reader;
		uint64_t value;

		json_read_begin(&reader, text, strlen(text), 1);
		value = json_read_unsigned(&reader);
		assert_int_equal(json_read_end(&reader), cases[i].is_unsigned);
		assert_int_equal(reader.fault, cases[i].is_unsigned ? JSON_FINE : JSON_RANGE);
		assert_int_equal(value, cases[i].is_unsigned ? cases[i].value : 0);
		json_read_begin(&reader, text, strlen(text), 1);
		value = (uint64_t)json_read_integer(&reader);
		assert_int_equal(json_read_end(&reader), cases[i].is_integer);
		assert_int_equal(value, cases[i].is_integer ? cases[i].value : 0);
	}
}

static void expect_text(const char *text, const char *bytes, size_t length)
{
	char found[64];
	struct json_reader reader;
	struct json_view view;
	size_t found_length = 99;

	json_read_begin(&reader, text, strlen(text), 1);
	view = json_read_string(&reader);
	assert_true(json_read_end(&reader));
	for (size_t size = 0; size <= length; size++)
		assert_int_equal(json_view_bytes(view, found, size, &found_length), -ENOBUFS);
	assert_int_equal(found_length, 99);
	assert_int_equal(json_view_bytes(view, found, length + 1, &found_length), 0);
	assert_int_equal(found_length, length);
	assert_memory_equal(found, bytes, length + 1);
}

static void strings(void **state)
{
	(void)state;
	expect_text("\"\"", "", 0);
	expect_text("\"plain\"", "plain", 5);
	expect_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
	expect_text("\"a\\u0000b\"", "a\0b", 3);
	expect_text("\"\\u00e4\\u20AC\\ud83d\\ude00\"", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	expect_text("\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4);
	expect_text("\"\\udcff\\udcfe\"", "\xff\xfe", 2);
	/* a lone one behind a pair, whose second half looks like one */
	expect_text("\"\\udb40\\udc81\\udc81\"", "\xf3\xa0\x82\x81\x81", 5);
}

/* What base/json.h writes comes back: all bytes and all pairs of them. */
static void round_trip(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };

	(void)state;
	for (unsigned i = 0; i < 256 + 65536; i++) {
		char bytes[2] = { (char)(i < 256 ? i : (i - 256) >> 8), (char)(i - 256) };
		size_t length = i < 256 ? 1 : 2, found_length;
		struct json_reader reader;
		struct json_view view;
		struct json json;
		char found[8];

		buffer.length = 0;
		json_begin(&json, &buffer);
		json_bytes(&json, NULL, bytes, length);
		json_read_begin(&reader, buffer.data, buffer.length, 1);
		view = json_read_string(&reader);
		assert_true(json_read_end(&reader));
		assert_int_equal(json_view_bytes(view, found, sizeof(found), &found_length), 0);
		assert_int_equal(found_length, length);
		assert_memory_equal(found, bytes, length);
	}
}

static void names(void **state)
{
	(void)state;
	assert_true(json_view_is((struct json_view){ "abc", 3 }, "abc"));
	assert_false(json_view_is((struct json_view){ "abc", 3 }, "ab"));
	assert_false(json_view_is((struct json_view){ "abc", 3 }, "abcd"));
	assert_true(json_view_is((struct json_view){ "\\u0061bc", 8 }, "abc"));
	assert_true(json_view_is((struct json_view){ "\\u00e4", 6 }, "\xc3\xa4"));
	assert_false(json_view_is((struct json_view){ "\\u00e4", 6 }, "\xc3\xa5"));
	assert_false(json_view_is((struct json_view){ "ab\\u0000", 8 }, "ab"));
	assert_true(json_view_is((struct json_view){ "", 0 }, ""));
	assert_false(json_view_is((struct json_view){ NULL, 0 }, ""));
}

static void pulled(void **state)
{
	static const char text[] = " {\"n\":18446744073709551615, \"s\":\"x\\ty\",\"no\":null,"
				   "\"list\":[true,-5,{\"deep\":[[1]]}],\"rest\":[1,{\"a\":[]}]} ";
	struct json_reader reader;
	struct json_view name, view;

	(void)state;
	json_read_begin(&reader, text, sizeof(text) - 1, JSON_READ_DEPTH);
	assert_int_equal(json_read_type(&reader), JSON_OBJECT);
	json_read_object(&reader);
	assert_true(json_read_member(&reader, &name) && json_view_is(name, "n"));
	assert_int_equal(json_read_type(&reader), JSON_NUMBER);
	assert_true(json_read_unsigned(&reader) == UINT64_MAX);
	assert_true(json_read_member(&reader, &name) && json_view_is(name, "s"));
	view = json_read_optional_string(&reader);
	assert_int_equal(view.length, 4);
	assert_memory_equal(view.bytes, "x\\ty", 4);
	assert_true(json_read_member(&reader, &name) && json_view_is(name, "no"));
	assert_null(json_read_optional_string(&reader).bytes);
	assert_true(json_read_member(&reader, &name) && json_view_is(name, "list"));
	json_read_array(&reader);
	assert_true(json_read_item(&reader) && json_read_bool(&reader));
	assert_true(json_read_item(&reader));
	assert_true(json_read_integer(&reader) == -5);
	assert_true(json_read_item(&reader));
	view = json_read_skip(&reader);
	assert_int_equal(view.length, 14);
	assert_false(json_read_item(&reader));
	assert_true(json_read_member(&reader, &name) && json_view_is(name, "rest"));
	view = json_read_skip(&reader);
	assert_memory_equal(view.bytes, "[1,{\"a\":[]}]", view.length);
	assert_false(json_read_member(&reader, &name));
	assert_int_equal(json_read_type(&reader), JSON_NOTHING);
	assert_true(json_read_end(&reader));
}

static void by_name(void **state)
{
	static const char *const wanted[] = { "a", "b", "c" };
	static const char text[] = "{\"b\":[1],\"x\":1,\"x\":2,\"\\u0061\":null}";
	static const char twice[] = "{\"a\":1,\"\\u0061\":2}";
	struct json_reader reader;
	struct json_view values[3];

	(void)state;
	json_read_begin(&reader, text, sizeof(text) - 1, JSON_READ_DEPTH);
	assert_int_equal(json_read_members(&reader, wanted, 3, values), 2);
	assert_true(json_read_end(&reader));
	assert_memory_equal(values[0].bytes, "null", 4);
	assert_int_equal(values[1].length, 3);
	assert_null(values[2].bytes);

	json_read_begin(&reader, twice, sizeof(twice) - 1, JSON_READ_DEPTH);
	(void)json_read_members(&reader, wanted, 3, values);
	assert_false(json_read_end(&reader));
	assert_int_equal(reader.fault, JSON_TWICE);
	assert_int_equal(reader.at, 8);
}

/* The first failure stays, and nothing that follows does anything. */
static void latched(void **state)
{
	struct json_reader reader;
	struct json_view name;

	(void)state;
	json_read_begin(&reader, "[1,\"a\"]", 7, JSON_READ_DEPTH);
	json_read_array(&reader);
	assert_true(json_read_item(&reader));
	assert_null(json_read_string(&reader).bytes);
	assert_int_equal(reader.fault, JSON_TYPE);
	assert_int_equal(reader.at, 1);
	assert_false(json_read_item(&reader));
	assert_false(json_read_member(&reader, &name));
	assert_int_equal(json_read_unsigned(&reader), 0);
	assert_int_equal(json_read_type(&reader), JSON_NOTHING);
	assert_null(json_read_skip(&reader).bytes);
	json_read_fail(&reader, JSON_UTF8);
	assert_false(json_read_end(&reader));
	assert_int_equal(reader.fault, JSON_TYPE);
	assert_int_equal(reader.at, 1);
}

/* A level of the other kind, none at all, a second value, a value that was left out. */
static void misuse(void **state)
{
	struct json_reader reader;
	struct json_view name;

	(void)state;
	json_read_begin(&reader, "[]", 2, JSON_READ_DEPTH);
	assert_false(json_read_item(&reader));
	assert_int_equal(reader.fault, JSON_TYPE);
	json_read_begin(&reader, "[]", 2, JSON_READ_DEPTH);
	json_read_array(&reader);
	assert_false(json_read_member(&reader, &name));
	assert_int_equal(reader.fault, JSON_TYPE);
	json_read_begin(&reader, "1 2", 3, JSON_READ_DEPTH);
	assert_int_equal(json_read_unsigned(&reader), 1);
	assert_int_equal(json_read_unsigned(&reader), 0);
	assert_int_equal(reader.fault, JSON_BEHIND);
	json_read_begin(&reader, "{\"a\":1}", 7, JSON_READ_DEPTH);
	json_read_object(&reader);
	assert_true(json_read_member(&reader, &name));
	assert_false(json_read_member(&reader, &name));
	assert_false(json_read_end(&reader));
	json_read_begin(&reader, "[1]", 3, JSON_READ_DEPTH);
	json_read_array(&reader);
	assert_false(json_read_end(&reader));
	json_read_begin(&reader, "1", 1, JSON_READ_DEPTH);
	assert_false(json_read_end(&reader));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_that_are), cmocka_unit_test(values_that_are_not),
		cmocka_unit_test(depth),	   cmocka_unit_test(integers),
		cmocka_unit_test(strings),	   cmocka_unit_test(round_trip),
		cmocka_unit_test(names),	   cmocka_unit_test(pulled),
		cmocka_unit_test(by_name),	   cmocka_unit_test(latched),
		cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
