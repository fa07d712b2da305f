/*
 * What a path in a git directory is, by its name alone: what may go to the host's repository, by
 * which check, and what is held. Pure; the table is git_name.def.
 *
 * Only names exactly as git writes them have a class of their own. Everything else is GIT_OTHER and
 * held: other cases (`HOOKS`, which some file systems take for `hooks`), trailing dots, names that
 * a later git may know.
 */
#pragma once

#include <stdbool.h>

enum git_class {
	GIT_OBJECT, /* comes to the host where its content has its name */
	GIT_REF,    /* a reference whose name git would accept */
	GIT_PACKED_REFS,
	GIT_HEAD, /* HEAD and other single references: ORIG_HEAD, FETCH_HEAD ... */
	GIT_INDEX,
	GIT_LOG,	 /* of a reference whose name git would accept */
	GIT_CONFIG,	 /* to be merged by key (git_config.h) */
	GIT_MESSAGE,	 /* text that nothing executes: COMMIT_EDITMSG, MERGE_MSG ... */
	GIT_SEQUENCE,	 /* rebase, cherry-pick, bisect under way: says what is done next */
	GIT_LOCK,	 /* a file of one of the classes above is being written */
	GIT_COMMONDIR,	 /* where a worktree's references and configuration are */
	GIT_GITDIR_LINK, /* where a worktree's `.git` is */
	GIT_WORKTREE,	 /* in the git directory of a linked worktree: git_name_in_worktree() */
	GIT_MODULE,	 /* in the git directory of a submodule */
	GIT_HOOK,	 /* a program that git runs */
	GIT_HOOK_SAMPLE, /* its template, which git does not run */
	GIT_INFO_SAFE,	 /* exclude, sparse-checkout, refs */
	GIT_SHALLOW,
	GIT_OTHER, /* held */
	GIT_CLASSES,
};

/*
 * The class of a file, or of a link or whatever lies there, by its path in the git directory, with
 * '/' between names. Directories have none: what lies in them has. `is_common` is false for
 * what belongs to a linked worktree alone, where other names count.
 */
enum git_class git_name_class(const char *path, bool is_common);

/*
 * The path in the worktree's own git directory for one in the common one ("worktrees/x/HEAD" gives
 * "HEAD"), to be asked about with is_common = false; NULL when it is not in one.
 */
const char *git_name_in_worktree(const char *path);

/* "ref", "hook": for messages and records. */
const char *git_class_name(enum git_class class);
