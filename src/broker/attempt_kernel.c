/*
 * Calls that a box refuses. Arguments are chosen so that a kernel without a filter either does it
 * or finds fault with the arguments (EFAULT, EINVAL): both mean that the call got through.
 */
#include "broker/attempt_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int outcome(long result)
{
	return result < 0 ? -errno : 0;
}

int attempt_io_uring(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_io_uring_setup, 1, NULL));
}

int attempt_bpf(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_bpf, 0, NULL, 0));
}

int attempt_perf(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}

int attempt_userfaultfd(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}

int attempt_keyctl(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
}

int attempt_socket(char *const *arguments)
{
	int fd = socket((int)strtol(arguments[1], NULL, 10), (int)strtol(arguments[2], NULL, 10),
			(int)strtol(arguments[3], NULL, 10));

	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static int trace_me(char *const *arguments)
{
	(void)arguments;
	return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

int attempt_ptrace(char *const *arguments)
{
	return attempt_in_child(trace_me, arguments);
}

static int unshare_user(char *const *arguments)
{
	(void)arguments;
	return outcome(unshare(CLONE_NEWUSER));
}

int attempt_unshare(char *const *arguments)
{
	return attempt_in_child(unshare_user, arguments);
}

/* With a mount namespace of its own where it may have one; else as it is. */
static int mount_tmpfs(char *const *arguments)
{
	(void)arguments;
	(void)unshare(CLONE_NEWUSER | CLONE_NEWNS);
	return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

int attempt_mount(char *const *arguments)
{
	return attempt_in_child(mount_tmpfs, arguments);
}

static int join_own(char *const *arguments)
{
	int CLEANUP_FD fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	(void)arguments;
	/* EINVAL: the kernel itself, for one that we are in already */
	return fd < 0 ? -errno : outcome(setns(fd, CLONE_NEWUSER));
}

int attempt_setns(char *const *arguments)
{
	return attempt_in_child(join_own, arguments);
}

#if defined(__x86_64__)
#define X32_BIT 0x40000000L

int attempt_x32(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(X32_BIT | SYS_getpid));
}

/* getpid by the 32-bit entry: number 20 of i386. */
static int call_int80(char *const *arguments)
{
	long result;

	(void)arguments;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result < 0 ? (int)result : 0;
}

int attempt_int80(char *const *arguments)
{
	int result = attempt_in_child(call_int80, arguments);

	/* a kernel without 32-bit calls kills for it */
	return result == -ECHILD ? -ENOSYS : result;
}
#else
/* No other architecture of ours has a second entry. */
int attempt_x32(char *const *arguments)
{
	(void)arguments;
	return -ENOSYS;
}

int attempt_int80(char *const *arguments)
{
	return attempt_x32(arguments);
}
#endif

/* Types into a terminal that is its own controlling one, which the kernel itself would permit. */
static int type_into(char *const *arguments)
{
	int CLEANUP_FD master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int CLEANUP_FD slave = -1;
	char name[64];

	(void)arguments;
	if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
		return -EBADMSG;
	/* the end of the master would hang us up before we can tell */
	if (setsid() < 0 || signal(SIGHUP, SIG_IGN) == SIG_ERR)
		return -EBADMSG;
	slave = open(name, O_RDWR | O_CLOEXEC);
	if (slave < 0)
		return -EBADMSG;
	return outcome(ioctl(slave, TIOCSTI, "x"));
}

int attempt_tiocsti(char *const *arguments)
{
	return attempt_in_child(type_into, arguments);
}

int attempt_set_id(char *const *arguments)
{
	int CLEANUP_FD fd = open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int result;

	if (fd < 0)
		return -EBADMSG;
	result = outcome(fchmod(fd, 04700));
	(void)unlink(arguments[0]);
	return result;
}

int attempt_device_node(char *const *arguments)
{
	/* 0, 0 is a whiteout, which needs no capability */
	int result = outcome(mknod(arguments[0], S_IFCHR | 0600, 0));

	(void)unlink(arguments[0]);
	return result;
}

int attempt_handle(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY));
}

int attempt_clone3(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_clone3, NULL, 0));
}

int attempt_openat2(char *const *arguments)
{
	(void)arguments;
	return outcome(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0));
}
