#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "home.h"

#include "base/copy.h"
#include "base/fd.h"

/* As if everything had been there for long. */
#define LATER (time(NULL) + 3600)

struct place {
	struct fixture fixture;
	int from_fd, to_fd;
};

static int make_place(void **state)
{
	static struct place place;
	char name[4096];

	place = (struct place){ .from_fd = -1, .to_fd = -1 };
	(void)snprintf(place.fixture.root, sizeof(place.fixture.root), "/tmp/bawn-copy.XXXXXX");
	if (!mkdtemp(place.fixture.root))
		return -1;
	(void)umask(022);
	make(&place.fixture, "from/file", "text");
	make(&place.fixture, "from/tree/one", "1");
	make(&place.fixture, "from/tree/sub/two", "22");
	make(&place.fixture, "to", NULL);
	(void)snprintf(name, sizeof(name), "%s/from", place.fixture.root);
	place.from_fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "%s/to", place.fixture.root);
	place.to_fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (symlinkat("one", place.from_fd, "tree/link") < 0)
		return -1;
	*state = &place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	char command[128];

	fd_close(&place->from_fd);
	fd_close(&place->to_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", place->fixture.root);
	return system(command);
}

static int look_then(struct place *place, const char *name, int64_t now_s, uint64_t *ret_state)
{
	struct stat status;

	assert_int_equal(fstatat(place->from_fd, name, &status, AT_SYMLINK_NOFOLLOW), 0);
	return copy_look(place->from_fd, name, &status, now_s, ret_state);
}

static uint64_t look(struct place *place, const char *name)
{
	uint64_t state = 0;

	assert_int_equal(look_then(place, name, LATER, &state), 0);
	assert_true(state != 0);
	return state;
}

static void refuse(struct place *place, const char *name)
{
	uint64_t state = 7;

	assert_int_equal(look_then(place, name, LATER, &state), -EINVAL);
	assert_true(state == 7);
}

static int copy(struct place *place, const char *name, uint64_t state, const char *target)
{
	char source[4096];

	(void)snprintf(source, sizeof(source), "%s/from/%s", place->fixture.root, name);
	return copy_make(source, state, place->to_fd, target);
}

static void holds(struct place *place, const char *name, const char *expected)
{
	char text[64] = "";
	int CLEANUP_FD fd = openat(place->to_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, expected);
}

