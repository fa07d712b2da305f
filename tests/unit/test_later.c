#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "workspace/later.h"
#include "workspace/sweep_name.h"

static void is_executed(void **state)
{
	(void)state;
	assert_string_equal(later_of_path(".git/hooks/pre-commit"), "git");
	assert_string_equal(later_of_path("vendor/x/.git/config"), "git");
	assert_string_equal(later_of_path(".GIT/config"), "git");
	assert_string_equal(later_of_path(".vscode/tasks.json"), "the editor");
	assert_string_equal(later_of_path("a/b.code-workspace"), "the editor");
	assert_string_equal(later_of_path(".github/workflows/x.yml"), "continuous integration");
	assert_string_equal(later_of_path("packages/one/package.json"), "npm and its kin");
	assert_string_equal(later_of_path("lib/rules.mk"), "make");
	assert_string_equal(later_of_path("Makefile"), "make");
	assert_string_equal(later_of_path("sub/BUILD"), "a build");
	assert_string_equal(later_of_path("sub/.git"), "git");
	assert_string_equal(later_of_last("sub/.git", true), "git");
	assert_string_equal(later_of_last("sub/.github/workflows", true), "continuous integration");
	assert_string_equal(later_of_path("deep/.envrc"), "the shell, by direnv");
}

static void is_not(void **state)
{
	(void)state;
	assert_null(later_of_path("src/main.c"));
	assert_null(later_of_path(".github"));
	assert_null(later_of_path(".github/CODEOWNERS"));
	assert_null(later_of_path(".github/workflowsx"));
	assert_null(later_of_path("workflows/x.yml"));
	assert_null(later_of_path(".gitx/config"));
	assert_null(later_of_path("Makefile.old"));
	assert_null(later_of_path("xpackage.json"));
	assert_null(later_of_path("mk"));
	assert_null(later_of_path(""));
	/* a directory of a file's name */
	assert_null(later_of_path("build/out.o"));
	assert_null(later_of_last("build", true));
	assert_null(later_of_last("configure", true));
}

/* What is held where it turns up is marked where it is shown. */
static void what_is_held_is_executed(void **state)
{
	static const struct sweep_name rows[] = {
#define SWEEP(place, name, class, what) { place, name, class, what },
#include "workspace/sweep_name.def"
#undef SWEEP
	};
	char path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_exact = false;

		if (!(rows[i].places & SWEEP_IN_TREE) || rows[i].class > SWEEP_SETTINGS ||
		    strcmp(rows[i].name, "git~1") == 0)
			continue;
		assert_non_null(sweep_name_find(SWEEP_IN_TREE, rows[i].name, &is_exact));
		assert_true(is_exact);
		(void)snprintf(path, sizeof(path), "deep/%s", rows[i].name);
		if (!later_of_path(path))
			fail_msg("%s is held, but not marked", rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_executed),
		cmocka_unit_test(is_not),
		cmocka_unit_test(what_is_held_is_executed),
	};

	return cmocka_run_group_tests_name("later", tests, NULL, NULL);
}
