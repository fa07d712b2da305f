/*
 * What a task does to outlive its end, and to use up its host: one word a way (see main()).
 * Prints "ready" when its games are on, and what a bomb came to in its last line.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void rest(void) __attribute__((noreturn));

static void rest(void)
{
	for (;;)
		(void)usleep(50000);
}

static void ignore_all(void)
{
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_IGN);
}

static void *rest_in_thread(void *unused)
{
	(void)unused;
	rest();
}

/* A leader that has ended while another thread goes on: a zombie that is none. */
static void lose_leader(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, rest_in_thread, NULL) == 0)
		pthread_exit(NULL);
}

/* The process that waits cannot be ended by a signal that it handles later. */
static void wait_for_vfork(void)
{
	if (vfork() == 0) {
		(void)usleep(60000000);
		_exit(0);
	}
}

static void be_traced(void)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
		(void)raise(SIGSTOP);
}

static void do_nothing(int number)
{
	(void)number;
}

/* A timer is none of the senders that a stop of everybody stops. */
static void wake_by_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };
	struct itimerspec often = { { 0, 5000000 }, { 0, 5000000 } };
	timer_t timer;

	(void)signal(SIGCONT, do_nothing);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		(void)timer_settime(timer, 0, &often, NULL);
}

static void stop_all(void)
{
	for (;;) {
		(void)kill(-1, SIGSTOP);
		(void)usleep(300);
	}
}

static void slay_all(void)
{
	for (;;) {
		(void)kill(-1, SIGKILL);
		(void)usleep(500);
	}
}

static void continue_all(void)
{
	for (;;) {
		(void)kill(-1, SIGCONT);
		(void)usleep(500);
	}
}

/* Forks again and again, each into a session of its own: never there where one looks. */
static void run_away(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0);
		if (pid == 0)
			(void)setsid();
		(void)usleep(500);
	}
}

static void daemonize(void (*game)(void))
{
	if (fork() != 0)
		return;
	(void)setsid();
	if (fork() != 0)
		_exit(0);
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	ignore_all();
	game();
	rest();
}

static void nothing(void)
{
}

static int games(void)
{
	static void (*const all[])(void) = { nothing,	lose_leader,   wait_for_vfork,
					     be_traced, wake_by_timer, run_away };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		daemonize(all[i]);
	ignore_all();
	(void)!write(1, "ready\n", 6);
	return 0;
}

/* Appends a byte to the file as long as it lives: whoever is dead or frozen appends nothing. */
static void tick(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	for (;;) {
		(void)!write(fd, ".", 1);
		(void)usleep(2000);
	}
}

static void told(const char *what, long count)
{
	printf("%s %ld %s\n", what, count, errno ? strerror(errno) : "-");
	fflush(stdout);
}

static int bomb_fork(void)
{
	long made = 0;
	pid_t pid;

	while ((pid = fork()) > 0)
		made++;
	if (pid == 0)
		rest();
	told("fork", made);
	(void)usleep(1500000);
	return 0;
}

/* All of them compute, for a while. */
static int bomb_spin(void)
{
	time_t end = time(NULL) + 3;

	for (int i = 0; i < 200; i++)
		if (fork() == 0)
			break;
	while (time(NULL) < end)
		;
	return 0;
}

static int bomb_memory(void)
{
	const size_t step = 8u << 20;

	for (long count = 0;; count++) {
		char *bytes = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		if (bytes == MAP_FAILED) {
			told("memory", count);
			return 0;
		}
		memset(bytes, 1, step);
		(void)usleep(2000);
	}
}

static int bomb_fds(void)
{
	long made = 0;

	while (open("/dev/null", O_RDONLY) >= 0)
		made++;
	told("fds", made);
	return 0;
}

static int bomb_inotify(void)
{
	long made = 0;

	while (made < 5000 && inotify_init() >= 0)
		made++;
	told("inotify", made);
	(void)usleep(1500000);
	return 0;
}

static int bomb_watches(void)
{
	int fd = inotify_init();
	char name[64];
	long made = 0;

	errno = 0;
	for (; made < 200000; made++) {
		(void)snprintf(name, sizeof(name), "/tmp/d%ld", made);
		if (mkdir(name, 0700) < 0 || inotify_add_watch(fd, name, IN_MODIFY) < 0)
			break;
	}
	told("watches", made);
	(void)usleep(1500000);
	return 0;
}

