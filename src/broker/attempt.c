#include "broker/attempt.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/attempt_internal.h"
#include "kernel/network.h"
#include "kernel/status.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* A refusal that takes longer is a time-out of the network, which programs would wait for. */
#define CONNECT_LIMIT_MS 100
#define CONNECT_TRIES 5
#define MILLISECOND_NS UINT64_C(1000000)
#define HELD(condition) ((condition) ? 0 : -ENOMSG)

static attempt_function attempt_absent, attempt_hidden, attempt_shown, attempt_read_only,
	attempt_outside, attempt_writable, attempt_protected, attempt_private, attempt_devices,
	attempt_path_socket, attempt_setting, attempt_init, attempt_processes, attempt_kill_outside,
	attempt_connect, attempt_loopback, attempt_listener, attempt_interfaces, attempt_abstract,
	attempt_namespace, attempt_identity, attempt_groups, attempt_hostname,
	attempt_shared_memory, attempt_descriptors, attempt_terminal, attempt_session,
	attempt_environment, attempt_core, attempt_capabilities, attempt_no_new_privs,
	attempt_canary, attempt_signal, attempt_filter;

/* In the order of the table; how many arguments each needs at least. */
static const struct {
	attempt_function *function;
	unsigned arguments;
} attempts[ATTEMPT_COUNT] = {
	[ATTEMPT_ABSENT] = { attempt_absent, 1 },
	[ATTEMPT_HIDDEN] = { attempt_hidden, 1 },
	[ATTEMPT_SHOWN] = { attempt_shown, 1 },
	[ATTEMPT_READ_ONLY] = { attempt_read_only, 2 },
	[ATTEMPT_OUTSIDE] = { attempt_outside, 1 },
	[ATTEMPT_WRITABLE] = { attempt_writable, 1 },
	[ATTEMPT_PROTECTED] = { attempt_protected, 2 },
	[ATTEMPT_PRIVATE] = { attempt_private, 1 },
	[ATTEMPT_DEVICES] = { attempt_devices, 0 },
	[ATTEMPT_PATH_SOCKET] = { attempt_path_socket, 1 },
	[ATTEMPT_SETTING] = { attempt_setting, 2 },
	[ATTEMPT_INIT] = { attempt_init, 1 },
	[ATTEMPT_PROCESSES] = { attempt_processes, 0 },
	[ATTEMPT_KILL_OUTSIDE] = { attempt_kill_outside, 1 },
	[ATTEMPT_CONNECT] = { attempt_connect, 3 },
	[ATTEMPT_LOOPBACK] = { attempt_loopback, 0 },
	[ATTEMPT_LISTENER] = { attempt_listener, 3 },
	[ATTEMPT_INTERFACES] = { attempt_interfaces, 0 },
	[ATTEMPT_CAPTURED] = { attempt_captured, 3 },
	[ATTEMPT_DOOR] = { attempt_door, 2 },
	[ATTEMPT_NAME] = { attempt_name, 2 },
	[ATTEMPT_NAMESERVER] = { attempt_nameserver, 1 },
	[ATTEMPT_NAMESERVER_STREAM] = { attempt_nameserver_stream, 1 },
	[ATTEMPT_REBOUND] = { attempt_rebound, 2 },
	[ATTEMPT_CHANGE_NETWORK] = { attempt_change_network, 1 },
	[ATTEMPT_ABSTRACT] = { attempt_abstract, 1 },
	[ATTEMPT_NAMESPACE] = { attempt_namespace, 2 },
	[ATTEMPT_IDENTITY] = { attempt_identity, 2 },
	[ATTEMPT_GROUPS] = { attempt_groups, 0 },
	[ATTEMPT_HOSTNAME] = { attempt_hostname, 1 },
	[ATTEMPT_SHARED_MEMORY] = { attempt_shared_memory, 1 },
	[ATTEMPT_DESCRIPTORS] = { attempt_descriptors, 0 },
	[ATTEMPT_TERMINAL] = { attempt_terminal, 0 },
	[ATTEMPT_SESSION] = { attempt_session, 0 },
	[ATTEMPT_ENVIRONMENT] = { attempt_environment, 0 },
	[ATTEMPT_CORE] = { attempt_core, 1 },
	[ATTEMPT_FILES] = { attempt_files, 1 },
	[ATTEMPT_PIDS] = { attempt_pids, 1 },
	[ATTEMPT_AREA] = { attempt_area, 3 },
	[ATTEMPT_CAPABILITIES] = { attempt_capabilities, 0 },
	[ATTEMPT_NO_NEW_PRIVS] = { attempt_no_new_privs, 0 },
	[ATTEMPT_CANARY] = { attempt_canary, 1 },
	[ATTEMPT_SIGNAL] = { attempt_signal, 0 },
	[ATTEMPT_FILTER] = { attempt_filter, 0 },
	[ATTEMPT_RUN_COPY] = { attempt_run_copy, 2 },
	[ATTEMPT_MAP_COPY] = { attempt_map_copy, 2 },
	[ATTEMPT_MAP_CODE] = { attempt_map_code, 1 },
	[ATTEMPT_MEMORY_FILE] = { attempt_memory_file, 0 },
	[ATTEMPT_RUN_OPEN] = { attempt_run_open, 0 },
	[ATTEMPT_IO_URING] = { attempt_io_uring, 0 },
	[ATTEMPT_BPF] = { attempt_bpf, 0 },
	[ATTEMPT_PERF] = { attempt_perf, 0 },
	[ATTEMPT_USERFAULTFD] = { attempt_userfaultfd, 0 },
	[ATTEMPT_KEYCTL] = { attempt_keyctl, 0 },
	[ATTEMPT_SOCKET] = { attempt_socket, 4 },
	[ATTEMPT_PTRACE] = { attempt_ptrace, 0 },
	[ATTEMPT_UNSHARE] = { attempt_unshare, 0 },
	[ATTEMPT_MOUNT] = { attempt_mount, 0 },
	[ATTEMPT_SETNS] = { attempt_setns, 0 },
	[ATTEMPT_X32] = { attempt_x32, 0 },
	[ATTEMPT_INT80] = { attempt_int80, 0 },
	[ATTEMPT_TIOCSTI] = { attempt_tiocsti, 0 },
	[ATTEMPT_SET_ID] = { attempt_set_id, 1 },
	[ATTEMPT_DEVICE_NODE] = { attempt_device_node, 1 },
	[ATTEMPT_HANDLE] = { attempt_handle, 0 },
	[ATTEMPT_CLONE3] = { attempt_clone3, 0 },
	[ATTEMPT_OPENAT2] = { attempt_openat2, 0 },
};

