#include "broker/battery_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/path.h"
#include "plan/access.h"
#include "policy/place.h"
#include "trace/result.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names in the caller's home that are looked for inside, of those that exist. */
#define HOME_LIMIT 64u
#define QUICK_LIMIT_ROWS 16u
/* Limits that are larger are not gone to the end of: it would take the host's memory and time. */
#define FILES_LIMIT 65536u
#define PIDS_LIMIT 4096u
#define PROCESS_BYTES (256u * 1024)

static const struct {
	enum layer layer;
	bool works;
	enum battery_answers answers;
} claims[ATTEMPT_COUNT] = {
#define REFUSED false
#define WORKS true
#define ATTEMPT(name, word, layer, claim, answers) { LAYER_##layer, claim, ANSWERS_##answers },
#include "broker/battery.def"
#undef ATTEMPT
#undef REFUSED
#undef WORKS
};

enum battery_answers battery_answers(enum attempt attempt)
{
	return claims[attempt].answers;
}

static struct battery_row *add(struct battery_maker *maker, enum attempt attempt)
{
	static struct battery_row nowhere;
	struct battery_row *grown =
		arena_push(maker->arena, maker->battery.rows, maker->battery.count, sizeof(*grown));

	if (!grown) {
		nowhere = (struct battery_row){ 0 };
		return &nowhere;
	}
	maker->battery.rows = grown;
	grown += maker->battery.count++;
	*grown = (struct battery_row){ .attempt = attempt,
				       .layer = claims[attempt].layer,
				       .works = claims[attempt].works };
	return grown;
}

static void give(struct battery_maker *maker, struct battery_row *row, const char *argument)
{
	const char **grown =
		arena_push(maker->arena, row->arguments, row->argument_count, sizeof(*grown));

	if (!grown)
		return;
	row->arguments = grown;
	grown[row->argument_count++] = argument;
}

static struct battery_row *add_one(struct battery_maker *maker, enum attempt attempt,
				   const char *argument)
{
	struct battery_row *row = add(maker, attempt);

	give(maker, row, argument);
	row->shown = 1;
	return row;
}

static const char *number(struct battery_maker *maker, unsigned long long value)
{
	return arena_format(maker->arena, "%llu", value);
}

/* True where something at the path, above or below it is shown. */
static bool is_shown(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (row->class != PATH_HIDE &&
		    (path_is_under(path, row->target) || path_is_under(row->target, path)))
			return true;
	}
	return false;
}

