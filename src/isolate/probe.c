#include "isolate/probe.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "isolate/internal.h"
#include "isolate/probe_internal.h"
#include "kernel/capability.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"
#include "kernel/network.h"
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* A probe that hangs is a finding; none needs more than some milliseconds. */
#define PROBE_TIMEOUT_S 5u
/* The oldest kernel for rung full (docs/SPECIFICATION.md). */
#define KERNEL_MAJOR 5u
#define KERNEL_MINOR 15u

#define ALL_NAMESPACES                                                                             \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

static const struct {
	const char *word;
	enum layer layer;
	enum probe_need need;
	probe_function *function;
} probes[PROBE_COUNT] = {
#define PROBE(name, word, layer, need, function) { word, LAYER_##layer, PROBE_##need, function },
#include "isolate/probe.def"
#undef PROBE
};

const char *probe_name(enum probe probe)
{
	return probes[probe].word;
}

enum layer probe_layer(enum probe probe)
{
	return probes[probe].layer;
}

enum probe_need probe_need(enum probe probe)
{
	return probes[probe].need;
}

bool probe_is_missing(const struct probe_report *report, enum probe probe)
{
	int code = report->results[probe].code;

	return code < 0 && code != -ETIME && probes[probe].need != PROBE_REPORT;
}

/* Becomes the first process of new namespaces, with the caller's own ids in the user namespace. */
static int enter_namespaces(const struct trial *trial, int flags)
{
	const struct probe_subject *subject = trial->subject;
	int CLEANUP_FD proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int result;

	if (proc_fd < 0)
		return -errno;
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	result = namespace_map(proc_fd, 0, subject->uid, subject->uid, subject->gid, subject->gid,
			       1);
	if (result < 0)
		return result;
	return flags && unshare(flags) < 0 ? -errno : 0;
}

static int enter_mounts(const struct trial *trial)
{
	int result = enter_namespaces(trial, CLONE_NEWNS);

	if (result == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		result = -errno;
	return result;
}

/* Runs a step in a child, which is process 1 where a pid namespace was made. */
static int in_child(int (*step)(void *argument), void *argument)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(-step(argument) & 255);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int try_kernel(struct trial *trial)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return -EPROTO;
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "Linux %.60s", name.release);
	return major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR) ?
		       0 :
		       -EOPNOTSUPP;
}

int try_proc_mounted(struct trial *trial)
{
	int CLEANUP_FD fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	(void)trial;
	return fd < 0 ? -errno : 0;
}

/* As fork(2), in new namespaces, by the call that a start uses for this caller. */
static int start_child(const struct trial *trial, unsigned long flags, struct process *ret_process)
{
	int pidfd = -1;
	long pid;

	if (trial->subject->host_root)
		return namespace_clone(flags, ret_process);
	/* clone(2): the third argument is the place of the pidfd on every architecture of ours */
	pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, 0);
	if (pid <= 0)
		return pid < 0 ? -errno : 0;
	*ret_process = (struct process){ .pid = (pid_t)pid, .pidfd = pidfd };
	return 1;
}

/* A child that holds new namespaces until it is let go. */
static int hold_namespaces(const struct trial *trial, unsigned long flags,
			   struct process *ret_process)
{
	int result = start_child(trial, flags, ret_process);

	if (result == 0)
		for (;;)
			(void)pause();
	return result < 0 ? result : 0;
}

static void let_go(struct process *process)
{
	(void)kill(process->pid, SIGKILL);
	(void)waitpid(process->pid, NULL, 0);
	fd_close(&process->pidfd);
}

int try_clone(struct trial *trial)
{
	struct process child = PROCESS_NONE;
	int result = hold_namespaces(trial, 0, &child);

	if (result < 0)
		return result;
	result = child.pidfd < 0 ? -EPROTO : 0;
	let_go(&child);
	return result;
}

int try_user(struct trial *trial)
{
	(void)trial;
	return unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
}

/* As a start does: an ordinary caller writes its own, for the host's root the parent does. */
int try_maps(struct trial *trial)
{
	int CLEANUP_FD proc_fd = -1;
	struct process child = PROCESS_NONE;
	int result;

	if (!trial->subject->host_root)
		return enter_namespaces(trial, 0);
	proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	result = hold_namespaces(trial, CLONE_NEWUSER, &child);
	if (result < 0)
		return result;
	result = namespace_map(proc_fd, child.pid, PLAN_ROOT_CALLER_ID, PLAN_ROOT_HOST_ID,
			       PLAN_ROOT_CALLER_ID, PLAN_ROOT_HOST_ID, 0);
	let_go(&child);
	return result;
}

