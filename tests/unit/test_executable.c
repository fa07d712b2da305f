/* Digests of executables, remembered and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>

#include "base/error.h"
#include "base/fd.h"
#include "trace/executable.h"
#include "trace/store.h"

#define HELLO "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

struct place {
	struct fixture *fixture;
	struct trace_store store;
	struct executable_cache cache;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct error error = ERROR_NONE;

	place->fixture = fixture_new();
	(void)fchmod(place->fixture->state_fd, 0700);
	if (trace_store_open(place->fixture->state_fd, &place->store, &error) < 0)
		fail_msg("%s", error.message);
	executable_cache_open(&place->store, &place->cache);
	assert_true(place->cache.fd >= 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	executable_cache_close(&place->cache);
	trace_store_close(&place->store);
	fixture_free(place->fixture);
	free(place);
	return 0;
}

static int open_file(const struct place *place, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", place->fixture->work, name);
	fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static bool is_known(const struct place *place, int fd, char sha256[static SHA256_HEX_BYTES])
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return executable_lookup(&place->cache, &status, sha256);
}

/* Waits until a file that was just made counts as settled. */
static void let_it_settle(int fd)
{
	struct timespec now;
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	do {
		(void)usleep(20000);
		assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	} while (now.tv_sec - status.st_ctim.tv_sec < 4);
}

static void test_remembered(void **state)
{
	struct place *place = *state;
	int CLEANUP_FD fd = -1, CLEANUP_FD by_path = -1;
	char sha256[SHA256_HEX_BYTES] = "";

	make(place->fixture, "work/program", "hello");
	fd = open_file(place, "program", O_RDONLY);
	by_path = open_file(place, "program", O_PATH);
	assert_false(is_known(place, fd, sha256));
	/* changed a moment ago: told, and not remembered */
	assert_null(executable_compute(fd, &place->cache, sha256));
	assert_string_equal(sha256, HELLO);
	assert_false(is_known(place, fd, sha256));
	let_it_settle(fd);
	assert_null(executable_compute(by_path, &place->cache, sha256));
	assert_true(is_known(place, fd, sha256));
	assert_string_equal(sha256, HELLO);
	/* by another that opens the cache */
	executable_cache_close(&place->cache);
	assert_false(is_known(place, fd, sha256));
	executable_cache_open(&place->store, &place->cache);
	assert_true(is_known(place, fd, sha256));
	/* the same size and mtime, another ctime */
	{
		struct timespec times[2];
		struct stat status;
		int CLEANUP_FD writer = open_file(place, "program", O_WRONLY);

		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(pwrite(writer, "HELLO", 5, 0), 5);
		times[0] = status.st_atim;
		times[1] = status.st_mtim;
		assert_int_equal(futimens(writer, times), 0);
	}
	assert_false(is_known(place, fd, sha256));
}

