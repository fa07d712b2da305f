#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/input.h"
#include "policy/view.h"

#include <errno.h>
#include <string.h>

static void assert_split(const char *given, const char *path, const char *name)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	const char *got_path = NULL, *got_name = NULL;

	assert_int_equal(input_split(given, &arena, &got_path, &got_name, &error), 0);
	assert_string_equal(got_path, path);
	assert_string_equal(got_name, name);
}

static void assert_no_split(const char *given)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	const char *path, *name;

	assert_int_equal(input_split(given, &arena, &path, &name, &error), -EINVAL);
	assert_non_null(strstr(error.message, "--input"));
}

static void the_last_colon_begins_the_name(void **state)
{
	(void)state;
	assert_split("/a/b", "/a/b", "");
	assert_split("/a/b:c", "/a/b", "c");
	assert_split("a:b:c", "a:b", "c");
	assert_split("./a:b/c", "./a:b/c", "");
	assert_split(".:x", ".", "x");
}

static void bad_names_are_refused(void **state)
{
	static const char *const given[] = {
		"",	 ":",	  ":x",		 "/a:",	    "/a:.",
		"/a:..", "/a:\n", "/a:x\x1b[2J", "/a:\xff", "/a:\xe2\x80\xae"
	};
	char longest[2 + 256 + 1] = "a:";

	(void)state;
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		assert_no_split(given[i]);
	memset(longest + 2, 'x', 255);
	assert_split(longest, "a", longest + 2);
	longest[2 + 255] = 'x';
	assert_no_split(longest);
}

static void a_place_is_taken_once(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	struct view view = { 0 };
	struct view_path row = { .class = PATH_READ, .source = "/data/a" };

	(void)state;
	assert_int_equal(input_place(&view, "/data/a", "", &arena, &row.target, &error), 0);
	assert_string_equal(row.target, VIEW_INPUTS "/a");
	assert_true(view_is_input(&row));
	assert_true(view_add(&view, &arena, row));
	assert_int_equal(input_place(&view, "/other/a", "", &arena, &row.target, &error), -EEXIST);
	assert_non_null(strstr(error.message, "PATH:NAME"));
	assert_int_equal(input_place(&view, "/other/a", "b", &arena, &row.target, &error), 0);
	assert_string_equal(row.target, VIEW_INPUTS "/b");
	assert_int_equal(input_place(&view, "/", "", &arena, &row.target, &error), -EINVAL);
	assert_int_equal(input_place(&view, "/a/\n", "", &arena, &row.target, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_colon_begins_the_name),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(a_place_is_taken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
