/*
 * The compiled filters, run by a small interpreter over a table of calls, and installed in
 * children.
 */
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_ARCH AUDIT_ARCH_I386
#define NATIVE_NUMBER(x86_64, aarch64) x86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_ARCH AUDIT_ARCH_ARM
#define NATIVE_NUMBER(x86_64, aarch64) aarch64
#endif

#define X32_BIT 0x40000000
#define HIGH 0xdeadbeef00000000ULL
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define KILL SECCOMP_RET_KILL_PROCESS
#define FAIL(error) (SECCOMP_RET_ERRNO | (error))

static const struct call {
	const char *name;
	int nr;
	const char *header; /* the number as the system's headers have it, or no number at all */
} calls[] = {
#define QUOTE(text) #text
#define EXPAND_AND_QUOTE(text) QUOTE(text)
#define CALL(name, x86_64, aarch64, outcome, group) \
	{ #name, NATIVE_NUMBER(x86_64, aarch64), EXPAND_AND_QUOTE(__NR_##name) },
#include "kernel/seccomp_calls.def"
#undef CALL
};
#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

static int number_of(const char *name)
{
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].nr;
	fail_msg("%s is not listed", name);
	return -1;
}

static uint32_t run_filter(enum seccomp_variant variant, const struct seccomp_data *data)
{
	const struct seccomp_program *program = seccomp_filter(variant);
	uint32_t accumulator = 0, word;

	for (unsigned int at = 0; at < program->length; at++) {
		const struct sock_filter *code = &program->filter[at];
		bool yes = false;

		switch (code->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(code->k % 4 == 0 && code->k <= sizeof(*data) - 4);
			memcpy(&word, (const char *)data + code->k, sizeof(word));
			accumulator = word;
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= code->k;
			continue;
		case BPF_RET | BPF_K:
			return code->k;
		case BPF_JMP | BPF_JA:
			at += code->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = accumulator == code->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = accumulator >= code->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (accumulator & code->k) != 0;
			break;
		default:
			fail_msg("instruction 0x%x", code->code);
		}
		at += yes ? code->jt : code->jf;
	}
	fail_msg("the program of variant %d has no end", variant);
	return 0;
}

static void numbers_are_those_of_the_headers(void **state)
{
	size_t compared = 0;

	(void)state;
	for (size_t i = 0; i < CALL_COUNT; i++) {
		if (calls[i].header[0] < '0' || calls[i].header[0] > '9')
			continue; /* newer than the headers, or not of this architecture */
		if (atoi(calls[i].header) != calls[i].nr)
			fail_msg("%s is %s, not %d", calls[i].name, calls[i].header, calls[i].nr);
		compared++;
	}
	assert_true(compared > 250);
}

/* What every variant of the task filters must answer; columns in the order of the variants. */
struct row {
	const char *call;
	uint64_t args[6];
	uint32_t expected[4]; /* default, ptrace, nested, nested + ptrace */
};

#define ALL(action)                            \
	{                                      \
		action, action, action, action \
	}
#define REPORTED                                         \
	{                                                \
		NOTIFY, NOTIFY, FAIL(EPERM), FAIL(EPERM) \
	}
#define NESTING                              \
	{                                    \
		NOTIFY, NOTIFY, ALLOW, ALLOW \
	}
#define TRACING                                   \
	{                                         \
		NOTIFY, ALLOW, FAIL(EPERM), ALLOW \
	}
#define QUIET_TRACING                                  \
	{                                              \
		FAIL(EPERM), ALLOW, FAIL(EPERM), ALLOW \
	}

