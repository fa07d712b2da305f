/*
 * The builder: a child of the supervisor in the box's new namespaces. It executes the BOX
 * operations one after the other, reports the first that fails, and becomes process 1.
 */
#include "isolate/internal.h"

#include "base/directory.h"
#include "base/fd.h"
#include "base/path.h"
#include "ipc/message.h"
#include "kernel/capability.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"
#include "kernel/network.h"
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int operation(struct build *build, const struct plan_op *op, struct error *error);

static unsigned mount_flags(const struct plan_op *op)
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

static void leave(struct build *build, int *fd)
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
static bool is_own_way(const struct build *build, const char *target)
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

static int how_of(const struct plan_op *op)
{
	return op->flags & PLAN_LINK_KIND ? O_PATH | O_NOFOLLOW : O_PATH;
}

/* Attaches a detached tree at the operation's target. */
static int attach(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	int CLEANUP_FD target = -1;
	int result;

	if (is_own_way(build, op->target)) {
		result = mount_attach_path(tree, build->root_fd, op->target + 1);
	} else {
		/* the last name is a link only where a link is to be pinned */
		result = target = mount_open_in(build->root_fd, op->target, how_of(op));
		if (target >= 0)
			result = mount_attach(tree, target);
		leave(build, &target);
	}
	if (result == -ENOENT && (op->flags & PLAN_OPTIONAL))
		return 0;
	return result < 0 ? error_errno(error, result, "mounting on %s", op->target) : 0;
}

/* Restricts a tree of the host's and attaches it at the operation's target. */
static int place(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	int result = mount_restrict(tree, mount_flags(op));

	if (result < 0)
		return error_errno(error, result, "restricting the mount for %s", op->target);
	return attach(build, op, tree, error);
}

static int do_nothing(struct build *build, const struct plan_op *op, struct error *error)
{
	/* NAMESPACE: done by the clone that made this process */
	(void)build;
	(void)op;
	(void)error;
	return 0;
}

static int do_identity(struct build *build, const struct plan_op *op, struct error *error)
{
	const struct box_options *options = build->options;
	struct message message;
	int result;

	if (!options->host_root) {
		result = namespace_map(build->box->proc_fd, 0, (uint32_t)op->number,
				       options->outside_uid, (uint32_t)op->flags,
				       options->outside_gid, 1);
		if (result < 0)
			return error_errno(error, result, "writing the id maps");
		return 0;
	}
	result = message_receive(build->control, &message);
	if (result < 0 || message.type != BOX_GO)
		return error_set(error, EPIPE, "the supervisor went away");
	if (setgroups(0, NULL) < 0)
		return error_errno(error, errno, "dropping supplementary groups");
	return become_inside(options, error);
}

static int do_hostname(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)build;
	if (sethostname(op->source, strlen(op->source)) < 0)
		return error_errno(error, errno, "setting the host name");
	return 0;
}

static int do_loopback(struct build *build, const struct plan_op *op, struct error *error)
{
	int result = network_loopback_up();

	(void)build;
	(void)op;
	if (result < 0)
		return error_errno(error, result, "bringing the loopback up");
	return 0;
}

static int do_listener(struct build *build, const struct plan_op *op, struct error *error)
{
	const struct policy_listener *listener = &build->options->policy->listeners[op->number];
	int CLEANUP_FD fd = -1;
	int result = network_listener(listener->family, listener->type, listener->port, &fd);

	if (result == 0)
		result = message_send(build->control, BOX_LISTENER, NULL, 0, &fd, 1);
	if (result < 0)
		return error_errno(error, result, "listening on port %u of the loopback",
				   listener->port);
	return 0;
}

/*
 * Where the private areas hang until the host's tree is detached: a directory that every host has
 * (a box needs /proc anyway) and that no path of ours leads through. Not "/": what is stacked
 * there would be detached in the old root's place.
 */
#define STAGE "/proc/sys"

static int do_areas(struct build *build, const struct plan_op *op, struct error *error)
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

