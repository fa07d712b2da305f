/* Real processes below a subreaper that stands for process 1 of a box; hostile texts as files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "home.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/usage.h"

#define SECOND_NS UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

/* The root of a box: runs a function, says when it is done, and sleeps until it is killed. */
struct box {
	pid_t pid;
	int pidfd, ready, proc_fd;
	struct usage usage;
};

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void burn(long ms)
{
	struct timespec used = { 0 };

	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms)
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
}

/* In the box: a sleeping child that exists when this returns. */
static pid_t spawn(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		/* a test that fails leaves nothing behind */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		sleep_on();
	}
	return pid;
}

static struct box begin(void (*inside)(int ready))
{
	struct box box = { 0 };
	struct error error = ERROR_NONE;
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	box.pid = fork();
	if (box.pid == 0) {
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		inside(ends[1]);
		(void)!write(ends[1], "x", 1);
		sleep_on();
	}
	(void)setpgid(box.pid, box.pid);
	box.ready = ends[0];
	close(ends[1]);
	box.pidfd = (int)syscall(SYS_pidfd_open, box.pid, 0);
	box.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (usage_begin(&box.usage, box.proc_fd, &error) < 0 ||
	    usage_add_root(&box.usage, box.pid, box.pidfd, &error) < 0)
		fail_msg("%s", error.message);
	assert_int_equal(read(box.ready, &byte, 1), 1);
	return box;
}

static struct usage_sample poll_box(struct box *box)
{
	struct usage_sample sample;

	assert_int_equal(usage_poll(&box->usage, &sample), 0);
	return sample;
}

/* The processes of a box start on their own: polls until there are so many, or too long. */
static struct usage_sample await(struct box *box, uint64_t processes)
{
	uint64_t deadline = clock_monotonic_ns() + 10 * SECOND_NS;
	struct usage_sample sample = poll_box(box);

	while (sample.processes != processes && clock_monotonic_ns() < deadline) {
		(void)usleep(1000);
		sample = poll_box(box);
	}
	assert_int_equal(sample.processes, processes);
	return sample;
}

static void end(struct box *box)
{
	struct usage_sample sample;
	uint64_t deadline = clock_monotonic_ns() + 5 * SECOND_NS;

	/* orphans are ours: whose they are otherwise may leave them unreaped for seconds */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	/* everything of ours is in the group or dies with it; the poll sees it go */
	(void)kill(-box->pid, SIGKILL);
	(void)waitpid(box->pid, NULL, 0);
	do {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		sample = poll_box(box);
	} while (sample.processes && clock_monotonic_ns() < deadline);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	assert_int_equal(sample.processes, 0);
	assert_int_equal(sample.resident_bytes, 0);
	usage_end(&box->usage);
	close(box->pidfd);
	close(box->ready);
	close(box->proc_fd);
}

static size_t open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void a_tree(int ready)
{
	(void)ready;
	spawn();
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		spawn();
		spawn();
		sleep_on();
	}
}

static void descendants_and_nobody_else(void **state)
{
	size_t before = open_descriptors();
	pid_t other = spawn();
	struct box box = begin(a_tree);
	struct usage_sample sample = await(&box, 5);

	(void)state;
	assert_int_equal(sample.processes, 5);
	assert_int_equal(sample.threads, 5);
	assert_false(sample.truncated);
	assert_true(sample.resident_bytes > 5 * 100 * 1024);
	assert_true(sample.cost_ns > 0);
	assert_int_equal(poll_box(&box).processes, 5);
	end(&box);
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	assert_int_equal(open_descriptors(), before);
}

static void scan_finds_the_same(void **state)
{
	struct box box = begin(a_tree);

	(void)state;
	box.usage.scan = true;
	(void)await(&box, 5);
	assert_int_equal(poll_box(&box).processes, 5);
	end(&box);
}

