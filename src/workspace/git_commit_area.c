#include "workspace/git_commit_internal.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINK_LIMIT_BYTES (2 * PATH_MAX)
#define COPY_STEP_BYTES (16u * 1024 * 1024)

/* A file of one line, without its end; NULL where it is something else. */
static const char *read_line(struct git_run *run, struct git_area *area, const char *path)
{
	struct git_piece *item = git_run_item(area, path);
	struct git_text text;
	char *line;

	if (!item || item->entry->kind != GIT_UPPER_FILE ||
	    git_run_read(run, area, item, LINK_LIMIT_BYTES, &text) < 0 || !text.length ||
	    text.bytes[text.length - 1] != '\n' || memchr(text.bytes, '\0', text.length))
		return NULL;
	line = arena_copy_bytes(run->arena, text.bytes, text.length - 1);
	return line && !strchr(line, '\n') ? line : NULL;
}

/* Folds what stands in a path as text: right where no link lies on the way. */
static const char *fold(struct git_run *run, const char *base, const char *path)
{
	char *text = path_is_absolute(path) ? arena_copy(run->arena, path) :
					      arena_format(run->arena, "%s/%s", base, path);
	char *out = text, *at = text;

	if (!text)
		return NULL;
	while (*at) {
		size_t length;

		while (*at == '/')
			at++;
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (out > text && *--out != '/')
				;
		} else if (length && !(length == 1 && at[0] == '.')) {
			*out++ = '/';
			memmove(out, at, length);
			out += length;
		}
		at += length;
	}
	*out = '\0';
	return *text ? text : "/";
}

/* Nothing that a quoted value of configuration, or a line, would have to escape. */
static bool is_plain(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < ' ' || *path == 0x7f || *path == '"' || *path == '\\')
			return false;
	return true;
}