static const struct row rows[] = {
	/* io_uring goes around the filter; what the filter cannot see has a fallback. */
	{ "io_uring_setup", { 8 }, ALL(FAIL(ENOSYS)) },
	{ "io_uring_enter", { 3 }, ALL(FAIL(ENOSYS)) },
	{ "io_uring_register", { 3 }, ALL(FAIL(ENOSYS)) },
	{ "openat2", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "clone3", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "fchmodat2", { 0, 0, 04755 }, ALL(FAIL(ENOSYS)) },
	{ "memfd_secret", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "setxattrat", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "file_setattr", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "statmount", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "lsm_set_self_attr", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "modify_ldt", { 0 }, ALL(FAIL(ENOSYS)) },

	/* Address families and protocols. */
	{ "socket", { AF_UNIX, SOCK_STREAM }, ALL(ALLOW) },
	{ "socket", { AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP }, ALL(ALLOW) },
	{ "socket", { AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP }, ALL(ALLOW) },
	{ "socket", { AF_INET6, SOCK_STREAM, 0 }, ALL(ALLOW) },
	{ "socket", { HIGH | AF_INET, HIGH | SOCK_STREAM, HIGH }, ALL(ALLOW) },
	{ "socket", { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0 }, ALL(ALLOW) },
	{ "socket", { AF_NETLINK, SOCK_RAW, 4 }, ALL(FAIL(EPROTONOSUPPORT)) },	/* SOCK_DIAG */
	{ "socket", { AF_NETLINK, SOCK_RAW, 12 }, ALL(FAIL(EPROTONOSUPPORT)) }, /* NETFILTER */
	{ "socket", { AF_NETLINK, SOCK_RAW, HIGH | 12 }, ALL(FAIL(EPROTONOSUPPORT)) },
	{ "socket", { AF_INET, SOCK_RAW, IPPROTO_ICMP }, ALL(FAIL(EPERM)) },
	{ "socket", { AF_INET, HIGH | SOCK_RAW, IPPROTO_TCP }, ALL(FAIL(EPERM)) },
	{ "socket", { AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW }, ALL(FAIL(EPERM)) },
	{ "socket", { AF_INET, SOCK_PACKET, 0x300 }, ALL(FAIL(EPERM)) },
	{ "socket", { AF_INET, SOCK_SEQPACKET, 132 }, ALL(FAIL(ESOCKTNOSUPPORT)) },
	{ "socket", { AF_INET, SOCK_DGRAM, IPPROTO_ICMP }, ALL(FAIL(EPROTONOSUPPORT)) },
	{ "socket", { AF_INET, SOCK_STREAM, 262 }, ALL(FAIL(EPROTONOSUPPORT)) }, /* MPTCP */
	{ "socket", { AF_INET, SOCK_STREAM, HIGH | 262 }, ALL(FAIL(EPROTONOSUPPORT)) },
	{ "socket", { AF_INET6, SOCK_STREAM, 132 }, ALL(FAIL(EPROTONOSUPPORT)) }, /* SCTP */
	{ "socket", { AF_INET, SOCK_DGRAM, 136 }, ALL(FAIL(EPROTONOSUPPORT)) },	  /* UDPLITE */
	{ "socket", { AF_PACKET, SOCK_RAW, 0x300 }, ALL(FAIL(EAFNOSUPPORT)) },
	{ "socket", { HIGH | AF_PACKET, SOCK_DGRAM }, ALL(FAIL(EAFNOSUPPORT)) },
	{ "socket", { 38, SOCK_SEQPACKET }, ALL(FAIL(EAFNOSUPPORT)) }, /* ALG */
	{ "socket", { 40, SOCK_STREAM }, ALL(FAIL(EAFNOSUPPORT)) },    /* VSOCK */
	{ "socket", { 44, SOCK_RAW }, ALL(FAIL(EAFNOSUPPORT)) },       /* XDP */
	{ "socket", { 0, SOCK_STREAM }, ALL(FAIL(EAFNOSUPPORT)) },
	{ "socketpair", { AF_UNIX, SOCK_SEQPACKET }, ALL(ALLOW) },
	{ "socketpair", { HIGH | AF_UNIX, SOCK_STREAM }, ALL(ALLOW) },
	{ "socketpair", { 30, SOCK_STREAM }, ALL(FAIL(EAFNOSUPPORT)) }, /* TIPC */

	/* Namespaces and mounts. */
	{ "unshare", { CLONE_NEWUSER | CLONE_NEWNET }, NESTING },
	{ "unshare", { 0x80 }, NESTING }, /* CLONE_NEWTIME */
	{ "unshare", { HIGH | CLONE_NEWNS }, NESTING },
	{ "unshare", { CLONE_FS | CLONE_FILES | CLONE_SYSVSEM }, ALL(ALLOW) },
	{ "clone", { CLONE_NEWUSER | SIGCHLD }, NESTING },
	{ "clone", { HIGH | CLONE_NEWPID | SIGCHLD }, NESTING },
	{ "clone", { CLONE_NEWCGROUP }, NESTING },
	{ "clone", { CLONE_VM | CLONE_VFORK | SIGCHLD }, ALL(ALLOW) },
	{ "clone", { 0x3d0f00 }, ALL(ALLOW) }, /* a thread of glibc */
	{ "clone", { 0x7d0f00 }, ALL(ALLOW) }, /* and of musl */
	{ "clone", { CLONE_PARENT | SIGCHLD }, { FAIL(EPERM), FAIL(EPERM), ALLOW, ALLOW } },
	{ "mount", { 0 }, NESTING },
	{ "umount2", { 0 }, NESTING },
	{ "pivot_root", { 0 }, NESTING },
	{ "chroot", { 0 }, NESTING },
	{ "open_tree", { 0 }, NESTING },
	{ "move_mount", { 0 }, NESTING },
	{ "fsopen", { 0 }, NESTING },
	{ "fsconfig", { 0 }, NESTING },
	{ "fsmount", { 0 }, NESTING },
	{ "fspick", { 0 }, NESTING },
	{ "mount_setattr", { 0 }, NESTING },
	{ "open_tree_attr", { 0 }, NESTING },
	{ "setns", { 3, 0 }, NESTING },
	{ "sethostname", { 0 }, NESTING },
	{ "setdomainname", { 0 }, NESTING },

	/* Other processes. */
	{ "ptrace", { PTRACE_TRACEME }, TRACING },
	{ "process_vm_readv", { 1 }, TRACING },
	{ "process_vm_writev", { 1 }, TRACING },
	{ "kcmp", { 1, 1 }, TRACING },
	{ "pidfd_getfd", { 3, 0 }, REPORTED },
	{ "personality", { 0x0040000 }, QUIET_TRACING },
	{ "personality", { 0x0040008 }, QUIET_TRACING },
	{ "personality", { HIGH | 0x0040000 }, QUIET_TRACING },
	{ "personality", { 0 }, ALL(ALLOW) },
	{ "personality", { 8 }, ALL(ALLOW) },
	{ "personality", { 0xffffffff }, ALL(ALLOW) },
	{ "personality", { UINT64_MAX }, ALL(ALLOW) },
	{ "personality", { 0x0400000 }, ALL(FAIL(EPERM)) }, /* READ_IMPLIES_EXEC */
	{ "personality", { 0x0020000 }, ALL(FAIL(EPERM)) }, /* UNAME26 */

	/* The rest of the report class: Docker's list and more. */
	{ "bpf", { 0 }, REPORTED },
	{ "perf_event_open", { 0 }, REPORTED },
	{ "userfaultfd", { 0 }, REPORTED },
	{ "keyctl", { 0 }, REPORTED },
	{ "add_key", { 0 }, REPORTED },
	{ "request_key", { 0 }, REPORTED },
	{ "open_by_handle_at", { 0 }, REPORTED },
	{ "name_to_handle_at", { 0 }, REPORTED },
	{ "init_module", { 0 }, REPORTED },
	{ "finit_module", { 0 }, REPORTED },
	{ "delete_module", { 0 }, REPORTED },
	{ "kexec_load", { 0 }, REPORTED },
	{ "kexec_file_load", { 0 }, REPORTED },
	{ "reboot", { 0 }, REPORTED },
	{ "swapon", { 0 }, REPORTED },
	{ "swapoff", { 0 }, REPORTED },
	{ "acct", { 0 }, REPORTED },
	{ "syslog", { 3 }, REPORTED },
	{ "settimeofday", { 0 }, REPORTED },
	{ "clock_settime", { 0 }, REPORTED },
	{ "adjtimex", { 0 }, REPORTED },
	{ "clock_adjtime", { 0 }, REPORTED },
	{ "quotactl", { 0 }, REPORTED },
	{ "quotactl_fd", { 0 }, REPORTED },
	{ "iopl", { 3 }, REPORTED },
	{ "ioperm", { 0 }, REPORTED },
	{ "vhangup", { 0 }, REPORTED },
	{ "fanotify_init", { 0 }, ALL(FAIL(EPERM)) },
	{ "sched_setattr", { 0 }, ALL(FAIL(EPERM)) },
	{ "move_pages", { 0 }, ALL(FAIL(EPERM)) },
	{ "lookup_dcookie", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "uselib", { 0 }, ALL(FAIL(ENOSYS)) },
	{ "nfsservctl", { 0 }, ALL(FAIL(ENOSYS)) },

	/* ioctl: the request is an unsigned int. */
	{ "ioctl", { 0, 0x5412 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 0, HIGH | 0x5412 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 0, 0x541c }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 0, 0x541d }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 0, HIGH | 0x5423 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 0, 0x4b47 }, ALL(FAIL(EPERM)) }, /* KDSKBENT */
	{ "ioctl", { 0, 0x5606 }, ALL(FAIL(EPERM)) }, /* VT_ACTIVATE */
	{ "ioctl", { 3, 0x40086602 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, HIGH | 0x40086602 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x40046602 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x401c5820 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x800c6613 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x40806685 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x40086604 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x40087602 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0xc0506617 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0xc0406618 }, ALL(FAIL(EPERM)) },
	{ "ioctl", { 3, 0x50009401 }, ALL(FAIL(EPERM)) },	 /* BTRFS_IOC_SNAP_CREATE */
	{ "ioctl", { 3, HIGH | 0x50009417 }, ALL(FAIL(EPERM)) }, /* and _V2 */
	{ "ioctl", { 3, 0x5000940e }, ALL(FAIL(EPERM)) },	 /* BTRFS_IOC_SUBVOL_CREATE */
	{ "ioctl", { 3, 0x4008941a }, ALL(FAIL(EPERM)) },	 /* BTRFS_IOC_SUBVOL_SETFLAGS */
	{ "ioctl", { 3, 0x402cbc10 }, ALL(FAIL(EPERM)) },	 /* BCH_IOCTL_SUBVOLUME_CREATE */
	{ "ioctl", { 0, 0x5401 }, ALL(ALLOW) },			 /* TCGETS */
	{ "ioctl", { 0, 0x5413 }, ALL(ALLOW) },			 /* TIOCGWINSZ */
	{ "ioctl", { 0, 0x541b }, ALL(ALLOW) },			 /* FIONREAD */
	{ "ioctl", { 3, 0x40049409 }, ALL(ALLOW) },		 /* FICLONE */
	{ "ioctl", { 3, HIGH | 0x4020940d }, ALL(ALLOW) },	 /* FICLONERANGE */
	{ "ioctl", { 3, 0xc0189436 }, ALL(ALLOW) },		 /* FIDEDUPERANGE */
	{ "ioctl", { 3, 0x80086601 }, ALL(ALLOW) },		 /* FS_IOC_GETFLAGS */

	/* Set-id bits and devices. */
	{ "chmod", { 0, 04755 }, ALL(FAIL(EPERM)) },
	{ "chmod", { 0, 02755 }, ALL(FAIL(EPERM)) },
	{ "chmod", { 0, HIGH | 04755 }, ALL(FAIL(EPERM)) },
	{ "chmod", { 0, 01777 }, ALL(ALLOW) },
	{ "fchmod", { 3, 06755 }, ALL(FAIL(EPERM)) },
	{ "fchmod", { 3, 0755 }, ALL(ALLOW) },
	{ "fchmodat", { 0, 04000, 0755 }, ALL(ALLOW) },
	{ "fchmodat", { 0, 0, 04755 }, ALL(FAIL(EPERM)) },
	{ "creat", { 0, 04755 }, ALL(FAIL(EPERM)) },
	{ "creat", { 0, 0644 }, ALL(ALLOW) },
	{ "open", { 0, O_CREAT | O_WRONLY, 04755 }, ALL(FAIL(EPERM)) },
	{ "open", { 0, HIGH | O_CREAT, HIGH | 02755 }, ALL(FAIL(EPERM)) },
	{ "open", { 0, O_RDONLY, 04755 }, ALL(ALLOW) },
	{ "open", { 0, O_CREAT | O_EXCL, 0666 }, ALL(ALLOW) },
	{ "openat", { 3, 0, O_CREAT | O_WRONLY, 04755 }, ALL(FAIL(EPERM)) },
	{ "openat", { 3, 0, O_TMPFILE | O_RDWR, 02755 }, ALL(FAIL(EPERM)) },
	{ "openat", { 3, 0, 020000000, 04755 }, ALL(FAIL(EPERM)) }, /* without O_DIRECTORY */
	{ "openat", { 3, 0, HIGH | O_CREAT, HIGH | 04755 }, ALL(FAIL(EPERM)) },
	{ "openat", { 3, 0, O_TMPFILE | O_RDWR, 0600 }, ALL(ALLOW) },
	{ "openat", { 3, 0, O_DIRECTORY, 04755 }, ALL(ALLOW) },
	{ "mknod", { 0, S_IFREG | 04755 }, ALL(FAIL(EPERM)) },
	{ "mknod", { 0, S_IFIFO | 0600 }, ALL(ALLOW) },
	{ "mknod", { 0, 0644 }, ALL(ALLOW) },
	{ "mknod", { 0, S_IFCHR | 0600, 0 }, REPORTED },
	{ "mknod", { 0, HIGH | S_IFBLK | 0600, 0x801 }, REPORTED },
	{ "mknodat", { 3, 0, S_IFSOCK | 0600 }, ALL(ALLOW) },
	{ "mknodat", { 3, 0, S_IFIFO | 04600 }, ALL(FAIL(EPERM)) },
	{ "mknodat", { 3, 0, S_IFCHR | 0600, 0x103 }, REPORTED },
	{ "mknodat", { 3, 0, S_IFBLK | 0600, 0x801 }, REPORTED },
	{ "renameat2", { 3, 0, 3, 0, 4 }, REPORTED }, /* RENAME_WHITEOUT */
	{ "renameat2", { 3, 0, 3, 0, HIGH | 5 }, REPORTED },
	{ "renameat2", { 3, 0, 3, 0, 0 }, ALL(ALLOW) },
	{ "renameat2", { 3, 0, 3, 0, 2 }, ALL(ALLOW) },

	/* Starving others. */
	{ "sched_setscheduler", { 0, SCHED_FIFO }, REPORTED },
	{ "sched_setscheduler", { 0, HIGH | SCHED_RR }, REPORTED },
	{ "sched_setscheduler", { 0, 0x40000000 | SCHED_RR }, REPORTED },
	{ "sched_setscheduler", { 0, 6 }, REPORTED },
	{ "sched_setscheduler", { 0, SCHED_OTHER }, ALL(ALLOW) },
	{ "sched_setscheduler", { 0, 0x40000000 | SCHED_BATCH }, ALL(ALLOW) },
	{ "sched_setscheduler", { 0, SCHED_IDLE }, ALL(ALLOW) },
	{ "setrlimit", { 4, 1 }, ALL(FAIL(0)) }, /* RLIMIT_CORE: said, not done */
	{ "setrlimit", { HIGH | 4, 1 }, ALL(FAIL(0)) },
	{ "setrlimit", { 7, 1 }, ALL(ALLOW) },
	{ "prlimit64", { 0, 4, 1 }, ALL(FAIL(0)) },
	{ "prlimit64", { 0, HIGH | 4, 1 }, ALL(FAIL(0)) },
	{ "prlimit64", { 0, 4, HIGH }, ALL(FAIL(0)) }, /* a pointer whose lower half is 0 */
	{ "prlimit64", { 0, 4, 0, 1 }, ALL(ALLOW) },   /* reads it */
	{ "prlimit64", { 0, 7, 1 }, ALL(ALLOW) },
	{ "ioprio_set", { 1, 0, 1 << 13 }, ALL(FAIL(EPERM)) },
	{ "ioprio_set", { 1, 0, HIGH | 1 << 13 | 4 }, ALL(FAIL(EPERM)) },
	{ "ioprio_set", { 1, 0, 2 << 13 | 4 }, ALL(ALLOW) },
	{ "ioprio_set", { 1, 0, 3 << 13 }, ALL(ALLOW) },

	/* What everyday programs need. */
	{ "read", { 0 }, ALL(ALLOW) },
	{ "execve", { 0 }, ALL(ALLOW) },
	{ "execveat", { 0 }, ALL(ALLOW) },
	{ "memfd_create", { 0 }, ALL(ALLOW) },
	{ "rseq", { 0 }, ALL(ALLOW) },
	{ "set_robust_list", { 0 }, ALL(ALLOW) },
	{ "arch_prctl", { 0x1002 }, ALL(ALLOW) },
	{ "prctl", { PR_SET_NAME }, ALL(ALLOW) },
	{ "seccomp", { 1 }, ALL(ALLOW) },
	{ "landlock_create_ruleset", { 0 }, ALL(ALLOW) },
	{ "landlock_restrict_self", { 0 }, ALL(ALLOW) },
	{ "membarrier", { 0 }, ALL(ALLOW) },
	{ "getcpu", { 0 }, ALL(ALLOW) },
	{ "inotify_init1", { 0 }, ALL(ALLOW) },
	{ "pidfd_open", { 0 }, ALL(ALLOW) },
	{ "pidfd_send_signal", { 0 }, ALL(ALLOW) },
	{ "process_madvise", { 0 }, ALL(ALLOW) },
	{ "set_mempolicy", { 0 }, ALL(ALLOW) },
	{ "copy_file_range", { 0 }, ALL(ALLOW) },
	{ "close_range", { 0 }, ALL(ALLOW) },
	{ "statx", { 0 }, ALL(ALLOW) },
	{ "faccessat2", { 0 }, ALL(ALLOW) },
	{ "epoll_pwait2", { 0 }, ALL(ALLOW) },
	{ "futex_waitv", { 0 }, ALL(ALLOW) },
	{ "cachestat", { 0 }, ALL(ALLOW) },
	{ "mseal", { 0 }, ALL(ALLOW) },
	{ "map_shadow_stack", { 0 }, ALL(ALLOW) },
	{ "shmget", { 0 }, ALL(ALLOW) },
	{ "mq_open", { 0 }, ALL(ALLOW) },
	{ "io_setup", { 0 }, ALL(ALLOW) },
	{ "setresuid", { 0 }, ALL(ALLOW) },
	{ "setgroups", { 0 }, ALL(ALLOW) },
	{ "setpriority", { 0 }, ALL(ALLOW) },
	{ "vmsplice", { 0 }, ALL(ALLOW) },
};

