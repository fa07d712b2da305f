#include "isolate/internal.h"

#include "base/directory.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/compat.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The mark that a volatile overlay leaves in its work directory, and without whose removal the next
 * one refuses to mount (overlayfs.rst, "Volatile mount"). No task ever sees a work directory.
 */
static void forget_volatile(int cache_fd)
{
	int CLEANUP_FD work =
		openat(cache_fd, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int CLEANUP_FD inner = -1;

	/* overlayfs makes all of them with mode 000 */
	if (work < 0 || !directory_let_enter(work, "work"))
		return;
	inner = openat(work, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner < 0 || !directory_let_enter(inner, "incompat") ||
	    !directory_let_enter(inner, "incompat/volatile"))
		return;
	(void)unlinkat(inner, "incompat/volatile/dirty", 0);
	(void)unlinkat(inner, "incompat/volatile", AT_REMOVEDIR);
	(void)unlinkat(inner, "incompat", AT_REMOVEDIR);
}

/*
 * A cache's own directory is one overlay's at a time (two give undefined results): whoever finds
 * it locked gets a private upper layer instead.
 */
static int take_lease(struct box *box, const struct plan_op *op, struct error *error)
{
	int fd = open(op->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return error_errno(error, errno, "opening the cache %s", op->target);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int code = errno;

		fd_close(&fd);
		if (code != EWOULDBLOCK)
			return error_errno(error, code, "locking the cache %s", op->target);
	}
	if (fd >= 0) {
		forget_volatile(fd);
		/* when it was used last (workspace/cache_store.h) */
		(void)futimens(fd, NULL);
	}
	box->leases[box->lease_count++] = fd;
	return 0;
}

/* Its overlay is gone with the box; what stays can be removed by whoever owns it. */
static void give_lease_back(int *fd)
{
	if (*fd >= 0)
		forget_volatile(*fd);
	fd_close(fd);
}

/* A directory that is there, or new; what else somebody put at the name goes. */
static int make_directory(int parent_fd, const char *name, int *ret_fd)
{
	for (int i = 0; i < 2; i++) {
		/* an earlier task may have left it, empty */
		if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		*ret_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*ret_fd >= 0)
			return 0;
		if (errno != ENOTDIR || unlinkat(parent_fd, name, 0) < 0)
			return -errno;
	}
	return -ENOTDIR;
}

static int make_own(int parent_fd, const char *name, bool of_task, int *ret_fd)
{
	int result = make_directory(parent_fd, name, ret_fd);

	if (result == 0 && of_task && fchown(*ret_fd, PLAN_ROOT_HOST_ID, PLAN_ROOT_HOST_ID) < 0)
		result = -errno;
	return result;
}

/* What the task sees as the mode of the directory that is overlaid. */
static int copy_mode(const char *source, int fd)
{
	struct stat status;

	return lstat(source, &status) < 0 || fchmod(fd, status.st_mode & 0777) < 0 ? -errno : 0;
}

/*
 * The layers of one overlay that is the task's alone, in the task's directory, which is ours. For
 * the host's root they belong to the id as which the overlay is mounted.
 */
static int make_layers(const struct box *box, const struct plan_op *op, struct error *error)
{
	const bool of_task = box->options.host_root;
	int CLEANUP_FD parent = -1, layers = -1, upper = -1, work = -1;
	int result = 0, base = box->task_fd;

	/* those of git are numbered, in a directory of their own */
	if (strcmp(path_name(op->target), PLAN_STAGE_LAYERS) != 0) {
		result = make_directory(base, PLAN_GIT_LAYERS, &parent);
		base = parent;
	}
	if (result == 0)
		result = make_own(base, path_name(op->target), of_task, &layers);
	if (result == 0)
		result = make_own(layers, "upper", of_task, &upper);
	if (result == 0)
		result = make_own(layers, "work", of_task, &work);
	if (result == 0 && op->source)
		result = copy_mode(op->source, upper);
	return result < 0 ? error_errno(error, result, "making the task's layers %s", op->target) :
			    0;
}

/* In the layers' directory, which is there. */
static int duplicate(const struct box *box, const struct plan_op *op, struct error *error)
{
	if (mkdir(op->target, 0700) < 0)
		return error_errno(error, errno, "making %s", op->target);
	return box->options.duplicate ?
		       box->options.duplicate(box->options.context, box->task_fd, op, error) :
		       error_set(error, EINVAL, "nobody copies %s", op->source);
}

/* All of it happens in the state directory, whatever the object is called inside. */
static int host_failed(const struct plan_op *op, struct error *error)
{
	bool is_full = error->code == -ENOSPC || error->code == -EDQUOT || error->code == -EROFS;

	operation_failed(op, error);
	return is_full ? error_context(error, "the state directory cannot take more; make room, or "
					      "give --state-dir DIR") :
			 error->code;
}

int host_execute(struct box *box, struct error *error)
{
	const struct plan *plan = box->options.plan;
	size_t leases = 0;
	int result = 0;

	for (size_t i = 0; i < plan->count; i++)
		leases += plan->ops[i].kind == PLAN_LEASE;
	box->leases = leases ? calloc(leases, sizeof(int)) : NULL;
	if (leases && !box->leases)
		return error_errno(error, ENOMEM, "starting a box");
	for (size_t i = 0; i < plan->count && result == 0; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_TASK_DIRECTORY)
			result = task_directory_make(box, op, error);
		else if (op->kind == PLAN_LEASE)
			result = take_lease(box, op, error);
		else if (op->kind == PLAN_LAYERS)
			result = make_layers(box, op, error);
		else if (op->kind == PLAN_DUPLICATE)
			result = duplicate(box, op, error);
		else if (op->kind == PLAN_SKELETON)
			result = skeleton_open(plan, op->target, &box->skeleton_fd, error);
		if (result < 0)
			return host_failed(op, error);
	}
	return 0;
}

