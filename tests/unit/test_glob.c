#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/path.h"
#include "policy/glob.h"

struct row {
	const char *pattern, *path;
	bool match;
};

static const struct row rows[] = {
	{ "a", "a", true },
	{ "a", "b", false },
	{ "a", "ab", false },
	{ "ab", "a", false },
	{ "a", "a/a", false },
	{ "?", "a", true },
	{ "?", "", false },
	{ "?", "ab", false },
	{ "a?b", "a/b", false },
	{ "*", "anything", true },
	{ "*", ".hidden", true },
	{ "*", "a/b", false },
	{ "*.env", ".env", true },
	{ ".env*", ".env.local", true },
	{ "*.pem", "a.pem.bak", false },
	{ "a*b*c", "aXbYc", true },
	{ "a*b*c", "abc", true },
	{ "a*b*c", "acb", false },
	{ "*a", "aaa", true },
	{ "*ab", "aab", true },
	{ "*aab", "aaaab", true },
	{ "a*", "a", true },
	{ "*/b", "a/b", true },
	{ "*/b", "b", false },
	{ "*/*", "a/b", true },
	{ "*/*", "a/b/c", false },
	{ "[abc]", "b", true },
	{ "[abc]", "d", false },
	{ "[a-c]x", "bx", true },
	{ "[!a-c]", "d", true },
	{ "[!a-c]", "b", false },
	{ "[^a-c]", "d", true },
	{ "[^a-c]", "a", false },
	{ "[]]", "]", true },
	{ "[!]]", "]", false },
	{ "[!]]", "a", true },
	{ "[a-]", "-", true },
	{ "[-a]", "-", true },
	{ "[a-]", "b", false },
	{ "[\\]]", "]", true },
	{ "[\\a-\\c]", "b", true },
	{ "[\\a-\\c]", "\\", false },
	{ "[a\\-c]", "b", false },
	{ "[a\\-c]", "-", true },
	{ "[*?]", "*", true },
	{ "[*?]", "a", false },
	{ "[**]", "*", true },
	{ "a[!x]b", "a/b", false },
	{ "a[--0]b", "a/b", false }, /* a range around '/' */
	{ "[\x80-\xff]", "\xc3", true },
	{ "[!\x80-\xff]", "\xc3", false },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "\\\\", "\\", true },
	{ "\\a", "a", true },
	{ "\\[a]", "[a]", true },
	{ "a]", "a]", true },
	{ "{a,b}", "a", false },
	{ "{a,b}", "{a,b}", true },
	{ "**", "", true },
	{ "**", "a", true },
	{ "**", "a/b/c", true },
	{ "**/x", "x", true },
	{ "**/x", "a/b/x", true },
	{ "**/x", "a/b/xy", false },
	{ "**/x", "x/y", false },
	{ "a/**", "a", true },
	{ "a/**", "a/b/c", true },
	{ "a/**", "ab", false },
	{ "a/**/b", "a/b", true },
	{ "a/**/b", "a/x/y/b", true },
	{ "a/**/b", "a/x/y/bc", false },
	{ "**/a/**", "x/a/y", true },
	{ "**/a/**", "x/b/y", false },
	{ "**/**/a", "a", true },
	{ "**/a/**/a", "a", false },
	{ "**/a/**/a", "a/a", true },
	{ "**/.ssh/id_*", "home/u/.ssh/id_rsa", true },
	{ "*\\**", "a*b", true },
	{ "*\\**", "ab", false },
	{ "...", "...", true },
	{ "\x1b[!a]*", "\x1b]52;c;x", true },
};

static const char *const refused[] = {
	"",	  "/",	    "/a",    "a/",    "a//b",	     ".",	"..",	   "a/./b",
	"a/../b", "[",	    "[a",    "[]",    "[!]",	     "[!",	"[^",	   "[a/b]",
	"[/]",	  "a[b/c]", "[a\\]", "[z-a]", "[a-\\",	     "\\",	"a\\",	   "a\\/b",
	"**a",	  "a**",    "***",   "a/**b", "[[:alpha:]]", "[[.a.]]", "[[=a=]]", "a/***/b",
};

static void matches(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (glob_check(rows[i].pattern) != 0)
			fail_msg("'%s' is refused", rows[i].pattern);
		if (glob_match(rows[i].pattern, rows[i].path) != rows[i].match)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
	}
}

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *pattern = refused[i];

		if (glob_check(pattern) != -EINVAL || glob_match(pattern, pattern) ||
		    glob_match(pattern, "a") || glob_can_match_below(pattern, ""))
			fail_msg("'%s' passed", pattern);
	}
}

