/*
 * The new mount API (fsopen(2), open_tree(2), move_mount(2), mount_setattr(2); Linux 5.12 for all
 * that is used here) as functions that return descriptors or 0, and a negative errno on failure.
 *
 * No path of a box is ever resolved as text twice, and what is mounted is checked by descriptor. A
 * target is an O_PATH descriptor of mount_open_in(), a source one of mount_source(); functions with
 * _path in their names are for ways on which nobody but the system and we can have put a link.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct stat;

/* How a mount is restricted; nosuid is always set. */
enum mount_flag {
	MOUNT_READ_ONLY = 1u << 0,
	MOUNT_NO_EXEC = 1u << 1,
	MOUNT_DEVICES = 1u << 2, /* without it: nodev */
};

/*
 * Opens a path below the new root without following any link (openat2(2): RESOLVE_IN_ROOT,
 * NO_SYMLINKS, NO_MAGICLINKS). flags as O_*; O_PATH for mount points. Path may begin with "/".
 */
int mount_open_in(int root_fd, const char *path, int flags);

/* Makes a regular file below the new root and opens it for writing; as above, and O_EXCL. */
int mount_create_in(int root_fd, const char *path, unsigned mode);

/*
 * O_PATH descriptor of a clean host path, no link followed; -ESTALE where device and inode
 * (unless both 0) are not the expected ones.
 */
int mount_source(const char *path, uint64_t device, uint64_t inode);

/* Detached recursive copy of the tree at an O_PATH descriptor. */
int mount_clone(int source_fd, int *ret_tree_fd);

/*
 * The same of a path, without a descriptor between, with the check of mount_source() on what was
 * cloned. Links on the way are followed, the last component is not.
 */
int mount_clone_path(int directory_fd, const char *path, uint64_t device, uint64_t inode,
		     int *ret_tree_fd);

/* Restricts a detached tree, recursively, and makes it private. */
int mount_restrict(int tree_fd, unsigned flags);

/* Gives a detached tree an id map by the user namespace (mount_setattr(2), Linux 5.12; root). */
int mount_idmap(int tree_fd, int user_namespace_fd);

/*
 * Has the file system at an O_PATH descriptor forget the names that nobody has open, as a remount
 * without a change does (Linux 5.2): an overlay looks at its layers again.
 */
int mount_look_anew(int fd);

/*
 * Whether a mount of this process's namespace lies below a clean host path: 1 and where (proc(5),
 * mountinfo), 0, or a negative errno.
 */
int mount_find_below(const char *path, char ret_path[static PATH_MAX]);

/* proc(5): blank, tab, newline and backslash stand as \ooo. */
void mount_decode(char *text);

/* Attaches a detached tree at an O_PATH descriptor. */
int mount_attach(int tree_fd, int target_fd);

/* Attaches it at a path; links on the way are followed, the last component is not. */
int mount_attach_path(int tree_fd, int directory_fd, const char *path);

struct mount_option {
	const char *key, *value; /* value NULL: a flag */
};

/*
 * A new instance of a file system as a detached mount. Options end with a NULL key.
 */
int mount_new(const char *type, const struct mount_option *options, unsigned flags,
	      int *ret_mount_fd);
