#include "workspace/system.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/copy.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/place.h"
#include "policy/policy.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where programs and libraries live; a link (merged /usr) stays a link. */
static const char *const trees[] = { "/usr",   "/bin",	  "/sbin", "/lib", "/lib32",
				     "/lib64", "/libx32", "/opt",  "/nix", "/gnu" };

/* Of these a strict policy shows what it lists. */
static const char *const program_directories[] = {
	"/bin",
	"/sbin",
	"/usr/bin",
	"/usr/sbin",
	"/usr/games",
	"/usr/libexec",
	"/usr/local/bin",
	"/usr/local/sbin",
	"/usr/local/games",
	"/usr/local/libexec",
};

/* And this instead of all of /usr. Links of a merged /usr stay. */
static const char *const strict_trees[] = {
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/usr/etc",
	"/usr/include",
	"/usr/lib",
	"/usr/lib32",
	"/usr/lib64",
	"/usr/libx32",
	"/usr/share",
	"/usr/src",
	"/usr/local/etc",
	"/usr/local/include",
	"/usr/local/lib",
	"/usr/local/lib64",
	"/usr/local/share",
	"/opt",
	"/nix",
	"/gnu",
};

/*
 * What of /etc programs need to run at all: linking, certificates, languages' own configuration.
 * No accounts, keys, host names, network or service configuration.
 */
static const char *const etc_names[] = {
	"ImageMagick-6", "R",	       "alternatives",	 "crypto-policies",
	"fonts",	 "gnucobol",   "groff",		 "java",
	"ld.so.cache",	 "localtime",  "manpath.config", "maven",
	"mime.types",	 "os-release", "perl",		 "pki",
	"protocols",	 "services",   "ssl/certs",	 "ssl/openssl.cnf",
	"texmf",	 "xml",
};

#define ETC_NAMES (sizeof(etc_names) / sizeof(etc_names[0]))

/* Names that carry a version: every one with the prefix. */
static const char *const etc_prefixes[] = { "fpc", "java-", "php" };

static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
				       "/dev/random", "/dev/urandom", "/dev/tty" };

static const struct {
	const char *target, *text;
} device_links[] = {
	{ "/dev/fd", "/proc/self/fd" },	      { "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },	      { "/etc/mtab", "/proc/self/mounts" },
};

struct gather {
	struct arena *arena;
	struct policy *policy;
	uint32_t rule;
	int64_t now_s; /* wall clock */
	int code;      /* of the first path that could not be looked at, 0 = none */
	const char *path;
	bool failed;
};

static void add(struct gather *gather, struct view_path row)
{
	row.rule = gather->rule;
	if (!row.target || !row.source || !view_add(&gather->policy->view, gather->arena, row))
		gather->failed = true;
}

/*
 * A name that is not there, or not for the caller, or on a file system that is away, is left out.
 * After any other failure the view would lack things for no reason that anybody could see.
 */
static void not_seen(struct gather *gather, const char *path)
{
	static const int absent[] = {
		ENOENT, ENOTDIR, EACCES, ELOOP, EINVAL, ENOTCONN, ESTALE, EIO
	};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (errno == absent[i])
			return;
	if (gather->code)
		return;
	gather->code = -errno;
	gather->path = path;
}

static void add_link(struct gather *gather, const char *path, const struct stat *status)
{
	char *text = arena_allocate(gather->arena, (size_t)status->st_size + 1);
	ssize_t length = text ? readlink(path, text, (size_t)status->st_size + 1) : -1;

	if (length < 0 && text)
		not_seen(gather, path);
	/* a link that grew since the lstat is left out rather than cut */
	if (length < 0 || length > status->st_size)
		return;
	text[length] = '\0';
	add(gather,
	    (struct view_path){
		    .class = PATH_LINK, .kind = PATH_KIND_FILE, .target = path, .source = text });
}

static void add_object(struct gather *gather, const char *path, enum path_class class,
		       const struct stat *status, uint64_t state)
{
	bool device = S_ISCHR(status->st_mode) && class == PATH_DEVICE;

	if (!S_ISDIR(status->st_mode) && !S_ISREG(status->st_mode) && !device)
		return;
	add(gather, (struct view_path){
			    .class = class,
			    .kind = S_ISDIR(status->st_mode) ? PATH_KIND_DIRECTORY : PATH_KIND_FILE,
			    .source = path,
			    .target = path,
			    .device = status->st_dev,
			    .inode = status->st_ino,
			    .state = state,
		    });
}

/* A directory or file as it is, a link as a link; other things and missing ones are left out. */
static void add_existing(struct gather *gather, const char *path, enum path_class class)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		not_seen(gather, path);
	else if (S_ISLNK(status.st_mode))
		add_link(gather, path, &status);
	else
		add_object(gather, path, class, &status, 0);
}

bool system_holds_programs(const char *path)
{
	for (size_t i = 0; i < sizeof(program_directories) / sizeof(program_directories[0]); i++)
		if (path_is_under(path, program_directories[i]))
			return true;
	return false;
}

/* Programs and libraries. */
static void add_trees(struct gather *gather)
{
	struct stat status;

	if (!(gather->policy->flags & POLICY_EXEC_STRICT)) {
		for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
			add_existing(gather, trees[i], PATH_READ);
		return;
	}
	for (size_t i = 0; i < sizeof(strict_trees) / sizeof(strict_trees[0]); i++)
		if (!system_holds_programs(strict_trees[i]) ||
		    (lstat(strict_trees[i], &status) == 0 && S_ISLNK(status.st_mode)))
			add_existing(gather, strict_trees[i], PATH_READ);
}