static const char *const words[ATTEMPT_COUNT] = {
#define ATTEMPT(name, word, layer, claim, answers) word,
#include "broker/battery.def"
#undef ATTEMPT
};

const char *attempt_word(enum attempt attempt)
{
	return words[attempt];
}

enum attempt attempt_find(const char *word)
{
	for (unsigned attempt = 0; attempt < ATTEMPT_COUNT; attempt++)
		if (strcmp(words[attempt], word) == 0)
			return attempt;
	return ATTEMPT_COUNT;
}

int attempt_make(enum attempt attempt, char *const *arguments)
{
	for (unsigned i = 0; i < attempts[attempt].arguments; i++)
		if (!arguments[i])
			return -EINVAL;
	return attempts[attempt].function(arguments);
}

int attempt_in_child(attempt_function *function, char *const *arguments)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(-function(arguments) & 255);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static int read_anything(const char *path)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : 0;
}

static int attempt_absent(char *const *arguments)
{
	/* the name itself: what is absent has none, whatever its modes are */
	return access(arguments[0], F_OK) < 0 ? -errno : 0;
}

static int attempt_hidden(char *const *arguments)
{
	return read_anything(arguments[0]);
}

static int attempt_shown(char *const *arguments)
{
	return access(arguments[0], F_OK) < 0 ? -errno : 0;
}

