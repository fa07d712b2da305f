#include "workspace/root.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/danger.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int root_resolve(const char *path, struct arena *arena, const char **ret_path, struct error *error)
{
	char room[PATH_MAX], *real;

	if (strlen(path) >= PATH_LIMIT_BYTES)
		return error_set(error, ENAMETOOLONG, "%.40s...: the path is longer than %d bytes",
				 path, PATH_LIMIT_BYTES - 1);
	real = realpath(path, room);
	if (!real)
		return error_errno(error, errno, "%s", path);
	*ret_path = arena_copy(arena, real);
	return *ret_path ? 0 : error_errno(error, ENOMEM, "%s", path);
}

static int current_directory(struct arena *arena, const char **ret_path, struct error *error)
{
	char path[PATH_MAX];

	/* one that is not below the root is "(unreachable)..." */
	errno = ENOENT;
	if (!getcwd(path, sizeof(path)) || path[0] != '/')
		return error_errno(error, errno,
				   "the current directory; enter one that exists or give "
				   "--workspace");
	*ret_path = arena_copy(arena, path);
	return *ret_path ? 0 : error_errno(error, ENOMEM, "the current directory");
}

/* The nearest directory at or above path that holds a .git and may be a workspace; else path. */
static const char *git_root(struct arena *arena, const char *path, const struct caller *host)
{
	for (const char *at = path; at && at[1]; at = path_parent(arena, at)) {
		char *git = arena_format(arena, "%s/.git", at);
		struct stat status;

		if (danger_of_path(at, PATH_WRITE, host->real_home, NULL))
			break;
		/* in /tmp and its like anybody can make one, and would choose what is written */
		if (git && lstat(git, &status) == 0 && status.st_uid == host->uid)
			return at;
	}
	return path;
}

bool root_holds_keys(const char *home, const char *path)
{
	static const char *const keys[] = { ".ssh",
					    ".gnupg",
					    ".aws",
					    ".azure",
					    ".kube",
					    ".docker",
					    ".password-store",
					    ".mozilla",
					    ".config/gcloud",
					    ".config/gh",
					    ".local/share/keyrings" };
	const char *below;

	if (!home || !path_is_under(path, home))
		return false;
	below = path_below(path, home);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (path_is_under(below, keys[i]) || path_is_under(keys[i], below))
			return true;
	return false;
}

static int check_root(const struct caller *host, struct root *root, struct error *error)
{
	const char *danger = danger_of_path(root->path, PATH_WRITE, host->real_home, NULL);
	struct stat status;

	if (!danger && root_holds_keys(host->real_home, root->path))
		danger = "it is where programs keep the caller's keys";
	if (danger)
		return error_set(error, EPERM,
				 "%s cannot be the workspace: %s; enter a project or give "
				 "--workspace DIR",
				 root->path, danger);
	if (lstat(root->path, &status) < 0)
		return error_errno(error, errno, "the workspace %s", root->path);
	if (!S_ISDIR(status.st_mode))
		return error_set(error, ENOTDIR, "the workspace %s is not a directory", root->path);
	if (status.st_uid != host->uid)
		return error_set(
			error, EPERM,
			"the workspace %s belongs to another user (uid %u); a task works in "
			"its caller's own directory; enter one or give --workspace DIR",
			root->path, status.st_uid);
	/* a task's end takes away what others put there meanwhile: it cannot tell whose it is */
	if (status.st_mode & S_ISVTX && status.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(error, EPERM,
				 "%s cannot be the workspace: others work in it, too (mode %04o); "
				 "make a directory in it, or give --workspace DIR",
				 root->path, status.st_mode & 07777);
	/* what cannot be looked through cannot be told to hold no secret */
	if (~status.st_mode & (S_IRUSR | S_IXUSR) && host->uid != 0)
		return error_set(error, EACCES,
				 "the workspace %s cannot be read (mode %04o); `chmod u+rx` it",
				 root->path, status.st_mode & 07777);
	root->device = status.st_dev;
	root->inode = status.st_ino;
	return 0;
}

/* The directory must be reached from the workspace without any link. */
static int check_cwd(const struct root *root, const char *given, struct error *error)
{
	int CLEANUP_FD root_fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *below = path_below(root->cwd, root->path);
	int CLEANUP_FD fd = -1;

	if (root_fd < 0)
		return error_errno(error, errno, "the workspace %s", root->path);
	fd = fd_open_beneath(root_fd, below[0] ? below : ".", O_PATH | O_DIRECTORY);
	if (fd == -ELOOP || fd == -EXDEV)
		return error_set(error, ELOOP,
				 "--cwd %s leads over a link; give the directory itself", given);
	if (fd < 0)
		return error_errno(error, fd, "--cwd %s", given);
	return 0;
}

static int find_cwd(const char *given, const char *current, struct arena *arena, struct root *root,
		    struct error *error)
{
	if (!given) {
		root->cwd = path_is_under(current, root->path) ? current : root->path;
		return 0;
	}
	root->cwd = path_clean(arena, current, given);
	if (!root->cwd)
		return error_set(error, EINVAL,
				 "--cwd %.200s: not a usable path (\"..\" or too long)", given);
	if (!path_is_under(root->cwd, root->path))
		return error_set(error, EINVAL, "--cwd %.200s lies outside of the workspace %s",
				 given, root->path);
	return check_cwd(root, given, error);
}

int root_find(const struct caller *host, const char *workspace, const char *cwd,
	      struct arena *arena, struct root *ret_root, struct error *error)
{
	struct root root = { .path = "/" };
	const char *current = "/";
	int result;

	result = current_directory(arena, &current, error);
	if (result < 0 && !workspace)
		return result;
	if (workspace)
		result = root_resolve(workspace, arena, &root.path, error);
	else
		root.path = git_root(arena, current, host);
	if (result < 0)
		return error_context(error, "--workspace");
	result = check_root(host, &root, error);
	if (result == 0)
		result = find_cwd(cwd, current, arena, &root, error);
	if (result < 0)
		return result;
	*ret_root = root;
	return 0;
}
