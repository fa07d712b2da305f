#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/sweep.h"

#define TASK "t-1"
#define DEEP 5000

struct lab {
	struct fixture *fixture;
	struct sweep sweep;
	struct sweep_result result;
	struct sweep_order order;
	struct sweep_known *seen;
	size_t seen_count;
	enum sweep_clock clock;
};

static int set_up(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	lab->fixture = fixture_new();
	lab->sweep = SWEEP_NONE;
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	sweep_close(&lab->sweep);
	fixture_free(lab->fixture);
	free(lab);
	return 0;
}

static char *in_work(struct lab *lab, const char *path)
{
	return arena_format(&lab->fixture->arena, "%s/%s", lab->fixture->work, path);
}

static void put(struct lab *lab, const char *path, const char *text)
{
	make(lab->fixture, arena_format(&lab->fixture->arena, "work/%s", path), text);
}

static bool exists(struct lab *lab, const char *path)
{
	struct stat status;

	return lstat(in_work(lab, path), &status) == 0;
}

static bool holds(struct lab *lab, const char *path, const char *text)
{
	char bytes[64] = { 0 };
	int CLEANUP_FD fd = open(in_work(lab, path), O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, bytes, sizeof(bytes) - 1) >= 0 && strcmp(bytes, text) == 0;
}

/* The clock that stamps files ticks: what was made before has another stamp than what comes. */
static void next_tick(void)
{
	struct timespec first, now;

	assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &first), 0);
	do
		(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (memcmp(&first, &now, sizeof(now)) == 0);
}

static void begin(struct lab *lab)
{
	const struct sweep_start start = { .workspace = lab->fixture->work,
					   .seen = lab->seen,
					   .seen_count = lab->seen_count,
					   .clock = lab->clock };
	struct error error = ERROR_NONE;

	next_tick();
	sweep_close(&lab->sweep);
	if (sweep_begin(&start, &lab->fixture->arena, &lab->sweep, &error) != 0)
		fail_msg("%s", error.message);
}

static void end(struct lab *lab)
{
	struct error error = ERROR_NONE;

	lab->order.sweep = &lab->sweep;
	lab->order.workspace = lab->fixture->work;
	lab->order.task = TASK;
	lab->order.state_fd = lab->fixture->state_fd;
	if (sweep_end(&lab->order, &lab->fixture->arena, &lab->result, &error) != 0)
		fail_msg("%s", error.message);
	lab->seen = lab->result.seen;
	lab->seen_count = lab->result.seen_count;
}

static const struct sweep_found *found(struct lab *lab, const char *path)
{
	const char *whole = in_work(lab, path);

	for (size_t i = 0; i < lab->result.count; i++)
		if (strcmp(lab->result.items[i].change.path, whole) == 0)
			return &lab->result.items[i];
	return NULL;
}

static void expect_held(struct lab *lab, const char *path)
{
	const struct sweep_found *item = found(lab, path);

	if (!item || item->fate != SWEEP_HELD || item->change.state != CHANGE_HELD)
		fail_msg("%s is not held: %s", path, item ? item->fault : "not found");
}

static void work_is_left_alone(void **state)
{
	struct lab *lab = *state;

	put(lab, "old/file.c", "x");
	begin(lab);
	put(lab, "new/dir/file.c", "x");
	put(lab, "AGENTS.md", "x");
	put(lab, "Makefile", "x");
	put(lab, ".gitignore", "x");
	put(lab, "objects/refs/HEAD", "x");
	end(lab);
	assert_int_equal(lab->result.found, 0);
	assert_null(lab->result.unfinished);
	/* no state is made where nothing is held */
	assert_int_equal(faccessat(lab->fixture->state_fd, "held", F_OK, 0), -1);
}

