/*
 * Writing into a git directory of the host while the host's git may be at work: by git's own locks
 * (lockfile.h of git), each file old or new at any instant, beneath the directory's descriptor, no
 * link followed. Also reading there.
 *
 * What a kill could leave behind is written to a journal before it exists; git_file_recover()
 * removes it. A lock is known again by inode and time of birth, so that one of the host's git is
 * never taken away. Nothing is synced: git 2.39 does not sync these files either, and ext4, xfs and
 * btrfs write the data before a rename over an existing name.
 */
#pragma once

#include "workspace/git_config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct arena;

/* As long as git waits for a reference (core.filesRefLockTimeout). */
#define GIT_FILE_WAIT_MS 100

struct git_target {
	int fd;		    /* the directory; borrowed */
	int journal_fd;	    /* borrowed; -1: what is made there is removed as a whole */
	unsigned number;    /* what the journal calls the directory that `path` below is of */
	const char *prefix; /* of fd below that directory: "" or "worktrees/x/" */
};

struct git_lock {
	int directory_fd, fd; /* owned */
	bool is_taken;
	char name[NAME_MAX + 1];
};

#define GIT_LOCK_NONE ((struct git_lock){ .directory_fd = -1, .fd = -1 })
#define CLEANUP_GIT_LOCK __attribute__((cleanup(git_lock_drop)))

/*
 * Takes the lock of a file below the target. makes_parents: directories on the way are made as git
 * would. -EBUSY: a git of the host has it and did not let go; -ENOENT: no such directory; -ENOTDIR,
 * -ELOOP: something else stands in the way.
 */
int git_file_lock(const struct git_target *target, const char *path, bool makes_parents,
		  struct git_lock *ret_lock) __attribute__((warn_unused_result));

int git_lock_write(struct git_lock *lock, const char *bytes, size_t length)
	__attribute__((warn_unused_result));
/* The new file stands under the name, the lock is gone. An empty directory there makes way. */
int git_lock_commit(struct git_lock *lock) __attribute__((warn_unused_result));
/* Removes the file, if there is one, then the lock. */
int git_lock_remove(struct git_lock *lock) __attribute__((warn_unused_result));
/* Nothing changes. */
void git_lock_drop(struct git_lock *lock);

/*
 * The content of a regular file, in the arena, or memory of a NULL-length text for an empty one.
 * -ENOENT; -EINVAL: no regular file; -EFBIG; -EACCES. ret_status may be NULL.
 */
int git_file_read(int directory_fd, const char *path, size_t limit_bytes, struct arena *arena,
		  struct git_text *ret_text, struct stat *ret_status)
	__attribute__((warn_unused_result));

/* As lstat(2) beneath the directory; no link on the way is followed. */
int git_file_status(int directory_fd, const char *path, struct stat *ret_status);

/* Removes empty directories above the path, but not its first `keep` components. */
void git_file_prune(int directory_fd, const char *path, unsigned keep);

/* Renames, where the new name is free: -EEXIST. */
int git_file_move(int from_fd, const char *from, int to_fd, const char *to);

/* Makes an empty directory of the name in the target, which the journal knows. */
int git_file_aside(const struct git_target *target, const char *name);

/* Opens a directory below the target, made with those on the way. */
int git_file_directory(const struct git_target *target, const char *path);

/*
 * Removes what an interrupted run left in the directory of this number. Takes the journal's text.
 */
void git_file_recover(const char *journal, size_t length, unsigned number, int directory_fd);
