#include "workspace/git_held_tree.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/path.h"
#include "base/sha256.h"
#include "workspace/git_held_tree_copy.h"
#include "workspace/held_file.h"
#include "workspace/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TREES ".tree"
#define SUFFIX ".json"
#define FILE_NAME_BYTES (GIT_HELD_TREE_ID_BYTES + sizeof(SUFFIX))
/* Each byte of a path may take six. */
#define FILE_LIMIT_BYTES (8u * GIT_HELD_TREE_LIMIT_PATH_BYTES)
/* All that is held by all tasks, in memory at once. */
#define LIST_LIMIT_ITEMS 100000u

static const char *const kind_names[GIT_HELD_TREE_KIND_COUNT] = {
	[GIT_HELD_TREE_FILE] = "file",
	[GIT_HELD_TREE_LINK] = "link",
	[GIT_HELD_TREE_DIRECTORY] = "directory",
	[GIT_HELD_TREE_OTHER] = "other",
};

const char *git_held_tree_kind_name(enum git_held_tree_kind kind)
{
	return kind_names[kind];
}

static enum git_held_tree_kind kind_of(mode_t mode)
{
	return S_ISREG(mode) ? GIT_HELD_TREE_FILE :
	       S_ISLNK(mode) ? GIT_HELD_TREE_LINK :
	       S_ISDIR(mode) ? GIT_HELD_TREE_DIRECTORY :
			       GIT_HELD_TREE_OTHER;
}

/* The same for the same place of the same task; apart from those of git directories. */
static void name_it(const struct git_held_tree *held, char ret_id[static GIT_HELD_TREE_ID_BYTES])
{
	const char *parts[] = { TREES, held->task, held->directory, held->path ? held->path : "" };
	unsigned char digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sha256_update(&hash, parts[i], strlen(parts[i]) + 1);
	/* paths that are too long are told apart by when they came */
	if (!held->path)
		sha256_update(&hash, &held->wall_ns, sizeof(held->wall_ns));
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
	(void)snprintf(ret_id, GIT_HELD_TREE_ID_BYTES, "%.12s", text);
}

static void name_file(const char *id, char ret_name[static FILE_NAME_BYTES])
{
	(void)snprintf(ret_name, FILE_NAME_BYTES, "%s" SUFFIX, id);
}

int git_held_tree_open(int state_fd, const char *task, bool makes)
{
	int CLEANUP_FD folder = held_file_folder(state_fd, HELD_FILE_FOLDER, makes);
	int CLEANUP_FD place = folder < 0 ? folder : held_file_folder(folder, task, makes);

	return place < 0 ? place : held_file_folder(place, TREES, makes);
}

static int64_t changed_ns(const struct stat *status)
{
	return status->st_ctim.tv_sec * INT64_C(1000000000) + status->st_ctim.tv_nsec;
}

static void write_json(const struct git_held_tree *held, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_string(&json, "task", held->task);
	json_string(&json, "directory", held->directory);
	json_string(&json, "path", held->path);
	json_string(&json, "kind", kind_names[held->kind]);
	json_string(&json, "reason", held->reason);
	json_unsigned(&json, "mode", held->mode);
	json_unsigned(&json, "wall_ns", held->wall_ns);
	json_unsigned(&json, "held_ns", (uint64_t)held->held_ns);
	json_unsigned(&json, "omitted", held->omitted);
	json_object_end(&json);
	buffer_byte(buffer, '\n');
}

static int write_file(int store_fd, const struct git_held_tree *held)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	char name[FILE_NAME_BYTES];

	write_json(held, &buffer);
	name_file(held->id, name);
	return held_file_write(store_fd, name, &buffer);
}