/* A name in /etc: what is small is shown by a copy, which costs the box no mount. */
static void add_in_etc(struct gather *gather, int etc_fd, const char *name)
{
	const char *path = arena_format(gather->arena, "/etc/%s", name);
	uint64_t state = 0;
	struct stat status;
	int result;

	if (!path)
		return;
	if (fstatat(etc_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		not_seen(gather, path);
		return;
	}
	if (S_ISLNK(status.st_mode)) {
		add_link(gather, path, &status);
		return;
	}
	result = copy_look(etc_fd, name, &status, gather->now_s, &state);
	errno = -result;
	if (result < 0)
		not_seen(gather, path);
	add_object(gather, path, result < 0 ? PATH_READ : PATH_COPY, &status, state);
}

/* True for the first component of a name in the table. */
static bool is_first(const char *name, const char *first)
{
	size_t i = 0;

	while (first[i] && first[i] == name[i])
		i++;
	return !first[i] && (name[i] == '/' || name[i] == '\0');
}

/*
 * One listing tells which names are there, of which most hosts lack half. Rows come in the order of
 * the table: the same host has the same policy, whatever order its file system keeps.
 */
static void add_etc(struct gather *gather)
{
	struct directory CLEANUP_DIRECTORY directory;
	bool is_there[ETC_NAMES] = { false };
	const char *name;
	int CLEANUP_FD etc_fd = -1;

	errno = -directory_open(&directory, AT_FDCWD, "/etc", 0);
	if (errno) {
		not_seen(gather, "/etc");
		/* who may not list it may still look at names */
		etc_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		for (size_t i = 0; i < ETC_NAMES && etc_fd >= 0; i++)
			add_in_etc(gather, etc_fd, etc_names[i]);
		return;
	}
	while ((name = directory_next(&directory))) {
		for (size_t i = 0; i < ETC_NAMES; i++)
			is_there[i] |= is_first(etc_names[i], name);
		for (size_t i = 0; i < sizeof(etc_prefixes) / sizeof(etc_prefixes[0]); i++)
			if (strncmp(name, etc_prefixes[i], strlen(etc_prefixes[i])) == 0)
				add_in_etc(gather, directory.fd, name);
	}
	errno = -directory.code;
	if (errno)
		not_seen(gather, "/etc");
	for (size_t i = 0; i < ETC_NAMES; i++)
		if (is_there[i] || directory.code)
			add_in_etc(gather, directory.fd, etc_names[i]);
}

static void add_file(struct gather *gather, const char *target, const char *content)
{
	add(gather, (struct view_path){ .class = PATH_FILE,
					.kind = PATH_KIND_FILE,
					.target = target,
					.source = content });
}

/* The accounts a task can see: its own, root and nobody. */
static void add_accounts(struct gather *gather)
{
	const struct policy *policy = gather->policy;
	struct arena *arena = gather->arena;
	bool is_root = policy->uid == 0;

	add_file(gather, "/etc/passwd",
		 arena_format(arena,
			      "%s%s:x:%u:%u:%s:%s:%s\n"
			      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			      is_root ? "" : "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n",
			      policy->user, policy->uid, policy->gid, policy->user, policy->home,
			      policy->shell));
	add_file(gather, "/etc/group",
		 arena_format(arena, "%s%s:x:%u:\nnogroup:x:65534:\n",
			      policy->gid == 0 ? "" : "root:x:0:\n", policy->user, policy->gid));
}

#define NSSWITCH(hosts)                                                                   \
	"passwd: files\ngroup: files\nshadow: files\nhosts: " hosts "\nnetworks: files\n" \
	"protocols: files\nservices: files\nethers: files\nrpc: files\n"

static void add_names(struct gather *gather)
{
	add_file(gather, "/etc/hosts",
		 "127.0.0.1 localhost bawn\n::1 localhost ip6-localhost ip6-loopback\n");
	add_file(gather, "/etc/hostname", "bawn\n");
	/* without it the C library takes the first line with the name: localhost has no ::1 then */
	add_file(gather, "/etc/host.conf", "multi on\n");
	if (gather->policy->egress.mode == EGRESS_POLICY) {
		add_file(gather, "/etc/nsswitch.conf", NSSWITCH("files dns"));
		add_file(gather, "/etc/resolv.conf",
			 "# answered by bawn; a name stands for an address of this box alone\n"
			 "nameserver " PLACE_NAMESERVER_TEXT "\n");
		return;
	}
	/* names are looked up in files alone, so that a lookup fails at once and not by time-out */
	add_file(gather, "/etc/nsswitch.conf", NSSWITCH("files"));
	add_file(gather, "/etc/resolv.conf",
		 "# the box has no network but its own loopback\n"
		 "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
}

int system_view(const struct caller *host, struct arena *arena, struct policy *policy,
		struct error *error)
{
	struct gather gather = { .arena = arena,
				 .policy = policy,
				 .now_s = (int64_t)(clock_wall_ns() / 1000000000u) };

	(void)host;
	gather.rule = policy_rule(policy, arena, rule_builtin(RULE_SYSTEM_READ_ONLY));
	add_trees(&gather);
	add_etc(&gather);
	add_accounts(&gather);
	add_names(&gather);
	gather.rule = policy_rule(policy, arena, rule_builtin(RULE_DEVICES_NONE));
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		add_existing(&gather, devices[i], PATH_DEVICE);
	for (size_t i = 0; i < sizeof(device_links) / sizeof(device_links[0]); i++)
		add(&gather, (struct view_path){ .class = PATH_LINK,
						 .kind = PATH_KIND_FILE,
						 .target = device_links[i].target,
						 .source = device_links[i].text });
	if (gather.code)
		return error_errno(error, gather.code, "looking at the system's %s", gather.path);
	if (gather.failed || arena_failed(arena))
		return error_errno(error, ENOMEM, "gathering the system's paths");
	return 0;
}
