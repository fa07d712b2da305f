#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json_tree.h"

static const struct json_node *read_tree(struct arena *arena, const char *text, size_t *ret_length)
{
	const struct json_node *root = NULL;
	enum json_fault fault;

	assert_int_equal(json_tree_read(text, strlen(text), JSON_READ_DEPTH, arena, &root,
					ret_length, &fault),
			 0);
	assert_int_equal(fault, JSON_FINE);
	return root;
}

static void values_and_what_is_behind(void **state)
{
	static const char text[] =
		"{\"a\":{\"b\":[1,-2.5e3,\"x\"],\"c\":true},\"d\":null,\"e\":false,"
		"\"\":18446744073709551615},\"prev\":\"y\"";
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct json_node *root, *item;
	size_t length;

	(void)state;
	root = read_tree(&arena, text, &length);
	assert_string_equal(text + length, ",\"prev\":\"y\"");
	assert_int_equal(json_tree_count(root), 4);
	item = json_tree_get(root, "a.b")->first;
	assert_string_equal(item->text, "1");
	assert_string_equal(item->next->text, "-2.5e3");
	assert_string_equal(item->next->next->text, "x");
	assert_null(item->next->next->next);
	assert_true(json_tree_get(root, "a.c")->is_true);
	assert_int_equal(json_tree_get(root, "d")->type, JSON_NULL);
	assert_false(json_tree_get(root, "e")->is_true);
	assert_null(json_tree_get(root, "a.b.c"));
	assert_null(json_tree_get(root, "a.bb"));
	assert_null(json_tree_get(root, "aa"));
	assert_int_equal(json_tree_unsigned(root->first->next->next->next, "", 0), UINT64_MAX);
	assert_int_equal(json_tree_unsigned(root, "a.b", 7), 7);
	assert_null(json_tree_text(root, "d"));
}

/* Names and values with escapes are as long as what these stand for, and end there. */
static void escapes_are_undone(void **state)
{
	static const char text[] =
		"{\"n\\u0061me\\\\\":\"a\\n\\u0000b\\ud83d\\ude00\\udcff\",\"x\":\"\"}";
	static const char wanted[] = "a\n\0b\xf0\x9f\x98\x80\xff";
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER seen = { 0 };
	const struct json_node *root;
	size_t length;

	(void)state;
	root = read_tree(&arena, text, &length);
	assert_int_equal(length, strlen(text));
	assert_string_equal(root->first->name, "name\\");
	assert_int_equal(root->first->length, sizeof(wanted) - 1);
	assert_memory_equal(root->first->text, wanted, sizeof(wanted));
	assert_string_equal(json_tree_text(root, "x"), "");
	json_tree_visible(root->first, &seen);
	assert_string_equal(seen.data, "a\\x0a\\x00b\xf0\x9f\x98\x80\\xff");
}

static void faults_and_where(void **state)
{
	static const struct {
		const char *text;
		enum json_fault fault;
		size_t at;
	} rows[] = {
		{ "{\"a\":[1,}", JSON_SYNTAX, 8 },
		{ "{\"a\":\"b", JSON_SHORT, 7 },
		{ "{\"a\":\"\xff\"}", JSON_UTF8, 6 },
		{ "{\"a\" 1}", JSON_SYNTAX, 5 },
		{ "[[[[1]]]]", JSON_DEEP, 3 },
		{ "", JSON_SHORT, 0 },
		{ "{\"a\":\"\\ud800\"}", JSON_SURROGATE, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		const struct json_node *root = NULL;
		enum json_fault fault;
		size_t at;

		assert_int_equal(json_tree_read(rows[i].text, strlen(rows[i].text), 3, &arena,
						&root, &at, &fault),
				 -EBADMSG);
		assert_int_equal(fault, rows[i].fault);
		assert_int_equal(at, rows[i].at);
		assert_null(root);
	}
}

/* Items of two bytes take far more in a tree than the arena may have. */
static void too_many_items(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct json_node *root = NULL;
	const size_t length = 8 * 1024 * 1024 + 1;
	char *text = malloc(length);
	enum json_fault fault;
	size_t at;

	(void)state;
	for (size_t i = 0; i < length; i++)
		text[i] = i % 2 ? '0' : ',';
	text[0] = '[';
	text[length - 1] = ']';
	assert_int_equal(json_tree_read(text, length, 3, &arena, &root, &at, &fault), -ENOMEM);
	assert_null(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_and_what_is_behind),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(faults_and_where),
		cmocka_unit_test(too_many_items),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