static int bomb_ptys(void)
{
	long made = 0;

	while (made < 5000 && posix_openpt(O_RDWR | O_NOCTTY) >= 0)
		made++;
	told("ptys", made);
	(void)usleep(1500000);
	return 0;
}

/* Each pipe as large as it may become, and full. */
static int bomb_pipes(void)
{
	static char bytes[1 << 20];
	long kept = 0;
	int ends[2];

	while (kept < 4000 && pipe2(ends, O_NONBLOCK) == 0) {
		ssize_t count;

		(void)fcntl(ends[1], F_SETPIPE_SZ, sizeof(bytes));
		while ((count = write(ends[1], bytes, sizeof(bytes))) > 0)
			;
		kept++;
	}
	told("pipes", kept);
	(void)usleep(1500000);
	return 0;
}

/* Descriptors on their way in sockets count for the user, whoever else the user is. */
static int bomb_flight(void)
{
	long kept = 0;

	for (; kept < 30000; kept++) {
		char control[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec vector = { .iov_base = "x", .iov_len = 1 };
		struct msghdr message = { .msg_iov = &vector,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		static int ends[2] = { -1, -1 };

		if (kept % 100 == 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) < 0)
			break;
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &ends[1], sizeof(int));
		if (sendmsg(ends[0], &message, 0) < 0 && errno != EAGAIN)
			break;
	}
	told("flight", kept);
	(void)usleep(1500000);
	return 0;
}

/* Signals that wait count for the user too. */
static int bomb_signals(void)
{
	sigset_t set;
	long made = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	while (made < 1000000 && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
		made++;
	told("signals", made);
	(void)usleep(1500000);
	return 0;
}

/* As many processes as fit through, none of which is there for long. */
static int bomb_ended(void)
{
	time_t end = time(NULL) + 3;
	long made = 0;

	(void)signal(SIGCHLD, SIG_IGN);
	while (time(NULL) < end) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		made += pid > 0;
	}
	errno = 0;
	told("ended", made);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const long *one = a, *two = b;

	return *one < *two ? -1 : *one > *two;
}

/* How late a sleeper wakes and a child ends, in microseconds: median, 90th percentile. */
static int pulse(int rounds)
{
	long *times = calloc((size_t)rounds, sizeof(*times));

	for (int i = 0; times && i < rounds; i++) {
		struct timespec begin, end;
		pid_t pid;

		(void)clock_gettime(CLOCK_MONOTONIC, &begin);
		(void)usleep(1000);
		pid = fork();
		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) < 0) {
			told("pulse", -1);
			return 1;
		}
		(void)clock_gettime(CLOCK_MONOTONIC, &end);
		times[i] = (end.tv_sec - begin.tv_sec) * 1000000 +
			   (end.tv_nsec - begin.tv_nsec) / 1000;
	}
	if (!times)
		return 1;
	qsort(times, (size_t)rounds, sizeof(*times), compare);
	printf("pulse %ld %ld\n", times[rounds / 2], times[rounds * 9 / 10]);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		int (*run)(void);
	} ways[] = { { "games", games },	  { "fork", bomb_fork },
		     { "spin", bomb_spin },	  { "memory", bomb_memory },
		     { "fds", bomb_fds },	  { "inotify", bomb_inotify },
		     { "watches", bomb_watches }, { "ptys", bomb_ptys },
		     { "pipes", bomb_pipes },	  { "flight", bomb_flight },
		     { "signals", bomb_signals }, { "ended", bomb_ended } };
	const char *word = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(word, ways[i].word) == 0)
			return ways[i].run();
	if (strcmp(word, "pulse") == 0)
		return pulse(argc > 2 ? atoi(argv[2]) : 100);
	if (strcmp(word, "rest") == 0)
		rest();
	if (strcmp(word, "stop") == 0)
		stop_all();
	if (strcmp(word, "slay") == 0)
		slay_all();
	if (strcmp(word, "continue") == 0)
		continue_all();
	if (strcmp(word, "daemon") == 0 && argc > 2) {
		/* ticks behind everybody's back; the caller ends */
		if (fork() != 0)
			return 0;
		(void)setsid();
		if (fork() != 0)
			return 0;
		ignore_all();
		tick(argv[2]);
	}
	if (strcmp(word, "tick") == 0 && argc > 2) {
		wake_by_timer();
		tick(argv[2]);
	}
	return 2;
}
