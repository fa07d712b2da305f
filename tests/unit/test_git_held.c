#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_held.h"

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

static struct git_held script(const struct fixture *fixture)
{
	return (struct git_held){
		.task = "t-1",
		.directory = fixture->work,
		.path = "hooks/pre-commit",
		.kind = GIT_HELD_FILE,
		.reason = "git runs it",
		.after = { "#!/bin/sh\n\0\xff\x1b", 13 },
		.is_executable = true,
	};
}

static void keep(const struct fixture *fixture, const struct git_held *held)
{
	struct error error = ERROR_NONE;

	if (git_held_put(fixture->state_fd, held, &error) < 0)
		fail_msg("%s", error.message);
}

static size_t list(struct fixture *fixture, struct git_held **ret_items, size_t wanted_bad)
{
	struct error error = ERROR_NONE;
	size_t count, bad;

	assert_int_equal(
		git_held_list(fixture->state_fd, &fixture->arena, ret_items, &count, &bad, &error),
		0);
	assert_int_equal(bad, wanted_bad);
	return count;
}

static void bytes_come_back(void **state)
{
	struct fixture *fixture = *state;
	struct git_held held = script(fixture), *items, found;
	struct error error = ERROR_NONE;

	assert_int_equal(list(fixture, &items, 0), 0);
	keep(fixture, &held);
	keep(fixture, &held); /* the same place: one thing */
	assert_int_equal(list(fixture, &items, 0), 1);
	assert_null(items[0].after.bytes);
	assert_int_equal(
		git_held_read(fixture->state_fd, &items[0], &fixture->arena, &found, &error), 0);
	assert_string_equal(found.path, held.path);
	assert_int_equal(found.after.length, held.after.length);
	assert_memory_equal(found.after.bytes, held.after.bytes, held.after.length);
	assert_null(found.before.bytes);
	assert_true(found.is_executable);
	assert_int_equal(git_held_remove(fixture->state_fd, &items[0], &error), 0);
	assert_int_equal(list(fixture, &items, 0), 0);
	/* nothing stays behind */
	assert_int_equal(faccessat(fixture->state_fd, "held", F_OK, 0), -1);
}

static void values_of_one_key_are_apart(void **state)
{
	struct fixture *fixture = *state;
	struct git_held held = script(fixture), *items;

	held.kind = GIT_HELD_CONFIG;
	held.path = "config";
	held.key = "remote.origin.url";
	held.after = (struct git_text){ "one", 3 };
	keep(fixture, &held);
	held.after = (struct git_text){ "two", 3 };
	keep(fixture, &held);
	assert_int_equal(list(fixture, &items, 0), 2);
}

static void what_is_none_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct git_held held = script(fixture), *items;
	char name[64];

	keep(fixture, &held);
	make(fixture, "state/held/t-1/0123456789ab", "{}");
	make(fixture, "state/held/t-1/nonsense", "x");
	make(fixture, "state/held/t-2/empty", "");
	make_link(fixture, "state/held/t-3", "../../home");
	/* one that says to be another's */
	git_held_name(&held, name);
	make(fixture, "state/held/t-4/x", "");
	assert_int_equal(list(fixture, &items, 4), 1);
}

static int accept(struct fixture *fixture, const struct git_held *held)
{
	struct error error = ERROR_NONE;

	return git_held_accept(held, &fixture->arena, &error);
}

static void accepting_writes_beneath_and_once(void **state)
{
	struct fixture *fixture = *state;
	struct git_held held = script(fixture);
	struct stat status;
	char path[512];

	/* no git directory yet */
	assert_int_equal(accept(fixture, &held), -ENOENT);
	make(fixture, "work/HEAD", "ref: refs/heads/main\n");
	assert_int_equal(accept(fixture, &held), 0);
	snprintf(path, sizeof(path), "%s/hooks/pre-commit", fixture->work);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 13);
	assert_int_equal(status.st_mode & 07777, 0755);
	assert_int_equal(accept(fixture, &held), 0);
	make(fixture, "work/hooks/pre-commit", "mine");
	assert_int_equal(accept(fixture, &held), -ESTALE);
	held.path = "../home/x";
	assert_true(accept(fixture, &held) < 0);
	make_link(fixture, "work/link", "../home");
	held.path = "link/x";
	assert_true(accept(fixture, &held) < 0);
	snprintf(path, sizeof(path), "%s/x", fixture->home);
	assert_int_equal(access(path, F_OK), -1);
	held.is_cut = true;
	assert_int_equal(accept(fixture, &held), -EOPNOTSUPP);
}

static void accepting_configuration(void **state)
{
	struct fixture *fixture = *state;
	struct git_held held = script(fixture);
	char text[256] = "", path[512];
	int CLEANUP_FD fd = -1;

	make(fixture, "work/HEAD", "ref: refs/heads/main\n");
	make(fixture, "work/config", "# mine\n[remote \"a.b\"]\n\turl = one\n\turl = two\n[x]\n");
	held.kind = GIT_HELD_CONFIG;
	held.path = "config";
	held.key = "remote.a.b.url";
	held.before = (struct git_text){ "two", 3 };
	held.after = (struct git_text){ "a \"b\" \\ #c", 10 };
	assert_int_equal(accept(fixture, &held), 0);
	held.before = (struct git_text){ "one", 3 };
	held.after = (struct git_text){ 0 };
	assert_int_equal(accept(fixture, &held), 0);
	/* it has gone by now */
	assert_int_equal(accept(fixture, &held), -ESTALE);
	held.key = "core.fsmonitor";
	held.before = (struct git_text){ 0 };
	held.after = (struct git_text){ "x", 1 };
	assert_int_equal(accept(fixture, &held), 0);
	snprintf(path, sizeof(path), "%s/config", fixture->work);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "# mine\n[remote \"a.b\"]\n"
				  "\turl = \"a \\\"b\\\" \\\\ #c\"\n"
				  "[x]\n[core]\n\tfsmonitor = x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(values_of_one_key_are_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_none_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(accepting_writes_beneath_and_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(accepting_configuration, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