static int do_area_directory(struct build *build, const struct plan_op *op, struct error *error)
{
	if (mkdirat(build->areas_fd, op->target, (mode_t)op->number) < 0)
		return error_errno(error, errno, "making the private area %s", op->target);
	return 0;
}

static int do_whiteout(struct build *build, const struct plan_op *op, struct error *error)
{
	/* overlayfs.rst: a character device 0/0 hides the name in the layers below */
	if (mknodat(build->areas_fd, op->target, S_IFCHR, 0) < 0)
		return error_errno(error, errno, "making the whiteout %s", op->target);
	return 0;
}

static size_t op_index(const struct build *build, const struct plan_op *op)
{
	return (size_t)(op - build->options->plan->ops);
}

/* What the supervisor of a root caller cloned for us; -1 where there is no such tree. */
static int given_tree(struct build *build, size_t slot)
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
static int take_tree(struct build *build, const char *path, uint64_t device, uint64_t inode,
		     size_t slot, int *ret_tree, struct error *error)
{
	int CLEANUP_FD source = -1;
	int result;

	*ret_tree = given_tree(build, slot);
	if (*ret_tree >= 0)
		return 0;
	if (inode && is_systems(path)) {
		result = mount_clone_path(AT_FDCWD, path, device, inode, ret_tree);
	} else {
		result = source = mount_source(path, device, inode);
		if (source >= 0)
			result = mount_clone(source, ret_tree);
		leave(build, &source);
	}
	if (result == -ESTALE)
		return error_set(error, ESTALE, "%s became another object during the start", path);
	return result < 0 ? error_errno(error, result, "cloning %s", path) : 0;
}

static int do_area_link(struct build *build, const struct plan_op *op, struct error *error)
{
	if (symlinkat(op->source, build->areas_fd, op->target) < 0)
		return error_errno(error, errno, "making %s in the private areas", op->target);
	return 0;
}

static int do_area_file(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD fd = openat(build->areas_fd, op->target,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				   (mode_t)op->number);
	int result = fd < 0 ? -errno : fd_write_all(fd, op->source, strlen(op->source));

	return result < 0 ?
		       error_errno(error, result, "writing %s in the private areas", op->target) :
		       0;
}

static int do_root(struct build *build, const struct plan_op *op, struct error *error)
{
	static const char stage_name[] = "root";
	int CLEANUP_FD tree = -1;
	int result = take_tree(build, op->source, 0, 0, op_index(build, op), &tree, error);

	if (result < 0)
		return result;
	if (mkdirat(build->areas_fd, stage_name, 0755) < 0)
		return error_errno(error, errno, "making a staging place");
	result = mount_restrict(tree, mount_flags(op));
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
	if (is_own_way(build, target))
		return build->root_fd;
	if ((size_t)(slash - target) >= sizeof(parent))
		return error_errno(error, ENAMETOOLONG, "%s", target);
	memcpy(parent, target, (size_t)(slash - target));
	parent[slash - target] = '\0';
	*ret_name = slash + 1;
	*fd = mount_open_in(build->root_fd, parent, O_PATH | O_DIRECTORY);
	return *fd < 0 ? error_errno(error, *fd, "%s", parent) : *fd;
}

static int do_directory(struct build *build, const struct plan_op *op, struct error *error)
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

static int do_link(struct build *build, const struct plan_op *op, struct error *error)
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

static int do_file(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD fd = mount_create_in(build->root_fd, op->target, (unsigned)op->number);
	size_t length = strlen(op->source);
	int result = fd;

	if (fd < 0)
		return error_errno(error, fd, "making the file %s", op->target);
	result = length ? fd_write_all(fd, op->source, length) : 0;
	return result < 0 ? error_errno(error, result, "writing the file %s", op->target) : 0;
}

static int do_bind(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = take_tree(build, op->source, op->device, op->inode, op_index(build, op), &tree,
			       error);

	if (result == 0)
		result = place(build, op, tree, error);
	leave(build, &tree);
	return result;
}

