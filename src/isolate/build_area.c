/* The private areas: one tmpfs, and what is made in it before it is shown in parts. */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Where the private areas hang until the host's tree is detached: a directory that every host has
 * (a box needs /proc anyway) and that no path of ours leads through. Not "/": what is stacked
 * there would be detached in the old root's place.
 */
#define STAGE "/proc/sys"

int build_areas(struct build *build, const struct plan_op *op, struct error *error)
{
	char size[24], inodes[24];
	const struct mount_option options[] = {
		{ "mode", "0755" }, { "size", size }, { "nr_inodes", inodes }, { NULL, NULL }
	};
	int CLEANUP_FD mount_fd = -1;
	int result;

	/* 0 is no limit (tmpfs.rst) */
	(void)snprintf(size, sizeof(size), "%llu",
		       op->number == LIMIT_NONE ? 0ull : (unsigned long long)op->number);
	(void)snprintf(inodes, sizeof(inodes), "%llu",
		       op->flags == LIMIT_NONE ? 0ull : (unsigned long long)op->flags);
	/* nothing that we mount from here on may reach the host, nor the host's mounts us */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_errno(error, errno, "making the mounts private");
	result = mount_new("tmpfs", options, 0, &mount_fd);
	if (result == 0)
		result = mount_attach_path(mount_fd, AT_FDCWD, STAGE);
	if (result < 0)
		return error_errno(error, result, "mounting the private areas' tmpfs");
	build->areas_fd = TAKE_FD(mount_fd);
	return 0;
}

int build_area_directory(struct build *build, const struct plan_op *op, struct error *error)
{
	if (mkdirat(build->areas_fd, op->target, (mode_t)op->number) < 0)
		return error_errno(error, errno, "making the private area %s", op->target);
	return 0;
}

int build_whiteout(struct build *build, const struct plan_op *op, struct error *error)
{
	/* overlayfs.rst: a character device 0/0 hides the name in the layers below */
	if (mknodat(build->areas_fd, op->target, S_IFCHR, 0) < 0)
		return error_errno(error, errno, "making the whiteout %s", op->target);
	return 0;
}

int build_area_link(struct build *build, const struct plan_op *op, struct error *error)
{
	if (symlinkat(op->source, build->areas_fd, op->target) < 0)
		return error_errno(error, errno, "making %s in the private areas", op->target);
	return 0;
}

int build_area_file(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD fd = openat(build->areas_fd, op->target,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				   (mode_t)op->number);
	int result = fd < 0 ? -errno : fd_write_all(fd, op->source, strlen(op->source));

	return result < 0 ?
		       error_errno(error, result, "writing %s in the private areas", op->target) :
		       0;
}
