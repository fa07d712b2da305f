#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "workspace/toolchain.h"

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

static void gather(struct fixture *fixture)
{
	struct error error = ERROR_NONE;

	fixture->policy.view.count = 0;
	assert_int_equal(toolchain_view(&fixture->host, &fixture->arena, &fixture->policy, &error),
			 0);
}

static void empty_home_gives_nothing(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.ssh/id_rsa", "key");
	make(fixture, "home/projects/a", "");
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
}

static void no_home_gives_nothing(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.nvm/nvm.sh", "");
	fixture->host.home = NULL;
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
}

static void finds_each_with_its_identity(void **state)
{
	static const char *const names[] = {
		".nvm",	  ".pyenv",	".rustup", ".sdkman",
		".asdf",  ".local/bin", "go/bin",  ".local/share/uv/tools",
		".volta", ".cargo/bin", ".juliaup"
	};
	struct fixture *fixture = *state;
	char path[128];
	struct stat status;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "home/%s", names[i]);
		make(fixture, path, NULL);
	}
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct view_path *row;

		snprintf(path, sizeof(path), "home/%s", names[i]);
		row = row_at(fixture, PATH_READ, path);
		assert_non_null(row);
		assert_int_equal(row->kind, PATH_KIND_DIRECTORY);
		assert_string_equal(row->source, row->target);
		assert_int_equal(stat(row->source, &status), 0);
		assert_int_equal(row->device, status.st_dev);
		assert_int_equal(row->inode, status.st_ino);
		assert_string_equal(fixture->policy.rules[row->rule].id, "toolchain.read");
	}
}

/* What cargo and uv keep beside their programs. */
static void credentials_are_not_shown(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.cargo/bin/cargo", "");
	make(fixture, "home/.cargo/credentials.toml", "x");
	make(fixture, "home/.cargo/credentials", "x");
	make(fixture, "home/.local/share/uv/credentials/a", "x");
	make(fixture, "home/.local/share/uv/python/cpython/bin/python3", "");
	make(fixture, "home/.local/share/mise/installs/node/20/bin/node", "");
	make(fixture, "home/.netrc", "x");
	gather(fixture);
	for (size_t i = 0; i < fixture->policy.view.count; i++) {
		const char *target = fixture->policy.view.paths[i].target;

		assert_null(strstr(target, "credentials"));
		assert_null(strstr(target, "netrc"));
		/* nor a directory above them */
		assert_string_not_equal(target + strlen(fixture->home) + 1, ".cargo");
		assert_string_not_equal(target + strlen(fixture->home) + 1, ".local/share/uv");
	}
	assert_non_null(row_at(fixture, PATH_READ, "home/.cargo/bin"));
	assert_non_null(row_at(fixture, PATH_READ, "home/.local/share/uv/python"));
}

static void npmrc_of_a_node_is_hidden(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *row;

	make(fixture, "home/.nvm/versions/node/v20/bin/node", "");
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 1);
	make(fixture, "home/.nvm/versions/node/v20/etc/npmrc", "//r/:_authToken=x");
	gather(fixture);
	row = row_at(fixture, PATH_HIDE, "home/.nvm/versions/node/v20/etc/npmrc");
	assert_non_null(row);
	assert_int_equal(row->kind, PATH_KIND_FILE);
	assert_string_equal(fixture->policy.rules[row->rule].id, "toolchain.credential");
	assert_int_equal(view_lookup(&fixture->policy.view, row->target)->class, PATH_HIDE);
}

static void config_is_shown_without_secrets_alone(void **state)
{
	static const struct {
		const char *text;
		bool shown;
	} rows[] = {
		{ "[build]\njobs = 4\n", true },
		{ "", true },
		{ "[registry]\ntoken = \"x\"\n", false },
		{ "[registry]\nTOKEN = \"x\"\n", false },
		{ "[http]\nproxy = \"https://user:pw@proxy:1\"\n", false },
		{ "[source.a]\nregistry = \"https://index.example/a@b\"\n", true },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(fixture, "home/.cargo/config.toml", rows[i].text);
		gather(fixture);
		if ((row_at(fixture, PATH_READ, "home/.cargo/config.toml") != NULL) !=
		    rows[i].shown)
			fail_msg("%s", rows[i].text);
	}
}

static void large_or_odd_config_is_not_shown(void **state)
{
	struct fixture *fixture = *state;
	char path[128], *text = calloc(1, 70000);

	memset(text, '#', 69999);
	make(fixture, "home/.cargo/env", text);
	make(fixture, "home/.cargo/config.toml", NULL);
	snprintf(path, sizeof(path), "%s/.asdfrc", fixture->home);
	assert_int_equal(mkfifo(path, 0600), 0);
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
	free(text);
}

