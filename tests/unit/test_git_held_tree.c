#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_held_tree.h"
#include "workspace/git_held_tree_copy.h"

#define TASK "t-1"

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

static char *in_work(struct fixture *fixture, const char *path)
{
	return arena_format(&fixture->arena, "%s/%s", fixture->work, path);
}

static bool exists(struct fixture *fixture, const char *path)
{
	return access(in_work(fixture, path), F_OK) == 0;
}

/* Files are stamped by a clock that ticks some hundred times a second: another stamp is due. */
static void next_stamp(struct fixture *fixture)
{
	const char *path = arena_format(&fixture->arena, "%s/stamp", fixture->root);
	struct stat first = { 0 }, status = { 0 };

	do {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		assert_true(fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &status) == 0);
		close(fd);
		if (!first.st_ctim.tv_sec)
			first = status;
	} while (memcmp(&first.st_ctim, &status.st_ctim, sizeof(first.st_ctim)) == 0);
}

static struct git_held_tree hold(struct fixture *fixture, const char *directory, const char *name,
				 const char *path)
{
	struct git_held_tree held = {
		.task = TASK, .directory = fixture->work, .path = path, .reason = "a test"
	};
	int CLEANUP_FD store = git_held_tree_open(fixture->state_fd, TASK, true);
	int CLEANUP_FD fd = open(in_work(fixture, directory), O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct error error = ERROR_NONE;
	struct stat status;

	assert_true(store >= 0);
	assert_int_equal(fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW), 0);
	if (git_held_tree_take(store, fd, name, &status, &held, &error) != 0)
		fail_msg("%s", error.message);
	return held;
}

static struct git_held_tree only(struct fixture *fixture)
{
	struct git_held_tree *items;
	struct error error = ERROR_NONE;
	size_t count, bad;

	assert_int_equal(git_held_tree_list(fixture->state_fd, &fixture->arena, &items, &count,
					    &bad, &error),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(bad, 0);
	return items[0];
}

static size_t count_of(struct fixture *fixture)
{
	struct git_held_tree *items;
	struct error error = ERROR_NONE;
	size_t count, bad;

	assert_int_equal(git_held_tree_list(fixture->state_fd, &fixture->arena, &items, &count,
					    &bad, &error),
			 0);
	return count;
}

static void a_directory_goes_and_comes_back(void **state)
{
	struct fixture *fixture = *state;
	struct git_held_tree held, found;
	struct error error = ERROR_NONE;

	make(fixture, "work/a/.git/config", "[core]\n");
	held = hold(fixture, "a", ".git", "a/.git");
	assert_false(exists(fixture, "a/.git"));
	found = only(fixture);
	assert_string_equal(found.id, held.id);
	assert_string_equal(found.path, "a/.git");
	assert_int_equal(found.kind, GIT_HELD_TREE_DIRECTORY);
	assert_int_equal(git_held_tree_accept(fixture->state_fd, &found, &error), 0);
	assert_true(exists(fixture, "a/.git/config"));
	assert_int_equal(count_of(fixture), 0);
	/* nothing is left of the store */
	assert_int_equal(faccessat(fixture->state_fd, "held", F_OK, 0), -1);
}

static void a_name_of_any_bytes(void **state)
{
	static const char name[] = ".env\nrc\x1b[31m\xff";
	struct fixture *fixture = *state;
	struct git_held_tree found;
	struct error error = ERROR_NONE;

	make(fixture, arena_format(&fixture->arena, "work/a/%s", name), "x");
	(void)hold(fixture, "a", name, arena_format(&fixture->arena, "a/%s", name));
	found = only(fixture);
	assert_int_equal(git_held_tree_accept(fixture->state_fd, &found, &error), 0);
	assert_true(exists(fixture, arena_format(&fixture->arena, "a/%s", name)));
}

static void never_over_what_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct git_held_tree found;
	struct error error = ERROR_NONE;

	make(fixture, "work/.envrc", "theirs");
	(void)hold(fixture, ".", ".envrc", ".envrc");
	make(fixture, "work/.envrc", "mine");
	found = only(fixture);
	assert_int_equal(git_held_tree_accept(fixture->state_fd, &found, &error), -EEXIST);
	assert_int_equal(count_of(fixture), 1);
	assert_int_equal(unlink(in_work(fixture, ".envrc")), 0);
	assert_int_equal(git_held_tree_accept(fixture->state_fd, &found, &error), 0);
}

