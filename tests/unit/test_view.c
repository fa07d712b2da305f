#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "policy/view.h"

static struct view_path rows[] = {
	{ .class = PATH_READ, .target = "/usr" },
	{ .class = PATH_WRITE, .target = "/usr/local/ws" },
	{ .class = PATH_HIDE, .target = "/usr/local/ws/.env" },
	{ .class = PATH_PROTECT, .target = "/usr/local/ws/ci" },
	{ .class = PATH_READ, .target = "/usr/local/ws/.env/shown" }, /* below what is hidden */
	{ .class = PATH_READ, .target = "/twice" },
	{ .class = PATH_WRITE, .target = "/twice" },
	{ .class = PATH_WRITE, .target = "/hidden/late" },
	{ .class = PATH_HIDE, .target = "/hidden" },
};

static const struct view view = { .paths = rows, .count = sizeof(rows) / sizeof(rows[0]) };

static void lookup(void **state)
{
	static const struct {
		const char *path;
		int row; /* -1 for none */
	} wanted[] = {
		{ "/", -1 },
		{ "/opt", -1 },
		{ "/us", -1 },
		{ "/usr2", -1 },
		{ "/usr", 0 },
		{ "/usr/bin/cat", 0 },
		{ "/usr/local", 0 },
		{ "/usr/local/ws2", 0 },
		{ "/usr/local/ws", 1 },
		{ "/usr/local/ws/a", 1 },
		{ "/usr/local/ws/.env2", 1 },
		{ "/usr/local/ws/.env", 2 },
		{ "/usr/local/ws/.env/a", 2 },
		{ "/usr/local/ws/.env/shown", 2 },
		{ "/usr/local/ws/.env/shown/a", 2 },
		{ "/usr/local/ws/ci", 3 },
		{ "/usr/local/ws/ci/a", 3 },
		{ "/twice", 6 },
		{ "/twice/a", 6 },
		{ "/hidden", 8 },
		{ "/hidden/late", 8 },
		{ "/hidden/late/a", 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct view_path *row = view_lookup(&view, wanted[i].path);
		int got = row ? (int)(row - rows) : -1;

		if (got != wanted[i].row)
			fail_msg("%s: row %d, wanted %d", wanted[i].path, got, wanted[i].row);
	}
	assert_null(view_lookup(&(struct view){ 0 }, "/usr"));
}

/* Whatever the order of the rows: a hidden path stays hidden. */
static void deny_beats_allow(void **state)
{
	static const enum path_class others[] = {
		PATH_READ,   PATH_WRITE, PATH_PROTECT, PATH_CACHE,
		PATH_DEVICE, PATH_LINK,	 PATH_FILE,    PATH_COPY
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (unsigned hide = 0; hide < 2; hide++) {
			struct view_path both[2] = { 0 };

			both[hide] = (struct view_path){ .class = PATH_HIDE, .target = "/a" };
			both[!hide] = (struct view_path){ .class = others[i], .target = "/a" };
			assert_ptr_equal(view_lookup(&(struct view){ both, 2 }, "/a/b"),
					 &both[hide]);
			both[!hide].target = "/a/b";
			assert_ptr_equal(view_lookup(&(struct view){ both, 2 }, "/a/b"),
					 &both[hide]);
		}
}

static void limit(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct view many = { 0 };

	(void)state;
	for (size_t i = 0; i < VIEW_LIMIT_PATHS; i++)
		assert_true(
			view_add(&many, &arena, (struct view_path){ .target = "/a", .inode = i }));
	assert_false(view_add(&many, &arena, (struct view_path){ .target = "/a" }));
	assert_int_equal(many.count, VIEW_LIMIT_PATHS);
	for (size_t i = 0; i < VIEW_LIMIT_PATHS; i++)
		assert_int_equal(many.paths[i].inode, i);
}

static void gpus_by_their_names(void **state)
{
	static const struct {
		enum path_class class;
		const char *source;
		bool is_gpu;
	} named[] = {
		{ PATH_DEVICE, "/dev/dri/renderD128", true },
		{ PATH_DEVICE, "/dev/dri/card0", true },
		{ PATH_DEVICE, "/dev/nvidia0", true },
		{ PATH_DEVICE, "/dev/nvidiactl", true },
		{ PATH_DEVICE, "/dev/nvidia-caps/nvidia-cap1", true },
		{ PATH_DEVICE, "/dev/kfd", true },
		{ PATH_DEVICE, "/dev/dxg", true },
		{ PATH_DEVICE, "/dev/null", false },
		{ PATH_DEVICE, "/dev/nvram", false },
		{ PATH_DEVICE, "/dev/drip", false },
		{ PATH_DEVICE, "/home/user/dev/dri/card0", false },
		/* a host without one has no such device, whatever else has its name */
		{ PATH_FILE, "/dev/dri/renderD128", false },
		{ PATH_HIDE, "/dev/kfd", false },
	};
	static const struct view_path other = { .class = PATH_DEVICE,
						.source = "/dev/zero",
						.target = "/dev/zero" };

	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct view_path paths[] = { other,
					     { .class = named[i].class,
					       .source = named[i].source,
					       .target = named[i].source },
					     other };

		if (view_has_gpu(&(struct view){ paths, 3 }) != named[i].is_gpu)
			fail_msg("%s: wanted %d", named[i].source, named[i].is_gpu);
	}
	assert_false(view_has_gpu(&(struct view){ 0 }));
}

static void class_names(void **state)
{
	(void)state;
	for (int i = 0; i < PATH_CLASS_COUNT; i++) {
		assert_non_null(path_class_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(path_class_name(i), path_class_name(j));
	}
	assert_string_equal(path_class_name(PATH_READ), "read");
	assert_string_equal(path_class_name(PATH_FILE), "file");
	assert_string_equal(path_class_name(PATH_COPY), "copy");
	assert_string_equal(path_class_name(PATH_GIT), "git");
	assert_string_equal(path_class_name(PATH_STAGE), "stage");
	assert_string_equal(path_class_name(PATH_OBJECTS), "objects");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookup),      cmocka_unit_test(deny_beats_allow),
		cmocka_unit_test(limit),       cmocka_unit_test(gpus_by_their_names),
		cmocka_unit_test(class_names),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