static void write_text(struct place *place, const char *name, const char *text)
{
	int CLEANUP_FD fd =
		openat(place->from_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void copies(void **state)
{
	struct place *place = *state;
	struct stat from, to;
	char text[16] = "";

	assert_int_equal(fchmodat(place->from_fd, "file", 06755, 0), 0);
	assert_int_equal(fchmodat(place->from_fd, "tree/sub", 0555, 0), 0);
	assert_int_equal(copy(place, "file", look(place, "file"), "a"), 0);
	holds(place, "a", "text");
	assert_int_equal(fstatat(place->from_fd, "file", &from, 0), 0);
	assert_int_equal(fstatat(place->to_fd, "a", &to, 0), 0);
	assert_int_equal(to.st_mode, S_IFREG | 0755);
	assert_int_equal(to.st_mtim.tv_sec, from.st_mtim.tv_sec);
	assert_int_equal(to.st_mtim.tv_nsec, from.st_mtim.tv_nsec);

	assert_int_equal(copy(place, "tree", look(place, "tree"), "t"), 0);
	holds(place, "t/one", "1");
	holds(place, "t/sub/two", "22");
	assert_int_equal(readlinkat(place->to_fd, "t/link", text, sizeof(text)), 3);
	assert_string_equal(text, "one");
	assert_int_equal(fstatat(place->to_fd, "t/sub", &to, 0), 0);
	assert_int_equal(to.st_mode, S_IFDIR | 0755);
	assert_int_equal(fstatat(place->from_fd, "tree", &from, 0), 0);
	assert_int_equal(fstatat(place->to_fd, "t", &to, 0), 0);
	assert_int_equal(to.st_mtim.tv_nsec, from.st_mtim.tv_nsec);
	/* nothing is copied over what is there */
	assert_int_equal(copy(place, "file", look(place, "file"), "a"), -EEXIST);
	assert_int_equal(fchmodat(place->from_fd, "tree/sub", 0755, 0), 0);
}

/* Whatever changes, the state is another one, and a copy by the old one fails. */
static void every_change_counts(void **state)
{
	struct place *place = *state;
	uint64_t before = look(place, "tree");
	struct timespec old[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };

#define CHANGED(action)                                                         \
	do {                                                                    \
		uint64_t after;                                                 \
		assert_int_equal(action, 0);                                    \
		after = look(place, "tree");                                    \
		assert_true(after != before);                                   \
		assert_int_equal(copy(place, "tree", before, "none"), -ESTALE); \
		before = after;                                                 \
	} while (0)
	CHANGED((write_text(place, "tree/sub/two", "33"), 0));
	CHANGED(utimensat(place->from_fd, "tree/one", old, 0));
	CHANGED(fchmodat(place->from_fd, "tree/one", 0744, 0));
	CHANGED(renameat(place->from_fd, "tree/one", place->from_fd, "tree/uno"));
	CHANGED((write_text(place, "new", "1"), 0) |
		renameat(place->from_fd, "new", place->from_fd, "tree/uno"));
	CHANGED(mkdirat(place->from_fd, "tree/empty", 0755));
	CHANGED(unlinkat(place->from_fd, "tree/link", 0));
#undef CHANGED
	/* nor may anything be left of an attempt that was refused before its first step */
	assert_int_equal(faccessat(place->to_fd, "none", F_OK, 0), -1);
}

static void another_object(void **state)
{
	struct place *place = *state;
	uint64_t before = look(place, "file");

	assert_int_equal(unlinkat(place->from_fd, "file", 0), 0);
	assert_int_equal(copy(place, "file", before, "none"), -ESTALE);
	assert_int_equal(symlinkat("tree/one", place->from_fd, "file"), 0);
	assert_int_equal(copy(place, "file", before, "none"), -ESTALE);
	assert_int_equal(unlinkat(place->from_fd, "file", 0), 0);
	assert_int_equal(mkfifoat(place->from_fd, "file", 0644), 0);
	assert_int_equal(copy(place, "file", before, "none"), -ESTALE);
	assert_int_equal(faccessat(place->to_fd, "none", F_OK, 0), -1);
}

static void refused(void **state)
{
	struct place *place = *state;
	char name[32];

	refuse(place, "tree/link");
	assert_int_equal(fchmodat(place->from_fd, "file", 0640, 0), 0);
	refuse(place, "file");
	assert_int_equal(fchmodat(place->from_fd, "tree/sub", 0711, 0), 0);
	refuse(place, "tree");
	assert_int_equal(fchmodat(place->from_fd, "tree/sub", 0755, 0), 0);
	(void)look(place, "tree");
	assert_int_equal(mkfifoat(place->from_fd, "tree/fifo", 0644), 0);
	refuse(place, "tree");
	assert_int_equal(unlinkat(place->from_fd, "tree/fifo", 0), 0);
	assert_int_equal(mkdirat(place->from_fd, "tree/sub/deep", 0755), 0);
	refuse(place, "tree");
	assert_int_equal(unlinkat(place->from_fd, "tree/sub/deep", AT_REMOVEDIR), 0);
	/* with one, sub, sub/two and link there are four */
	for (int i = 4; i < COPY_LIMIT_OBJECTS; i++) {
		(void)snprintf(name, sizeof(name), "tree/%d", i);
		write_text(place, name, "");
		(void)look(place, "tree");
	}
	write_text(place, "tree/sub/more", "");
	refuse(place, "tree");
}

static void sizes(void **state)
{
	struct place *place = *state;

	write_text(place, "big", "");
	assert_int_equal(fchmodat(place->from_fd, "big", 0644, 0), 0);
	for (int i = 0; i < 2; i++) {
		int CLEANUP_FD big = openat(place->from_fd, "big", O_WRONLY | O_CLOEXEC);
		int CLEANUP_FD two = openat(place->from_fd, "tree/sub/two", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(big, COPY_LIMIT_FILE_BYTES + i), 0);
		/* with the one byte of tree/one */
		assert_int_equal(ftruncate(two, COPY_LIMIT_TREE_BYTES - 1 + i), 0);
		if (i) {
			refuse(place, "big");
			refuse(place, "tree");
		} else {
			struct stat copied;

			assert_int_equal(copy(place, "big", look(place, "big"), "big"), 0);
			assert_int_equal(fstatat(place->to_fd, "big", &copied, 0), 0);
			assert_int_equal(copied.st_size, COPY_LIMIT_FILE_BYTES);
			(void)look(place, "tree");
		}
	}
}

/* What changes again within a tick of the clock would keep its state: not before it is settled. */
static void settled(void **state)
{
	struct place *place = *state;
	uint64_t result = 7;
	struct stat status;

	write_text(place, "tree/sub/two", "44");
	assert_int_equal(fstatat(place->from_fd, "tree/sub/two", &status, 0), 0);
	for (int64_t age = -10; age <= COPY_SETTLED_SECONDS; age++)
		assert_int_equal(look_then(place, "tree", status.st_ctim.tv_sec + age, &result),
				 -EINVAL);
	assert_true(result == 7);
	assert_int_equal(
		look_then(place, "tree", status.st_ctim.tv_sec + COPY_SETTLED_SECONDS + 1, &result),
		0);
	assert_true(result == look(place, "tree"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies, make_place, remove_place),
		cmocka_unit_test_setup_teardown(every_change_counts, make_place, remove_place),
		cmocka_unit_test_setup_teardown(another_object, make_place, remove_place),
		cmocka_unit_test_setup_teardown(refused, make_place, remove_place),
		cmocka_unit_test_setup_teardown(sizes, make_place, remove_place),
		cmocka_unit_test_setup_teardown(settled, make_place, remove_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
