#include "workspace/sweep.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/sweep_internal.h"
#include "workspace/sweep_name.h"
#include "workspace/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A directory that other tasks move about is looked through again this often. */
#define ROUNDS 3
/* Other objects that come under a name while it is being held. */
#define TRIES 4
/* Names for what cannot be held, in one directory. */
#define DISARM_NAMES 16
#define DISARM_BYTES 48

#define SECOND_NS INT64_C(1000000000)

/* --- the old one is put back */

static bool is_content(int fd, const char *name, const struct sweep_copy *copy, struct arena *arena)
{
	int CLEANUP_FD file = -1;
	char *bytes;
	ssize_t length;

	file = fd_open_beneath(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	bytes = file < 0 ? NULL : arena_allocate(arena, copy->length + 1);
	if (!bytes)
		return false;
	length = fd_read_all(file, bytes, copy->length + 1);
	return length >= 0 && (size_t)length == copy->length &&
	       memcmp(bytes, copy->bytes, copy->length) == 0;
}

static bool is_text(int fd, const char *name, const struct sweep_copy *copy)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(fd, name, text, sizeof(text));

	return length >= 0 && (size_t)length == copy->length &&
	       memcmp(text, copy->bytes, copy->length) == 0;
}

/* Written anew as it was: nothing has changed. */
static bool is_unchanged(const struct sweeper *sweeper, const struct sweep_spot *spot)
{
	const struct sweep_copy *copy = spot->copy;

	if (!copy)
		return false;
	if (copy->is_link)
		return S_ISLNK(spot->status.st_mode) && is_text(spot->fd, spot->name, copy);
	return S_ISREG(spot->status.st_mode) && (spot->status.st_mode & 07777) == copy->mode &&
	       is_content(spot->fd, spot->name, copy, sweeper->arena);
}

static int write_copy(int file, const struct sweep_copy *copy)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = copy->modified_ns / SECOND_NS,
		  .tv_nsec = copy->modified_ns % SECOND_NS },
	};
	int result = fd_write_all(file, copy->bytes, copy->length);

	if (result < 0)
		return result;
	if (geteuid() == 0 && fchown(file, copy->uid, copy->gid) < 0)
		return -errno;
	return fchmod(file, copy->mode) < 0 || futimens(file, times) < 0 ? -errno : 0;
}