static bool is_private(const struct policy *policy, const char *path)
{
	static const char *const areas[] = { "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		if (path_is_under(path, areas[i]))
			return true;
	return path_is_under(policy->home, path);
}

/* The wall lets write; whether modes do is the caller's own affair. */
static bool is_callers(const struct battery_maker *maker, const struct view_path *path)
{
	struct stat status;

	if (path->class == PATH_CACHE)
		return true;
	/* the task of a root caller has root's files, and no capability over those of others */
	return stat(path->source, &status) == 0 && status.st_uid == maker->effective->host.uid &&
	       (status.st_mode & 0200);
}

static void add_view_row(struct battery_maker *maker, const struct view_path *path)
{
	const struct view *view = &maker->effective->policy.view;
	const char *target = path->target;
	struct battery_row *row;

	/* another row says more about the same path */
	if (path->class != PATH_PROTECT && view_lookup(view, target) != path)
		return;
	switch (path->class) {
	case PATH_READ:
	case PATH_COPY:
		(void)add_one(maker, ATTEMPT_SHOWN, target);
		/* a running program says ETXTBSY before its mount can say that it is read-only */
		if (strcmp(target, BATTERY_PROGRAM) == 0)
			break;
		row = add_one(maker, ATTEMPT_READ_ONLY, target);
		give(maker, row, maker->decoys->token);
		break;
	case PATH_WRITE:
	case PATH_CACHE:
	case PATH_GIT:
	case PATH_OBJECTS:
	case PATH_STAGE:
		if (path->kind == PATH_KIND_DIRECTORY && is_callers(maker, path))
			(void)add_one(
				maker, ATTEMPT_WRITABLE,
				arena_format(maker->arena, "%s/.%s", target, maker->decoys->token));
		break;
	case PATH_HIDE:
		(void)add_one(maker, ATTEMPT_HIDDEN, target);
		break;
	case PATH_PROTECT:
		/* what a link leads to is another row's */
		if (path->kind == PATH_KIND_LINK)
			break;
		row = add_one(maker, ATTEMPT_PROTECTED, target);
		give(maker, row, maker->decoys->token);
		break;
	case PATH_PROGRAM:
		(void)add_one(maker, ATTEMPT_SHOWN, target);
		break;
	default:
		break;
	}
}

static void add_view(struct battery_maker *maker)
{
	const struct view *view = &maker->effective->policy.view;
	unsigned counts[PATH_CLASS_COUNT] = { 0 };

	for (size_t i = 0; i < view->count; i++) {
		if (maker->quick && counts[view->paths[i].class]++ >= QUICK_LIMIT_ROWS)
			continue;
		add_view_row(maker, &view->paths[i]);
	}
}

static void add_absent(struct battery_maker *maker, const char *path)
{
	const struct policy *policy = &maker->effective->policy;

	if (!is_shown(&policy->view, path) && !is_private(policy, path))
		(void)add_one(maker, ATTEMPT_ABSENT, path);
}

/* Names of the caller's home that exist outside and that no rule shows. */
static void add_home(struct battery_maker *maker)
{
	const char *home = maker->effective->host.home;
	DIR *directory = home ? opendir(home) : NULL;
	struct dirent *entry;
	unsigned count = 0;

	if (!directory)
		return;
	while ((entry = readdir(directory)) && count < HOME_LIMIT) {
		/* directories of these names are made in every private home */
		static const char *const made[] = { ".", "..", ".cache", ".config", ".local" };
		bool is_made = strpbrk(entry->d_name, "\t\n") != NULL;

		for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
			is_made |= strcmp(entry->d_name, made[i]) == 0;
		if (is_made)
			continue;
		count++;
		add_absent(maker, arena_format(maker->arena, "%s/%s", home, entry->d_name));
	}
	(void)closedir(directory);
}

static void add_outside(struct battery_maker *maker)
{
	static const char *const absent[] = {
		"/etc/shadow", "/etc/machine-id", "/etc/ssh",	 "/etc/fstab",	   "/root", "/boot",
		"/var/log",    "/var/lib",	  "/sys/kernel", "/sys/fs/cgroup", "/srv",  "/mnt",
		"/run/secrets" /* of a pod: its token for the Kubernetes API */
	};
	static const char *const created[] = { "/bawn-verify", "/etc/bawn-verify",
					       "/run/bawn/bawn-verify", "/dev/bawn-verify" };
	const struct policy *policy = &maker->effective->policy;

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (!path_is_under(policy->home, absent[i]))
			add_absent(maker, absent[i]);
	/* also where a private area stands at its place */
	if (!is_shown(&policy->view, maker->decoys->file))
		(void)add_one(maker, ATTEMPT_ABSENT, maker->decoys->file);
	for (size_t i = 0; i < sizeof(created) / sizeof(created[0]); i++)
		(void)add_one(maker, ATTEMPT_OUTSIDE, created[i]);
	add_home(maker);
}

static bool is_area(const struct battery_maker *maker, const char *path)
{
	const struct effective *effective = maker->effective;

	return access_find(&effective->policy, &effective->plan, path).way == ACCESS_PRIVATE;
}

/* The value of a limit that explain calls exact; LIMIT_NONE for the others. */
static uint64_t exact_limit(const struct battery_maker *maker, enum limit limit)
{
	return maker->effective->means[limit].grade == ENFORCEMENT_EXACT ?
		       maker->effective->policy.limits.values[limit] :
		       LIMIT_NONE;
}

/* Private areas that no option shows something else at: of memory, and no larger than said. */
static void add_areas(struct battery_maker *maker)
{
	const char *const areas[] = { "/tmp", "/var/tmp", "/dev/shm",
				      maker->effective->policy.home };
	uint64_t bytes = exact_limit(maker, LIMIT_AREA_SIZE);
	uint64_t files = exact_limit(maker, LIMIT_AREA_INODES);

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++) {
		struct battery_row *row;

		if (!is_area(maker, areas[i]))
			continue;
		maker->area = areas[i];
		(void)add_one(maker, ATTEMPT_PRIVATE, areas[i]);
		if (bytes == LIMIT_NONE || files == LIMIT_NONE)
			continue;
		row = add_one(maker, ATTEMPT_AREA, areas[i]);
		give(maker, row, number(maker, bytes));
		give(maker, row, number(maker, files));
		row->shown = 3;
	}
}

