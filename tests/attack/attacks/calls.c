/* System calls and arguments of them that everyday programs do not need: calls NAME [PATH]. */
#include "report.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *path; /* a file of the workspace to work on */

static int io_uring(void)
{
	struct io_uring_params params = { 0 };

	return judge(syscall(SYS_io_uring_setup, 4, &params), "io_uring_setup gave a ring");
}

static int io_uring_register(void)
{
	/* EBADF or EINVAL: the kernel's code ran */
	long result = syscall(SYS_io_uring_register, -1, 0xffff, NULL, 0);

	return result < 0 && (errno == EPERM || errno == ENOSYS) ?
		       refused(errno) :
		       succeeded("io_uring_register ran");
}

#ifdef __x86_64__
static int x32(void)
{
	return judge(syscall(0x40000000 | SYS_getpid), "an x32 call ran");
}

static void no_gate(int number)
{
	(void)number;
	/* nothing was being printed when the instruction faulted */
	exit(refused(ENOSYS));
}

static int int80(void)
{
	int result;

	/* a kernel without 32-bit calls has no such gate */
	signal(SIGSEGV, no_gate);
	/* getpid of the i386 table; writev for whoever looks at the number alone */
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	if (result < 0) {
		errno = -result;
		return refused(errno);
	}
	return succeeded("an i386 call ran");
}
#endif

static int family(int domain, int type, int protocol)
{
	return judge(socket(domain, type, protocol), "the socket was made");
}

static int alg(void)
{
	return family(AF_ALG, SOCK_SEQPACKET, 0);
}
static int vsock(void)
{
	return family(AF_VSOCK, SOCK_STREAM, 0);
}
static int packet(void)
{
	return family(AF_PACKET, SOCK_RAW, 0);
}
static int packet_old(void)
{
	return family(AF_INET, SOCK_PACKET, 0x300);
}
static int xdp(void)
{
	return family(44, SOCK_RAW, 0);
}
static int raw(void)
{
	return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int ping(void)
{
	return family(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int mptcp(void)
{
	return family(AF_INET, SOCK_STREAM, 262);
}
static int udplite(void)
{
	return family(AF_INET, SOCK_DGRAM, 136);
}
static int netfilter(void)
{
	return family(AF_NETLINK, SOCK_RAW, 12);
}
static int netlink_generic(void)
{
	return family(AF_NETLINK, SOCK_RAW, 16);
}
static int netlink_uevent(void)
{
	return family(AF_NETLINK, SOCK_RAW, 15);
}
static int netlink_audit(void)
{
	return family(AF_NETLINK, SOCK_RAW, 9);
}
static int netlink_diag(void)
{
	return family(AF_NETLINK, SOCK_RAW, 4);
}
static int netlink_xfrm(void)
{
	return family(AF_NETLINK, SOCK_RAW, 6);
}
static int key(void)
{
	return family(15, SOCK_RAW, 2);
}
static int socketpair_alg(void)
{
	int pair[2];

	/* the kernel has none of this family: EOPNOTSUPP means that it was asked */
	if (socketpair(AF_VSOCK, SOCK_STREAM, 0, pair) < 0 && errno != EOPNOTSUPP)
		return refused(errno);
	return succeeded("socketpair reached the family");
}

static int keyctl_session(void)
{
	return judge(syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 0),
		     "the session keyring was named");
}

static int keyctl_user(void)
{
	return judge(syscall(SYS_keyctl, 0, -4 /* user */, 1), "the user keyring was named");
}

static int add_key(void)
{
	return judge(syscall(SYS_add_key, "user", "bawn-attack", "x", 1, -2 /* process */),
		     "a key was added");
}

static int request_key(void)
{
	/* ENOKEY: the kernel looked */
	if (syscall(SYS_request_key, "user", "bawn-no-such-key", NULL, 0) < 0 && errno != ENOKEY)
		return refused(errno);
	return succeeded("the keyrings were searched");
}

static int userfault(void)
{
	return judge(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), "userfaultfd");
}

static int perf(void)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
					      .size = sizeof(attributes),
					      .config = PERF_COUNT_SW_TASK_CLOCK,
					      .exclude_kernel = 1,
					      .exclude_hv = 1 };

	return judge(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0), "perf_event_open");
}

