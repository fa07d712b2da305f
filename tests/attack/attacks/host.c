/* What a box must not reach on the host: host NAME [ARGUMENT...]. */
#include "report.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static char **arguments;

static int number(int index)
{
	return (int)strtol(arguments[index], NULL, 0);
}

/* Files */

static int read_file(void)
{
	char bytes[64];
	int fd = open(arguments[0], O_RDONLY);
	ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	/* empty is what a mask gives */
	if (count == 0)
		return refused(ENODATA);
	return judge(count, "the file was read");
}

/* Reads a file and looks for the text: what names it is no matter, the content is. */
static int read_text(void)
{
	char bytes[65536];
	int fd = open(arguments[0], O_RDONLY);
	ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes) - 1);

	if (count < 0)
		return refused(errno);
	for (ssize_t i = 0; i < count; i++)
		bytes[i] = bytes[i] ? bytes[i] : ' ';
	bytes[count] = '\0';
	return strstr(bytes, arguments[1]) ? succeeded("the text was read") : refused(ENODATA);
}

static int write_file(void)
{
	return judge(open(arguments[0], O_WRONLY), "the file was opened for writing");
}

static int list(void)
{
	DIR *directory = opendir(arguments[0]);
	int count = 0;

	if (!directory)
		return refused(errno);
	while (readdir(directory))
		count++;
	return count > 2 ? succeeded("names were listed") : refused(ENOENT);
}

static int look(void)
{
	struct stat status;

	return judge(stat(arguments[0], &status), "it was seen");
}

static int chmod_file(void)
{
	return judge(chmod(arguments[0], 0600), "its mode was set");
}

static int touch(void)
{
	return judge(utimensat(AT_FDCWD, arguments[0], NULL, 0), "its times were set");
}

static int set_xattr(void)
{
	return judge(setxattr(arguments[0], "user.bawn", "x", 1, 0), "an attribute was set");
}

static int truncate_file(void)
{
	return judge(truncate(arguments[0], 4096), "it was truncated");
}

static int truncate_open(void)
{
	return judge(open(arguments[0], O_RDONLY | O_TRUNC), "it was truncated");
}

static int rename_file(void)
{
	return judge(rename(arguments[0], arguments[1]), "it was renamed");
}

static int exchange(void)
{
	return judge(syscall(SYS_renameat2, AT_FDCWD, arguments[0], AT_FDCWD, arguments[1], 2),
		     "they were exchanged");
}

static int link_read(void)
{
	(void)unlink(arguments[1]);
	if (link(arguments[0], arguments[1]) < 0)
		return refused(errno);
	arguments++;
	return read_file();
}

static int symlink_read(void)
{
	(void)unlink(arguments[1]);
	if (symlink(arguments[0], arguments[1]) < 0)
		return refused(errno);
	arguments++;
	return read_file();
}

static int unlink_file(void)
{
	return judge(unlink(arguments[0]), "it was removed");
}

static int make_file(void)
{
	return judge(open(arguments[0], O_CREAT | O_WRONLY, 0644), "it was made");
}

/* mv PARENT ASIDE; read ASIDE/NAME */
static int move_parent(void)
{
	char path[4096];

	if (rename(arguments[0], arguments[1]) < 0)
		return refused(errno);
	(void)snprintf(path, sizeof(path), "%s/%s", arguments[1], arguments[2]);
	arguments[0] = path;
	return read_file();
}

