#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "home.h"

#include "base/fd.h"
#include "base/walk.h"

#define DEEP 1000
#define BESIDE 25

static int set_up(void **state)
{
	*state = fixture_new();
	return 0;
}

static int tear_down(void **state)
{
	fixture_free(*state);
	return 0;
}

static int open_work(const struct fixture *fixture)
{
	return open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Each name once, in its directory, and each directory left after all below it. */
static void visits_everything_once(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	unsigned names = 0, entered = 0, left = 0, links = 0;

	make(fixture, "work/a/b/one", "");
	make(fixture, "work/a/b/two", "");
	make(fixture, "work/a/c", NULL);
	make(fixture, "work/d", "");
	make_link(fixture, "work/a/link", "/etc");
	walk_begin(&walk, open_work(fixture), 7);
	while ((event = walk_next(&walk)) != WALK_END) {
		entered += event == WALK_ENTER;
		if (event == WALK_LEAVE) {
			left++;
			assert_true((walk.parent_fd < 0) == (walk.depth == 0));
		}
		if (event != WALK_NAME)
			continue;
		names++;
		assert_int_equal(walk.tag, walk.depth ? 9 : 7);
		links += walk.type == DT_LNK;
		if (walk.type == DT_DIR)
			walk_descend(&walk, 9);
		if (strcmp(walk.name, "one") == 0)
			assert_string_equal(walk_path(&walk, walk.name, 100, &fixture->arena),
					    "a/b/one");
	}
	assert_int_equal(walk.code, 0);
	assert_int_equal(names, 7);
	assert_int_equal(links, 1);
	assert_int_equal(entered, 4);
	assert_int_equal(left, 4);
}

static void names_come_again(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	unsigned entered = 0, seen = 0;

	make(fixture, "work/a/b", NULL);
	make(fixture, "work/c", NULL);
	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		entered += event == WALK_ENTER;
		if (event == WALK_NAME && walk.tag == 0)
			walk_descend(&walk, 5);
		if (event == WALK_NAME && walk.tag == 1)
			seen++;
		if (event == WALK_LISTED && walk.depth == 0 && walk.tag == 0)
			walk_again(&walk, 1);
	}
	assert_int_equal(seen, 2);
	assert_int_equal(entered, 1);
}

/* A chain of directories with others beside them: the way back to those is by "..". */
static void make_deep(const struct fixture *fixture, int depth)
{
	int fd = open_work(fixture);

	for (int i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		if (i % BESIDE == 0)
			assert_int_equal(mkdirat(fd, "e", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void remove_all(const struct fixture *fixture)
{
	struct walk CLEANUP_WALK walk;
	enum walk_event event;

	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		if (event == WALK_NAME)
			walk_descend(&walk, 0);
		if (event == WALK_LEAVE && walk.parent_fd >= 0)
			assert_int_equal(unlinkat(walk.parent_fd, walk.name, AT_REMOVEDIR), 0);
	}
	assert_int_equal(walk.code, 0);
}

static void depth_costs_memory_alone(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	unsigned entered = 0, deepest = 0;

	make_deep(fixture, DEEP);
	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		entered += event == WALK_ENTER;
		deepest = walk.depth > deepest ? walk.depth : deepest;
		if (event == WALK_NAME)
			walk_descend(&walk, 0);
	}
	assert_int_equal(walk.code, 0);
	assert_int_equal(entered, DEEP + DEEP / BESIDE + 1);
	assert_int_equal(deepest, DEEP);
	remove_all(fixture);
}

/* Whoever moves a directory away while the walk is below it does not lead the walk elsewhere. */
static void a_moved_directory_ends_it(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	bool is_moved = false;
	char from[4096];

	make_deep(fixture, WALK_KEEP + 10);
	make(fixture, "elsewhere", NULL);
	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		if (event == WALK_NAME && strcmp(walk.name, "d") == 0)
			walk_descend(&walk, 0);
		if (event != WALK_LEAVE || is_moved)
			continue;
		/* the deepest is left first: the third above it goes */
		snprintf(from, sizeof(from), "%s/elsewhere/x", fixture->root);
		assert_int_equal(walk.depth, WALK_KEEP + 10);
		{
			int up = openat(walk.parent_fd, "../..", O_PATH | O_CLOEXEC);

			assert_true(up >= 0);
			assert_int_equal(renameat(up, "d", AT_FDCWD, from), 0);
			close(up);
		}
		is_moved = true;
	}
	assert_int_equal(walk.code, -ESTALE);
}

static void limits_end_it(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;

	for (int i = 0; i < 20; i++)
		make(fixture, (char *)arena_format(&fixture->arena, "work/%d", i), "");
	walk_begin(&walk, open_work(fixture), 0);
	walk.limit_names = 10;
	while (walk_next(&walk) != WALK_END)
		;
	assert_int_equal(walk.code, -E2BIG);
	assert_int_equal(walk_next(&walk), WALK_END);
	walk_end(&walk);
	walk_begin(&walk, -EACCES, 0);
	assert_int_equal(walk_next(&walk), WALK_END);
	assert_int_equal(walk.code, -EACCES);
}

/* For an ordinary user: what its mode closes is visited and closed again. */
static void closed_directories_are_opened_up(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	unsigned names = 0;
	struct stat status;
	char *shut = arena_format(&fixture->arena, "%s/shut", fixture->work);
	char *inner = arena_format(&fixture->arena, "%s/shut/inner", fixture->work);

	make(fixture, "work/shut/inner/file", "");
	assert_int_equal(chmod(inner, 0400), 0);
	assert_int_equal(chmod(shut, 0), 0);
	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		names += event == WALK_NAME;
		if (event == WALK_NAME && walk.type == DT_DIR)
			walk_descend(&walk, 0);
	}
	assert_int_equal(names, 3);
	assert_int_equal(walk.unread, 0);
	assert_int_equal(stat(shut, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0);
	assert_int_equal(chmod(shut, 0700), 0);
	assert_int_equal(stat(inner, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0400);
	assert_int_equal(chmod(inner, 0700), 0);
}

/* What removes a directory emptied it before: there is nothing that was not seen. */
static void a_removed_directory_is_empty(void **state)
{
	struct fixture *fixture = *state;
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	char *gone = arena_format(&fixture->arena, "%s/gone", fixture->work);

	make(fixture, "work/gone", NULL);
	walk_begin(&walk, open_work(fixture), 0);
	while ((event = walk_next(&walk)) != WALK_END) {
		if (event == WALK_NAME)
			walk_descend(&walk, 0);
		if (event == WALK_ENTER && walk.depth == 1)
			assert_int_equal(rmdir(gone), 0);
	}
	assert_int_equal(walk.code, 0);
	assert_int_equal(walk.unread, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(visits_everything_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_come_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(depth_costs_memory_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_moved_directory_ends_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_end_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_removed_directory_is_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed_directories_are_opened_up, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