static int bpf(void)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return judge(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)), "bpf map");
}

static int unshare_user(void)
{
	return judge(unshare(CLONE_NEWUSER), "a user namespace was made");
}

static int unshare_user_net(void)
{
	return judge(unshare(CLONE_NEWUSER | CLONE_NEWNET), "namespaces were made");
}

static int unshare_upper(void)
{
	/* unshare takes an unsigned long in glibc's hands; the upper half must not hide the flag */
	return judge(syscall(SYS_unshare, 0x1200000000000000UL | CLONE_NEWUSER),
		     "a user namespace was made");
}

static int clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return judge(pid, "a user namespace was made");
}

static int clone3_user(void)
{
	struct clone_args arguments = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return judge(pid, "a user namespace was made");
}

static int fork_of_supervisor(void)
{
	/* CLONE_PARENT: a child that the supervisor never asked for */
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0);

	if (pid == 0)
		_exit(0);
	return judge(pid, "a sibling was made");
}

static int setns_self(void)
{
	int fd = open("/proc/self/ns/user", O_RDONLY);

	/* EINVAL: the kernel asked whether it is our own already */
	if (syscall(SYS_setns, fd, CLONE_NEWUSER) < 0 && errno != EINVAL)
		return refused(errno);
	return succeeded("setns reached the kernel's check");
}

/*
 * What Docker's default profile refuses, with arguments that can do nothing: it counts as reached
 * where the kernel answers anything but EPERM or ENOSYS. Names of those that were reached. Of
 * Docker's list mbind(2) and set_mempolicy(2) are not here: bawn allows them, as they say only on
 * which memory bank the caller's own pages lie.
 */
static int docker(void)
{
	static const struct {
		const char *name;
		long number;
	} calls[] = {
		{ "acct", SYS_acct },
		{ "add_key", SYS_add_key },
		{ "bpf", SYS_bpf },
		{ "clock_adjtime", SYS_clock_adjtime },
		{ "clock_settime", SYS_clock_settime },
		{ "delete_module", SYS_delete_module },
		{ "fanotify_init", SYS_fanotify_init },
		{ "finit_module", SYS_finit_module },
		{ "fsconfig", SYS_fsconfig },
		{ "fsmount", SYS_fsmount },
		{ "fsopen", SYS_fsopen },
		{ "fspick", SYS_fspick },
		{ "init_module", SYS_init_module },
		{ "kcmp", SYS_kcmp },
		{ "kexec_file_load", SYS_kexec_file_load },
		{ "kexec_load", SYS_kexec_load },
		{ "keyctl", SYS_keyctl },
		{ "lookup_dcookie", SYS_lookup_dcookie },
		{ "migrate_pages", SYS_migrate_pages },
		{ "mount", SYS_mount },
		{ "mount_setattr", SYS_mount_setattr },
		{ "move_mount", SYS_move_mount },
		{ "move_pages", SYS_move_pages },
		{ "name_to_handle_at", SYS_name_to_handle_at },
		{ "open_by_handle_at", SYS_open_by_handle_at },
		{ "open_tree", SYS_open_tree },
		{ "perf_event_open", SYS_perf_event_open },
		{ "pidfd_getfd", SYS_pidfd_getfd },
		{ "pivot_root", SYS_pivot_root },
		{ "process_vm_readv", SYS_process_vm_readv },
		{ "process_vm_writev", SYS_process_vm_writev },
		{ "quotactl", SYS_quotactl },
		{ "quotactl_fd", SYS_quotactl_fd },
		{ "reboot", SYS_reboot },
		{ "request_key", SYS_request_key },
		{ "setdomainname", SYS_setdomainname },
		{ "sethostname", SYS_sethostname },
		{ "setns", SYS_setns },
		{ "swapoff", SYS_swapoff },
		{ "swapon", SYS_swapon },
		{ "syslog", SYS_syslog },
		{ "umount2", SYS_umount2 },
		{ "unshare", SYS_unshare },
		{ "userfaultfd", SYS_userfaultfd },
		{ "vhangup", -1 },
		{ "io_uring_enter", SYS_io_uring_enter },
		{ "ptrace", SYS_ptrace },
#ifdef __x86_64__
		{ "create_module", SYS_create_module },
		{ "get_kernel_syms", SYS_get_kernel_syms },
		{ "ioperm", SYS_ioperm },
		{ "iopl", SYS_iopl },
		{ "modify_ldt", SYS_modify_ldt },
		{ "nfsservctl", SYS_nfsservctl },
		{ "query_module", SYS_query_module },
		{ "sysfs", SYS_sysfs },
		{ "_sysctl", SYS__sysctl },
		{ "uselib", SYS_uselib },
		{ "ustat", SYS_ustat },
#endif
	};
	char reached[2048] = "";

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number < 0)
			continue;
		errno = 0;
		if (syscall(calls[i].number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 &&
		    (errno == EPERM || errno == ENOSYS))
			continue;
		(void)strncat(reached, calls[i].name, sizeof(reached) - strlen(reached) - 2);
		(void)strncat(reached, " ", sizeof(reached) - strlen(reached) - 1);
	}
	return reached[0] ? succeeded(reached) : refused(EPERM);
}