static void add_limits(struct battery_maker *maker)
{
	const struct limits *limits = &maker->effective->policy.limits;
	uint64_t files = exact_limit(maker, LIMIT_FILES), pids = exact_limit(maker, LIMIT_PIDS);

	if (files <= FILES_LIMIT)
		(void)add_one(maker, ATTEMPT_FILES, number(maker, files));
	if (pids <= PIDS_LIMIT && pids * PROCESS_BYTES <= limits->values[LIMIT_MEMORY])
		(void)add_one(maker, ATTEMPT_PIDS, number(maker, pids));
}

static void add_devices(struct battery_maker *maker)
{
	const struct view *view = &maker->effective->policy.view;
	struct battery_row *row = add(maker, ATTEMPT_DEVICES);

	give(maker, row, "pts");
	give(maker, row, "shm");
	for (size_t i = 0; i < view->count; i++) {
		const char *below = view->paths[i].target;

		if (!path_is_under(below, "/dev") || strcmp(below, "/dev") == 0)
			continue;
		below = path_below(below, "/dev");
		give(maker, row, arena_copy_bytes(maker->arena, below, strcspn(below, "/")));
	}
}

static void add_socket(struct battery_maker *maker, const char *path)
{
	if (path && path_is_clean(path) && !strpbrk(path, "\t\n") &&
	    !is_shown(&maker->effective->policy.view, path))
		(void)add_one(maker, ATTEMPT_PATH_SOCKET, path);
}

/* Sockets of container engines: whoever reaches one is root of the host, or as good as it. */
static void add_engines(struct battery_maker *maker)
{
	static const char *const of_user[] = {
		"docker.sock",
		"podman/podman.sock",
		"containerd/containerd.sock",
		"buildkit/buildkitd.sock",
	};
	static const char *const of_home[] = {
		".docker/run/docker.sock",
		".docker/desktop/docker.sock",
		".colima/default/docker.sock",
		".lima/docker/sock/docker.sock",
		".rd/docker.sock",
		".orbstack/run/docker.sock",
		".local/share/containers/podman/machine/podman.sock",
	};
	static const char *const variables[] = { "DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST" };
	const char *home = maker->effective->host.home;

	for (size_t i = 0; i < sizeof(of_user) / sizeof(of_user[0]); i++)
		add_socket(maker, arena_format(maker->arena, "/run/user/%u/%s",
					       maker->effective->host.uid, of_user[i]));
	for (size_t i = 0; home && i < sizeof(of_home) / sizeof(of_home[0]); i++)
		add_socket(maker, arena_format(maker->arena, "%s/%s", home, of_home[i]));
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value && strncmp(value, "unix://", 7) == 0)
			add_socket(maker, value + 7);
	}
}

