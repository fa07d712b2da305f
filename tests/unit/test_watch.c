#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "workspace/watch.h"

static int setup(void **state)
{
	*state = fixture_new();
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static void add(struct fixture *fixture, enum path_class class, enum path_kind kind,
		const char *path)
{
	const char *name = arena_format(&fixture->arena, "%s/%s", fixture->root, path);

	assert_true(
		view_add(&fixture->policy.view, &fixture->arena,
			 (struct view_path){
				 .class = class, .kind = kind, .source = name, .target = name }));
}

static struct watch opened(struct fixture *fixture)
{
	struct watch watch;
	struct error error = ERROR_NONE;

	if (watch_open(&fixture->policy.view, &watch, &error) < 0)
		fail_msg("%s", error.message);
	return watch;
}

/* Everything that changed, as "+name" (created), "~name" (replaced) and "-name" (removed). */
static const char *changes(struct fixture *fixture, struct watch *watch)
{
	static const char marks[] = {
		[WATCH_CREATED] = '+', [WATCH_REPLACED] = '~', [WATCH_REMOVED] = '-'
	};
	struct watch_change change;
	struct error error = ERROR_NONE;
	const char *text = "";

	if (watch_read(watch, &error) < 0)
		fail_msg("%s", error.message);
	while (watch_next(watch, &change)) {
		const char *target = fixture->policy.view.paths[change.row].target;

		text = arena_format(&fixture->arena, "%s%s%c%s", text, text[0] ? " " : "",
				    marks[change.event], strrchr(target, '/') + 1);
		assert_string_equal(change.root, fixture->work);
	}
	assert_non_null(text);
	return text;
}

static char *path_of(struct fixture *fixture, const char *path)
{
	return arena_format(&fixture->arena, "%s/%s", fixture->root, path);
}

static void move(struct fixture *fixture, const char *from, const char *to)
{
	assert_int_equal(rename(path_of(fixture, from), path_of(fixture, to)), 0);
}

static void nothing_to_watch_costs_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	add(fixture, PATH_READ, PATH_KIND_DIRECTORY, "home");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	/* by name already: an overlay's whiteout */
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "home/secret");
	/* outside of everything that is shown */
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "state/secret");
	watch = opened(fixture);
	assert_int_equal(watch.fd, -1);
	watch_close(&watch);
}

static void names_that_come_and_go(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	make(fixture, "work/one", "x");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/one");
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/two");
	watch = opened(fixture);
	assert_true(watch.fd >= 0);
	assert_string_equal(changes(fixture, &watch), "");
	make(fixture, "work/other", "x");
	assert_string_equal(changes(fixture, &watch), "");
	move(fixture, "work/other", "work/one");
	assert_string_equal(changes(fixture, &watch), "~one");
	make(fixture, "work/two", "x");
	assert_string_equal(changes(fixture, &watch), "+two");
	/* written in place is the same object */
	make(fixture, "work/two", "y");
	assert_string_equal(changes(fixture, &watch), "");
	move(fixture, "work/one", "work/aside");
	assert_string_equal(changes(fixture, &watch), "-one");
	make_link(fixture, "work/one", "nowhere");
	move(fixture, "work/aside", "work/two");
	assert_string_equal(changes(fixture, &watch), "+one ~two");
	watch_close(&watch);
	assert_int_equal(watch.fd, -1);
}

static void name_that_came_before_the_watch_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/late");
	make(fixture, "work/late", "x");
	watch = opened(fixture);
	assert_string_equal(changes(fixture, &watch), "+late");
	assert_string_equal(changes(fixture, &watch), "");
	watch_close(&watch);
}