int try_new_mount(struct trial *trial)
{
	return enter_namespaces(trial, CLONE_NEWNS);
}

static int nothing(void *argument)
{
	(void)argument;
	return getpid() == 1 ? 0 : -EPROTO;
}

int try_new_pid(struct trial *trial)
{
	int result = enter_namespaces(trial, CLONE_NEWPID);

	return result < 0 ? result : in_child(nothing, NULL);
}

int try_new_network(struct trial *trial)
{
	int result = enter_namespaces(trial, CLONE_NEWNET);

	if (result == 0)
		result = network_loopback_up();
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "its loopback is up");
	return result;
}

int try_new_ipc(struct trial *trial)
{
	return enter_namespaces(trial, CLONE_NEWIPC);
}

int try_new_uts(struct trial *trial)
{
	int result = enter_namespaces(trial, CLONE_NEWUTS);

	if (result == 0 && sethostname("bawn", 4) < 0)
		result = -errno;
	return result;
}

int try_new_cgroup(struct trial *trial)
{
	return enter_namespaces(trial, CLONE_NEWCGROUP);
}

int try_private_mounts(struct trial *trial)
{
	return enter_mounts(trial);
}

static int make_tmpfs(int *ret_fd)
{
	static const struct mount_option options[] = { { "mode", "0755" }, { NULL, NULL } };

	return mount_new("tmpfs", options, 0, ret_fd);
}

int try_tmpfs(struct trial *trial)
{
	int CLEANUP_FD fd = -1;
	int result = enter_mounts(trial);

	return result < 0 ? result : make_tmpfs(&fd);
}

/*
 * A tmpfs where a start puts its private areas. /proc/sys: see build.c.
 */
static int attach_tmpfs(int *ret_fd)
{
	int CLEANUP_FD stage = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int CLEANUP_FD fd = -1;
	int result = stage < 0 ? -errno : make_tmpfs(&fd);

	if (result == 0)
		result = mount_attach(fd, stage);
	if (result == 0)
		*ret_fd = TAKE_FD(fd);
	return result;
}

/* A part of the host cloned, made read-only, attached, and seen to be read-only. */
int try_mount_api(struct trial *trial)
{
	int CLEANUP_FD areas = -1, source = -1, tree = -1, place = -1;
	struct statvfs status;
	int result = enter_mounts(trial);

	if (result == 0)
		result = attach_tmpfs(&areas);
	if (result < 0)
		return result;
	source = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(areas, "place", 0755) < 0)
		return -errno;
	place = openat(areas, "place", O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = source < 0 || place < 0 ? -errno : mount_clone(source, &tree);
	if (result == 0)
		result = mount_restrict(tree, MOUNT_READ_ONLY);
	if (result == 0)
		result = mount_attach(tree, place);
	if (result == 0 && (fstatvfs(tree, &status) < 0 || !(status.f_flag & ST_RDONLY)))
		result = -EPROTO;
	return result;
}

int try_openat2(struct trial *trial)
{
	int CLEANUP_FD root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int CLEANUP_FD fd = root < 0 ? -errno : mount_open_in(root, "/proc", O_PATH);

	(void)trial;
	return fd < 0 ? fd : 0;
}

int try_idmap(struct trial *trial)
{
	int CLEANUP_FD source = -1, tree = -1, user = -1, proc_fd = -1;
	struct process holder = PROCESS_NONE;
	int result;

	(void)snprintf(trial->evidence, sizeof(trial->evidence), "%.100s",
		       trial->subject->directory);
	source = open(trial->subject->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source < 0 || proc_fd < 0)
		return -errno;
	result = hold_namespaces(trial, CLONE_NEWUSER, &holder);
	if (result < 0)
		return result;
	result = namespace_map(proc_fd, holder.pid, 0, PLAN_ROOT_HOST_ID, 0, PLAN_ROOT_HOST_ID, 0);
	if (result == 0)
		user = namespace_open(proc_fd, holder.pid, "user");
	let_go(&holder);
	if (result == 0 && user < 0)
		result = user;
	if (result == 0)
		result = mount_clone(source, &tree);
	return result < 0 ? result : mount_idmap(tree, user);
}

