/* Overlays: their layers, what they must not show, and what is said where they are refused. */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "base/path.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * A layer of an overlay must be a path to an attached mount. What the supervisor cloned is
 * attached at a place in the areas first; then every layer is named by descriptor, which also
 * keeps host paths out of /proc/self/mountinfo.
 */
static int open_layer(struct build *build, const char *path, uint64_t device, uint64_t inode,
		      size_t slot, struct error *error)
{
	int CLEANUP_FD tree = build_given_tree(build, slot);
	char stage[32];
	int result, fd;

	if (tree < 0) {
		fd = mount_source(path, device, inode);
		return fd < 0 ? error_errno(error, fd, "%s", path) : fd;
	}
	(void)snprintf(stage, sizeof(stage), "stage%u", build->stages++);
	if (mkdirat(build->areas_fd, stage, 0700) < 0)
		return error_errno(error, errno, "making a staging place");
	fd = openat(build->areas_fd, stage, O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = fd < 0 ? -errno : mount_attach(tree, fd);
	fd_close(&fd);
	if (result < 0)
		return error_errno(error, result, "attaching a layer");
	return TAKE_FD(tree);
}

/* True for a directory of this run that the supervisor has leased, or made in the task's own. */
static bool is_held(const struct build *build, const char *upper, size_t *ret_lease)
{
	const struct plan *plan = build->options->plan;

	*ret_lease = 0;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_LAYERS && strcmp(op->target, upper) == 0)
			return true;
		if (op->kind != PLAN_LEASE)
			continue;
		if (strcmp(op->target, upper) == 0)
			break;
		++*ret_lease;
	}
	return *ret_lease < build->box->lease_count && build->box->leases[*ret_lease] >= 0;
}

/* A cache's own directory in the private areas, where another run has the leased one. */
static int make_private_cache(struct build *build, size_t lease, struct error *error)
{
	int CLEANUP_FD base = -1;
	char name[32];

	(void)snprintf(name, sizeof(name), "cache%zu", lease);
	base = mkdirat(build->areas_fd, name, 0700) < 0 ?
		       -1 :
		       openat(build->areas_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0 || mkdirat(base, "upper", 0755) < 0 || mkdirat(base, "work", 0755) < 0)
		return error_errno(error, errno, "making a private cache");
	return TAKE_FD(base);
}

/* upper and work directories: the leased cache's, the task's, or in the private areas. */
static int open_upper(struct build *build, const struct plan_op *op, int *ret_work,
		      struct error *error)
{
	size_t lease, slot = build->options->plan->count + build_op_index(build, op);
	int CLEANUP_FD base = -1;
	int upper;

