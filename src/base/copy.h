/*
 * Copies of small files and small trees of the host, and the state by which a copy is known to be
 * of today. What is shown by copy costs a box no mount.
 *
 * The state sums up device, inode, size, mode and the times of content and of status (mtime, ctime;
 * inode(7)) of an object and, of a directory, of everything in it. No one sets a ctime back, so
 * whoever finds the same state finds the same content, with two exceptions: what is written through
 * a shared mapping (msync(2)), and what is changed twice within one tick of the kernel's clock.
 * The second is why an object that changed a moment ago has no state; for the first, the objects
 * must not be files that programs write by mapping.
 *
 * Only regular files, directories and links that everybody may read have a state. All is bounded;
 * no link is followed, nothing but regular files is read. Needs no memory but the stack's.
 */
#pragma once

#include <stdint.h>

struct stat;

/* A file that is shown for itself; the cache of the dynamic linker is the largest usual one. */
#define COPY_LIMIT_FILE_BYTES (256 * 1024)
/* All files of a tree together: a look at a tree must cost less than the mount that it spares. */
#define COPY_LIMIT_TREE_BYTES (64 * 1024)
/* Objects in a tree, and directories between it and the deepest one. */
#define COPY_LIMIT_OBJECTS 8
#define COPY_LIMIT_DEPTH 2
/* Longer than a tick, than a small step of the clock, and than NFS keeps attributes of files. */
#define COPY_SETTLED_SECONDS 3

/*
 * The state of an object, never 0; `status` is that of its own name (lstat(2)). now_s is the wall
 * clock. -EINVAL where it is none to be copied: too large, too new, not for everybody, of another
 * kind. -EACCES and others where it cannot be looked at.
 */
int copy_look(int parent_fd, const char *name, const struct stat *status, int64_t now_s,
	      uint64_t *ret_state);

/*
 * Makes `target` below the directory a copy of the host's clean path, with its modes (no set-id
 * bits, writable directories for its owner), its mtime, the caller's ids and no attributes.
 * -ESTALE where its state is another one, before or after the copying; what was made stays then.
 */
int copy_make(const char *source, uint64_t state, int parent_fd, const char *target);