static int do_area(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = mount_clone_path(build->areas_fd, op->source, 0, 0, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning the private area %s", op->source);
	/* a clone is restricted and private as the areas' own mount is */
	result = op->flags ? place(build, op, tree, error) : attach(build, op, tree, error);
	leave(build, &tree);
	return result;
}

/*
 * A layer of an overlay must be a path to an attached mount. What the supervisor cloned is
 * attached at a place in the areas first; then every layer is named by descriptor, which also
 * keeps host paths out of /proc/self/mountinfo.
 */
static int open_layer(struct build *build, const char *path, uint64_t device, uint64_t inode,
		      size_t slot, struct error *error)
{
	int CLEANUP_FD tree = given_tree(build, slot);
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
	size_t lease, slot = build->options->plan->count + op_index(build, op);
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
			    place(build, op, mount_fd, error);
}

static int do_overlay(struct build *build, const struct plan_op *op, struct error *error)
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
		lower = open_layer(build, op->source, op->device, op->inode, op_index(build, op),
				   error);
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
	result = mount_new("overlay", options, mount_flags(op), &mount_fd);
	if (result < 0 && (op->flags & PLAN_OPTIONAL) && upper >= 0)
		return place_upper(build, op, upper, error);
	if (result < 0)
		return overlay_failed(build, op, result, error);
	return attach(build, op, mount_fd, error);
}

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
		result = mount_restrict(file, mount_flags(op));
	if (result == 0)
		result = target = mount_open_in(build->root_fd, path, O_PATH | O_NOFOLLOW);
	if (target >= 0)
		result = mount_attach(file, target);
	leave(build, &source);
	leave(build, &file);
	leave(build, &target);
	return result < 0 && result != -ENOENT ?
		       error_errno(error, result, "mounting on %s", path) :
		       0;
}

/* A detached tree has no parts to clone: the store hangs among the private areas meanwhile. */
static int hang_store(struct build *build, const struct plan_op *op, int tree, struct error *error)
{
	char name[32];
	int result = 0;

	(void)snprintf(name, sizeof(name), "store%zu", op_index(build, op));
	if (mkdirat(build->areas_fd, name, 0700) < 0)
		result = -errno;
	if (result == 0)
		result = mount_attach_path(tree, build->areas_fd, name);
	return result < 0 ? error_errno(error, result, "a place for %s", op->source) : 0;
}

/* Large packs of a git directory, read-only over its overlay. */
static int do_objects(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	struct directory CLEANUP_DIRECTORY packs;
	bool is_hung = false;
	unsigned count = 0;
	const char *name;
	int result = take_tree(build, op->source, op->device, op->inode, op_index(build, op), &tree,
			       error);

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
	leave(build, &tree);
	return result;
}

static int do_proc(struct build *build, const struct plan_op *op, struct error *error)
{
	static const struct mount_option options[] = { { NULL, NULL } };
	int CLEANUP_FD mount_fd = -1;
	int result = mount_new("proc", options, mount_flags(op) | MOUNT_NO_EXEC, &mount_fd);

	if (result < 0)
		return error_errno(error, result,
				   "mounting proc (a container whose own /proc is masked forbids "
				   "it)");
	result = attach(build, op, mount_fd, error);
	leave(build, &mount_fd);
	return result;
}

static int do_devpts(struct build *build, const struct plan_op *op, struct error *error)
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
	result = attach(build, op, mount_fd, error);
	if (result == 0 && (op->flags & PLAN_HANDED)) {
		result = message_send(build->control, BOX_DEVPTS, NULL, 0, &mount_fd, 1);
		if (result < 0)
			error_errno(error, result, "handing devpts out");
	}
	leave(build, &mount_fd);
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

