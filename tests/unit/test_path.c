#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/path.h"

static void clean_or_not(void **state)
{
	static const char *const clean[] = { "/",    "/a",   "/a/b",  "/.a",	  "/..a", "/a..",
					     "/...", "/a b", "/\xff", "/\x1b[2J", "/a\nb" };
	static const char *const unclean[] = { "",	"a",	  "./a",     "//",   "//a",
					       "/a/",	"/a//b",  "/.",	     "/..",  "/a/.",
					       "/a/..", "/a/./b", "/a/../b", "/./a", "/../a",
					       ".",	"..",	  "a/b" };
	char path[PATH_LIMIT_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++)
		if (!path_is_clean(clean[i]))
			fail_msg("'%s' is clean", clean[i]);
	for (size_t i = 0; i < sizeof(unclean) / sizeof(unclean[0]); i++)
		if (path_is_clean(unclean[i]))
			fail_msg("'%s' is not clean", unclean[i]);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[PATH_LIMIT_BYTES - 1] = '\0';
	assert_true(path_is_clean(path));
	path[PATH_LIMIT_BYTES - 1] = 'a';
	path[PATH_LIMIT_BYTES] = '\0';
	assert_false(path_is_clean(path));
}

static void under(void **state)
{
	(void)state;
	assert_true(path_is_under("/a", "/"));
	assert_true(path_is_under("/", "/"));
	assert_true(path_is_under("/a", "/a"));
	assert_true(path_is_under("/a/b", "/a"));
	assert_false(path_is_under("/ab", "/a"));
	assert_false(path_is_under("/", "/a"));
	assert_false(path_is_under("/b/a", "/a"));
	assert_string_equal(path_below("/a/b/c", "/a"), "b/c");
	assert_string_equal(path_below("/a", "/a"), "");
	assert_string_equal(path_below("/a/b", "/"), "a/b");
	assert_string_equal(path_below("/", "/"), "");
}

static void cleaning(void **state)
{
	static const struct {
		const char *base, *path, *wanted;
	} rows[] = {
		{ "/b", "a", "/b/a" },
		{ "/", "a", "/a" },
		{ "/b", "/a", "/a" },
		{ "/b", ".", "/b" },
		{ "/", ".", "/" },
		{ "/b", "./", "/b" },
		{ "/b", "/", "/" },
		{ "/b", "///", "/" },
		{ "/b", "/./.", "/" },
		{ "/b", "a//c/./d/", "/b/a/c/d" },
		{ "/b", "//a//", "/a" },
		{ "/b", "...", "/b/..." },
		{ "/b", "..a/a..", "/b/..a/a.." },
		{ "/b", "\x1b]52;c;x", "/b/\x1b]52;c;x" },
		{ "/b", "\xff", "/b/\xff" },
		{ "/b", "", NULL },
		{ "/b", "..", NULL },
		{ "/b", "../a", NULL },
		{ "/b", "a/..", NULL },
		{ "/b", "/..", NULL },
		{ "/b", "a/../c", NULL },
	};
	CLEANUP_ARENA struct arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *clean = path_clean(&arena, rows[i].base, rows[i].path);

		if (!clean != !rows[i].wanted || (clean && strcmp(clean, rows[i].wanted) != 0))
			fail_msg("'%s' below '%s' gives '%s'", rows[i].path, rows[i].base,
				 clean ? clean : "NULL");
	}
	assert_false(arena_failed(&arena));
}

/* The longest that can be named passes, one byte more does not, from base and path together. */
static void too_long(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	static char path[2 * PATH_LIMIT_BYTES];
	const char *clean;

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[PATH_LIMIT_BYTES - 4] = '\0';
	clean = path_clean(&arena, "/b", path);
	assert_non_null(clean);
	assert_int_equal(strlen(clean), PATH_LIMIT_BYTES - 1);
	assert_true(path_is_clean(clean));
	path[PATH_LIMIT_BYTES - 4] = 'a';
	path[PATH_LIMIT_BYTES - 3] = '\0';
	assert_null(path_clean(&arena, "/b", path));
	path[PATH_LIMIT_BYTES - 3] = 'a';
	assert_null(path_clean(&arena, "/", path));
	assert_false(arena_failed(&arena));
}

static void parts(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };

	(void)state;
	assert_string_equal(path_parent(&arena, "/"), "/");
	assert_string_equal(path_parent(&arena, "/a"), "/");
	assert_string_equal(path_parent(&arena, "/a/b"), "/a");
	assert_string_equal(path_name("/"), "");
	assert_string_equal(path_name("/a"), "a");
	assert_string_equal(path_name("/a/b"), "b");
	assert_int_equal(path_depth("/"), 0);
	assert_int_equal(path_depth("/a"), 1);
	assert_int_equal(path_depth("/a/b"), 2);
	assert_true(path_is_absolute("/"));
	assert_false(path_is_absolute(""));
	assert_false(path_is_absolute("a/"));
}

/* No memory: NULL, and the arena says so. */
static void no_memory(void **state)
{
	CLEANUP_ARENA struct arena arena = { .used_bytes = ARENA_LIMIT_BYTES };

	(void)state;
	assert_null(path_clean(&arena, "/", "a"));
	assert_true(arena_failed(&arena));
	assert_null(path_parent(&arena, "/a/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_or_not), cmocka_unit_test(under),
		cmocka_unit_test(cleaning),	cmocka_unit_test(too_long),
		cmocka_unit_test(parts),	cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
