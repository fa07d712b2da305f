/*
 * Each test runs in a user and a network namespace of its own, in which it is root. A test says
 * by its exit status which expectation failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/capture.h"
#include "kernel/network.h"
#include "kernel/sockets.h"
#include "policy/place.h"

#define EXPECT(truth)                    \
	do {                             \
		if (!(truth))            \
			return __LINE__; \
	} while (0)

/* A refusal that takes longer is none that came at once. */
#define AT_ONCE_NS (500ull * 1000 * 1000)

static bool put(const char *path, const char *text)
{
	int CLEANUP_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool become_root_of_a_network(void)
{
	char uids[32], gids[32];

	(void)snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	(void)snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && put("/proc/self/setgroups", "deny") &&
	       put("/proc/self/uid_map", uids) && put("/proc/self/gid_map", gids) &&
	       network_loopback_up() == 0;
}

/* The line of the expectation that failed, or 0. */
static int in_a_network(int (*test)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		int line = become_root_of_a_network() ? test() : __LINE__;

		/* a status has eight bits */
		if (line)
			(void)fprintf(stderr, "expectation of line %d: %s\n", line,
				      strerror(errno));
		_exit(line != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

struct capture {
	int tcp, udp;
	bool v6;
};

static int begin(struct capture *capture)
{
	int CLEANUP_FD proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	EXPECT(capture_routes(&capture->v6) == 0);
	EXPECT(capture_refuse_each(proc) == 0);
	EXPECT(capture_rules() == 0);
	EXPECT(capture_listener(&capture->tcp) == 0);
	EXPECT(capture_datagrams(&capture->udp) == 0);
	return 0;
}

struct end {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t length;
};

static struct end end_of(const char *text, uint16_t port)
{
	struct end end = { .length = sizeof(end.address.v6) };

	if (inet_pton(AF_INET, text, &end.address.v4.sin_addr) == 1) {
		end.address.v4.sin_family = AF_INET;
		end.address.v4.sin_port = htons(port);
		end.length = sizeof(end.address.v4);
	} else if (inet_pton(AF_INET6, text, &end.address.v6.sin6_addr) == 1) {
		end.address.v6.sin6_family = AF_INET6;
		end.address.v6.sin6_port = htons(port);
	}
	return end;
}

/* The descriptor, or a negative errno. */
static int reach(int type, const char *text, uint16_t port)
{
	const struct timeval patience = { .tv_sec = 5 };
	struct end end = end_of(text, port);
	int CLEANUP_FD fd = socket(end.address.any.sa_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, &end.address.any, end.length) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* A socket of both families has version 4 as a mapped address. */
static bool is_end(const struct sockaddr_in6 *found, const char *text, uint16_t port)
{
	char mapped[64] = "", shown[64] = "";

	if (!strchr(text, ':'))
		(void)snprintf(mapped, sizeof(mapped), "::ffff:%s", text);
	(void)inet_ntop(AF_INET6, &found->sin6_addr, shown, sizeof(shown));
	return strcmp(shown, mapped[0] ? mapped : text) == 0 && ntohs(found->sin6_port) == port;
}

static int expect_captured(const struct capture *capture, const char *text, uint16_t port,
			   const char *source)
{
	struct sockaddr_in6 here = { 0 }, there = { 0 };
	socklen_t length = sizeof(here);
	int CLEANUP_FD client = reach(SOCK_STREAM, text, port);
	int CLEANUP_FD server =
		accept4(capture->tcp, (struct sockaddr *)&there, &length, SOCK_CLOEXEC);

	EXPECT(client >= 0 && server >= 0);
	length = sizeof(here);
	EXPECT(getsockname(server, (struct sockaddr *)&here, &length) == 0);
	EXPECT(is_end(&here, text, port));
	EXPECT(is_end(&there, source, ntohs(there.sin6_port)));
	return 0;
}

static int tcp_is_captured(void)
{
	struct capture capture = { .tcp = -1, .udp = -1 };
	int line = begin(&capture);
	static const struct {
		const char *to, *from;
		uint16_t port;
	} rows[] = {
		{ "1.2.3.4", "198.18.255.254", 443 },
		{ "198.18.0.7", "198.18.255.254", 22 },
		{ PLACE_DOOR_TEXT, "198.18.255.254", PLACE_DOOR_PORT },
		{ "169.254.169.254", "198.18.255.254", 80 },
		{ "10.0.0.1", "198.18.255.254", 1 },
		{ "2606:4700::1111", "fd77::2", 443 },
		{ "fd77::c612:7", "fd77::2", 5432 },
	};

	if (line)
		return line;
	for (size_t i = 0; line == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (capture.v6 || !strchr(rows[i].to, ':'))
			line = expect_captured(&capture, rows[i].to, rows[i].port, rows[i].from);
	return line;
}

/* The box's own servers are met where they are, and their absence is, too. */
static int own_is_left_alone(void)
{
	struct capture capture = { .tcp = -1, .udp = -1 };
	int line = begin(&capture);
	struct pollfd nobody = { .events = POLLIN };
	uint64_t before = clock_monotonic_ns();
	static const char *const own[] = { "127.0.0.1", "127.9.9.9", "198.18.255.254", "0.0.0.0" };

	if (line)
		return line;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		EXPECT(reach(SOCK_STREAM, own[i], 8080) == -ECONNREFUSED);
		for (unsigned port = 2000; port < 2200; port++) {
			int CLEANUP_FD fd = reach(SOCK_DGRAM, own[i], (uint16_t)port);

			EXPECT(fd >= 0 && send(fd, "x", 1, 0) == 1);
			EXPECT(recv(fd, (char[1]){ 0 }, 1, 0) < 0 && errno == ECONNREFUSED);
		}
	}
	EXPECT(!capture.v6 || reach(SOCK_STREAM, "::1", 8080) == -ECONNREFUSED);
	EXPECT(!capture.v6 || reach(SOCK_STREAM, "fd77::2", 8080) == -ECONNREFUSED);
	nobody.fd = capture.tcp;
	EXPECT(poll(&nobody, 1, 0) == 0);
	EXPECT(clock_monotonic_ns() - before < 4 * AT_ONCE_NS);
	return 0;
}

/* Takes one datagram, and answers from the address that it came to, as a proxy does. */
static int echo(int udp)
{
	_Alignas(8) char room[256];
	char bytes[64];
	struct sockaddr_in6 peer;
	struct iovec vector = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = { .msg_name = &peer,
				  .msg_namelen = sizeof(peer),
				  .msg_iov = &vector,
				  .msg_iovlen = 1,
				  .msg_control = room,
				  .msg_controllen = sizeof(room) };
	struct pollfd wait = { .fd = udp, .events = POLLIN };
	struct in6_pktinfo *info;
	ssize_t length;

	EXPECT(poll(&wait, 1, 5000) == 1);
	length = recvmsg(udp, &message, 0);
	EXPECT(length > 0 && CMSG_FIRSTHDR(&message));
	EXPECT(CMSG_FIRSTHDR(&message)->cmsg_type == IPV6_PKTINFO);
	info = (struct in6_pktinfo *)(void *)CMSG_DATA(CMSG_FIRSTHDR(&message));
	info->ipi6_ifindex = 0;
	vector.iov_len = (size_t)length;
	message.msg_controllen = CMSG_SPACE(sizeof(*info));
	if (IN6_IS_ADDR_V4MAPPED(&info->ipi6_addr)) {
		struct in_pktinfo *v4 = (struct in_pktinfo *)(void *)info;
		struct in_addr address;

		memcpy(&address, &info->ipi6_addr.s6_addr[12], sizeof(address));
		*v4 = (struct in_pktinfo){ .ipi_spec_dst = address };
		CMSG_FIRSTHDR(&message)->cmsg_level = IPPROTO_IP;
		CMSG_FIRSTHDR(&message)->cmsg_type = IP_PKTINFO;
		CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(*v4));
		message.msg_controllen = CMSG_SPACE(sizeof(*v4));
	}
	EXPECT(sendmsg(udp, &message, 0) == length);
	return 0;
}

/* A connected socket takes an answer from nobody but whom it asked. */
static int dns_is_answered(void)
{
	struct capture capture = { .tcp = -1, .udp = -1 };
	int line = begin(&capture);
	static const char *const servers[] = { PLACE_NAMESERVER_TEXT, "8.8.8.8", "127.0.0.53",
					       "2001:4860:4860::8888", "fd77::c612:fffc" };

	for (size_t i = 0; line == 0 && i < sizeof(servers) / sizeof(servers[0]); i++) {
		int CLEANUP_FD fd = -1;
		char bytes[16];

		if (!capture.v6 && strchr(servers[i], ':'))
			continue;
		fd = reach(SOCK_DGRAM, servers[i], 53);
		EXPECT(fd >= 0 && send(fd, "question", 8, 0) == 8);
		line = echo(capture.udp);
		EXPECT(line || recv(fd, bytes, sizeof(bytes), 0) == 8);
	}
	return line;
}

/* Each of many, at once: the kernel's own limits would let the 51st wait. */
static int other_datagrams_are_refused(void)
{
	struct capture capture = { .tcp = -1, .udp = -1 };
	int line = begin(&capture);
	static const char *const to[] = { "8.8.8.8", "198.18.0.7", "2001:4860:4860::8888" };
	uint64_t before = clock_monotonic_ns();

	if (line)
		return line;
	for (size_t i = 0; i < 300; i++) {
		const char *text = to[i % (capture.v6 ? 3 : 2)];
		int CLEANUP_FD fd = reach(SOCK_DGRAM, text, 443);

		EXPECT(fd >= 0 && send(fd, "x", 1, 0) == 1);
		EXPECT(recv(fd, (char[1]){ 0 }, 1, 0) < 0 && errno == ECONNREFUSED);
	}
	EXPECT(clock_monotonic_ns() - before < AT_ONCE_NS);
	return 0;
}

/* A proxy that is gone: nobody waits, in either family. */
static int closed_is_refused(void)
{
	struct capture capture = { .tcp = -1, .udp = -1 };
	int line = begin(&capture);
	uint64_t before = clock_monotonic_ns();
	int CLEANUP_FD fd = -1;

	if (line)
		return line;
	fd_close(&capture.tcp);
	fd_close(&capture.udp);
	EXPECT(reach(SOCK_STREAM, "1.2.3.4", 443) == -ECONNREFUSED);
	EXPECT(!capture.v6 || reach(SOCK_STREAM, "2606:4700::1111", 443) == -ECONNREFUSED);
	fd = reach(SOCK_DGRAM, "8.8.8.8", 53);
	EXPECT(fd >= 0 && send(fd, "x", 1, 0) == 1);
	EXPECT(recv(fd, (char[1]){ 0 }, 1, 0) < 0 && errno == ECONNREFUSED);
	EXPECT(clock_monotonic_ns() - before < AT_ONCE_NS);
	return 0;
}

/* Without the rules: what a listener is there for is met, all else is the kernel's to refuse. */
static int listeners_without_rules(void)
{
	int CLEANUP_FD fd = -1;
	struct capture capture = { .tcp = -1, .udp = -1 };

	EXPECT(capture_routes(&capture.v6) == 0);
	EXPECT(capture_port_listener(443, &capture.tcp) == 0);
	fd = reach(SOCK_STREAM, "1.2.3.4", 443);
	EXPECT(fd >= 0);
	EXPECT(reach(SOCK_STREAM, "1.2.3.4", 80) == -ECONNREFUSED);
	return 0;
}

/* nft(8) reads the rules back as they would be written for it, and makes the same of that text. */
static int rules_are_nfts(void)
{
	static const char wanted[] = "table inet bawn {\n"
				     "\tchain capture {\n"
				     "\t\ttype filter hook prerouting priority mangle; "
				     "policy accept;\n"
				     "\t\tip daddr 127.0.0.0/8 accept\n"
				     "\t\tip6 daddr ::1 accept\n"
				     "\t\tip daddr 198.18.255.254 accept\n"
				     "\t\tip6 daddr fd77::2 accept\n"
				     "\t\tmeta l4proto tcp tproxy to :1 accept\n"
				     "\t\tmeta l4proto tcp reject with tcp reset\n"
				     "\t\tudp dport 53 accept\n"
				     "\t\treject\n"
				     "\t}\n"
				     "}\n";
	char found[2048] = "";
	FILE *nft;

	EXPECT(capture_rules() == 0);
	nft = popen("nft list ruleset", "r");
	EXPECT(nft);
	EXPECT(fread(found, 1, sizeof(found) - 1, nft) > 0);
	EXPECT(pclose(nft) == 0);
	if (strcmp(found, wanted) != 0)
		(void)fprintf(stderr, "%s", found);
	EXPECT(strcmp(found, wanted) == 0);
	/* once more beside ours: what it makes of the text has the same expressions */
	EXPECT(system("parts() { nft --debug=netlink list table inet $1 2>&1 | grep '^ *\\['; }; "
		      "nft list ruleset | sed 's/bawn/again/' | nft -f - && "
		      "[ -n \"$(parts bawn)\" ] && [ \"$(parts bawn)\" = \"$(parts again)\" ]") ==
	       0);
	return 0;
}

/* Of both families, as far as ip(8) says it: what is sent at once need not leave in pieces. */
static int packets_may_be_large(void)
{
	bool v6;

	EXPECT(capture_routes(&v6) == 0);
	EXPECT(system("ip -d link show dev lo | grep -q 'gso_max_size 524280'") == 0);
	return 0;
}

#define TEST(name)                                       \
	static void test_##name(void **state)            \
	{                                                \
		(void)state;                             \
		assert_int_equal(in_a_network(name), 0); \
	}

TEST(tcp_is_captured)
TEST(own_is_left_alone)
TEST(dns_is_answered)
TEST(other_datagrams_are_refused)
TEST(closed_is_refused)
TEST(listeners_without_rules)
TEST(packets_may_be_large)

static void test_rules_are_nfts(void **state)
{
	(void)state;
	if (system("nft --version >/dev/null 2>&1") != 0)
		skip();
	assert_int_equal(in_a_network(rules_are_nfts), 0);
}

/* An answer of sock_diag(7) with this sequence number and length field. */
static size_t answer_of(unsigned char bytes[static 256], uint32_t sequence, uint32_t length)
{
	struct nlmsghdr header = { .nlmsg_len = length,
				   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				   .nlmsg_seq = sequence };
	struct inet_diag_msg found = { .idiag_inode = 4711 };

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &found, sizeof(found));
	return sizeof(header) + sizeof(found);
}

static void test_answers_about_sockets_are_checked(void **state)
{
	unsigned char bytes[256];
	uint64_t inode = 0;
	uint32_t whole = sizeof(struct nlmsghdr) + sizeof(struct inet_diag_msg);
	size_t length = answer_of(bytes, 7, whole);

	(void)state;
	assert_int_equal(sockets_read(bytes, length, 7, &inode), 0);
	assert_int_equal(inode, 4711);
	assert_int_equal(sockets_read(bytes, length, 8, &inode), -EAGAIN);
	for (size_t cut = 0; cut < length; cut++)
		assert_int_equal(sockets_read(bytes, cut, 7, &inode), -EBADMSG);
	(void)answer_of(bytes, 7, whole + 1);
	assert_int_equal(sockets_read(bytes, length, 7, &inode), -EBADMSG);
	(void)answer_of(bytes, 7, whole - 1);
	assert_int_equal(sockets_read(bytes, length, 7, &inode), -EBADMSG);
	(void)answer_of(bytes, 7, 0);
	assert_int_equal(sockets_read(bytes, length, 7, &inode), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp_is_captured),
		cmocka_unit_test(test_own_is_left_alone),
		cmocka_unit_test(test_dns_is_answered),
		cmocka_unit_test(test_other_datagrams_are_refused),
		cmocka_unit_test(test_closed_is_refused),
		cmocka_unit_test(test_listeners_without_rules),
		cmocka_unit_test(test_packets_may_be_large),
		cmocka_unit_test(test_rules_are_nfts),
		cmocka_unit_test(test_answers_about_sockets_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
