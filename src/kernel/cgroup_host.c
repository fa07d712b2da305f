/* Finding what a process may use of control groups; reads only. */
#include "kernel/cgroup.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* One line each; a host has a dozen hierarchies. */
#define MEMBERSHIPS_LIMIT 64

struct membership {
	const char *controllers; /* "cpu,cpuacct"; "" for v2 */
	const char *path;
};

struct search {
	const struct cgroup_source *source;
	struct cgroup_host *host;
	struct arena arena;
	struct membership memberships[MEMBERSHIPS_LIMIT];
	size_t count;
};

static const struct {
	const char *name;
	uint32_t v1, v2;
} names[] = {
	{ "memory", CGROUP_BIT(CGROUP_MEMORY), CGROUP_BIT(CGROUP_MEMORY) },
	{ "pids", CGROUP_BIT(CGROUP_PIDS), CGROUP_BIT(CGROUP_PIDS) },
	{ "cpu", CGROUP_BIT(CGROUP_CPU), CGROUP_BIT(CGROUP_CPU) },
	{ "cpuacct", CGROUP_BIT(CGROUP_ACCOUNT), 0 },
	{ "blkio", CGROUP_BIT(CGROUP_IO), 0 },
	{ "io", 0, CGROUP_BIT(CGROUP_IO) },
	{ "freezer", CGROUP_BIT(CGROUP_FREEZE), 0 },
};

int cgroup_source_open(struct cgroup_source *ret_source, struct error *error)
{
	struct cgroup_source source = { .root_fd = -1, .self_fd = -1, .self = getpid() };

	source.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source.root_fd < 0)
		return error_errno(error, errno, "opening /");
	source.self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source.self_fd < 0) {
		(void)error_errno(error, errno, "opening /proc/self");
		fd_close(&source.root_fd);
		return error->code;
	}
	*ret_source = source;
	return 0;
}

/* The names in the list, split at `separators`, as bits of the version. */
static uint32_t bits_of(const char *list, const char *separators, int version)
{
	uint32_t bits = 0;

	for (size_t length; *list; list += length + (list[length] != '\0')) {
		length = strcspn(list, separators);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strlen(names[i].name) == length &&
			    memcmp(names[i].name, list, length) == 0)
				bits |= version == 2 ? names[i].v2 : names[i].v1;
	}
	return bits;
}

static bool has_word(const char *list, const char *word, size_t word_length)
{
	for (size_t length; *list; list += length + (list[length] != '\0')) {
		length = strcspn(list, ",");
		if (length == word_length && memcmp(list, word, length) == 0)
			return true;
	}
	return false;
}

static FILE *open_lines(int directory_fd, const char *name)
{
	CLEANUP_FD int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

	if (file)
		(void)TAKE_FD(fd);
	return file;
}

static int read_memberships(struct search *search)
{
	FILE *file = open_lines(search->source->self_fd, "cgroup");
	size_t capacity = 0;
	char *line = NULL;

	if (!file)
		return -errno;
	while (search->count < MEMBERSHIPS_LIMIT && getline(&line, &capacity, file) > 0) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		search->memberships[search->count++] = (struct membership){
			arena_copy(&search->arena, controllers + 1),
			arena_copy(&search->arena, path),
		};
	}
	free(line);
	(void)fclose(file);
	return arena_failed(&search->arena) ? -ENOMEM : 0;
}

/* What of our path lies below the mount's root; NULL where we are not below it. */
static const char *below_root(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	path += length;
	/* a group outside of our cgroup namespace is told as "/../.." */
	if (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
		return NULL;
	return path;
}

static bool is_writable(int fd, const char *name)
{
	return faccessat(fd, name, W_OK, AT_EACCESS) == 0;
}

static bool exists(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, 0) == 0;
}

/* A group's directory below a mount of cgroupfs. Owned; or a negative errno. */
static int open_group(const struct cgroup_source *source, const char *mount_point,
		      const char *below, long magic)
{
	char path[8192];
	struct statfs status;
	CLEANUP_FD int fd = -1;
	int length = snprintf(path, sizeof(path), "%s%s", mount_point + 1, below);

	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	fd = fd_open_resolved(source->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY,
			      RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return fd;
	if (fstatfs(fd, &status) < 0)
		return -errno;
	return (long)status.f_type != magic && !source->any_filesystem ? -ENOTDIR : TAKE_FD(fd);
}

/* Our own group's directory, when groups can be made in it. Owned; or a negative errno. */
static int open_place(const struct search *search, const char *mount_point, const char *below,
		      long magic)
{
	CLEANUP_FD int fd = open_group(search->source, mount_point, below, magic);

	if (fd < 0)
		return fd;
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 || !is_writable(fd, "cgroup.procs"))
		return -EACCES;
	return TAKE_FD(fd);
}