static int remount(void)
{
	if (number(1) && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refused(errno);
	if (mount(NULL, arguments[0], NULL, MS_REMOUNT | MS_BIND, NULL) < 0)
		return refused(errno);
	return succeeded("a read-only mount became writable");
}

static int unmount(void)
{
	if (number(1) && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refused(errno);
	return judge(umount2(arguments[0], MNT_DETACH), "a mount was taken away");
}

static int bind_over(void)
{
	if (number(1) && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refused(errno);
	return judge(mount("/tmp", arguments[0], NULL, MS_BIND | MS_REC, NULL),
		     "a mount was covered");
}

/* Who owns a cgroup namespace mounts cgroupfs, and there could freeze the caller's groups. */
static int mount_cgroup(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
		return refused(errno);
	if (mount("none", "/tmp", "cgroup2", 0, NULL) < 0)
		return refused(errno);
	return judge(open("/tmp/cgroup.procs", O_WRONLY), "the caller's control group was opened");
}

/* bind_around DIRECTORY NAME: a second mount of the directory, without what lies mounted in it */
static int bind_around(void)
{
	char path[4096];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refused(errno);
	if (mount(arguments[0], "/tmp", NULL, MS_BIND, NULL) < 0 &&
	    mount(arguments[0], "/tmp", NULL, MS_BIND | MS_REC, NULL) < 0)
		return refused(errno);
	(void)snprintf(path, sizeof(path), "/tmp/%s", arguments[1]);
	arguments[0] = path;
	return read_file();
}

static int by_descriptor(void)
{
	char path[64], bytes[16];
	int fd;

	/* a leaked descriptor: to a file, or to a directory that leads outside */
	if (read(number(0), bytes, sizeof(bytes)) > 0)
		return succeeded("a leaked descriptor was read");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/secret", number(0));
	fd = openat(number(0), "secret", O_RDONLY);
	if (fd < 0)
		fd = open(path, O_RDONLY);
	return judge(fd, "a leaked directory was walked");
}

/* Any descriptor above 2 but the one that lists them. */
static int descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return succeeded("a descriptor above 2 is open");
	return refused(EBADF);
}

/* Terminal */

static int type_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR);
	char letter = 'x';

	for (int i = 0; fd < 0 && i < 3; i++)
		if (isatty(i))
			fd = i;
	if (fd < 0)
		return refused(errno);
	return judge(ioctl(fd, TIOCSTI, &letter), "a key was typed into the caller's terminal");
}

/* The kernel takes the request as 32 bits; a filter must too. */
static int type_terminal_upper(void)
{
	int fd = open("/dev/tty", O_RDWR);
	char letter = 'x';

	if (fd < 0)
		return refused(errno);
	return judge(syscall(SYS_ioctl, fd, 0x100000000UL | TIOCSTI, &letter),
		     "a key was typed into the caller's terminal");
}

static int write_terminal(void)
{
	int fd = open(arguments[0], O_WRONLY | O_NOCTTY);

	return judge(fd < 0 ? -1 : write(fd, "\033]0;x\a", 6), "the caller's terminal was written");
}

static int own_devpts(void)
{
	struct stat status;
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY), n = -1;

	if (stat("/dev/pts", &status) < 0)
		return refused(errno);
	if (status.st_dev == (dev_t)strtoull(arguments[0], NULL, 0))
		return succeeded("it is the host's devpts");
	/* a new instance counts from 0 */
	if (fd < 0 || ioctl(fd, TIOCGPTN, &n) < 0)
		return refused(errno);
	return n == 0 ? refused(ENOENT) : succeeded("its numbers go on from the host's");
}

/* Processes */

static int kill_process(void)
{
	return judge(kill(number(0), number(1)), "the signal was sent");
}

static int kill_group(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	if (kill(0, SIGTERM) < 0)
		return refused(errno);
	return refused(0);
}

static int ptrace_process(void)
{
	long result = ptrace(PTRACE_SEIZE, number(0), 0, 0);

	if (result == 0)
		(void)ptrace(PTRACE_DETACH, number(0), 0, 0);
	return judge(result, "the process was seized");
}

static int vm_read(void)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)0x1, 1 };

	/* EFAULT: permission was given, the address is nothing */
	if (process_vm_readv(number(0), &local, 1, &remote, 1, 0) < 0 && errno != EFAULT)
		return refused(errno);
	return succeeded("its memory was open");
}

static int take_fd(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, number(0), 0);

	if (pidfd < 0)
		return refused(errno);
	return judge(syscall(SYS_pidfd_getfd, pidfd, number(1), 0), "a descriptor was taken");
}

static int set_limit(void)
{
	struct rlimit old;

	return judge(syscall(SYS_prlimit64, number(0), RLIMIT_NOFILE, NULL, &old),
		     "its limits were read");
}