void host_undo(struct box *box)
{
	for (size_t i = 0; i < box->lease_count; i++)
		give_lease_back(&box->leases[i]);
	free(box->leases);
	box->leases = NULL;
	fd_close(&box->skeleton_fd);
	if (box->is_kept)
		fd_close(&box->task_fd);
	if (box->task_fd < 0)
		return;
	task_directory_leave(box);
	/* not by close(2): copies of the descriptor may live on, and who gets it next locks it */
	(void)flock(box->task_fd, LOCK_UN);
	fd_close(&box->task_fd);
}

int host_init_image(int *ret_fd, struct error *error)
{
	int fd = memfd_create("bawn-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	/* before Linux 6.3 a memfd is executable and the flag unknown */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("bawn-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return error_errno(error, errno, "making the image of process 1 (memfd_create)");
	if (fd_write_all(fd, bawn_init_image, bawn_init_image_size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
		int code = errno;

		(void)close(fd);
		return error_errno(error, code, "filling the image of process 1");
	}
	*ret_fd = fd;
	return 0;
}

/* The user namespace by which the caller's ids appear as the task's ids, as seen by the kernel. */
static int open_idmap(int *ret_fd, struct error *error)
{
	struct process holder = PROCESS_NONE;
	int CLEANUP_FD proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t parent = getpid();
	int result, fd = -1;

	if (proc_fd < 0)
		return error_errno(error, errno, "opening /proc");
	result = namespace_clone(CLONE_NEWUSER, &holder);
	if (result < 0)
		return error_errno(error, result, "making a user namespace for the id map");
	if (result == 0) {
		/* it holds the namespace until its kill, and ends with us should that not come */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		while (getppid() == parent)
			(void)pause();
		_exit(0);
	}
	result = namespace_map(proc_fd, holder.pid, 0, PLAN_ROOT_HOST_ID, 0, PLAN_ROOT_HOST_ID, 0);
	if (result == 0)
		fd = namespace_open(proc_fd, holder.pid, "user");
	if (kill(holder.pid, SIGKILL) < 0) {
		fd_close(&holder.pidfd);
		fd_close(&fd);
		return error_errno(error, errno, "ending the process that held the id map");
	}
	while (waitpid(holder.pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(&holder.pidfd);
	if (result < 0 || fd < 0)
		return error_errno(error, result < 0 ? result : fd, "writing the id map");
	*ret_fd = fd;
	return 0;
}

static int clone_tree(const struct policy *policy, const struct plan_op *op, int idmap_fd,
		      int *ret_tree, struct error *error)
{
	int CLEANUP_FD source = mount_source(op->source, op->device, op->inode);
	int CLEANUP_FD tree = -1;
	int result = source;

	if (result >= 0)
		result = mount_clone(source, &tree);
	if (result < 0)
		return error_errno(error, result, "cloning %s", op->source);
	if (op->flags & PLAN_IDMAP) {
		result = mount_idmap(tree, idmap_fd);
		if (result < 0) {
			error_errno(error, result,
				    "%s: its file system cannot map ids, which a run as root "
				    "needs; use a workspace on ext4, xfs, btrfs or tmpfs, or run "
				    "as an ordinary user",
				    op->source);
			return layer_refused(policy, op, error);
		}
	}
	*ret_tree = TAKE_FD(tree);
	return 0;
}

int host_clone_trees(const struct box_options *options, int **ret_trees, struct error *error)
{
	const struct plan *plan = options->plan;
	int CLEANUP_FD idmap_fd = -1;
	int *trees, result = 0;

	*ret_trees = NULL;
	if (!options->host_root)
		return 0;
	trees = calloc(plan->count * 2 + 1, sizeof(int));
	if (!trees)
		return error_errno(error, ENOMEM, "starting a box");
	for (size_t i = 0; i < plan->count * 2; i++)
		trees[i] = -1;
	for (size_t i = 0; i < plan->count && result == 0; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind != PLAN_BIND && op->kind != PLAN_OVERLAY && op->kind != PLAN_OBJECTS &&
		    op->kind != PLAN_ROOT)
			continue;
		if ((op->flags & PLAN_IDMAP) && idmap_fd < 0)
			result = open_idmap(&idmap_fd, error);
		if (result == 0 && op->source[0])
			result = clone_tree(options->policy, op, idmap_fd, &trees[i], error);
		if (result == 0 && op->upper) {
			const struct plan_op upper = { .source = op->upper };

			/* the upper layer belongs to the task's host id already */
			result = clone_tree(options->policy, &upper, -1, &trees[plan->count + i],
					    error);
		}
		if (result < 0)
			operation_failed(op, error);
	}
	if (result < 0) {
		host_close_trees(plan, trees);
		return result;
	}
	*ret_trees = trees;
	return 0;
}

void host_close_trees(const struct plan *plan, int *trees)
{
	for (size_t i = 0; trees && i < plan->count * 2; i++)
		fd_close(&trees[i]);
	free(trees);
}

int host_map_identity(const struct box *box, const struct plan_op *op, struct error *error)
{
	int result = namespace_map(box->proc_fd, box->init.pid, (uint32_t)op->number,
				   PLAN_ROOT_HOST_ID, (uint32_t)op->flags, PLAN_ROOT_HOST_ID, 0);

	if (result < 0)
		return error_errno(error, result, "writing the id maps of the box");
	return 0;
}