/* A lower and an upper directory, and a whiteout that hides by name. */
int try_overlay(struct trial *trial)
{
	static const char *const directories[] = { "lower", "shade", "upper", "work" };
	int CLEANUP_FD areas = -1, merged = -1, file = -1;
	int fds[4] = { -1, -1, -1, -1 };
	char lower[80], upper[40], work[40];
	struct mount_option options[] = { { "userxattr", NULL },
					  { "lowerdir", lower },
					  { "upperdir", upper },
					  { "workdir", work },
					  { NULL, NULL } };
	int result = enter_mounts(trial);

	if (result == 0)
		result = attach_tmpfs(&areas);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < 4; i++) {
		if (mkdirat(areas, directories[i], 0755) < 0)
			return -errno;
		fds[i] = openat(areas, directories[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[i] < 0)
			return -errno;
	}
	file = openat(fds[0], "hidden", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0 || mknodat(fds[1], "hidden", S_IFCHR, 0) < 0)
		return -errno;
	(void)snprintf(lower, sizeof(lower), "/proc/self/fd/%d:/proc/self/fd/%d", fds[1], fds[0]);
	(void)snprintf(upper, sizeof(upper), "/proc/self/fd/%d", fds[2]);
	(void)snprintf(work, sizeof(work), "/proc/self/fd/%d", fds[3]);
	result = mount_new("overlay", options, 0, &merged);
	if (result == 0 && faccessat(merged, "hidden", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EPROTO;
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "a whiteout hides by name");
	return result;
}

static int mount_proc(void *argument)
{
	static const struct mount_option options[] = { { NULL, NULL } };
	int CLEANUP_FD fd = -1;

	(void)argument;
	return mount_new("proc", options, MOUNT_READ_ONLY | MOUNT_NO_EXEC, &fd);
}

int try_proc(struct trial *trial)
{
	int result = enter_namespaces(trial, CLONE_NEWNS | CLONE_NEWPID);

	return result < 0 ? result : in_child(mount_proc, NULL);
}

int try_devpts(struct trial *trial)
{
	static const struct mount_option options[] = {
		{ "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" }, { NULL, NULL }
	};
	int CLEANUP_FD fd = -1;
	int result = enter_mounts(trial);

	return result < 0 ? result :
			    mount_new("devpts", options, MOUNT_DEVICES | MOUNT_NO_EXEC, &fd);
}

int try_pivot(struct trial *trial)
{
	int CLEANUP_FD areas = -1, directory = -1, tree = -1;
	int result = enter_mounts(trial);

	if (result == 0)
		result = attach_tmpfs(&areas);
	if (result < 0)
		return result;
	if (mkdirat(areas, "root", 0755) < 0)
		return -errno;
	directory = openat(areas, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = directory < 0 ? -errno : mount_clone(directory, &tree);
	if (result == 0)
		result = mount_attach(tree, directory);
	if (result < 0)
		return result;
	if (fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0)
		return -errno;
	return access("/usr", F_OK) == 0 ? -EPROTO : 0;
}

int try_nested(struct trial *trial)
{
	int result = enter_namespaces(trial, 0);

	return result < 0 ? result : enter_namespaces(trial, 0);
}

int try_bounding(struct trial *trial)
{
	int result = enter_namespaces(trial, 0);

	return result < 0 ? result : capability_drop_all();
}

int try_no_new_privs(struct trial *trial)
{
	(void)trial;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -EPROTO;
}

/* The exec itself is seen by the close-on-exec end of a pipe; init then ends by the alarm or so. */
int try_memfd(struct trial *trial)
{
	static char *const argv[] = { (char *)(uintptr_t) "bawn-init", NULL };
	static char *const environment[] = { NULL };
	struct error error = ERROR_NONE;
	int CLEANUP_FD image = -1;
	int pair[2], code = 0;
	pid_t pid;

	(void)trial;
	if (host_init_image(&image, &error) < 0)
		return error.code;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)syscall(SYS_execveat, image, "", argv, environment, AT_EMPTY_PATH);
		code = -errno;
		(void)fd_write_all(pair[1], &code, sizeof(code));
		_exit(125);
	}
	(void)close(pair[1]);
	if (read(pair[0], &code, sizeof(code)) < 0)
		code = -errno;
	(void)close(pair[0]);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return code;
}