/* setid PROGRAM: whose identity does a set-id program get? */
static int setid_program(void)
{
	char path[64], line[128];
	int pair[2], status;
	struct stat file;
	unsigned real = ~0u, effective = ~0u;
	pid_t pid;

	if (stat(arguments[0], &file) < 0 || pipe(pair) < 0)
		return refused(errno);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pair[0], 0);
		(void)close(pair[1]);
		(void)execl(arguments[0], arguments[0], "5", (char *)NULL);
		_exit(127);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	for (int i = 0; i < 100 && effective != file.st_uid; i++) {
		FILE *text = fopen(path, "r");

		while (text && fgets(line, sizeof(line), text))
			(void)sscanf(line, "Uid: %u %u", &real, &effective);
		if (text)
			(void)fclose(text);
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		(void)usleep(2000);
	}
	(void)close(pair[1]);
	(void)kill(pid, SIGKILL);
	return effective == file.st_uid ? succeeded("it runs as its owner") : refused(EPERM);
}

static int dump_core(void)
{
	struct rlimit limit;
	int status;
	pid_t pid;

	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_CORE, &limit);
	}
	pid = fork();
	if (pid == 0) {
		(void)chdir("/tmp");
		abort();
	}
	(void)waitpid(pid, &status, 0);
	(void)unlink("/tmp/core");
	return WCOREDUMP(status) ? succeeded("a core was dumped") : refused(EFBIG);
}

static int has_capabilities(void)
{
	unsigned long long sets[5] = { 0 }, all = 0;
	static const char *const names[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		for (int i = 0; i < 5; i++)
			if (strncmp(line, names[i], 6) == 0)
				sets[i] = strtoull(line + 7, NULL, 16);
	for (int i = 0; i < 5; i++)
		all |= sets[i];
	(void)snprintf(line, sizeof(line), "capabilities %llx", all);
	return all ? succeeded(line) : refused(EPERM);
}

/* Sockets and System V */

static int connect_tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)number(1)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)inet_pton(AF_INET, arguments[0], &address.sin_addr);
	return judge(connect(fd, (struct sockaddr *)&address, sizeof(address)), "connected");
}

static int connect_unix(int abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path + abstract, sizeof(address.sun_path) - 1, "%s",
		       arguments[0]);
	return judge(
		connect(fd, (struct sockaddr *)&address,
			(socklen_t)(sizeof(sa_family_t) + (size_t)abstract + strlen(arguments[0]))),
		"connected");
}

static int connect_path(void)
{
	return connect_unix(0);
}

static int connect_abstract(void)
{
	return connect_unix(1);
}

static int shared_memory(void)
{
	return judge(shmget(number(0), 0, 0), "the segment was found");
}

static int message_queue(void)
{
	return judge(msgget(number(0), 0), "the queue was found");
}

static int semaphore(void)
{
	return judge(semget(number(0), 0, 0), "the semaphore was found");
}

static int posix_queue(void)
{
	return judge(mq_open(arguments[0], O_RDONLY), "the queue was opened");
}

static int posix_memory(void)
{
	return judge(shm_open(arguments[0], O_RDONLY, 0), "the object was opened");
}

/* Takes the loopback down: who may, may also change addresses, routes and packet rules. */
static int lo_down(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return judge(ioctl(fd, SIOCSIFFLAGS, &request), "the loopback went down");
}

/* Names */

static int host_name(void)
{
	struct utsname names;

	if (uname(&names) < 0)
		return refused(errno);
	return strcmp(names.nodename, arguments[0]) == 0 ? succeeded("the host's name was read") :
							   refused(ENODATA);
}

static int set_host_name(void)
{
	struct utsname names;

	(void)uname(&names);
	return judge(sethostname(names.nodename, strlen(names.nodename)), "the name was set");
}

static int cgroup_path(void)
{
	char line[512];
	FILE *file = fopen("/proc/self/cgroup", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strcmp(strrchr(line, ':') + 1, "/\n") != 0)
			return succeeded("the host's cgroup path was read");
	return refused(ENODATA);
}

static int variable(void)
{
	return getenv(arguments[0]) ? succeeded("the variable was read") : refused(ENODATA);
}