static void add_sockets(struct battery_maker *maker)
{
	static const char *const paths[] = {
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd/containerd.sock",
		"/run/k3s/containerd/containerd.sock",
		"/run/podman/podman.sock",
		"/run/crio/crio.sock",
		"/run/cri-dockerd.sock",
		"/run/buildkit/buildkitd.sock",
		"/run/libvirt/libvirt-sock",
		"/var/lib/lxd/unix.socket",
		"/var/lib/incus/unix.socket",
		"/run/dbus/system_bus_socket",
		"/tmp/.X11-unix/X0",
		"/run/systemd/private",
		"/run/snapd.socket",
	};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		add_socket(maker, paths[i]);
	add_engines(maker);
	add_socket(maker,
		   arena_format(maker->arena, "/run/user/%u/bus", maker->effective->host.uid));
	add_socket(maker, getenv("SSH_AUTH_SOCK"));
	if (maker->decoys->path_fd >= 0)
		add_socket(maker, maker->decoys->path_socket);
}

static void add_connect(struct battery_maker *maker, const char *address, const char *port,
			const char *transport)
{
	struct battery_row *row = add_one(maker, ATTEMPT_CONNECT, address);

	give(maker, row, port);
	give(maker, row, transport);
	row->shown = 3;
}

static void add_no_egress(struct battery_maker *maker)
{
	add_connect(maker, "192.0.2.1", "443", "tcp");
	add_connect(maker, "2001:db8::1", "443", "tcp");
	add_connect(maker, "198.51.100.1", "53", "udp");
	add_connect(maker, "198.51.100.1", "53", "tcp");
	add_connect(maker, "169.254.169.254", "80", "tcp");
}

/* Whether the rules themselves say no, whatever the connection then carries. */
static bool is_forbidden(const struct battery_maker *maker, const char *host, unsigned port)
{
	struct egress_question question = { .port = (uint16_t)port,
					    .wall_s = clock_wall_ns() / 1000000000u };
	struct egress_answer answer;
	struct host parsed;
	const char *why;

	if (host_parse(host, strlen(host), &parsed, &why) < 0)
		return true;
	question.host = &parsed;
	egress_decide(&maker->effective->policy.egress, &question, &answer);
	return answer.verdict == EGRESS_DENY && !answer.needs;
}

static void add_captured(struct battery_maker *maker, enum attempt attempt, const char *host,
			 unsigned port, const char *how)
{
	struct battery_row *row;

	if (!is_forbidden(maker, host, port))
		return;
	row = add_one(maker, attempt, host);
	give(maker, row, number(maker, port));
	row->shown = 2;
	if (how)
		give(maker, row, how);
}

/* Names that are allowed, and lead to where no name may: whatever their name servers say. */
static void add_rebound(struct battery_maker *maker)
{
	static const char *const addresses[] = {
		"127.0.0.1",	 "169.254.169.254",	   "10.0.0.1", "192.168.0.1", "::1",
		"fd00:ec2::254", "::ffff:169.254.169.254",
	};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const char *name = battery_name_of(addresses[i], maker->arena);

		/* a denial of the policy's would answer before anything is resolved */
		if (name && !is_forbidden(maker, name, BATTERY_NAMES_PORT))
			give(maker, add_one(maker, ATTEMPT_REBOUND, addresses[i]), name);
	}
}

