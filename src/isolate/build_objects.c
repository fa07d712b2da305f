/* Large packs of a git directory: each read-only over the overlay's name for it. */
#include "isolate/build_internal.h"

#include "base/directory.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Packs that cost an overlay nothing: git touches the times of a pack that has an object which it
 * would write, and an overlay copies the whole file for that. Smaller ones are copied in a
 * millisecond.
 */
#define PACK_LEAST_BYTES (1024 * 1024)

/* Each costs the start some 30 us; a repository whose git packs by itself has fewer than 50. */
#define PACK_LIMIT 64

static bool is_large_pack(int directory_fd, const char *name)
{
	size_t length = strlen(name);
	struct stat status;

	return length > 5 && strcmp(name + length - 5, ".pack") == 0 &&
	       fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(status.st_mode) && status.st_size >= PACK_LEAST_BYTES;
}

/* Its own file over the overlay's name for it. What is gone meanwhile needs no mount. */
static int cover_pack(struct build *build, const struct plan_op *op, int packs_fd, const char *name,
		      struct error *error)
{
	int CLEANUP_FD source = fd_open_beneath(packs_fd, name, O_PATH | O_NOFOLLOW);
	int CLEANUP_FD file = -1, target = -1;
	char path[PATH_LIMIT_BYTES];
	int result;

	if (source < 0)
		return 0;
	if (snprintf(path, sizeof(path), "%s/pack/%s", op->target, name) >= (int)sizeof(path))
		return error_errno(error, ENAMETOOLONG, "%s", name);
	result = mount_clone(source, &file);
	if (result == 0)
		result = mount_restrict(file, build_mount_flags(op));
	if (result == 0)
		result = target = mount_open_in(build->root_fd, path, O_PATH | O_NOFOLLOW);
	if (target >= 0)
		result = mount_attach(file, target);
	build_leave(build, &source);
	build_leave(build, &file);
	build_leave(build, &target);
	return result < 0 && result != -ENOENT ?
		       error_errno(error, result, "mounting on %s", path) :
		       0;
}

/* A detached tree has no parts to clone: the store hangs among the private areas meanwhile. */
static int hang_store(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	char name[32];
	int result = 0;

	(void)snprintf(name, sizeof(name), "store%zu", build_op_index(build, op));
	if (mkdirat(build->areas_fd, name, 0700) < 0)
		result = -errno;
	if (result == 0)
		result = mount_attach_path(tree, build->areas_fd, name);
	return result < 0 ? error_errno(error, result, "a place for %s", op->source) : 0;
}

/* Large packs of a git directory, read-only over its overlay. */
int build_objects(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	struct directory CLEANUP_DIRECTORY packs;
	bool is_hung = false;
	unsigned count = 0;
	const char *name;
	int result = build_take_tree(build, op->source, op->device, op->inode,
				     build_op_index(build, op), &tree, error);

	directory_begin(&packs, result < 0 ? result :
					     fd_open_beneath(tree, "pack",
							     O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
	while (result == 0 && count < PACK_LIMIT && (name = directory_next(&packs))) {
		if (!is_large_pack(packs.fd, name))
			continue;
		if (!is_hung)
			result = hang_store(build, op, tree, error);
		is_hung = true;
		if (result == 0)
			result = cover_pack(build, op, packs.fd, name, error);
		count++;
	}
	build_leave(build, &tree);
	return result;
}