static void what_is_new_is_held(void **state)
{
	static const char *const files[] = { "a/b/c/.git/config",    "d/.GIT/config",  "e/git~1/x",
					     "f/.git ./x",	     "g/.g\u200cit/x", "h/.git\n/x",
					     "i/.vscode/tasks.json", ".cursor/x" };
	static const char *const names[] = { "a/b/c/.git",   "d/.GIT", "e/git~1",   "f/.git .",
					     "g/.g\u200cit", NULL,     "i/.vscode", ".cursor" };
	struct lab *lab = *state;

	begin(lab);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(lab, files[i], "x");
	put(lab, "j/.git", "gitdir: ../x");
	make_link(lab->fixture, "work/k/.git", "/etc");
	put(lab, "l/.envrc", "x");
	end(lab);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i]) {
			expect_held(lab, names[i]);
			assert_false(exists(lab, names[i]));
		}
	expect_held(lab, "j/.git");
	expect_held(lab, "k/.git");
	expect_held(lab, "l/.envrc");
	/* a newline is no part of the name for anybody */
	assert_true(exists(lab, "h/.git\n/x"));
	assert_int_equal(lab->result.found, 10);
}

/* An old object that is given such a name is new: its change time says so. */
static void a_rename_or_link_makes_it_new(void **state)
{
	struct lab *lab = *state;

	put(lab, "a/dotgit/config", "x");
	put(lab, "b/sample", "x");
	put(lab, "c/sample", "x");
	begin(lab);
	assert_int_equal(rename(in_work(lab, "a/dotgit"), in_work(lab, "a/.git")), 0);
	assert_int_equal(link(in_work(lab, "b/sample"), in_work(lab, "b/.envrc")), 0);
	assert_int_equal(rename(in_work(lab, "c/sample"), in_work(lab, "c/.mcp.json")), 0);
	end(lab);
	expect_held(lab, "a/.git");
	expect_held(lab, "b/.envrc");
	expect_held(lab, "c/.mcp.json");
}

static void bare_repositories_lose_their_head(void **state)
{
	struct lab *lab = *state;

	put(lab, "dormant/config", "x");
	put(lab, "dormant/objects", NULL);
	put(lab, "dormant/HEAD", "ref: refs/heads/x\n");
	begin(lab);
	put(lab, "x/y/HEAD", "ref: refs/heads/x\n");
	put(lab, "x/y/objects", NULL);
	put(lab, "x/y/refs", NULL);
	make_link(lab->fixture, "work/z/HEAD", "refs/heads/x");
	put(lab, "z/commondir", "../elsewhere");
	put(lab, "dormant/refs", NULL);
	end(lab);
	expect_held(lab, "x/y/HEAD");
	expect_held(lab, "z/HEAD");
	expect_held(lab, "dormant/HEAD");
	assert_true(exists(lab, "x/y/refs"));
	assert_int_equal(lab->result.found, 3);
}

