#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workspace/git_name.h"

struct row {
	const char *path;
	enum git_class common, own; /* in a repository's directory, in a linked worktree's */
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum git_class common = git_name_class(rows[i].path, true);
		enum git_class own = git_name_class(rows[i].path, false);

		if (common != rows[i].common || own != rows[i].own)
			fail_msg("%s: %s, %s", rows[i].path, git_class_name(common),
				 git_class_name(own));
	}
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void names_of_git_have_their_class(void **state)
{
	static const struct row rows[] = {
		{ "HEAD", GIT_HEAD, GIT_HEAD },
		{ "FETCH_HEAD", GIT_HEAD, GIT_HEAD },
		{ "index", GIT_INDEX, GIT_INDEX },
		{ "config", GIT_CONFIG, GIT_OTHER },
		{ "config.worktree", GIT_CONFIG, GIT_CONFIG },
		{ "packed-refs", GIT_PACKED_REFS, GIT_OTHER },
		{ "shallow", GIT_SHALLOW, GIT_OTHER },
		{ "refs/heads/main", GIT_REF, GIT_OTHER },
		{ "refs/heads/a/b.c-d", GIT_REF, GIT_OTHER },
		{ "refs/stash", GIT_REF, GIT_OTHER },
		{ "refs/bisect/bad", GIT_REF, GIT_REF },
		{ "refs/heads/HOOKS", GIT_REF, GIT_OTHER },
		{ "refs/heads/\xc3\xa9", GIT_REF, GIT_OTHER },
		{ "logs/HEAD", GIT_LOG, GIT_LOG },
		{ "logs/refs/heads/main", GIT_LOG, GIT_OTHER },
		{ "objects/12/3456", GIT_OBJECT, GIT_OTHER },
		{ "objects/pack/pack-1.pack", GIT_OBJECT, GIT_OTHER },
		{ "COMMIT_EDITMSG", GIT_MESSAGE, GIT_MESSAGE },
		{ "description", GIT_MESSAGE, GIT_OTHER },
		{ "rebase-merge/git-rebase-todo", GIT_SEQUENCE, GIT_SEQUENCE },
		{ "rebase-apply/0001", GIT_SEQUENCE, GIT_SEQUENCE },
		{ "sequencer/todo", GIT_SEQUENCE, GIT_SEQUENCE },
		{ "BISECT_NAMES", GIT_SEQUENCE, GIT_SEQUENCE },
		{ "commondir", GIT_COMMONDIR, GIT_COMMONDIR },
		{ "gitdir", GIT_GITDIR_LINK, GIT_GITDIR_LINK },
		{ "worktrees/x/HEAD", GIT_WORKTREE, GIT_OTHER },
		{ "worktrees/x/commondir", GIT_WORKTREE, GIT_OTHER },
		{ "modules/a/b/config", GIT_MODULE, GIT_MODULE },
		{ "hooks/pre-commit", GIT_HOOK, GIT_HOOK },
		{ "hooks/pre-commit.sample", GIT_HOOK_SAMPLE, GIT_HOOK_SAMPLE },
		{ "info/exclude", GIT_INFO_SAFE, GIT_INFO_SAFE },
		{ "info/refs", GIT_INFO_SAFE, GIT_OTHER },
		{ "locked", GIT_OTHER, GIT_MESSAGE },
	};

	(void)state;
	CHECK(rows);
}

static void locks_are_those_of_known_files(void **state)
{
	static const struct row rows[] = {
		{ "index.lock", GIT_LOCK, GIT_LOCK },
		{ "HEAD.lock", GIT_LOCK, GIT_LOCK },
		{ "config.lock", GIT_LOCK, GIT_OTHER },
		{ "packed-refs.lock", GIT_LOCK, GIT_OTHER },
		{ "packed-refs.new", GIT_LOCK, GIT_OTHER },
		{ "refs/heads/a.lock", GIT_LOCK, GIT_OTHER },
		{ "shallow.lock", GIT_LOCK, GIT_OTHER },
		{ "gc.pid", GIT_LOCK, GIT_OTHER },
		{ "gc.pid.lock", GIT_LOCK, GIT_OTHER },
		{ "rebase-merge/git-rebase-todo.lock", GIT_LOCK, GIT_LOCK },
		{ "hooks/pre-commit.lock", GIT_HOOK, GIT_HOOK },
		{ "commondir.lock", GIT_OTHER, GIT_OTHER },
		{ "info/attributes.lock", GIT_OTHER, GIT_OTHER },
		{ "refs/heads/.lock", GIT_OTHER, GIT_OTHER },
		{ "refs/heads/a.lock.lock", GIT_OTHER, GIT_OTHER },
		{ "refs/heads/a.lock/b", GIT_OTHER, GIT_OTHER },
		{ ".lock", GIT_OTHER, GIT_OTHER },
		{ "x.lock", GIT_OTHER, GIT_OTHER },
	};

	(void)state;
	CHECK(rows);
}

