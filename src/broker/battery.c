#include "broker/battery.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/supervise.h"
#include "ipc/role.h"
#include "isolate/box.h"
#include "kernel/network.h"
#include "policy/place.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Of the box's own network namespace, where every port is free. */
#define LISTENER_PORT 47811u
/* Names in the caller's home that are looked for inside, of those that exist. */
#define HOME_LIMIT 64u
#define QUICK_LIMIT_ROWS 16u
#define TOKEN_BYTES 24
/* A refusal of a connection that takes longer is none. */
#define CONNECT_LIMIT_US (100u * 1000)

enum answers {
	ANSWERS_NONE,
	ANSWERS_ABSENT,
	ANSWERS_CLOSED,
	ANSWERS_CALL,
	ANSWERS_NETWORK,
	ANSWERS_CAPTURED,
	ANSWERS_LANDLOCK
};

static const struct {
	enum layer layer;
	bool works;
	enum answers answers;
} claims[ATTEMPT_COUNT] = {
#define REFUSED false
#define WORKS true
#define ATTEMPT(name, word, layer, claim, answers) { LAYER_##layer, claim, ANSWERS_##answers },
#include "broker/battery.def"
#undef ATTEMPT
#undef REFUSED
#undef WORKS
};

/* What is planted around the box. */
struct decoys {
	char *token; /* random, in every name */
	char *directory, *file, *path_socket;
	int path_fd, abstract_fd, listener_fd;
	unsigned port;
	int shared_memory; /* id, or -1 */
	key_t key;
};

struct maker {
	const struct effective *effective;
	const struct decoys *decoys;
	struct arena *arena;
	struct battery battery;
	bool quick;
};

/* --- what is planted */

static char *make_token(struct arena *arena)
{
	unsigned long long random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return arena_format(arena, "bawn%016llx", random);
}

