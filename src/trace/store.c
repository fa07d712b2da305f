#include "trace/store.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a file of ours; a digest is the longest. */
#define NAME_BYTES 64

/* Whose it must be; from the kernel's word at our start, without a call. */
static bool is_ours(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_uid == getauxval(AT_EUID) &&
	       !(status.st_mode & 022);
}

static int open_directory(int parent_fd, const char *name, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int CLEANUP_FD fd = openat(parent_fd, name, flags);

	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(parent_fd, name, flags);
	}
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	return TAKE_FD(fd);
}

static int open_store(int state_fd, bool make, struct trace_store *ret_store, struct error *error)
{
	struct trace_store CLEANUP_TRACE_STORE store = TRACE_STORE_NONE;

	store.fd = open_directory(state_fd, "trace", make);
	if (store.fd < 0)
		return error_errno(error, store.fd, "trace/");
	/* what lies in it is whose it is */
	if (!is_ours(store.fd))
		return error_errno(error, EPERM, "trace/");
	store.tasks_fd = open_directory(store.fd, "tasks", make);
	if (store.tasks_fd < 0)
		return error_errno(error, store.tasks_fd, "trace/tasks/");
	*ret_store = store;
	store = TRACE_STORE_NONE;
	return 0;
}

int trace_store_open(int state_fd, struct trace_store *ret_store, struct error *error)
{
	return open_store(state_fd, true, ret_store, error);
}

int trace_store_open_read(int state_fd, struct trace_store *ret_store, struct error *error)
{
	return open_store(state_fd, false, ret_store, error);
}

int trace_store_below(const struct trace_store *store, const char *name)
{
	return open_directory(store->fd, name, true);
}

int trace_store_put(int directory_fd, const char *name, const void *bytes, size_t length)
{
	char temporary[NAME_BYTES + 32];
	int CLEANUP_FD fd = -1;
	int result;

	(void)snprintf(temporary, sizeof(temporary), "%.*s.%d", NAME_BYTES, name, getpid());
	fd = fd_open_own(directory_fd, temporary, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return fd;
	result = fd_write_all(fd, bytes, length);
	if (result == 0 && linkat(directory_fd, temporary, directory_fd, name, 0) < 0 &&
	    errno != EEXIST)
		result = -errno;
	(void)unlinkat(directory_fd, temporary, 0);
	return result;
}

const char *trace_store_remedy(int code)
{
	switch (code < 0 ? -code : code) {
	case ENOSPC:
	case EDQUOT:
		return "; make room (`bawn trace prune` removes records of old tasks), or keep the "
		       "state elsewhere (--state-dir)";
	case EACCES:
	case EPERM:
	case EROFS:
		return "; make it writable for its owner, or keep the state elsewhere "
		       "(--state-dir)";
	default:
		return "";
	}
}

void trace_store_close(struct trace_store *store)
{
	fd_close(&store->fd);
	fd_close(&store->tasks_fd);
}