static void parents_that_do_not_exist_yet(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/a/b/c/key");
	watch = opened(fixture);
	/* made step by step, and all at once */
	make(fixture, "work/a", NULL);
	assert_string_equal(changes(fixture, &watch), "");
	make(fixture, "work/a/b/c/key", "x");
	assert_string_equal(changes(fixture, &watch), "+key");
	move(fixture, "work/a/b", "work/b");
	assert_string_equal(changes(fixture, &watch), "-key");
	/* what happens in the directory that was moved away is no business of ours */
	make(fixture, "work/b/c/key2", "x");
	move(fixture, "work/b/c/key2", "work/b/c/key");
	assert_string_equal(changes(fixture, &watch), "");
	make(fixture, "work/new/c/key", "x");
	move(fixture, "work/new", "work/a/b");
	assert_string_equal(changes(fixture, &watch), "+key");
	make(fixture, "work/a/b/c/key2", "x");
	move(fixture, "work/a/b/c/key2", "work/a/b/c/key");
	assert_string_equal(changes(fixture, &watch), "~key");
	watch_close(&watch);
}

static void links_and_pipes_on_the_way_are_not_followed(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	make(fixture, "work/a/key", "x");
	make(fixture, "state/outside/key", "x");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/a/key");
	watch = opened(fixture);
	move(fixture, "work/a", "work/b");
	make_link(fixture, "work/a", path_of(fixture, "state/outside"));
	assert_string_equal(changes(fixture, &watch), "-key");
	make(fixture, "state/outside/new", "x");
	move(fixture, "state/outside/new", "state/outside/key");
	assert_string_equal(changes(fixture, &watch), "");
	assert_int_equal(unlink(path_of(fixture, "work/a")), 0);
	assert_int_equal(mkfifo(path_of(fixture, "work/a"), 0600), 0);
	assert_string_equal(changes(fixture, &watch), "");
	assert_int_equal(unlink(path_of(fixture, "work/a")), 0);
	move(fixture, "work/b", "work/a");
	assert_string_equal(changes(fixture, &watch), "+key");
	watch_close(&watch);
}

/* The deepest row counts, and below a hidden directory nothing is looked for. */
static void only_what_a_mount_covers_is_watched(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	make(fixture, "work/read/key", "x");
	make(fixture, "work/hidden/key", "x");
	make(fixture, "work/kept", "x");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_READ, PATH_KIND_DIRECTORY, "work/read");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/read/key");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/hidden/key");
	add(fixture, PATH_HIDE, PATH_KIND_DIRECTORY, "work/hidden");
	add(fixture, PATH_PROTECT, PATH_KIND_FILE, "work/kept");
	watch = opened(fixture);
	/* the read-only tree itself, which is a mount too */
	assert_int_equal(watch.name_count, 3);
	make(fixture, "work/read/new", "x");
	move(fixture, "work/read/new", "work/read/key");
	make(fixture, "work/hidden/new", "x");
	move(fixture, "work/hidden/new", "work/hidden/key");
	assert_string_equal(changes(fixture, &watch), "");
	make(fixture, "work/new", "x");
	move(fixture, "work/new", "work/kept");
	move(fixture, "work/hidden", "work/old");
	move(fixture, "work/read", "work/moved");
	assert_string_equal(changes(fixture, &watch), "-read -hidden ~kept");
	watch_close(&watch);
}

/* A writable row in another one has no mount of its own: the outer one counts. */
static void writable_in_writable_is_one_tree(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch;

	make(fixture, "work/sub/key", "x");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work/sub");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/sub/key");
	watch = opened(fixture);
	move(fixture, "work/sub", "work/old");
	make(fixture, "work/sub/key", "x");
	assert_string_equal(changes(fixture, &watch), "~key");
	watch_close(&watch);
}

/* One object under two names of the view has one watch; each name is told. */
static void one_directory_under_two_names(void **state)
{
	struct fixture *fixture = *state;
	struct view *view = &fixture->policy.view;
	struct watch watch;

	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/key");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work/again");
	/* the same directory, shown in two places */
	view->paths[2].source = fixture->work;
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/again/key");
	watch = opened(fixture);
	make(fixture, "work/key", "x");
	{
		struct watch_change change;
		struct error error;
		unsigned told = 0;

		assert_int_equal(watch_read(&watch, &error), 0);
		while (watch_next(&watch, &change))
			told |= 1u << change.row;
		assert_int_equal(told, 1u << 1 | 1u << 3);
	}
	watch_close(&watch);
}

