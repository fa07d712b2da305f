/*
 * The git directories of a workspace, as they are at the start of a task, and what of the workspace
 * the host's git and other tools run or obey later. The box shows each git directory under an
 * overlay (PATH_GIT, rule git.overlay), large packs of its objects read-only (PATH_OBJECTS, rule
 * git.objects); the git file or link that leads to one, and settings of editors and agents, are
 * read-only (PATH_PROTECT, rule workspace.protect).
 *
 * Found are: `.git` at the workspace's top and in the directories right below it, as a directory, a
 * git file or a link; the common directory of a linked worktree; modules/ and worktrees/ of all of
 * them, at any depth; a bare repository that is the workspace or lies right below it. What lies
 * deeper is left to the look at the tree after an action: to search a tree costs more than a start
 * may.
 *
 * A git directory outside of the workspace is shown only where it is the caller's own, has HEAD,
 * objects and refs, is no dangerous path (policy/danger.h), and is not the `.git` of another
 * checkout, unless it says itself that this workspace is its worktree. Otherwise the start is
 * refused, with what is wrong and the way out (--protect of the git file: then the box has no git).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct caller;
struct policy;

/* A repository with more modules and worktrees than this is refused. */
#define GIT_FIND_LIMIT 1024u
/* Directories between modules/ and a module ("modules/a/b/c" for a module of that name). */
#define GIT_FIND_LIMIT_DEPTH 16u
/* Entries of the workspace's top that are looked at for repositories below it. */
#define GIT_FIND_LIMIT_ENTRIES 512u

enum git_directory_kind {
	GIT_DIRECTORY_MAIN,	/* of a checkout, or bare */
	GIT_DIRECTORY_COMMON,	/* of other checkouts too; this workspace is a linked worktree */
	GIT_DIRECTORY_WORKTREE, /* worktrees/<name> in another */
	GIT_DIRECTORY_MODULE,	/* modules/<name> in another */
};

struct git_directory {
	const char *path; /* clean, real, the host's; also inside of the box */
	enum git_directory_kind kind;
	const char *common; /* of a WORKTREE: the directory that it belongs to; else path itself */
	uint64_t device, inode;
	unsigned layer;	      /* of which overlay: the number of its PATH_GIT row among these */
	const char *below;    /* path below that overlay's root; "" for the root itself */
	const char *worktree; /* clean, real; NULL where there is none, or it is not known */
};

struct git_found {
	struct git_directory *items; /* in the arena; each one behind the one that it lies in */
	size_t count;
	/* clean paths in the workspace that git would run or obey, and that do not exist: nothing
	 * covers them, and whoever looks at the tree after an action must look for them */
	const char **absent;
	size_t absent_count;
};

/*
 * Adds the rows. The policy has its home, its workspace and all rows of options already; these
 * come first: a git directory that an option shows, hides or protects is left to it.
 */
int git_find(const struct caller *host, const char *state_path, struct arena *arena,
	     struct policy *policy, struct git_found *ret_found, struct error *error);

/* Where the upper layer of one of them lies in the task's directory; NULL without memory. */
const char *git_find_upper(const struct git_directory *directory, const char *task_directory,
			   struct arena *arena);
