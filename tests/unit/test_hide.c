#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "workspace/hide.h"

static void show(struct fixture *fixture, enum path_class class, const char *path)
{
	char *target = arena_format(&fixture->arena, "%s/%s", fixture->root, path);

	assert_true(view_add(&fixture->policy.view, &fixture->arena,
			     (struct view_path){ .class = class,
						 .kind = PATH_KIND_DIRECTORY,
						 .source = target,
						 .target = target }));
}

static int set_up(void **state)
{
	struct fixture *fixture = fixture_new();

	show(fixture, PATH_WRITE, "work");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	fixture_free(*state);
	return 0;
}

static int hide(struct fixture *fixture, const char *argument, struct error *error)
{
	*error = ERROR_NONE;
	return hide_view(PATH_HIDE, argument, 0, &fixture->arena, &fixture->policy, error);
}

static int protect(struct fixture *fixture, const char *argument, struct error *error)
{
	*error = ERROR_NONE;
	return hide_view(PATH_PROTECT, argument, 0, &fixture->arena, &fixture->policy, error);
}

static void hide_well(struct fixture *fixture, const char *argument)
{
	struct error error;

	if (hide(fixture, argument, &error) != 0)
		fail_msg("%s", error.message);
}

static size_t hidden(const struct fixture *fixture)
{
	size_t count = 0;

	for (size_t i = 0; i < fixture->policy.view.count; i++)
		count += fixture->policy.view.paths[i].class == PATH_HIDE;
	return count;
}

static void names_files_and_directories(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *row;
	struct stat status;

	make(fixture, "work/a/secret", "x");
	make(fixture, "work/keys/one", "x");
	hide_well(fixture, "a/secret");
	hide_well(fixture, arena_format(&fixture->arena, "%s/keys/", fixture->work));
	row = row_at(fixture, PATH_HIDE, "work/a/secret");
	assert_non_null(row);
	assert_int_equal(row->kind, PATH_KIND_FILE);
	assert_int_equal(stat(row->source, &status), 0);
	assert_int_equal(row->inode, status.st_ino);
	row = row_at(fixture, PATH_HIDE, "work/keys");
	assert_non_null(row);
	assert_int_equal(row->kind, PATH_KIND_DIRECTORY);
	assert_int_equal(hidden(fixture), 2);
}

static void missing_name_is_hidden_not_protected(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *row;
	struct error error;

	hide_well(fixture, "not/there");
	row = row_at(fixture, PATH_HIDE, "work/not/there");
	assert_non_null(row);
	assert_int_equal(row->kind, PATH_KIND_MISSING);
	assert_int_equal(protect(fixture, "other", &error), -ENOENT);
	assert_non_null(strstr(error.message, "work/other"));
	assert_int_equal(protect(fixture, "/nowhere/else", &error), -ENOENT);
	assert_int_equal(protect(fixture, "*.none", &error), -ENOENT);
	assert_non_null(strstr(error.message, "*.none"));
}

static void malformed_arguments_are_refused(void **state)
{
	static const char *const arguments[] = {
		"",    "..",	"a/../b", "/",	 "../x", "a/[b",
		"**a", "x/**y", "../*",	  "a\\", ".",	 "a/../*"
	};
	struct fixture *fixture = *state;
	struct error error;

	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		if (hide(fixture, arguments[i], &error) != -EINVAL)
			fail_msg("\"%s\": %s", arguments[i], error.message);
		assert_true(error.message[0] != '\0');
	}
	assert_int_equal(hide(fixture, fixture->work, &error), -EINVAL);
	assert_int_equal(hide(fixture, fixture->root, &error), -EINVAL);
	assert_int_equal(hidden(fixture), 0);
}

static void globs_match_names_not_what_lies_below(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "work/.env", "x");
	make(fixture, "work/a/.env", "x");
	make(fixture, "work/a/b/.env.local", "x");
	make(fixture, "work/secrets/.env", "x");
	make(fixture, "work/a/environment", "x");
	hide_well(fixture, "**/.env*");
	assert_int_equal(hidden(fixture), 4);
	assert_non_null(row_at(fixture, PATH_HIDE, "work/.env"));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/a/b/.env.local"));
	hide_well(fixture, "sec*");
	assert_int_equal(row_at(fixture, PATH_HIDE, "work/secrets")->kind, PATH_KIND_DIRECTORY);
	hide_well(fixture, arena_format(&fixture->arena, "%s/?/env*", fixture->work));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/a/environment"));
}

