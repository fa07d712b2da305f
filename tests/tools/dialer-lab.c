/*
 * For tests/run/test_dialer.py and test_egress_roles.py:
 *
 *   order [-6] [-r ADDRESS,PORT]... [VERDICT,HOST,PORT[,private]]...
 *         writes the order of a dialer (net/edge.h) with its rules
 *   acts  what can be tried
 *   try dialer|proxy ACT   enters the jail of the role, as one that was taken over would be in it,
 *         and acts: exit status 0 where it could, 1 where it was refused; else the filter's signal
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/jail.h"
#include "net/edge.h"
#include "policy/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define LIMIT_RULES 16

struct making {
	struct egress_order order;
	struct egress_policy policy;
	struct egress_rule rules[LIMIT_RULES];
	struct egress_ports ports[LIMIT_RULES];
	struct host hosts[LIMIT_RULES];
};

static void fail(const char *what)
{
	(void)fprintf(stderr, "dialer-lab: %s\n", what);
	exit(2);
}

/* Cuts a word off at its next comma. */
static char *cut(char **at)
{
	char *word = *at, *comma = word ? strchr(word, ',') : NULL;

	if (comma)
		*comma++ = '\0';
	*at = comma;
	return word;
}

static void add_resolver(struct making *making, char *text)
{
	uint32_t index = making->order.resolver_count++;
	const char *address = cut(&text);

	if (index == EGRESS_LIMIT_RESOLVERS || !text ||
	    address_parse(address, strlen(address), &making->order.resolvers[index].address) < 0)
		fail("a resolver is ADDRESS,PORT");
	making->order.resolvers[index].port = (uint16_t)strtoul(text, NULL, 10);
}

static void add_rule(struct making *making, char *text)
{
	size_t index = making->policy.rule_count++;
	struct egress_rule *rule = &making->rules[index];
	struct host *host = &making->hosts[index];
	const char *verdict = cut(&text), *name = cut(&text), *port = cut(&text), *why;

	if (index == LIMIT_RULES || !port || host_parse(name, strlen(name), host, &why) < 0)
		fail("a rule is VERDICT,HOST,PORT[,private]");
	*rule = (struct egress_rule){
		.ref = rule_builtin(RULE_EGRESS_DEFAULT),
		.kind = host->kind == HOST_NAME ? EGRESS_EXACT : EGRESS_NETWORK,
		.name = host->kind == HOST_NAME ? host->name : "",
		.network = host->address,
		.ports = &making->ports[index],
		.port_count = 1,
		.protocols = EGRESS_PROTOCOLS_DEFAULT,
		.flags = text && strcmp(text, "private") == 0 ? EGRESS_PRIVATE : 0,
		.tool = "",
		.purpose = "",
	};
	if (strcmp(verdict, "allow") == 0)
		rule->verdict = EGRESS_ALLOW;
	else if (strcmp(verdict, "ask") == 0)
		rule->verdict = EGRESS_ASK;
	else
		rule->verdict = EGRESS_DENY;
	/* a denial is of every protocol */
	if (rule->verdict == EGRESS_DENY)
		rule->protocols = EGRESS_PROTOCOLS_ALL;
	if (host->kind == HOST_ADDRESS)
		rule->prefix_bits = host->address.family == ADDRESS_V4 ? 32 : 128;
	making->ports[index].first = making->ports[index].last = (uint16_t)strtoul(port, NULL, 10);
}

static int write_order(int argc, char **argv)
{
	static struct making making = { .order = { .version = EGRESS_ORDER_VERSION },
					.policy = { .mode = EGRESS_POLICY, .purpose = "" } };
	struct arena CLEANUP_ARENA arena = { 0 };
	const unsigned char *bytes;
	size_t length;
	int option;

	making.policy.rules = making.rules;
	while ((option = getopt(argc, argv, "6r:")) != -1) {
		if (option == '6')
			making.order.flags |= EGRESS_ORDER_V6;
		else if (option == 'r')
			add_resolver(&making, optarg);
		else
			fail("an unknown option");
	}
	for (; optind < argc; optind++)
		add_rule(&making, argv[optind]);
	if (egress_encode(&making.policy, &arena, &bytes, &length) < 0)
		fail("the rules cannot be encoded");
	making.order.rules_bytes = (uint32_t)length;
	if (fd_write_all(STDOUT_FILENO, &making.order, sizeof(making.order)) < 0 ||
	    fd_write_all(STDOUT_FILENO, bytes, length) < 0)
		fail("the order cannot be written");
	return 0;
}