static int by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = { .head.handle_bytes = 128 };
	int mount_id, root;

	/* Shocker: the root of the file system that holds any file of ours, by its known handle */
	if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0) < 0) {
		/* ext4: inode 2, generation 0 */
		handle.head.handle_bytes = 8;
		handle.head.handle_type = 1;
		memset(handle.bytes, 0, sizeof(handle.bytes));
		handle.bytes[0] = 2;
	}
	root = open(path, O_RDONLY);
	return judge(open_by_handle_at(root, &handle.head, O_RDONLY), "a handle was opened");
}

static int mount_tmpfs(void)
{
	return judge(mount("none", "/tmp", "tmpfs", 0, NULL), "a file system was mounted");
}

static int mount_new_api(void)
{
	return judge(syscall(SYS_fsopen, "tmpfs", 0), "fsopen gave a context");
}

static int open_tree_clone(void)
{
	return judge(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */),
		     "a tree was cloned");
}

/* A child that waits. */
static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(5);
		for (;;)
			(void)pause();
	}
	return pid;
}

static int end(pid_t pid, int verdict)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return verdict;
}

static int ptrace_child(void)
{
	pid_t pid = sleeper();

	return end(pid, judge(ptrace(PTRACE_SEIZE, pid, 0, 0), "a child was seized"));
}

static int vm_read_child(void)
{
	static char secret[8] = "secret";
	char copy[8];
	struct iovec local = { copy, 8 }, remote = { secret, 8 };
	pid_t pid = sleeper();

	return end(pid, judge(process_vm_readv(pid, &local, 1, &remote, 1, 0), "memory was read"));
}

static int getfd_child(void)
{
	pid_t pid = sleeper();
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	return end(pid, judge(syscall(SYS_pidfd_getfd, pidfd, 0, 0), "a descriptor was taken"));
}