static uint32_t read_bits(int fd, const char *name)
{
	CLEANUP_FD int file = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[1024];
	ssize_t length = file < 0 ? -1 : fd_read_all(file, text, sizeof(text) - 1);

	if (length < 0)
		return 0;
	text[length] = '\0';
	return bits_of(text, " \n", 2);
}

/* True where the group has no process but, at most, ourselves. */
static bool is_alone(int fd, pid_t self)
{
	FILE *file = open_lines(fd, "cgroup.procs");
	bool alone = file != NULL;
	char line[32];

	while (alone && fgets(line, sizeof(line), file))
		alone = strtol(line, NULL, 10) == self;
	if (file)
		(void)fclose(file);
	return alone;
}

static void add(struct search *search, struct cgroup_hierarchy hierarchy)
{
	struct cgroup_host *host = search->host;

	if (!hierarchy.controllers || host->count == CGROUP_HIERARCHIES_LIMIT) {
		fd_close(&hierarchy.fd);
		return;
	}
	host->hierarchies[host->count++] = hierarchy;
}

static void add_v1(struct search *search, const char *mount_point, const char *below,
		   uint32_t controllers)
{
	int fd = open_place(search, mount_point, below, CGROUP_SUPER_MAGIC);

	if (fd < 0)
		return;
	/* a kernel without CONFIG_CFS_BANDWIDTH has shares alone */
	if (!exists(fd, "cpu.cfs_quota_us"))
		controllers &= ~CGROUP_BIT(CGROUP_CPU);
	add(search,
	    (struct cgroup_hierarchy){ .fd = fd, .version = 1, .controllers = controllers });
}

/* Which controllers children of the group can have, and what is to be done for it. */
static void judge_v2(struct search *search, struct cgroup_hierarchy *hierarchy, bool aside)
{
	uint32_t available = read_bits(hierarchy->fd, "cgroup.controllers");
	uint32_t given = read_bits(hierarchy->fd, "cgroup.subtree_control");
	/* the root of a hierarchy has no type, and may have both processes and children */
	bool root = !exists(hierarchy->fd, "cgroup.type");

	hierarchy->controllers |= given;
	search->host->reason = "";
	if (!(available & ~given)) {
		if (!given)
			search->host->reason = "no controller is delegated to this control group";
		return;
	}
	if (!is_writable(hierarchy->fd, "cgroup.subtree_control")) {
		search->host->reason = "cgroup.subtree_control is not writable";
	} else if (!root && !is_alone(hierarchy->fd, search->source->self)) {
		search->host->reason = "other processes are in this control group";
	} else {
		hierarchy->controllers |= available;
		hierarchy->pending = available & ~given;
		hierarchy->move = !root && !aside;
	}
}

static void add_v2(struct search *search, const char *mount_point, const char *below)
{
	struct cgroup_hierarchy hierarchy = { .version = 2 };
	size_t length = strlen(below), name = strlen("/" CGROUP_SUPERVISORS);
	/* an earlier start has moved us, or who started us, aside: the place is one above */
	bool aside = length >= name && strcmp(below + length - name, "/" CGROUP_SUPERVISORS) == 0;
	char *place = arena_copy(&search->arena, below);

	if (!place)
		return;
	if (aside)
		place[length - name] = '\0';
	hierarchy.fd = open_place(search, mount_point, place, CGROUP2_SUPER_MAGIC);
	if (hierarchy.fd < 0) {
		search->host->reason = hierarchy.fd == -EACCES ?
					       "this control group is not delegated to the caller" :
					       "this control group cannot be opened";
		return;
	}
	hierarchy.controllers = CGROUP_BIT(CGROUP_ACCOUNT) | CGROUP_BIT(CGROUP_FREEZE) |
				CGROUP_BIT(CGROUP_KILL);
	judge_v2(search, &hierarchy, aside);
	add(search, hierarchy);
}

struct mount_line {
	const char *root, *mount_point, *options; /* of the file system; decoded */
};

/* One line of mountinfo (proc_pid_mountinfo(5)), cut up; false where it is no cgroupfs of it. */
static bool parse_mount(char *line, int version, struct mount_line *ret_mount)
{
	char *fields[5], *type, *options, *rest = line;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < 5; i++) {
		fields[i] = strsep(&rest, " ");
		if (!rest)
			return false;
	}
	type = strstr(rest, " - ");
	if (!type)
		return false;
	type += 3;
	options = strchr(type, ' ');
	if (!options)
		return false;
	*options++ = '\0';
	options = strchr(options, ' ');
	if (!options || strcmp(type, version == 2 ? "cgroup2" : "cgroup") != 0)
		return false;
	mount_decode(fields[3]);
	mount_decode(fields[4]);
	*ret_mount = (struct mount_line){ fields[3], fields[4], options + 1 };
	return fields[4][0] == '/';
}

