#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_upper.h"

#include <sys/xattr.h>

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

static struct git_upper look(struct fixture *fixture)
{
	int CLEANUP_FD fd = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct error error = ERROR_NONE;
	struct git_upper upper = { 0 };

	if (git_upper_read(fd, &fixture->arena, &upper, &error) < 0)
		fail_msg("%s", error.message);
	return upper;
}

static void assert_kind(const struct git_upper *upper, const char *path, enum git_upper_kind kind)
{
	const struct git_upper_entry *entry = git_upper_find(upper, path);

	if (!entry)
		fail_msg("%s is not there", path);
	assert_int_equal(entry->kind, kind);
}

static void every_kind(void **state)
{
	struct fixture *fixture = *state;
	struct git_upper upper;
	char path[512];

	make(fixture, "work/file", "x");
	make(fixture, "work/d/e/file", "x");
	make(fixture, "work/empty", NULL);
	make_link(fixture, "work/d/link", "/etc");
	snprintf(path, sizeof(path), "%s/d/gone", fixture->work);
	/* a whiteout may be made by anybody since Linux 5.8 */
	if (mknod(path, S_IFCHR, 0) < 0)
		skip();
	snprintf(path, sizeof(path), "%s/fifo", fixture->work);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/d/e", fixture->work);
	if (setxattr(path, "user.overlay.opaque", "y", 1, 0) < 0)
		skip();
	upper = look(fixture);
	assert_int_equal(upper.count, 6);
	assert_kind(&upper, "file", GIT_UPPER_FILE);
	assert_kind(&upper, "d/e/file", GIT_UPPER_FILE);
	assert_kind(&upper, "d/link", GIT_UPPER_LINK);
	assert_kind(&upper, "d/gone", GIT_UPPER_GONE);
	assert_kind(&upper, "fifo", GIT_UPPER_SPECIAL);
	assert_kind(&upper, "d/e", GIT_UPPER_OPAQUE);
	for (size_t i = 1; i < upper.count; i++)
		assert_true(strcmp(upper.entries[i - 1].path, upper.entries[i].path) < 0);
}

static void depth_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	int fd = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct git_upper upper;

	for (int i = 0; i < 200; i++) {
		int inner;

		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		inner = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = inner;
	}
	close(fd);
	upper = look(fixture);
	assert_int_equal(upper.count, 1);
	assert_int_equal(upper.entries[0].kind, GIT_UPPER_UNREAD);
}

static void nothing_is_nothing(void **state)
{
	struct git_upper upper = look(*state);

	assert_int_equal(upper.count, 0);
	assert_null(git_upper_find(&upper, "x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(depth_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
