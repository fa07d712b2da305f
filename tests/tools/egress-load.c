/*
 * Load for the bench of egress, and the server that it goes to. Never installed.
 *
 *	egress-load serve ADDRESS PORT BYTES
 *	egress-load WHAT CLIENTS SECONDS VIA ADDRESS PORT
 *
 * The server answers each request with two bytes, or with BYTES of them for /big. WHAT is one of
 *   connect   a new tunnel for each request, by CONNECT where VIA is ADDRESS:PORT of a proxy
 *   new       a new connection for each request
 *   keep      requests on one connection for each client
 *   body      /big, once for each client
 *   idle      CLIENTS tunnels that stay open until standard input ends
 * What comes before WARM_NS is not counted, but of body: a box has just been made, and all threads
 * begin at once.
 * With LOAD_ONE_ADDRESS in the environment all clients come from 127.0.0.1.
 * VIA "-": no proxy is asked (captured, or direct). One line of JSON: requests, seconds, rate,
 * p50_us, p99_us, first_us (of the first request of all), bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_CLIENTS 4096
#define LIMIT_SAMPLES 2000000
#define ROOM 262144
#define WARM_NS 300000000u

static void fail(const char *what)
{
	fprintf(stderr, "egress-load: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		fail(text);
	return address;
}

/* --- the server: one thread, nothing is parsed but the end of a head */

static char big[ROOM];

static void answer(int fd, const char *head, uint64_t big_bytes)
{
	char room[256];
	uint64_t bytes = strncmp(head, "GET /big", 8) == 0 ? big_bytes : 2;
	int length = snprintf(room, sizeof(room),
			      "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n%s",
			      (unsigned long long)bytes, bytes == 2 ? "ok" : "");

	if (send(fd, room, (size_t)length, MSG_NOSIGNAL) != length)
		return;
	while (bytes > 2) {
		ssize_t count = send(fd, big, bytes < ROOM ? (size_t)bytes : ROOM, MSG_NOSIGNAL);

		if (count <= 0)
			return;
		bytes -= (uint64_t)count;
	}
}

/* A body keeps its thread; so each has its own, and the bench has a few of them. */
struct served {
	int fd;
	uint64_t big_bytes;
};

static void *serve_one(void *argument)
{
	struct served served = *(struct served *)argument;
	char room[8192];
	ssize_t count;

	free(argument);
	answer(served.fd, "GET /big", served.big_bytes);
	while ((count = recv(served.fd, room, sizeof(room) - 1, 0)) > 0) {
		room[count] = '\0';
		if (strncmp(room, "GET ", 4) == 0)
			answer(served.fd, room, served.big_bytes);
	}
	close(served.fd);
	return NULL;
}

static _Noreturn void serve(char **arguments)
{
	struct sockaddr_in address = address_of(arguments[0], arguments[1]);
	int fd = socket(AF_INET, SOCK_STREAM, 0), epoll_fd = epoll_create1(0), one = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	uint64_t big_bytes = strtoull(arguments[2], NULL, 10);
	pthread_attr_t detached;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&detached, 65536);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4096) < 0)
		fail("listening");
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
	for (;;) {
		struct epoll_event events[64];
		int count = epoll_wait(epoll_fd, events, 64, -1);

		for (int i = 0; i < count; i++) {
			char room[8192];
			ssize_t length;
			int at = events[i].data.fd;

			if (at == fd) {
				int client = accept4(fd, NULL, NULL, 0);

				event.data.fd = client;
				if (client >= 0) {
					setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one,
						   sizeof(one));
					epoll_ctl(epoll_fd, EPOLL_CTL_ADD, client, &event);
				}
				continue;
			}
			length = recv(at, room, sizeof(room) - 1, 0);
			if (length <= 0) {
				close(at);
				continue;
			}
			room[length] = '\0';
			if (strncmp(room, "GET /big", 8) == 0) {
				struct served *served = malloc(sizeof(*served));
				pthread_t thread;

				epoll_ctl(epoll_fd, EPOLL_CTL_DEL, at, NULL);
				*served = (struct served){ at, big_bytes };
				if (pthread_create(&thread, &detached, serve_one, served) != 0)
					close(at);
			} else if (strncmp(room, "GET ", 4) == 0) {
				answer(at, room, big_bytes);
			}
		}
	}
}

/* --- the load */

static const char *what;
static struct sockaddr_in target, via;
static bool has_via;
static char target_text[64];
static uint64_t from_ns, until_ns;
static uint32_t samples[LIMIT_SAMPLES];
static size_t sample_count;
static uint64_t bytes_total, first_us;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __thread unsigned client_number;

