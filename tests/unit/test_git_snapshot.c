#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_snapshot.h"

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

static void make_repository(struct fixture *fixture)
{
	make(fixture, "work/HEAD", "ref: refs/heads/main\n");
	make(fixture, "work/config", "[core]\n\tbare = false\n");
	make(fixture, "work/index", "DIRC");
	make(fixture, "work/index.lock", "");
	make(fixture, "work/packed-refs", "# pack-refs\n");
	make(fixture, "work/refs/heads/main", "x\n");
	make(fixture, "work/refs/heads/a/b.lock", "x\n");
	make(fixture, "work/info/exclude", "");
	make(fixture, "work/objects/aa/bb", "");
	make(fixture, "work/worktrees/w/HEAD", "ref: refs/heads/w\n");
	make(fixture, "work/modules/a/b/HEAD", "ref: refs/heads/m\n");
	make(fixture, "work/modules/a/b/refs/heads/m", "y\n");
}

static void take(struct fixture *fixture, struct git_snapshot *ret_snapshot)
{
	int CLEANUP_FD fd = open(fixture->work, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct git_cover cover = { .path = fixture->work, .fd = fd, .upper_fd = -1 };
	struct error error = ERROR_NONE;

	if (git_snapshot_take(&cover, 1, &fixture->arena, ret_snapshot, &error) < 0)
		fail_msg("%s", error.message);
}

static void assert_text(const struct git_snapshot_part *part, const char *path, const char *text)
{
	const struct git_state *found = git_snapshot_find(part, path);

	assert_non_null(found);
	assert_int_equal(found->length, strlen(text));
	assert_memory_equal(found->text, text, found->length);
}

static void assert_whole(const struct git_snapshot_part *part)
{
	assert_null(part->fault);
	assert_text(part, "HEAD", "ref: refs/heads/main\n");
	assert_text(part, "config", "[core]\n\tbare = false\n");
	assert_text(part, "refs/heads/main", "x\n");
	assert_text(part, "worktrees/w/HEAD", "ref: refs/heads/w\n");
	assert_text(part, "modules/a/b/refs/heads/m", "y\n");
	assert_non_null(git_snapshot_find(part, "info/exclude"));
	assert_null(git_snapshot_find(part, "index.lock"));
	assert_null(git_snapshot_find(part, "refs/heads/a/b.lock"));
	assert_null(git_snapshot_find(part, "objects/aa/bb"));
}

static void all_that_matters_is_taken(void **state)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct fixture *fixture = *state;
	char path[128];
	struct stat status;

	make_repository(fixture);
	take(fixture, &snapshot);
	assert_whole(&snapshot.parts[0]);
	assert_true(git_snapshot_find(&snapshot.parts[0], "index")->fd >= 0);
	assert_true(git_snapshot_find(&snapshot.parts[0], "packed-refs")->fd >= 0);
	snprintf(path, sizeof(path), "%s/index", fixture->work);
	assert_int_equal(stat(path, &status), 0);
	assert_true(git_state_is(git_snapshot_find(&snapshot.parts[0], "index"), &status));
	status.st_size++;
	assert_false(git_state_is(git_snapshot_find(&snapshot.parts[0], "index"), &status));
}

static void it_is_kept_and_found(void **state)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct git_snapshot found = GIT_SNAPSHOT_NONE;
	struct fixture *fixture = *state;
	struct error error = ERROR_NONE;

	make_repository(fixture);
	assert_int_equal(git_snapshot_load(fixture->state_fd, &fixture->arena, &found, &error),
			 -ENOENT);
	take(fixture, &snapshot);
	assert_int_equal(git_snapshot_save(&snapshot, fixture->state_fd, &error), 0);
	assert_int_equal(git_snapshot_load(fixture->state_fd, &fixture->arena, &found, &error), 0);
	assert_int_equal(found.parts[0].taken_ns, snapshot.parts[0].taken_ns);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.parts[0].count, snapshot.parts[0].count);
	assert_whole(&found.parts[0]);
	assert_int_equal(git_snapshot_find(&found.parts[0], "index")->inode,
			 git_snapshot_find(&snapshot.parts[0], "index")->inode);
}

/* Whatever is cut off of it, it is refused. */
static void a_torn_one_is_refused(void **state)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct git_snapshot found = GIT_SNAPSHOT_NONE;
	struct fixture *fixture = *state;
	struct error error = ERROR_NONE;
	char path[128];
	struct stat status;

	make_repository(fixture);
	take(fixture, &snapshot);
	assert_int_equal(git_snapshot_save(&snapshot, fixture->state_fd, &error), 0);
	snprintf(path, sizeof(path), "%s/git-snapshot", fixture->state);
	assert_int_equal(stat(path, &status), 0);
	for (off_t size = status.st_size - 1; size > 0; size -= 13) {
		assert_int_equal(truncate(path, size), 0);
		assert_true(git_snapshot_load(fixture->state_fd, &fixture->arena, &found, &error) <
			    0);
	}
}

static void what_cannot_be_committed_is_said(void **state)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct fixture *fixture = *state;

	make_repository(fixture);
	make(fixture, "work/reftable/tables.list", "");
	take(fixture, &snapshot);
	assert_non_null(snapshot.parts[0].fault);
}

static void hostile_repository(void **state)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct fixture *fixture = *state;
	char path[512];

	make_repository(fixture);
	make_link(fixture, "work/refs/heads/link", "/etc/passwd");
	make_link(fixture, "work/modules/loop", "..");
	snprintf(path, sizeof(path), "%s/refs/heads/fifo", fixture->work);
	assert_int_equal(mkfifo(path, 0600), 0);
	take(fixture, &snapshot);
	assert_whole(&snapshot.parts[0]);
	assert_null(git_snapshot_find(&snapshot.parts[0], "refs/heads/link"));
	assert_null(git_snapshot_find(&snapshot.parts[0], "refs/heads/fifo"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_that_matters_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_kept_and_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_torn_one_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_committed_is_said, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(hostile_repository, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
