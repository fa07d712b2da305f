/*
 * The inside of the builder, for build*.c and catch.c alone: build.c has the table of operations
 * and runs them, the other files their functions. Each of these returns 0 or a negative errno, with
 * the error set.
 */
#pragma once

#include "isolate/internal.h"

#include <stddef.h>
#include <stdint.h>

typedef int operation(struct build *build, const struct plan_op *op, struct error *error);

/* --- build_attach.c: trees and their targets */

/* The operation's flags as kernel/mount.h has them. */
unsigned build_mount_flags(const struct plan_op *op);
/* How the target is opened: a link is the target only where a link is to be pinned. */
int build_open_how(const struct plan_op *op);
/* Leaves a descriptor that nobody needs any more to the exec of process 1: *fd becomes -1. */
void build_leave(struct build *build, int *fd);
/* True where no link can lie on the way to the target. */
bool build_is_own_way(const struct build *build, const char *target);
/* Attaches a detached tree at the operation's target; borrows it. */
int build_attach(struct build *build, const struct plan_op *op, int tree, struct error *error);
/* Restricts a tree of the host's and attaches it at the operation's target; borrows it. */
int build_place(struct build *build, const struct plan_op *op, int tree, struct error *error);
/* The operation's number in the plan, which is its slot among the given trees. */
size_t build_op_index(const struct build *build, const struct plan_op *op);
/* What the supervisor of a root caller cloned for us, owned; -1: there is no such tree. */
int build_given_tree(struct build *build, size_t slot);
/* That tree, or our own clone of the path; device and inode 0: whatever is there. */
int build_take_tree(struct build *build, const char *path, uint64_t device, uint64_t inode,
		    size_t slot, int *ret_tree, struct error *error);

/* --- operations, by their file */

/* build_area.c: the private areas */
operation build_areas, build_area_directory, build_whiteout, build_area_link, build_area_file;
/* build_tree.c: the new root and what is in it */
operation build_root, build_directory, build_link, build_file, build_bind, build_area, build_proc,
	build_devpts, build_mask, build_pin, build_pivot;
/* build_overlay.c */
operation build_overlay;
/* build_objects.c: packs of git directories */
operation build_objects;
/* build_init.c: what comes after the last mount, and process 1 */
operation build_count, build_nested_user, build_no_cgroup_namespaces, build_init_capabilities,
	build_init_no_new_privs, build_init_landlock, build_init_seccomp, build_init;
/* catch.c: every address is the box's own */
operation catch_routes, catch_connections;
