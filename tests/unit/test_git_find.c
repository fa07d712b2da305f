#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "workspace/git_find.h"
#include "workspace/git_look.h"
#include "workspace/git_way.h"

static int set_up(void **state)
{
	struct fixture *fixture = fixture_new();

	/* danger.h speaks of real paths */
	fixture->host.real_home = fixture->home;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	fixture_free(*state);
	return 0;
}

static void show(struct fixture *fixture, enum path_class class, const char *path, const char *flag)
{
	char *name = arena_format(&fixture->arena, "%s/%s", fixture->root, path);
	struct rule_ref rule = { .id = "x", .file = flag };
	struct view_path row = { .class = class,
				 .kind = PATH_KIND_DIRECTORY,
				 .source = name,
				 .target = name,
				 .rule = policy_rule(&fixture->policy, &fixture->arena, rule) };

	assert_true(view_add(&fixture->policy.view, &fixture->arena, row));
}

static int find(struct fixture *fixture, struct git_found *found, struct error *error)
{
	*found = (struct git_found){ .count = 0 };
	*error = ERROR_NONE;
	fixture->policy.view.count = 0;
	show(fixture, PATH_WRITE, "work", NULL);
	return git_find(&fixture->host, fixture->state, &fixture->arena, &fixture->policy, found,
			error);
}

static struct git_found find_well(struct fixture *fixture)
{
	struct git_found found;
	struct error error;

	if (find(fixture, &found, &error) != 0)
		fail_msg("%s", error.message);
	return found;
}

static void refused(struct fixture *fixture, int code, const char *word)
{
	struct git_found found;
	struct error error;

	assert_int_equal(find(fixture, &found, &error), code);
	if (!strstr(error.message, word))
		fail_msg("\"%s\" lacks \"%s\"", error.message, word);
}

static void make_repository(struct fixture *fixture, const char *path)
{
	static const char *const names[] = { "objects/info", "objects/pack", "refs/heads",
					     "hooks" };
	char name[512];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		make(fixture, name, NULL);
	}
	(void)snprintf(name, sizeof(name), "%s/HEAD", path);
	make(fixture, name, "ref: refs/heads/main\n");
}

/* A file below the root, its text made of the root's path. */
static void write_with_root(struct fixture *fixture, const char *path, const char *format)
{
	char text[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(text, sizeof(text), format, fixture->root);
#pragma GCC diagnostic pop
	make(fixture, path, text);
}

static const struct git_directory *item_at(struct fixture *fixture, const struct git_found *found,
					   const char *path)
{
	char name[512];

	(void)snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->items[i].path, name) == 0)
			return &found->items[i];
	return NULL;
}

static void nothing_there(void **state)
{
	struct fixture *fixture = *state;
	struct git_found found = find_well(fixture);

	assert_int_equal(found.count, 0);
	assert_int_equal(fixture->policy.view.count, 1);
}

static void a_plain_checkout(void **state)
{
	struct fixture *fixture = *state;
	const struct git_directory *item;
	struct git_found found;
	char upper[256];

	make_repository(fixture, "work/.git");
	make(fixture, "work/.vscode", NULL);
	make(fixture, "work/.idea", "no directory");
	found = find_well(fixture);
	assert_int_equal(found.count, 1);
	item = item_at(fixture, &found, "work/.git");
	assert_non_null(item);
	assert_int_equal(item->kind, GIT_DIRECTORY_MAIN);
	assert_string_equal(item->worktree, fixture->work);
	assert_non_null(row_at(fixture, PATH_GIT, "work/.git"));
	assert_int_equal(row_at(fixture, PATH_GIT, "work/.git")->inode, item->inode);
	assert_non_null(row_at(fixture, PATH_OBJECTS, "work/.git/objects"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.vscode"));
	assert_null(row_at(fixture, PATH_PROTECT, "work/.idea"));
	(void)snprintf(upper, sizeof(upper), "/t/git/%u/upper", item->layer);
	assert_string_equal(git_find_upper(item, "/t", &fixture->arena), upper);
}

/* Read-only by their names, however many others there are. */
static void settings_of_editors_and_agents(void **state)
{
	struct fixture *fixture = *state;
	char name[32];

	make_repository(fixture, "work/.git");
	make(fixture, "work/.helix", NULL);
	make(fixture, "work/.kiro", NULL);
	make(fixture, "work/.husky", NULL);
	make(fixture, "work/.hg", NULL);
	make(fixture, "work/.claude", NULL);
	make_repository(fixture, "work/.claude/.git");
	for (unsigned i = 0; i < GIT_FIND_LIMIT_ENTRIES + 8; i++) {
		(void)snprintf(name, sizeof(name), "work/%u", i);
		make(fixture, name, NULL);
	}
	(void)find_well(fixture);
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.helix"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.kiro"));
	/* a repository, too: --write lifts the one and not the other */
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.claude"));
	assert_non_null(row_at(fixture, PATH_GIT, "work/.claude/.git"));
	/* git alone runs the one, and the other is to be worked with */
	assert_null(row_at(fixture, PATH_PROTECT, "work/.husky"));
	assert_null(row_at(fixture, PATH_PROTECT, "work/.hg"));
}