#ifdef __x86_64__
/* The tracer turns a permitted call of its child into unshare(CLONE_NEWUSER) (CVE-2017-5206). */
static int rewrite(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(errno);
		(void)raise(SIGSTOP);
		_exit(syscall(SYS_getppid) == 0 ? 0 : errno ? errno : 250);
	}
	(void)waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		return refused(WEXITSTATUS(status));
	for (int stops = 0; stops < 200; stops++) {
		struct user_regs_struct registers;

		(void)ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) < 0 || WIFEXITED(status))
			break;
		(void)ptrace(PTRACE_GETREGS, pid, 0, &registers);
		if (registers.orig_rax == SYS_getppid) {
			registers.orig_rax = SYS_unshare;
			registers.rdi = CLONE_NEWUSER;
			(void)ptrace(PTRACE_SETREGS, pid, 0, &registers);
			(void)ptrace(PTRACE_CONT, pid, 0, 0);
			(void)waitpid(pid, &status, 0);
			break;
		}
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? succeeded("the rewritten call ran") :
	       WIFEXITED(status)			     ? refused(WEXITSTATUS(status)) :
							       refused(0);
}
#endif

static int round_robin(void)
{
	struct sched_param param = { .sched_priority = 1 };

	return judge(sched_setscheduler(0, SCHED_RR, &param), "real-time scheduling");
}

static int round_robin_attr(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .policy = SCHED_RR, .priority = 1 };

	return judge(syscall(SYS_sched_setattr, 0, &attr, 0), "real-time scheduling");
}

static int nice_low(void)
{
	return judge(setpriority(PRIO_PROCESS, 0, -20), "priority -20");
}

static int io_realtime(void)
{
	return judge(syscall(SYS_ioprio_set, 1, 0, 1 << 13), "real-time I/O class");
}

static int clock_set(void)
{
	struct timespec wrong = { .tv_nsec = 2000000000 };

	/* EINVAL: the kernel looked at the time that was to be set */
	if (syscall(SYS_clock_settime, CLOCK_REALTIME, &wrong) < 0 && errno != EINVAL)
		return refused(errno);
	return succeeded("clock_settime reached the kernel's check");
}

static int clock_of_day(void)
{
	struct timeval wrong = { .tv_usec = 2000000 };

	if (syscall(SYS_settimeofday, &wrong, NULL) < 0 && errno != EINVAL)
		return refused(errno);
	return succeeded("settimeofday reached the kernel's check");
}

static int clock_adjust(void)
{
	struct timex change = { .modes = ADJ_TICK, .tick = 1 };

	if (adjtimex(&change) < 0 && errno != EINVAL)
		return refused(errno);
	return succeeded("adjtimex reached the kernel's check");
}

static int attributes(void)
{
	int fd = open(path, O_RDONLY), flags = 0;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return refused(errno);
	flags |= FS_NODUMP_FL;
	return judge(ioctl(fd, FS_IOC_SETFLAGS, &flags), "attributes were set");
}

static int extended_attributes(void)
{
	struct fsxattr extended;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &extended) < 0)
		return refused(errno);
	extended.fsx_xflags |= 0x80; /* no dump */
	return judge(ioctl(fd, FS_IOC_FSSETXATTR, &extended), "attributes were set");
}

static int inode_version(void)
{
	int fd = open(path, O_RDONLY);
	long version = 4711;

	if (fd < 0)
		return refused(errno);
	/* on another file system nobody knows the request; what counts is who said no */
	if (ioctl(fd, FS_IOC_SETVERSION, &version) == 0 || errno == ENOTTY)
		return succeeded("the file system was asked for another generation");
	return refused(errno);
}

/* Where the workspace is a subvolume, a snapshot of it has what is hidden there. */
static int subvolume_snapshot(void)
{
	struct btrfs_ioctl_vol_args snapshot = { .fd = open(".", O_RDONLY), .name = "snapshot" };

	/* as above */
	if (ioctl((int)snapshot.fd, BTRFS_IOC_SNAP_CREATE, &snapshot) == 0 || errno == ENOTTY)
		return succeeded("the file system was asked for a snapshot");
	return refused(errno);
}

static int has_setid(int directory, const char *name)
{
	struct stat status;

	if (fstatat(directory, name, &status, 0) < 0)
		return refused(errno);
	(void)unlinkat(directory, name, 0);
	return status.st_mode & 06000 ? succeeded("a set-id file lies on the disk") :
					refused(EPERM);
}