static void test_damaged_cache(void **state)
{
	struct place *place = *state;
	int CLEANUP_FD fd = -1;
	char sha256[SHA256_HEX_BYTES] = "", bytes[96], zeros[96] = { 0 };
	struct stat status;
	unsigned flips = 0;

	make(place->fixture, "work/program", "hello");
	fd = open_file(place, "program", O_RDONLY);
	let_it_settle(fd);
	assert_null(executable_compute(fd, &place->cache, sha256));
	assert_true(is_known(place, fd, sha256));
	/* a changed byte of the entry is a miss, never another digest */
	for (off_t at = 0; at < (off_t)(EXECUTABLE_ENTRIES * 96); at += 96) {
		assert_int_equal(pread(place->cache.fd, bytes, 96, at), 96);
		if (memcmp(bytes, zeros, 96) == 0)
			continue;
		for (unsigned i = 0; i < 96; i++, flips++) {
			bytes[i] ^= 1;
			assert_int_equal(pwrite(place->cache.fd, bytes, 96, at), 96);
			assert_false(is_known(place, fd, sha256));
			bytes[i] ^= 1;
		}
		assert_int_equal(pwrite(place->cache.fd, bytes, 96, at), 96);
		assert_true(is_known(place, fd, sha256));
	}
	assert_int_equal(flips, 96);
	/* cut, and not ours */
	assert_int_equal(ftruncate(place->cache.fd, 1000), 0);
	assert_false(is_known(place, fd, sha256));
	executable_cache_close(&place->cache);
	executable_cache_open(&place->store, &place->cache);
	assert_int_equal(fstat(place->cache.fd, &status), 0);
	assert_int_equal(status.st_size, EXECUTABLE_ENTRIES * 96);
	executable_cache_close(&place->cache);
	assert_int_equal(fchmodat(place->store.fd, "executables", 0622, 0), 0);
	executable_cache_open(&place->store, &place->cache);
	assert_int_equal(place->cache.fd, -1);
	assert_false(is_known(place, fd, sha256));
	assert_int_equal(unlinkat(place->store.fd, "executables", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", place->store.fd, "executables"), 0);
	executable_cache_open(&place->store, &place->cache);
	assert_int_equal(place->cache.fd, -1);
	/* without it there is the digest all the same */
	assert_null(executable_compute(fd, &place->cache, sha256));
	assert_string_equal(sha256, HELLO);
}

/* More executables than there are entries: the file stays as it is, the newest are known. */
static void test_many(void **state)
{
	struct place *place = *state;
	char sha256[SHA256_HEX_BYTES], name[64];
	struct stat status;
	unsigned known = 0;

	make(place->fixture, "work/last", "x");
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "work/p%u", i);
		make(place->fixture, name, name);
	}
	{
		int CLEANUP_FD last = open_file(place, "p299", O_RDONLY);

		let_it_settle(last);
	}
	for (unsigned i = 0; i < 300; i++) {
		int CLEANUP_FD fd = -1;

		snprintf(name, sizeof(name), "p%u", i);
		fd = open_file(place, name, O_RDONLY);
		assert_null(executable_compute(fd, &place->cache, sha256));
		assert_true(is_known(place, fd, sha256));
	}
	for (unsigned i = 0; i < 300; i++) {
		int CLEANUP_FD fd = -1;

		snprintf(name, sizeof(name), "p%u", i);
		fd = open_file(place, name, O_RDONLY);
		known += is_known(place, fd, sha256);
	}
	assert_true(known > 250);
	assert_int_equal(fstat(place->cache.fd, &status), 0);
	assert_int_equal(status.st_size, EXECUTABLE_ENTRIES * 96);
}

static void test_no_digest(void **state)
{
	struct place *place = *state;
	char sha256[SHA256_HEX_BYTES] = "untouched", path[4096];
	struct executable executable;
	int fd, writer;

	/* a FIFO and a device do not hang */
	snprintf(path, sizeof(path), "%s/fifo", place->fixture->work);
	assert_int_equal(mkfifo(path, 0700), 0);
	fd = open(path, O_PATH | O_CLOEXEC);
	assert_string_equal(executable_compute(fd, &place->cache, sha256), "it is no regular file");
	close(fd);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_string_equal(executable_compute(fd, &place->cache, sha256), "it is no regular file");
	close(fd);
	/* a sparse giant */
	make(place->fixture, "work/giant", "x");
	writer = open_file(place, "giant", O_RDWR);
	assert_int_equal(ftruncate(writer, (off_t)EXECUTABLE_LIMIT_BYTES + 1), 0);
	assert_string_equal(executable_compute(writer, &place->cache, sha256), "it is too large");
	/* one that grows, shrinks or is written to while it is read, in steps */
	for (int how = 0; how < 3; how++) {
		unsigned steps = 0;

		assert_int_equal(ftruncate(writer, 1024 * 1024), 0);
		executable_begin(writer, &executable);
		assert_true(executable_step(&executable, 65536, &place->cache, sha256));
		if (how == 2)
			assert_int_equal(pwrite(writer, "y", 1, 0), 1);
		else
			assert_int_equal(ftruncate(writer, how ? 1024 : 1024 * 1024 * 1024), 0);
		while (executable_step(&executable, 65536, &place->cache, sha256))
			assert_true(++steps < 20);
		assert_string_equal(executable.unhashed, "it changed while it was read");
		executable_end(&executable);
	}
	close(writer);
	if (geteuid() != 0) {
		make(place->fixture, "work/unreadable", "x");
		snprintf(path, sizeof(path), "%s/unreadable", place->fixture->work);
		assert_int_equal(chmod(path, 0111), 0);
		fd = open(path, O_PATH | O_CLOEXEC);
		assert_string_equal(executable_compute(fd, &place->cache, sha256),
				    "it cannot be read");
		close(fd);
	}
	assert_string_equal(executable_compute(-1, &place->cache, sha256),
			    "it could not be opened");
	assert_string_equal(sha256, "untouched");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_remembered),
		TEST(test_damaged_cache),
		TEST(test_many),
		TEST(test_no_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
