#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "workspace/git_ref.h"

#include <errno.h>

#define A "4c2b30abb8e2f2ff889e34edb7e847c23d4b80a1"
#define B "2b3cc82a13d090c8564056e6bb293761e3d8cca1"
#define LONG A "0123456789abcdef01234567"

static void ids(void **state)
{
	(void)state;
	assert_int_equal(git_ref_id_length(A, 40), 40);
	assert_int_equal(git_ref_id_length(A "\n", 41), 40);
	assert_int_equal(git_ref_id_length(LONG, 64), 64);
	assert_int_equal(git_ref_id_length(A, 39), 0);
	assert_int_equal(git_ref_id_length(A "0", 41), 0);
	assert_int_equal(git_ref_id_length(LONG "0", 65), 0);
	assert_int_equal(git_ref_id_length("4C2B30abb8e2f2ff889e34edb7e847c23d4b80a1", 40), 0);
	assert_int_equal(git_ref_id_length("", 0), 0);
}

static void names(void **state)
{
	static const char *const good[] = { "refs/heads/main", "refs/heads/a.b",
					    "refs/heads/a@b",  "refs/heads/\xc3\xa9",
					    "refs/x",	       "refs/heads/-a" };
	static const char *const bad[] = {
		"refs/",	   "heads/main",	"refs/heads/",
		"refs//a",	   "refs/heads/.a",	"refs/../../x",
		"refs/heads/a..b", "refs/heads/a.lock", "refs/heads/a b",
		"refs/heads/a~1",  "refs/heads/a:b",	"refs/heads/a.",
		"refs/heads/a@{b", "refs/a\\b",		"refs/heads/a\n",
		"refs/heads/a*",   "refs/heads/a\x7f",	"refs/heads/a[",
		"refs/a.lock/b",   "/refs/heads/a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!git_ref_is_name(good[i], strlen(good[i])))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (git_ref_is_name(bad[i], strlen(bad[i])))
			fail_msg("%s", bad[i]);
	assert_false(git_ref_is_name("refs/heads/a\0b", 14));
}

static const char *value(struct arena *arena, const char *text, bool may_be_symbolic)
{
	return git_ref_value(arena, text, strlen(text), may_be_symbolic);
}

static void values(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	assert_string_equal(value(&arena, A "\n", false), A);
	assert_string_equal(value(&arena, A " \r\n", false), A);
	assert_string_equal(value(&arena, "ref: refs/heads/main\n", true), "ref: refs/heads/main");
	assert_string_equal(value(&arena, "ref:\t refs/heads/main", true), "ref: refs/heads/main");
	assert_null(value(&arena, "ref: refs/heads/main\n", false));
	assert_null(value(&arena, "ref: ../../x\n", true));
	assert_null(value(&arena, "ref: refs/heads/main\n[core]\n", true));
	assert_null(value(&arena, A " x\n", true));
	assert_null(value(&arena, "", true));
	assert_null(value(&arena, "ref:", true));
}

static void lists(void **state)
{
	(void)state;
	assert_true(git_ref_is_list("", 0, false));
	assert_true(git_ref_is_list(A "\n" B "\n", 82, false));
	assert_true(git_ref_is_list(A "\tx\n", 43, true));
	assert_false(git_ref_is_list(A "\tx\n", 43, false));
	assert_false(git_ref_is_list(A "x\n", 42, true));
	assert_false(git_ref_is_list("x\n", 2, true));
	assert_false(git_ref_is_list(A "\t\0\n", 43, true));
}

static bool is_log(const char *text)
{
	return git_ref_is_log(text, strlen(text));
}

static void logs(void **state)
{
	(void)state;
	assert_true(is_log(""));
	assert_true(is_log(A " " B " C <c@d> 1 +0000\tx\n"));
	assert_false(is_log(A " " B " C <c@d> 1 +0000\tx"));
	assert_false(is_log(A " " B "\n"));
	assert_false(is_log(A " x C\n"));
	assert_false(is_log("x\n"));
}

static void packed(void **state)
{
	static const char text[] = "# pack-refs with: peeled fully-peeled sorted \n" A
				   " refs/heads/a\n" B " refs/tags/t\n^" A "\n";
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct git_packed_ref *ref;
	struct git_packed found;

	(void)state;
	assert_int_equal(git_packed_parse(&arena, text, sizeof(text) - 1, &found), 0);
	assert_int_equal(found.count, 2);
	ref = git_packed_find(&found, "refs/tags/t");
	assert_non_null(ref);
	assert_memory_equal(ref->id, B, 40);
	/* its peeled line is its own */
	assert_int_equal(ref->end, sizeof(text) - 1);
	assert_null(git_packed_find(&found, "refs/tags"));
}

static void packed_unsorted(void **state)
{
	static const char text[] = A " refs/heads/b\n" B " refs/heads/a\n";
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_packed found;

	(void)state;
	assert_int_equal(git_packed_parse(&arena, text, sizeof(text) - 1, &found), 0);
	assert_memory_equal(git_packed_find(&found, "refs/heads/a")->id, B, 40);
	assert_memory_equal(git_packed_find(&found, "refs/heads/b")->id, A, 40);
}

static void packed_bad(void **state)
{
	static const char *const texts[] = {
		"x\n",
		A " refs/heads/a",
		A " ../x\n",
		A "\n",
		"^" A "\n",
		A " refs/heads/a\n^x\n",
		A " refs/heads/a\n# late\n",
		A " refs/heads/a\n" B " refs/heads/a\n",
		"\n",
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_packed found = { .count = 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (git_packed_parse(&arena, texts[i], strlen(texts[i]), &found) != -EBADMSG)
			fail_msg("%s", texts[i]);
	assert_int_equal(found.count, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		cmocka_unit_test(names),
		cmocka_unit_test(values),
		cmocka_unit_test(lists),
		cmocka_unit_test(logs),
		cmocka_unit_test(packed),
		cmocka_unit_test(packed_unsorted),
		cmocka_unit_test(packed_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