static int open_target(void)
{
	const struct sockaddr_in *to = has_via ? &via : &target;
	/*
	 * Each from an address of its own: ports rest for a minute, and the search for one that
	 * does not is the kernel's, and long. Squid, which looks for its own, is better off with
	 * one.
	 */
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + client_number) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	char room[512];

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (has_via) {
		int length = snprintf(room, sizeof(room), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
				      target_text, target_text);
		ssize_t count;

		if (send(fd, room, (size_t)length, 0) != length)
			fail("CONNECT");
		count = recv(fd, room, sizeof(room) - 1, 0);
		if (count < 12 || memcmp(room + 9, "200", 3) != 0)
			fail("no tunnel");
	}
	return fd;
}

static uint64_t request(int fd, const char *path)
{
	static __thread char room[ROOM];
	int length = snprintf(room, sizeof(room), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path,
			      target_text);
	uint64_t got = 0, wanted = 0;

	if (send(fd, room, (size_t)length, MSG_NOSIGNAL) != length)
		fail("send");
	do {
		ssize_t count = recv(fd, room + (wanted ? 0 : got),
				     sizeof(room) - 1 - (wanted ? 0 : got), 0);

		if (count <= 0)
			fail("recv");
		got += (uint64_t)count;
		if (wanted == 0) {
			char *end, *field;

			room[got] = '\0';
			end = strstr(room, "\r\n\r\n");
			field = strstr(room, "Content-Length: ");
			if (memcmp(room + 9, "200", 3) != 0)
				fail("not answered with 200");
			if (end && field)
				wanted =
					(uint64_t)(end + 4 - room) + strtoull(field + 16, NULL, 10);
		}
	} while (wanted == 0 || got < wanted);
	return got;
}

static void *client(void *number)
{
	bool keeps = strcmp(what, "keep") == 0, is_body = strcmp(what, "body") == 0;
	uint32_t *mine = malloc(LIMIT_SAMPLES / 16 * sizeof(*mine));
	size_t count = 0;
	uint64_t bytes = 0;
	int fd;

	client_number = getenv("LOAD_ONE_ADDRESS") ? 0 : (unsigned)(uintptr_t)number;
	fd = keeps ? open_target() : -1;
	do {
		uint64_t began = now_ns();

		if (!keeps)
			fd = open_target();
		bytes += request(fd, is_body ? "/big" : "/");
		if (!keeps)
			close(fd);
		if ((is_body || began >= from_ns) && count < LIMIT_SAMPLES / 16)
			mine[count++] = (uint32_t)((now_ns() - began) / 1000);
	} while (!is_body && now_ns() < until_ns);
	pthread_mutex_lock(&lock);
	if (sample_count + count <= LIMIT_SAMPLES) {
		memcpy(samples + sample_count, mine, count * sizeof(*mine));
		sample_count += count;
	}
	bytes_total += bytes;
	pthread_mutex_unlock(&lock);
	free(mine);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

static int idle(unsigned clients)
{
	char byte;

	for (unsigned i = 0; i < clients; i++)
		(void)open_target();
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

int main(int count, char **arguments)
{
	static pthread_t threads[LIMIT_CLIENTS];
	struct rlimit files;
	unsigned clients;
	uint64_t began;
	double seconds;
	int first;

	signal(SIGPIPE, SIG_IGN);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (count == 5 && strcmp(arguments[1], "serve") == 0)
		serve(arguments + 2);
	if (count != 7)
		return 2;
	what = arguments[1];
	clients = (unsigned)strtoul(arguments[2], NULL, 10);
	target = address_of(arguments[5], arguments[6]);
	snprintf(target_text, sizeof(target_text), "%s:%s", arguments[5], arguments[6]);
	if (strcmp(arguments[4], "-") != 0) {
		char *colon = strchr(arguments[4], ':');

		*colon = '\0';
		via = address_of(arguments[4], colon + 1);
		has_via = true;
	}
	if (clients == 0 || clients > LIMIT_CLIENTS)
		return 2;
	if (strcmp(what, "idle") == 0)
		return idle(clients);
	began = now_ns();
	first = open_target();
	(void)request(first, "/");
	close(first);
	first_us = (now_ns() - began) / 1000;
	began = now_ns();
	if (strcmp(what, "body") != 0)
		began += WARM_NS;
	from_ns = began;
	until_ns = began + (uint64_t)(strtod(arguments[3], NULL) * 1e9);
	for (unsigned i = 0; i < clients; i++)
		if (pthread_create(&threads[i], NULL, client, (void *)(uintptr_t)(i + 1)) != 0)
			fail("a thread");
	for (unsigned i = 0; i < clients; i++)
		pthread_join(threads[i], NULL);
	seconds = (double)(now_ns() - began) / 1e9;
	qsort(samples, sample_count, sizeof(*samples), compare);
	printf("{\"requests\": %zu, \"seconds\": %.3f, \"rate\": %.1f, \"p50_us\": %u, "
	       "\"p99_us\": %u, \"first_us\": %llu, \"bytes\": %llu}\n",
	       sample_count, seconds, (double)sample_count / seconds, samples[sample_count / 2],
	       samples[sample_count * 99 / 100], (unsigned long long)first_us,
	       (unsigned long long)bytes_total);
	return 0;
}
