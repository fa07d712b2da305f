/*
 * What musl's headers lack of the Linux interfaces that the sources use under glibc's names.
 * Included before everything else when bawn is built with musl (meson.build); the sources need to
 * know of neither library. Not for freestanding programs.
 */
#pragma once

#if __STDC_HOSTED__

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/stat.h>

typedef int __rlimit_resource_t;

/* musl's open() follows O_CLOEXEC with an fcntl() for kernels before 2.6.23 */
#define open(...) openat(AT_FDCWD, __VA_ARGS__)

/* musl's texts are constants too, and untranslated without a locale */
#define strerrordesc_np strerror

static inline int fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fspick(int directory_fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_fspick, directory_fd, path, flags);
}

static inline int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int fsmount(int fd, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int open_tree(int fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, fd, path, flags);
}

static inline int move_mount(int from_fd, const char *from, int to_fd, const char *to,
			     unsigned flags)
{
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int mount_setattr(int fd, const char *path, unsigned flags,
				struct mount_attr *attributes, size_t size)
{
	return (int)syscall(SYS_mount_setattr, fd, path, flags, attributes, size);
}

static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int statx(int fd, const char *path, int flags, unsigned mask, struct statx *status)
{
	return (int)syscall(SYS_statx, fd, path, flags, mask, status);
}

#endif