/* Every way to leave a set-id bit; which: a number. */
static int setid_by(int which)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };
	char name[64];
	int fd = -1;
	long result = 0;

	(void)snprintf(name, sizeof(name), "setid%d", which);
	(void)unlink(name);
	(void)umask(0);
	if (which <= 4)
		fd = creat(name, 0755);
	switch (which) {
	case 0:
		result = chmod(name, 04755);
		break;
	case 1:
		result = fchmod(fd, 04755);
		break;
	case 2:
		result = syscall(SYS_fchmodat, AT_FDCWD, name, 02755);
		break;
	case 3:
		result = syscall(452 /* fchmodat2 */, AT_FDCWD, name, 04755, 0);
		break;
	case 4:
		result = syscall(452, fd, "", 04755, AT_EMPTY_PATH);
		break;
	case 5:
		result = open(name, O_CREAT | O_WRONLY, 04755);
		break;
	case 6:
		result = syscall(SYS_openat, AT_FDCWD, name, O_CREAT | O_WRONLY, 02755);
		break;
	case 7:
		result = syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
		break;
	case 8:
		result = syscall(SYS_creat, name, 06755);
		break;
	case 9:
		result = syscall(SYS_mknod, name, S_IFREG | 04755, 0);
		break;
	case 10:
		result = syscall(SYS_mknodat, AT_FDCWD, name, 04755, 0);
		break;
	case 11:
		fd = open(".", O_TMPFILE | O_WRONLY, 04755);
		result = fd < 0 ? -1 : 0;
		if (fd >= 0) {
			char link[64];

			(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
			result = linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
		}
		break;
	case 12:
		/* a mode with garbage above the bits that count */
		result = syscall(SYS_mknodat, AT_FDCWD, name, 0xffff0000u | S_IFREG | 04755, 0);
		break;
	default:
		errno = EINVAL;
		result = -1;
	}
	if (result < 0) {
		int code = errno;

		(void)unlink(name);
		return refused(code);
	}
	return has_setid(AT_FDCWD, name);
}

static int setid(void)
{
	return setid_by(atoi(path));
}

static int setid_directory(void)
{
	(void)rmdir("setid-dir");
	(void)mkdir("setid-dir", 0755);
	int result = chmod("setid-dir", 02755), code = errno;

	(void)rmdir("setid-dir");
	errno = code;
	return judge(result, "a set-group-id directory was made");
}

static int device_node(void)
{
	int result = mknod("node", S_IFCHR | 0600, (1 << 8) | 3), code = errno;

	(void)unlink("node");
	errno = code;
	return judge(result, "a device node was made");
}

static int whiteout(void)
{
	/* 0/0 needs no privilege (Linux 5.8): it hides names in overlays of the host */
	int result = mknod("node0", S_IFCHR | 0600, 0), code = errno;

	(void)unlink("node0");
	errno = code;
	return judge(result, "a whiteout was made");
}

static int whiteout_by_rename(void)
{
	int result, code;

	(void)close(creat("moved", 0600));
	result = (int)syscall(SYS_renameat2, AT_FDCWD, "moved", AT_FDCWD, "moved-on",
			      RENAME_WHITEOUT);
	code = errno;
	(void)unlink("moved");
	(void)unlink("moved-on");
	errno = code;
	return judge(result, "a whiteout was made");
}

static int file_capability(void)
{
	unsigned char value[20] = { 1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff };
	int result, code;

	(void)close(creat("capable", 0755));
	result = (int)syscall(SYS_setxattr, "capable", "security.capability", value, sizeof(value),
			      0);
	code = errno;
	(void)unlink("capable");
	errno = code;
	return judge(result, "a file capability was set");
}

