#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/fd.h"
#include "broker/pump.h"

/* Longer than every pipe, no multiple of anything. */
#define STREAM_BYTES (3 * 1024 * 1024 + 12347)

static const uint64_t none_dropped[SPOOL_STREAM_COUNT];

static char directory_path[] = "/tmp/bawn-pump-XXXXXX";
static int directory = -1;

static int make_directory(void **state)
{
	(void)state;
	/* what blocks is a failure: no test takes long */
	(void)alarm(60);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	strcpy(directory_path + sizeof(directory_path) - 7, "XXXXXX");
	if (!mkdtemp(directory_path))
		return -1;
	directory = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -1 : 0;
}

static int remove_directory(void **state)
{
	static const char *const names[] = { "a/out", "a/err", "a/index", "file" };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		(void)unlinkat(directory, names[i], 0);
	(void)unlinkat(directory, "a", AT_REMOVEDIR);
	fd_close(&directory);
	return rmdir(directory_path);
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)((i * 2654435761u) >> 13);
}

static void unblock(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void make_pipe(int pair[static 2])
{
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
}

/* A child that writes the stream in pieces of `piece` bytes into the pipe, whose end it gets. */
static pid_t start_writer(int pair[static 2], size_t length, size_t piece)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		char *block = malloc(piece);

		(void)close(pair[0]);
		(void)signal(SIGPIPE, SIG_DFL);
		for (size_t at = 0; at < length && block;) {
			size_t part = piece < length - at ? piece : length - at;

			for (size_t i = 0; i < part; i++)
				block[i] = (char)byte_at(at + i);
			if (fd_write_all(pair[1], block, part) < 0)
				_exit(1);
			at += part;
		}
		_exit(0);
	}
	fd_close(&pair[1]);
	return child;
}

static void stop_writer(pid_t child)
{
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static struct pump begin(int *from, int to)
{
	struct pump pump;

	unblock(*from);
	assert_int_equal(pump_begin(&pump, TAKE_FD(*from), to), 0);
	return pump;
}

static void step(struct pump *pump, int timeout_ms)
{
	struct pollfd entry;

	if (!pump_poll(pump, &entry))
		return;
	if (poll(&entry, 1, timeout_ms) > 0)
		pump_step(pump, &entry);
}

/* Steps until nothing is ready. */
static void settle(struct pump *pump)
{
	struct pollfd entry;

	while (pump_poll(pump, &entry) && poll(&entry, 1, 0) > 0)
		pump_step(pump, &entry);
}

static size_t read_some(int fd, char *bytes, size_t used, size_t room)
{
	ssize_t count = read(fd, bytes + used, room - used);

	return count > 0 ? used + (size_t)count : used;
}

/* Pumps to the end, reading on the other side where there is one. Returns the bytes read. */
static size_t pump_all(struct pump *pump, int reader, char *bytes, size_t room)
{
	size_t used = 0, before;

	while (!pump_done(pump)) {
		step(pump, 10);
		if (reader >= 0)
			used = read_some(reader, bytes, used, room);
	}
	if (reader < 0)
		return 0;
	do {
		before = used;
		used = read_some(reader, bytes, used, room);
	} while (used != before);
	return used;
}

static void expect_stream(const char *bytes, size_t length, size_t wanted)
{
	assert_int_equal(length, wanted);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)bytes[i] != byte_at(i))
			fail_msg("byte %zu differs", i);
}

static void expect_file(const char *name, size_t wanted)
{
	char *bytes = malloc(STREAM_BYTES + 1);
	int CLEANUP_FD fd = openat(directory, name, O_RDONLY | O_CLOEXEC);

	assert_non_null(bytes);
	assert_true(fd >= 0);
	expect_stream(bytes, (size_t)fd_read_all(fd, bytes, STREAM_BYTES + 1), wanted);
	free(bytes);
}

static void expect_tail(const struct pump *pump, size_t length)
{
	assert_int_equal(pump->tail_length, INFER_TAIL_BYTES);
	for (size_t i = 0; i < INFER_TAIL_BYTES; i++)
		assert_int_equal((unsigned char)pump->held->tail[i],
				 byte_at(length - INFER_TAIL_BYTES + i));
	assert_int_equal((unsigned char)pump->last, byte_at(length - 1));
}

enum way { WAY_PIPE, WAY_SOCKET, WAY_FILE, WAY_APPEND };