static void put_repository(struct lab *lab, const char *path)
{
	static const char *const files[] = { "HEAD",
					     "config",
					     "hooks/x.sample",
					     "info/exclude",
					     "objects/pack/one",
					     "refs/heads/main",
					     "modules/m/config",
					     "modules/m/HEAD" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(lab, arena_format(&lab->fixture->arena, "%s/%s", path, files[i]), "old");
	put(lab, arena_format(&lab->fixture->arena, "%s/modules/m/objects", path), NULL);
	put(lab, arena_format(&lab->fixture->arena, "%s/modules/m/refs", path), NULL);
}

/* Deep in the tree nothing covers it: what git obeys in it is held when it changed, and no more. */
static void an_old_repository_is_looked_into(void **state)
{
	struct lab *lab = *state;

	put_repository(lab, "deep/repo/.git");
	put_repository(lab, "deep/bare");
	begin(lab);
	put(lab, "deep/repo/.git/HEAD", "new");
	put(lab, "deep/repo/.git/refs/heads/other", "new");
	put(lab, "deep/repo/.git/index", "new");
	end(lab);
	assert_int_equal(lab->result.found, 0);
	assert_true(lab->seen_count >= 4);
	begin(lab);
	put(lab, "deep/repo/.git/config", "new");
	put(lab, "deep/repo/.git/commondir", "new");
	put(lab, "deep/repo/.git/modules/m/config", "new");
	put(lab, "deep/bare/config", "new");
	put(lab, "deep/bare/info/attributes", "new");
	put(lab, "deep/repo/.git/rebase-merge/git-rebase-todo", "exec x");
	put(lab, "deep/repo/.git/hooks/pre-commit", "new");
	put(lab, "deep/repo/.git/hooks/y.sample", "new");
	end(lab);
	expect_held(lab, "deep/repo/.git/config");
	expect_held(lab, "deep/repo/.git/commondir");
	expect_held(lab, "deep/repo/.git/modules/m/config");
	expect_held(lab, "deep/repo/.git/rebase-merge");
	expect_held(lab, "deep/repo/.git/hooks/pre-commit");
	expect_held(lab, "deep/bare/config");
	expect_held(lab, "deep/bare/info/attributes");
	assert_int_equal(lab->result.found, 7);
	assert_true(exists(lab, "deep/repo/.git/HEAD"));
}

/* Where the directory above changed too, it may have been put there: unless it is known. */
static void what_may_have_been_moved_is_known_or_held(void **state)
{
	struct lab *lab = *state;

	put_repository(lab, "deep/one/.git");
	begin(lab);
	end(lab);
	put_repository(lab, "deep/two/.git");
	begin(lab);
	put(lab, "deep/one/file", "new");
	put(lab, "deep/one/.git/index", "new");
	put(lab, "deep/two/file", "new");
	put(lab, "deep/two/.git/index", "new");
	end(lab);
	assert_int_equal(lab->result.found, 1);
	expect_held(lab, "deep/two/.git");
}

static void covered_ones_are_not_looked_at(void **state)
{
	struct lab *lab = *state;
	struct sweep_known covered[2];
	struct stat status;

	begin(lab);
	put_repository(lab, "a/.git");
	put_repository(lab, "b");
	put(lab, "c/.git", "gitdir: x");
	assert_int_equal(stat(in_work(lab, "a/.git"), &status), 0);
	covered[0] = (struct sweep_known){ .device = status.st_dev, .inode = status.st_ino };
	assert_int_equal(stat(in_work(lab, "b"), &status), 0);
	covered[1] = (struct sweep_known){ .device = status.st_dev, .inode = status.st_ino };
	lab->order.covered = covered;
	lab->order.covered_count = 2;
	end(lab);
	assert_int_equal(lab->result.found, 1);
	expect_held(lab, "c/.git");
}

static void the_old_file_is_put_back(void **state)
{
	struct lab *lab = *state;
	struct stat status;

	put(lab, ".envrc", "old");
	put(lab, ".mcp.json", "same");
	put(lab, ".exrc", "mode");
	make_link(lab->fixture, "work/.nvimrc", "old-target");
	put(lab, "sub/.envrc", "old");
	assert_int_equal(chmod(in_work(lab, ".envrc"), 0640), 0);
	begin(lab);
	assert_int_equal(unlink(in_work(lab, ".mcp.json")), 0);
	put(lab, ".mcp.json", "same");
	put(lab, ".envrc", "new");
	assert_int_equal(chmod(in_work(lab, ".exrc"), 0755), 0);
	make_link(lab->fixture, "work/.nvimrc", "new-target");
	put(lab, "sub/.envrc", "new");
	end(lab);
	assert_int_equal(lab->result.found, 4);
	expect_held(lab, ".envrc");
	assert_true(found(lab, ".envrc")->is_restored);
	assert_int_equal(found(lab, ".envrc")->change.kind, CHANGE_MODIFIED);
	assert_true(holds(lab, ".envrc", "old"));
	assert_int_equal(stat(in_work(lab, ".envrc"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	expect_held(lab, ".exrc");
	assert_true(found(lab, ".nvimrc")->is_restored && exists(lab, ".nvimrc"));
	assert_true(holds(lab, ".mcp.json", "same"));
	/* deeper there is no copy */
	expect_held(lab, "sub/.envrc");
	assert_false(found(lab, "sub/.envrc")->is_restored || exists(lab, "sub/.envrc"));
}

static void settings_that_were_there_keep_the_rest(void **state)
{
	struct lab *lab = *state;

	put(lab, "sub/.vscode/settings.json", "old");
	put(lab, "sub/.vscode/deep/x", "old");
	put(lab, ".kiro/old", "old");
	begin(lab);
	put(lab, "sub/.vscode/deep/x", "new");
	put(lab, "sub/.vscode/tasks.json", "new");
	put(lab, ".kiro/hook", "new");
	end(lab);
	expect_held(lab, "sub/.vscode/deep/x");
	expect_held(lab, "sub/.vscode/tasks.json");
	expect_held(lab, ".kiro/hook");
	assert_int_equal(lab->result.found, 3);
	assert_true(holds(lab, "sub/.vscode/settings.json", "old") &&
		    holds(lab, ".kiro/old", "old"));
}

static void absent_targets_are_held(void **state)
{
	struct lab *lab = *state;
	const char *absent[] = { in_work(lab, "githooks"), in_work(lab, "a/b/extra.cfg"),
				 in_work(lab, "linked/hooks"), in_work(lab, "never/there"),
				 "/elsewhere/x" };

	put(lab, "scripts/hooks/pre-commit", "x");
	begin(lab);
	put(lab, "githooks/pre-commit", "x");
	put(lab, "a/b/extra.cfg", "x");
	make_link(lab->fixture, "work/linked", "scripts");
	lab->order.absent = absent;
	lab->order.absent_count = sizeof(absent) / sizeof(absent[0]);
	end(lab);
	expect_held(lab, "githooks");
	expect_held(lab, "a/b/extra.cfg");
	expect_held(lab, "linked");
	assert_int_equal(lab->result.found, 3);
	assert_true(exists(lab, "scripts/hooks/pre-commit"));
}

static void hostile_names_neither_hang_nor_hide(void **state)
{
	static const char *const names[] = { "fifo/.envrc", "a\n\x1b[2J/.git", "\xff\xfe/.git" };
	struct lab *lab = *state;

	begin(lab);
	put(lab, "fifo", NULL);
	assert_int_equal(mkfifo(in_work(lab, "fifo/.envrc"), 0600), 0);
	put(lab, "a\n\x1b[2J/.git/config", "x");
	put(lab, "\xff\xfe/.git/config", "x");
	put(lab, "shut/in/.git/config", "x");
	put(lab, "fixed/.vscode/x", "x");
	assert_int_equal(chmod(in_work(lab, "shut/in/.git"), 0), 0);
	assert_int_equal(chmod(in_work(lab, "shut/in"), 0), 0);
	assert_int_equal(chmod(in_work(lab, "shut"), 0), 0);
	assert_int_equal(chmod(in_work(lab, "fixed"), 0555), 0);
	make_link(lab->fixture, "work/loop", ".");
	end(lab);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_held(lab, names[i]);
	expect_held(lab, "shut/in/.git");
	expect_held(lab, "fixed/.vscode");
	assert_null(lab->result.unfinished);
}

static void the_deepest_is_found(void **state)
{
	struct lab *lab = *state;
	int fd;

	begin(lab);
	fd = open(lab->fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEEP; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "deep", 0755), 0);
		next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	assert_int_equal(mkdirat(fd, ".git", 0755), 0);
	end(lab);
	assert_int_equal(lab->result.found, 1);
	assert_int_equal(lab->result.items[0].fate, SWEEP_HELD);
	assert_int_equal(faccessat(fd, ".git", F_OK, 0), -1);
	close(fd);
	/* nftw(3) cannot remove it */
	assert_int_equal(rename(in_work(lab, "deep"),
				arena_format(&lab->fixture->arena, "%s/held/" TASK "/.tree/%s",
					     lab->fixture->state, "0123456789ab")),
			 0);
	{
		struct git_held_tree held = { .id = "0123456789ab", .task = TASK, .path = "deep" };
		struct error error = ERROR_NONE;

		assert_int_equal(git_held_tree_reject(lab->fixture->state_fd, &held, &error), 0);
	}
}

static void a_tree_that_is_too_large_is_said(void **state)
{
	struct lab *lab = *state;

	begin(lab);
	for (int i = 0; i < 50; i++)
		put(lab, arena_format(&lab->fixture->arena, "f%d", i), "x");
	lab->order.limit_names = 20;
	end(lab);
	assert_non_null(lab->result.unfinished);
}

/* Without a store nothing stays under its name, and nothing is lost. */
static void what_cannot_be_held_loses_its_name(void **state)
{
	struct lab *lab = *state;
	const struct sweep_found *item;

	begin(lab);
	put(lab, "a/.git/HEAD", "ref: refs/heads/x");
	put(lab, "a/.git/sub/.git/HEAD", "ref: refs/heads/x");
	put(lab, "b/.envrc", "x");
	/* what stands in the way of the store */
	make(lab->fixture, "state/held", "a file");
	end(lab);
	item = found(lab, "a/.git");
	assert_true(item && item->fate == SWEEP_DISARMED && item->now && item->fault);
	assert_false(exists(lab, "a/.git") || exists(lab, "b/.envrc"));
	assert_false(exists(lab, arena_format(&lab->fixture->arena, "a/%s/HEAD", item->now)));
	assert_false(exists(lab, arena_format(&lab->fixture->arena, "a/%s/sub/.git", item->now)));
	assert_true(exists(lab, arena_format(&lab->fixture->arena, "a/%s/sub", item->now)));
	assert_int_equal(lab->result.found, 3);
	assert_int_equal(lab->result.left, 0);
}

/* Where stamps mean nothing the look at the start says what is old. */
static void without_a_clock_the_look_before_counts(void **state)
{
	struct lab *lab = *state;

	lab->clock = SWEEP_CLOCK_OTHER;
	put_repository(lab, "deep/repo/.git");
	put_repository(lab, "deep/bare");
	put(lab, "sub/.vscode/old", "x");
	put(lab, "sub/.envrc", "old");
	put(lab, ".envrc", "old");
	begin(lab);
	end(lab);
	assert_int_equal(lab->result.found, 0);
	begin(lab);
	put(lab, "deep/repo/.git/config", "new");
	put(lab, "deep/repo/.git/HEAD", "new");
	put(lab, "deep/bare/HEAD", "new");
	put(lab, "sub/.vscode/new", "new");
	put(lab, "new/.git/HEAD", "x");
	end(lab);
	expect_held(lab, "deep/repo/.git/config");
	expect_held(lab, "sub/.vscode/new");
	expect_held(lab, "new/.git");
	assert_int_equal(lab->result.found, 3);
}

/* The wall clock was set back meanwhile: stamps of new things are older than the start. */
static void a_clock_that_was_set_back(void **state)
{
	struct lab *lab = *state;

	put(lab, "a/.vscode/x", "x");
	begin(lab);
	lab->sweep.begin_ns += INT64_C(3600) * 1000000000;
	lab->sweep.wall_offset_ns += INT64_C(3600) * 1000000000;
	put(lab, "b/.vscode/x", "x");
	end(lab);
	expect_held(lab, "b/.vscode");
	assert_int_equal(lab->result.found, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(work_is_left_alone),
		TEST(what_is_new_is_held),
		TEST(a_rename_or_link_makes_it_new),
		TEST(bare_repositories_lose_their_head),
		TEST(an_old_repository_is_looked_into),
		TEST(what_may_have_been_moved_is_known_or_held),
		TEST(covered_ones_are_not_looked_at),
		TEST(the_old_file_is_put_back),
		TEST(settings_that_were_there_keep_the_rest),
		TEST(absent_targets_are_held),
		TEST(hostile_names_neither_hang_nor_hide),
		TEST(the_deepest_is_found),
		TEST(a_tree_that_is_too_large_is_said),
		TEST(what_cannot_be_held_loses_its_name),
		TEST(without_a_clock_the_look_before_counts),
		TEST(a_clock_that_was_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