	base = is_held(build, op->upper, &lease) ? open_layer(build, op->upper, 0, 0, slot, error) :
						   make_private_cache(build, lease, error);
	if (base < 0)
		return base;
	upper = openat(base, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*ret_work = openat(base, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0 || *ret_work < 0) {
		fd_close(&upper);
		return error_errno(error, errno, "opening the layers of %s", op->upper);
	}
	return upper;
}

static void name_of(int fd, char text[static 32])
{
	(void)snprintf(text, 32, "/proc/self/fd/%d", fd);
}

static bool is_stage(const struct plan_op *op)
{
	return op->upper && strcmp(path_name(op->upper), PLAN_STAGE_LAYERS) == 0;
}

static bool is_git(const struct plan_op *op)
{
	return op->layer == LAYER_PROTECT && op->upper;
}

/* An overlay shows what lies below a mount instead of it: never what the caller sees there. */
static int refuse_mounts_below(const struct plan_op *op, struct error *error)
{
	char path[PATH_MAX];
	int result = mount_find_below(op->source, path);

	if (result <= 0)
		return result < 0 ? error_errno(error, result, "reading the list of mounts") : 0;
	if (is_stage(op))
		return error_set(
			error, EXDEV,
			"the workspace cannot have a layer: something is mounted in it, at "
			"%.300s, which a layer does not show; unmount it, or go on without "
			"--stage or --ephemeral",
			path);
	return error_set(error, EXDEV,
			 "the git directory cannot have a layer: something is mounted in it, at "
			 "%.200s, which a layer does not show; unmount it, or --protect %.150s "
			 "goes on with git's directory read-only",
			 path, op->target);
}

/* Of an ordinary caller's the kernel refuses it: it is locked in the box's namespace. */
static bool may_show_below(const struct build *build, const struct plan_op *op)
{
	return op->source[0] && (is_stage(op) || (is_git(op) && build->options->host_root));
}

/* The lower layer of a git directory is what not every file system can be. */
static int overlay_failed(const struct build *build, const struct plan_op *op, int code,
			  struct error *error)
{
	if (is_git(op) && refuse_mounts_below(op, error) < 0)
		return error->code;
	error_errno(error, code, "mounting an overlay on %s", op->target);
	/* the supervisor has a remedy */
	if (layer_refused(build->options->policy, op, error) == -BOX_NO_LAYER)
		return error->code;
	if (op->layer != LAYER_PROTECT)
		return code;
	return error_context(
		error,
		"its file system cannot be the lower layer of an overlay (or the state "
		"directory's not the upper one); --protect %s goes on with git's "
		"directory read-only, --state-dir DIR takes another state directory",
		op->target);
}

static int place_upper(struct build *build, const struct plan_op *op, int upper,
		       struct error *error)
{
	int mount_fd = -1, result = mount_clone(upper, &mount_fd);

	return result < 0 ? error_errno(error, result, "cloning %s", op->upper) :
			    build_place(build, op, mount_fd, error);
}

int build_overlay(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD lower = -1, shade = -1, upper = -1, work = -1, mount_fd = -1;
	char lower_text[72] = "", upper_text[32], work_text[32];
	struct mount_option options[7] = { { "userxattr", NULL } };
	size_t count = 1;
	int result;

	if (may_show_below(build, op)) {
		result = refuse_mounts_below(op, error);
		if (result < 0)
			return result;
	}
	if (op->source[0]) {
		lower = open_layer(build, op->source, op->device, op->inode,
				   build_op_index(build, op), error);
		if (lower < 0)
			return lower;
	}
	if (op->shade) {
		shade = openat(build->areas_fd, op->shade,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (shade < 0)
			return error_errno(error, errno, "opening the whiteouts of %s", op->target);
	}
	if (lower >= 0 && shade >= 0)
		(void)snprintf(lower_text, sizeof(lower_text), "/proc/self/fd/%d:/proc/self/fd/%d",
			       shade, lower);
	else if (lower >= 0 || shade >= 0)
		name_of(lower >= 0 ? lower : shade, lower_text);
	if (op->upper) {
		upper = open_upper(build, op, &work, error);
		if (upper < 0)
			return upper;
		name_of(upper, upper_text);
		name_of(work, work_text);
	}
	/* a cache that the host lacks: the project's own layer alone */
	if (!lower_text[0])
		return place_upper(build, op, upper, error);
	options[count++] = (struct mount_option){ "lowerdir", lower_text };
	if (op->upper) {
		options[count++] = (struct mount_option){ "upperdir", upper_text };
		/*
		 * Without it the end of the box syncs the whole file system below. A cache is made
		 * again after a power cut, as outside, where no tool syncs its cache either; what a
		 * task wrote to a git directory dies with the task.
		 */
		options[count++] = (struct mount_option){ "volatile", NULL };
		options[count++] = (struct mount_option){ "workdir", work_text };
	}
	if (lower >= 0 && shade < 0 && !op->upper)
		return error_set(error, EINVAL, "an overlay of one layer on %s", op->target);
	result = mount_new("overlay", options, build_mount_flags(op), &mount_fd);
	if (result < 0 && (op->flags & PLAN_OPTIONAL) && upper >= 0)
		return place_upper(build, op, upper, error);
	if (result < 0)
		return overlay_failed(build, op, result, error);
	return build_attach(build, op, mount_fd, error);
}
