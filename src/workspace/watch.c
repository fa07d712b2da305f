/*
 * Theory of operation. Directories are known by their path below the root of a writable tree,
 * which is held open from the start, and each is opened beneath it without following a link. An
 * event names a directory (by watch descriptor) and a name in it: either one of the names that
 * are looked for, or one of the known directories, which was then made, moved or removed; that
 * directory and all below it are then watched anew and their names taken as changed. Parents are
 * watched before their children are looked for, so that nothing falls in between. When the
 * kernel's queue overflowed, everything is watched anew and taken as changed.
 */
#include "workspace/watch.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Some hundred events; a task that makes more does not keep the supervisor here. */
#define BATCH_BYTES (16 * 1024)

#define NO_PARENT SIZE_MAX

struct watch_root {
	const char *target;
	int fd; /* O_PATH */
};

struct watch_directory {
	const char *target; /* inside of the box */
	const char *name;
	size_t root, parent;
	int descriptor; /* inotify's; -1 while it does not exist */
	bool is_stale;	/* to be opened anew */
};

struct watch_name {
	size_t row, directory;
	const char *name;
	bool is_present, is_changed;
	enum watch_event event;
};

static bool is_mount(const struct view_path *row)
{
	return row->class == PATH_READ || row->class == PATH_WRITE || row->class == PATH_CACHE ||
	       row->class == PATH_DEVICE || row->class == PATH_COPY || row->class == PATH_GIT ||
	       row->class == PATH_STAGE || row->class == PATH_PROGRAM;
}

static bool is_hidden(const struct view *view, const struct view_path *path)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE && &view->paths[i] != path &&
		    strcmp(view->paths[i].target, path->target) != 0 &&
		    path_is_under(path->target, view->paths[i].target))
			return true;
	return false;
}

/* The mounted row that a row lies in, itself excepted. */
static const struct view_path *mount_above(const struct view *view, const struct view_path *path)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (row != path && is_mount(row) && strcmp(row->target, path->target) != 0 &&
		    path_is_under(path->target, row->target) &&
		    (!best || strlen(row->target) >= strlen(best->target)))
			best = row;
	}
	return best;
}

/* A writable row that shows again what a writable row above it shows has no mount of its own. */
static bool is_redundant(const struct view_path *row, const struct view_path *above)
{
	return above && above->class == PATH_WRITE && path_is_under(row->source, above->source) &&
	       strcmp(path_below(row->target, above->target),
		      path_below(row->source, above->source)) == 0;
}

/* The row by whose mount a path is written in place; NULL where it is not. */
static const struct view_path *writable_above(const struct view *view, const struct view_path *path)
{
	const struct view_path *row = mount_above(view, path);

	while (row && row->class == PATH_WRITE) {
		const struct view_path *above = mount_above(view, row);

		if (!is_redundant(row, above))
			return row;
		row = above;
	}
	return NULL;
}

/* The writable row in which a row's name must be watched; NULL where it need not be. */
static const struct view_path *watched_in(const struct view *view, const struct view_path *path)
{
	if (path->class == PATH_WRITE || path->class == PATH_DEVICE || path->class == PATH_LINK ||
	    path->class == PATH_FILE)
		return NULL;
	return is_hidden(view, path) ? NULL : writable_above(view, path);
}

static int find_root(struct watch *watch, const struct view_path *row, size_t *ret_root,
		     struct error *error)
{
	struct watch_root *roots;
	int fd;

	for (size_t i = 0; i < watch->root_count; i++) {
		if (strcmp(watch->roots[i].target, row->target) == 0) {
			*ret_root = i;
			return 0;
		}
	}
	roots = arena_push(&watch->arena, watch->roots, watch->root_count, sizeof(*roots));
	if (!roots)
		return error_errno(error, ENOMEM, "watching %s", row->target);
	watch->roots = roots;
	fd = mount_source(row->source, row->device, row->inode);
	if (fd < 0)
		return error_errno(error, fd, "opening %s to watch it", row->source);
	roots[watch->root_count] =
		(struct watch_root){ .target = arena_copy(&watch->arena, row->target), .fd = fd };
	*ret_root = watch->root_count++;
	return 0;
}

static bool find_directory(const struct watch *watch, const char *target, size_t length,
			   size_t *ret_directory)
{
	/* rows of one directory follow one another */
	for (size_t i = watch->directory_count; i > 0; i--) {
		const char *known = watch->directories[i - 1].target;

		if (strncmp(known, target, length) == 0 && known[length] == '\0') {
			*ret_directory = i - 1;
			return true;
		}
	}
	return false;
}