static bool has_no_link(const char *workspace, const char *path)
{
	int CLEANUP_FD root =
		fd_open_resolved(AT_FDCWD, workspace, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	int CLEANUP_FD fd = root < 0 ? root : fd_open_beneath(root, path, O_PATH);

	return fd >= 0 || fd == -ENOENT;
}

bool git_run_is_inside(struct git_run *run, const struct git_area *area, const char *path)
{
	const char *base = arena_format(run->arena, "%s/%s", run->cover->path, area->prefix);
	const char *folded = base && is_plain(path) ? fold(run, base, path) : NULL;
	const char *workspace = run->commit->workspace;

	if (!folded || !path_is_clean(folded) || !path_is_under(folded, workspace) ||
	    strcmp(folded, workspace) == 0)
		return false;
	/* no git directory is a work tree */
	return !path_is_under(folded, run->cover->path) && !strstr(folded, "/.git/") &&
	       has_no_link(workspace, path_below(folded, workspace));
}

const char *git_run_gitdir_fault(struct git_run *run, struct git_area *area)
{
	const char *line = read_line(run, area, "gitdir");
	size_t length = line ? strlen(line) : 0;
	char *tree;

	if (length < 6 || strcmp(line + length - 5, "/.git") != 0)
		return "its gitdir names no work tree";
	tree = arena_copy_bytes(run->arena, line, length - 5);
	if (!tree || !git_run_is_inside(run, area, tree))
		return "its work tree lies outside of the workspace";
	return NULL;
}

const char *git_run_commondir_fault(struct git_run *run, struct git_area *area)
{
	const char *line = read_line(run, area, "commondir");

	return line && strcmp(line, "../..") == 0 ? NULL : "its commondir is not git's own";
}

const char *git_run_area_fault(struct git_run *run, struct git_area *area)
{
	struct git_piece *head = git_run_item(area, "HEAD");
	const char *fault = NULL;

	if (!head || head->entry->kind != GIT_UPPER_FILE)
		return "it has no HEAD";
	if (!area->is_worktree)
		return NULL;
	fault = git_run_commondir_fault(run, area);
	return fault ? fault : git_run_gitdir_fault(run, area);
}

/* True when none of the files in a directory of the host changed since the start. */
static bool is_settled_tree(struct git_run *run, int directory_fd)
{
	struct git_upper tree;
	struct error error;

	if (git_upper_read(directory_fd, run->arena, &tree, &error) < 0)
		return false;
	for (size_t i = 0; i < tree.count; i++) {
		struct stat status;

		if (tree.entries[i].kind == GIT_UPPER_UNREAD ||
		    git_file_status(directory_fd, tree.entries[i].path, &status) < 0 ||
		    !git_run_is_settled(run, &status))
			return false;
	}
	return true;
}

/* Its tree is one of the workspace's, and not there any more. */
static const char *keep_reason(struct git_run *run, struct git_area *area, int fd)
{
	struct git_text text;
	const char *tree;
	struct stat status;

	if (git_file_read(fd, "gitdir", LINK_LIMIT_BYTES, run->arena, &text, NULL) < 0 ||
	    text.length < 7 || memcmp(text.bytes + text.length - 6, "/.git\n", 6) != 0)
		return "its work tree is not known";
	tree = arena_copy_bytes(run->arena, text.bytes, text.length - 6);
	if (!tree || !git_run_is_inside(run, area, tree))
		return "its work tree is none of the workspace";
	if (lstat(tree, &status) == 0)
		return "its work tree is still there";
	return is_settled_tree(run, fd) ? NULL : GIT_RUN_CHANGED;
}

static int remove_worktree(struct git_run *run, struct git_area *area, struct git_piece *item,
			   const char *path)
{
	int CLEANUP_FD fd =
		fd_open_beneath(area->target.fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	int CLEANUP_FD aside = -1;
	const char *reason, *name;
	int result;

	if (fd < 0)
		return fd == -ENOENT ? 0 : git_run_failed(run, area, item, fd);
	reason = keep_reason(run, area, fd);
	if (reason)
		return git_run_hold_value(run, area,
					  (struct git_held){ .path = path,
							     .kind = GIT_HELD_OTHER,
							     .reason = reason });
	aside = git_run_aside(run, "gone", &name);
	if (aside < 0)
		return git_run_failed(run, area, item, aside);
	/* gone at once for git, then piece by piece */
	result = git_file_move(area->target.fd, path, aside, "worktree");
	if (result < 0)
		return git_run_failed(run, area, item, result);
	directory_remove_tree(run->cover->fd, name);
	return git_run_applied(run, area, path, CHANGE_REMOVED);
}

static int remove_all_worktrees(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0;

	directory_begin(&directory, fd_open_beneath(area->target.fd, "worktrees",
						    O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
	while (result == 0 && (name = directory_next(&directory))) {
		const char *path = arena_format(run->arena, "worktrees/%s", name);

		/* those that the host made meanwhile the task never saw */
		if (git_snapshot_find(run->before,
				      arena_format(run->arena, "%s/HEAD", path ? path : "")))
			result = remove_worktree(run, area, item, path);
	}
	if (directory.fd >= 0)
		(void)unlinkat(area->target.fd, "worktrees", AT_REMOVEDIR);
	return result;
}

int git_run_worktrees_gone(struct git_run *run, struct git_area *area)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];
		bool is_all = strcmp(item->path, "worktrees") == 0;

		if (item->is_done || item->class != GIT_WORKTREE ||
		    item->entry->kind != GIT_UPPER_GONE ||
		    (!is_all && strchr(item->path + strlen("worktrees/"), '/')))
			continue;
		item->is_done = true;
		result = is_all ? remove_all_worktrees(run, area, item) :
				  remove_worktree(run, area, item, item->path);
	}
	return result;
}

static bool has_only(const char *text, size_t length, const char *bytes)
{
	return strspn(text, bytes) >= length && strlen(text) >= length;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), other = strlen(end);

	return length > other && strcmp(name + length - other, end) == 0;
}

