/*
 * Covering names again.
 *
 * A mount on a name goes when the host renames another object over it, or moves it away. A child
 * of the supervisor then enters the box's mount namespace, from the user namespace that owns it
 * (which nothing in the box is in), and mounts anew. It looks at what stands under the name *then*,
 * and tries again when the host was faster: each later change has an event of its own.
 *
 * A link under a hidden name: nothing can be mounted on a link. Where it leads to something in
 * the same writable tree, that is masked where it lies, as at the start of a task (the content is
 * what was to be hidden). Where it leads to nothing in the view it tells nothing. Where it leads
 * to what another rule shows read-only, to a private area, or to a whole tree of the view, it
 * makes nothing readable that is not so under its own name, and is left alone. Ending the task
 * instead would not hide more, and a task could not be run beside a deployment that uses links.
 * A link under a *protected* name ends the task: the task could replace it. Not so where the name
 * was that of a link at the start (PATH_KIND_LINK): the link itself is pinned again.
 *
 * A git directory that the host put in the place of another is shown read-only from then on: its
 * overlay belonged to the old one.
 */
#include "isolate/internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A tree that answers takes milliseconds. A file system that hangs must not hold us. */
#define MASK_LIMIT_SECONDS 10
/* A host that renames faster than we can mount, this often in a row, is not outrun. */
#define MASK_LIMIT_ATTEMPTS 64

struct mask {
	const struct box *box;
	struct box_cover *covers;
	size_t count;
	struct error *error;
	int root_fd;
	int file_fd, directory_fd, link_fd; /* what covers; link_fd: -1 where it is not used */
	struct stat file, directory, link;
};

static int enter_box(const struct mask *mask)
{
	const struct box *box = mask->box;
	int CLEANUP_FD mounts = namespace_open(box->proc_fd, box->init.pid, "mnt");
	int CLEANUP_FD owner = -1;

	if (mounts < 0)
		return error_errno(mask->error, mounts, "opening the box's mount namespace");
	/* ioctl_nsfs(2): the user namespace whose capabilities count there */
	owner = ioctl(mounts, NS_GET_USERNS);
	if (box->options.host_root && setgroups(0, NULL) < 0)
		return error_errno(mask->error, errno, "dropping supplementary groups");
	if (owner < 0 || setns(owner, CLONE_NEWUSER) < 0)
		return error_errno(mask->error, errno, "joining the box's user namespace");
	if (become_inside(&box->options, mask->error) < 0)
		return mask->error->code;
	if (setns(mounts, CLONE_NEWNS) < 0)
		return error_errno(mask->error, errno, "joining the box's mount namespace");
	return 0;
}

static int open_sources(struct mask *mask)
{
	mask->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mask->root_fd < 0)
		return error_errno(mask->error, errno, "opening the box's root");
	mask->file_fd = mount_open_in(mask->root_fd, PLAN_MASK_FILE, O_PATH);
	mask->directory_fd = mount_open_in(mask->root_fd, PLAN_MASK_DIRECTORY, O_PATH);
	if (mask->file_fd < 0 || mask->directory_fd < 0)
		return error_errno(mask->error,
				   mask->file_fd < 0 ? mask->file_fd : mask->directory_fd,
				   "opening the masks");
	mask->link_fd = mount_open_in(mask->root_fd, PLAN_MASK_LINK, O_PATH | O_NOFOLLOW);
	if (mask->link_fd >= 0 && fstat(mask->link_fd, &mask->link) < 0)
		return error_errno(mask->error, errno, "looking at the masks");
	if (fstat(mask->file_fd, &mask->file) < 0 ||
	    fstat(mask->directory_fd, &mask->directory) < 0)
		return error_errno(mask->error, errno, "looking at the masks");
	return 0;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Mounts a copy of what stands at source_fd on target_fd. -ENOENT: the target lost its name. */
static int cover(int source_fd, unsigned flags, int target_fd)
{
	int CLEANUP_FD tree = -1;
	int result = mount_clone(source_fd, &tree);

	if (result == 0)
		result = mount_restrict(tree, flags);
	return result == 0 ? mount_attach(tree, target_fd) : result;
}

