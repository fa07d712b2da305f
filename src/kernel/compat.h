/*
 * Kernel interfaces that the C library's and Debian 12's headers (6.1) lack. Numbers and layouts
 * are the kernel's ABI; the version that brought each stands beside it.
 */
#pragma once

#include <linux/landlock.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>

/* include/uapi/linux/landlock.h */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13) /* ABI 2, Linux 5.19 */
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3, Linux 6.2 */
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5, Linux 6.10 */
#endif
#define COMPAT_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6, Linux 6.12 */
#define COMPAT_LANDLOCK_SCOPE_SIGNAL (1ULL << 1)	       /* ABI 6, Linux 6.12 */

/* struct landlock_ruleset_attr with all fields up to ABI 6; the kernel takes its size */
struct compat_landlock_ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4, Linux 6.7 */
	uint64_t scoped;	     /* ABI 6 */
};

/* memfd_create(2): executable on purpose, Linux 6.3; older kernels answer EINVAL */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