static int add_directory(struct watch *watch, size_t root, size_t parent, const char *target,
			 size_t length, size_t *ret_directory, struct error *error)
{
	struct watch_directory *grown;
	char *copy;

	if (find_directory(watch, target, length, ret_directory))
		return 0;
	if (watch->directory_count == WATCH_LIMIT_DIRECTORIES)
		return error_set(error, E2BIG,
				 "hidden and protected names lie in more than %u directories that "
				 "are written in place; hide a directory instead",
				 WATCH_LIMIT_DIRECTORIES);
	copy = arena_copy_bytes(&watch->arena, target, length);
	grown = arena_push(&watch->arena, watch->directories, watch->directory_count,
			   sizeof(*grown));
	if (!copy || !grown)
		return error_errno(error, ENOMEM, "watching %s", target);
	watch->directories = grown;
	grown[watch->directory_count] = (struct watch_directory){ .target = copy,
								  .name = path_name(copy),
								  .root = root,
								  .parent = parent,
								  .descriptor = -1,
								  .is_stale = true };
	*ret_directory = watch->directory_count++;
	return 0;
}

static int add_name(struct watch *watch, const struct view *view, size_t row,
		    const struct view_path *above, struct error *error)
{
	const struct view_path *path = &view->paths[row];
	char *target = arena_copy(&watch->arena, path->target);
	size_t root = 0, directory = 0;
	struct watch_name *grown;
	const char *below;
	int result;

	if (!target)
		return error_errno(error, ENOMEM, "watching %s", path->target);
	result = find_root(watch, above, &root, error);
	if (result == 0)
		result = add_directory(watch, root, NO_PARENT, target, strlen(above->target),
				       &directory, error);
	below = path_below(target, above->target);
	for (const char *slash = strchr(below, '/'); slash && result == 0;
	     slash = strchr(slash + 1, '/'))
		result = add_directory(watch, root, directory, target, (size_t)(slash - target),
				       &directory, error);
	if (result < 0)
		return result;
	grown = arena_push(&watch->arena, watch->names, watch->name_count, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "watching %s", path->target);
	watch->names = grown;
	grown[watch->name_count++] =
		(struct watch_name){ .row = row,
				     .directory = directory,
				     .name = path_name(target),
				     .is_present = path->kind != PATH_KIND_MISSING };
	return 0;
}

static int open_directory(const struct watch *watch, const struct watch_directory *directory)
{
	const struct watch_root *root = &watch->roots[directory->root];
	const char *below = path_below(directory->target, root->target);

	return below[0] ? mount_open_in(root->fd, below, O_PATH | O_DIRECTORY) :
			  fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
}

static int watch_failed(const struct watch_directory *directory, int code, struct error *error)
{
	if (code == -EACCES)
		return error_set(error, code,
				 "watching %s, which holds a hidden or protected name: the "
				 "directory must be readable",
				 directory->target);
	if (code == -ENOSPC)
		return error_set(error, code,
				 "watching %s: the user's inotify watches are used up; raise "
				 "fs.inotify.max_user_watches",
				 directory->target);
	return error_errno(error, code, "watching %s", directory->target);
}

/* Lets go of a directory's watch, unless the same object is watched under another path. */
static void forget(struct watch *watch, struct watch_directory *directory)
{
	int descriptor = directory->descriptor;

	directory->descriptor = -1;
	if (descriptor < 0)
		return;
	for (size_t i = 0; i < watch->directory_count; i++)
		if (watch->directories[i].descriptor == descriptor)
			return;
	(void)inotify_rm_watch(watch->fd, descriptor);
}

static int begin(struct watch *watch, struct watch_directory *directory, struct error *error)
{
	int CLEANUP_FD fd = open_directory(watch, directory);
	char path[32];

	/* not there, or no directory: its parent's watch tells when that changes */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return watch_failed(directory, fd, error);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	directory->descriptor = inotify_add_watch(
		watch->fd, path, IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR);
	return directory->descriptor < 0 ? watch_failed(directory, -errno, error) : 0;
}

