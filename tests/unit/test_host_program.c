#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "workspace/host_program.h"

#define SECOND_NS (1000ull * 1000 * 1000)
/* A program that does not stop by itself is gone long before this. */
#define SOON_NS (20 * SECOND_NS)

struct ran {
	int result;
	bool has_said;
	char text[256];
	off_t bytes;
	uint64_t took_ns;
};

/* The shadow of all memory is data as well, and nothing starts below the limit of it. */
static void skip_where_memory_is_shadowed(void)
{
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
}

static struct ran run_with(const char *script, uint64_t limit_bytes, uint64_t limit_ns,
			   const int *fds, size_t fd_count)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	char *environment[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	int CLEANUP_FD out = memfd_create("out", MFD_CLOEXEC);
	struct host_program program = { .path = "/bin/sh",
					.argv = argv,
					.environment = environment,
					.fds = fds,
					.fd_count = fd_count,
					.out_fd = out,
					.limit_bytes = limit_bytes,
					.limit_ns = limit_ns };
	uint64_t began_ns = clock_monotonic_ns();
	struct ran ran = { 0 };
	ssize_t length;

	skip_where_memory_is_shadowed();
	ran.result = host_program_run(&program, &ran.has_said);
	ran.took_ns = clock_monotonic_ns() - began_ns;
	ran.bytes = lseek(out, 0, SEEK_END);
	length = pread(out, ran.text, sizeof(ran.text) - 1, 0);
	ran.text[length < 0 ? 0 : length] = '\0';
	return ran;
}

static struct ran run(const char *script)
{
	return run_with(script, 100, 60 * SECOND_NS, NULL, 0);
}

static void test_what_it_says(void **state)
{
	struct ran ran = run("echo out; exit 3");

	(void)state;
	assert_int_equal(ran.result, 3);
	assert_false(ran.has_said);
	assert_string_equal(ran.text, "out\n");
	ran = run("echo err >&2");
	assert_int_equal(ran.result, 0);
	assert_true(ran.has_said);
	assert_string_equal(ran.text, "");
	assert_int_equal(run("kill -9 $$").result, -ECHILD);
	/* nothing of ours but what is given */
	assert_string_equal(
		run("cat; env | grep -c HOME; ls -l /proc/self/fd | grep -c memfd:").text,
		"0\n0\n");
}

static void test_output_is_counted(void **state)
{
	struct ran ran = run("yes");

	(void)state;
	assert_int_equal(ran.result, -EFBIG);
	assert_true(ran.bytes <= 100);
	assert_true(ran.took_ns < SOON_NS);
	assert_int_equal(run("head -c 100 /dev/zero").result, 0);
	assert_int_equal(run("head -c 101 /dev/zero").result, -EFBIG);
	/* what goes nowhere is read all the same, and is no reason to wait */
	ran = run("head -c 1000000 /dev/zero >&2; echo end");
	assert_int_equal(ran.result, 0);
	assert_true(ran.has_said);
	assert_string_equal(ran.text, "end\n");
}

/* As of the program's first look at it, and ours is what it was. */
static void test_memory_is_limited_from_the_start(void **state)
{
	char *argv[] = { (char *)"grep", (char *)"Max data size", (char *)"/proc/self/limits",
			 NULL };
	char *environment[] = { NULL };
	struct rlimit before, after;

	(void)state;
	skip_where_memory_is_shadowed();
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	for (int i = 0; i < 100; i++) {
		int CLEANUP_FD out = memfd_create("out", MFD_CLOEXEC);
		const struct host_program program = { .path = "/bin/grep",
						      .argv = argv,
						      .environment = environment,
						      .out_fd = out,
						      .limit_bytes = 256,
						      .limit_ns = 60 * SECOND_NS };
		char text[257] = "", wanted[32];
		bool has_said;

		(void)snprintf(wanted, sizeof(wanted), " %u ", HOST_PROGRAM_LIMIT_MEMORY_BYTES);
		assert_int_equal(host_program_run(&program, &has_said), 0);
		assert_true(pread(out, text, 256, 0) > 0);
		assert_non_null(strstr(text, wanted));
	}
	assert_int_equal(getrlimit(RLIMIT_DATA, &after), 0);
	assert_int_equal(before.rlim_cur, after.rlim_cur);
	assert_int_equal(before.rlim_max, after.rlim_max);
}

static void test_time_is_limited(void **state)
{
	static const char *const scripts[] = { "exec sleep 1000",
					       "exec >/dev/null 2>&1; exec sleep 1000",
					       /* what outlives it holds what it writes to */
					       "sleep 40 & exit 0" };

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct ran ran = run_with(scripts[i], 100, SECOND_NS / 5, NULL, 0);

		assert_int_equal(ran.result, -ETIME);
		assert_true(ran.took_ns < SOON_NS);
	}
}

static void test_memory_is_limited(void **state)
{
	/* a line of 400 MiB is held in memory */
	struct ran ran = run_with("sleep 0.2; head -c 400M /dev/zero | tr '\\0' x | sort | wc -c",
				  100, 60 * SECOND_NS, NULL, 0);

	(void)state;
	assert_true(ran.has_said);
}

/* Whatever numbers the given ones have, and those of the pipes between. */
static void test_given_descriptors(void **state)
{
	static const char *const words[HOST_PROGRAM_LIMIT_FDS] = { "first", "second", "third" };
	static const int orders[][HOST_PROGRAM_LIMIT_FDS] = {
		{ 10, 11, 12 }, { 12, 11, 10 }, { 11, 12, 10 }, { 12, 10, 11 }, { 20, 10, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		int fds[HOST_PROGRAM_LIMIT_FDS];
		struct ran ran;

		for (int j = 0; j < HOST_PROGRAM_LIMIT_FDS; j++) {
			int CLEANUP_FD fd = memfd_create("given", MFD_CLOEXEC);

			fds[j] = orders[i][j];
			assert_true(fd >= 0 && (fd == fds[j] || dup3(fd, fds[j], O_CLOEXEC) >= 0));
			assert_int_equal(fd_write_all(fds[j], words[j], strlen(words[j])), 0);
			if (fd == fds[j])
				(void)TAKE_FD(fd);
		}
		ran = run_with("for i in 10 11 12; do cat /dev/fd/$i; echo; done", 100,
			       60 * SECOND_NS, fds, HOST_PROGRAM_LIMIT_FDS);
		assert_int_equal(ran.result, 0);
		assert_string_equal(ran.text, "first\nsecond\nthird\n");
		for (int j = 0; j < HOST_PROGRAM_LIMIT_FDS; j++)
			(void)close(fds[j]);
	}
	assert_int_equal(run_with("true", 100, SECOND_NS, orders[0], 4).result, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_says),
		cmocka_unit_test(test_output_is_counted),
		cmocka_unit_test(test_memory_is_limited_from_the_start),
		cmocka_unit_test(test_time_is_limited),
		cmocka_unit_test(test_memory_is_limited),
		cmocka_unit_test(test_given_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