/* Whole or not at all, and never over what is there now. */
static bool restore(const struct sweep_spot *spot)
{
	const struct sweep_copy *copy = spot->copy;
	int CLEANUP_FD file = -1;
	char path[32];

	if (!copy)
		return false;
	if (copy->is_link)
		return symlinkat(copy->bytes, spot->fd, copy->name) == 0;
	file = openat(spot->fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (file < 0 && errno == EOPNOTSUPP) {
		file = openat(spot->fd, copy->name,
			      O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
		return file >= 0 && write_copy(file, copy) == 0;
	}
	if (file < 0 || write_copy(file, copy) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return linkat(AT_FDCWD, path, spot->fd, copy->name, AT_SYMLINK_FOLLOW) == 0;
}

/* --- what cannot be held loses its name */

/* Under another name a git directory is a bare repository still. */
static int take_head(const struct sweep_spot *spot)
{
	int CLEANUP_FD fd = -1;
	int result = -EEXIST;

	if (!spot->is_git || !S_ISDIR(spot->status.st_mode))
		return 0;
	fd = fd_open_beneath(spot->fd, spot->name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	for (unsigned i = 0; i < DISARM_NAMES && result == -EEXIST; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "bawn-held-HEAD-%u", i);
		result = fd_rename_free(fd, "HEAD", fd, name);
	}
	return result == -ENOENT ? 0 : result;
}

static bool disarm(const struct sweeper *sweeper, const struct sweep_spot *spot,
		   char ret_name[static DISARM_BYTES])
{
	int result = take_head(spot) < 0 ? -EIO : -EEXIST;

	for (unsigned i = 0; i < DISARM_NAMES && result == -EEXIST; i++) {
		(void)snprintf(ret_name, DISARM_BYTES, "bawn-held-%" PRIu64 "-%u",
			       sweeper->result.found, i);
		result = fd_rename_free(spot->fd, spot->name, spot->fd, ret_name);
	}
	return result == 0;
}

/* --- holding */

static int open_store(struct sweeper *sweeper)
{
	if (sweeper->store_fd < 0)
		sweeper->store_fd =
			git_held_tree_open(sweeper->order->state_fd, sweeper->order->task, true);
	return sweeper->store_fd;
}

/* A directory of the caller's own that its mode closes; ret_was: to be given back. */
static bool unlock(int fd, mode_t *ret_was)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || status.st_uid != geteuid() ||
	    (status.st_mode & S_IRWXU) == S_IRWXU)
		return false;
	*ret_was = status.st_mode & 07777;
	return fd_set_mode(fd, *ret_was | S_IRWXU) == 0;
}

static int take(struct sweeper *sweeper, struct sweep_spot *spot, struct git_held_tree *held,
		struct error *error)
{
	int result = -ESTALE;

	for (int i = 0; i < TRIES && result == -ESTALE; i++) {
		*error = ERROR_NONE;
		if (fstatat(spot->fd, spot->name, &spot->status, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (is_unchanged(sweeper, spot))
			return -ENOENT;
		result = git_held_tree_take(sweeper->store_fd, spot->fd, spot->name, &spot->status,
					    held, error);
	}
	return result;
}

static bool describe(const struct sweeper *sweeper, const struct sweep_spot *spot,
		     struct sweep_found *ret_found)
{
	*ret_found = (struct sweep_found){
		.reason = spot->reason,
		.change = { .kind = spot->copy || spot->was_there ? CHANGE_MODIFIED :
								    CHANGE_CREATED,
			    .path = arena_format(sweeper->arena, "%s/%s%s",
						 sweeper->order->workspace,
						 spot->path ? "" : ".../",
						 spot->path ? spot->path : spot->name) },
	};
	return ret_found->change.path;
}

/* What is beyond the limit is not told one by one. */
static struct sweep_found *add_found(struct sweeper *sweeper, const struct sweep_spot *spot,
				     struct sweep_found *rest)
{
	struct sweep_result *result = &sweeper->result;
	struct sweep_found *items;

	if (result->count == SWEEP_LIMIT_HELD) {
		*rest = (struct sweep_found){ .reason = spot->reason };
		return rest;
	}
	items = arena_push(sweeper->arena, result->items, result->count, sizeof(*items));
	if (!items || !describe(sweeper, spot, &items[result->count]))
		return NULL;
	result->items = items;
	return &items[result->count++];
}

/* By force of another name, or not at all. */
static int do_without(struct sweeper *sweeper, const struct sweep_spot *spot,
		      struct sweep_found *found, const char *fault)
{
	char name[DISARM_BYTES];
	bool is_disarmed = disarm(sweeper, spot, name);

	found->fate = is_disarmed ? SWEEP_DISARMED : SWEEP_LEFT;
	found->change.state = is_disarmed ? CHANGE_HELD : CHANGE_APPLIED;
	sweeper->result.left += !is_disarmed;
	/* what lies in it is looked at under the name that it has now */
	if (is_disarmed && S_ISDIR(spot->status.st_mode) && spot->fd == sweeper->walk.fd)
		walk_descend_to(&sweeper->walk, name, SWEEP_IN_TREE);
	if (!found->change.path)
		return 0;
	found->fault = arena_copy(sweeper->arena, fault);
	found->now = is_disarmed ? arena_copy(sweeper->arena, name) : NULL;
	return found->fault && (found->now || !is_disarmed) ? 0 : -ENOMEM;
}

static int hold_it(struct sweeper *sweeper, struct sweep_spot *spot)
{
	struct git_held_tree held = { .task = sweeper->order->task,
				      .directory = sweeper->order->workspace,
				      .path = spot->path,
				      .reason = spot->reason };
	struct error error = ERROR_NONE;
	struct sweep_found *found, rest;
	int result = sweeper->result.count < SWEEP_LIMIT_HELD ? open_store(sweeper) : -E2BIG;

	if (result == -E2BIG)
		(void)error_set(&error, E2BIG, "more than %u things to hold", SWEEP_LIMIT_HELD);
	else if (result < 0)
		(void)error_errno(&error, result, "the state directory");
	else
		result = take(sweeper, spot, &held, &error);
	/* it went, or is as it was */
	if (result == -ENOENT)
		return 0;
	sweeper->result.found++;
	found = add_found(sweeper, spot, &rest);
	if (!found)
		return -ENOMEM;
	if (result < 0) {
		result = do_without(sweeper, spot, found, error.message);
	} else {
		found->fate = SWEEP_HELD;
		found->change.state = CHANGE_HELD;
		memcpy(found->id, held.id, sizeof(found->id));
	}
	found->is_restored = found->fate != SWEEP_LEFT && restore(spot);
	return result;
}

int sweep_hold(struct sweeper *sweeper, const struct sweep_spot *spot)
{
	struct sweep_spot here = *spot;
	mode_t mode;
	bool is_unlocked = faccessat(spot->fd, ".", W_OK | X_OK, AT_EACCESS) < 0 &&
			   unlock(spot->fd, &mode);
	int result = hold_it(sweeper, &here);

	if (is_unlocked)
		(void)fd_set_mode(spot->fd, mode);
	return result;
}

/* --- names that were absent */

/* Holds the first name on the way that leads elsewhere, or what the path names. */
static int look_for(struct sweeper *sweeper, const char *path)
{
	static const char reason[] = "a place that git is configured to run or read";
	int CLEANUP_FD fd = fcntl(sweeper->sweep->root_fd, F_DUPFD_CLOEXEC, 3);
	const char *at = path;

	while (fd >= 0) {
		size_t length = strcspn(at, "/");
		char name[NAME_MAX + 1];
		struct sweep_spot spot = { .fd = fd, .name = name, .reason = reason };
		int next;

		if (length == 0 || length > NAME_MAX)
			return 0;
		memcpy(name, at, length);
		name[length] = '\0';
		at += length;
		if (fstatat(fd, name, &spot.status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    sweep_find(sweeper->order->covered, sweeper->order->covered_count,
			       &spot.status))
			return 0;
		if (!*at || S_ISLNK(spot.status.st_mode)) {
			spot.path = arena_copy_bytes(sweeper->arena, path, (size_t)(at - path));
			return spot.path ? sweep_hold(sweeper, &spot) : -ENOMEM;
		}
		next = fd_open_beneath(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
		fd_close(&fd);
		fd = next;
		at++;
	}
	return 0;
}

static int look_for_absent(struct sweeper *sweeper)
{
	const struct sweep_order *order = sweeper->order;
	int result = 0;

	for (size_t i = 0; i < order->absent_count && result == 0; i++)
		if (path_is_under(order->absent[i], order->workspace))
			result = look_for(sweeper, path_below(order->absent[i], order->workspace));
	return result;
}

/* --- all of it */

/* A wall clock that was set back has stamped what is new with times from before the start. */
static int64_t since(const struct sweep *sweep)
{
	int64_t back_ns = sweep->wall_offset_ns - sweep_wall_offset().least_ns;

	return sweep->begin_ns - (back_ns > 0 ? back_ns : 0);
}

/* What a round saw is the last one's word; what it held is all rounds'. */
static int look_through(struct sweeper *sweeper)
{
	int result = 0;

	for (int i = 0; i < ROUNDS && result == 0; i++) {
		sweeper->result.seen_count = 0;
		sweeper->result.seen = NULL;
		sweeper->result.link_count = 0;
		sweeper->result.links = NULL;
		sweeper->result.unfinished = NULL;
		result = sweep_look(sweeper, fcntl(sweeper->sweep->root_fd, F_DUPFD_CLOEXEC, 3));
		if (!sweeper->result.unfinished || sweeper->walk.code != -ESTALE)
			break;
	}
	return result;
}

int sweep_end(const struct sweep_order *order, struct arena *arena, struct sweep_result *ret_result,
	      struct error *error)
{
	const struct sweep *sweep = order->sweep;
	struct sweep_order own = *order;
	struct sweep_known *covered =
		arena_array(arena, order->covered_count + 1, sizeof(*covered));
	struct sweeper sweeper = {
		.order = &own,
		.sweep = sweep,
		.mode = sweep->clock == SWEEP_CLOCK_KERNEL ? SWEEP_STAMPS : SWEEP_NOTES,
		.since_ns = since(sweep),
		.until_ns = sweep->until_ns,
		.arena = arena,
		.error = error,
		.store_fd = -1,
		.walk = { .fd = -1 },
	};
	int result = covered ? 0 : -ENOMEM;

	if (covered && order->covered_count)
		memcpy(covered, order->covered, order->covered_count * sizeof(*covered));
	if (covered)
		sweep_sort(covered, order->covered_count);
	own.covered = covered;
	if (order->tree)
		order->tree->since_ns -= sweep->begin_ns - sweeper.since_ns;
	if (result == 0)
		result = look_for_absent(&sweeper);
	if (result == 0)
		result = look_through(&sweeper);
	fd_close(&sweeper.store_fd);
	if (result < 0)
		return error_errno(error, result, "looking through %s", order->workspace);
	*ret_result = sweeper.result;
	return 0;
}