/* A new file in a directory, or a file opened for writing. Undoes what should not have worked. */
static int change(const char *path, const char *name)
{
	struct stat status;
	char made[PATH_LIMIT_BYTES];
	int CLEANUP_FD fd = -1;

	if (stat(path, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode)) {
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
		return fd < 0 ? -errno : 0;
	}
	if ((size_t)snprintf(made, sizeof(made), "%s/%s", path, name) >= sizeof(made))
		return -ENAMETOOLONG;
	fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	(void)unlink(made);
	return 0;
}

static int attempt_read_only(char *const *arguments)
{
	struct statvfs status;

	/* modes alone would stop most callers: the mount must do it for all */
	if (statvfs(arguments[0], &status) < 0)
		return -EBADMSG;
	return status.f_flag & ST_RDONLY ? change(arguments[0], arguments[1]) : 0;
}

static int attempt_outside(char *const *arguments)
{
	int CLEANUP_FD fd = open(arguments[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? -EBADMSG : -errno;
	(void)unlink(arguments[0]);
	return 0;
}

static int attempt_writable(char *const *arguments)
{
	return attempt_outside(arguments);
}

static int attempt_protected(char *const *arguments)
{
	char aside[PATH_LIMIT_BYTES];
	int result = change(arguments[0], arguments[1]);

	if (result == 0)
		return 0;
	/* nor may it be put aside and replaced */
	if ((size_t)snprintf(aside, sizeof(aside), "%s.%s", arguments[0], arguments[1]) >=
	    sizeof(aside))
		return -ENAMETOOLONG;
	if (rename(arguments[0], aside) < 0)
		return result;
	(void)rename(aside, arguments[0]);
	return 0;
}

static int attempt_private(char *const *arguments)
{
	struct statfs status;

	if (statfs(arguments[0], &status) < 0)
		return -errno;
	return HELD((unsigned long)status.f_type == TMPFS_MAGIC);
}

static bool is_among(const char *name, size_t length, char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == length && memcmp(*names, name, length) == 0)
			return true;
	return false;
}

static int attempt_devices(char *const *arguments)
{
	DIR *directory = opendir("/dev");
	struct dirent *entry;
	int result = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.' &&
		    !is_among(entry->d_name, strlen(entry->d_name), arguments))
			result = -ENOMSG;
	(void)closedir(directory);
	return result;
}

static int connect_unix(const char *name, size_t length)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int CLEANUP_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (length > sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return -errno;
	return 0;
}

static int attempt_path_socket(char *const *arguments)
{
	return connect_unix(arguments[0], strlen(arguments[0]) + 1);
}

static int attempt_abstract(char *const *arguments)
{
	char name[108] = "";

	(void)snprintf(name + 1, sizeof(name) - 1, "%s", arguments[0]);
	return connect_unix(name, 1 + strlen(name + 1));
}

static int attempt_setting(char *const *arguments)
{
	int CLEANUP_FD fd = open(arguments[0], O_WRONLY | O_CLOEXEC);
	struct statvfs status;
	int code = errno;

	if (fd >= 0)
		return 0;
	/* the owner of the file alone would stop most callers: the mount must do it for all */
	if (strcmp(arguments[1], "read-only") == 0 &&
	    (statvfs("/proc", &status) < 0 || !(status.f_flag & ST_RDONLY)))
		return 0;
	return -code;
}

static int attempt_init(char *const *arguments)
{
	char path[64], text[64];
	struct stat status;
	int CLEANUP_FD fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/1/%.40s", arguments[0]);
	if (lstat(path, &status) < 0)
		return -errno;
	if (S_ISLNK(status.st_mode))
		return readlink(path, text, sizeof(text)) < 0 ? -errno : 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return S_ISDIR(status.st_mode) ? 0 : read(fd, text, 1) < 0 ? -errno : 0;
}

/* The parent of a process, by /proc/PID/stat; -1 where it is gone. */
static long parent_of(const char *pid)
{
	char path[64], text[512];
	int CLEANUP_FD fd = -1;
	const char *behind;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	behind = strrchr(text, ')');
	return behind && strlen(behind) > 4 ? strtol(behind + 4, NULL, 10) : -1;
}