static void task_filters_answer_as_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seccomp_data data = { .nr = number_of(rows[i].call), .arch = NATIVE_ARCH };

		if (data.nr < 0)
			continue; /* not of this architecture */
		memcpy(data.args, rows[i].args, sizeof(data.args));
		for (int variant = 0; variant < 4; variant++) {
			uint32_t action = run_filter((enum seccomp_variant)variant, &data);

			if (action != rows[i].expected[variant])
				fail_msg("%s(%llx, %llx, %llx, %llx), variant %d: %x, expected %x",
					 rows[i].call, (unsigned long long)data.args[0],
					 (unsigned long long)data.args[1],
					 (unsigned long long)data.args[2],
					 (unsigned long long)data.args[3], variant, action,
					 rows[i].expected[variant]);
		}
	}
}

static uint32_t unknown_action(int variant)
{
	return variant >= SECCOMP_VARIANT_INIT ? KILL : FAIL(ENOSYS);
}

static void other_abis_are_refused_whole(void **state)
{
	(void)state;
	for (int variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++) {
		for (int nr = 0; nr < 1100; nr++) {
			struct seccomp_data foreign = { .nr = nr, .arch = FOREIGN_ARCH };
			struct seccomp_data x32 = { .nr = nr | X32_BIT, .arch = NATIVE_ARCH };

			assert_int_equal(run_filter((enum seccomp_variant)variant, &foreign),
					 unknown_action(variant));
			assert_int_equal(run_filter((enum seccomp_variant)variant, &x32),
					 unknown_action(variant));
		}
	}
}