/* In a network that is the policy's: what no rule allows ends in the box, however it is named. */
static void add_egress(struct battery_maker *maker)
{
	static const struct {
		const char *address;
		unsigned port;
	} literals[] = {
		{ "192.0.2.1", 443 },
		{ "2001:db8::1", 443 },
		{ "8.8.8.8", 443 },
		{ "169.254.169.254", 80 },
		{ "10.0.0.1", 443 },
		{ "192.168.0.1", 80 },
		{ "fd00:ec2::254", 80 },
		{ "100.64.0.1", 22 },
		/* what stands for a name, and for none yet */
		{ "198.19.200.200", 443 },
		{ "fd77::c613:c8c8", 443 },
	};
	static const char *const servers[] = { PLACE_NAMESERVER_TEXT, "8.8.8.8", "1.1.1.1" };
	const char *stranger = arena_format(maker->arena, "%s.invalid", maker->decoys->token);

	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
		add_captured(maker, ATTEMPT_CAPTURED, literals[i].address, literals[i].port,
			     "open");
	add_captured(maker, ATTEMPT_CAPTURED, "192.0.2.1", 443, "fast");
	add_connect(maker, "198.51.100.1", "443", "udp");
	add_connect(maker, "2001:db8::1", "123", "udp");
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		(void)add_one(maker, ATTEMPT_NAMESERVER, servers[i]);
		(void)add_one(maker, ATTEMPT_NAMESERVER_STREAM, servers[i]);
	}
	add_rebound(maker);
	if (!stranger)
		return;
	add_captured(maker, ATTEMPT_NAME, stranger, 80, NULL);
	add_captured(maker, ATTEMPT_NAME, stranger, 443, NULL);
	add_captured(maker, ATTEMPT_NAME, "metadata.google.internal", 80, NULL);
	add_captured(maker, ATTEMPT_NAME, "kubernetes.default.svc", 443, NULL);
	add_captured(maker, ATTEMPT_DOOR, stranger, 443, NULL);
	add_captured(maker, ATTEMPT_DOOR, "127.0.0.1", maker->decoys->port, NULL);
	add_captured(maker, ATTEMPT_DOOR, "169.254.169.254", 80, NULL);
}

static void add_network(struct battery_maker *maker)
{
	const struct policy *policy = &maker->effective->policy;

	(void)add(maker, ATTEMPT_INTERFACES);
	(void)add(maker, ATTEMPT_LOOPBACK);
	if (policy->egress.mode == EGRESS_POLICY)
		add_egress(maker);
	else
		add_no_egress(maker);
	add_connect(maker, "127.0.0.1", number(maker, maker->decoys->port), "tcp");
	(void)add_one(maker, ATTEMPT_CHANGE_NETWORK,
		      policy->flags & POLICY_NESTED_USERNS ? "nested" : "plain");
	(void)add_one(maker, ATTEMPT_ABSTRACT, maker->decoys->token);
	add_sockets(maker);
	for (size_t i = 0; i < policy->listener_count; i++) {
		bool v4 = policy->listeners[i].family == AF_INET;
		struct battery_row *row =
			add_one(maker, ATTEMPT_LISTENER, v4 ? "127.0.0.1" : "::1");

		give(maker, row, number(maker, policy->listeners[i].port));
		give(maker, row, maker->decoys->token);
		row->shown = 2;
	}
}

static void add_namespaces(struct battery_maker *maker)
{
	static const struct {
		const char *name;
		enum layer layer;
	} namespaces[] = {
		{ "user", LAYER_USER_NAMESPACE }, { "mnt", LAYER_MOUNT }, { "pid", LAYER_PID },
		{ "net", LAYER_NETWORK },	  { "ipc", LAYER_IPC },	  { "uts", LAYER_UTS },
		{ "cgroup", LAYER_CGROUP },
	};

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		struct battery_row *row;
		struct stat status;
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i].name);
		if (stat(path, &status) < 0)
			continue;
		row = add_one(maker, ATTEMPT_NAMESPACE, namespaces[i].name);
		row->layer = namespaces[i].layer;
		give(maker, row, number(maker, status.st_ino));
	}
}

static void add_setting(struct battery_maker *maker, const char *path)
{
	struct battery_row *row = add_one(maker, ATTEMPT_SETTING, path);

	/* a proc in which sandboxes nest is held by the owners of its files alone */
	give(maker, row,
	     maker->effective->policy.flags & POLICY_NESTED_USERNS ? "any" : "read-only");
}