static int listen_unix(const char *name, size_t length)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int CLEANUP_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (length > sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0 ||
	    listen(fd, 1) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int plant_sockets(struct decoys *decoys)
{
	struct sockaddr_in address = { 0 };
	socklen_t length = sizeof(address);
	char name[1 + TOKEN_BYTES] = "";
	int result;

	(void)snprintf(name + 1, sizeof(name) - 1, "%s", decoys->token);
	decoys->abstract_fd = listen_unix(name, 1 + strlen(name + 1));
	if (decoys->abstract_fd < 0)
		return decoys->abstract_fd;
	/* a long state directory has no room for a socket: then there is none to be reached */
	decoys->path_fd = listen_unix(decoys->path_socket, strlen(decoys->path_socket) + 1);
	result = network_listener(AF_INET, SOCK_STREAM, 0, &decoys->listener_fd);
	if (result < 0)
		return result;
	if (getsockname(decoys->listener_fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	decoys->port = ntohs(address.sin_port);
	return 0;
}

static int plant(const struct effective *effective, struct arena *arena, struct decoys *decoys,
		 struct error *error)
{
	int CLEANUP_FD fd = -1;
	int result;

	decoys->token = make_token(arena);
	if (!decoys->token)
		return error_errno(error, ENOMEM, "planting decoys");
	decoys->directory = arena_format(arena, "%s/%s", effective->state.path, decoys->token);
	decoys->file = arena_format(arena, "%s/key", decoys->directory ? decoys->directory : "");
	decoys->path_socket =
		arena_format(arena, "%s/socket", decoys->directory ? decoys->directory : "");
	if (!decoys->directory || !decoys->file || !decoys->path_socket)
		return error_errno(error, ENOMEM, "planting decoys");
	if (mkdir(decoys->directory, 0755) < 0)
		return error_errno(error, errno, "making the decoys' directory %s",
				   decoys->directory);
	fd = open(decoys->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return error_errno(error, errno, "making the decoy %s", decoys->file);
	result = plant_sockets(decoys);
	if (result < 0)
		return error_errno(error, result, "making the decoys' sockets");
	(void)!getrandom(&decoys->key, sizeof(decoys->key), 0);
	/* none on a kernel without System V IPC, which is then nothing to be reached */
	decoys->shared_memory = shmget(decoys->key, 4096, IPC_CREAT | IPC_EXCL | 0666);
	return 0;
}

static void unplant(struct decoys *decoys)
{
	if (decoys->shared_memory >= 0)
		(void)shmctl(decoys->shared_memory, IPC_RMID, NULL);
	fd_close(&decoys->path_fd);
	fd_close(&decoys->abstract_fd);
	fd_close(&decoys->listener_fd);
	if (!decoys->directory)
		return;
	(void)unlink(decoys->path_socket);
	(void)unlink(decoys->file);
	(void)rmdir(decoys->directory);
}

/* --- what is to be tried */

static struct battery_row *add(struct maker *maker, enum attempt attempt)
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

static void give(struct maker *maker, struct battery_row *row, const char *argument)
{
	const char **grown =
		arena_push(maker->arena, row->arguments, row->argument_count, sizeof(*grown));

	if (!grown)
		return;
	row->arguments = grown;
	grown[row->argument_count++] = argument;
}

static struct battery_row *add_one(struct maker *maker, enum attempt attempt, const char *argument)
{
	struct battery_row *row = add(maker, attempt);

	give(maker, row, argument);
	row->shown = 1;
	return row;
}

static const char *number(struct maker *maker, unsigned long long value)
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
static bool is_callers(const struct maker *maker, const struct view_path *path)
{
	struct stat status;

	if (path->class == PATH_CACHE)
		return true;
	/* the task of a root caller has root's files, and no capability over those of others */
	return stat(path->source, &status) == 0 && status.st_uid == maker->effective->host.uid &&
	       (status.st_mode & 0200);
}

static void add_view_row(struct maker *maker, const struct view_path *path)
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
	default:
		break;
	}
}

static void add_view(struct maker *maker)
{
	const struct view *view = &maker->effective->policy.view;
	unsigned counts[PATH_CLASS_COUNT] = { 0 };

	for (size_t i = 0; i < view->count; i++) {
		if (maker->quick && counts[view->paths[i].class]++ >= QUICK_LIMIT_ROWS)
			continue;
		add_view_row(maker, &view->paths[i]);
	}
}

static void add_absent(struct maker *maker, const char *path)
{
	const struct policy *policy = &maker->effective->policy;

	if (!is_shown(&policy->view, path) && !is_private(policy, path))
		(void)add_one(maker, ATTEMPT_ABSENT, path);
}

/* Names of the caller's home that exist outside and that no rule shows. */
static void add_home(struct maker *maker)
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

static void add_outside(struct maker *maker)
{
	static const char *const absent[] = {
		"/etc/shadow", "/etc/machine-id", "/etc/ssh",	 "/etc/fstab",	   "/root", "/boot",
		"/var/log",    "/var/lib",	  "/sys/kernel", "/sys/fs/cgroup", "/srv",  "/mnt"
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
	(void)add_one(maker, ATTEMPT_PRIVATE, policy->home);
	(void)add_one(maker, ATTEMPT_PRIVATE, "/tmp");
}

static void add_devices(struct maker *maker)
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

static void add_sockets(struct maker *maker)
{
	static const char *const paths[] = {
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd/containerd.sock",
		"/run/podman/podman.sock",
		"/run/dbus/system_bus_socket",
		"/tmp/.X11-unix/X0",
		"/run/systemd/private",
		"/run/snapd.socket",
	};
	const struct policy *policy = &maker->effective->policy;
	const char *agent = getenv("SSH_AUTH_SOCK");

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!is_shown(&policy->view, paths[i]))
			(void)add_one(maker, ATTEMPT_PATH_SOCKET, paths[i]);
	(void)add_one(maker, ATTEMPT_PATH_SOCKET,
		      arena_format(maker->arena, "/run/user/%u/bus", maker->effective->host.uid));
	if (agent && path_is_clean(agent) && !strpbrk(agent, "\t\n") &&
	    !is_shown(&policy->view, agent))
		(void)add_one(maker, ATTEMPT_PATH_SOCKET, agent);
	if (maker->decoys->path_fd >= 0 && !is_shown(&policy->view, maker->decoys->path_socket))
		(void)add_one(maker, ATTEMPT_PATH_SOCKET, maker->decoys->path_socket);
}

static void add_connect(struct maker *maker, const char *address, const char *port,
			const char *transport)
{
	struct battery_row *row = add_one(maker, ATTEMPT_CONNECT, address);

	give(maker, row, port);
	give(maker, row, transport);
	row->shown = 3;
}

static void add_no_egress(struct maker *maker)
{
	add_connect(maker, "192.0.2.1", "443", "tcp");
	add_connect(maker, "2001:db8::1", "443", "tcp");
	add_connect(maker, "198.51.100.1", "53", "udp");
	add_connect(maker, "169.254.169.254", "80", "tcp");
}

/* Whether the rules themselves say no, whatever the connection then carries. */
static bool is_forbidden(const struct maker *maker, const char *host, unsigned port)
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

static void add_captured(struct maker *maker, enum attempt attempt, const char *host, unsigned port,
			 const char *how)
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

/* In a network that is the policy's: what no rule allows ends in the box, however it is named. */
static void add_egress(struct maker *maker)
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
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		(void)add_one(maker, ATTEMPT_NAMESERVER, servers[i]);
	if (!stranger)
		return;
	add_captured(maker, ATTEMPT_NAME, stranger, 80, NULL);
	add_captured(maker, ATTEMPT_NAME, stranger, 443, NULL);
	add_captured(maker, ATTEMPT_NAME, "metadata.google.internal", 80, NULL);
	add_captured(maker, ATTEMPT_DOOR, stranger, 443, NULL);
	add_captured(maker, ATTEMPT_DOOR, "127.0.0.1", maker->decoys->port, NULL);
	add_captured(maker, ATTEMPT_DOOR, "169.254.169.254", 80, NULL);
}

static void add_network(struct maker *maker)
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

static void add_namespaces(struct maker *maker)
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

static void add_setting(struct maker *maker, const char *path)
{
	struct battery_row *row = add_one(maker, ATTEMPT_SETTING, path);

	/* a proc in which sandboxes nest is held by the owners of its files alone */
	give(maker, row,
	     maker->effective->policy.flags & POLICY_NESTED_USERNS ? "any" : "read-only");
}

static void add_processes(struct maker *maker)
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

static void add_identity(struct maker *maker)
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
	(void)add(maker, ATTEMPT_TERMINAL);
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

static void add_privileges(struct maker *maker)
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

static void add_calls(struct maker *maker)
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
		row = add(maker, attempt);
		if (attempt == ATTEMPT_PTRACE)
			row->works = flags & POLICY_ALLOW_PTRACE;
		if (attempt == ATTEMPT_UNSHARE || attempt == ATTEMPT_MOUNT ||
		    attempt == ATTEMPT_SETNS)
			row->works = flags & POLICY_NESTED_USERNS;
	}
}

