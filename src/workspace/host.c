#include "workspace/host.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* A password database of a large site; beyond it, and for network databases, getent answers. */
#define PASSWD_LIMIT_BYTES (1024 * 1024)
#define PASSWD_FIELDS 7

/* Splits one line at its colons, in place; false when it is no passwd(5) entry. */
static bool split(char *line, char *fields[static PASSWD_FIELDS])
{
	for (unsigned i = 0; i < PASSWD_FIELDS; i++) {
		fields[i] = line;
		line += strcspn(line, ":");
		if (i + 1 < PASSWD_FIELDS) {
			if (!*line)
				return false;
			*line++ = '\0';
		}
	}
	return true;
}

static bool take_entry(struct arena *arena, char *text, struct caller *host)
{
	char uid[16];

	(void)snprintf(uid, sizeof(uid), "%u", host->uid);
	for (char *line = text; *line;) {
		char *next = line + strcspn(line, "\n");
		char *fields[PASSWD_FIELDS];

		if (*next)
			*next++ = '\0';
		if (split(line, fields) && strcmp(fields[2], uid) == 0 && fields[0][0]) {
			host->user = arena_copy(arena, fields[0]);
			host->home = path_clean(arena, "/", fields[5][0] ? fields[5] : "/");
			host->shell = path_clean(arena, "/", fields[6][0] ? fields[6] : "/bin/sh");
			host->known = true;
			return true;
		}
		line = next;
	}
	return false;
}

static char *read_text(struct arena *arena, int fd)
{
	struct stat status;
	size_t room = PASSWD_LIMIT_BYTES;
	ssize_t length;
	char *text;

	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < (off_t)room)
		room = (size_t)status.st_size;
	text = arena_allocate(arena, room + 1);
	length = text ? fd_read_all(fd, text, room) : -ENOMEM;
	if (length < 0)
		return NULL;
	text[length] = '\0';
	return text;
}

/* Its output to the pipe, its complaints, which are about itself, nowhere. Negative errno. */
static int start_getent(char *const *argv, int out_fd, pid_t *ret_pid)
{
	char *environment[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	posix_spawn_file_actions_t actions;
	int code = posix_spawn_file_actions_init(&actions);

	if (code)
		return -code;
	/* without memory an action is missing: its output would be ours */
	code = posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	if (!code)
		code = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (!code)
		code = posix_spawn(ret_pid, "/usr/bin/getent", &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -code;
}

/*
 * A database that is not in the file (LDAP, sssd): getent asks the C library's modules for us.
 * ret_text: NULL where nobody has that number, or there is no getent. Negative errno: not known.
 */
static int ask_getent(struct arena *arena, uint32_t uid, char **ret_text)
{
	char number[16];
	char *argv[] = { (char *)"getent", (char *)"passwd", number, NULL };
	int pipe_fds[2], status, result;
	char *text = NULL;
	pid_t pid;

	(void)snprintf(number, sizeof(number), "%u", uid);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	result = start_getent(argv, pipe_fds[1], &pid);
	fd_close(&pipe_fds[1]);
	if (result == 0) {
		text = read_text(arena, pipe_fds[0]);
		/* 2: no such entry; 127: it could not be executed after all */
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			result = -ECHILD;
		else if (WEXITSTATUS(status) != 0)
			text = NULL;
		else if (!text)
			result = -ENOMEM;
	}
	fd_close(&pipe_fds[0]);
	*ret_text = text;
	return result == -ENOENT ? 0 : result;
}

/* /home may be a link (to /var/home, for example), or the home itself. */
static int find_real_home(struct arena *arena, struct caller *host, struct error *error)
{
	char room[PATH_MAX], *real = realpath(host->home, room);
	struct stat status;
	int result = 0;

	if (!real && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
		return error_errno(error, errno, "looking at the home %s", host->home);
	if (real && lstat(real, &status) < 0)
		result = error_errno(error, errno, "looking at the home %s", real);
	else if (real && real[1] && S_ISDIR(status.st_mode))
		host->real_home = arena_copy(arena, real);
	else
		host->home = NULL;
	if (result == 0 && host->home && !host->real_home)
		result = error_errno(error, ENOMEM, "looking at the home %s", host->home);
	return result;
}

static int find_user(struct arena *arena, struct caller *host, struct error *error)
{
	int CLEANUP_FD fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : read_text(arena, fd);
	struct stat status;

	if (!text || !take_entry(arena, text, host)) {
		int result = ask_getent(arena, host->uid, &text);

		/* what keeps the home private needs to know whether there is one */
		if (result < 0)
			return error_errno(error, -result, "asking getent for the caller %u",
					   host->uid);
		if (!text || !take_entry(arena, text, host))
			return 0;
	}
	if (!host->home)
		return 0;
	if (lstat(host->home, &status) == 0) {
		int result = find_real_home(arena, host, error);

		/* programs inside do not expect a home that is a link */
		if (S_ISLNK(status.st_mode))
			host->home = host->real_home;
		return result;
	}
	/* what keeps the home private needs to know that there is one */
	if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
		return error_errno(error, errno, "looking at the home %s", host->home);
	host->home = NULL;
	return 0;
}

/* "0 0 4294967295" is the map of the host's own user namespace (user_namespaces(7)). */
static bool has_whole_map(void)
{
	int CLEANUP_FD fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	unsigned inside, outside, count;
	char text[128];
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);

	if (length <= 0)
		return false;
	text[length] = '\0';
	return sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
	       outside == 0 && count == UINT32_MAX;
}

/*
 * True when the caller is the host's uid 0 by whatever name: the kernel shows the owner of /proc,
 * which is that uid, as the namespace we are in names it. Where the namespace has no name for it,
 * it shows "nobody"; a caller of that number is told apart by a file of mode 0400.
 */
static bool is_host_root(uint32_t uid)
{
	struct statfs system;
	struct stat status;

	if (statfs("/proc", &system) < 0 || system.f_type != PROC_SUPER_MAGIC ||
	    stat("/proc", &status) < 0 || status.st_uid != uid)
		return false;
	return uid != 65534 || access("/proc/kmsg", R_OK) == 0;
}

/*
 * The evidence of being inside: /run/bawn is a mount of its own and read-only. On a host it is
 * nothing of the kind, and inside nobody can take it away.
 */
static bool is_inside(void)
{
	struct stat here, file;
	struct statfs system;

	if (stat("/run/bawn", &here) < 0 || statfs("/run/bawn", &system) < 0)
		return false;
	/* ST_RDONLY of statvfs(3) */
	return (system.f_flags & 1) && lstat("/run/bawn/policy.json", &file) == 0 &&
	       file.st_dev == here.st_dev;
}

/* Whether a cgroup's directory lets us change it: 1, 0, or -1 where there is no such directory. */
static int is_cgroup_writable(const char *hierarchy, const char *path)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.freeze", "." };
	char name[PATH_LIMIT_BYTES];
	int known = -1;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if ((size_t)snprintf(name, sizeof(name), "/sys/fs/cgroup/%s%s/%s", hierarchy, path,
				     files[i]) >= sizeof(name))
			return 1;
		if (access(name, F_OK) < 0)
			continue;
		known = access(name, W_OK) == 0 || known > 0;
	}
	return known;
}

