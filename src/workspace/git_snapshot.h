/*
 * What a covered git directory was like at the start of an action: what a task's changes are
 * compared with, so that nothing that the host did meanwhile is undone.
 *
 * Values of references, HEAD and configuration are kept; of index and packed-refs a descriptor
 * (git replaces them and never writes into one); of other files at the top, in info/, hooks/ and of
 * an unfinished operation which file it was. It is kept in the task's directory too, without the
 * descriptors, for whoever finishes the work of a supervisor that was killed; of a stage, which
 * waits for long, with copies of what they lead to.
 */
#pragma once

#include "workspace/git_upper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct arena;
struct error;

/* Each costs the start 4 us; git packs them long before. */
#define GIT_SNAPSHOT_LIMIT_REFS 16384u
/* Linked worktrees and modules of one repository. */
#define GIT_SNAPSHOT_LIMIT_AREAS 1024u
/* As deep as references and modules may be nested. */
#define GIT_SNAPSHOT_LIMIT_DEPTH 32u
#define GIT_SNAPSHOT_LIMIT_CONFIG_BYTES (256u * 1024)
/* Of an index with 200,000 files, and of packed references as many. */
#define GIT_SNAPSHOT_LIMIT_COPY_BYTES (20u * 1024 * 1024)

/* A git directory with an overlay on it. One that lies in another has none of its own. */
struct git_cover {
	const char *path; /* clean, real, of the host */
	bool is_worktree; /* a linked worktree's: it has a common directory elsewhere */
	int fd;		  /* O_PATH; borrowed */
	int upper_fd;	  /* what the task changed: the overlay's upper directory; borrowed */
};

struct git_state {
	const char *path; /* below the covered directory */
	uint64_t inode, size;
	int64_t changed_ns, modified_ns;
	const char *text; /* NULL where it is not kept */
	size_t length;
	int fd;		  /* owned by the snapshot; -1 */
	bool is_diverged; /* task and host went apart: never again the one of the start */
};

/* What lay in the upper directory already, and was looked at (git_renew.h). */
struct git_seen {
	const char *path;
	uint64_t inode;
	int64_t changed_ns;
};

struct git_snapshot_part {
	/* by the clock that stamps files: what is older than this has not changed */
	int64_t taken_ns;
	struct git_state *states; /* sorted by path */
	size_t count;
	struct git_seen *seen; /* sorted by path */
	size_t seen_count;
	const char *fault; /* nothing of it can be committed, in words; NULL: all is well */
};

struct git_snapshot {
	struct git_snapshot_part *parts; /* one for each cover */
	size_t count;
};

#define GIT_SNAPSHOT_NONE ((struct git_snapshot){ 0 })
#define CLEANUP_GIT_SNAPSHOT __attribute__((cleanup(git_snapshot_close)))

/* Memory is the arena's. */
int git_snapshot_take(const struct git_cover *covers, size_t count, struct arena *arena,
		      struct git_snapshot *ret_snapshot, struct error *error);

/*
 * Keeps it in the task's directory, and copies of an index and packed-refs; finds all of it there
 * again: -ENOENT where there is none.
 */
int git_snapshot_save(const struct git_snapshot *snapshot, int task_fd, struct error *error);
int git_snapshot_keep(const struct git_snapshot *snapshot, int task_fd);
int git_snapshot_load(int task_fd, struct arena *arena, struct git_snapshot *ret_snapshot,
		      struct error *error);

/* NULL where the path was not there at the start. */
const struct git_state *git_snapshot_find(const struct git_snapshot_part *part, const char *path);

/* True where this lay in the upper directory just so. */
bool git_snapshot_saw(const struct git_snapshot_part *part, const struct git_upper_entry *entry);

/* The index of the first state whose path is not before this one. */
size_t git_snapshot_first(const struct git_snapshot_part *part, const char *path);

/* True where it is the same file, unchanged. */
bool git_state_is(const struct git_state *state, const struct stat *status);

void git_snapshot_close(struct git_snapshot *snapshot);
