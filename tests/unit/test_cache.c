#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "plan/plan.h"
#include "workspace/cache.h"

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

static int gather(struct fixture *fixture, struct error *error)
{
	fixture->policy.view.count = 0;
	*error = ERROR_NONE;
	return cache_view(&fixture->host, fixture->state_fd, fixture->state, &fixture->arena,
			  &fixture->policy, error);
}

static void gather_well(struct fixture *fixture)
{
	struct error error;

	if (gather(fixture, &error) != 0)
		fail_msg("%s", error.message);
}

static void nothing_there_gives_nothing(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	gather_well(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
	snprintf(path, sizeof(path), "%s/caches", fixture->state);
	assert_int_equal(access(path, F_OK), -1);
}

static void assert_layer(const struct view_path *row, const char *name)
{
	char path[256];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", row->upper, name);
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(status.st_uid, geteuid());
}

static void host_cache_is_the_lower_layer(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *row;
	struct stat status;

	make(fixture, "home/.cargo/registry/index", "");
	make(fixture, "home/.cargo/credentials.toml", "x");
	gather_well(fixture);
	assert_int_equal(fixture->policy.view.count, 1);
	row = row_at(fixture, PATH_CACHE, "home/.cargo/registry");
	assert_non_null(row);
	assert_string_equal(row->source, row->target);
	assert_int_equal(stat(row->source, &status), 0);
	assert_int_equal(row->inode, status.st_ino);
	assert_int_equal(row->device, status.st_dev);
	assert_true(strncmp(row->upper, fixture->state, strlen(fixture->state)) == 0);
	assert_string_equal(fixture->policy.rules[row->rule].id, "cache.overlay");
	assert_layer(row, "upper");
	assert_layer(row, "work");
}

/* Tools' configuration and logs lie beside their caches and are no part of them. */
static void what_lies_beside_is_not_shown(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.npm/_cacache/a", "");
	make(fixture, "home/.npm/_logs/a", "");
	make(fixture, "home/.m2/repository/a", "");
	make(fixture, "home/.m2/settings.xml", "");
	make(fixture, "home/.gradle/caches/a", "");
	make(fixture, "home/.gradle/gradle.properties", "");
	gather_well(fixture);
	assert_int_equal(fixture->policy.view.count, 3);
	assert_non_null(row_at(fixture, PATH_CACHE, "home/.npm/_cacache"));
	assert_non_null(row_at(fixture, PATH_CACHE, "home/.m2/repository"));
	assert_non_null(row_at(fixture, PATH_CACHE, "home/.gradle/caches"));
}

static void project_that_will_use_a_cache_gets_one(void **state)
{
	static const struct {
		const char *mark, *cache;
	} rows[] = {
		{ "work/package.json", "home/.npm/_cacache" },
		{ "work/pyproject.toml", "home/.cache/pip" },
		{ "work/Cargo.toml", "home/.cargo/registry" },
		{ "work/go.mod", "home/.cache/go-build" },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct view_path *row;

		make(fixture, rows[i].mark, "");
		gather_well(fixture);
		row = row_at(fixture, PATH_CACHE, rows[i].cache);
		assert_non_null(row);
		assert_string_equal(row->source, "");
		assert_layer(row, "upper");
	}
}

static void projects_are_apart_and_stay(void **state)
{
	struct fixture *fixture = *state;
	const char *first, *second;

	make(fixture, "home/.cache/pip/a", "");
	gather_well(fixture);
	first = fixture->policy.view.paths[0].upper;
	gather_well(fixture);
	assert_string_equal(first, fixture->policy.view.paths[0].upper);
	fixture->policy.workspace = "/elsewhere";
	gather_well(fixture);
	second = fixture->policy.view.paths[0].upper;
	assert_string_not_equal(first, second);
}

static void left_overlay_work_does_no_harm(void **state)
{
	struct fixture *fixture = *state;
	char path[256];

	make(fixture, "home/.cache/pip/a", "");
	gather_well(fixture);
	snprintf(path, sizeof(path), "%s/work/work", fixture->policy.view.paths[0].upper);
	assert_int_equal(mkdir(path, 0), 0);
	snprintf(path, sizeof(path), "%s/upper", fixture->policy.view.paths[0].upper);
	/* a task can change its cache's own mode */
	assert_int_equal(chmod(path, 0), 0);
	gather_well(fixture);
	assert_int_equal(fixture->policy.view.count, 1);
}

/* Each name on the way replaced by a link to somewhere else. */
static void links_in_the_state_are_refused(void **state)
{
	struct fixture *fixture = *state;
	const char *upper, *project;
	char path[256], aside[300];
	const char *paths[4];
	struct error error;

	make(fixture, "home/.cache/pip/a", "");
	gather_well(fixture);
	upper = fixture->policy.view.paths[0].upper;
	project = arena_copy_bytes(&fixture->arena, upper, (size_t)(strrchr(upper, '/') - upper));
	snprintf(path, sizeof(path), "%s/caches", fixture->state);
	paths[0] = path;
	paths[1] = project;
	paths[2] = upper;
	paths[3] = arena_format(&fixture->arena, "%s/work", upper);
	for (size_t i = 0; i < 4; i++) {
		snprintf(aside, sizeof(aside), "%s-aside", paths[i]);
		assert_int_equal(rename(paths[i], aside), 0);
		assert_int_equal(symlink(aside, paths[i]), 0);
		assert_int_equal(gather(fixture, &error), -ENOTDIR);
		assert_non_null(strstr(error.message, "/pip"));
		assert_int_equal(unlink(paths[i]), 0);
		assert_int_equal(rename(aside, paths[i]), 0);
	}
	gather_well(fixture);
}

static void foreign_layer_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	make(fixture, "home/.cache/pip/a", "");
	gather_well(fixture);
	if (geteuid() == 0)
		assert_int_equal(chown(fixture->policy.view.paths[0].upper, 12345, 12345), 0);
	else
		skip();
	assert_int_equal(gather(fixture, &error), -EPERM);
}

static void layers_of_root_belong_to_the_task(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = { "", "/upper", "/work" };
	struct stat status;
	char path[256];

	if (geteuid() != 0)
		skip();
	make(fixture, "home/.cache/pip/a", "");
	/* first made as if a start had ended before the change of owner */
	gather_well(fixture);
	fixture->host.root = true;
	for (int again = 0; again < 2; again++) {
		gather_well(fixture);
		for (size_t i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s%s", fixture->policy.view.paths[0].upper,
				 names[i]);
			assert_int_equal(stat(path, &status), 0);
			assert_int_equal(status.st_uid, PLAN_ROOT_HOST_ID);
			assert_int_equal(status.st_gid, PLAN_ROOT_HOST_ID);
		}
		snprintf(path, sizeof(path), "%s/caches", fixture->state);
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_uid, 0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_there_gives_nothing),
		CASE(host_cache_is_the_lower_layer),
		CASE(what_lies_beside_is_not_shown),
		CASE(project_that_will_use_a_cache_gets_one),
		CASE(projects_are_apart_and_stay),
		CASE(left_overlay_work_does_no_harm),
		CASE(links_in_the_state_are_refused),
		CASE(foreign_layer_is_refused),
		CASE(layers_of_root_belong_to_the_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