static void add_processes(struct battery_maker *maker)
{
	static const char *const settings[] = {
		"/proc/sys/kernel/core_pattern",       "/proc/sys/kernel/hostname",
		"/proc/sys/vm/overcommit_memory",      "/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/kernel/randomize_va_space", "/proc/sysrq-trigger",
	};
	static const char *const init[] = { "environ", "mem", "fd", "root", "exe", "cwd" };

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		add_setting(maker, settings[i]);
	for (size_t i = 0; i < sizeof(init) / sizeof(init[0]); i++)
		(void)add_one(maker, ATTEMPT_INIT, init[i]);
	(void)add(maker, ATTEMPT_PROCESSES);
	/* a small number could be one of the box's own */
	if (getpid() > 64)
		(void)add_one(maker, ATTEMPT_KILL_OUTSIDE, number(maker, (unsigned)getpid()));
	if (maker->decoys->shared_memory >= 0)
		(void)add_one(maker, ATTEMPT_SHARED_MEMORY,
			      arena_format(maker->arena, "%d", (int)maker->decoys->key));
}

static void add_identity(struct battery_maker *maker)
{
	const struct policy *policy = &maker->effective->policy;
	struct battery_row *row = add_one(maker, ATTEMPT_IDENTITY, number(maker, policy->uid));

	give(maker, row, number(maker, policy->gid));
	row->shown = 2;
	/* an ordinary caller cannot give its own up, and explain says so */
	if (maker->effective->host.root)
		(void)add(maker, ATTEMPT_GROUPS);
	(void)add_one(maker, ATTEMPT_HOSTNAME, PLAN_BOX_HOSTNAME);
	(void)add(maker, ATTEMPT_DESCRIPTORS);
	/* with --tty one of the box's own, which explain says */
	add(maker, ATTEMPT_TERMINAL)->works = policy->flags & POLICY_TTY;
	(void)add(maker, ATTEMPT_SESSION);
	row = add(maker, ATTEMPT_ENVIRONMENT);
	for (size_t i = 0; i < policy->variable_count; i++)
		give(maker, row, policy->variables[i].name);
}

static const struct plan_op *find(const struct plan *plan, enum plan_kind kind)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == kind)
			return &plan->ops[i];
	return NULL;
}

static void add_privileges(struct battery_maker *maker)
{
	const struct plan *plan = &maker->effective->plan;
	const struct plan_op *landlock = find(plan, PLAN_LANDLOCK), *core = find(plan, PLAN_LIMIT);

	(void)add(maker, ATTEMPT_CAPABILITIES);
	(void)add(maker, ATTEMPT_NO_NEW_PRIVS);
	(void)add(maker, ATTEMPT_FILTER);
	if (core)
		(void)add_one(maker, ATTEMPT_CORE, number(maker, core->flags));
	if (!landlock)
		return;
	/* a box that may nest has no file rules, and a Landlock before ABI 6 no scopes */
	add_one(maker, ATTEMPT_CANARY, PLAN_CANARY)->works = landlock->flags & PLAN_OPTIONAL;
	add(maker, ATTEMPT_SIGNAL)->works = landlock->number < 6;
}

/* What needs a place where a file may be made. */
static void give_new_file(struct battery_maker *maker, enum attempt attempt)
{
	if (maker->area)
		give(maker, add(maker, attempt),
		     arena_format(maker->arena, "%s/.bawn-verify-file", maker->area));
}

static void add_calls(struct battery_maker *maker)
{
	static const struct {
		const char *name, *family, *type, *protocol;
	} sockets[] = {
		{ "AF_ALG", "38", "5", "0" },
		{ "AF_VSOCK", "40", "1", "0" },
		{ "AF_PACKET", "17", "3", "0" },
		{ "AF_XDP", "44", "3", "0" },
		{ "AF_KEY", "15", "3", "2" },
		{ "AF_BLUETOOTH", "31", "3", "0" },
		{ "raw IP", "2", "3", "1" },
		{ "ping", "2", "2", "1" },
		{ "MPTCP", "2", "1", "262" },
		{ "UDPLITE", "2", "2", "136" },
		{ "netlink generic", "16", "3", "16" },
		{ "netlink netfilter", "16", "3", "12" },
		{ "netlink audit", "16", "3", "9" },
		{ "netlink uevent", "16", "3", "15" },
	};
	uint32_t flags = maker->effective->policy.flags;

	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		struct battery_row *row = add_one(maker, ATTEMPT_SOCKET, sockets[i].name);

		give(maker, row, sockets[i].family);
		give(maker, row, sockets[i].type);
		give(maker, row, sockets[i].protocol);
	}
	for (unsigned attempt = ATTEMPT_IO_URING; attempt < ATTEMPT_COUNT; attempt++) {
		struct battery_row *row;

		if (attempt == ATTEMPT_SOCKET)
			continue;
		if (attempt == ATTEMPT_SET_ID || attempt == ATTEMPT_DEVICE_NODE) {
			give_new_file(maker, attempt);
			continue;
		}
		row = add(maker, attempt);
		if (attempt == ATTEMPT_PTRACE)
			row->works = flags & POLICY_ALLOW_PTRACE;
		if (attempt == ATTEMPT_UNSHARE || attempt == ATTEMPT_MOUNT ||
		    attempt == ATTEMPT_SETNS)
			row->works = flags & POLICY_NESTED_USERNS;
	}
}

