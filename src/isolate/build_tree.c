/* The new root, what is made and mounted in it (but build_overlay.c), and the move into it. */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int build_root(struct build *build, const struct plan_op *op, struct error *error)
{
	static const char stage_name[] = "root";
	int CLEANUP_FD tree = -1;
	int result =
		build_take_tree(build, op->source, 0, 0, build_op_index(build, op), &tree, error);

	if (result < 0)
		return result;
	if (mkdirat(build->areas_fd, stage_name, 0755) < 0)
		return error_errno(error, errno, "making a staging place");
	result = mount_restrict(tree, build_mount_flags(op));
	if (result == 0)
		result = mount_attach_path(tree, build->areas_fd, stage_name);
	if (result < 0)
		return error_errno(error, result, "mounting the new root");
	build->root_fd = TAKE_FD(tree);
	return 0;
}

/*
 * The directory from which a new name is made, and the name: the root, and the path below it; where
 * a link or the host's tree leads there, the parent, opened into *fd with no link followed.
 */
static int way_to(const struct build *build, const char *target, int *fd, const char **ret_name,
		  struct error *error)
{
	const char *slash = strrchr(target, '/');
	char parent[4096];

	*ret_name = target + 1;
	if (build_is_own_way(build, target))
		return build->root_fd;
	if ((size_t)(slash - target) >= sizeof(parent))
		return error_errno(error, ENAMETOOLONG, "%s", target);
	memcpy(parent, target, (size_t)(slash - target));
	parent[slash - target] = '\0';
	*ret_name = slash + 1;
	*fd = mount_open_in(build->root_fd, parent, O_PATH | O_DIRECTORY);
	return *fd < 0 ? error_errno(error, *fd, "%s", parent) : *fd;
}

int build_directory(struct build *build, const struct plan_op *op, struct error *error)
{
	const char *name;
	int CLEANUP_FD fd = -1;
	int parent = way_to(build, op->target, &fd, &name, error);

	if (parent < 0)
		return parent;
	if (mkdirat(parent, name, (mode_t)op->number) < 0)
		return error_errno(error, errno, "making the directory %s", op->target);
	return 0;
}

int build_link(struct build *build, const struct plan_op *op, struct error *error)
{
	const char *name;
	int CLEANUP_FD fd = -1;
	int parent = way_to(build, op->target, &fd, &name, error);

	if (parent < 0)
		return parent;
	if (symlinkat(op->source, parent, name) < 0)
		return error_errno(error, errno, "making the link %s", op->target);
	return 0;
}

int build_file(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD fd = mount_create_in(build->root_fd, op->target, (unsigned)op->number);
	size_t length = strlen(op->source);
	int result = fd;

	if (fd < 0)
		return error_errno(error, fd, "making the file %s", op->target);
	result = length ? fd_write_all(fd, op->source, length) : 0;
	return result < 0 ? error_errno(error, result, "writing the file %s", op->target) : 0;
}

int build_bind(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = build_take_tree(build, op->source, op->device, op->inode,
				     build_op_index(build, op), &tree, error);

	if (result == 0)
		result = build_place(build, op, tree, error);
	build_leave(build, &tree);
	return result;
}

int build_area(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = mount_clone_path(build->areas_fd, op->source, 0, 0, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning the private area %s", op->source);
	/* a clone is restricted and private as the areas' own mount is */
	result = op->flags ? build_place(build, op, tree, error) :
			     build_attach(build, op, tree, error);
	build_leave(build, &tree);
	return result;
}

int build_proc(struct build *build, const struct plan_op *op, struct error *error)
{
	static const struct mount_option options[] = { { NULL, NULL } };
	int CLEANUP_FD mount_fd = -1;
	int result = mount_new("proc", options, build_mount_flags(op) | MOUNT_NO_EXEC, &mount_fd);

	if (result < 0)
		return error_errno(error, result,
				   "mounting proc (a container whose own /proc is masked forbids "
				   "it)");
	result = build_attach(build, op, mount_fd, error);
	build_leave(build, &mount_fd);
	return result;
}

int build_devpts(struct build *build, const struct plan_op *op, struct error *error)
{
	char most[16];
	const struct mount_option options[] = { { "newinstance", NULL },
						{ "ptmxmode", "0666" },
						{ "mode", "0620" },
						{ "max", most },
						{ NULL, NULL } };
	int CLEANUP_FD mount_fd = -1;
	int result;

	(void)snprintf(most, sizeof(most), "%u", (unsigned)op->number);
	result = mount_new("devpts", options, MOUNT_DEVICES | MOUNT_NO_EXEC, &mount_fd);
	if (result < 0)
		return error_errno(error, result, "mounting devpts");
	result = build_attach(build, op, mount_fd, error);
	if (result == 0 && (op->flags & PLAN_HANDED)) {
		result = message_send(build->control, BOX_DEVPTS, NULL, 0, &mount_fd, 1);
		if (result < 0)
			error_errno(error, result, "handing devpts out");
	}
	build_leave(build, &mount_fd);
	return result;
}

static const char *mask_source(const struct plan_op *op)
{
	if (op->flags & PLAN_EMPTY)
		return PLAN_MASK_EMPTY;
	if (op->number == PATH_KIND_LINK)
		return PLAN_MASK_LINK;
	return op->number == PATH_KIND_DIRECTORY ? PLAN_MASK_DIRECTORY : PLAN_MASK_FILE;
}

int build_mask(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = mount_clone_path(build->root_fd, mask_source(op) + 1, 0, 0, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning the mask for %s", op->target);
	/* the mount that it is cloned from, of the evidence, is read-only and noexec */
	result = build_attach(build, op, tree, error);
	build_leave(build, &tree);
	return result;
}

int build_pin(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD source = mount_open_in(build->root_fd, op->target, build_open_how(op));
	int CLEANUP_FD tree = -1;
	int result = source < 0 ? source : mount_clone(source, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning %s", op->target);
	return build_place(build, op, tree, error);
}

int build_pivot(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)op;
	/* pivot_root(2): "." on "." stacks the old root over the new one, and is then detached */
	if (fchdir(build->root_fd) < 0)
		return error_errno(error, errno, "entering the new root");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return error_errno(error, errno,
				   "pivot_root (a root file system that is the initial ramdisk "
				   "forbids it)");
	if (umount2(".", MNT_DETACH) < 0)
		return error_errno(error, errno, "detaching the host's tree");
	if (chdir("/") < 0)
		return error_errno(error, errno, "entering /");
	return 0;
}