/* Modules, those of modules, and those whose names have slashes: one overlay. */
static void modules_and_worktrees(void **state)
{
	struct fixture *fixture = *state;
	static const char *const modules[] = { "work/.git/modules/one", "work/.git/modules/a/b/two",
					       "work/.git/modules/one/modules/inner" };
	const struct git_directory *item;
	struct git_found found;

	make_repository(fixture, "work/.git");
	for (size_t i = 0; i < 3; i++)
		make_repository(fixture, modules[i]);
	make(fixture, "work/.git/modules/one/config", "[core]\n\tworktree = ../../../libs/one\n");
	make(fixture, "work/libs/one/.git", "gitdir: ../../.git/modules/one\n");
	make(fixture, "work/.git/worktrees/tree/commondir", "../..\n");
	write_with_root(fixture, "work/.git/worktrees/tree/gitdir", "%s/work/tree/.git\n");
	make(fixture, "work/tree/.git", "gitdir: ../.git/worktrees/tree\n");
	make(fixture, "work/.git/worktrees/gone/gitdir", "/nonexistent/.git\n");
	found = find_well(fixture);
	assert_int_equal(found.count, 6);
	for (size_t i = 0; i < 3; i++) {
		item = item_at(fixture, &found, modules[i]);
		assert_non_null(item);
		assert_int_equal(item->kind, GIT_DIRECTORY_MODULE);
		assert_int_equal(item->layer, 0);
		assert_string_equal(item->below, modules[i] + sizeof("work/.git"));
		assert_string_equal(item->common, item->path);
		assert_non_null(row_at(fixture, PATH_OBJECTS,
				       arena_format(&fixture->arena, "%s/objects", modules[i])));
	}
	item = item_at(fixture, &found, "work/.git/worktrees/tree");
	assert_int_equal(item->kind, GIT_DIRECTORY_WORKTREE);
	assert_string_equal(item->common, found.items[0].path);
	assert_string_equal(git_find_upper(item, "/t", &fixture->arena),
			    "/t/git/0/upper/worktrees/tree");
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/libs/one/.git"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/tree/.git"));
	assert_null(item_at(fixture, &found, "work/.git/worktrees/gone")->worktree);
}

