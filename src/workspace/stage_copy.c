#include "workspace/stage_copy.h"

#include "base/clock.h"
#include "base/content.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/walk.h"
#include "ipc/codec.h"
#include "plan/plan.h"
#include "workspace/mirror.h"
#include "workspace/stage_copy_internal.h"
#include "workspace/stage_copy_links.h"
#include "workspace/stage_internal.h"
#include "workspace/tree_picture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Of some thousand paths. */
#define PARTS_LIMIT_BYTES (1024u * 1024)

struct copying {
	const struct stage_copy *order;
	struct arena *arena;
	struct stage_copied *copied;
	struct mirror mirror;
	struct walk walk;
	struct stage_copy_links links;
	uint64_t deadline_ns, left_bytes;
	char *buffer; /* of attributes */
	struct error *error;
};

static int by_path(const void *left, const void *right)
{
	return strcmp(((const struct stage_copy_hidden *)left)->path,
		      ((const struct stage_copy_hidden *)right)->path);
}

static const struct stage_copy_hidden *find_hidden(const struct copying *copying, const char *path)
{
	const struct stage_copy_hidden wanted = { .path = path };

	return copying->order->hidden_count ?
		       bsearch(&wanted, copying->order->hidden, copying->order->hidden_count,
			       sizeof(wanted), by_path) :
		       NULL;
}

static int too_much(struct copying *copying, const char *what)
{
	return error_set(copying->error, EFBIG, "it is not copied instead: %s", what);
}

static int leave_out(struct copying *copying, const char *name)
{
	struct stage_copied *copied = copying->copied;
	const char *path = mirror_path(&copying->mirror, name);

	if (copied->left_count == STAGE_COPY_LIMIT_LEFT)
		return too_much(copying, "more than 1,024 of its objects are no files, or cannot "
					 "be read");
	copied->left[copied->left_count] = path ? arena_copy(copying->arena, path) : NULL;
	return copied->left[copied->left_count++] ? 0 : -ENOMEM;
}

/* As far as the other file system takes them; marks of an overlay are that of another one. */
static void copy_attributes(const struct copying *copying, int from, int to)
{
	char *names = copying->buffer, *value = names + STAGE_NAMES_BYTES;
	ssize_t length = flistxattr(from, names, STAGE_NAMES_BYTES);

	for (const char *name = names; length > 0 && name < names + length;
	     name += strlen(name) + 1) {
		ssize_t bytes;

		if (strncmp(name, "user.overlay.", 13) == 0 ||
		    (strncmp(name, "user.", 5) != 0 && strncmp(name, "system.posix_acl_", 17) != 0))
			continue;
		bytes = fgetxattr(from, name, value, STAGE_VALUE_BYTES);
		if (bytes >= 0)
			(void)fsetxattr(to, name, value, (size_t)bytes, 0);
	}
}

/* ---- one object ---- */