static void absolute_globs_search_every_shown_tree(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "work/in/x.pem", "x");
	make(fixture, "shown/deep/y.pem", "x");
	make(fixture, "absent/z.pem", "x");
	show(fixture, PATH_READ, "shown");
	show(fixture, PATH_READ, "shown/deep");
	hide_well(fixture, arena_format(&fixture->arena, "%s/**/*.pem", fixture->root));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/in/x.pem"));
	assert_non_null(row_at(fixture, PATH_HIDE, "shown/deep/y.pem"));
	assert_int_equal(hidden(fixture), 2);
}

/* A row's target is another path than its source: arguments speak of the target. */
static void moved_rows_are_searched_at_their_source(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *row;

	make(fixture, "data/nvm/etc/npmrc", "x");
	assert_true(view_add(
		&fixture->policy.view, &fixture->arena,
		(struct view_path){
			.class = PATH_READ,
			.kind = PATH_KIND_DIRECTORY,
			.source = arena_format(&fixture->arena, "%s/data/nvm", fixture->root),
			.target = arena_format(&fixture->arena, "%s/home/.nvm", fixture->root) }));
	hide_well(fixture, arena_format(&fixture->arena, "%s/home/**/npmrc", fixture->root));
	row = row_at(fixture, PATH_HIDE, "home/.nvm/etc/npmrc");
	assert_non_null(row);
	assert_non_null(strstr(row->source, "/data/nvm/etc/npmrc"));
	assert_int_equal(row->kind, PATH_KIND_FILE);
}

static void link_is_hidden_with_what_it_leads_to(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	make(fixture, "shown/secret", "x");
	make(fixture, "work/real", "x");
	show(fixture, PATH_READ, "shown");
	make_link(fixture, "shown/link", "secret");
	make_link(fixture, "work/link", "real");
	make_link(fixture, "work/out", "/etc/passwd");
	make_link(fixture, "work/loop", "loop");
	hide_well(fixture, arena_format(&fixture->arena, "%s/shown/link", fixture->root));
	assert_non_null(row_at(fixture, PATH_HIDE, "shown/link"));
	assert_non_null(row_at(fixture, PATH_HIDE, "shown/secret"));
	hide_well(fixture, "link");
	assert_non_null(row_at(fixture, PATH_HIDE, "work/real"));
	assert_int_equal(row_at(fixture, PATH_HIDE, "work/link")->kind, PATH_KIND_MISSING);
	hide_well(fixture, "out");
	hide_well(fixture, "loop");
	assert_int_equal(row_at(fixture, PATH_HIDE, "work/out")->kind, PATH_KIND_MISSING);
	assert_int_equal(hidden(fixture), 6);
	assert_int_equal(protect(fixture, "out", &error), -ENOENT);
}

/* work/way is a link to work/place: the name that is hidden is the one in place. */
static void links_on_the_way_are_resolved(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "work/place/secret", "x");
	make(fixture, "work/place/a.pem", "x");
	make_link(fixture, "work/way", "place");
	make_link(fixture, "work/outside", "/etc");
	hide_well(fixture, "way/secret");
	assert_non_null(row_at(fixture, PATH_HIDE, "work/place/secret"));
	hide_well(fixture, "way/*.pem");
	assert_non_null(row_at(fixture, PATH_HIDE, "work/place/a.pem"));
	hide_well(fixture, "outside/passwd");
	assert_int_equal(row_at(fixture, PATH_HIDE, "work/outside/passwd")->kind,
			 PATH_KIND_MISSING);
}

static void files_with_other_names_are_not_hidden(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char one[128], two[128];

	make(fixture, "work/secret", "x");
	make(fixture, "shown/secret", "x");
	show(fixture, PATH_READ, "shown");
	for (int i = 0; i < 2; i++) {
		snprintf(one, sizeof(one), "%s/%s/secret", fixture->root, i ? "shown" : "work");
		snprintf(two, sizeof(two), "%s/%s/other", fixture->root, i ? "shown" : "work");
		assert_int_equal(link(one, two), 0);
	}
	assert_int_equal(hide(fixture, "secret", &error), -EMLINK);
	assert_non_null(strstr(error.message, "work/secret"));
	assert_int_equal(hide(fixture, "s*", &error), -EMLINK);
	assert_int_equal(protect(fixture, "secret", &error), -EMLINK);
	/* nor where nothing is written: it would be read by the other */
	assert_int_equal(hide(fixture, one, &error), -EMLINK);
	assert_int_equal(hidden(fixture), 0);
	assert_int_equal(unlink(two), 0);
	hide_well(fixture, one);
	assert_int_equal(hidden(fixture), 1);
}

