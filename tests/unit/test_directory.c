#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/directory.h"

#define NAMES 300

static char place[] = "/tmp/bawn-directory.XXXXXX";

static int make_place(void **state)
{
	char name[64];

	(void)state;
	if (!mkdtemp(place))
		return -1;
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "%s/name-%03d", place, i);
		if (i % 2 ? mkdir(name, 0700) < 0 : close(creat(name, 0600)) < 0)
			return -1;
	}
	return 0;
}

static int remove_place(void **state)
{
	char name[64];

	(void)state;
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "%s/name-%03d", place, i);
		(void)(i % 2 ? rmdir(name) : unlink(name));
	}
	return rmdir(place);
}

/* More names than one read gives, each once, with its type, and again from the start. */
static void every_name_once(void **state)
{
	struct directory CLEANUP_DIRECTORY directory;

	(void)state;
	assert_int_equal(directory_open(&directory, AT_FDCWD, place, O_NOFOLLOW), 0);
	for (int round = 0; round < 2; round++) {
		int seen[NAMES] = { 0 }, count = 0;
		const char *name;

		while ((name = directory_next(&directory))) {
			int number = atoi(name + sizeof("name-") - 1);

			assert_in_range(number, 0, NAMES - 1);
			assert_int_equal(directory.type, number % 2 ? DT_DIR : DT_REG);
			assert_int_equal(seen[number]++, 0);
			count++;
		}
		assert_int_equal(directory.code, 0);
		assert_int_equal(count, NAMES);
		directory_rewind(&directory);
	}
}

/* Every place is one to go on from, in a directory that was opened anew. */
static void goes_on_from_an_offset(void **state)
{
	int seen[NAMES] = { 0 };
	int64_t offset = 0;

	(void)state;
	for (int i = 0; i < NAMES; i++) {
		struct directory CLEANUP_DIRECTORY directory;
		const char *name;
		int number;

		assert_int_equal(directory_open(&directory, AT_FDCWD, place, O_NOFOLLOW), 0);
		directory_seek(&directory, offset);
		name = directory_next(&directory);
		assert_non_null(name);
		number = atoi(name + sizeof("name-") - 1);
		assert_in_range(number, 0, NAMES - 1);
		assert_int_equal(seen[number]++, 0);
		offset = directory.offset;
		if (i + 1 == NAMES)
			assert_null(directory_next(&directory));
	}
}

static void what_cannot_be_read_has_no_names(void **state)
{
	struct directory missing, file;
	char name[64];

	(void)state;
	(void)snprintf(name, sizeof(name), "%s/name-000", place);
	assert_int_equal(directory_open(&missing, AT_FDCWD, "/nonexistent", 0), -ENOENT);
	assert_null(directory_next(&missing));
	directory_end(&missing);
	assert_int_equal(directory_open(&file, AT_FDCWD, name, 0), -ENOTDIR);
	directory_end(&file);
	/* an open file that is none: the read says so */
	directory_begin(&file, open(name, O_RDONLY | O_CLOEXEC));
	assert_null(directory_next(&file));
	assert_int_equal(file.code, -ENOTDIR);
	directory_end(&file);
	assert_int_equal(file.fd, -1);
}

/* Deeper than descriptors or the stack go, not to be entered, with links out of it. */
static void make_hostile(const char *top)
{
	char name[64];
	int fd;

	assert_int_equal(mkdir(top, 0700), 0);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 0; depth < 600; depth++) {
		int next;

		(void)snprintf(name, sizeof(name), depth % 7 ? "down" : "lifted-%d", depth);
		assert_int_equal(mkdirat(fd, name, 0700), 0);
		assert_int_equal(mkdirat(fd, "beside", 0000), 0);
		assert_int_equal(symlinkat(place, fd, "link"), 0);
		assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		assert_int_equal(fchmod(fd, depth % 3 ? 0000 : 0500), 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void hostile_trees_go(void **state)
{
	char top[64];
	struct stat status;
	int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	(void)snprintf(top, sizeof(top), "%s/hostile", place);
	make_hostile(top);
	directory_remove_content(fd, "hostile");
	assert_int_equal(rmdir(top), 0);
	make_hostile(top);
	directory_remove_tree(fd, "hostile");
	assert_int_equal(lstat(top, &status), -1);
	/* where the links led nothing is lost */
	(void)snprintf(top, sizeof(top), "%s/name-000", place);
	assert_int_equal(lstat(top, &status), 0);
	directory_remove_tree(fd, "hostile");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_once),
		cmocka_unit_test(goes_on_from_an_offset),
		cmocka_unit_test(what_cannot_be_read_has_no_names),
		cmocka_unit_test(hostile_trees_go),
	};

	return cmocka_run_group_tests_name("directory", tests, make_place, remove_place);
}