/* version: the one to look for. */
static void look_at_mount(struct search *search, char *line, int version)
{
	struct mount_line mount;

	if (!parse_mount(line, version, &mount))
		return;
	for (size_t i = 0; i < search->count; i++) {
		const struct membership *membership = &search->memberships[i];
		const char *list = membership->controllers;
		const char *below;

		if (version == 2 ? list[0] != '\0' :
				   !list[0] || !has_word(mount.options, list, strcspn(list, ",")))
			continue;
		below = below_root(membership->path, mount.root);
		if (below && version == 2)
			add_v2(search, mount.mount_point, below);
		else if (below)
			add_v1(search, mount.mount_point, below, bits_of(list, ",", 1));
		return;
	}
}

static int read_mounts(struct search *search, int version)
{
	FILE *file = open_lines(search->source->self_fd, "mountinfo");
	size_t capacity = 0;
	char *line = NULL;

	if (!file)
		return -errno;
	while (getline(&line, &capacity, file) > 0) {
		/* a hierarchy may be mounted more than once: the first that is of use */
		if (version == 2 && search->host->count)
			break;
		look_at_mount(search, line, version);
	}
	free(line);
	(void)fclose(file);
	return 0;
}

/* Each controller once: a second mount of the same hierarchy is left out. */
static void remove_doubles(struct cgroup_host *host)
{
	uint32_t seen = 0;
	size_t kept = 0;

	for (size_t i = 0; i < host->count; i++) {
		struct cgroup_hierarchy hierarchy = host->hierarchies[i];

		hierarchy.controllers &= ~seen;
		seen |= hierarchy.controllers;
		if (hierarchy.controllers)
			host->hierarchies[kept++] = hierarchy;
		else
			fd_close(&hierarchy.fd);
	}
	host->count = kept;
}

int cgroup_host_open(const struct cgroup_source *source, struct cgroup_host *ret_host,
		     struct error *error)
{
	struct cgroup_host host = { .reason = "no cgroup v2 is mounted" };
	struct search search = { .source = source, .host = &host };
	int result = read_memberships(&search);

	if (result == 0)
		result = read_mounts(&search, 2);
	if (result == 0)
		result = read_mounts(&search, 1);
	arena_free(&search.arena);
	if (result < 0) {
		cgroup_host_close(&host);
		return error_errno(error, result, "reading the control groups of this process");
	}
	remove_doubles(&host);
	*ret_host = host;
	return 0;
}

void cgroup_host_close(struct cgroup_host *host)
{
	for (size_t i = 0; i < host->count; i++)
		fd_close(&host->hierarchies[i].fd);
	host->count = 0;
}

int cgroup_host_version(const struct cgroup_host *host, enum cgroup_controller controller)
{
	for (size_t i = 0; i < host->count; i++)
		if (host->hierarchies[i].controllers & CGROUP_BIT(controller))
			return host->hierarchies[i].version;
	return 0;
}

uint32_t cgroup_offered(const struct cgroup_source *source, const char *path)
{
	FILE *file = open_lines(source->self_fd, "mountinfo");
	struct mount_line mount;
	size_t capacity = 0;
	uint32_t offered = 0;
	char *line = NULL;

	while (!offered && file && getline(&line, &capacity, file) > 0) {
		CLEANUP_FD int fd = -1;

		/* seen from another root the path is another group's */
		if (!parse_mount(line, 2, &mount) || strcmp(mount.root, "/") != 0)
			continue;
		fd = open_group(source, mount.mount_point, path, CGROUP2_SUPER_MAGIC);
		if (fd >= 0)
			offered = read_bits(fd, "cgroup.controllers");
	}
	free(line);
	if (file)
		(void)fclose(file);
	return offered;
}

bool cgroup_is_in(const struct cgroup_source *source, const char *name)
{
	FILE *file = open_lines(source->self_fd, "cgroup");
	size_t capacity = 0;
	char *line = NULL;
	bool found = false;

	while (!found && file && getline(&line, &capacity, file) > 0) {
		const char *last = strrchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0 && last && strcmp(last + 1, name) == 0;
	}
	free(line);
	if (file)
		(void)fclose(file);
	return found;
}