/* A name that git gives to objects; alternates are none: they lead elsewhere. */
static bool is_object(const char *path)
{
	static const char digits[] = "0123456789abcdef";
	static const char *const ends[] = { ".pack", ".idx", ".rev", ".bitmap", ".promisor" };
	const char *name = path + strlen("objects/");

	if (strncmp(name, "pack/pack-", 10) == 0 && !strchr(name + 10, '/')) {
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
			if (ends_with(name, ends[i]))
				return true;
		return false;
	}
	if (strcmp(name, "info/packs") == 0 || strcmp(name, "info/commit-graph") == 0)
		return true;
	return has_only(name, 2, digits) && name[2] == '/' &&
	       (strlen(name + 3) == 38 || strlen(name + 3) == 62) &&
	       has_only(name + 3, strlen(name + 3), digits);
}

static int copy_range(int from_fd, int to_fd, uint64_t size)
{
	char bytes[16384];
	ssize_t length;

	while (size) {
		size_t step = size < COPY_STEP_BYTES ? (size_t)size : COPY_STEP_BYTES;

		length = copy_file_range(from_fd, NULL, to_fd, NULL, step, 0);
		if (length <= 0)
			break;
		size -= (uint64_t)length;
	}
	/* where the file systems cannot do it between them */
	while (size && (length = fd_read_all(from_fd, bytes, sizeof(bytes))) > 0) {
		int result = fd_write_all(to_fd, bytes, (size_t)length);

		if (result < 0)
			return result;
		size -= (uint64_t)length < size ? (uint64_t)length : size;
	}
	return size ? -EIO : 0;
}

static const char *object_fault(const struct stat *status)
{
	if (!S_ISREG(status->st_mode))
		return "it is no file";
	if ((uint64_t)status->st_size > GIT_COMMIT_LIMIT_OBJECT_BYTES)
		return "it is too large";
	if (status->st_size > (1 << 20) && status->st_blocks * 512 < status->st_size / 2)
		return "it has holes";
	return NULL;
}

static int copy_object(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	int CLEANUP_FD from = fd_open_beneath(run->cover->upper_fd, item->entry->path,
					      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const char *fault;
	struct stat status;
	int result;

	if (from < 0 || fstat(from, &status) < 0)
		return git_run_failed(run, area, item, from < 0 ? from : -errno);
	fault = object_fault(&status);
	if (fault)
		return git_run_hold(run, area, item, fault);
	if (git_file_status(area->target.fd, item->path, &status) == 0)
		return 0; /* an object's name tells its content */
	(void)fstat(from, &status);
	result = git_file_lock(&area->target, item->path, true, &lock);
	if (result == 0)
		result = copy_range(from, lock.fd, (uint64_t)status.st_size);
	if (result == 0 && fchmod(lock.fd, 0444) < 0)
		result = -errno;
	if (result == 0)
		result = git_lock_commit(&lock);
	return result < 0 ? git_run_failed(run, area, item, result) : 0;
}

/* Packs before their index: git finds a pack by that. */
static bool is_of_pass(const char *path, int pass)
{
	return ends_with(path, ".idx") == (pass == 1);
}

int git_run_objects(struct git_run *run, struct git_area *area)
{
	int result = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; result == 0 && i < area->count; i++) {
			struct git_piece *item = &area->items[i];

			if (item->class != GIT_OBJECT || item->is_done ||
			    !is_of_pass(item->path, pass))
				continue;
			item->is_done = true;
			/* hints about the host's objects: it makes its own, and believes them */
			if (!area->is_new && strncmp(item->path, "objects/info/", 13) == 0)
				continue;
			if (item->entry->kind != GIT_UPPER_FILE)
				continue; /* what was packed anew; objects that stay do no harm */
			result = is_object(item->path) ?
					 copy_object(run, area, item) :
					 git_run_hold(run, area, item, "it is no object");
		}
	return result;
}
