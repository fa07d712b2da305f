/*
 * A walk through a tree that a task made and that others may change meanwhile.
 *
 * By descriptor from the tree's root, one name at a time, no link followed, nothing but directories
 * opened; no recursion and no path is built, so that depth costs memory alone. Descriptors of the
 * first WALK_KEEP directories of the way are kept; above a deeper one is its "..", taken only where
 * that is the directory from which it was entered.
 *
 * A directory of the caller's own that its mode closes is opened up for the visit, and gets its
 * mode back when it is left. One that neither the caller nor a task of theirs can search is left
 * out.
 *
 *	while ((event = walk_next(&walk)) != WALK_END)
 *		...
 *	walk.code < 0: it ended early
 */
#pragma once

#include "base/buffer.h"
#include "base/directory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;

/* Trees that people make are not as deep; a process may have 1,024 descriptors. */
#define WALK_KEEP 64u
/* So many lie in the walk itself, which must not be moved once it has begun. */
#define WALK_FIRST 8u
/* 3 MiB of memory; a path is as long as its directories are deep, at least twice. */
#define WALK_LIMIT_DEPTH 65536u
/* Some seconds of time; a tree of a million files is one that people have. */
#define WALK_LIMIT_NAMES 4000000u

enum walk_event {
	WALK_ENTER,  /* a directory, before its names */
	WALK_NAME,   /* a name in it */
	WALK_LISTED, /* there are no more */
	WALK_LEAVE,  /* all below it that was asked for has been visited */
	WALK_END,
};

struct walk_level {
	int fd; /* -1: closed meanwhile, its identity below */
	uint64_t device, inode;
	size_t name; /* where its name lies among the pending ones */
	size_t base; /* where those of its own directories begin */
	mode_t mode; /* what it gets back */
	bool is_unlocked;
	unsigned char tag;
};

struct walk {
	int fd;		    /* the directory; borrowed by whoever looks */
	int parent_fd;	    /* with LEAVE, where `name` is it; -1 for the root */
	const char *name;   /* with NAME: good until the next call; with ENTER and LEAVE: its own */
	unsigned char type; /* with NAME: DT_*, never DT_UNKNOWN */
	unsigned char tag;  /* the caller's word for the directory */
	unsigned depth;	    /* 0: the root */
	uint64_t names;	    /* so far */
	uint64_t directories; /* so far */
	uint64_t unread;      /* directories that could not be read although names may be in them */
	uint64_t limit_names; /* may be lowered */
	bool leaves_modes;    /* what a mode closes stays closed: its owner is at work there */
	int code; /* 0; -E2BIG, -ESTALE (a directory on the way was moved), -EMFILE, -ENOMEM */

	/* the walk's own */
	struct directory directory;
	struct walk_level *levels; /* the first ones, or memory of its own */
	size_t level_room;
	struct walk_level first_levels[WALK_FIRST];
	struct buffer pending;
	uint32_t uid;
	unsigned char state;
};

#define CLEANUP_WALK __attribute__((cleanup(walk_end)))

/* Takes the descriptor of the root, opened to be read. */
void walk_begin(struct walk *walk, int fd, unsigned char tag);

enum walk_event walk_next(struct walk *walk);

/* With NAME of a directory: it is to be visited, after the other names, with this tag. */
void walk_descend(struct walk *walk, unsigned char tag);
/* The same for a name that the caller gave it just now. */
void walk_descend_to(struct walk *walk, const char *name, unsigned char tag);

/* With LISTED: what was asked for is forgotten, and the names come again, the tag being another. */
void walk_again(struct walk *walk, unsigned char tag);

/* With LISTED: nothing below it is visited. */
void walk_skip(struct walk *walk);

/*
 * The caller's right to change names in the present directory, where it is their own; until it is
 * left. True when that changed something.
 */
bool walk_unlock(struct walk *walk);

/*
 * The path of a name in the present directory ("": of that itself), below the root. NULL without
 * memory, and where it is longer than the limit.
 */
char *walk_path(const struct walk *walk, const char *name, size_t limit_bytes, struct arena *arena);

void walk_end(struct walk *walk);