static void odd_names_and_objects(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	make(fixture, "work/new\nline", "x");
	make(fixture, "work/\xff\xfe/x", "x");
	make(fixture, "work/ ", "x");
	make(fixture, "work/-x", "x");
	snprintf(path, sizeof(path), "%s/fifo", fixture->work);
	assert_int_equal(mkfifo(path, 0600), 0);
	make_link(fixture, "work/up", "..");
	make_link(fixture, "work/self", ".");
	hide_well(fixture, "**/*x");
	hide_well(fixture, "new*");
	hide_well(fixture, "f?fo");
	assert_non_null(row_at(fixture, PATH_HIDE, "work/new\nline"));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/\xff\xfe/x"));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/-x"));
	assert_non_null(row_at(fixture, PATH_HIDE, "work/fifo"));
	assert_int_equal(hidden(fixture), 4);
}

/* One that its owner could open again is hidden whole. */
static void unreadable_directory_of_the_callers(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	if (geteuid() == 0)
		skip();
	make(fixture, "work/shut/x.pem", "x");
	snprintf(path, sizeof(path), "%s/shut", fixture->work);
	assert_int_equal(chmod(path, 0), 0);
	hide_well(fixture, "**/*.pem");
	assert_int_equal(row_at(fixture, PATH_HIDE, "work/shut")->kind, PATH_KIND_DIRECTORY);
}

/* Each level a directory "d", deeper than any path can name. */
static void dig(const struct fixture *fixture, unsigned depth)
{
	int fd = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

/* nftw() cannot remove it: no path reaches its end. Levels are taken from the top. */
static void fill_in(const struct fixture *fixture)
{
	int top = open(fixture->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (renameat(top, "d/d", top, "e") == 0) {
		assert_int_equal(unlinkat(top, "d", AT_REMOVEDIR), 0);
		assert_int_equal(renameat(top, "e", top, "d"), 0);
	}
	close(top);
}

static void deep_tree_is_an_error_that_names_the_limit(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	int result;

	dig(fixture, 5000);
	make(fixture, "work/a/x.pem", "x");
	result = hide(fixture, "**/*.pem", &error);
	assert_int_equal(result, -E2BIG);
	assert_non_null(strstr(error.message, "256 levels"));
	/* where the pattern cannot match that deep nobody looks */
	hide_well(fixture, "*/*.pem");
	assert_non_null(row_at(fixture, PATH_HIDE, "work/a/x.pem"));
	fill_in(fixture);
}

static void deep_enough_is_found(void **state)
{
	struct fixture *fixture = *state;
	char path[600] = "work";

	for (int i = 0; i < 200; i++)
		strcat(path, "/d");
	strcat(path, "/x.pem");
	make(fixture, path, "x");
	hide_well(fixture, "**/*.pem");
	assert_non_null(row_at(fixture, PATH_HIDE, path));
}

static void too_many_matches_are_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char path[64];

	for (unsigned i = 0; i <= VIEW_LIMIT_PATHS; i++) {
		snprintf(path, sizeof(path), "work/%u.pem", i);
		make(fixture, path, "");
	}
	assert_int_equal(hide(fixture, "*.pem", &error), -E2BIG);
	assert_non_null(strstr(error.message, "4096"));
}

static void hidden_trees_are_not_searched_again(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	make(fixture, "work/keys/a.pem", "x");
	hide_well(fixture, "keys");
	hide_well(fixture, "**/*.pem");
	assert_int_equal(hidden(fixture), 1);
	assert_int_equal(protect(fixture, "keys/a.pem", &error), -ENOENT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_files_and_directories),
		CASE(missing_name_is_hidden_not_protected),
		CASE(malformed_arguments_are_refused),
		CASE(globs_match_names_not_what_lies_below),
		CASE(absolute_globs_search_every_shown_tree),
		CASE(moved_rows_are_searched_at_their_source),
		CASE(link_is_hidden_with_what_it_leads_to),
		CASE(links_on_the_way_are_resolved),
		CASE(files_with_other_names_are_not_hidden),
		CASE(odd_names_and_objects),
		CASE(unreadable_directory_of_the_callers),
		CASE(deep_tree_is_an_error_that_names_the_limit),
		CASE(deep_enough_is_found),
		CASE(too_many_matches_are_an_error),
		CASE(hidden_trees_are_not_searched_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