/* The owner first: a change of that takes permissions away. No set-id bits. */
static int give_state(const struct copying *copying, int fd, const struct stat *status)
{
	const struct timespec times[2] = { status->st_atim, status->st_mtim };

	if (copying->order->gives_owners && fchown(fd, status->st_uid, status->st_gid) < 0)
		return -errno;
	return fchmod(fd, status->st_mode & 0777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

static int copy_content(struct copying *copying, int source, int target, off_t size)
{
	uint64_t before = copying->left_bytes;
	int result = content_copy_within(source, target, size, &copying->left_bytes);

	if (result == -EFBIG)
		return too_much(copying, "it has more than 1 GiB");
	copying->copied->bytes += before - copying->left_bytes;
	copying->copied->shared += result > 0;
	return result < 0 ? result : 0;
}

/* A file of another's, or one whose mode closes it, is not the task's to read. */
static int copy_file(struct copying *copying, int target_fd, const struct stat *seen)
{
	const char *name = copying->walk.name;
	int CLEANUP_FD source = stage_open_file(copying->walk.fd, name);
	int CLEANUP_FD target = -1;
	struct stat status;
	int result;

	if (source < 0 || fstat(source, &status) < 0)
		return source < 0 ? source : -errno;
	if (status.st_ino != seen->st_ino || status.st_dev != seen->st_dev)
		return -ESTALE;
	target =
		openat(target_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (target < 0)
		return -errno;
	result = copy_content(copying, source, target, status.st_size);
	if (result < 0)
		return result;
	copy_attributes(copying, source, target);
	return give_state(copying, target, &status);
}

static int copy_link(const struct copying *copying, int target_fd, const struct stat *status)
{
	const char *name = copying->walk.name;
	const struct timespec times[2] = { status->st_atim, status->st_mtim };
	char text[PATH_MAX];
	ssize_t length = readlinkat(copying->walk.fd, name, text, sizeof(text));

	if (length < 0 || (size_t)length == sizeof(text))
		return length < 0 ? -errno : -ENAMETOOLONG;
	text[length] = '\0';
	if (symlinkat(text, target_fd, name) < 0)
		return -errno;
	if (copying->order->gives_owners &&
	    fchownat(target_fd, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)utimensat(target_fd, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int copy_fifo(const struct copying *copying, int target_fd, const struct stat *status)
{
	const char *name = copying->walk.name;

	if (mkfifoat(target_fd, name, 0600) < 0)
		return -errno;
	if (copying->order->gives_owners &&
	    fchownat(target_fd, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchmodat(target_fd, name, status->st_mode & 0777, 0) < 0 ? -errno : 0;
}

/* -EACCES: it is left out. */
static int copy_object(struct copying *copying, int target_fd, const struct stat *status)
{
	const char *other = NULL;
	int result;

	if (status->st_nlink > 1 && !S_ISDIR(status->st_mode))
		other = stage_copy_links_find(&copying->links, status->st_dev, status->st_ino);
	/* where the other file system takes fewer, one more file has the names that follow */
	if (other) {
		result = linkat(copying->mirror.root_fd, other, target_fd, copying->walk.name, 0) <
					 0 ?
				 -errno :
				 0;
		if (result != -EMLINK)
			return result;
	}
	switch (status->st_mode & S_IFMT) {
	case S_IFREG:
		result = copy_file(copying, target_fd, status);
		break;
	case S_IFLNK:
		result = copy_link(copying, target_fd, status);
		break;
	case S_IFIFO:
		result = copy_fifo(copying, target_fd, status);
		break;
	default:
		return -EACCES;
	}
	if (result == 0 && status->st_nlink > 1)
		result = stage_copy_links_add(&copying->links, status->st_dev, status->st_ino,
					      mirror_path(&copying->mirror, copying->walk.name));
	return result;
}

/* ---- the walk ---- */

static int keep_within(struct copying *copying)
{
	if (copying->copied->names++ >= STAGE_COPY_LIMIT_NAMES)
		return too_much(copying, "it has more than 100,000 files and directories");
	if (clock_monotonic_ns() > copying->deadline_ns)
		return too_much(copying, "copying it takes more than 60 seconds");
	return 0;
}

/*
 * One that came after the list of mounts was looked through. Devices tell nothing: of an overlay
 * each layer may have its own.
 */
static bool is_mount(int fd, const char *name)
{
	struct statx status;

	return statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &status) == 0 &&
	       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int make_masked(int target_fd, const char *name)
{
	int CLEANUP_FD fd =
		openat(target_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : 0;
}

static int failed(struct copying *copying, int code, const char *name)
{
	const char *path = mirror_path(&copying->mirror, name);

	/* with the words of who found it */
	if (code == -EFBIG)
		return code;
	return error_errno(copying->error, code, "copying %.300s/%.100s", copying->order->workspace,
			   path ? path : "");
}

/* True for what is none any more, as if it had never been looked at. */
static bool is_gone(int code)
{
	return code == -ENOENT || code == -ESTALE || code == -ELOOP || code == -ENOTDIR;
}

static int copy_name(struct copying *copying)
{
	struct walk *walk = &copying->walk;
	const char *path = mirror_path(&copying->mirror, walk->name);
	const struct stage_copy_hidden *hidden = path ? find_hidden(copying, path) : NULL;
	struct stat status;
	int target_fd, result = path ? keep_within(copying) : -ENOMEM;

	if (result < 0)
		return failed(copying, result, walk->name);
	target_fd = mirror_make(&copying->mirror);
	if (target_fd < 0)
		return failed(copying, target_fd, walk->name);
	if (hidden) {
		result = hidden->has_mask ? make_masked(target_fd, walk->name) : 0;
		return result < 0 ? failed(copying, result, walk->name) : 0;
	}
	if (fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(copying, -errno, walk->name);
	if (is_mount(walk->fd, walk->name))
		return leave_out(copying, walk->name);
	if (S_ISDIR(status.st_mode)) {
		/* one that is closed to the caller has a place, and nothing in it */
		result = mkdirat(target_fd, walk->name, status.st_mode & 0777) < 0 ? -errno : 0;
		if (result == 0)
			result = faccessat(walk->fd, walk->name, R_OK | X_OK, AT_EACCESS) < 0 ?
					 -errno :
					 0;
		if (result == 0)
			walk_descend(walk, 0);
	} else {
		result = copy_object(copying, target_fd, &status);
	}
	if (result == -EACCES)
		return leave_out(copying, walk->name);
	return result < 0 && !is_gone(result) ? failed(copying, result, walk->name) : 0;
}

static int enter(struct copying *copying)
{
	struct walk *walk = &copying->walk;
	struct stat status;
	int result = fstat(walk->fd, &status) < 0 ? -errno : 0;

	if (result == 0) {
		/* what a new file in it has for its group is no right of its own */
		status.st_mode &= ~(mode_t)S_ISUID;
		result = mirror_enter(&copying->mirror, walk->depth, walk->name, &status);
	}
	if (result == 0)
		result = mirror_make(&copying->mirror);
	if (result < 0)
		return failed(copying, result, "");
	copy_attributes(copying, walk->fd, result);
	return 0;
}

static int copy_tree(struct copying *copying)
{
	struct walk *walk = &copying->walk;
	enum walk_event event;
	int result = 0;

	while (result == 0 && (event = walk_next(walk)) != WALK_END)
		if (event == WALK_ENTER)
			result = enter(copying);
		else if (event == WALK_NAME)
			result = copy_name(copying);
	if (result == 0 && walk->code < 0)
		result = failed(copying, walk->code, "");
	if (result == 0) {
		result = mirror_finish(&copying->mirror);
		if (result < 0)
			failed(copying, result, "");
	}
	return result;
}

/* ---- before it ---- */

/* What the copy does not look into. */
static bool is_shut(const struct copying *copying, const struct walk *walk, struct arena *arena)
{
	const char *path = NULL;

	if (copying->order->hidden_count) {
		arena_reset(arena);
		path = walk_path(walk, walk->name, PATH_MAX, arena);
	}
	return (path && find_hidden(copying, path)) || is_mount(walk->fd, walk->name);
}

/* One that has too many names is refused at once, not when so many of them have been copied. */
static int count_names(struct copying *copying)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	int result = 0;

	walk_begin(&walk,
		   openat(copying->order->workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		   0);
	walk.leaves_modes = true;
	while (result == 0 && (event = walk_next(&walk)) != WALK_END) {
		if (event != WALK_NAME)
			continue;
		result = keep_within(copying);
		if (result == 0 && walk.type == DT_DIR && !is_shut(copying, &walk, &arena))
			walk_descend(&walk, 0);
	}
	/* what stopped it otherwise stops the copy, which has the words for it */
	copying->copied->names = 0;
	return result;
}

/* ---- what it looks like before anything of the task has run ---- */

/* A change within the tick of the clock of files in which it was made would be none. */
static void let_clock_go_on(void)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	struct timespec from, now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &from);
	do {
		(void)nanosleep(&pause, NULL);
		(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == from.tv_sec && now.tv_nsec == from.tv_nsec);
}

static void note_directory(struct tree_picture *picture, const struct walk *walk)
{
	struct stat status;
	char name[24];

	if (fstat(walk->fd, &status) < 0) {
		picture->code = -errno;
		return;
	}
	/* found by its inode, and by no path */
	(void)snprintf(name, sizeof(name), "%ju", (uintmax_t)status.st_ino);
	tree_picture_enter(picture, name, &status, 0);
}

static int take_picture(int copy_fd, struct tree_picture *picture)
{
	struct walk CLEANUP_WALK walk;
	enum walk_event event;

	walk_begin(&walk, fcntl(copy_fd, F_DUPFD_CLOEXEC, 0), 0);
	/* what is closed has nothing in it: see copy_name() */
	walk.leaves_modes = true;
	while (picture->code == 0 && (event = walk_next(&walk)) != WALK_END) {
		struct stat status;

		if (event == WALK_ENTER)
			note_directory(picture, &walk);
		if (event != WALK_NAME)
			continue;
		if (fstatat(walk.fd, walk.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		tree_picture_add(picture, walk.name, &status, 0);
		if (S_ISDIR(status.st_mode))
			walk_descend(&walk, 0);
	}
	return picture->code ? picture->code : walk.code;
}

static int keep_picture(const struct stage_copy *order, int copy_fd, struct error *error)
{
	struct tree_picture picture = { 0 };
	int result = take_picture(copy_fd, &picture);

	if (result == 0)
		result = tree_picture_save(&picture, order->workspace, order->stage_fd,
					   PLAN_STAGE_SEEN);
	tree_picture_free(&picture);
	if (result < 0)
		return error_errno(error, result, "keeping what the copy of the workspace is");
	let_clock_go_on();
	return 0;
}

/* ---- the git directories in it ---- */

static int keep_parts(const struct stage_copy *order, struct error *error)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	int CLEANUP_FD fd = fd_open_own(order->stage_fd, PLAN_STAGE_PARTS, O_WRONLY | O_TRUNC);
	int result = fd < 0 ? fd : 0;

	codec_put_u32(&buffer, (uint32_t)order->part_count);
	for (size_t i = 0; i < order->part_count; i++) {
		codec_put_string(&buffer, order->parts[i].below);
		codec_put_u32(&buffer, order->parts[i].layer);
	}
	if (result == 0)
		result = buffer.failed ? -ENOMEM : fd_write_all(fd, buffer.data, buffer.length);
	return result < 0 ? error_errno(error, result, "keeping which git directories it has") : 0;
}

int stage_copy_parts(int stage_fd, struct arena *arena, struct stage_part **ret_parts,
		     size_t *ret_count)
{
	int CLEANUP_FD fd = openat(stage_fd, PLAN_STAGE_PARTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *bytes = arena_allocate(arena, PARTS_LIMIT_BYTES);
	ssize_t length = fd < 0 ? -errno :
			 bytes	? fd_read_all(fd, bytes, PARTS_LIMIT_BYTES) :
				  -ENOMEM;
	struct codec_cursor cursor;
	struct stage_part *parts;
	size_t count;

	if (length < 0)
		return (int)length;
	codec_begin(&cursor, bytes, (size_t)length, arena);
	count = codec_count(&cursor, STAGE_COPY_LIMIT_PARTS, 8);
	parts = codec_array(&cursor, count, sizeof(*parts));
	for (size_t i = 0; parts && i < count; i++) {
		parts[i].below = codec_string(&cursor, PATH_MAX);
		parts[i].layer = codec_u32(&cursor);
	}
	*ret_parts = parts;
	*ret_count = count;
	return codec_end(&cursor);
}

static int open_both(struct copying *copying, int copy_fd, struct error *error)
{
	const struct stage_copy *order = copying->order;
	int source = openat(order->workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (source < 0)
		return error_errno(error, errno, "reading %s", order->workspace);
	walk_begin(&copying->walk, source, 0);
	copying->walk.leaves_modes = true;
	mirror_begin(&copying->mirror, fcntl(copy_fd, F_DUPFD_CLOEXEC, 0));
	copying->mirror.root_fd = copy_fd;
	copying->mirror.gives_owners = order->gives_owners;
	return 0;
}

int stage_copy_make(const struct stage_copy *order, struct arena *arena,
		    struct stage_copied *ret_copied, struct error *error)
{
	int CLEANUP_FD copy_fd = openat(order->stage_fd, PLAN_STAGE_COPY,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stage_copied copied = {
		.left = arena_array(arena, STAGE_COPY_LIMIT_LEFT, sizeof(*copied.left)),
	};
	struct copying copying = { .order = order,
				   .arena = arena,
				   .copied = &copied,
				   .mirror = MIRROR_NONE,
				   .left_bytes = STAGE_COPY_LIMIT_BYTES,
				   .deadline_ns = clock_monotonic_ns() + STAGE_COPY_LIMIT_NS,
				   .buffer = malloc(STAGE_NAMES_BYTES + STAGE_VALUE_BYTES),
				   .error = error };
	int result;

	if (copy_fd < 0 || !copied.left || !copying.buffer) {
		free(copying.buffer);
		return error_errno(error, copy_fd < 0 ? errno : ENOMEM, "copying the workspace");
	}
	if (order->hidden_count)
		qsort(order->hidden, order->hidden_count, sizeof(*order->hidden), by_path);
	result = count_names(&copying);
	if (result == 0)
		result = open_both(&copying, copy_fd, error);
	if (result == 0) {
		result = copy_tree(&copying);
		walk_end(&copying.walk);
	}
	mirror_end(&copying.mirror);
	stage_copy_links_free(&copying.links);
	free(copying.buffer);
	if (result == 0)
		result = keep_parts(order, error);
	if (result == 0)
		result = keep_picture(order, copy_fd, error);
	if (result == 0)
		*ret_copied = copied;
	return result;
}