/* Process 1, this one, and its children: nothing else is in a box of one action. */
static int attempt_processes(char *const *arguments)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	(void)arguments;
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid > 1 && pid != getpid() && parent_of(entry->d_name) != getpid())
			result = -ENOMSG;
	}
	(void)closedir(directory);
	return result;
}

static int attempt_kill_outside(char *const *arguments)
{
	return kill((pid_t)strtol(arguments[0], NULL, 10), 0) < 0 ? -errno : 0;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int parse_address(const char *text, const char *port, union address *ret_address)
{
	union address address = { 0 };
	uint16_t number = htons((uint16_t)strtoul(port, NULL, 10));

	if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = number;
	} else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1) {
		address.v6.sin6_family = AF_INET6;
		address.v6.sin6_port = number;
	} else {
		return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

static int connect_to(const char *text, const char *port, int type, int limit_ms, int *ret_fd)
{
	union address address = { 0 };
	socklen_t length = sizeof(int);
	int CLEANUP_FD fd = -1;
	int code = 0, result = parse_address(text, port, &address);
	struct pollfd ready;

	if (result < 0)
		return result;
	fd = socket(address.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &address.any,
		    address.any.sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6)) <
	    0) {
		if (errno != EINPROGRESS)
			return -errno;
		ready = (struct pollfd){ .fd = fd, .events = POLLOUT };
		if (poll(&ready, 1, limit_ms) <= 0)
			return -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0 || code)
			return code ? -code : -errno;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int attempt_connect_to(const char *text, const char *port, int type, int *ret_fd)
{
	return connect_to(text, port, type, ATTEMPT_PATIENCE_MS, ret_fd);
}

/* A datagram is refused by a message that comes back, which the next call tells. */
static int hear_refusal(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&ready, 1, CONNECT_LIMIT_MS) != 1)
		return 0;
	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int connect_once(char *const *arguments, bool datagram)
{
	int CLEANUP_FD fd = -1;
	int result = connect_to(arguments[0], arguments[1], datagram ? SOCK_DGRAM : SOCK_STREAM,
				CONNECT_LIMIT_MS, &fd);

	if (result == 0 && datagram && send(fd, "x", 1, MSG_NOSIGNAL) < 0)
		result = -errno;
	return result == 0 && datagram ? hear_refusal(fd) : result;
}

/* Refused at once: a busy machine may need more than one attempt to show that it is so. */
static int attempt_connect(char *const *arguments)
{
	bool datagram = strcmp(arguments[2], "udp") == 0;
	int result = -ETIMEDOUT;

	for (unsigned i = 0; i < CONNECT_TRIES; i++) {
		uint64_t begun_ns = clock_monotonic_ns();

		result = connect_once(arguments, datagram);
		if (result == 0 && !datagram)
			return 0;
		if (result < 0 && result != -ETIMEDOUT &&
		    clock_monotonic_ns() - begun_ns <= CONNECT_LIMIT_MS * MILLISECOND_NS)
			return result;
	}
	return result == 0 ? 0 : -ETIMEDOUT;
}

static int attempt_loopback(char *const *arguments)
{
	union address address = { 0 };
	socklen_t length = sizeof(address);
	int CLEANUP_FD listener = -1, fd = -1;
	char port[8];
	int result = network_listener(AF_INET, SOCK_STREAM, 0, &listener);

	(void)arguments;
	if (result < 0)
		return result;
	if (getsockname(listener, &address.any, &length) < 0)
		return -errno;
	(void)snprintf(port, sizeof(port), "%u", ntohs(address.v4.sin_port));
	return attempt_connect_to("127.0.0.1", port, SOCK_STREAM, &fd);
}