int try_setns(struct trial *trial)
{
	struct process child = PROCESS_NONE;
	int result = hold_namespaces(trial, ALL_NAMESPACES, &child);

	if (result < 0)
		return result;
	result = namespace_join(child.pidfd, ALL_NAMESPACES);
	let_go(&child);
	return result;
}

int try_close_range(struct trial *trial)
{
	(void)trial;
	return close_range(1000, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

int try_core(struct trial *trial)
{
	struct rlimit limit = { 1, 1 };

	(void)trial;
	return setrlimit(RLIMIT_CORE, &limit) < 0 ? -errno : 0;
}

int try_seccomp(struct trial *trial)
{
	int result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

	if (result == 0)
		result = seccomp_install(SECCOMP_VARIANT_NESTED, NULL);
	if (result < 0)
		return result;
	/* io_uring_setup(2): refused by every filter of ours */
	if (syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno == EFAULT)
		return -EPROTO;
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "io_uring is refused under it");
	return 0;
}

/* Installs the filter, hands the listener to the other side, and makes a call that is reported. */
static int ask_for_notice(int channel)
{
	int CLEANUP_FD listener = -1;
	int result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

	if (result == 0)
		result = seccomp_install(SECCOMP_VARIANT_DEFAULT, &listener);
	if (result == 0)
		result = message_send(channel, ENTER_NOTIFY, NULL, 0, &listener, 1);
	if (result < 0)
		return result;
	fd_close(&listener);
	if (mount("none", "/", "none", 0, NULL) == 0 || errno != EPERM)
		return -EPROTO;
	return 0;
}

int try_notify(struct trial *trial)
{
	struct seccomp_notif_view call;
	struct message message;
	int pair[2], status, result = message_pair(pair);
	pid_t pid;

	if (result < 0)
		return result;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)close(pair[0]);
		_exit(-ask_for_notice(pair[1]) & 255);
	}
	(void)close(pair[1]);
	result = message_receive(pair[0], &message);
	if (result >= 0 && message.fd_count == 1) {
		result = seccomp_notif_receive(message.fds[0], &call);
		if (result == 0)
			result = seccomp_notif_deny(message.fds[0], call.id, EPERM);
	}
	(void)close(pair[0]);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -ECHILD;
	if (WEXITSTATUS(status))
		return -WEXITSTATUS(status);
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "mount was reported and refused");
	return result;
}

/* Which group of ours could hold limits: told only, since this build sets none. */
int try_cgroups(struct trial *trial)
{
	char line[512], path[600];
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool unified = false, legacy = false;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;

		if (!second)
			continue;
		line[strcspn(line, "\n")] = '\0';
		*second = '\0';
		if (colon[1] == '\0') {
			(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%.500s/cgroup.procs",
				       second + 1);
			unified |= access(path, W_OK) == 0;
		} else {
			(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%.60s%.500s/tasks",
				       colon + 1, second + 1);
			legacy |= access(path, W_OK) == 0;
		}
	}
	(void)fclose(file);
	(void)snprintf(trial->evidence, sizeof(trial->evidence), "%s",
		       unified ? "version 2, delegated to the caller" :
		       legacy  ? "version 1, writable" :
				 "none is delegated to the caller");
	return unified || legacy ? 0 : -EACCES;
}

static void run_one(const struct probe_report *report, enum probe probe, int directory_fd,
		    struct probe_result *ret_result)
{
	struct trial trial = { .subject = &report->subject, .directory_fd = directory_fd };
	struct {
		int code;
		char evidence[PROBE_EVIDENCE_BYTES];
	} answer = { 0 };
	int pair[2], status = 0;
	pid_t pid;