static void make_linked(struct fixture *fixture)
{
	make_repository(fixture, "main/.git");
	make(fixture, "main/.git/worktrees/w/commondir", "../..\n");
	make(fixture, "main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
	write_with_root(fixture, "main/.git/worktrees/w/gitdir", "%s/work/.git\n");
	write_with_root(fixture, "work/.git", "gitdir: %s/main/.git/worktrees/w\n");
}

static void a_linked_worktree(void **state)
{
	struct fixture *fixture = *state;
	struct git_found found;

	make_linked(fixture);
	found = find_well(fixture);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.items[0].kind, GIT_DIRECTORY_COMMON);
	assert_non_null(row_at(fixture, PATH_GIT, "main/.git"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.git"));
	assert_string_equal(item_at(fixture, &found, "main/.git/worktrees/w")->worktree,
			    fixture->work);

	/* another's */
	write_with_root(fixture, "main/.git/worktrees/w/gitdir", "%s/other/.git\n");
	refused(fixture, -EPERM, "another worktree");
	make_linked(fixture);
	make(fixture, "main/.git/worktrees/w/commondir", "../../..\n");
	refused(fixture, -EPERM, "commondir");
	make(fixture, "main/.git/worktrees/w/commondir", "/\n");
	refused(fixture, -EPERM, "commondir");
}

static void what_lies_outside(void **state)
{
	struct fixture *fixture = *state;

	make_repository(fixture, "store");
	write_with_root(fixture, "work/.git", "gitdir: %s/store\n");
	assert_int_equal(find_well(fixture).count, 1);
	assert_non_null(row_at(fixture, PATH_GIT, "store"));
	/* it is the caller's checkout, unless that says that it is this one's */
	make_repository(fixture, "checkout/.git");
	write_with_root(fixture, "work/.git", "gitdir: %s/checkout/.git\n");
	refused(fixture, -EPERM, "another checkout");
	write_with_root(fixture, "checkout/.git/config", "[core]\n\tworktree = %s/work\n");
	assert_int_equal(find_well(fixture).count, 1);
	/* no repository, keys, bawn's state */
	make(fixture, "bare/HEAD", "x");
	write_with_root(fixture, "work/.git", "gitdir: %s/bare\n");
	refused(fixture, -EPERM, "no git directory");
	make_repository(fixture, "home/.ssh/repository");
	write_with_root(fixture, "work/.git", "gitdir: %s/home/.ssh/repository\n");
	refused(fixture, -EPERM, "keys");
	make_repository(fixture, "state/repository");
	write_with_root(fixture, "work/.git", "gitdir: %s/state/repository\n");
	refused(fixture, -EPERM, "state");
	make_repository(fixture, ".");
	make(fixture, "work/.git", "gitdir: ..\n");
	refused(fixture, -EPERM, "home");
}

static void links(void **state)
{
	struct fixture *fixture = *state;
	struct git_found found;

	make_repository(fixture, "work/deep/store");
	make_link(fixture, "work/.git", "way");
	make_link(fixture, "work/way", "deep/store");
	found = find_well(fixture);
	assert_int_equal(found.count, 1);
	assert_non_null(row_at(fixture, PATH_GIT, "work/deep/store"));
	assert_int_equal(row_at(fixture, PATH_PROTECT, "work/.git")->kind, PATH_KIND_LINK);
	assert_int_equal(row_at(fixture, PATH_PROTECT, "work/way")->kind, PATH_KIND_LINK);
	make_link(fixture, "work/way", "way");
	refused(fixture, -EPERM, "followed");
	/* git says so itself; something may appear there */
	make_link(fixture, "work/way", "later");
	found = find_well(fixture);
	assert_int_equal(found.count, 0);
	assert_int_equal(found.absent_count, 1);
}

static void what_is_obeyed(void **state)
{
	struct fixture *fixture = *state;
	struct git_found found;

	make_repository(fixture, "work/.git");
	make(fixture, "work/.git/config",
	     "[include]\n\tpath = ../one.cfg\n[core]\n\thooksPath = .husky/_\n");
	make(fixture, "work/one.cfg", "[includeIf \"gitdir:x\"]\n\tpath = sub/two.cfg\n");
	make(fixture, "work/sub/two.cfg", "[core]\n\thookspath = missing/hooks\n");
	make(fixture, "work/.husky/_", NULL);
	make_link(fixture, "work/.git/hooks/pre-commit", "../../scripts/check");
	make(fixture, "work/scripts/check", "#!/bin/sh\n");
	make(fixture, "home/.gitconfig", "[core]\n\thooksPath = team\n");
	make(fixture, "work/team", NULL);
	found = find_well(fixture);
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/one.cfg"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/sub/two.cfg"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/.husky"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/scripts/check"));
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/team"));
	assert_int_equal(found.absent_count, 1);
	assert_non_null(strstr(found.absent[0], "/work/missing"));
}

static void second_names(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = { "config", "HEAD", "hooks/pre-commit",
					     "info/attributes" };
	char from[512], to[512];

	make_repository(fixture, "work/.git");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(from, sizeof(from), "work/.git/%s", names[i]);
		make(fixture, from, "");
		(void)snprintf(from, sizeof(from), "%s/.git/%s", fixture->work, names[i]);
		(void)snprintf(to, sizeof(to), "%s/second", fixture->work);
		assert_int_equal(link(from, to), 0);
		refused(fixture, -EMLINK, names[i]);
		assert_int_equal(unlink(to), 0);
	}
	assert_int_equal(find_well(fixture).count, 1);
}

static void options_come_first(void **state)
{
	struct fixture *fixture = *state;
	static const enum path_class classes[] = { PATH_WRITE, PATH_READ, PATH_PROTECT, PATH_HIDE };

	make_repository(fixture, "work/.git");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		struct git_found found = { .count = 0 };
		struct error error = ERROR_NONE;

		fixture->policy.view.count = 0;
		show(fixture, PATH_WRITE, "work", NULL);
		show(fixture, classes[i], "work/.git", "--flag");
		assert_int_equal(git_find(&fixture->host, fixture->state, &fixture->arena,
					  &fixture->policy, &found, &error),
				 0);
		assert_int_equal(found.count, 0);
		assert_int_equal(fixture->policy.view.count, 2);
	}
}