static int forget(int store_fd, const char *id)
{
	char name[FILE_NAME_BYTES];
	int result = git_held_tree_remove(store_fd, id);

	if (result < 0 && result != -ENOENT)
		return result;
	name_file(id, name);
	return unlinkat(store_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* --- moving */

/* A directory that changes its parent must be writable itself; ret_was: what it was before. */
static bool unlock(int fd, const char *name, mode_t *ret_was)
{
	int CLEANUP_FD path = fd_open_beneath(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	struct stat status;

	if (path < 0 || fstat(path, &status) < 0 || status.st_uid != geteuid() ||
	    (status.st_mode & S_IRWXU) == S_IRWXU)
		return false;
	*ret_was = status.st_mode & 07777;
	return fd_set_mode(path, *ret_was | S_IRWXU) == 0;
}

static void lock_again(int fd, const char *name, mode_t mode)
{
	int CLEANUP_FD path = fd_open_beneath(fd, name, O_PATH | O_NOFOLLOW);

	if (path >= 0)
		(void)fd_set_mode(path, mode);
}

static int move(int from_fd, const char *from, int to_fd, const char *to)
{
	mode_t mode;
	int result = fd_rename_free(from_fd, from, to_fd, to);

	if (result != -EACCES || !unlock(from_fd, from, &mode))
		return result;
	result = fd_rename_free(from_fd, from, to_fd, to);
	lock_again(result < 0 ? from_fd : to_fd, result < 0 ? from : to, mode);
	return result;
}

static bool is_object(int fd, const char *name, const struct stat *status)
{
	struct stat now;

	return fstatat(fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == status->st_dev &&
	       now.st_ino == status->st_ino;
}

static int take_by_rename(int store_fd, int fd, const char *name, const struct stat *status,
			  struct git_held_tree *held)
{
	struct stat now;
	int result = move(fd, name, store_fd, held->id);

	if (result < 0)
		return result;
	if (!is_object(store_fd, held->id, status)) {
		/* somebody exchanged it: theirs goes back, or stays held where that fails */
		result = move(store_fd, held->id, fd, name);
		return result < 0 ? result : -ESTALE;
	}
	if (fstatat(store_fd, held->id, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	held->held_ns = changed_ns(&now);
	return 0;
}

/* From the copy on nothing of it is lost: what cannot be removed then is there twice. */
static int take_by_copy(int store_fd, int fd, const char *name, const struct stat *status,
			struct git_held_tree *held)
{
	int result = git_held_tree_copy(fd, name, store_fd, held->id, &held->omitted);

	/* no file of the copy has a later stamp, and none that changes from now on has an older */
	held->held_ns = sweep_stamp_now_ns();
	if (result == 0 && !is_object(fd, name, status))
		result = -ESTALE;
	if (result < 0) {
		(void)forget(store_fd, held->id);
		return result;
	}
	result = git_held_tree_remove(fd, name);
	(void)write_file(store_fd, held);
	return result;
}

int git_held_tree_take(int store_fd, int directory_fd, const char *name, const struct stat *status,
		       struct git_held_tree *held, struct error *error)
{
	int result;

	held->kind = kind_of(status->st_mode);
	held->mode = status->st_mode & 07777;
	held->wall_ns = clock_wall_ns();
	held->omitted = 0;
	held->held_ns = 0;
	name_it(held, held->id);
	result = forget(store_fd, held->id);
	/* known before it is there: who is killed between the two leaves nothing without a name */
	if (result == 0)
		result = write_file(store_fd, held);
	if (result == 0)
		result = take_by_rename(store_fd, directory_fd, name, status, held);
	if (result == -EXDEV)
		result = take_by_copy(store_fd, directory_fd, name, status, held);
	else if (result < 0)
		(void)forget(store_fd, held->id);
	else
		result = write_file(store_fd, held);
	return result < 0 ?
		       error_errno(error, result, "holding %s", held->path ? held->path : name) :
		       0;
}

/* --- listing */

struct list {
	struct arena *arena;
	struct git_held_tree *items;
	size_t count, bad;
};

/* Below the workspace: no way up, nothing empty. */
static bool is_below(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 0 || length > NAME_MAX || (length == 1 && path[0] == '.') ||
		    (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += length;
		if (*path && !*++path)
			return false;
	}
	return true;
}

/* -EBADMSG for what is none, and for one that says to be another's. */
static int take_item(const struct json_node *root, const char *task, const char *id,
		     struct git_held_tree *ret_held)
{
	const char *kind = json_tree_text(root, "kind");
	struct git_held_tree held = {
		.task = json_tree_text(root, "task"),
		.directory = json_tree_text(root, "directory"),
		.path = json_tree_text(root, "path"),
		.reason = json_tree_text(root, "reason"),
		.kind = GIT_HELD_TREE_KIND_COUNT,
		.mode = (uint32_t)json_tree_unsigned(root, "mode", 0) & 07777,
		.wall_ns = json_tree_unsigned(root, "wall_ns", 0),
		.held_ns = (int64_t)json_tree_unsigned(root, "held_ns", 0),
		.omitted = json_tree_unsigned(root, "omitted", 0),
	};

	for (int i = 0; kind && i < GIT_HELD_TREE_KIND_COUNT; i++)
		if (strcmp(kind, kind_names[i]) == 0)
			held.kind = (enum git_held_tree_kind)i;
	if (!held.task || !held.directory || !held.reason ||
	    held.kind == GIT_HELD_TREE_KIND_COUNT || strcmp(held.task, task) != 0 ||
	    !path_is_clean(held.directory) || (held.path && !is_below(held.path)))
		return -EBADMSG;
	name_it(&held, held.id);
	if (strcmp(held.id, id) != 0)
		return -EBADMSG;
	*ret_held = held;
	return 0;
}

/* -ENOENT where the object is not there: who was to hold it was killed before. */
static int read_item(int store_fd, const char *task, const char *id, struct arena *arena,
		     struct git_held_tree *ret_held)
{
	const struct json_node *root = NULL;
	char name[FILE_NAME_BYTES];
	struct stat status;
	int result;

	name_file(id, name);
	result = held_file_read(store_fd, name, FILE_LIMIT_BYTES, arena, &root);
	if (result == 0)
		result = take_item(root, task, id, ret_held);
	if (result < 0)
		return result == -ENOENT ? -EBADMSG : result;
	if (fstatat(store_fd, id, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* the move itself was the last change, then */
	if (!ret_held->held_ns)
		ret_held->held_ns = changed_ns(&status);
	return 0;
}

/* "<id>.json" only. */
static bool is_file(const char *name, char ret_id[static GIT_HELD_TREE_ID_BYTES])
{
	if (strlen(name) != GIT_HELD_TREE_ID_BYTES - 1 + strlen(SUFFIX) ||
	    strcmp(name + GIT_HELD_TREE_ID_BYTES - 1, SUFFIX) != 0)
		return false;
	(void)snprintf(ret_id, GIT_HELD_TREE_ID_BYTES, "%.12s", name);
	return true;
}

static int list_store(struct list *list, int store_fd, const char *task)
{
	struct directory CLEANUP_DIRECTORY directory;
	char id[GIT_HELD_TREE_ID_BYTES];
	const char *name;
	int result = 0;

	directory_begin(&directory, store_fd);
	while (result == 0 && list->count < LIST_LIMIT_ITEMS &&
	       (name = directory_next(&directory))) {
		struct git_held_tree *items;

		if (!is_file(name, id))
			continue;
		items = arena_push(list->arena, list->items, list->count, sizeof(*items));
		if (!items)
			return -ENOMEM;
		list->items = items;
		result = read_item(directory.fd, task, id, list->arena, &items[list->count]);
		if (result == 0)
			list->count++;
		else if (result != -ENOMEM)
			list->bad += result != -ENOENT, result = 0;
	}
	return result;
}

static int by_time(const void *a, const void *b)
{
	const struct git_held_tree *left = a, *right = b;

	if (left->wall_ns != right->wall_ns)
		return left->wall_ns < right->wall_ns ? -1 : 1;
	return strcmp(left->id, right->id);
}

int git_held_tree_list(int state_fd, struct arena *arena, struct git_held_tree **ret_items,
		       size_t *ret_count, size_t *ret_bad, struct error *error)
{
	struct list list = { .arena = arena };
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0, fd = held_file_folder(state_fd, HELD_FILE_FOLDER, false);

	if (fd < 0 && fd != -ENOENT)
		return error_errno(error, fd, HELD_FILE_FOLDER "/");
	directory_begin(&directory, fd);
	while (result == 0 && (name = directory_next(&directory))) {
		const char *task = arena_copy(arena, name);
		int CLEANUP_FD place = held_file_folder(directory.fd, name, false);
		int store = place < 0 ? place : held_file_folder(place, TREES, false);

		result = !task ? -ENOMEM : store < 0 ? 0 : list_store(&list, store, task);
	}
	if (result < 0)
		return error_errno(error, result, HELD_FILE_FOLDER "/");
	if (list.count)
		qsort(list.items, list.count, sizeof(list.items[0]), by_time);
	*ret_items = list.items;
	*ret_count = list.count;
	*ret_bad = list.bad;
	return 0;
}

/* --- accepting */

/* The directory of the path's last component, one component at a time: a path has any length. */
static int open_way(int workspace_fd, const char *path, const char **ret_name)
{
	int CLEANUP_FD fd = fcntl(workspace_fd, F_DUPFD_CLOEXEC, 3);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char part[NAME_MAX + 1];
		int next;

		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		next = fd_open_beneath(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW);
		fd_close(&fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return TAKE_FD(fd);
}

/* Through a name beside it, so that it is there whole or not at all. */
static int put_by_copy(int store_fd, const struct git_held_tree *held, int fd, const char *name)
{
	char beside[GIT_HELD_TREE_ID_BYTES + 16];
	uint64_t omitted;
	int result;

	(void)snprintf(beside, sizeof(beside), "bawn-accept-%s", held->id);
	result = git_held_tree_copy(store_fd, held->id, fd, beside, &omitted);
	if (result == 0) {
		result = fd_rename_free(fd, beside, fd, name);
		if (result < 0)
			(void)git_held_tree_remove(fd, beside);
	}
	return result;
}

/* With the last of a task its place goes. */
static void prune(int state_fd, const struct git_held_tree *held)
{
	int CLEANUP_FD folder = held_file_folder(state_fd, HELD_FILE_FOLDER, false);
	int CLEANUP_FD place = folder < 0 ? folder : held_file_folder(folder, held->task, false);

	if (place < 0 || unlinkat(place, TREES, AT_REMOVEDIR) < 0)
		return;
	if (unlinkat(folder, held->task, AT_REMOVEDIR) == 0)
		(void)unlinkat(state_fd, HELD_FILE_FOLDER, AT_REMOVEDIR);
}

static int put_back(int store_fd, const struct git_held_tree *held, struct error *error)
{
	int CLEANUP_FD workspace = fd_open_resolved(AT_FDCWD, held->directory, O_PATH | O_DIRECTORY,
						    RESOLVE_NO_SYMLINKS);
	int CLEANUP_FD fd = -1;
	const char *name;
	int result;

	if (workspace < 0)
		return error_errno(error, workspace, "%s", held->directory);
	fd = open_way(workspace, held->path, &name);
	if (fd < 0)
		return error_errno(error, fd, "the directory of %s", held->path);
	result = move(store_fd, held->id, fd, name);
	if (result == -EXDEV)
		result = put_by_copy(store_fd, held, fd, name);
	if (result < 0)
		return error_errno(error, result, "%s", held->path);
	if (held->kind == GIT_HELD_TREE_DIRECTORY)
		lock_again(fd, name, held->mode & 0777);
	return 0;
}

/*
 * Nobody has looked through it, and what the host had when the task began is not known any more:
 * what is wanted of it is a person's to take.
 */
static int refuse_layer(int store, const struct git_held_tree *held, struct error *error)
{
	char link[32], path[PATH_MAX];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", store);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	return error_set(
		error, EOPNOTSUPP,
		"%s: it is all that the task did in %.120s, too much to be looked through, and "
		"is not put in place; take what you want from %.160s/%s (hooks and "
		"configuration run on the host), then `bawn review reject %s`",
		held->id, held->directory, path, held->id, held->id);
}

int git_held_tree_accept(int state_fd, const struct git_held_tree *held, struct error *error)
{
	int CLEANUP_FD store = git_held_tree_open(state_fd, held->task, false);
	int result;

	if (store < 0)
		return error_errno(error, store, "what is held of %s", held->task);
	if (!held->path)
		return error_set(error, EOPNOTSUPP, "%s: its path is too long", held->id);
	if (!*held->path)
		return refuse_layer(store, held, error);
	result = git_held_tree_check(store, held->id, held->held_ns);
	if (result == -ESTALE)
		return error_set(error, ESTALE, "%s: it was changed after it was held", held->path);
	if (result < 0)
		return error_errno(error, result, "%s", held->path);
	result = put_back(store, held, error);
	if (result < 0)
		return result;
	result = forget(store, held->id);
	prune(state_fd, held);
	return result < 0 ? error_errno(error, result, "%s", held->id) : 0;
}

int git_held_tree_reject(int state_fd, const struct git_held_tree *held, struct error *error)
{
	int CLEANUP_FD store = git_held_tree_open(state_fd, held->task, false);
	int result = store < 0 ? store : forget(store, held->id);

	if (result < 0)
		return error_errno(error, result, "%s", held->path ? held->path : held->id);
	prune(state_fd, held);
	return 0;
}