static void double_fork(int ready)
{
	pid_t pid = fork();

	(void)ready;
	if (pid == 0) {
		if (fork() == 0) {
			(void)setsid();
			sleep_on();
		}
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void daemons_are_found(void **state)
{
	struct box box = begin(double_fork);
	struct usage_sample sample = await(&box, 2);

	(void)state;
	assert_int_equal(sample.processes, 2);
	for (size_t i = 0; i < box.usage.count; i++)
		if (box.usage.processes[i].pid != box.pid) {
			assert_int_equal(box.usage.processes[i].parent, box.pid);
			(void)kill(box.usage.processes[i].pid, SIGKILL);
		}
	end(&box);
}

/* A process 1 of its own, with a daemon that is given to it. */
static int nested_init(void *argument)
{
	double_fork(0);
	(void)!write(*(int *)argument, "x", 1);
	sleep_on();
	return 0;
}

static void nested(int ready)
{
	static _Alignas(16) char stack[65536];
	int flags = CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD;

	if (clone(nested_init, stack + sizeof(stack), flags, &ready) < 0)
		_exit(1);
}

static void nested_namespaces(void **state)
{
	pid_t trial = fork();
	struct box box;
	int status;
	char byte;

	(void)state;
	if (trial == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0);
	(void)waitpid(trial, &status, 0);
	if (status) {
		print_message("# no namespaces here\n");
		skip();
	}
	box = begin(nested);
	/* one letter from the box and one from process 1 inside, which now has its daemon */
	assert_int_equal(read(box.ready, &byte, 1), 1);
	assert_int_equal(poll_box(&box).processes, 3);
	end(&box);
}

static void *fork_and_sleep(void *argument)
{
	(void)argument;
	spawn();
	sleep_on();
	return NULL;
}

static void threads(int ready)
{
	pthread_t thread;

	(void)ready;
	(void)pthread_create(&thread, NULL, fork_and_sleep, NULL);
}

static void children_of_threads(void **state)
{
	struct box box = begin(threads);
	struct usage_sample sample = await(&box, 2);

	(void)state;
	assert_int_equal(sample.processes, 2);
	assert_int_equal(sample.threads, 3);
	end(&box);
}

static void fork_when_told(int number)
{
	(void)number;
	spawn();
}

static void later(int ready)
{
	(void)ready;
	(void)signal(SIGUSR1, fork_when_told);
}

/* Looking only where somebody forked must not miss the one who does. */
static void later_ones_are_found(void **state)
{
	struct box box = begin(later);

	(void)state;
	for (uint64_t round = 1; round <= 20; round++) {
		uint64_t deadline = clock_monotonic_ns() + 5 * SECOND_NS;

		assert_int_equal(poll_box(&box).processes, round);
		assert_int_equal(poll_box(&box).processes, round);
		(void)kill(box.pid, SIGUSR1);
		while (poll_box(&box).processes == round && clock_monotonic_ns() < deadline)
			(void)usleep(1000);
		assert_int_equal(poll_box(&box).processes, round + 1);
	}
	end(&box);
}

static void many(int ready)
{
	(void)ready;
	for (int i = 0; i < USAGE_KEPT_LIMIT + 50; i++)
		spawn();
}

static void more_than_descriptors(void **state)
{
	size_t before = open_descriptors();
	struct box box = begin(many);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(poll_box(&box).processes, USAGE_KEPT_LIMIT + 51);
	assert_true(open_descriptors() <= before + 2 * USAGE_KEPT_LIMIT + 4);
	/* some of them go, with and without descriptors */
	for (size_t i = 1; i < box.usage.count; i += 2)
		if (box.usage.processes[i].pid != box.pid)
			(void)kill(box.usage.processes[i].pid, SIGKILL);
	end(&box);
	assert_int_equal(open_descriptors(), before);
}

static void ended_children(int ready)
{
	pid_t pid = fork();

	(void)ready;
	if (pid == 0) {
		burn(100);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void time_of_ended_children(void **state)
{
	struct box box = begin(ended_children);
	struct usage_sample sample = poll_box(&box);

	(void)state;
	assert_int_equal(sample.processes, 1);
	assert_in_range(sample.cpu_ns, 80000000, 300000000);
	end(&box);
}

/* Children that nobody waits for: the kernel charges their time to no parent. */
static void not_waited_for(int ready)
{
	(void)signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		burn(100);
		(void)!write(ready, "x", 1);
		sleep_on();
	}
	sleep_on();
}

static void time_of_children_that_nobody_waits_for(void **state)
{
	struct box box = begin(not_waited_for);
	struct usage_sample sample = poll_box(&box);

	(void)state;
	assert_int_equal(sample.processes, 2);
	assert_in_range(sample.cpu_ns, 80000000, 300000000);
	for (size_t i = 0; i < box.usage.count; i++)
		if (box.usage.processes[i].pid != box.pid)
			(void)kill(box.usage.processes[i].pid, SIGKILL);
	sample = await(&box, 1);
	assert_in_range(sample.cpu_ns, 80000000, 300000000);
	end(&box);
	assert_true(box.usage.count == 0);
}

static void an_ended_action_keeps_its_time(void **state)
{
	struct box box = begin(a_tree);
	struct error error = ERROR_NONE;
	struct usage_sample sample;
	CLEANUP_FD int pidfd = -1;
	int ends[2];
	char byte;
	pid_t action;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	action = fork();
	if (action == 0) {
		burn(60);
		(void)!write(ends[1], "x", 1);
		sleep_on();
	}
	pidfd = (int)syscall(SYS_pidfd_open, action, 0);
	assert_int_equal(usage_add_root(&box.usage, action, pidfd, &error), 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)await(&box, 6);
	(void)kill(action, SIGKILL);
	(void)waitpid(action, NULL, 0);
	sample = poll_box(&box);
	assert_int_equal(sample.processes, 5);
	assert_in_range(sample.cpu_ns, 40000000, 300000000);
	/* and one that has ended is no root */
	assert_int_equal(usage_add_root(&box.usage, action, pidfd, &error), -ESRCH);
	close(ends[0]);
	close(ends[1]);
	end(&box);
}

/* The number of a dead process is given to one of somebody else. */
static void a_number_used_again(void **state)
{
	struct box box = begin(a_tree);
	pid_t victim = 0, wanted;
	struct clone_args arguments = { .exit_signal = SIGCHLD };
	long pid;

	(void)state;
	(void)await(&box, 5);
	for (size_t i = 0; i < box.usage.count; i++)
		if (box.usage.processes[i].parent != box.pid &&
		    box.usage.processes[i].pid != box.pid)
			victim = box.usage.processes[i].pid;
	assert_true(victim > 0);
	/* the whole box, so that all numbers are free */
	(void)kill(-box.pid, SIGKILL);
	(void)waitpid(box.pid, NULL, 0);
	for (int i = 0; i < 500 && kill(victim, 0) == 0; i++)
		(void)usleep(10000);
	wanted = victim;
	arguments.set_tid = (uint64_t)(uintptr_t)&wanted;
	arguments.set_tid_size = 1;
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (pid == 0)
		sleep_on();
	if (pid < 0) {
		end(&box);
		print_message("# clone3 with a number: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(pid, victim);
	assert_int_equal(poll_box(&box).processes, 0);
	(void)kill((pid_t)pid, SIGKILL);
	(void)waitpid((pid_t)pid, NULL, 0);
	end(&box);
}

static void evil_name(int ready)
{
	(void)ready;
	(void)prctl(PR_SET_NAME, ") R 1 (\n9 9 9", 0, 0, 0);
	spawn();
}

static void names_are_not_fields(void **state)
{
	struct box box = begin(evil_name);
	struct usage_sample sample = poll_box(&box);

	(void)state;
	assert_int_equal(sample.processes, 2);
	assert_int_equal(sample.threads, 2);
	end(&box);
}

static void shared_pages(int ready)
{
	char *bytes =
		mmap(NULL, 48 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared =
		mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)ready;
	memset(bytes, 1, 48 * MIB);
	memset(shared, 1, 16 * MIB);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			volatile char *seen = bytes, *also = shared;

			for (size_t at = 0; at < 48 * MIB; at += 4096)
				(void)seen[at];
			for (size_t at = 0; at < 16 * MIB; at += 4096)
				(void)also[at];
			(void)!write(ready, "x", 1);
			sleep_on();
		}
}

/* The sanitizer's shadow of it is each process's own. */
#ifdef __SANITIZE_ADDRESS__
#define SHARED_MOST (200 * MIB)
#else
#define SHARED_MOST (100 * MIB)
#endif

static void shared_memory_counts_once_when_measured(void **state)
{
	struct box box = begin(shared_pages);
	struct usage_sample sample;
	uint64_t bytes = 0;
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(read(box.ready, &byte, 1), 1);
	sample = poll_box(&box);
	assert_true(sample.resident_bytes > 4 * 60 * MIB);
	assert_int_equal(usage_measure(&box.usage, 10 * SECOND_NS, &bytes), 0);
	assert_in_range(bytes, 63 * MIB, SHARED_MOST);
	/* too slow is said, and leaves no process */
	bytes = 17;
	assert_int_equal(usage_measure(&box.usage, 0, &bytes), -ETIMEDOUT);
	assert_int_equal(bytes, 17);
	assert_int_equal(poll_box(&box).processes, 4);
	(void)kill(-box.pid, SIGKILL);
	(void)waitpid(box.pid, NULL, 0);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	end(&box);
}

/* /proc as plain files; our own pidfd stands for "alive". */
static int fake(struct fixture *fixture, struct usage *usage, const char *stat)
{
	struct error error = ERROR_NONE;
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int proc_fd = open(fixture->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	make(fixture, "10/stat", stat);
	assert_int_equal(usage_begin(usage, proc_fd, &error), 0);
	return usage_add_root(usage, 10, pidfd, &error);
}

static void end_fake(struct usage *usage)
{
	close(usage->proc_fd);
	usage_end(usage);
}

#define STAT(pid, parent, pages) \
#pid " (x) S " #parent " 0 0 0 0 0 0 0 0 0 1 2 3 4 0 0 1 0 777 9 " #pages " 0\n"

static void texts_that_are_no_stat(void **state)
{
	static const char *const texts[] = {
		"x",
		"10 x S 1",
		"10 (x)",
		"10 (x) ",
		"10 (x) S",
		"10 (x) S 1 2 3",
		"10 (x) S 1 0 0 0 0 0 0 0 0 0 1 2 3 4 0 0 one 0 777 9 5 0\n",
		"10 (x) S 1 0 0 0 0 0 0 0 0 0 99999999999999999999999 2 3 4 0 0 1 0 777 9 5 0\n",
	};
	struct fixture *fixture = *state;
	struct usage usage;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(fake(fixture, &usage, texts[i]), -EPROTO);
		end_fake(&usage);
	}
	assert_int_equal(fake(fixture, &usage, ""), -ESRCH);
	end_fake(&usage);
}

static void a_list_longer_than_one_read(void **state)
{
	struct fixture *fixture = *state;
	static char list[40000];
	struct usage_sample sample;
	struct usage usage;
	size_t length = 0;

	/* numbers of 5 and 6 letters, so that the pieces cut some; the last one has no blank */
	for (int i = 0; i < 5000; i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%d ",
					   i % 3 ? 20000 + i : 200000 + i);
	(void)snprintf(list + length, sizeof(list) - length, "22729 200001 11");
	make(fixture, "10/task/10/children", list);
	make(fixture, "22729/stat", STAT(22729, 10, 2));
	make(fixture, "22729/task/22729/children", "12 ");
	make(fixture, "11/stat", STAT(11, 10, 3));
	make(fixture, "11/task/11/children", "");
	make(fixture, "12/stat", STAT(12, 22729, 4));
	make(fixture, "12/task/12/children", "10 12 22729 ");
	assert_int_equal(fake(fixture, &usage, STAT(10, 1, 1)), 0);
	assert_int_equal(usage_poll(&usage, &sample), 0);
	assert_int_equal(sample.processes, 4);
	assert_int_equal(sample.resident_bytes, (1 + 2 + 3 + 4) * (uint64_t)getpagesize());
	assert_int_equal(sample.cpu_ns, 4 * (1 + 2 + 3 + 4) * usage.tick_ns);
	end_fake(&usage);
}

static void a_listed_stranger_is_not_ours(void **state)
{
	struct fixture *fixture = *state;
	struct usage_sample sample;
	struct usage usage;

	make(fixture, "10/task/10/children", "11 99999999999999999999 -5 0 x");
	make(fixture, "11/stat", STAT(11, 1, 3));
	make(fixture, "11/task/11/children", "");
	assert_int_equal(fake(fixture, &usage, STAT(10, 1, 1)), 0);
	assert_int_equal(usage_poll(&usage, &sample), 0);
	assert_int_equal(sample.processes, 1);
	end_fake(&usage);
}

static void without_lists_of_children(void **state)
{
	struct fixture *fixture = *state;
	struct usage_sample sample;
	struct usage usage;

	/* found whatever the order of the names */
	make(fixture, "13/stat", STAT(13, 12, 1));
	make(fixture, "11/stat", STAT(11, 12, 1));
	make(fixture, "12/stat", STAT(12, 10, 1));
	make(fixture, "9/stat", STAT(9, 1, 1));
	make(fixture, "12x/stat", STAT(12, 10, 1));
	assert_int_equal(fake(fixture, &usage, STAT(10, 1, 1)), 0);
	assert_true(usage.scan);
	assert_int_equal(usage_poll(&usage, &sample), 0);
	assert_int_equal(sample.processes, 4);
	end_fake(&usage);
}

static void intervals(void **state)
{
	static const struct {
		uint64_t limit, used, cpu_limit, cpu_used, cost, interval;
		uint32_t processors;
	} rows[] = {
		{ USAGE_UNLIMITED, 0, USAGE_UNLIMITED, 0, 0, SECOND_NS, 2 },
		{ 65536 * MIB, 0, USAGE_UNLIMITED, 0, 0, SECOND_NS, 2 },
		{ 2048 * MIB, 0, USAGE_UNLIMITED, 0, 0, 500000000, 2 },
		{ 2048 * MIB, 1024 * MIB, USAGE_UNLIMITED, 0, 0, 250000000, 2 },
		{ 2048 * MIB, 1984 * MIB, USAGE_UNLIMITED, 0, 0, 15625000, 2 },
		{ 2048 * MIB, 2047 * MIB, USAGE_UNLIMITED, 0, 0, 10000000, 2 },
		{ 2048 * MIB, 2048 * MIB, USAGE_UNLIMITED, 0, 0, 10000000, 2 },
		{ 2048 * MIB, 4096 * MIB, USAGE_UNLIMITED, 0, 0, 10000000, 2 },
		/* far: at most 1/400; near: 1/50 */
		{ 2048 * MIB, 1024 * MIB, USAGE_UNLIMITED, 0, 1000000, 400000000, 2 },
		{ 2048 * MIB, 2047 * MIB, USAGE_UNLIMITED, 0, 1000000, 50000000, 2 },
		{ 2048 * MIB, 0, USAGE_UNLIMITED, 0, UINT64_MAX, SECOND_NS, 2 },
		{ USAGE_UNLIMITED, 0, SECOND_NS, 0, 0, 500000000, 2 },
		{ USAGE_UNLIMITED, 0, SECOND_NS, SECOND_NS / 2, 0, 250000000, 2 },
		{ USAGE_UNLIMITED, 0, SECOND_NS, SECOND_NS / 2, 0, 500000000, 0 },
		{ USAGE_UNLIMITED, 0, SECOND_NS, 2 * SECOND_NS, 0, 10000000, 2 },
		{ 2048 * MIB, 1024 * MIB, SECOND_NS, SECOND_NS / 10 * 9, 0, 50000000, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct usage_bounds bounds = { rows[i].limit, rows[i].cpu_limit,
					       rows[i].processors };
		uint64_t interval =
			usage_interval(&bounds, rows[i].used, rows[i].cpu_used, rows[i].cost);

		if (interval != rows[i].interval)
			fail_msg("row %zu: %llu", i, (unsigned long long)interval);
	}
}

static int setup(void **state)
{
	*state = fixture_new();
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(descendants_and_nobody_else),
		cmocka_unit_test(scan_finds_the_same),
		cmocka_unit_test(daemons_are_found),
		cmocka_unit_test(nested_namespaces),
		cmocka_unit_test(children_of_threads),
		cmocka_unit_test(later_ones_are_found),
		cmocka_unit_test(more_than_descriptors),
		cmocka_unit_test(time_of_ended_children),
		cmocka_unit_test(time_of_children_that_nobody_waits_for),
		cmocka_unit_test(an_ended_action_keeps_its_time),
		cmocka_unit_test(a_number_used_again),
		cmocka_unit_test(names_are_not_fields),
		cmocka_unit_test(shared_memory_counts_once_when_measured),
		TEST(texts_that_are_no_stat),
		TEST(a_list_longer_than_one_read),
		TEST(a_listed_stranger_is_not_ours),
		TEST(without_lists_of_children),
		cmocka_unit_test(intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