static void unknown_numbers_are_absent(void **state)
{
	static const int numbers[] = { 470, 600, 1023, 1024, 1025, 9999, INT32_MAX, -1, INT32_MIN };
	bool listed[1024] = { false };

	(void)state;
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (calls[i].nr >= 0)
			listed[calls[i].nr] = true;
	for (int variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++) {
		struct seccomp_data data = { .arch = NATIVE_ARCH };

		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			data.nr = numbers[i];
			assert_int_equal(run_filter((enum seccomp_variant)variant, &data),
					 unknown_action(variant));
		}
		for (data.nr = 0; data.nr < 1024; data.nr++)
			if (!listed[data.nr])
				assert_int_equal(run_filter((enum seccomp_variant)variant, &data),
						 unknown_action(variant));
	}
}

static void only_the_notifying_variants_notify(void **state)
{
	(void)state;
	for (int variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++) {
		const struct seccomp_program *program =
			seccomp_filter((enum seccomp_variant)variant);
		bool notifies = false;

		for (unsigned int i = 0; i < program->length; i++)
			if (program->filter[i].code == (BPF_RET | BPF_K) &&
			    program->filter[i].k == NOTIFY)
				notifies = true;
		assert_int_equal(notifies, seccomp_notifies((enum seccomp_variant)variant));
	}
	assert_null(seccomp_filter(SECCOMP_VARIANT_COUNT));
}