/* A line of cgroups(7): "ID:controllers:/path"; "0::/path" is version 2's. */
static bool is_line_writable(char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	int writable;

	if (!path)
		return true;
	*path++ = '\0';
	controllers++;
	if (strncmp(controllers, "name=", 5) == 0)
		controllers += 5;
	writable = is_cgroup_writable(controllers, path);
	if (writable < 0 && !controllers[0])
		/* systemd's hybrid layout */
		writable = is_cgroup_writable("unified", path);
	return writable != 0;
}

bool host_owns_cgroup(const struct caller *host)
{
	int CLEANUP_FD fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	char text[8192];
	ssize_t length;

	/* the task of a root caller is nobody there */
	if (host->root)
		return false;
	length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text));
	if (length < 0 || length == (ssize_t)sizeof(text))
		return true;
	text[length] = '\0';
	for (char *line = text; *line;) {
		char *next = line + strcspn(line, "\n");

		if (*next)
			*next++ = '\0';
		if (is_line_writable(line))
			return true;
		line = next;
	}
	return false;
}

int host_gather(struct arena *arena, struct caller *ret_host, struct error *error)
{
	struct caller host = {
		.uid = geteuid(), .gid = getegid(), .user = "user", .shell = "/bin/sh"
	};
	int result;

	if (getuid() != geteuid() || getgid() != getegid())
		return error_set(error, EPERM,
				 "bawn must not be set-id: it acts with its caller's identity");
	host.root = host.uid == 0 && has_whole_map();
	if (!host.root && is_host_root(host.uid))
		/* a box would get the one id that this namespace has: sysctl(2) files obey it */
		return error_set(
			error, EPERM,
			"the caller is the host's root in a user namespace that has no "
			"other id for the task (`unshare -r` by root); run bawn outside of "
			"that namespace, or as an ordinary user");
	host.inside = is_inside();
	result = find_user(arena, &host, error);
	if (result < 0)
		return result;
	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "looking up the caller");
	*ret_host = host;
	return 0;
}