/* Any file below the directory, no deeper than three, that opens for writing. */
static int write_below(const char *root, int depth, char *found)
{
	DIR *directory = opendir(root);
	struct dirent *entry;
	int count = 0;

	while (directory && (entry = readdir(directory))) {
		char path[4096];
		struct stat status;
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
		if (lstat(path, &status) < 0)
			continue;
		if (S_ISDIR(status.st_mode)) {
			if (depth)
				count += write_below(path, depth - 1, found);
			continue;
		}
		if (!S_ISREG(status.st_mode))
			continue;
		fd = open(path, O_WRONLY | O_NONBLOCK);
		if (fd < 0)
			continue;
		(void)snprintf(found, 256, "%.255s", path);
		(void)close(fd);
		count++;
	}
	if (directory)
		(void)closedir(directory);
	return count;
}

static int write_any(void)
{
	char found[256] = "";

	return write_below(arguments[0], 3, found) ? succeeded(found) : refused(EROFS);
}

/* Writes uid_map of a child in a new user namespace: may it name anybody but itself? */
static int map_others(void)
{
	char text[] = "0 0 65536\n", path[64];
	int fd, result;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	(void)usleep(50000);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_WRONLY);
	result = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
	if (result < 0)
		result = -errno;
	(void)kill(pid, SIGKILL);
	errno = -result;
	return judge(result < 0 ? -1 : 0, "other ids were mapped");
}

static int chown_file(void)
{
	return judge(chown(arguments[0], (uid_t)number(1), (gid_t)-1), "the owner was changed");
}

static const struct {
	const char *name;
	int (*run)(void);
	int count;
} attacks[] = {
	{ "read", read_file, 1 },
	{ "read_text", read_text, 2 },
	{ "write", write_file, 1 },
	{ "write_any", write_any, 1 },
	{ "list", list, 1 },
	{ "stat", look, 1 },
	{ "chmod", chmod_file, 1 },
	{ "touch", touch, 1 },
	{ "setxattr", set_xattr, 1 },
	{ "truncate", truncate_file, 1 },
	{ "truncate_open", truncate_open, 1 },
	{ "rename", rename_file, 2 },
	{ "exchange", exchange, 2 },
	{ "link_read", link_read, 2 },
	{ "symlink_read", symlink_read, 2 },
	{ "unlink", unlink_file, 1 },
	{ "make", make_file, 1 },
	{ "move_parent", move_parent, 3 },
	{ "remount", remount, 2 },
	{ "unmount", unmount, 2 },
	{ "bind_over", bind_over, 2 },
	{ "mount_cgroup", mount_cgroup, 0 },
	{ "bind_around", bind_around, 2 },
	{ "fd", by_descriptor, 1 },
	{ "fds", descriptors, 0 },
	{ "tiocsti", type_terminal, 0 },
	{ "tiocsti_upper", type_terminal_upper, 0 },
	{ "tty_write", write_terminal, 1 },
	{ "devpts", own_devpts, 1 },
	{ "kill", kill_process, 2 },
	{ "kill_group", kill_group, 0 },
	{ "ptrace", ptrace_process, 1 },
	{ "vm_read", vm_read, 1 },
	{ "getfd", take_fd, 2 },
	{ "prlimit", set_limit, 1 },
	{ "setid_program", setid_program, 1 },
	{ "core", dump_core, 0 },
	{ "capabilities", has_capabilities, 0 },
	{ "tcp", connect_tcp, 2 },
	{ "unix", connect_path, 1 },
	{ "abstract", connect_abstract, 1 },
	{ "lo_down", lo_down, 0 },
	{ "shm", shared_memory, 1 },
	{ "msg", message_queue, 1 },
	{ "sem", semaphore, 1 },
	{ "mq", posix_queue, 1 },
	{ "posix_shm", posix_memory, 1 },
	{ "hostname", host_name, 1 },
	{ "sethostname", set_host_name, 0 },
	{ "cgroup", cgroup_path, 0 },
	{ "variable", variable, 1 },
	{ "map_others", map_others, 0 },
	{ "chown", chown_file, 2 },
};

int main(int argc, char **argv)
{
	arguments = argv + 2;
	for (size_t i = 0; argc > 1 && i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (strcmp(attacks[i].name, argv[1]) == 0 && argc - 2 >= attacks[i].count)
			return attacks[i].run();
	fprintf(stderr, "host: no attack %s, or too few arguments\n", argc > 1 ? argv[1] : "");
	return 2;
}