static unsigned queue_length(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	unsigned length = 0;

	if (file) {
		assert_int_equal(fscanf(file, "%u", &length), 1);
		(void)fclose(file);
	}
	return length;
}

static void lost_events_mean_that_all_may_have_changed(void **state)
{
	struct fixture *fixture = *state;
	unsigned length = queue_length();
	const char *first = path_of(fixture, "work/noise"), *second = path_of(fixture, "work/more");
	struct watch watch;
	unsigned reads = 0;

	if (!length || length > 100000)
		skip();
	make(fixture, "work/one", "x");
	make(fixture, "work/a/two", "x");
	make(fixture, "work/noise", "x");
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/one");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/a/two");
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/three");
	watch = opened(fixture);
	for (unsigned i = 0; i <= length / 2; i++) {
		assert_int_equal(rename(first, second), 0);
		assert_int_equal(rename(second, first), 0);
	}
	/* none of these is in the queue any more */
	move(fixture, "work/noise", "work/one");
	move(fixture, "work/a", "work/b");
	make(fixture, "work/a/two", "x");
	/* in batches: none keeps the reader for long */
	while (!strstr(changes(fixture, &watch), "~one"))
		assert_true(reads++ < 10000);
	assert_true(reads > 10);
	/* watched anew: directories too */
	make(fixture, "work/a/new", "x");
	move(fixture, "work/a/new", "work/a/two");
	make(fixture, "work/three", "x");
	assert_string_equal(changes(fixture, &watch), "~two +three");
	watch_close(&watch);
}

static void too_many_directories_are_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch = WATCH_NONE;
	struct error error = ERROR_NONE;

	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	for (unsigned i = 0; i + 1 < VIEW_LIMIT_PATHS; i++)
		add(fixture, PATH_HIDE, PATH_KIND_MISSING,
		    arena_format(&fixture->arena, "work/d%u/e/key", i));
	assert_int_equal(watch_open(&fixture->policy.view, &watch, &error), -E2BIG);
	assert_non_null(strstr(error.message, "4096"));
	assert_int_equal(watch.fd, -1);
}

static void blind_directory_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch = WATCH_NONE;
	struct error error = ERROR_NONE;

	if (geteuid() == 0)
		skip();
	make(fixture, "work/blind/key", "x");
	assert_int_equal(chmod(path_of(fixture, "work/blind"), 0300), 0);
	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	add(fixture, PATH_HIDE, PATH_KIND_FILE, "work/blind/key");
	assert_int_equal(watch_open(&fixture->policy.view, &watch, &error), -EACCES);
	assert_non_null(strstr(error.message, "work/blind"));
}

static void root_that_became_another_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct watch watch = WATCH_NONE;
	struct error error = ERROR_NONE;

	add(fixture, PATH_WRITE, PATH_KIND_DIRECTORY, "work");
	fixture->policy.view.paths[0].device = 1;
	fixture->policy.view.paths[0].inode = 1;
	add(fixture, PATH_HIDE, PATH_KIND_MISSING, "work/key");
	assert_int_equal(watch_open(&fixture->policy.view, &watch, &error), -ESTALE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_to_watch_costs_nothing),
		CASE(names_that_come_and_go),
		CASE(name_that_came_before_the_watch_is_told),
		CASE(parents_that_do_not_exist_yet),
		CASE(links_and_pipes_on_the_way_are_not_followed),
		CASE(only_what_a_mount_covers_is_watched),
		CASE(writable_in_writable_is_one_tree),
		CASE(one_directory_under_two_names),
		CASE(lost_events_mean_that_all_may_have_changed),
		CASE(too_many_directories_are_an_error),
		CASE(blind_directory_is_an_error),
		CASE(root_that_became_another_is_an_error),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