struct role_row {
	enum seccomp_variant variant;
	const char *call;
	uint64_t args[6];
	uint32_t expected;
};

static const struct role_row role_rows[] = {
	{ SECCOMP_VARIANT_INIT, "execveat", { 3, 0, 0, 0, 0x1000 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "execveat", { 3, 0, 0, 0, 0 }, KILL },
	{ SECCOMP_VARIANT_INIT, "execve", { 0 }, KILL },
	{ SECCOMP_VARIANT_INIT, "wait4", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "waitid", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "signalfd4", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "ppoll", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "kill", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "exit_group", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_INIT, "openat", { 0 }, KILL },
	{ SECCOMP_VARIANT_INIT, "socket", { AF_UNIX }, KILL },
	{ SECCOMP_VARIANT_INIT, "clone", { SIGCHLD }, KILL },
	{ SECCOMP_VARIANT_INIT, "mmap", { 0 }, KILL },
	{ SECCOMP_VARIANT_INIT, "ptrace", { 0 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "read", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_PARSE, "recvmsg", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_PARSE, "memfd_create", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_PARSE,
	  "mmap",
	  { 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS },
	  ALLOW },
	{ SECCOMP_VARIANT_PARSE, "mmap", { 0, 4096, PROT_READ, MAP_PRIVATE }, KILL },
	{ SECCOMP_VARIANT_PARSE, "mmap", { 0, 4096, HIGH | PROT_EXEC, MAP_ANONYMOUS }, KILL },
	{ SECCOMP_VARIANT_PARSE, "mprotect", { 0, 4096, PROT_READ | PROT_WRITE }, ALLOW },
	{ SECCOMP_VARIANT_PARSE, "mprotect", { 0, 4096, PROT_READ | PROT_EXEC }, KILL },
	{ SECCOMP_VARIANT_PARSE, "pkey_mprotect", { 0, 4096, PROT_READ }, KILL },
	{ SECCOMP_VARIANT_PARSE, "fcntl", { 3, F_ADD_SEALS }, ALLOW },
	{ SECCOMP_VARIANT_PARSE, "fcntl", { 3, HIGH | F_GET_SEALS }, ALLOW },
	{ SECCOMP_VARIANT_PARSE, "fcntl", { 3, F_DUPFD }, KILL },
	{ SECCOMP_VARIANT_PARSE, "newfstatat", { 0 }, FAIL(ENOSYS) },
	{ SECCOMP_VARIANT_PARSE, "openat", { 0 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "execveat", { 3, 0, 0, 0, 0x1000 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "socket", { AF_UNIX }, KILL },
	{ SECCOMP_VARIANT_PARSE, "connect", { 0 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "kill", { 0 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "clone", { 0x3d0f00 }, KILL },
	{ SECCOMP_VARIANT_PARSE, "io_uring_setup", { 0 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "read", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_SCOPE, "write", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_SCOPE, "sendmsg", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_SCOPE, "mmap", { 0, 4096, PROT_READ, MAP_PRIVATE }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "mprotect", { 0, 4096, PROT_READ | PROT_EXEC }, KILL },
	/* descriptors that come along are not received */
	{ SECCOMP_VARIANT_SCOPE, "recvmsg", { 0 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "socket", { AF_UNIX }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "connect", { 0 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "openat", { 0 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "execveat", { 3, 0, 0, 0, 0x1000 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "kill", { 0 }, KILL },
	{ SECCOMP_VARIANT_SCOPE, "clone", { 0x3d0f00 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "socket", { HIGH | AF_INET, SOCK_STREAM, 0 }, ALLOW },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0 }, ALLOW },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_INET, SOCK_STREAM, 262 }, KILL }, /* MPTCP */
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_INET, SOCK_DGRAM, IPPROTO_ICMP }, KILL },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_INET, SOCK_RAW, 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_INET, SOCK_SEQPACKET, 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_UNIX, SOCK_STREAM, 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "socket", { AF_NETLINK, SOCK_RAW, 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "connect", { 0 }, ALLOW },
	{ SECCOMP_VARIANT_DIALER, "setsockopt", { 3, IPPROTO_TCP, 1 }, KILL }, /* TCP_NODELAY */
	{ SECCOMP_VARIANT_DIALER, "setsockopt", { 3, SOL_SOCKET, 1 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "getsockopt", { 3, SOL_SOCKET, SO_ERROR }, ALLOW },
	{ SECCOMP_VARIANT_DIALER, "getsockopt", { 3, SOL_SOCKET, SO_PEERCRED }, KILL },
	{ SECCOMP_VARIANT_DIALER, "prlimit64", { 0 }, FAIL(ENOSYS) },
	{ SECCOMP_VARIANT_DIALER, "bind", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "listen", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "accept4", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "openat", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "write", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "memfd_create", { 0 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "execveat", { 3, 0, 0, 0, 0x1000 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "clone", { 0x3d0f00 }, KILL },
	{ SECCOMP_VARIANT_DIALER, "io_uring_setup", { 0 }, KILL },
};

static void role_filters_answer_as_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(role_rows) / sizeof(role_rows[0]); i++) {
		const struct role_row *row = &role_rows[i];
		struct seccomp_data data = { .nr = number_of(row->call), .arch = NATIVE_ARCH };
		uint32_t action;

		memcpy(data.args, row->args, sizeof(data.args));
		action = run_filter(row->variant, &data);
		if (action != row->expected)
			fail_msg("%s in variant %d: %#x, expected %#x", row->call, row->variant,
				 action, row->expected);
	}
}

/* Everything that a role may call, with or without conditions: no more, no less. */
static const struct {
	enum seccomp_variant variant;
	const char *names;
} role_sets[] = {
	{ SECCOMP_VARIANT_INIT,
	  " read write close poll ppoll wait4 waitid signalfd4 rt_sigprocmask rt_sigaction"
	  " rt_sigreturn restart_syscall kill getpid prctl exit exit_group " },
	{ SECCOMP_VARIANT_PARSE,
	  " read readv pread64 write writev pwrite64 recvmsg sendmsg poll ppoll close lseek fstat"
	  " newfstatat ftruncate memfd_create mprotect mremap madvise munmap brk futex getrandom"
	  " clock_gettime rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall exit"
	  " exit_group " },
	{ SECCOMP_VARIANT_SCOPE,
	  " read write sendmsg poll ppoll close mprotect mremap madvise munmap brk futex getrandom"
	  " clock_gettime rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall exit"
	  " exit_group " },
};

static void role_sets_are_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * CALL_COUNT; i++) {
		const struct call *call = &calls[i / 2];
		struct seccomp_data data = { .nr = call->nr, .arch = NATIVE_ARCH };
		char word[64];
		bool listed;

		if (call->nr < 0)
			continue;
		snprintf(word, sizeof(word), " %s ", call->name);
		listed = strstr(role_sets[i % 2].names, word) != NULL;
		if ((run_filter(role_sets[i % 2].variant, &data) != KILL) != listed)
			fail_msg("%s in variant %d", call->name, role_sets[i % 2].variant);
	}
}

static void names_and_groups(void **state)
{
	(void)state;
	assert_string_equal(seccomp_syscall_name(SYS_mount), "mount");
	assert_string_equal(seccomp_syscall_name(SYS_read), "read");
	assert_string_equal(seccomp_syscall_name(444), "landlock_create_ruleset");
	assert_null(seccomp_syscall_name(9999));
	assert_null(seccomp_syscall_name(-1));
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (calls[i].nr >= 0)
			assert_string_equal(seccomp_syscall_name(calls[i].nr), calls[i].name);

	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_mount)), "sys.mount");
	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_unshare)),
			    "sys.namespace");
	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_ptrace)), "sys.ptrace");
	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_keyctl)), "sys.keys");
	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_mknodat)), "sys.device");
	assert_string_equal(seccomp_report_code(seccomp_report_group(SYS_read)), "sys.other");
	assert_string_equal(seccomp_report_code(seccomp_report_group(9999)), "sys.other");
	assert_string_equal(seccomp_report_code((enum seccomp_report)99), "");
}

