/*
 * Descriptors: owned ones carry CLEANUP_FD and are handed on with TAKE_FD. All are CLOEXEC.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

#define CLEANUP_FD __attribute__((cleanup(fd_close)))

/* Hands an owned descriptor on: gives its value and leaves -1 behind. */
#define TAKE_FD(fd)                \
	__extension__({            \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* Closes *fd if it is open and sets it to -1; errno is kept. */
void fd_close(int *fd);

/*
 * Opens 0, 1 and 2 on /dev/null where the caller started us with them closed, so that no file of
 * ours lands on them. Returns 0 or a negative errno.
 */
int fd_reserve_standard(void);

/*
 * Opens a path by openat2(2) with RESOLVE_* flags and always RESOLVE_NO_MAGICLINKS. Returns the
 * descriptor or a negative errno.
 */
int fd_open_resolved(int directory_fd, const char *path, int flags, uint64_t resolve);

/* As above for names that a task may have made: beneath the directory, no link followed. */
int fd_open_beneath(int directory_fd, const char *path, int flags);

/* chmod(2) by descriptor, also one of O_PATH, which fchmod(2) does not take. Needs /proc. */
int fd_set_mode(int fd, mode_t mode);

/*
 * Renames to a name that is free: -EEXIST if not. Where the file system cannot promise that (NFS)
 * a file or link is linked to its new name first, and a directory takes no full one's place.
 */
int fd_rename_free(int from_fd, const char *from, int to_fd, const char *to);

/*
 * Opens a regular file of ours for writing, with O_WRONLY or O_RDWR and maybe O_TRUNC, and makes
 * it, with mode 0600, where there is none. A link, a pipe or a device at its name goes first: it is
 * neither followed nor waited for. Returns the descriptor or a negative errno.
 */
int fd_open_own(int directory_fd, const char *name, int flags);

/*
 * Gives a name a new content as a whole, by way of the name `beside` in the same directory. Returns
 * 0 or a negative errno, and then the old content stays.
 */
int fd_replace(int directory_fd, const char *name, const char *beside, const void *bytes,
	       size_t length);

/* Writes all bytes; EINTR is retried. Returns 0 or a negative errno (-EPIPE and so on). */
int fd_write_all(int fd, const void *bytes, size_t length);

/* Reads until end of file or `length` bytes. Returns the count or a negative errno. */
ssize_t fd_read_all(int fd, void *bytes, size_t length);