/* Gives 1 when a mask was mounted on the object, 0 when one is there. */
static int mask_object(const struct mask *mask, int target_fd, int file_fd)
{
	struct stat status;
	int result;

	if (fstat(target_fd, &status) < 0)
		return -errno;
	if (is_same(&status, &mask->file) || is_same(&status, &mask->directory) ||
	    (mask->link_fd >= 0 && is_same(&status, &mask->link)))
		return 0;
	/* on a link of the host's own nothing is mounted (mask_behind_link()) */
	if (S_ISLNK(status.st_mode))
		return -ELOOP;
	result = cover(S_ISDIR(status.st_mode) ? mask->directory_fd : file_fd,
		       MOUNT_READ_ONLY | MOUNT_NO_EXEC, target_fd);
	return result < 0 ? result : 1;
}

static bool is_mount(int fd)
{
	struct statx status;

	return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) == 0 &&
	       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Binds the object to itself, so that it cannot be renamed, nor changed where read-only. */
static int pin_object(int target_fd, unsigned flags)
{
	struct statvfs system;
	int result;

	if (fstatvfs(target_fd, &system) < 0)
		return -errno;
	if (is_mount(target_fd) && (!(flags & MOUNT_READ_ONLY) || (system.f_flag & ST_RDONLY)))
		return 0;
	result = cover(target_fd, flags, target_fd);
	return result < 0 ? result : 1;
}

/* The directories between the writable row and the name. One that is missing or a link ends it. */
static int pin_parents(const struct mask *mask, const struct box_cover *cover)
{
	const char *below = path_below(cover->target, cover->root);

	for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - cover->target);
		char path[PATH_LIMIT_BYTES];
		int CLEANUP_FD fd = -1;
		int result;

		if (length >= sizeof(path))
			return -ENAMETOOLONG;
		memcpy(path, cover->target, length);
		path[length] = '\0';
		fd = mount_open_in(mask->root_fd, path, O_PATH | O_DIRECTORY);
		if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
			return 0;
		result = fd < 0 ? fd : pin_object(fd, 0);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Where an object of the box lies, in the box's own words; false when it has no such place. */
static bool place_of(const struct mask *mask, int fd, char path[static PATH_LIMIT_BYTES])
{
	char name[32];
	ssize_t length;

	(void)snprintf(name, sizeof(name), "self/fd/%d", fd);
	length = readlinkat(mask->box->proc_fd, name, path, PATH_LIMIT_BYTES - 1);
	if (length <= 0)
		return false;
	path[length] = '\0';
	return path_is_clean(path);
}

/* True for a place that is written in place and holds no other row of the view. */
static bool is_maskable(const struct mask *mask, const char *path)
{
	const struct view *view = &mask->box->options.policy->view;
	const struct view_path *row = view_lookup(view, path);

	if (!row || row->class != PATH_WRITE)
		return false;
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class != PATH_HIDE && path_is_under(view->paths[i].target, path))
			return false;
	return true;
}

/* A link stands under a hidden name, or on the way to it. */
static int mask_behind_link(const struct mask *mask, const char *target)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int CLEANUP_FD fd = (int)syscall(SYS_openat2, mask->root_fd, target, &how, sizeof(how));
	char path[PATH_LIMIT_BYTES];

	/* a link into proc's own, or to nothing */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	if (!place_of(mask, fd, path) || !is_maskable(mask, path))
		return 0;
	return mask_object(mask, fd, mask->file_fd);
}

/*
 * A path that was shown read-only inside of a writable tree can be made read-only again where it
 * is the host's own at its place; what was an overlay (a cache, or with names hidden in it) cannot
 * be made again.
 */
static bool is_pinnable(const struct mask *mask, const struct box_cover *cover)
{
	const struct view *view = &mask->box->options.policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (row->class == PATH_HIDE && path_is_under(row->target, cover->target))
			return false;
		if (row->class == cover->class && strcmp(row->target, cover->target) == 0 &&
		    strcmp(row->source, row->target) != 0)
			return false;
	}
	return cover->class == PATH_READ;
}

static bool is_link(const struct mask *mask, const struct box_cover *cover)
{
	const struct view *view = &mask->box->options.policy->view;

	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].kind == PATH_KIND_LINK &&
		    strcmp(view->paths[i].target, cover->target) == 0)
			return true;
	return false;
}