static void below_the_top(void **state)
{
	struct fixture *fixture = *state;
	struct git_found found;

	make_repository(fixture, "work/vendor/.git");
	make_repository(fixture, "work/bare.git");
	make_repository(fixture, "work/far/away/.git");
	/* what only the top may lead to, and what is no fault of the start's */
	make_repository(fixture, "store");
	write_with_root(fixture, "work/outside/.git", "gitdir: %s/store\n");
	make(fixture, "work/odd/.git", "nonsense");
	found = find_well(fixture);
	assert_int_equal(found.count, 2);
	assert_non_null(row_at(fixture, PATH_GIT, "work/vendor/.git"));
	assert_non_null(row_at(fixture, PATH_GIT, "work/bare.git"));
	assert_int_not_equal(found.items[0].layer, found.items[1].layer);
	assert_non_null(row_at(fixture, PATH_PROTECT, "work/outside/.git"));
}

static void the_way(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = &fixture->arena;
	struct git_way way;
	struct stat status;

	make(fixture, "work/a/b/file", "x");
	make_link(fixture, "work/one", "a/b");
	make_link(fixture, "work/a/two", "../one/../b");
	assert_int_equal(git_way_find(arena, fixture->work, "a//./b/file", &way, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(way.link_count, 0);
	/* ".." behind a link is that of where it leads */
	assert_int_equal(git_way_find(arena, fixture->work, "a/two/file", &way, &status), 0);
	assert_int_equal(way.link_count, 2);
	assert_non_null(strstr(way.real, "/work/a/b/file"));
	assert_int_equal(git_way_find(arena, fixture->work, "a/b/file/", &way, &status), 0);
	assert_int_equal(git_way_find(arena, fixture->work, "a/b/file/x", &way, &status), -ENOTDIR);
	assert_int_equal(git_way_find(arena, fixture->work, "a/none/x", &way, &status), -ENOENT);
	assert_non_null(strstr(way.real, "/work/a/none"));
	assert_int_equal(git_way_find(arena, fixture->work, "", &way, &status), -ENOENT);
	assert_null(way.real);
	assert_int_equal(git_way_find(arena, fixture->work, "../../../../../..", &way, &status), 0);
	assert_string_equal(way.real, "/");
	make_link(fixture, "work/loop", "loop");
	assert_int_equal(git_way_find(arena, fixture->work, "loop", &way, &status), -ELOOP);
	assert_int_equal(way.link_count, GIT_WAY_LIMIT_LINKS);
}

static void reading_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	char text[16], path[128];
	int fd = open(fixture->work, O_PATH | O_DIRECTORY | O_CLOEXEC);

	make(fixture, "work/short", "text\r\n\n");
	assert_int_equal(git_look_read(fd, "short", text, sizeof(text)), 0);
	assert_string_equal(text, "text");
	make(fixture, "work/long", "0123456789abcdef");
	assert_int_equal(git_look_read(fd, "long", text, sizeof(text)), -EFBIG);
	make(fixture, "work/exact", "0123456789abcde");
	assert_int_equal(git_look_read(fd, "exact", text, sizeof(text)), 0);
	make_link(fixture, "work/link", "short");
	assert_int_equal(git_look_read(fd, "link", text, sizeof(text)), -EINVAL);
	(void)snprintf(path, sizeof(path), "%s/fifo", fixture->work);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(git_look_read(fd, "fifo", text, sizeof(text)), -EINVAL);
	assert_int_equal(git_look_read(fd, "none", text, sizeof(text)), -ENOENT);
	close(fd);
}

int main(void)
{
#define IN_A_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_A_FIXTURE(nothing_there),
		IN_A_FIXTURE(a_plain_checkout),
		IN_A_FIXTURE(settings_of_editors_and_agents),
		IN_A_FIXTURE(modules_and_worktrees),
		IN_A_FIXTURE(a_linked_worktree),
		IN_A_FIXTURE(what_lies_outside),
		IN_A_FIXTURE(links),
		IN_A_FIXTURE(what_is_obeyed),
		IN_A_FIXTURE(second_names),
		IN_A_FIXTURE(options_come_first),
		IN_A_FIXTURE(below_the_top),
		IN_A_FIXTURE(the_way),
		IN_A_FIXTURE(reading_is_bounded),
	};

	return cmocka_run_group_tests_name("git_find", tests, NULL, NULL);
}
