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
