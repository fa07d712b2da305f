#include "broker/runtime.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/state.h"
#include "ipc/control.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(int code, const char *path, struct error *error)
{
	if (code == -ENOENT)
		return error_errno(error, code, "the runtime directory %s", path);
	if (code == -EPERM)
		return error_set(
			error, -code,
			"the runtime directory %s is another user's or open to others, who "
			"could take the place of a task in it; if it is bawn's alone: "
			"`chmod 700 %s`",
			path, path);
	if (code == -ENOTDIR || code == -ELOOP)
		return error_set(error, ENOTDIR,
				 "the runtime directory %s is a link or no directory; remove it, "
				 "and bawn makes it anew",
				 path);
	return error_errno(error, code, "the runtime directory %s", path);
}

/* The caller's own, and nobody else's business. -EPERM where it is not. */
static int check_own(int fd, uint32_t uid)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	return status.st_uid == uid && (status.st_mode & 077) == 0 ? 0 : -EPERM;
}

static int open_directory(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_below(int parent_fd, const char *name, uint32_t uid, enum runtime_use use)
{
	int CLEANUP_FD fd = open_directory(parent_fd, name);
	int result;

	if (fd == -ENOENT && use == RUNTIME_MAKE) {
		if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = open_directory(parent_fd, name);
	}
	if (fd < 0)
		return fd;
	result = check_own(fd, uid);
	return result < 0 ? result : TAKE_FD(fd);
}

/* What the session manager made for the caller, or -1: then it is not used at all. */
static int open_session(struct arena *arena, uint32_t uid)
{
	const char *path = arena_format(arena, "/run/user/%u", uid);
	int CLEANUP_FD fd = path ? open_directory(AT_FDCWD, path) : -1;

	return fd >= 0 && check_own(fd, uid) == 0 ? TAKE_FD(fd) : -1;
}

int runtime_open(const struct caller *host, const struct state *state, bool is_default,
		 enum runtime_use use, struct arena *arena, struct runtime *ret_runtime,
		 struct error *error)
{
	int CLEANUP_FD session = is_default ? open_session(arena, host->uid) : -1;
	struct runtime runtime = RUNTIME_NONE;

	if (session >= 0) {
		runtime.path = arena_format(arena, "/run/user/%u/bawn", host->uid);
		runtime.fd = open_below(session, "bawn", host->uid, use);
	} else {
		runtime.path = arena_format(arena, "%s/run", state->path);
		runtime.fd = open_below(state->fd, "run", host->uid, use);
	}
	if (runtime.fd < 0)
		return refuse(runtime.fd, runtime.path ? runtime.path : "", error);
	if (!runtime.path) {
		runtime_close(&runtime);
		return error_errno(error, ENOMEM, "opening the runtime directory");
	}
	*ret_runtime = runtime;
	return 0;
}

/* Nobody holds the task's directory. One that is made just now has no socket yet. */
static bool has_no_supervisor(int tasks_fd, const char *name)
{
	int CLEANUP_FD fd = open_directory(tasks_fd, name);

	if (fd < 0)
		return fd == -ENOENT;
	return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

void runtime_reap(const struct runtime *runtime, const struct state *state)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	/* a descriptor of its own, for its place in the list */
	(void)directory_open(&directory, runtime->fd, ".", 0);
	for (int count = 0; count < RUNTIME_REAP_LIMIT && (name = directory_next(&directory));)
		if (control_is_id(name, 't')) {
			if (has_no_supervisor(state->tasks_fd, name))
				(void)unlinkat(runtime->fd, name, 0);
			count++;
		}
}

void runtime_close(struct runtime *runtime)
{
	fd_close(&runtime->fd);
}