static int do_mask(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD tree = -1;
	int result = mount_clone_path(build->root_fd, mask_source(op) + 1, 0, 0, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning the mask for %s", op->target);
	/* the mount that it is cloned from, of the evidence, is read-only and noexec */
	result = attach(build, op, tree, error);
	leave(build, &tree);
	return result;
}

static int do_pin(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD source = mount_open_in(build->root_fd, op->target, how_of(op));
	int CLEANUP_FD tree = -1;
	int result = source < 0 ? source : mount_clone(source, &tree);

	if (result < 0)
		return error_errno(error, result, "cloning %s", op->target);
	return place(build, op, tree, error);
}

static int do_pivot(struct build *build, const struct plan_op *op, struct error *error)
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

/* Where the host's /proc is read-only, as in containers, one of our own has the same files. */
static int open_count(struct build *build, const char *path)
{
	int CLEANUP_FD mount_fd = -1;
	int fd = openat(build->box->proc_fd, path, O_WRONLY | O_CLOEXEC);
	int result;

	if (fd >= 0 || errno != EROFS)
		return fd < 0 ? -errno : fd;
	result = mount_new("proc", (const struct mount_option[]){ { NULL, NULL } }, 0, &mount_fd);
	if (result < 0)
		return result;
	fd = openat(mount_fd, path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * user_namespaces(7), "/proc/sys/user": the file is that of the user namespace of whoever opens it.
 * The number holds for all of the namespace and those below it, which have no right to raise it.
 */
static int do_count(struct build *build, const struct plan_op *op, struct error *error)
{
	char path[64], number[24];
	int CLEANUP_FD fd = -1;
	int result;

	/* a plan without the namespace would change the host's own number */
	if (!(plan_namespaces(build->options->plan) & CLONE_NEWUSER))
		return error_set(error, EINVAL, "%s without a user namespace", op->target);
	(void)snprintf(path, sizeof(path), "sys/user/%s", op->target);
	(void)snprintf(number, sizeof(number), "%" PRIu64, op->number);
	fd = open_count(build, path);
	result = fd < 0 ? fd : fd_write_all(fd, number, strlen(number));
	return result < 0 ? error_errno(error, result, "writing %s to /proc/%s", number, path) : 0;
}

static int do_nested_user(struct build *build, const struct plan_op *op, struct error *error)
{
	int result;

	/* after the change of identity of a root caller we are not dumpable, and a process that
	 * is not cannot write its own maps (proc(5)) */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return error_errno(error, errno, "prctl(PR_SET_DUMPABLE)");
	if (unshare(CLONE_NEWUSER) < 0)
		return error_errno(error, errno, "making the nested user namespace");
	result = namespace_map(build->box->proc_fd, 0, (uint32_t)op->number, (uint32_t)op->number,
			       (uint32_t)op->flags, (uint32_t)op->flags, 1);
	if (result < 0)
		return error_errno(error, result, "writing the id maps of the nested namespace");
	return 0;
}

/*
 * user_namespaces(7), "/proc/sys/user": the limit is that of the nested namespace, holds for all
 * below it, and is raised by nobody in them.
 */
static int do_no_cgroup_namespaces(struct build *build, const struct plan_op *op,
				   struct error *error)
{
	int CLEANUP_FD fd = open("/proc/sys/user/max_cgroup_namespaces", O_WRONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : fd_write_all(fd, "0", 1);

	(void)build;
	(void)op;
	return result < 0 ? error_errno(error, result, "forbidding cgroup namespaces") : 0;
}

static int do_init_capabilities(struct build *build, const struct plan_op *op, struct error *error)
{
	/* what it holds; the bounding set is for those who gain by exec, and it never will */
	int result = capability_drop_held();

	(void)build;
	(void)op;
	return result < 0 ? error_errno(error, result, "dropping capabilities") : 0;
}

static int do_init_no_new_privs(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)build;
	(void)op;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(error, errno, "setting no_new_privs");
	return 0;
}

static int do_init_landlock(struct build *build, const struct plan_op *op, struct error *error)
{
	int CLEANUP_FD ruleset = -1;
	/* no rule: init opens nothing. Its image is no path of any file system. */
	int result = landlock_create(1, true, &ruleset);

	(void)build;
	(void)op;
	if (result == 0)
		result = landlock_restrict(ruleset);
	return result < 0 ? error_errno(error, result, "restricting process 1 by Landlock") : 0;
}

static int do_init_seccomp(struct build *build, const struct plan_op *op, struct error *error)
{
	(void)op;
	(void)error;
	/* the filter allows little beyond the exec of init: do_init() installs it last */
	build->filter_init = true;
	return 0;
}

/* Leaves the control descriptor as number 3 and nothing else to what is exec'd. */
static int leave_control_only(struct build *build)
{
	/* out of the way of 0-3 */
	build->init_fd = fcntl(build->init_fd, F_DUPFD_CLOEXEC, 4);
	build->control = fcntl(build->control, F_DUPFD_CLOEXEC, 4);
	if (build->init_fd < 0 || build->control < 0 ||
	    close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0 || dup2(build->control, 3) < 0)
		return -errno;
	return 0;
}

static int do_init(struct build *build, const struct plan_op *op, struct error *error)
{
	static char *const argv[] = { (char *)"bawn-init", NULL };
	static char *const environment[] = { NULL };
	int result = leave_control_only(build);

	(void)op;
	if (result < 0)
		return error_errno(error, result, "passing the control descriptor");
	if (build->filter_init)
		result = seccomp_install(SECCOMP_VARIANT_INIT, NULL);
	if (result < 0)
		return error_errno(error, result, "installing the system call filter");
	(void)syscall(SYS_execveat, build->init_fd, "", argv, environment, AT_EMPTY_PATH);
	return error_errno(error, errno, "starting process 1");
}

static operation *const operations[PLAN_KIND_COUNT] = {
	[PLAN_NAMESPACE] = do_nothing,
	[PLAN_IDENTITY] = do_identity,
	[PLAN_HOSTNAME] = do_hostname,
	[PLAN_LOOPBACK] = do_loopback,
	[PLAN_LISTENER] = do_listener,
	[PLAN_ROUTES] = catch_routes,
	[PLAN_CAPTURE] = catch_connections,
	[PLAN_AREAS] = do_areas,
	[PLAN_AREA_DIRECTORY] = do_area_directory,
	[PLAN_AREA_FILE] = do_area_file,
	[PLAN_AREA_LINK] = do_area_link,
	[PLAN_WHITEOUT] = do_whiteout,
	[PLAN_ROOT] = do_root,
	[PLAN_DIRECTORY] = do_directory,
	[PLAN_LINK] = do_link,
	[PLAN_FILE] = do_file,
	[PLAN_BIND] = do_bind,
	[PLAN_AREA] = do_area,
	[PLAN_OVERLAY] = do_overlay,
	[PLAN_OBJECTS] = do_objects,
	[PLAN_PROC] = do_proc,
	[PLAN_DEVPTS] = do_devpts,
	[PLAN_MASK] = do_mask,
	[PLAN_PIN] = do_pin,
	[PLAN_PIVOT] = do_pivot,
	[PLAN_COUNT] = do_count,
	[PLAN_NESTED_USER] = do_nested_user,
	[PLAN_NO_CGROUP_NAMESPACES] = do_no_cgroup_namespaces,
	[PLAN_INIT_CAPABILITIES] = do_init_capabilities,
	[PLAN_INIT_NO_NEW_PRIVS] = do_init_no_new_privs,
	[PLAN_INIT_LANDLOCK] = do_init_landlock,
	[PLAN_INIT_SECCOMP] = do_init_seccomp,
	[PLAN_INIT] = do_init,
};

int build_run(void *argument)
{
	struct build *build = argument;
	const struct plan *plan = build->options->plan;
	struct error error = ERROR_NONE;
	int result = 0;

	/* the supervisor's death ends us even before init watches the control descriptor */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)umask(0);
	for (size_t i = 0; i < plan->count && result == 0; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (plan_kind_phase(op->kind) != PLAN_BOX || plan_is_kept(op))
			continue;
		result = operations[op->kind](build, op, &error);
		if (result < 0)
			operation_failed(op, &error);
	}
	if (result == 0)
		error_set(&error, EINVAL, "the plan has no init");
	(void)message_send(build->control, BOX_ERROR, &error, sizeof(error), NULL, 0);
	_exit(125);
}
