#include "broker/state.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens name below parent as a directory of the caller's own, making it where it is missing. */
static int open_own(int parent_fd, const char *name, uint32_t uid, bool *ret_made)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(parent_fd, name, 0700) == 0)
			*ret_made = true;
		else if (errno != EEXIST)
			return -errno;
		fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstat(fd, &status) < 0 || status.st_uid != uid) {
		(void)close(fd);
		return -EPERM;
	}
	return fd;
}

/* The default's parents (~/.local, ~/.local/state) may be missing on a fresh account. */
static void make_parents(struct arena *arena, const char *path, const char *home)
{
	const char *below = path_below(path, home);

	for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *parent = arena_copy_bytes(arena, path, (size_t)(slash - path));

		if (parent)
			(void)mkdir(parent, 0700);
	}
}

/* A path as the caller wrote it; NULL for one that cannot be told by its text alone. */
static const char *below_current(struct arena *arena, const char *path)
{
	char current[PATH_LIMIT_BYTES];

	return getcwd(current, sizeof(current)) && current[0] == '/' ?
		       path_clean_up(arena, current, path) :
		       NULL;
}

static const char *real_path(struct arena *arena, int fd)
{
	char name[32], path[PATH_LIMIT_BYTES];
	ssize_t length;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, path, sizeof(path));
	if (length <= 0 || (size_t)length == sizeof(path) || path[0] != '/')
		return NULL;
	path[length] = '\0';
	return path_is_clean(path) ? arena_copy(arena, path) : NULL;
}

int state_open(const struct caller *host, const char *path, struct arena *arena,
	       struct state *ret_state, struct error *error)
{
	struct state state = STATE_NONE;
	struct stat status;
	bool made_tasks = false;

	if (!path) {
		if (!host->home)
			return error_set(error, ENOENT,
					 "the password database knows no home for uid %u; give "
					 "--state-dir DIR",
					 host->uid);
		path = arena_format(arena, "%s/.local/state/bawn", host->home);
		if (path)
			make_parents(arena, path, host->home);
	}
	if (path && !path_is_clean(path))
		path = below_current(arena, path);
	if (!path)
		return error_set(
			error, EINVAL,
			"the state directory must be a path of usual length, with \"..\" at "
			"its front alone");
	state.path = path;
	state.fd = open_own(AT_FDCWD, path, host->uid, &state.made);
	if (state.fd < 0)
		return error_errno(error, state.fd,
				   "the state directory %s (--state-dir DIR takes another)", path);
	if (fstat(state.fd, &status) == 0 && (status.st_mode & 077) != 0) {
		state_close(&state);
		return error_set(error, EPERM,
				 "the state directory %s is open to others; if it is bawn's alone: "
				 "`chmod 700 %s`",
				 path, path);
	}
	/* links on the way must not make it look as if it lay elsewhere */
	state.path = real_path(arena, state.fd);
	if (!state.path) {
		state_close(&state);
		return error_set(error, ENOENT,
				 "the state directory %s has no path; is /proc mounted?", path);
	}
	state.tasks_fd = open_own(state.fd, "tasks", host->uid, &made_tasks);
	if (state.tasks_fd < 0) {
		int code = state.tasks_fd;

		state_close(&state);
		return error_errno(error, code, "the state directory %s/tasks", path);
	}
	*ret_state = state;
	return 0;
}

void state_unmake(const struct state *state)
{
	if (!state->made)
		return;
	/* what another start has put there meanwhile keeps both */
	(void)unlinkat(state->fd, "tasks", AT_REMOVEDIR);
	(void)rmdir(state->path);
}

/* A directory that can be locked has no supervisor: what it holds is a leftover, and goes. */
static bool reap_one(const struct state *state, const char *name,
		     bool (*bury)(void *context, const struct state *state, const char *id),
		     void *context)
{
	int tasks_fd = state->tasks_fd;
	int CLEANUP_FD fd = openat(tasks_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	/* first, so that what fails is found again */
	if (!bury(context, state, name))
		return false;
	directory_remove_tree(tasks_fd, name);
	return true;
}

unsigned state_reap(const struct state *state,
		    bool (*bury)(void *context, const struct state *state, const char *id),
		    void *context)
{
	struct directory CLEANUP_DIRECTORY directory;
	unsigned reaped_count = 0;
	const char *name;

	/* a descriptor of its own, for its place in the list */
	(void)directory_open(&directory, state->tasks_fd, ".", 0);
	for (int count = 0; count < STATE_REAP_LIMIT && (name = directory_next(&directory));)
		if (name[0] != '.') {
			reaped_count += reap_one(state, name, bury, context);
			count++;
		}
	return reaped_count;
}

void state_close(struct state *state)
{
	fd_close(&state->fd);
	fd_close(&state->tasks_fd);
}