/* The strict variant is the default one, but for what executes what lies on no mount. */
static void strict_executes_files_of_mounts_alone(void **state)
{
	static const struct {
		const char *call;
		uint64_t args[6];
		uint32_t expected;
	} answers[] = {
		{ "memfd_create", { 0 }, FAIL(ENOSYS) },
		{ "execveat", { 3, 0, 0, 0, 0x1000 }, FAIL(EPERM) },
		{ "execveat", { 3, 0, 0, 0, 0x1100 }, FAIL(EPERM) },
		{ "execveat", { 3, 0, 0, 0, 0x100 }, ALLOW },
		{ "execveat", { 3 }, ALLOW },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct seccomp_data data = { .nr = number_of(answers[i].call),
					     .arch = NATIVE_ARCH };

		memcpy(data.args, answers[i].args, sizeof(data.args));
		assert_int_equal(run_filter(SECCOMP_VARIANT_STRICT, &data), answers[i].expected);
		assert_int_equal(run_filter(SECCOMP_VARIANT_DEFAULT, &data), ALLOW);
	}
	for (size_t i = 0; i < CALL_COUNT; i++) {
		struct seccomp_data data = { .nr = calls[i].nr, .arch = NATIVE_ARCH };

		if (data.nr >= 0 && data.nr != number_of("memfd_create"))
			assert_int_equal(run_filter(SECCOMP_VARIANT_STRICT, &data),
					 run_filter(SECCOMP_VARIANT_DEFAULT, &data));
	}
}

