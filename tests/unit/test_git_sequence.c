#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workspace/git_sequence.h"

#define A "4c2b30abb8e2f2ff889e34edb7e847c23d4b80a1"

static void todo(void **state)
{
	static const char *const good[] = {
		"",
		"pick " A " subject with exec in it\n",
		"# Rebase\n\n  p " A " x\nr " A "\nfixup -C " A "\nlabel onto\nreset onto\n"
		"merge -C " A " topic # x\nupdate-ref refs/heads/a\nbreak\nb\nnoop\ndrop " A "\n",
		"pick " A " x\r\n\r\n",
	};
	static const char *const bad[] = {
		"exec touch x\n", "x touch x\n",  " exec touch x", "\texec touch x\n",
		"execute\n",	  "pick\vexec\n", "; comment\n",   "pick " A "\nx y\n",
		"EXEC y\n",	  "exec\n",	  "//x\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (git_sequence_fault("rebase-merge/git-rebase-todo", good[i], strlen(good[i])))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!git_sequence_fault("rebase-merge/git-rebase-todo", bad[i], strlen(bad[i])))
			fail_msg("%s", bad[i]);
	assert_non_null(git_sequence_fault("rebase-merge/done", "exec x\n", 7));
	assert_non_null(git_sequence_fault("sequencer/todo", "exec x\n", 7));
	assert_non_null(git_sequence_fault("rebase-merge/git-rebase-todo", "noop\0x", 6));
}

struct row {
	const char *path, *text;
};

static void others(void **state)
{
	static const struct row good[] = {
		{ "rebase-merge/head-name", "refs/heads/a\n" },
		{ "rebase-merge/head-name", "detached HEAD\n" },
		{ "rebase-merge/onto", A "\n" },
		{ "rebase-merge/rewritten-list", A " " A "\n" },
		{ "rebase-merge/update-refs", "refs/heads/a\n" A "\n" A "\n" },
		{ "rebase-merge/strategy", "ort\n" },
		{ "rebase-merge/strategy_opts", " '--ours'" },
		{ "rebase-merge/message", "any $(text)\n" },
		{ "rebase-apply/0001", "From x\n\0" },
		{ "rebase-apply/apply-opt", "\n" },
		{ "rebase-apply/sign", "\n" },
		{ "rebase-merge/author-script",
		  "GIT_AUTHOR_NAME='A'\\''s'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE='@1 +0000'\n" },
		{ "rebase-merge/author-script", "GIT_AUTHOR_NAME=''\\''quoted'\\'''\n" },
		{ "sequencer/opts", "[options]\n\tedit = false\n\tmainline = 1\n" },
		{ "BISECT_LOG",
		  "# bad: [x] y\ngit bisect start 'a' '--' 'b'\ngit bisect good " A "\n" },
		{ "BISECT_NAMES", " 'a/b'\n" },
		{ "BISECT_START", "main\n" },
	};
	static const struct row bad[] = {
		{ "rebase-merge/unknown", "" },
		{ "rebase-merge/head-name", "../x\n" },
		{ "rebase-merge/onto", "main\n" },
		{ "rebase-merge/rewritten-list", A "\n" },
		{ "rebase-merge/strategy", "evil\n" },
		{ "rebase-merge/strategy_opts", " '--x' ; y" },
		{ "rebase-merge/gpg_sign_opt", "-Sx\n" },
		{ "rebase-apply/apply-opt", "'--unsafe-paths'\n" },
		{ "rebase-apply/12", "" },
		{ "rebase-apply/000x", "" },
		{ "rebase-merge/author-script", "GIT_AUTHOR_NAME='A'; touch x\n" },
		{ "rebase-merge/author-script", "GIT_AUTHOR_NAME=$(x)\n" },
		{ "rebase-merge/author-script", "GIT_AUTHOR_NAME='A\n" },
		{ "rebase-merge/author-script", "PATH='x'\n" },
		{ "rebase-merge/author-script", "GIT_AUTHOR_NAME='A'\\''\n" },
		{ "sequencer/opts", "[options]\n\tstrategy = x\n" },
		{ "sequencer/opts", "[options]\n\tgpg-sign = x\n" },
		{ "sequencer/opts", "[options \"x\"]\n" },
		{ "sequencer/opts", "\tedit = a;b\n" },
		{ "BISECT_LOG", "git bisect run x;y\n" },
		{ "BISECT_NAMES", " $(x)\n" },
		{ "BISECT_RUN", "x\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (git_sequence_fault(good[i].path, good[i].text, strlen(good[i].text)))
			fail_msg("%s: %s", good[i].path, good[i].text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!git_sequence_fault(bad[i].path, bad[i].text, strlen(bad[i].text)))
			fail_msg("%s: %s", bad[i].path, bad[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(todo),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
