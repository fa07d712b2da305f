/*
 * How the builder comes to a mount's tree, and how a tree comes to its target: what all of its
 * operations that mount something stand on.
 */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "base/path.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

unsigned build_mount_flags(const struct plan_op *op)
{
	return (op->flags & PLAN_READ_ONLY ? MOUNT_READ_ONLY : 0) |
	       (op->flags & PLAN_NO_EXEC ? MOUNT_NO_EXEC : 0) |
	       (op->flags & PLAN_DEVICE ? MOUNT_DEVICES : 0);
}

/*
 * Descriptors that nobody needs any more are left to the exec of process 1, which closes them all
 * and for which the supervisor does not wait. So many of them leave room below the lowest usual
 * limit of open files, and in the table of 64 that a process begins with.
 */
#define LEFT_LIMIT 36

void build_leave(struct build *build, int *fd)
{
	if (build->left < LEFT_LIMIT && *fd >= 0) {
		build->left++;
		*fd = -1;
	}
}

/*
 * True where all that leads to the target is the skeleton's, a private area's or proc's: nothing
 * of the host's and no link, so nobody can have put a link into the way of a look-up by name. Had
 * the caller put one into the skeleton, a mount would land out of the box and be missing in it.
 */
bool build_is_own_way(const struct build *build, const char *target)
{
	const struct plan *plan = build->options->plan;

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		switch (op->kind) {
		case PLAN_LINK:
		case PLAN_COPY:
		case PLAN_BIND:
		case PLAN_OVERLAY:
		case PLAN_OBJECTS:
			if (path_is_under(target, op->target) && strcmp(target, op->target) != 0)
				return false;
			break;
		default:
			break;
		}
	}
	return true;
}

int build_open_how(const struct plan_op *op)
{
	return op->flags & PLAN_LINK_KIND ? O_PATH | O_NOFOLLOW : O_PATH;
}

/* Attaches a detached tree at the operation's target. */
int build_attach(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	int CLEANUP_FD target = -1;
	int result;

	if (build_is_own_way(build, op->target)) {
		result = mount_attach_path(tree, build->root_fd, op->target + 1);
	} else {
		/* the last name is a link only where a link is to be pinned */
		result = target = mount_open_in(build->root_fd, op->target, build_open_how(op));
		if (target >= 0)
			result = mount_attach(tree, target);
		build_leave(build, &target);
	}
	if (result == -ENOENT && (op->flags & PLAN_OPTIONAL))
		return 0;
	return result < 0 ? error_errno(error, result, "mounting on %s", op->target) : 0;
}

/* Restricts a tree of the host's and attaches it at the operation's target. */
int build_place(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	int result = mount_restrict(tree, build_mount_flags(op));

	if (result < 0)
		return error_errno(error, result, "restricting the mount for %s", op->target);
	return build_attach(build, op, tree, error);
}

size_t build_op_index(const struct build *build, const struct plan_op *op)
{
	return (size_t)(op - build->options->plan->ops);
}

/* What the supervisor of a root caller cloned for us; -1 where there is no such tree. */
int build_given_tree(struct build *build, size_t slot)
{
	return build->trees ? TAKE_FD(build->trees[slot]) : -1;
}

/*
 * Names right below / and in /etc and /dev: no task may write in the directories that lead there
 * (policy/danger.c), so that a look-up by name is as good as one that refuses links. What was
 * cloned is checked either way.
 */
static bool is_systems(const char *path)
{
	return path_depth(path) == 1 || path_is_under(path, "/etc") || path_is_under(path, "/dev");
}

/* The tree that the supervisor cloned for us, or our own clone of the source. */
int build_take_tree(struct build *build, const char *path, uint64_t device, uint64_t inode,
		    size_t slot, int *ret_tree, struct error *error)
{
	int CLEANUP_FD source = -1;
	int result;

	*ret_tree = build_given_tree(build, slot);
	if (*ret_tree >= 0)
		return 0;
	if (inode && is_systems(path)) {
		result = mount_clone_path(AT_FDCWD, path, device, inode, ret_tree);
	} else {
		result = source = mount_source(path, device, inode);
		if (source >= 0)
			result = mount_clone(source, ret_tree);
		build_leave(build, &source);
	}
	if (result == -ESTALE)
		return error_set(error, ESTALE, "%s became another object during the start", path);
	return result < 0 ? error_errno(error, result, "cloning %s", path) : 0;
}