/* A process that had it open before goes on writing to it: what was looked at is not this. */
static void what_changed_since_is_not_accepted(void **state)
{
	struct fixture *fixture = *state;
	struct git_held_tree found;
	struct error error = ERROR_NONE;
	int fd;

	make(fixture, "work/.claude/settings.json", "{}");
	fd = open(in_work(fixture, ".claude/settings.json"), O_WRONLY | O_CLOEXEC);
	(void)hold(fixture, ".", ".claude", ".claude");
	found = only(fixture);
	next_stamp(fixture);
	assert_int_equal(write(fd, "evil", 4), 4);
	close(fd);
	assert_int_equal(git_held_tree_accept(fixture->state_fd, &found, &error), -ESTALE);
	assert_int_equal(git_held_tree_reject(fixture->state_fd, &found, &error), 0);
	assert_int_equal(count_of(fixture), 0);
}

/* A link that stands in the way leads nowhere. */
static void a_link_on_the_way_is_not_followed(void **state)
{
	struct fixture *fixture = *state;
	struct git_held_tree found;
	struct error error = ERROR_NONE;

	make(fixture, "work/a/.envrc", "x");
	make(fixture, "outside", NULL);
	(void)hold(fixture, "a", ".envrc", "a/.envrc");
	found = only(fixture);
	assert_int_equal(rmdir(in_work(fixture, "a")), 0);
	make_link(fixture, "work/a", "../outside");
	assert_true(git_held_tree_accept(fixture->state_fd, &found, &error) < 0);
	assert_int_equal(
		access(arena_format(&fixture->arena, "%s/outside/.envrc", fixture->root), F_OK),
		-1);
}

/* Somebody puts another object there between the look and the taking. */
static void an_exchanged_object_stays(void **state)
{
	struct fixture *fixture = *state;
	struct git_held_tree held = {
		.task = TASK, .directory = fixture->work, .path = ".envrc", .reason = "a test"
	};
	int CLEANUP_FD store = git_held_tree_open(fixture->state_fd, TASK, true);
	int CLEANUP_FD fd = open(fixture->work, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct error error = ERROR_NONE;
	struct stat status;

	make(fixture, "work/.envrc", "theirs");
	make(fixture, "work/mine", "mine");
	assert_int_equal(fstatat(fd, ".envrc", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(renameat(fd, "mine", fd, ".envrc"), 0);
	assert_int_equal(git_held_tree_take(store, fd, ".envrc", &status, &held, &error), -ESTALE);
	assert_true(exists(fixture, ".envrc"));
	assert_int_equal(count_of(fixture), 0);
}

static void hostile_trees_are_copied_and_removed(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t omitted = 0;
	struct stat status;
	int file;

	make(fixture, "work/x/sub/run.sh", "#!/bin/sh\n");
	make_link(fixture, "work/x/link", "/etc/passwd");
	assert_int_equal(chmod(in_work(fixture, "x/sub/run.sh"), 04755), 0);
	assert_int_equal(mkfifo(in_work(fixture, "x/fifo"), 0600), 0);
	file = open(in_work(fixture, "x/giant"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(file, (off_t)1 << 40), 0);
	close(file);
	assert_int_equal(chmod(in_work(fixture, "x/sub"), 0500), 0);
	assert_int_equal(git_held_tree_copy(fd, "x", fd, "y", &omitted), 0);
	assert_int_equal(omitted, 1);
	assert_int_equal(lstat(in_work(fixture, "y/sub/run.sh"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0755);
	assert_int_equal(lstat(in_work(fixture, "y/sub"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0500);
	assert_int_equal(lstat(in_work(fixture, "y/giant"), &status), 0);
	assert_true(status.st_size == (off_t)1 << 40 && status.st_blocks < 100);
	assert_int_equal(lstat(in_work(fixture, "y/link"), &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(git_held_tree_copy(fd, "x", fd, "y", &omitted), -EEXIST);
	assert_int_equal(git_held_tree_remove(fd, "y"), 0);
	assert_int_equal(git_held_tree_remove(fd, "x"), 0);
	assert_false(exists(fixture, "x") || exists(fixture, "y"));
}

static void too_deep_is_too_large(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[4096] = "work/x";
	uint64_t omitted;

	for (unsigned i = 0; i < GIT_HELD_TREE_LIMIT_DEPTH + 1; i++)
		strcat(path, "/d");
	make(fixture, path, NULL);
	assert_int_equal(git_held_tree_copy(fd, "x", fd, "y", &omitted), -EFBIG);
	assert_false(exists(fixture, "y"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_directory_goes_and_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_of_any_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(never_over_what_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_changed_since_is_not_accepted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_link_on_the_way_is_not_followed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_exchanged_object_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hostile_trees_are_copied_and_removed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(too_deep_is_too_large, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
