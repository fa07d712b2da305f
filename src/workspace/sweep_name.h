/*
 * Which names in a workspace the host's tools run or obey (sweep_name.def). Pure.
 *
 * A name is known in every spelling under which some file system finds it: without regard to case,
 * with characters that are ignored (HFS+, and ext4's and f2fs' casefold), with letters that fold to
 * ASCII ones, with dots and spaces behind it or a stream's name (NTFS). Of git's own names this is
 * what git itself refuses to check out (is_hfs_dotgit(), is_ntfs_dotgit()). A row with '*' at its
 * front is any name that ends so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where a name is: bits, as a row may count in several places. */
enum sweep_place {
	SWEEP_IN_TREE = 1,	  /* work files */
	SWEEP_IN_SETTINGS = 2,	  /* a directory of settings that was there before */
	SWEEP_IN_GIT = 4,	  /* a git directory that was there before */
	SWEEP_IN_HOOKS = 8,	  /* its hooks/ */
	SWEEP_IN_INFO = 16,	  /* its info/ */
	SWEEP_IN_REPOSITORY = 32, /* another kind of repository that was there before */
	SWEEP_IN_ALL = 63,
	SWEEP_IN_FORGE = 64, /* work files in the directory of a forge, where more names count */
	SWEEP_IN_NEW_FORGE = 128, /* the same, of one that came there as a whole */
};

#define SWEEP_FORGE_NAME ".github"

enum sweep_class {
	SWEEP_GIT,
	SWEEP_REPOSITORY,
	SWEEP_SETTINGS,
	SWEEP_HEAD,
	SWEEP_OBJECTS,
	SWEEP_REFS,
	SWEEP_COMMONDIR,
	SWEEP_OBEYED,  /* run or obeyed as it is */
	SWEEP_HOOKS,   /* a directory of such */
	SWEEP_INFO,    /* holds such */
	SWEEP_INNER,   /* holds more of the same kind */
	SWEEP_PASSIVE, /* data: nothing in it is run, and no name in it counts */
	SWEEP_FORGE,   /* work, but for the names that count there */
};

struct sweep_name {
	unsigned places;
	const char *name;
	enum sweep_class class;
	const char *what;
};

/*
 * The row of a name in a place; NULL for most. ret_is_exact: it is spelled as the row has it, so
 * that every file system finds it under that name.
 */
const struct sweep_name *sweep_name_find(enum sweep_place place, const char *name,
					 bool *ret_is_exact);

/* The row of what a path below the workspace names, by the directory that it is in, too. */
const struct sweep_name *sweep_name_of_path(const char *path);

/* Work files, of a forge or not: all that counts in the tree counts there. */
static inline bool sweep_is_tree(enum sweep_place place)
{
	return place == SWEEP_IN_TREE || place == SWEEP_IN_FORGE || place == SWEEP_IN_NEW_FORGE;
}

/* Where the names of a directory are that has this row itself, or none, and lies among work. */
static inline enum sweep_place sweep_place_below(const struct sweep_name *row)
{
	return row && row->class == SWEEP_FORGE ? SWEEP_IN_FORGE : SWEEP_IN_TREE;
}

/* The rows one by one; NULL behind the last. */
const struct sweep_name *sweep_name_row(size_t index);