static bool is_kept(const struct mask *mask, const struct box_cover *cover)
{
	return cover->class == PATH_PROTECT || cover->class == PATH_GIT || is_pinnable(mask, cover);
}

/* 1: covered now, 0: nothing to cover, -EAGAIN: the host was faster. */
static int cover_once(const struct mask *mask, const struct box_cover *cover)
{
	int result = pin_parents(mask, cover);
	int CLEANUP_FD fd = -1;

	if (result < 0)
		return result == -ENOENT ? -EAGAIN : result;
	fd = mount_open_in(mask->root_fd, cover->target,
			   is_link(mask, cover) ? O_PATH | O_NOFOLLOW : O_PATH);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd >= 0 && cover->class == PATH_HIDE)
		result =
			mask_object(mask, fd, is_link(mask, cover) ? mask->link_fd : mask->file_fd);
	else if (fd < 0 && fd != -ELOOP)
		return fd;
	else if (fd < 0)
		result = fd;
	else if (is_kept(mask, cover))
		result = pin_object(fd, MOUNT_READ_ONLY);
	else if (!is_mount(fd))
		result = -ESTALE;
	if (result == -ELOOP && cover->class == PATH_HIDE)
		result = mask_behind_link(mask, cover->target);
	return result == -ENOENT ? -EAGAIN : result;
}

/* What the host changed below an overlay is seen by look-ups that are made anew. */
static int look_anew(const struct mask *mask, const struct box_cover *cover)
{
	int CLEANUP_FD fd = mount_open_in(mask->root_fd, cover->target, O_PATH | O_DIRECTORY);
	int result = fd < 0 ? fd : mount_look_anew(fd);

	return result < 0 ? error_errno(mask->error, result, "%s", cover->target) : 0;
}

static int cover_one(const struct mask *mask, struct box_cover *cover)
{
	int result = -EAGAIN;

	if (cover->class == PATH_OBJECTS)
		return look_anew(mask, cover);
	for (unsigned i = 0; i < MASK_LIMIT_ATTEMPTS && result == -EAGAIN; i++)
		result = cover_once(mask, cover);
	if (result == -ELOOP)
		return error_set(mask->error, ELOOP,
				 "%s is protected, and was replaced by a link, which cannot be",
				 cover->target);
	if (result == -ESTALE)
		return error_set(mask->error, ESTALE,
				 "%s was replaced on the host, and what is hidden or kept in it "
				 "cannot be shown so again",
				 cover->target);
	if (result < 0)
		return error_errno(mask->error, result, "covering %s again", cover->target);
	cover->covered = result > 0;
	cover->covered_ns = clock_monotonic_ns();
	return 0;
}

static int mask_run(void *argument)
{
	static const struct itimerval limit = { .it_value = { .tv_sec = MASK_LIMIT_SECONDS } };
	struct mask *mask = argument;
	sigset_t alarm_only;
	int result = 0;

	(void)signal(SIGALRM, SIG_DFL);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	/* our memory is the supervisor's */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    sigprocmask(SIG_UNBLOCK, &alarm_only, NULL) < 0 ||
	    setitimer(ITIMER_REAL, &limit, NULL) < 0)
		result = error_errno(mask->error, errno, "preparing");
	if (result == 0)
		result = enter_box(mask);
	if (result == 0)
		result = open_sources(mask);
	for (size_t i = 0; i < mask->count && result == 0; i++)
		result = cover_one(mask, &mask->covers[i]);
	_exit(result < 0);
}

int box_mask(struct box *box, struct box_cover *covers, size_t count, struct error *error)
{
	static struct namespace_stack stack;
	struct mask mask = { .box = box, .covers = covers, .count = count, .error = error };
	struct process child = PROCESS_NONE;
	int result, status = 0;

	result = namespace_vfork(0, mask_run, &mask, &stack, &child);
	/* as box.c: it took our dumpable flag with it, and later children need it */
	for (int i = 0; i < 2 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0; i++)
		;
	if (result < 0)
		return error_errno(error, result, "starting the process that covers names");
	while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
		;
	fd_close(&child.pidfd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return error_set(error, ETIMEDOUT,
				 "covering names again was not done within %d s (signal %d)",
				 MASK_LIMIT_SECONDS, WTERMSIG(status));
	return error->code < 0 ? error->code : error_set(error, EPROTO, "covering names again");
}