/* --- the script and its answers */

static int write_script(const struct battery *battery)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	int CLEANUP_FD fd = -1;

	for (size_t i = 0; i < battery->count; i++) {
		buffer_text(&text, attempt_word(battery->rows[i].attempt));
		for (size_t j = 0; j < battery->rows[i].argument_count; j++)
			buffer_format(&text, "\t%s", battery->rows[i].arguments[j]);
		buffer_text(&text, "\n");
	}
	if (text.failed || !text.data)
		return -ENOMEM;
	fd = role_config(text.data, text.length);
	if (fd < 0)
		return fd;
	return dup2(fd, 0) < 0 ? -errno : 0;
}

static const char *read_back(int fd, struct arena *arena)
{
	struct stat status;
	char *text;
	ssize_t length;

	if (fstat(fd, &status) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return NULL;
	text = arena_allocate(arena, (size_t)status.st_size + 1);
	length = text ? fd_read_all(fd, text, (size_t)status.st_size) : -1;
	return length < 0 ? NULL : text;
}

/* Lines that are not of the form, or speak of no row, answer nothing. */
static void take_answers(struct battery *battery, const char *text)
{
	while (text && *text) {
		const char *end = strchr(text, '\n');
		unsigned long long index, duration;
		char word[8];
		int code;

		if (!end)
			return;
		if (sscanf(text, "%llu\t%7[a-z]\t%d\t%llu", &index, word, &code, &duration) == 4 &&
		    index < battery->count && code >= 0 &&
		    (strcmp(word, "done") == 0) == (code == 0)) {
			battery->rows[index].answered = true;
			battery->rows[index].code = -code;
			battery->rows[index].duration_us = duration;
		}
		text = end + 1;
	}
}

static bool is_answer(enum answers answers, int code)
{
	static const int table[][12] = {
		[ANSWERS_NONE] = { 0 },
		[ANSWERS_ABSENT] = { ENOENT, ENOTDIR },
		[ANSWERS_CLOSED] = { ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENXIO, EBUSY, ESRCH,
				     ENOSYS },
		[ANSWERS_CALL] = { EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT },
		[ANSWERS_NETWORK] = { ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EADDRNOTAVAIL, EPERM,
				      EACCES },
		[ANSWERS_CAPTURED] = { ECONNRESET, ECONNREFUSED, EPIPE, ECONNABORTED },
		[ANSWERS_LANDLOCK] = { EACCES, EPERM },
	};

	for (size_t i = 0; i < sizeof(table[0]) / sizeof(table[0][0]); i++)
		if (code && table[answers][i] == -code)
			return true;
	return false;
}

static void judge(struct battery_row *row, struct arena *arena)
{
	enum answers answers = claims[row->attempt].answers;
	bool refused = is_answer(answers, row->code);

	if (!row->answered) {
		row->passed = false;
		row->outcome = "no answer from the probe";
		return;
	}
	row->passed = !row->works ? refused : answers != ANSWERS_NONE ? !refused : row->code == 0;
	if (row->attempt == ATTEMPT_CONNECT && row->duration_us > CONNECT_LIMIT_US)
		row->passed = false;
	/* an errno of Landlock or of modes, where a read-only mount would have said EROFS */
	if (row->passed && row->code == -EACCES &&
	    (row->attempt == ATTEMPT_READ_ONLY || row->attempt == ATTEMPT_OUTSIDE))
		row->layer = LAYER_LANDLOCK;
	row->outcome = row->code == 0	     ? (row->works ? "holds" : "it worked") :
		       row->code == -ENOMSG  ? "does not hold" :
		       row->code == -EBADMSG ? "could not be tried" :
		       refused		     ? error_text(row->code) :
				 arena_format(arena, "got through: %s", error_text(row->code));
}

/* The supervisor's side of the listener: a connection waits there, with the token. */
static void judge_listeners(struct battery *battery, const int *listeners, size_t count,
			    const char *token)
{
	size_t at = 0;

	for (size_t i = 0; i < battery->count; i++) {
		struct battery_row *row = &battery->rows[i];
		struct pollfd ready = { .fd = -1, .events = POLLIN };
		char word[TOKEN_BYTES] = "";
		int CLEANUP_FD fd = -1;

		if (row->attempt != ATTEMPT_LISTENER)
			continue;
		if (at < count)
			fd = accept4(listeners[at++], NULL, NULL, SOCK_CLOEXEC);
		ready.fd = fd;
		if (fd >= 0 && poll(&ready, 1, 0) == 1 &&
		    recv(fd, word, sizeof(word) - 1, MSG_DONTWAIT) > 0 && strcmp(word, token) == 0)
			continue;
		row->passed = false;
		row->outcome = "nothing arrived outside";
	}
}

/* Nobody may have come to the listener that stands on the host's own loopback. */
static void judge_decoy(struct battery *battery, const struct decoys *decoys)
{
	struct pollfd visitor = { .fd = decoys->listener_fd, .events = POLLIN };
	bool was_reached = poll(&visitor, 1, 0) == 1;

	for (size_t i = 0; i < battery->count && was_reached; i++) {
		struct battery_row *row = &battery->rows[i];

		if (row->attempt != ATTEMPT_DOOR && row->attempt != ATTEMPT_CONNECT)
			continue;
		row->passed = false;
		row->outcome = "somebody came to the host's loopback";
	}
}

static bool is_planned(const struct plan *plan, enum layer layer)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].layer == layer)
			return true;
	return false;
}

