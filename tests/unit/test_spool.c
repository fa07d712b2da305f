#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sched.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/fd.h"
#include "broker/spool.h"

static const uint64_t none_dropped[SPOOL_STREAM_COUNT];

static int task_fd = -1;
static char task_path[] = "/tmp/bawn-spool-XXXXXX";

static int make_task(void **state)
{
	(void)state;
	strcpy(task_path + sizeof(task_path) - 7, "XXXXXX");
	if (!mkdtemp(task_path))
		return -1;
	task_fd = open(task_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return task_fd < 0 ? -1 : 0;
}

static int remove_task(void **state)
{
	static const char *const names[] = { "a/out", "a/err", "a/index" };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		(void)unlinkat(task_fd, names[i], 0);
	(void)unlinkat(task_fd, "a", AT_REMOVEDIR);
	(void)unlinkat(task_fd, "a", 0);
	fd_close(&task_fd);
	return rmdir(task_path);
}

static struct spool begin(void)
{
	struct error error = ERROR_NONE;
	struct spool spool;

	if (spool_begin(task_fd, "a", &spool, &error) < 0)
		fail_msg("%s", error.message);
	return spool;
}

static void add(struct spool *spool, enum spool_stream stream, const char *text)
{
	assert_int_equal(spool_append(spool, stream, text, strlen(text)), 0);
}

static struct spool_reader reader_of(void)
{
	struct error error = ERROR_NONE;
	struct spool_reader reader;

	if (spool_open_read(task_fd, "a", &reader, &error) < 0)
		fail_msg("%s", error.message);
	return reader;
}

/* What the index tells: "o:abc" for timed bytes, "o?abc" for others, "o!" a cut, "o.0" the end. */
static void expect_rest(struct spool_reader *reader, const char *wanted)
{
	char text[1024], bytes[256];
	struct spool_chunk chunk;
	size_t used = 0;
	int result;

	text[0] = '\0';
	while ((result = spool_next(reader, &chunk)) == 1) {
		char stream = chunk.stream == SPOOL_OUT ? 'o' : 'e';
		ssize_t count = spool_read(reader, &chunk, 0, bytes, sizeof(bytes));

		assert_true(count >= 0 && used + (size_t)count + 32 < sizeof(text));
		if (chunk.kind == SPOOL_CUT)
			used += (size_t)sprintf(text + used, "%c! ", stream);
		else if (chunk.kind == SPOOL_END)
			used += (size_t)sprintf(text + used, "%c.%d ", stream, (int)chunk.length);
		else
			used += (size_t)sprintf(text + used, "%c%c%.*s ", stream,
						chunk.timed ? ':' : '?', (int)count, bytes);
	}
	assert_int_equal(result, 0);
	assert_string_equal(text, wanted);
}

static off_t size_of(const char *name)
{
	struct stat status;

	assert_int_equal(fstatat(task_fd, name, &status, AT_SYMLINK_NOFOLLOW), 0);
	return status.st_size;
}

static void interleaving_is_kept(void **state)
{
	struct spool spool = begin();
	struct spool_reader reader = reader_of();
	struct error error = ERROR_NONE;

	(void)state;
	expect_rest(&reader, "");
	add(&spool, SPOOL_OUT, "one");
	add(&spool, SPOOL_ERR, "two");
	add(&spool, SPOOL_OUT, "three");
	add(&spool, SPOOL_OUT, "");
	spool_settle(&spool);
	expect_rest(&reader, "o:one e:two o:three ");
	assert_false(spool_is_over(&reader));
	assert_int_equal(spool_end(&spool, none_dropped, &error), 0);
	expect_rest(&reader, "o.0 e.0 ");
	assert_true(spool_is_over(&reader));
	spool_reader_close(&reader);
	assert_int_equal(size_of("a/out"), 8);
	assert_int_equal(size_of("a/index"), SPOOL_HEAD_BYTES + 5 * SPOOL_RECORD_BYTES);
}

static void files_are_private(void **state)
{
	struct spool spool = begin();
	struct stat status;

	(void)state;
	assert_int_equal(fstatat(task_fd, "a/index", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	assert_int_equal(fstatat(task_fd, "a", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_mode, S_IFDIR | 0700);
	spool_close(&spool);
}

static void nothing_existing_is_used(void **state)
{
	static const char *const ids[] = { "", ".", "..", "../a", "a/b", "/tmp", "a b", ".a" };
	struct error error = ERROR_NONE;
	struct spool spool;

	(void)state;
	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_int_equal(spool_begin(task_fd, ids[i], &spool, &error), -EINVAL);
	assert_int_equal(symlinkat("/tmp", task_fd, "a"), 0);
	assert_int_equal(spool_begin(task_fd, "a", &spool, &error), -EEXIST);
	assert_non_null(strstr(error.message, "spool a"));
	assert_true(spool_open_read(task_fd, "a", &(struct spool_reader){ 0 }, &error) < 0);
	assert_int_equal(unlinkat(task_fd, "a", 0), 0);
	assert_int_equal(mkdirat(task_fd, "a", 0700), 0);
	assert_int_equal(spool_begin(task_fd, "a", &spool, &error), -EEXIST);
	assert_int_equal(unlinkat(task_fd, "a", AT_REMOVEDIR), 0);
}

/* A reader must not hang on what lies there instead. */
static void a_fifo_is_no_spool(void **state)
{
	struct spool spool = begin();
	struct error error = ERROR_NONE;
	struct spool_reader reader;

	(void)state;
	spool_close(&spool);
	assert_int_equal(unlinkat(task_fd, "a/out", 0), 0);
	assert_int_equal(mkfifoat(task_fd, "a/out", 0600), 0);
	assert_int_equal(spool_open_read(task_fd, "a", &reader, &error), -EPROTO);
	assert_int_equal(unlinkat(task_fd, "a/out", 0), 0);
	assert_int_equal(symlinkat("index", task_fd, "a/out"), 0);
	assert_int_equal(spool_open_read(task_fd, "a", &reader, &error), -ELOOP);
}

static void many_small_chunks_make_a_small_index(void **state)
{
	struct spool spool = begin();
	char block[2048];
	uint64_t data;

	(void)state;
	memset(block, 'x', sizeof(block));
	/* single bytes, changing streams each time: the worst there is */
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(spool_append(&spool, i & 1, "x", 1), 0);
	assert_true((uint64_t)size_of("a/index") <= SPOOL_FREE_BYTES + 4096);
	assert_true(size_of("a/index") > (off_t)SPOOL_FREE_BYTES / 2);
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(spool_append(&spool, i & 1, block, sizeof(block)), 0);
	data = spool.bytes[0] + spool.bytes[1];
	assert_int_equal(data, 20000 + 10000 * sizeof(block));
	assert_true((uint64_t)size_of("a/index") <= SPOOL_FREE_BYTES + 4096 + data / 100);
	spool_close(&spool);
}

static void unrecorded_bytes_come_without_a_time(void **state)
{
	struct spool spool = begin();
	struct spool_reader reader;
	struct error error = ERROR_NONE;

	(void)state;
	add(&spool, SPOOL_OUT, "a");
	spool_settle(&spool);
	add(&spool, SPOOL_OUT, "b");
	add(&spool, SPOOL_OUT, "c");
	/* within a millisecond of the first record, unless the machine stalls: then it is timed */
	if (spool.merged[SPOOL_OUT].length != 2) {
		spool_close(&spool);
		skip();
	}
	reader = reader_of();
	expect_rest(&reader, "o:a o?bc ");
	add(&spool, SPOOL_OUT, "d");
	assert_int_equal(spool_end(&spool, none_dropped, &error), 0);
	expect_rest(&reader, "o:d o.0 e.0 ");
	spool_reader_close(&reader);
	reader = reader_of();
	expect_rest(&reader, "o:a o:bcd o.0 e.0 ");
	spool_reader_close(&reader);
}

static void a_torn_record_is_no_record(void **state)
{
	struct spool spool = begin();
	struct spool_reader reader;
	int CLEANUP_FD file = -1;

	(void)state;
	add(&spool, SPOOL_OUT, "one");
	add(&spool, SPOOL_ERR, "two");
	spool_settle(&spool);
	spool_close(&spool);
	file = openat(task_fd, "a/index", O_WRONLY | O_CLOEXEC);
	for (off_t lost = 1; lost < SPOOL_RECORD_BYTES; lost++) {
		assert_int_equal(ftruncate(file, SPOOL_HEAD_BYTES + 2 * SPOOL_RECORD_BYTES - lost),
				 0);
		reader = reader_of();
		expect_rest(&reader, "o:one e?two ");
		spool_reader_close(&reader);
	}
	/* a hole, as a power cut leaves it */
	assert_int_equal(ftruncate(file, SPOOL_HEAD_BYTES + SPOOL_RECORD_BYTES), 0);
	assert_int_equal(ftruncate(file, SPOOL_HEAD_BYTES + 8 * SPOOL_RECORD_BYTES), 0);
	reader = reader_of();
	expect_rest(&reader, "o:one e?two ");
	spool_reader_close(&reader);
	/* without a whole head there is no index yet */
	assert_int_equal(ftruncate(file, SPOOL_HEAD_BYTES - 1), 0);
	assert_int_equal(spool_open_read(task_fd, "a", &reader, &(struct error){ 0 }), -ENOENT);
}

static void a_shorter_file_gives_what_it_has(void **state)
{
	struct spool spool = begin();
	struct spool_reader reader;

	(void)state;
	add(&spool, SPOOL_OUT, "one");
	add(&spool, SPOOL_ERR, "two");
	spool_settle(&spool);
	assert_int_equal(ftruncate(spool.files[SPOOL_OUT], 2), 0);
	spool_close(&spool);
	reader = reader_of();
	expect_rest(&reader, "o:on e:two ");
	spool_reader_close(&reader);
}

static void a_false_index_is_refused(void **state)
{
	static const unsigned char records[][SPOOL_RECORD_BYTES] = {
		{ [8] = 1, [15] = 0x42 }, /* no such kind... */
		{ [8] = 1, [15] = 0x12 }, /* no such stream */
		{ [8] = 1, [15] = 0xf0 },
	};
	struct spool spool = begin();
	struct spool_reader reader;
	struct spool_chunk chunk;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			pwrite(spool.index, records[i], SPOOL_RECORD_BYTES, SPOOL_HEAD_BYTES),
			SPOOL_RECORD_BYTES);
		reader = reader_of();
		assert_int_equal(spool_next(&reader, &chunk), -EPROTO);
		assert_int_equal(spool_next(&reader, &chunk), -EPROTO);
		spool_reader_close(&reader);
	}
	assert_int_equal(pwrite(spool.index, "BAWNSPL\2", 8, 0), 8);
	assert_int_equal(spool_open_read(task_fd, "a", &reader, &(struct error){ 0 }), -EPROTO);
	spool_close(&spool);
}

static void lengths_that_overflow_are_refused(void **state)
{
	unsigned char record[SPOOL_RECORD_BYTES] = { 0 };
	struct spool spool = begin();
	struct spool_reader reader;
	struct spool_chunk chunk;
	int result = 0;

	(void)state;
	memset(record + 8, 0xff, 7);
	record[15] = 0x10;
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(pwrite(spool.index, record, sizeof(record),
					SPOOL_HEAD_BYTES + i * SPOOL_RECORD_BYTES),
				 sizeof(record));
	reader = reader_of();
	for (unsigned i = 0; i < 300 && result >= 0; i++)
		result = spool_next(&reader, &chunk);
	assert_int_equal(result, -EPROTO);
	spool_reader_close(&reader);
	spool_close(&spool);
}

static void a_cut_is_told(void **state)
{
	const uint64_t dropped[SPOOL_STREAM_COUNT] = { [SPOOL_ERR] = 42 };
	struct spool spool = begin();
	struct spool_reader reader;
	struct error error = ERROR_NONE;

	(void)state;
	add(&spool, SPOOL_ERR, "abc");
	spool_cut(&spool, SPOOL_ERR);
	spool_cut(&spool, SPOOL_ERR);
	assert_int_equal(spool_end(&spool, dropped, &error), 0);
	reader = reader_of();
	expect_rest(&reader, "e:abc e! o.0 e.42 ");
	spool_reader_close(&reader);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = RLIM_INFINITY };

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file that takes a part of a chunk keeps nothing of it, and the chunk can be tried again. */
static void what_does_not_fit_is_tried_again(void **state)
{
	struct spool spool = begin();
	struct error error = ERROR_NONE;
	char block[3000];

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	memset(block, 'x', sizeof(block));
	assert_int_equal(spool_append(&spool, SPOOL_OUT, block, sizeof(block)), 0);
	limit_files(5000);
	assert_int_equal(spool_append(&spool, SPOOL_OUT, block, sizeof(block)), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_int_equal(size_of("a/out"), 3000);
	assert_int_equal(spool.bytes[SPOOL_OUT], 3000);
	assert_int_equal(spool_append(&spool, SPOOL_OUT, "rest", 4), 0);
	assert_int_equal(size_of("a/out"), 3004);
	assert_int_equal(spool_end(&spool, none_dropped, &error), 0);
}

static void an_index_that_is_full_loses_times_only(void **state)
{
	struct spool spool = begin();
	struct spool_reader reader;
	struct error error = ERROR_NONE;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	limit_files(SPOOL_HEAD_BYTES + SPOOL_RECORD_BYTES / 2);
	add(&spool, SPOOL_OUT, "abc");
	add(&spool, SPOOL_ERR, "d");
	spool_cut(&spool, SPOOL_ERR);
	reader = reader_of();
	expect_rest(&reader, "o?abc e?d ");
	spool_reader_close(&reader);
	limit_files(RLIM_INFINITY);
	/* room again: the records come late, but they come */
	assert_int_equal(spool_end(&spool, none_dropped, &error), 0);
	reader = reader_of();
	expect_rest(&reader, "o:abc e:d e! o.0 e.0 ");
	spool_reader_close(&reader);
}

static void an_index_that_stays_full_is_told(void **state)
{
	struct spool spool = begin();
	struct error error = ERROR_NONE;
	int result;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	limit_files(SPOOL_HEAD_BYTES);
	add(&spool, SPOOL_OUT, "abc");
	result = spool_end(&spool, none_dropped, &error);
	limit_files(RLIM_INFINITY);
	assert_int_equal(result, -EFBIG);
	assert_non_null(strstr(error.message, "output itself is whole"));
	assert_int_equal(size_of("a/out"), 3);
}

static int write_file(const char *path, const char *text)
{
	int CLEANUP_FD file = open(path, O_WRONLY | O_CLOEXEC);

	return file < 0 ? -1 : fd_write_all(file, text, strlen(text));
}

/* A mount namespace of its own; whoever is not root needs a user namespace for it. */
static int enter_namespaces(void)
{
	char users[32], groups[32];

	if (!geteuid())
		return unshare(CLONE_NEWNS);
	(void)snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
	(void)snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    write_file("/proc/self/setgroups", "deny") < 0 ||
	    write_file("/proc/self/uid_map", users) < 0)
		return -1;
	return write_file("/proc/self/gid_map", groups);
}

/* In a child: a tmpfs of 64 KiB of its own. 0: as it should be; 77: cannot be tried here. */
static int fill_a_disk(void)
{
	char block[8192] = { 0 };
	struct error error = ERROR_NONE;
	struct spool spool;
	uint64_t kept = 0;
	int directory, result = 0;

	if (enter_namespaces() < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, "size=64k") < 0)
		return 77;
	directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || spool_begin(directory, "a", &spool, &error) < 0)
		return 1;
	for (unsigned i = 0; i < 16 && result == 0; i++) {
		result = spool_append(&spool, SPOOL_OUT, block, sizeof(block));
		kept += result == 0 ? sizeof(block) : 0;
	}
	if (result != -ENOSPC || spool.bytes[SPOOL_OUT] != kept || kept < 32768)
		return 2;
	/* somebody makes room */
	if (ftruncate(spool.files[SPOOL_ERR], 0) < 0 || ftruncate(spool.files[SPOOL_OUT], 0) < 0)
		return 3;
	if (spool_append(&spool, SPOOL_OUT, block, sizeof(block)) < 0)
		return 4;
	/* no room for a new one: nothing of it stays */
	while (write(spool.files[SPOOL_ERR], block, sizeof(block)) > 0)
		;
	if (spool_begin(directory, "b", &spool, &error) != -ENOSPC)
		return 5;
	if (faccessat(directory, "b", F_OK, 0) == 0 || !strstr(error.message, "index"))
		return 6;
	return 0;
}

static void a_full_disk_is_told(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		_exit(fill_a_disk());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_task, remove_task)
	const struct CMUnitTest tests[] = {
		CASE(interleaving_is_kept),
		CASE(files_are_private),
		CASE(nothing_existing_is_used),
		CASE(a_fifo_is_no_spool),
		CASE(many_small_chunks_make_a_small_index),
		CASE(unrecorded_bytes_come_without_a_time),
		CASE(a_torn_record_is_no_record),
		CASE(a_shorter_file_gives_what_it_has),
		CASE(a_false_index_is_refused),
		CASE(lengths_that_overflow_are_refused),
		CASE(a_cut_is_told),
		CASE(what_does_not_fit_is_tried_again),
		CASE(an_index_that_is_full_loses_times_only),
		CASE(an_index_that_stays_full_is_told),
		CASE(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