static void limits(void **state)
{
	char pattern[GLOB_LIMIT_BYTES + 2];

	(void)state;
	memset(pattern, 'a', sizeof(pattern));
	pattern[GLOB_LIMIT_BYTES] = '\0';
	assert_int_equal(glob_check(pattern), 0);
	assert_true(glob_match(pattern, pattern));
	pattern[GLOB_LIMIT_BYTES] = 'a';
	pattern[GLOB_LIMIT_BYTES + 1] = '\0';
	assert_int_equal(glob_check(pattern), -EINVAL);

	for (size_t i = 0; i < 2 * GLOB_LIMIT_COMPONENTS + 1; i++)
		pattern[i] = i % 2 ? '/' : 'a';
	pattern[2 * GLOB_LIMIT_COMPONENTS - 1] = '\0';
	assert_int_equal(glob_check(pattern), 0);
	assert_true(glob_match(pattern, pattern));
	pattern[2 * GLOB_LIMIT_COMPONENTS - 1] = '/';
	pattern[2 * GLOB_LIMIT_COMPONENTS + 1] = '\0';
	assert_int_equal(glob_check(pattern), -EINVAL);
}

static void is_pattern(void **state)
{
	(void)state;
	assert_false(glob_is_pattern(""));
	assert_false(glob_is_pattern("a/b.c{d}]!^-"));
	assert_true(glob_is_pattern("a?"));
	assert_true(glob_is_pattern("*"));
	assert_true(glob_is_pattern("[a]"));
	assert_true(glob_is_pattern("a\\b"));
}

static void below(void **state)
{
	static const struct row directories[] = {
		{ "a", "", true },	     { "a", "a", false },     { "a/b", "a", true },
		{ "a/b", "b", false },	     { "a/b", "a/b", false }, { "*/b", "x", true },
		{ "*/b", "x/b", false },     { "**", "", true },      { "**", "a/b/c", true },
		{ "**/x", "a/b", true },     { "a/**", "a", true },   { "a/**", "b", false },
		{ "a/**", "a/b", true },     { "a/**/x", "a", true }, { "a/*/x", "a/b", true },
		{ "a/*/x", "a/b/c", false }, { "[a/b]", "", false },  { "?", "", true },
		{ "**/a/b", "a/b", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (glob_can_match_below(directories[i].pattern, directories[i].path) !=
		    directories[i].match)
			fail_msg("'%s' below '%s'", directories[i].pattern, directories[i].path);
}

static double seconds(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Fills text with `unit` again and again and ends it with `last`. */
static void repeat(char *text, size_t room, const char *unit, const char *last)
{
	size_t length = strlen(unit), used = 0;

	while (used + length + strlen(last) < room) {
		memcpy(text + used, unit, length);
		used += length;
	}
	memcpy(text + used, last, strlen(last) + 1);
}

/* What takes a naive matcher exponential time takes pattern x path steps at the most. */
static void catastrophic(void **state)
{
	char pattern[GLOB_LIMIT_BYTES + 1], path[4096];
	double start = seconds();

	(void)state;
	repeat(pattern, sizeof(pattern), "*a", "*b");
	repeat(path, sizeof(path), "a", "");
	assert_int_equal(glob_check(pattern), 0);
	assert_false(glob_match(pattern, path));
	repeat(path, sizeof(path), "a", "b");
	assert_true(glob_match(pattern, path));

	repeat(pattern, 2 * GLOB_LIMIT_COMPONENTS + 20, "**/a/", "b");
	assert_int_equal(glob_check(pattern), 0);
	repeat(path, sizeof(path), "a/", "a");
	assert_false(glob_match(pattern, path));
	repeat(path, sizeof(path), "a/", "b");
	assert_true(glob_match(pattern, path));

	repeat(pattern, sizeof(pattern), "*[!b]", "b");
	repeat(path, sizeof(path), "a", "");
	assert_false(glob_match(pattern, path));
	/* 6 x 4 million steps of some ns, and a wide margin for a sanitizer on a busy machine */
	assert_true(seconds() - start < 5.0);
}

static void what_lies_in_it_is_covered(void **state)
{
	char deep[PATH_LIMIT_BYTES + 8];

	(void)state;
	assert_true(glob_covers("src", "src"));
	assert_true(glob_covers("src", "src/a/b.c"));
	assert_true(glob_covers("s*", "src/a/b.c"));
	assert_true(glob_covers("src/*", "src/a/b.c"));
	assert_false(glob_covers("src/a", "src"));
	assert_false(glob_covers("src", "srcs/a"));
	assert_false(glob_covers("*.c", "src/a/b.c"));
	assert_false(glob_covers("src", ""));
	memset(deep, 'a', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_false(glob_covers("*", deep));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches),
		cmocka_unit_test(refusals),
		cmocka_unit_test(limits),
		cmocka_unit_test(is_pattern),
		cmocka_unit_test(below),
		cmocka_unit_test(catastrophic),
		cmocka_unit_test(what_lies_in_it_is_covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
