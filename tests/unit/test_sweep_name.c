#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "workspace/later.h"
#include "workspace/sweep_name.h"

static int class_in(enum sweep_place place, const char *name, bool *ret_is_exact)
{
	const struct sweep_name *row = sweep_name_find(place, name, ret_is_exact);

	return row ? (int)row->class : -1;
}

static void expect(const char *name, int class, bool exact)
{
	bool is_exact = !exact;

	if (class_in(SWEEP_IN_TREE, name, &is_exact) != class)
		fail_msg("%s is not of class %d", name, class);
	if (class >= 0)
		assert_int_equal(is_exact, exact);
}

static void git_in_every_spelling(void **state)
{
	static const char *const names[] = {
		".GIT",
		".Git",
		".gIt",
		"git~1",
		"GIT~1",
		".git.",
		".git ",
		".git . . .",
		".git:stream",
		".git\\x",
		"git~1. ",
		".g\u200cit",
		".git\u200d",
		"\u200e.git",
		".g\u202ai\u206ft",
		"\ufeff.git",
		".git\xff",
		".g\u2064it",
		".git\u200b. .",
		".git                                                                      ",
	};

	(void)state;
	expect(".git", SWEEP_GIT, true);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], SWEEP_GIT, strcmp(names[i], "git~1") == 0);
}

static void what_only_resembles_is_none(void **state)
{
	static const char *const names[] = {
		".gitignore",
		"hooks",
		".gitmodules",
		"git",
		"x.git",
		".gi",
		".gitx",
		"git~2",
		".git x",
		"",
		".",
		".g",
		"HEA",
		"header",
		".g\u00edt",
		".claudes",
		"vscode",
		"main.c",
		"r",
		"o",
		"workspace",
		"code-workspace",
		"x.code-workspaces",
		"x.code-workspace.bak",
		".",
		"AGENTS.md",
		"CLAUDE.md",
		"Makefile",
		"package.json",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], -1, false);
}

static void settings_in_every_spelling(void **state)
{
	(void)state;
	expect(".vscode", SWEEP_SETTINGS, true);
	expect(".VSCode", SWEEP_SETTINGS, false);
	expect(".v\u017fcode", SWEEP_SETTINGS, false);
	expect(".hus\u212ay", SWEEP_SETTINGS, false);
	expect(".Claude", SWEEP_SETTINGS, false);
	expect(".envrc", SWEEP_SETTINGS, true);
	expect(".bsp", SWEEP_SETTINGS, true);
	expect("BuildServer.json", SWEEP_SETTINGS, false);
	expect(".env", -1, false);
	expect(".mcp.json. ", SWEEP_SETTINGS, false);
	expect(".hg", SWEEP_REPOSITORY, true);
	expect("my work.code-workspace", SWEEP_SETTINGS, true);
	expect("a.b.Code-Workspace. ", SWEEP_SETTINGS, false);
	expect(".code-workspace", SWEEP_SETTINGS, true);
	expect("x.code-workspace:s", SWEEP_SETTINGS, false);
	expect("\u043f.sublime-project", SWEEP_SETTINGS, true);
	expect("x.code-work\u017fpace", SWEEP_SETTINGS, false);
	expect("\u00e9.\u00e9.co\u200cde-workspace", SWEEP_SETTINGS, false);
	expect(".github", SWEEP_FORGE, true);
	expect("HEAD", SWEEP_HEAD, true);
	expect("head", SWEEP_HEAD, false);
}

/* The same name is another thing in another place. */
static void the_place_counts(void **state)
{
	bool is_exact;

	(void)state;
	assert_int_equal(class_in(SWEEP_IN_TREE, "config", &is_exact), -1);
	assert_int_equal(class_in(SWEEP_IN_GIT, "config", &is_exact), SWEEP_OBEYED);
	assert_int_equal(class_in(SWEEP_IN_TREE, "objects", &is_exact), SWEEP_OBJECTS);
	assert_int_equal(class_in(SWEEP_IN_GIT, "objects", &is_exact), SWEEP_PASSIVE);
	assert_int_equal(class_in(SWEEP_IN_INFO, "attributes", &is_exact), SWEEP_OBEYED);
	assert_int_equal(class_in(SWEEP_IN_GIT, ".vscode", &is_exact), -1);
	assert_int_equal(class_in(SWEEP_IN_FORGE, "hooks", &is_exact), SWEEP_SETTINGS);
	assert_int_equal(class_in(SWEEP_IN_FORGE, ".vscode", &is_exact), SWEEP_SETTINGS);
	assert_int_equal(class_in(SWEEP_IN_FORGE, "x.code-workspace", &is_exact), SWEEP_SETTINGS);
	assert_int_equal(class_in(SWEEP_IN_FORGE, ".git", &is_exact), SWEEP_GIT);
	assert_int_equal(class_in(SWEEP_IN_NEW_FORGE, "hooks", &is_exact), SWEEP_SETTINGS);
	assert_int_equal(class_in(SWEEP_IN_NEW_FORGE, ".git", &is_exact), SWEEP_GIT);
	assert_int_equal(class_in(SWEEP_IN_GIT, "x.code-workspace", &is_exact), -1);
	for (unsigned place = SWEEP_IN_TREE; place < SWEEP_IN_ALL; place <<= 1)
		assert_int_equal(class_in((enum sweep_place)place, ".git", &is_exact), SWEEP_GIT);
}

static void by_path(void **state)
{
	(void)state;
	assert_non_null(sweep_name_of_path("w/.github/hooks"));
	assert_non_null(sweep_name_of_path(".GitHub/Hooks"));
	assert_non_null(sweep_name_of_path("/.vscode"));
	assert_non_null(sweep_name_of_path(".vscode"));
	assert_null(sweep_name_of_path("/w/hooks"));
	assert_null(sweep_name_of_path("hooks"));
	assert_null(sweep_name_of_path("/w/.github/workflows/hooks"));
	assert_null(sweep_name_of_path(""));
	assert_null(sweep_name_of_path("/"));
}

/* What is held after an action is marked in a diff, too. */
static void each_is_told_of_in_a_diff(void **state)
{
	const struct sweep_name *row;

	(void)state;
	for (size_t i = 0; (row = sweep_name_row(i)); i++)
		if (row->places & SWEEP_IN_TREE &&
		    (row->class == SWEEP_SETTINGS || row->class == SWEEP_REPOSITORY) &&
		    !later_of_path(row->name))
			fail_msg("%s is not in later.def", row->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(git_in_every_spelling),
		cmocka_unit_test(what_only_resembles_is_none),
		cmocka_unit_test(settings_in_every_spelling),
		cmocka_unit_test(the_place_counts),
		cmocka_unit_test(by_path),
		cmocka_unit_test(each_is_told_of_in_a_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