static void mise_variables_stay_outside(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.config/mise/config.toml", "[tools]\nnode = \"20\"\n");
	gather(fixture);
	assert_non_null(row_at(fixture, PATH_READ, "home/.config/mise/config.toml"));
	make(fixture, "home/.config/mise/config.toml", "[env]\nKEY = \"x\"\n");
	gather(fixture);
	assert_null(row_at(fixture, PATH_READ, "home/.config/mise/config.toml"));
}

static void go_versions_alone_of_sdk(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/sdk/go1.22.1/bin/go", "");
	make(fixture, "home/sdk/customers/list", "");
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 1);
	assert_non_null(row_at(fixture, PATH_READ, "home/sdk/go1.22.1"));
}

static void linked_place_is_shown_twice(void **state)
{
	struct fixture *fixture = *state;
	const struct view_path *at_home, *at_real;
	char real[128];

	make(fixture, "data/nvm/versions/node/v20/etc/npmrc", "x");
	snprintf(real, sizeof(real), "%s/data/nvm", fixture->root);
	make_link(fixture, "home/.nvm", real);
	gather(fixture);
	at_home = row_at(fixture, PATH_READ, "home/.nvm");
	at_real = row_at(fixture, PATH_READ, "data/nvm");
	assert_non_null(at_home);
	assert_non_null(at_real);
	assert_string_equal(at_home->source, real);
	assert_string_equal(at_real->source, real);
	assert_int_equal(at_home->inode, at_real->inode);
	assert_non_null(row_at(fixture, PATH_HIDE, "home/.nvm/versions/node/v20/etc/npmrc"));
	assert_non_null(row_at(fixture, PATH_HIDE, "data/nvm/versions/node/v20/etc/npmrc"));
}

static void link_to_what_must_not_be_shown(void **state)
{
	struct fixture *fixture = *state;
	const char *targets[] = { ".",	     "..",	  "/",	     "/proc", "/proc/self/root",
				  "../work", "/dev/null", "nowhere", ".nvm",  fixture->work };

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		make_link(fixture, "home/.nvm", targets[i]);
		gather(fixture);
		if (fixture->policy.view.count)
			fail_msg("%s was shown", targets[i]);
	}
}

/* A directory of dotfiles that was a workspace: its links are a task's. */
static void link_to_another_name_is_not_shown(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.ssh/id", "key");
	make(fixture, "home/.local/state/bawn/tasks/x", "");
	make(fixture, "home/dotfiles/bin/tool", "");
	make_link(fixture, "home/.local/bin", "../.ssh");
	gather(fixture);
	assert_null(row_at(fixture, PATH_READ, "home/.local/bin"));
	assert_null(row_at(fixture, PATH_READ, "home/.ssh"));
	make_link(fixture, "home/.local/bin", "../.local/state/bawn");
	gather(fixture);
	assert_null(row_at(fixture, PATH_READ, "home/.local/bin"));
	make_link(fixture, "home/.local/bin", "../dotfiles/bin");
	gather(fixture);
	assert_non_null(row_at(fixture, PATH_READ, "home/.local/bin"));
}

static void foreign_owner_is_not_shown(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	if (geteuid() != 0) {
		/* an ordinary user cannot give a directory away: be somebody else instead */
		make(fixture, "home/.nvm/a", "");
		fixture->host.uid = geteuid() + 1;
	} else {
		make(fixture, "home/.nvm/a", "");
		snprintf(path, sizeof(path), "%s/.nvm", fixture->home);
		assert_int_equal(chown(path, 12345, 12345), 0);
	}
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
}

static void variables_are_not_trusted(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	make(fixture, "elsewhere/bin/cargo", "");
	snprintf(path, sizeof(path), "%s/elsewhere", fixture->root);
	setenv("CARGO_HOME", path, 1);
	setenv("NVM_DIR", path, 1);
	setenv("HOME", path, 1);
	gather(fixture);
	assert_int_equal(fixture->policy.view.count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(empty_home_gives_nothing),
		CASE(no_home_gives_nothing),
		CASE(finds_each_with_its_identity),
		CASE(credentials_are_not_shown),
		CASE(npmrc_of_a_node_is_hidden),
		CASE(config_is_shown_without_secrets_alone),
		CASE(large_or_odd_config_is_not_shown),
		CASE(mise_variables_stay_outside),
		CASE(go_versions_alone_of_sdk),
		CASE(linked_place_is_shown_twice),
		CASE(link_to_what_must_not_be_shown),
		CASE(foreign_owner_is_not_shown),
		CASE(link_to_another_name_is_not_shown),
		CASE(variables_are_not_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