	*ret_result = (struct probe_result){ .code = -ETIME };
	if (probes[probe].need == PROBE_ROOT && !report->subject.host_root)
		return;
	if (pipe2(pair, O_CLOEXEC) < 0) {
		ret_result->code = -errno;
		return;
	}
	pid = fork();
	if (pid == 0) {
		sigset_t alarm_set;

		(void)signal(SIGALRM, SIG_DFL);
		sigemptyset(&alarm_set);
		sigaddset(&alarm_set, SIGALRM);
		(void)sigprocmask(SIG_UNBLOCK, &alarm_set, NULL);
		(void)alarm(PROBE_TIMEOUT_S);
		answer.code = probes[probe].function(&trial);
		memcpy(answer.evidence, trial.evidence, sizeof(answer.evidence));
		(void)fd_write_all(pair[1], &answer, sizeof(answer));
		_exit(0);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		ret_result->code = -errno;
	} else if (read(pair[0], &answer, sizeof(answer)) == (ssize_t)sizeof(answer)) {
		ret_result->code = answer.code;
		memcpy(ret_result->evidence, answer.evidence, sizeof(answer.evidence));
		ret_result->evidence[sizeof(ret_result->evidence) - 1] = '\0';
	} else {
		ret_result->code = -ECHILD;
	}
	(void)close(pair[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFSIGNALED(status))
		ret_result->signal = WTERMSIG(status);
}

static long read_number(const char *path)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd < 0 || fd_read_all(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

static void read_text(const char *path, char *ret_text, size_t size)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : fd_read_all(fd, ret_text, size - 1);

	ret_text[length < 0 ? 0 : length] = '\0';
	ret_text[strcspn(ret_text, "\n")] = '\0';
}

static bool is_in_file(const char *path, const char *const *words)
{
	char text[4096];
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : fd_read_all(fd, text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	for (; *words; words++)
		if (strstr(text, *words))
			return true;
	return false;
}

/* Mounts below /proc, and the mount at /: proc(5), /proc/pid/mountinfo. */
static void read_mounts(struct probe_host *host)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], target[2048], root[2048];
	bool seen_root = false;

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		const char *type = strstr(line, " - ");

		if (sscanf(line, "%*d %*d %*s %2047s %2047s", root, target) != 2 || !type)
			continue;
		if (strncmp(target, "/proc/", 6) == 0 && !strstr(type, " - binfmt_misc") &&
		    !strstr(type, " - autofs"))
			host->proc_masked = true;
		if (strcmp(target, "/") != 0)
			continue;
		seen_root = true;
		(void)sscanf(type, " - %31s", host->root_type);
	}
	(void)fclose(file);
	host->initramfs = strcmp(host->root_type, "rootfs") == 0;
	host->chrooted = !seen_root;
}

static void read_limits(struct probe_host *host)
{
	static const char *const names[] = { "mnt", "pid", "net", "ipc", "uts", "cgroup" };

	host->max_user_namespaces = read_number("/proc/sys/user/max_user_namespaces");
	host->max_namespaces = -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		long limit;

		(void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", names[i]);
		limit = read_number(path);
		if (limit >= 0 && (host->max_namespaces < 0 || limit < host->max_namespaces))
			host->max_namespaces = limit;
	}
}

static void read_host(struct probe_host *host)
{
	static const char *const container_names[] = { "docker",     "kubepods", "lxc",
						       "containerd", "libpod",	 NULL };
	static const char *const wsl_names[] = { "Microsoft", NULL };
	static const char *const wsl2_names[] = { "microsoft", "WSL2", NULL };
	struct utsname name = { 0 };

	(void)uname(&name);
	(void)snprintf(host->release, sizeof(host->release), "%s", name.release);
	(void)sscanf(name.release, "%u.%u", &host->major, &host->minor);
	host->apparmor_restricts =
		read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	host->userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone");
	host->memfd_noexec = read_number("/proc/sys/vm/memfd_noexec");
	read_limits(host);
	host->seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	host->container = access("/.dockerenv", F_OK) == 0 ||
			  access("/run/.containerenv", F_OK) == 0 ||
			  is_in_file("/proc/1/cgroup", container_names);
	host->wsl = is_in_file("/proc/version", wsl2_names) ? 2 :
		    is_in_file("/proc/version", wsl_names)  ? 1 :
							      0;
	read_text("/sys/kernel/security/lsm", host->lsm, sizeof(host->lsm));
	read_mounts(host);
}

/* For what the Landlock probes try to make and change. */
static int make_directory(char path[static 32])
{
	int fd;

	(void)snprintf(path, 32, "/tmp/bawn-probe.XXXXXX");
	if (!mkdtemp(path)) {
		path[0] = '\0';
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		(void)rmdir(path);
	return fd;
}

void probe_run(const struct probe_subject *subject, struct probe_report *ret_report)
{
	char path[32];
	int directory_fd = make_directory(path);

	*ret_report = (struct probe_report){ .subject = *subject };
	ret_report->landlock_abi = landlock_abi();
	read_host(&ret_report->host);
	for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
		run_one(ret_report, probe, directory_fd, &ret_report->results[probe]);
	if (directory_fd >= 0)
		(void)rmdir(path);
	fd_close(&directory_fd);
}
