/*
 * What was kept back from the host's git directories, for a person to accept or reject.
 *
 *   <state>/held/<task>/<id>	one file per thing, 0600, JSON
 *
 * Contents are what a task wrote: nothing here interprets them. Accepting writes them by git's own
 * locks beneath the git directory, and only where the host still has what it had when the thing was
 * held.
 */
#pragma once

#include "workspace/git_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

/* A script is some kilobytes; of what is larger only that it was there is kept. */
#define GIT_HELD_LIMIT_BYTES (1024u * 1024)
/* Of a key of configuration; what is longer is cut and cannot be accepted. */
#define GIT_HELD_LIMIT_KEY_BYTES 1024u
/* Of one task. A task that leaves more has no hooks in mind. */
#define GIT_HELD_LIMIT_ITEMS 1000u
/* 12 digits and a NUL */
#define GIT_HELD_ID_BYTES 13

enum git_held_kind {
	GIT_HELD_REF,	 /* after NULL: to be removed */
	GIT_HELD_CONFIG, /* one value of one key */
	GIT_HELD_FILE,	 /* after NULL: to be removed */
	GIT_HELD_OTHER,	 /* a link, a device, a directory: cannot be accepted */
	GIT_HELD_KIND_COUNT,
};

struct git_held {
	char id[GIT_HELD_ID_BYTES];
	const char *task;
	const char *directory; /* host path of the git directory */
	const char *path;      /* below it */
	const char *key;       /* of CONFIG, else NULL */
	enum git_held_kind kind;
	const char *reason;
	struct git_text before, after; /* bytes NULL: absent */
	bool is_cut;		       /* too large to be kept */
	bool is_executable;
	uint64_t wall_ns;
};

/* The id of a thing: the same for the same place of the same task. */
void git_held_name(const struct git_held *held, char ret_id[static GIT_HELD_ID_BYTES]);

/* Keeps it; one of the same id is replaced. */
int git_held_put(int state_fd, const struct git_held *held, struct error *error)
	__attribute__((warn_unused_result));

/*
 * All that is held, oldest first, in the arena, without contents (before and after are empty). What
 * cannot be read is counted in ret_bad.
 */
int git_held_list(int state_fd, struct arena *arena, struct git_held **ret_items, size_t *ret_count,
		  size_t *ret_bad, struct error *error);

/* One that was listed, with its contents. */
int git_held_read(int state_fd, const struct git_held *listed, struct arena *arena,
		  struct git_held *ret_held, struct error *error);

/* Forgets it. */
int git_held_remove(int state_fd, const struct git_held *held, struct error *error);

/*
 * Applies it. -ESTALE: the host has something else there by now; -EOPNOTSUPP: it is none that can
 * be applied. It is not removed from the store.
 */
int git_held_accept(const struct git_held *held, struct arena *arena, struct error *error)
	__attribute__((warn_unused_result));

/* "ref", "config", "file", "other". */
const char *git_held_kind_name(enum git_held_kind kind);