/* A remedy that a denial names must be true: the group tells which variant permits the call. */
static void groups_tell_the_variant_that_permits(void **state)
{
	size_t reported = 0;

	(void)state;
	for (size_t i = 0; i < CALL_COUNT; i++) {
		struct seccomp_data data = { .nr = calls[i].nr, .arch = NATIVE_ARCH };
		enum seccomp_report group = seccomp_report_group(calls[i].nr);
		bool nests = group == SECCOMP_REPORT_MOUNT || group == SECCOMP_REPORT_NAMESPACE;
		bool traces = group == SECCOMP_REPORT_PTRACE;

		if (data.nr < 0 || run_filter(SECCOMP_VARIANT_DEFAULT, &data) != NOTIFY)
			continue;
		reported++;
		assert_true((run_filter(SECCOMP_VARIANT_PTRACE, &data) == ALLOW) == traces);
		assert_true((run_filter(SECCOMP_VARIANT_NESTED, &data) == ALLOW) == nests);
		assert_true((run_filter(SECCOMP_VARIANT_NESTED_PTRACE, &data) == ALLOW) ==
			    (nests || traces));
	}
	assert_true(reported > 30);
}

/* Live: what the kernel makes of the filters. A child's exit status names the failed step. */

static void start_filtered(enum seccomp_variant variant)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(variant, NULL) < 0)
		_exit(100);
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool gives(long result, int error)
{
	return result == -1 && errno == error;
}

static void live_task_child(enum seccomp_variant variant)
{
	bool nested = !seccomp_notifies(variant);
	int unfiltered = syscall(SYS_umount2, "/nonexistent", 0) < 0 ? errno : 0;
	int pair[2];

	start_filtered(variant);
	if (!gives(socket(AF_NETLINK, SOCK_RAW, 15), EPROTONOSUPPORT))
		_exit(1);
	if (!gives(socket(38, SOCK_SEQPACKET, 0), EAFNOSUPPORT))
		_exit(2);
	if (!gives(socket(AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT))
		_exit(3);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		_exit(4);
	if (!gives(fchmod(pair[0], 04755), EPERM))
		_exit(5);
	if (!gives(syscall(425, 8, NULL), ENOSYS))
		_exit(6);
	if (!gives(syscall(9999), ENOSYS))
		_exit(7);
	if (!gives(syscall(SYS_ioctl, 0, HIGH | 0x5412, "x"), EPERM))
		_exit(8);
	/* Without a listener the report class is absent; in the nested variants it is refused. */
	if (!gives(syscall(SYS_bpf, 99, NULL, 0), nested ? EPERM : ENOSYS))
		_exit(10);
	if (!gives(syscall(SYS_umount2, "/nonexistent", 0), nested ? unfiltered : ENOSYS))
		_exit(11);
	_exit(0);
}

static void live_task_filters(void **state)
{
	(void)state;
	for (int variant = 0; variant < SECCOMP_VARIANT_INIT; variant++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			live_task_child((enum seccomp_variant)variant);
		status = wait_for(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail_msg("variant %d: status %#x", variant, status);
	}
}

static void live_roles(void **state)
{
	static const enum seccomp_variant variants[] = { SECCOMP_VARIANT_INIT,
							 SECCOMP_VARIANT_PARSE };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			start_filtered(variants[i / 2]);
			if (i == 0 &&
			    !gives(syscall(SYS_execveat, -1, "", NULL, NULL, 0x1000), EBADF))
				syscall(SYS_exit_group, 8);
			if (i % 2 == 1)
				syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY);
			syscall(SYS_exit_group, 7);
		}
		status = wait_for(pid);
		if (i % 2 == 0)
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		else
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
}

/* What a reader does all day, by the C library. */
static void live_parse_child(void)
{
	char text[64];
	char *bytes;
	int fd;

	start_filtered(SECCOMP_VARIANT_PARSE);
	bytes = malloc(1000);
	if (bytes == NULL)
		syscall(SYS_exit_group, 1);
	for (size_t size = 1000; size < 10000000; size *= 10) {
		char *more = realloc(bytes, size);

		if (more == NULL)
			syscall(SYS_exit_group, 2);
		bytes = more;
		memset(bytes, 'x', size);
	}
	snprintf(text, sizeof(text), "%zu", strlen("text"));
	fd = memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, bytes, 100) != 100 || pwrite(fd, text, 1, 0) != 1 ||
	    ftruncate(fd, 50) < 0 || lseek(fd, 0, SEEK_END) != 50)
		syscall(SYS_exit_group, 3);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		syscall(SYS_exit_group, 4);
	free(bytes);
	close(fd);
	syscall(SYS_exit_group, 0);
}

static void live_parse(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		live_parse_child();
	assert_int_equal(wait_for(pid), 0);
}

static void live_install_needs_no_new_privs(void **state)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		syscall(SYS_capset, &header, none); /* CAP_SYS_ADMIN stands in for it */
		_exit(seccomp_install(SECCOMP_VARIANT_DEFAULT, NULL) == -EACCES ? 0 : 1);
	}
	assert_int_equal(wait_for(pid), 0);
}