/* Each is, to some git, editor or file system, what executes or leads elsewhere. */
static void the_rest_is_held(void **state)
{
	static const char *const paths[] = {
		"",
		".",
		"..",
		"/HEAD",
		"HEAD/",
		"HEAD/x",
		"head",
		"Config",
		"CONFIG",
		"config.",
		"config ",
		"config\n",
		"./config",
		"config.d",
		"config.worktree.x",
		"HOOKS/pre-commit",
		"Hooks/pre-commit.sample",
		"hooks./pre-commit",
		"h\xc3\xb6oks/x",
		"INDEX",
		"index.",
		"info/attributes",
		"info/Attributes",
		"info/grafts",
		"info/exclude/x",
		"info",
		"objects/info/alternates",
		"objects/info/http-alternates",
		"Objects/12/3456",
		"objects",
		"objects/../hooks/x",
		"refs",
		"refs/heads",
		"refs/../../hooks/x",
		"refs/heads/../../hooks/x",
		"refs/heads//x",
		"refs/heads/./x",
		"refs/heads/.x",
		"refs/heads/x.",
		"refs/heads/x y",
		"refs/heads/x~1",
		"refs/heads/x^",
		"refs/heads/x:y",
		"refs/heads/x?",
		"refs/heads/x*",
		"refs/heads/x[",
		"refs/heads/x\\y",
		"refs/heads/x\x7f",
		"refs/heads/x@{1}",
		"refs/replace/1234",
		"Refs/heads/main",
		"logs",
		"logs/x",
		"logs/refs/../../config",
		"logs/refs/heads/.x",
		"branches/x",
		"remotes/x",
		"reftable/tables.list",
		"rr-cache/x/postimage",
		"MERGE_RR",
		"sharedindex.1234",
		"fsmonitor--daemon.ipc",
		"fsmonitor--daemon/cookies/x",
		"svn/x",
		"gitweb/gitweb_config.perl",
		"git-daemon-export-ok",
		"rebase-merge",
		"rebase-merge/a/b",
		"Worktrees/x/HEAD",
		"MODULES/x/config",
		"commondir.x",
		"Commondir",
		"unheard-of",
	};
	char path[5001];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check(&(struct row){ paths[i], GIT_OTHER, GIT_OTHER }, 1);
	memset(path, 'x', 5000);
	memcpy(path, "refs/heads/", 11);
	path[5000] = '\0';
	check(&(struct row){ path, GIT_OTHER, GIT_OTHER }, 1);
}

static void only_plain_samples_are_samples(void **state)
{
	static const char *const paths[] = {
		"hooks",
		"hooks/x",
		"hooks/.sample",
		"hooks/x.SAMPLE",
		"hooks/x.sample.",
		"hooks/x.sample/y",
		"hooks/d/x.sample",
		"hooks/x y.sample",
		"hooks/-x.sample",
		"hooks/x.sample.exe",
		"hooks/pre-commit.legacy",
		"hooks/x:.sample",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check(&(struct row){ paths[i], GIT_HOOK, GIT_HOOK }, 1);
}

static void worktrees_have_names_of_their_own(void **state)
{
	(void)state;
	assert_string_equal(git_name_in_worktree("worktrees/x/HEAD"), "HEAD");
	assert_string_equal(git_name_in_worktree("worktrees/x/refs/bisect/bad"), "refs/bisect/bad");
	assert_null(git_name_in_worktree("worktrees/x"));
	assert_null(git_name_in_worktree("worktrees/../hooks/x"));
	assert_null(git_name_in_worktree("Worktrees/x/HEAD"));
	assert_null(git_name_in_worktree("HEAD"));
	for (int class = 0; class < GIT_CLASSES; class ++)
		assert_non_null(git_class_name((enum git_class) class));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_git_have_their_class),
		cmocka_unit_test(locks_are_those_of_known_files),
		cmocka_unit_test(the_rest_is_held),
		cmocka_unit_test(only_plain_samples_are_samples),
		cmocka_unit_test(worktrees_have_names_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