static int attempt_listener(char *const *arguments)
{
	int CLEANUP_FD fd = -1;
	int result = attempt_connect_to(arguments[0], arguments[1], SOCK_STREAM, &fd);

	if (result == 0 && send(fd, arguments[2], strlen(arguments[2]), MSG_NOSIGNAL) < 0)
		result = -errno;
	return result;
}

static int attempt_interfaces(char *const *arguments)
{
	struct if_nameindex *names = if_nameindex();
	int result = 0;

	(void)arguments;
	if (!names)
		return -errno;
	for (struct if_nameindex *at = names; at->if_name; at++)
		if (strcmp(at->if_name, "lo") != 0)
			result = -ENOMSG;
	if_freenameindex(names);
	return result;
}

static int attempt_namespace(char *const *arguments)
{
	char path[64];
	struct stat status;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%.20s", arguments[0]);
	if (stat(path, &status) < 0)
		return -errno;
	return HELD(status.st_ino != strtoull(arguments[1], NULL, 10));
}

static int attempt_identity(char *const *arguments)
{
	uid_t uids[3], uid = (uid_t)strtoul(arguments[0], NULL, 10);
	gid_t gids[3], gid = (gid_t)strtoul(arguments[1], NULL, 10);

	if (getresuid(&uids[0], &uids[1], &uids[2]) < 0 ||
	    getresgid(&gids[0], &gids[1], &gids[2]) < 0)
		return -errno;
	for (unsigned i = 0; i < 3; i++)
		if (uids[i] != uid || gids[i] != gid)
			return -ENOMSG;
	return 0;
}

static int attempt_groups(char *const *arguments)
{
	(void)arguments;
	return HELD(getgroups(0, NULL) == 0);
}

static int attempt_hostname(char *const *arguments)
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1) < 0)
		return -errno;
	return HELD(strcmp(name, arguments[0]) == 0);
}

static int attempt_shared_memory(char *const *arguments)
{
	return shmget((key_t)strtol(arguments[0], NULL, 10), 0, 0) < 0 ? -errno : 0;
}

static int attempt_descriptors(char *const *arguments)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int result = 0;

	(void)arguments;
	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) > 2 &&
		    strtol(entry->d_name, NULL, 10) != dirfd(directory))
			result = -ENOMSG;
	(void)closedir(directory);
	return result;
}

static int attempt_terminal(char *const *arguments)
{
	int CLEANUP_FD fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	(void)arguments;
	return fd < 0 ? -errno : 0;
}

static int attempt_session(char *const *arguments)
{
	(void)arguments;
	return HELD(getsid(0) == getpid());
}

static int attempt_environment(char *const *arguments)
{
	for (char **at = environ; at && *at; at++)
		if (!is_among(*at, strcspn(*at, "="), arguments))
			return -ENOMSG;
	return 0;
}

static int attempt_core(char *const *arguments)
{
	struct rlimit limit;
	rlim_t bytes = strtoull(arguments[0], NULL, 10);

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return -errno;
	return HELD(limit.rlim_cur == bytes && limit.rlim_max == bytes);
}

static int read_own(struct status *ret_status)
{
	int CLEANUP_FD proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return proc_fd < 0 ? -errno : status_read(proc_fd, getpid(), ret_status);
}

static int attempt_capabilities(char *const *arguments)
{
	struct status status = { 0 };
	int result = read_own(&status);

	(void)arguments;
	for (unsigned i = 0; i < 5 && result == 0; i++)
		result = HELD(status.capabilities[i] == 0);
	return result;
}

static int attempt_no_new_privs(char *const *arguments)
{
	struct status status = { 0 };
	int result = read_own(&status);

	(void)arguments;
	return result < 0 ? result : HELD(status.no_new_privs == 1);
}

static int attempt_filter(char *const *arguments)
{
	struct status status = { 0 };
	int result = read_own(&status);

	(void)arguments;
	return result < 0 ? result : HELD(status.seccomp == 2);
}

static int attempt_canary(char *const *arguments)
{
	return read_anything(arguments[0]);
}

static int attempt_signal(char *const *arguments)
{
	(void)arguments;
	return kill(1, 0) < 0 ? -errno : 0;
}
