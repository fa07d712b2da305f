/*
 * The state directory: what bawn keeps on disk, and who owns leftovers.
 *
 *   <state>/               0700, the caller's own; default ~/.local/state/bawn
 *     tasks/<id>/          one per live task; its supervisor holds a flock(2) on it
 *     tasks/<id>/git/<n>/  layers of the overlay on its n-th git directory: a task's to write
 *     tasks/<id>/stage/    layers of the overlay on a staged or ephemeral workspace
 *     stages/<id>/         the directory of a task with a stage, once it has ended
 *                          (workspace/stage_store.h)
 *     spares/              directories that hold nothing or empty layers, to become those of tasks
 *                          (isolate/host.c)
 *     caches/<project>/    the projects' own layers of package caches (workspace/cache.h)
 *     identity/            filtered git configuration, by what it was made from
 *     outlines/            of policy files, by the hash of their text (workspace/policy_file.h)
 *     skeletons/           fixed parts of roots, by their hash (isolate/skeleton.c)
 *
 * A task directory that can be locked belongs to a supervisor that died: the next start removes
 * it. Everything is reached by descriptor from `fd`, never through links.
 */
#pragma once

#include <stdbool.h>

struct arena;
struct error;
struct caller;

struct state {
	const char *path; /* clean, real */
	int fd;		  /* the directory */
	int tasks_fd;
	bool made; /* by this start */
};

#define STATE_NONE ((struct state){ .fd = -1, .tasks_fd = -1 })

/* At most this many leftovers are looked at per start, so that no start pays for all. */
#define STATE_REAP_LIMIT 64

/*
 * Opens (and makes) the directory; path NULL: the default below the home of the password
 * database. Refuses one that is a link, not a directory, not the caller's own or open to others.
 */
int state_open(const struct caller *host, const char *path, struct arena *arena,
	       struct state *ret_state, struct error *error);

/* After a refusal: removes an empty directory that state_open() made, so that none stays behind. */
void state_unmake(const struct state *state);

/*
 * Removes the directories of tasks whose supervisor died. `bury` ends before what else there is of
 * the task with this id; where it says false, and for other failures, the directory is left for the
 * next start. Returns how many were removed.
 */
unsigned state_reap(const struct state *state,
		    bool (*bury)(void *context, const struct state *state, const char *id),
		    void *context);

void state_close(struct state *state);

#define CLEANUP_STATE __attribute__((cleanup(state_close)))