static bool is_there(const struct watch *watch, const struct watch_name *name)
{
	int CLEANUP_FD fd = open_directory(watch, &watch->directories[name->directory]);
	struct stat status;

	return fd >= 0 && fstatat(fd, name->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void note(struct watch_name *name, bool is_present)
{
	if (!is_present && !name->is_present)
		return;
	name->event = !is_present      ? WATCH_REMOVED :
		      name->is_present ? WATCH_REPLACED :
					 WATCH_CREATED;
	name->is_present = is_present;
	name->is_changed = true;
}

/* Watches all stale directories anew; what lies in them may have changed. */
static int renew(struct watch *watch, struct error *error)
{
	for (size_t i = 0; i < watch->directory_count; i++) {
		struct watch_directory *directory = &watch->directories[i];
		int result;

		if (directory->parent != NO_PARENT &&
		    watch->directories[directory->parent].is_stale)
			directory->is_stale = true;
		if (!directory->is_stale)
			continue;
		forget(watch, directory);
		result = begin(watch, directory, error);
		if (result < 0)
			return result;
	}
	for (size_t i = 0; i < watch->name_count; i++)
		if (watch->directories[watch->names[i].directory].is_stale)
			note(&watch->names[i], is_there(watch, &watch->names[i]));
	for (size_t i = 0; i < watch->directory_count; i++)
		watch->directories[i].is_stale = false;
	return 0;
}

int watch_open(const struct view *view, struct watch *ret, struct error *error)
{
	struct watch watch = WATCH_NONE;
	int result = 0;

	for (size_t i = 0; i < view->count && result == 0; i++) {
		const struct view_path *above = watched_in(view, &view->paths[i]);

		if (above)
			result = add_name(&watch, view, i, above, error);
	}
	if (result == 0 && watch.name_count) {
		watch.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (watch.fd < 0)
			result = error_errno(error, errno,
					     "watching hidden names (inotify; see "
					     "fs.inotify.max_user_instances)");
	}
	if (result == 0)
		result = renew(&watch, error);
	if (result < 0) {
		watch_close(&watch);
		return result;
	}
	/* what is there as it was when the view was made is the plan's to cover */
	for (size_t i = 0; i < watch.name_count; i++)
		if (watch.names[i].event != WATCH_CREATED)
			watch.names[i].is_changed = false;
	*ret = watch;
	return 0;
}

static void take_event(struct watch *watch, const struct inotify_event *event, const char *name)
{
	bool is_present = event->mask & (IN_CREATE | IN_MOVED_TO);

	if (event->mask & IN_Q_OVERFLOW) {
		for (size_t i = 0; i < watch->directory_count; i++)
			watch->directories[i].is_stale = true;
		return;
	}
	for (size_t i = 0; i < watch->directory_count; i++) {
		struct watch_directory *directory = &watch->directories[i];

		if (directory->descriptor == event->wd && (event->mask & IN_IGNORED))
			directory->descriptor = -1;
		if (directory->parent != NO_PARENT && strcmp(directory->name, name) == 0 &&
		    watch->directories[directory->parent].descriptor == event->wd)
			directory->is_stale = true;
	}
	for (size_t i = 0; i < watch->name_count; i++) {
		struct watch_name *known = &watch->names[i];

		if (watch->directories[known->directory].descriptor == event->wd &&
		    strcmp(known->name, name) == 0)
			note(known, is_present);
	}
}

int watch_read(struct watch *watch, struct error *error)
{
	_Alignas(struct inotify_event) char bytes[BATCH_BYTES];
	ssize_t count = read(watch->fd, bytes, sizeof(bytes));
	size_t at = 0;

	if (count < 0)
		return errno == EAGAIN || errno == EINTR ?
			       0 :
			       error_errno(error, errno, "reading what happened to hidden names");
	while (at + sizeof(struct inotify_event) <= (size_t)count) {
		struct inotify_event event;

		memcpy(&event, bytes + at, sizeof(event));
		at += sizeof(event);
		if (event.len > (size_t)count - at)
			break;
		/* the kernel pads names with NUL */
		take_event(watch, &event, event.len ? bytes + at : "");
		at += event.len;
	}
	return renew(watch, error);
}

bool watch_next(struct watch *watch, struct watch_change *ret_change)
{
	for (; watch->next < watch->name_count; watch->next++) {
		struct watch_name *name = &watch->names[watch->next];

		if (!name->is_changed)
			continue;
		name->is_changed = false;
		*ret_change = (struct watch_change){
			.row = name->row,
			.event = name->event,
			.root = watch->roots[watch->directories[name->directory].root].target
		};
		return true;
	}
	watch->next = 0;
	return false;
}

void watch_close(struct watch *watch)
{
	for (size_t i = 0; i < watch->root_count; i++)
		fd_close(&watch->roots[i].fd);
	fd_close(&watch->fd);
	arena_free(&watch->arena);
	*watch = WATCH_NONE;
}
