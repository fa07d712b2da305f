#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_file.h"

#include <sys/syscall.h>

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

static bool is_text(int fd, const char *path, const char *text)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_text found;

	return git_file_read(fd, path, 4096, &arena, &found, NULL) == 0 &&
	       found.length == strlen(text) && memcmp(found.bytes, text, found.length) == 0;
}

static bool exists(int fd, const char *path)
{
	struct stat status;

	return git_file_status(fd, path, &status) == 0;
}

static void writes_as_git_does(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open_work(fixture);
	struct git_target target = { .fd = fd, .journal_fd = -1, .prefix = "" };
	struct git_lock lock, other;

	make(fixture, "work/old", "old");
	assert_int_equal(git_file_lock(&target, "old", false, &lock), 0);
	assert_true(exists(fd, "old.lock"));
	/* a second one waits in vain */
	assert_int_equal(git_file_lock(&target, "old", false, &other), -EBUSY);
	assert_int_equal(git_lock_write(&lock, "new", 3), 0);
	assert_true(is_text(fd, "old", "old"));
	assert_int_equal(git_lock_commit(&lock), 0);
	assert_true(is_text(fd, "old", "new"));
	assert_false(exists(fd, "old.lock"));
	assert_int_equal(git_file_lock(&target, "a/b/c", false, &lock), -ENOENT);
	assert_int_equal(git_file_lock(&target, "a/b/c", true, &lock), 0);
	git_lock_drop(&lock);
	assert_false(exists(fd, "a/b/c"));
	git_file_prune(fd, "a/b/c", 1);
	assert_true(exists(fd, "a"));
	assert_false(exists(fd, "a/b"));
	assert_int_equal(git_file_lock(&target, "old", false, &lock), 0);
	assert_int_equal(git_lock_remove(&lock), 0);
	assert_false(exists(fd, "old"));
}

static void modes_are_the_neighbours(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open_work(fixture);
	struct git_target target = { .fd = fd, .journal_fd = -1, .prefix = "" };
	struct git_lock lock;
	struct stat status;
	char path[128];

	make(fixture, "work/script", "");
	snprintf(path, sizeof(path), "%s/script", fixture->work);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(git_file_lock(&target, "script", false, &lock), 0);
	assert_int_equal(git_lock_commit(&lock), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0750);
	assert_int_equal(chmod(fixture->work, 0770), 0);
	assert_int_equal(git_file_lock(&target, "new/file", true, &lock), 0);
	assert_int_equal(git_lock_commit(&lock), 0);
	assert_int_equal(git_file_status(fd, "new/file", &status), 0);
	assert_int_equal(status.st_mode & 07777, 0660);
}

static void nothing_leads_out(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open_work(fixture);
	struct git_target target = { .fd = fd, .journal_fd = -1, .prefix = "" };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_text text;
	struct git_lock lock;
	char path[128];

	make(fixture, "home/target", "x");
	make_link(fixture, "work/link", "../home");
	make_link(fixture, "work/file", "../home/target");
	assert_true(git_file_lock(&target, "link/new", true, &lock) < 0);
	assert_true(git_file_lock(&target, "../home/new", true, &lock) < 0);
	assert_true(git_file_read(fd, "file", 10, &arena, &text, NULL) < 0);
	assert_true(git_file_read(fd, "link/target", 10, &arena, &text, NULL) < 0);
	/* a link in the file's own place is replaced, not followed */
	assert_int_equal(git_file_lock(&target, "file", false, &lock), 0);
	assert_int_equal(git_lock_write(&lock, "y", 1), 0);
	assert_int_equal(git_lock_commit(&lock), 0);
	assert_true(is_text(fd, "file", "y"));
	snprintf(path, sizeof(path), "%s/fifo", fixture->work);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(git_file_read(fd, "fifo", 10, &arena, &text, NULL), -EINVAL);
	assert_int_equal(git_file_read(fd, "file", 0, &arena, &text, NULL), -EFBIG);
}

static size_t read_journal(const struct fixture *fixture, char *text, size_t size)
{
	int CLEANUP_FD fd = openat(fixture->state_fd, "journal", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd_read_all(fd, text, size);

	assert_true(length > 0);
	return (size_t)length;
}

/* A lock that was left goes; one of the host's git, which came to stand there since, stays. */
static void only_own_locks_are_recovered(void **state)
{
	struct fixture *fixture = *state;
	int CLEANUP_FD fd = open_work(fixture);
	int CLEANUP_FD journal_fd =
		openat(fixture->state_fd, "journal", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct git_target target = {
		.fd = fd, .journal_fd = journal_fd, .number = 3, .prefix = ""
	};
	struct git_lock mine, theirs;
	char text[1024];
	size_t length;

	assert_int_equal(git_file_lock(&target, "a/mine", true, &mine), 0);
	assert_int_equal(git_file_lock(&target, "theirs", true, &theirs), 0);
	assert_int_equal(git_file_aside(&target, "tree") >= 0, 1);
	make(fixture, "work/tree/x/y", "z");
	git_lock_drop(&theirs);
	make(fixture, "work/theirs.lock", "");
	length = read_journal(fixture, text, sizeof(text));
	git_file_recover(text, length, 2, fd);
	assert_true(exists(fd, "a/mine.lock"));
	git_file_recover(text, length, 3, fd);
	assert_false(exists(fd, "a/mine.lock"));
	assert_false(exists(fd, "tree"));
	assert_true(exists(fd, "theirs.lock"));
	/* a torn line tells of nothing that exists */
	git_file_recover("lock 3 1 1 theirs", 17, 3, fd);
	git_file_recover("x\n\nlock\n", 8, 3, fd);
	assert_true(exists(fd, "theirs.lock"));
	mine.is_taken = false;
	git_lock_drop(&mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writes_as_git_does, set_up, tear_down),
		cmocka_unit_test_setup_teardown(modes_are_the_neighbours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_leads_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_own_locks_are_recovered, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