static int lock_all(void)
{
	/* what can be locked in one process is bounded by RLIMIT_MEMLOCK */
	void *memory = mmap(NULL, 256u << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return judge(mlock(memory, 256u << 20), "256 MiB were locked");
}

static int filter_in_threads(void)
{
	char line[256];
	FILE *file = fopen("/proc/thread-self/status", "r");
	int mode = -1;

	while (file && fgets(line, sizeof(line), file))
		(void)sscanf(line, "Seccomp: %d", &mode);
	return mode == 2 ? refused(EPERM) : succeeded("a thread without a filter");
}

static const struct {
	const char *name;
	int (*run)(void);
} attacks[] = {
	{ "io_uring", io_uring },
	{ "io_uring_register", io_uring_register },
#ifdef __x86_64__
	{ "x32", x32 },
	{ "int80", int80 },
	{ "rewrite", rewrite },
#endif
	{ "alg", alg },
	{ "vsock", vsock },
	{ "packet", packet },
	{ "packet_old", packet_old },
	{ "xdp", xdp },
	{ "raw", raw },
	{ "ping", ping },
	{ "mptcp", mptcp },
	{ "udplite", udplite },
	{ "netfilter", netfilter },
	{ "netlink_generic", netlink_generic },
	{ "netlink_uevent", netlink_uevent },
	{ "netlink_audit", netlink_audit },
	{ "netlink_diag", netlink_diag },
	{ "netlink_xfrm", netlink_xfrm },
	{ "key", key },
	{ "socketpair", socketpair_alg },
	{ "keyctl_session", keyctl_session },
	{ "keyctl_user", keyctl_user },
	{ "add_key", add_key },
	{ "request_key", request_key },
	{ "userfaultfd", userfault },
	{ "perf", perf },
	{ "bpf", bpf },
	{ "unshare_user", unshare_user },
	{ "unshare_user_net", unshare_user_net },
	{ "unshare_upper", unshare_upper },
	{ "clone_user", clone_user },
	{ "clone3_user", clone3_user },
	{ "clone_parent", fork_of_supervisor },
	{ "setns", setns_self },
	{ "docker", docker },
	{ "by_handle", by_handle },
	{ "mount", mount_tmpfs },
	{ "fsopen", mount_new_api },
	{ "open_tree", open_tree_clone },
	{ "ptrace_child", ptrace_child },
	{ "vm_read_child", vm_read_child },
	{ "getfd_child", getfd_child },
	{ "round_robin", round_robin },
	{ "round_robin_attr", round_robin_attr },
	{ "nice", nice_low },
	{ "io_realtime", io_realtime },
	{ "clock_settime", clock_set },
	{ "settimeofday", clock_of_day },
	{ "adjtimex", clock_adjust },
	{ "setflags", attributes },
	{ "fssetxattr", extended_attributes },
	{ "setversion", inode_version },
	{ "subvolume", subvolume_snapshot },
	{ "setid", setid },
	{ "setid_directory", setid_directory },
	{ "device_node", device_node },
	{ "whiteout", whiteout },
	{ "whiteout_rename", whiteout_by_rename },
	{ "file_capability", file_capability },
	{ "mlock", lock_all },
	{ "thread_filter", filter_in_threads },
};

static void *in_thread(void *argument)
{
	int (*attack)(void) = *(int (**)(void))argument;

	return (void *)(intptr_t)attack();
}

int main(int argc, char **argv)
{
	int threaded = argc > 1 && strcmp(argv[1], "--thread") == 0;
	void *verdict;
	pthread_t thread;

	argv += threaded;
	argc -= threaded;
	path = argc > 2 ? argv[2] : ".";
	for (size_t i = 0; argc > 1 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		int (*run)(void) = attacks[i].run;

		if (strcmp(attacks[i].name, argv[1]) != 0)
			continue;
		if (!threaded)
			return run();
		if (pthread_create(&thread, NULL, in_thread, &run) != 0)
			return 2;
		(void)pthread_join(thread, &verdict);
		return (int)(intptr_t)verdict;
	}
	fprintf(stderr, "calls: no attack %s\n", argc > 1 ? argv[1] : "");
	return 2;
}