static void send_fd(int socket_fd, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { (char[]){ 'x' }, 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(socket_fd, &message, 0) != 1)
		_exit(101);
}

static int receive_fd(int socket_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	assert_int_equal(recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

static void live_listener_child(int socket_fd)
{
	int listener, second = -5;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    seccomp_install(SECCOMP_VARIANT_DEFAULT, &listener) < 0)
		_exit(100);
	if (fcntl(listener, F_GETFD) != FD_CLOEXEC)
		_exit(1);
	if (seccomp_install(SECCOMP_VARIANT_DEFAULT, &second) != -EBUSY || second != -5)
		_exit(2);
	send_fd(socket_fd, listener);
	close(listener);
	if (!gives(mount("a", "b", "c", MS_BIND, NULL), EPERM))
		_exit(3);
	if (!gives(unshare(CLONE_NEWUSER), EACCES))
		_exit(4);
	if (!gives(syscall(SYS_keyctl, 1, 2, 3, 4, 5), EPERM)) /* the supervisor answered 0 */
		_exit(5);
	_exit(0);
}

static void expect_notification(int listener, pid_t pid, int nr, uint64_t argument, int answer)
{
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	struct seccomp_notif_view view;

	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	assert_true(poll_fd.revents & POLLIN);
	assert_int_equal(seccomp_notif_receive(listener, &view), 0);
	assert_int_equal(view.pid, pid);
	assert_int_equal(view.nr, nr);
	assert_true(view.args[nr == SYS_mount ? 3 : 0] == argument);
	assert_int_equal(seccomp_notif_deny(listener, view.id + 1, EPERM), -ENOENT);
	assert_int_equal(seccomp_notif_deny(listener, view.id, answer), 0);
}

static void live_listener(void **state)
{
	struct pollfd poll_fd = { .events = POLLIN };
	int pair[2], listener;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live_listener_child(pair[1]);
	close(pair[1]);
	listener = receive_fd(pair[0]);
	expect_notification(listener, pid, SYS_mount, MS_BIND, EPERM);
	expect_notification(listener, pid, SYS_unshare, CLONE_NEWUSER, EACCES);
	expect_notification(listener, pid, SYS_keyctl, 1, 0);
	assert_int_equal(wait_for(pid), 0);

	poll_fd.fd = listener;
	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	assert_true(poll_fd.revents & POLLHUP);
	close(listener);
	close(pair[0]);
}

static void notification_helpers_report_errors(void **state)
{
	struct seccomp_notif_view view;

	(void)state;
	assert_int_equal(seccomp_notif_receive(-1, &view), -EBADF);
	assert_int_equal(seccomp_notif_deny(-1, 1, EPERM), -EBADF);
}

#if defined(__x86_64__)
static void other_abi_child(bool filtered)
{
	long result;

	/* cmocka's handler would return into the parent's list of tests */
	signal(SIGSEGV, SIG_DFL);
	if (filtered)
		start_filtered(SECCOMP_VARIANT_NESTED_PTRACE);
	/* getpid of i386 */
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "r8", "r9", "r10", "r11", "memory");
	_exit(result == -ENOSYS ? 1 : 0);
}

static void live_other_abi_is_absent(void **state)
{
	(void)state;
	for (int filtered = 0; filtered < 2; filtered++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			other_abi_child(filtered != 0);
		status = wait_for(pid);
		if (!filtered && status != 0)
			skip(); /* the kernel has no such ABI: the test could not fail */
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), filtered);
	}
}

/* A tracer exchanges the number after the call was entered: the filter must see the new one. */
static void traced_child(void)
{
	long pid = getpid();

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(100);
	kill((pid_t)pid, SIGSTOP);
	/* The tracer makes socket(AF_NETLINK, SOCK_RAW, 15) of it. */
	_exit(gives(syscall(SYS_getppid, AF_NETLINK, SOCK_RAW, 15), EPROTONOSUPPORT) ? 0 : 1);
}

static void tracer(void)
{
	struct user_regs_struct registers;
	pid_t pid;
	int status, exchanged = 0;

	start_filtered(SECCOMP_VARIANT_PTRACE);
	pid = fork();
	if (pid == 0)
		traced_child();
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0)
			_exit(102);
		if (WSTOPSIG(status) == SIGTRAP && registers.orig_rax == SYS_getppid) {
			registers.orig_rax = SYS_socket;
			if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) < 0)
				_exit(103);
			exchanged++;
		}
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	}
	if (exchanged != 1)
		_exit(104);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 105);
}

static void live_traced_child_is_still_filtered(void **state)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 15);
	pid_t pid;

	(void)state;
	if (fd < 0)
		skip(); /* the host refuses it by itself: the test could not fail */
	close(fd);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		tracer();
	assert_int_equal(wait_for(pid), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
		cmocka_unit_test(task_filters_answer_as_listed),
		cmocka_unit_test(other_abis_are_refused_whole),
		cmocka_unit_test(unknown_numbers_are_absent),
		cmocka_unit_test(only_the_notifying_variants_notify),
		cmocka_unit_test(role_filters_answer_as_listed),
		cmocka_unit_test(role_sets_are_exact),
		cmocka_unit_test(names_and_groups),
		cmocka_unit_test(strict_executes_files_of_mounts_alone),
		cmocka_unit_test(groups_tell_the_variant_that_permits),
		cmocka_unit_test(live_task_filters),
		cmocka_unit_test(live_roles),
		cmocka_unit_test(live_parse),
		cmocka_unit_test(live_install_needs_no_new_privs),
		cmocka_unit_test(live_listener),
		cmocka_unit_test(notification_helpers_report_errors),
#if defined(__x86_64__)
		cmocka_unit_test(live_other_abi_is_absent),
		cmocka_unit_test(live_traced_child_is_still_filtered),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