/* Layers as the supervisor reads them back from outside. */
static void add_layers(struct maker *maker, const struct result *result)
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

/* --- the run */

struct kept {
	int listeners[POLICY_LIMIT_LISTENERS];
	size_t count;
};

static void keep_listeners(void *context, const struct box *box)
{
	struct kept *kept = context;

	for (size_t i = 0; i < box->listener_count; i++)
		kept->listeners[kept->count++] = fcntl(box->listeners[i], F_DUPFD_CLOEXEC, 3);
}

int battery_prepare(struct request *request, bool quick, struct arena *arena, struct error *error)
{
	uint64_t limit_ns = quick ? BATTERY_QUICK_TIME_NS : BATTERY_TIME_NS;
	char link[40], path[PATH_LIMIT_BYTES];
	int CLEANUP_FD fd = -1;
	ssize_t length;
	int result = role_open_program("bawn-probe", &fd, error);

	if (result < 0)
		return result;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	if (length <= 0 || length == (ssize_t)sizeof(path))
		return error_set(error, ENAMETOOLONG, "finding the program bawn-probe");
	request->probe = arena_copy_bytes(arena, path, (size_t)length);
	if (!request->probe)
		return error_errno(error, ENOMEM, "preparing the battery");
	request->input = true;
	if (!request->timeout_ns || request->timeout_ns > limit_ns)
		request->timeout_ns = limit_ns;
	request->listeners[request->listener_count++] = (struct policy_listener){
		.family = AF_INET, .type = SOCK_STREAM, .port = LISTENER_PORT
	};
	request->listeners[request->listener_count++] = (struct policy_listener){
		.family = AF_INET6, .type = SOCK_STREAM, .port = LISTENER_PORT
	};
	return 0;
}