/* target[0] is to be read, or -1; target[1] is the pump's. */
static void make_target(enum way way, int target[static 2])
{
	target[0] = -1;
	if (way == WAY_PIPE)
		make_pipe(target);
	else if (way == WAY_SOCKET)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, target), 0);
	else
		target[1] = openat(directory, "file",
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC |
					   (way == WAY_APPEND ? O_APPEND : 0),
				   0600);
	assert_true(target[1] >= 0);
	if (target[0] >= 0)
		unblock(target[0]);
}

static void send_stream(enum way way, size_t piece, bool is_spooled)
{
	char *bytes = malloc(STREAM_BYTES + 1);
	struct error error = ERROR_NONE;
	struct spool spool = SPOOL_NONE;
	int source[2], target[2];
	struct pump pump;
	pid_t child;
	size_t length;

	assert_non_null(bytes);
	make_pipe(source);
	make_target(way, target);
	child = start_writer(source, STREAM_BYTES, piece);
	pump = begin(&source[0], target[1]);
	pump.keep_tail = true;
	if (is_spooled) {
		assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
		pump_spool(&pump, &spool, SPOOL_OUT);
	}
	length = pump_all(&pump, target[0], bytes, STREAM_BYTES + 1);
	assert_false(pump.broken);
	if (way == WAY_PIPE || way == WAY_SOCKET)
		expect_stream(bytes, length, STREAM_BYTES);
	else
		expect_file("file", STREAM_BYTES);
	assert_int_equal(pump.bytes, STREAM_BYTES);
	expect_tail(&pump, STREAM_BYTES);
	pump_end(&pump);
	if (is_spooled) {
		assert_int_equal(spool_end(&spool, none_dropped, &error), 0);
		expect_file("a/out", STREAM_BYTES);
		assert_int_equal(unlinkat(directory, "a/out", 0), 0);
		assert_int_equal(unlinkat(directory, "a/err", 0), 0);
		assert_int_equal(unlinkat(directory, "a/index", 0), 0);
		assert_int_equal(unlinkat(directory, "a", AT_REMOVEDIR), 0);
	}
	(void)unlinkat(directory, "file", 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	fd_close(&target[0]);
	fd_close(&target[1]);
	free(bytes);
}

static void every_way_is_exact(void **state)
{
	static const size_t pieces[] = { 777, 65536, 1024 * 1024 };

	(void)state;
	for (enum way way = WAY_PIPE; way <= WAY_APPEND; way++)
		for (unsigned i = 0; i < 3; i++) {
			send_stream(way, pieces[i], false);
			send_stream(way, pieces[i], true);
		}
}

static void fill(int fd)
{
	static const char block[PIPE_BUF];

	unblock(fd);
	while (write(fd, block, sizeof(block)) > 0)
		;
}

/* The fast way is taken where it may be, and only there. */
static void full_pipes_are_spliced(void **state)
{
	struct error error = ERROR_NONE;
	int source[2], target[2], length;
	struct spool spool;
	struct pump pump;

	(void)state;
	assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
	for (unsigned is_spooled = 0; is_spooled < 2; is_spooled++) {
		make_pipe(source);
		make_target(WAY_PIPE, target);
		length = fcntl(target[1], F_GETPIPE_SZ);
		fill(source[1]);
		pump = begin(&source[0], target[1]);
		if (is_spooled)
			pump_spool(&pump, &spool, SPOOL_OUT);
		settle(&pump);
		assert_int_equal(pump.bytes, 65536);
		assert_int_equal(pump.spliced, is_spooled ? 0 : 65536 - INFER_TAIL_BYTES);
		assert_true(fcntl(target[1], F_GETPIPE_SZ) > length);
		while (read(target[0], &(char[4096]){ 0 }, 4096) > 0)
			;
		pump_end(&pump);
		assert_int_equal(fcntl(target[1], F_GETPIPE_SZ), length);
		fd_close(&source[1]);
		fd_close(&target[0]);
		fd_close(&target[1]);
	}
	spool_close(&spool);
}

static void a_slow_reader_does_not_block_us(void **state)
{
	char bytes[65536];
	int source[2], target[2], flags;
	struct pollfd entry;
	struct pump pump;

	(void)state;
	for (enum way way = WAY_PIPE; way <= WAY_SOCKET; way++) {
		make_pipe(source);
		make_target(way, target);
		flags = fcntl(target[1], F_GETFL);
		pump = begin(&source[0], target[1]);
		for (unsigned i = 0; i < 40; i++) {
			fill(source[1]);
			settle(&pump);
		}
		assert_true(pump_poll(&pump, &entry));
		assert_int_equal(entry.events, POLLOUT);
		/* the caller's own descriptor is as it was: its shell would stumble */
		assert_int_equal(fcntl(target[1], F_GETFL), flags);
		assert_int_equal(poll(&entry, 1, 0), 0);
		while (read(target[0], bytes, sizeof(bytes)) > 0)
			;
		assert_int_equal(poll(&entry, 1, 1000), 1);
		pump_end(&pump);
		fd_close(&source[1]);
		fd_close(&target[0]);
		fd_close(&target[1]);
	}
}

static void a_step_is_bounded(void **state)
{
	int source[2], CLEANUP_FD null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct pump pump;
	pid_t child;

	(void)state;
	make_pipe(source);
	child = start_writer(source, SIZE_MAX, 65536);
	pump = begin(&source[0], null);
	while (pump.bytes < 64 * 1024 * 1024) {
		uint64_t before = pump.bytes;

		step(&pump, 100);
		assert_true(pump.bytes - before <= PUMP_STEP_BYTES + 1024 * 1024);
	}
	pump_end(&pump);
	stop_writer(child);
}

static void the_cap_is_exact(enum pump_beyond beyond, uint64_t cap, bool is_spooled)
{
	const uint64_t dropped[SPOOL_STREAM_COUNT] = { STREAM_BYTES - cap };
	char *bytes = malloc(STREAM_BYTES + 1);
	struct error error = ERROR_NONE;
	struct spool spool = SPOOL_NONE;
	int source[2], target[2];
	struct pump pump;
	pid_t child;

	assert_non_null(bytes);
	make_pipe(source);
	make_target(WAY_PIPE, target);
	child = start_writer(source, STREAM_BYTES, 100000);
	pump = begin(&source[0], target[1]);
	pump_cap(&pump, cap, beyond);
	if (is_spooled) {
		assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
		pump_spool(&pump, &spool, SPOOL_OUT);
	}
	expect_stream(bytes, pump_all(&pump, target[0], bytes, STREAM_BYTES + 1), cap);
	assert_int_equal(pump.bytes, cap);
	assert_int_equal((unsigned char)pump.last, byte_at(cap - 1));
	assert_int_equal(pump.capped, cap < STREAM_BYTES);
	assert_int_equal(pump.stopped, cap < STREAM_BYTES && beyond == PUMP_BEYOND_END);
	assert_int_equal(pump.dropped, beyond == PUMP_BEYOND_DROP ? STREAM_BYTES - cap : 0);
	/* the task waits in its write; it does not learn of it by a signal */
	if (pump.stopped && cap < STREAM_BYTES / 2)
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	pump_end(&pump);
	stop_writer(child);
	if (is_spooled) {
		assert_int_equal(spool_end(&spool, dropped, &error), 0);
		expect_file("a/out", cap);
		remove_directory(NULL);
		make_directory(NULL);
	}
	fd_close(&target[0]);
	fd_close(&target[1]);
	free(bytes);
}

static void caps_are_exact(void **state)
{
	static const uint64_t caps[] = {
		1, 65535, 65536, 65537, 1234567, 4096, STREAM_BYTES - 1, STREAM_BYTES
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		the_cap_is_exact(PUMP_BEYOND_END, caps[i], i & 1);
		the_cap_is_exact(PUMP_BEYOND_DROP, caps[i], i & 1);
	}
}

static void failures_are_told_apart(void **state)
{
	int source[2], target[2], CLEANUP_FD full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct pump pump;

	(void)state;
	/* the reader has gone */
	for (enum way way = WAY_PIPE; way <= WAY_SOCKET; way++) {
		make_pipe(source);
		make_target(way, target);
		fd_close(&target[0]);
		pump = begin(&source[0], target[1]);
		assert_int_equal(write(source[1], "x", 1), 1);
		settle(&pump);
		assert_true(pump.broken && pump_done(&pump));
		assert_int_equal(pump.failure, 0);
		assert_true(write(source[1], "x", 1) < 0 && errno == EPIPE);
		pump_end(&pump);
		fd_close(&source[1]);
		fd_close(&target[1]);
	}
	/* the same when it would be spliced */
	make_pipe(source);
	make_target(WAY_PIPE, target);
	fd_close(&target[0]);
	fill(source[1]);
	pump = begin(&source[0], target[1]);
	settle(&pump);
	assert_true(pump.broken && pump_done(&pump));
	assert_int_equal(pump.failure, 0);
	pump_end(&pump);
	fd_close(&source[1]);
	fd_close(&target[1]);
	/* the disk is full */
	make_pipe(source);
	pump = begin(&source[0], full);
	assert_int_equal(write(source[1], "x", 1), 1);
	settle(&pump);
	assert_true(pump.broken);
	assert_int_equal(pump.failure, ENOSPC);
	pump_end(&pump);
	fd_close(&source[1]);
	/* not open for writing */
	make_pipe(source);
	make_pipe(target);
	fill(source[1]);
	pump = begin(&source[0], target[0]);
	settle(&pump);
	assert_true(pump.broken);
	assert_int_equal(pump.failure, EBADF);
	pump_end(&pump);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* What could not be recorded is not shown, and not lost. */
static void a_full_spool_holds_the_chunk(void **state)
{
	struct error error = ERROR_NONE;
	struct spool spool;
	int source[2], target[2];
	char bytes[64];
	struct pollfd entry;
	struct pump pump;

	(void)state;
	make_pipe(source);
	make_target(WAY_PIPE, target);
	assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
	pump = begin(&source[0], target[1]);
	pump_spool(&pump, &spool, SPOOL_ERR);
	assert_int_equal(write(source[1], "12345678", 8), 8);
	limit_files(4);
	settle(&pump);
	assert_int_equal(pump.spool_failure, EFBIG);
	assert_false(pump_poll(&pump, &entry));
	assert_false(pump_done(&pump));
	assert_int_equal(pump_retry(&pump), -EFBIG);
	assert_true(read(target[0], bytes, sizeof(bytes)) < 0 && errno == EAGAIN);
	limit_files(RLIM_INFINITY);
	assert_int_equal(pump_retry(&pump), 0);
	settle(&pump);
	assert_int_equal(read(target[0], bytes, sizeof(bytes)), 8);
	assert_int_equal(pump.bytes, 8);
	assert_int_equal(spool.bytes[SPOOL_ERR], 8);
	/* and without it */
	limit_files(4);
	assert_int_equal(write(source[1], "9", 1), 1);
	settle(&pump);
	pump_forgo_spool(&pump);
	limit_files(RLIM_INFINITY);
	settle(&pump);
	assert_int_equal(read(target[0], bytes, sizeof(bytes)), 1);
	assert_int_equal(spool.bytes[SPOOL_ERR], 8);
	pump_end(&pump);
	spool_close(&spool);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
}

/* The pages of a pipe can be the task's own: what was recorded must be what was shown. */
static void pages_that_change_do_not_forge(void **state)
{
	size_t length = 65536;
	char *page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec piece = { .iov_base = page, .iov_len = length };
	char *bytes = malloc(length), *kept = malloc(length);
	struct error error = ERROR_NONE;
	struct spool spool;
	int source[2], target[2], CLEANUP_FD file = -1;
	struct pump pump;

	(void)state;
	make_pipe(source);
	make_target(WAY_PIPE, target);
	assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
	pump = begin(&source[0], target[1]);
	pump_spool(&pump, &spool, SPOOL_OUT);
	memset(page, 'A', length);
	assert_int_equal(vmsplice(source[1], &piece, 1, 0), length);
	settle(&pump);
	memset(page, 'B', length);
	assert_int_equal(fd_read_all(target[0], bytes, length), length);
	file = openat(directory, "a/out", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_all(file, kept, length), length);
	assert_memory_equal(bytes, kept, length);
	pump_end(&pump);
	spool_close(&spool);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
	assert_int_equal(munmap(page, length), 0);
	free(bytes);
	free(kept);
}

/* Somebody holds the pipe open after the action's end. */
static void a_drained_pump_ends(void **state)
{
	char *bytes = malloc(STREAM_BYTES + 1);
	int source[2], target[2], available;
	struct pump pump;

	(void)state;
	/* what is there, and nothing that comes later */
	make_pipe(source);
	make_target(WAY_PIPE, target);
	pump = begin(&source[0], target[1]);
	assert_int_equal(write(source[1], "now", 3), 3);
	pump_drain(&pump);
	assert_int_equal(write(source[1], "later", 5), 5);
	assert_int_equal(pump_all(&pump, target[0], bytes, STREAM_BYTES), 3);
	assert_memory_equal(bytes, "now", 3);
	pump_end(&pump);
	fd_close(&source[1]);
	/* nothing is there */
	make_pipe(source);
	pump = begin(&source[0], target[1]);
	pump_drain(&pump);
	assert_true(pump_done(&pump));
	pump_end(&pump);
	fd_close(&source[1]);
	/* a pipe of a megabyte and more, spliced, with one who goes on writing */
	make_pipe(source);
	assert_true(fcntl(source[1], F_SETPIPE_SZ, 1024 * 1024) > 0);
	fill(source[1]);
	assert_int_equal(ioctl(source[0], FIONREAD, &available), 0);
	pump = begin(&source[0], target[1]);
	pump_drain(&pump);
	{
		size_t used = 0;

		while (!pump_done(&pump)) {
			step(&pump, 10);
			fill(source[1]);
			used = read_some(target[0], bytes, used, STREAM_BYTES);
		}
		for (ssize_t count = 1; count > 0;) {
			count = read(target[0], bytes, STREAM_BYTES);
			used += count > 0 ? (size_t)count : 0;
		}
		assert_int_equal(used, available);
	}
	pump_end(&pump);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
	free(bytes);
}

/* What was seen in the pipe may be taken by another reader of the task. */
static void a_drained_pump_does_not_wait(void **state)
{
	int source[2], target[2], CLEANUP_FD thief = -1;
	char path[64], bytes[16];
	struct pump pump;

	(void)state;
	make_pipe(source);
	make_target(WAY_PIPE, target);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", source[0]);
	thief = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	pump = begin(&source[0], target[1]);
	assert_int_equal(write(source[1], "now", 3), 3);
	pump_drain(&pump);
	assert_int_equal(read(thief, bytes, sizeof(bytes)), 3);
	settle(&pump);
	assert_true(pump_done(&pump));
	pump_end(&pump);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
}

/* Bytes that wait for a slow reader outlive the end of the action. */
static void draining_keeps_what_waits(void **state)
{
	char bytes[4 * 65536];
	int source[2], target[2];
	size_t used = 0;
	struct pump pump;

	(void)state;
	make_pipe(source);
	make_target(WAY_PIPE, target);
	pump = begin(&source[0], target[1]);
	pump.can_splice = false;
	pump.is_grown = true;
	assert_true(fcntl(target[1], F_SETPIPE_SZ, 4096) > 0);
	fill(source[1]);
	settle(&pump);
	assert_int_equal(pump.bytes, 65536);
	assert_int_equal(pump.spliced, 0);
	pump_drain(&pump);
	assert_false(pump_done(&pump));
	used = pump_all(&pump, target[0], bytes, sizeof(bytes));
	assert_int_equal(used, 65536);
	pump_end(&pump);
	fd_close(&source[1]);
	fd_close(&target[0]);
	fd_close(&target[1]);
}

static void a_terminal_gets_text_only(void **state)
{
	static const char wanted[] = "\\x1b]52;c;eA\\x07\033[31mred\033[0m";
	int CLEANUP_FD master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	struct pollfd shown = { .fd = master, .events = POLLIN };
	char name[64], bytes[256];
	size_t used = 0;
	int source[2], CLEANUP_FD slave = -1;
	struct pump pump;

	(void)state;
	if (master < 0)
		skip();
	assert_int_equal(unlockpt(master), 0);
	assert_int_equal(ptsname_r(master, name, sizeof(name)), 0);
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	make_pipe(source);
	pump = begin(&source[0], slave);
	assert_true(pump.is_terminal);
	assert_int_equal(write(source[1], "\033]52;c;eA\a\033[31mred", 18), 18);
	fd_close(&source[1]);
	settle(&pump);
	assert_true(pump_done(&pump));
	/* the kernel hands it over in pieces */
	while (used < sizeof(wanted) - 1 && poll(&shown, 1, 1000) == 1)
		used = read_some(master, bytes, used, sizeof(bytes));
	assert_int_equal(used, sizeof(wanted) - 1);
	assert_memory_equal(bytes, wanted, sizeof(wanted) - 1);
	pump_end(&pump);
}

/* One that never began leaves the descriptors of others alone. */
static void an_unused_pump_closes_nothing(void **state)
{
	struct pump pump = { .from = -1, .to = -1 };
	int flags = fcntl(0, F_GETFD);

	(void)state;
	assert_true(pump_done(&pump));
	pump_end(&pump);
	pump_end(&pump);
	assert_int_equal(fcntl(0, F_GETFD), flags);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		CASE(every_way_is_exact),
		CASE(full_pipes_are_spliced),
		CASE(a_slow_reader_does_not_block_us),
		CASE(a_step_is_bounded),
		CASE(caps_are_exact),
		CASE(failures_are_told_apart),
		CASE(a_full_spool_holds_the_chunk),
		CASE(pages_that_change_do_not_forge),
		CASE(a_drained_pump_ends),
		CASE(a_drained_pump_does_not_wait),
		CASE(draining_keeps_what_waits),
		CASE(a_terminal_gets_text_only),
		CASE(an_unused_pump_closes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