static void add_copies(struct battery_maker *maker, const char *directory)
{
	static const enum attempt attempts[] = { ATTEMPT_RUN_COPY, ATTEMPT_MAP_COPY };

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		give(maker, add_one(maker, attempts[i], directory), maker->decoys->token);
}

/* Whatever is no listed program, where it can be written and where not. */
static void add_strict(struct battery_maker *maker)
{
	static const char *const private[] = { "/tmp", "/var/tmp", "/dev/shm" };
	const struct policy *policy = &maker->effective->policy;

	if (!(policy->flags & POLICY_EXEC_STRICT))
		return;
	for (size_t i = 0; i < sizeof(private) / sizeof(private[0]); i++)
		add_copies(maker, private[i]);
	add_copies(maker, policy->home);
	add_copies(maker, arena_format(maker->arena, "/run/user/%u", policy->uid));
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (view_lookup(&policy->view, row->target) != row)
			continue;
		if ((row->class == PATH_WRITE || row->class == PATH_CACHE ||
		     row->class == PATH_STAGE || row->class == PATH_GIT) &&
		    row->kind == PATH_KIND_DIRECTORY && is_callers(maker, row))
			add_copies(maker, row->target);
		if ((row->class == PATH_READ || row->class == PATH_COPY ||
		     row->class == PATH_FILE) &&
		    row->kind == PATH_KIND_FILE)
			(void)add_one(maker, ATTEMPT_MAP_CODE, row->target);
	}
	(void)add(maker, ATTEMPT_MEMORY_FILE);
	(void)add(maker, ATTEMPT_RUN_OPEN);
}

static bool is_planned(const struct plan *plan, enum layer layer)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].layer == layer)
			return true;
	return false;
}

void battery_list_layers(struct battery_maker *maker, const struct result *result)
{
	const struct plan *plan = &maker->effective->plan;
	const struct plan_op *landlock = find(plan, PLAN_LANDLOCK);

	for (size_t i = 0; i < result->layer_count; i++) {
		const struct result_layer *read = &result->layers[i];
		struct battery_row *row;

		if (!is_planned(plan, read->layer))
			continue;
		row = add(maker, ATTEMPT_FILTER);
		row->attempt = ATTEMPT_COUNT;
		row->layer = read->layer;
		row->works = !(read->layer == LAYER_LANDLOCK && landlock &&
			       landlock->flags & PLAN_OPTIONAL && landlock->number < 6);
		row->answered = true;
		row->outcome = arena_copy(maker->arena, read->evidence);
		row->passed = (read->enforcement != ENFORCEMENT_ABSENT) == row->works;
	}
}

void battery_list(struct battery_maker *maker)
{
	add_view(maker);
	add_outside(maker);
	add_areas(maker);
	add_devices(maker);
	add_network(maker);
	add_namespaces(maker);
	add_processes(maker);
	add_identity(maker);
	add_privileges(maker);
	add_strict(maker);
	add_calls(maker);
	/* last: a thousand processes that end disturb what is timed */
	add_limits(maker);
}