static int attempt_all(struct maker *maker, const struct effective *enforced,
		       const struct action *action, struct error *error)
{
	struct denial_list denials = { 0 };
	struct result result = { 0 };
	struct kept kept = { 0 };
	int CLEANUP_FD out = memfd_create("bawn-verify", MFD_CLOEXEC);
	int CLEANUP_FD err = memfd_create("bawn-verify", MFD_CLOEXEC);
	int outcome = out < 0 || err < 0 ? -errno : write_script(&maker->battery);

	if (outcome < 0)
		return error_errno(error, outcome, "preparing the battery");
	outcome = supervise(&(struct supervise_options){ .effective = enforced,
							 .action = action,
							 .sink = &event_null_sink,
							 .evidence = true,
							 .out = out,
							 .err = err,
							 .started = keep_listeners,
							 .context = &kept },
			    &denials, &result, error);
	if (outcome == 0) {
		take_answers(&maker->battery, read_back(out, maker->arena));
		for (size_t i = 0; i < maker->battery.count; i++)
			judge(&maker->battery.rows[i], maker->arena);
		judge_listeners(&maker->battery, kept.listeners, kept.count, maker->decoys->token);
		judge_decoy(&maker->battery, maker->decoys);
		add_layers(maker, &result);
	}
	for (size_t i = 0; i < kept.count; i++)
		fd_close(&kept.listeners[i]);
	return outcome;
}

int battery_run(const struct effective *claimed, const struct effective *enforced,
		const struct action *action, struct arena *arena, struct battery *ret_battery,
		struct error *error)
{
	struct decoys decoys = {
		.path_fd = -1, .abstract_fd = -1, .listener_fd = -1, .shared_memory = -1
	};
	struct maker maker = { .effective = claimed,
			       .decoys = &decoys,
			       .arena = arena,
			       .quick = claimed->policy.timeout_ns <= BATTERY_QUICK_TIME_NS };
	int result = plant(claimed, arena, &decoys, error);

	if (result == 0) {
		add_view(&maker);
		add_outside(&maker);
		add_devices(&maker);
		add_network(&maker);
		add_namespaces(&maker);
		add_processes(&maker);
		add_identity(&maker);
		add_privileges(&maker);
		add_calls(&maker);
		result = arena_failed(arena) ? error_errno(error, ENOMEM, "preparing the battery") :
					       attempt_all(&maker, enforced, action, error);
	}
	unplant(&decoys);
	if (result < 0)
		return result;
	for (size_t i = 0; i < maker.battery.count; i++)
		maker.battery.failed += !maker.battery.rows[i].passed;
	*ret_battery = maker.battery;
	return 0;
}

const char *battery_name(const struct battery_row *row)
{
	return row->attempt == ATTEMPT_COUNT ? "read back from outside" :
					       attempt_word(row->attempt);
}