static int socket_of(int family, int type, int protocol)
{
	return (int)syscall(SYS_socket, family, type, protocol);
}

static long try_open(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static long try_open_old(void)
{
	return syscall(SYS_open, "/etc/passwd", O_RDONLY);
}

static long try_exec(void)
{
	char *argv[] = { (char *)(uintptr_t) "sh", NULL }, *none[] = { NULL };

	return syscall(SYS_execve, "/bin/sh", argv, none);
}

static long try_bind(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	return bind(socket_of(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&any, sizeof(any));
}

static long try_listen(void)
{
	return listen(socket_of(AF_INET, SOCK_STREAM, 0), 1);
}

static long try_accept(void)
{
	return syscall(SYS_accept4, socket_of(AF_INET, SOCK_STREAM, 0), NULL, NULL, 0);
}

static long try_unix(void)
{
	return socket_of(AF_UNIX, SOCK_STREAM, 0);
}

static long try_pair(void)
{
	int pair[2];

	return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
}

static long try_netlink(void)
{
	return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
}

static long try_packet(void)
{
	return socket_of(AF_PACKET, SOCK_RAW, 0);
}

static long try_vsock(void)
{
	return socket_of(AF_VSOCK, SOCK_STREAM, 0);
}

static long try_raw(void)
{
	return socket_of(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static long try_ping(void)
{
	return socket_of(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}

static long try_mptcp(void)
{
	return socket_of(AF_INET, SOCK_STREAM, 262);
}

static long try_fork(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_kill(void)
{
	return syscall(SYS_kill, getppid(), 0);
}

static long try_trace(void)
{
	return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static long try_code(void)
{
	return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) < 0 ?
		       -1 :
		       0;
}

static long try_memfd(void)
{
	return syscall(SYS_memfd_create, "x", 0);
}

static long try_option(void)
{
	int yes = 1;

	return setsockopt(socket_of(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_REUSEADDR, &yes,
			  sizeof(yes));
}

static long try_device(void)
{
	return setsockopt(socket_of(AF_INET, SOCK_DGRAM, 0), SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
}

static long try_names(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long try_limits(void)
{
	struct rlimit limit = { 0, 0 };

	return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
}

static long try_ring(void)
{
	char parameters[256] = { 0 };

	return syscall(SYS_io_uring_setup, 4, parameters);
}

static long try_socket(void)
{
	return socket_of(AF_INET, SOCK_STREAM, 0);
}

static long try_datagrams(void)
{
	return socket_of(AF_INET6, SOCK_DGRAM, 0);
}

static long try_open_how(void)
{
	uint64_t how[3] = { 0 };

	return syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", how, sizeof(how));
}

static long try_handle(void)
{
	return syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY);
}

static long try_exec_at(void)
{
	char *none[] = { NULL };

	return syscall(SYS_execveat, EGRESS_FD_PEER, "", none, none, AT_EMPTY_PATH);
}

static long try_clone(void)
{
	uint64_t arguments[8] = { [4] = SIGCHLD };

	return syscall(SYS_clone3, arguments, sizeof(arguments));
}

static long try_thread_signal(void)
{
	return syscall(SYS_tkill, getppid(), 0);
}

static long try_pidfd(void)
{
	return syscall(SYS_pidfd_open, getppid(), 0);
}

static long try_get_fd(void)
{
	return syscall(SYS_pidfd_getfd, EGRESS_FD_PEER, 0, 0);
}

static long try_read_memory(void)
{
	return syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_perf(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static long try_ring_enter(void)
{
	return syscall(SYS_io_uring_enter, EGRESS_FD_PEER, 1, 0, 0, NULL, 0);
}

static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/", NULL, 0, NULL);
}

static long try_join(void)
{
	return syscall(SYS_setns, EGRESS_FD_PEER, 0);
}

static long try_key(void)
{
	return syscall(SYS_keyctl, 0, -3, 0, 0, 0);
}

static long try_fault(void)
{
	return syscall(SYS_userfaultfd, 0);
}

static long try_control(void)
{
	return syscall(SYS_ioctl, EGRESS_FD_PEER, 0x8912, NULL); /* SIOCGIFCONF */
}

static long try_list(void)
{
	char room[512];

	return syscall(SYS_getdents64, EGRESS_FD_PEER, room, sizeof(room));
}

static long try_remove(void)
{
	return syscall(SYS_unlinkat, AT_FDCWD, "/nothing", 0);
}

/* Code in what it has got already. */
static long try_protect(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

/* Other rules than the filter's own. */
static long try_filter(void)
{
	return syscall(SYS_seccomp, 0, 0, NULL);
}

/* An edge that is connected is not connected anew, to a socket of the host. */
static long try_path(void)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX,
				    .sun_path = "/run/dbus/system_bus_socket" };

	return connect(EGRESS_FD_PEER, (struct sockaddr *)&path, sizeof(path));
}

/* What it is there for: any host, which nothing but its own rules keeps it from. */
static long try_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	long result;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	result = connect(socket_of(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to));
	return result < 0 && errno == ECONNREFUSED ? 0 : result;
}

static const struct {
	const char *name;
	long (*act)(void);
} acts[] = {
	{ "open", try_open },
	{ "open-old", try_open_old },
	{ "exec", try_exec },
	{ "bind", try_bind },
	{ "listen", try_listen },
	{ "accept", try_accept },
	{ "unix", try_unix },
	{ "pair", try_pair },
	{ "netlink", try_netlink },
	{ "packet", try_packet },
	{ "vsock", try_vsock },
	{ "raw", try_raw },
	{ "ping", try_ping },
	{ "mptcp", try_mptcp },
	{ "fork", try_fork },
	{ "kill", try_kill },
	{ "trace", try_trace },
	{ "code", try_code },
	{ "memfd", try_memfd },
	{ "option", try_option },
	{ "device", try_device },
	{ "names", try_names },
	{ "limits", try_limits },
	{ "ring", try_ring },
	{ "path", try_path },
	{ "connect", try_connect },
	{ "socket", try_socket },
	{ "datagrams", try_datagrams },
	{ "open-how", try_open_how },
	{ "handle", try_handle },
	{ "exec-at", try_exec_at },
	{ "clone", try_clone },
	{ "thread-signal", try_thread_signal },
	{ "pidfd", try_pidfd },
	{ "get-fd", try_get_fd },
	{ "read-memory", try_read_memory },
	{ "bpf", try_bpf },
	{ "perf", try_perf },
	{ "ring-enter", try_ring_enter },
	{ "mount", try_mount },
	{ "join", try_join },
	{ "key", try_key },
	{ "fault", try_fault },
	{ "control", try_control },
	{ "list", try_list },
	{ "remove", try_remove },
	{ "protect", try_protect },
	{ "filter", try_filter },
};

/* As in src/main/bawn-dialer.c and bawn-proxy.c. */
static const struct {
	const char *name;
	struct jail jail;
} roles[] = {
	{ "dialer",
	  { .keep = EGRESS_FD_PEER + 1,
	    .cpu_seconds = 10,
	    .memory_bytes = 64 * 1024 * 1024,
	    .filter = SECCOMP_VARIANT_DIALER } },
	{ "proxy",
	  { .keep = EGRESS_FD_DOOR + 1,
	    .cpu_seconds = 10,
	    .memory_bytes = 256 * 1024 * 1024,
	    .filter = SECCOMP_VARIANT_PROXY } },
};

static int try_act(const struct jail *jail, const char *name)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(acts[i].name, name) != 0)
			continue;
		if (jail_enter(jail))
			return 3;
		jail_leave(acts[i].act() < 0);
	}
	return 2;
}

/* The names of all acts: what a test does not know of is not tried. */
static int list_acts(void)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		puts(acts[i].name);
	return fflush(stdout) == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "order") == 0)
		return write_order(argc - 1, argv + 1);
	if (argc == 2 && strcmp(argv[1], "acts") == 0)
		return list_acts();
	for (size_t i = 0; argc == 4 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(argv[1], "try") == 0 && strcmp(argv[2], roles[i].name) == 0)
			return try_act(&roles[i].jail, argv[3]);
	fail("order, acts, or try");
	return 2;
}
