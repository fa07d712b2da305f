#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/environment.h"

static void passed(void **state)
{
	static const char *const names[] = { "PATH",	  "LANG",	"LC_ALL", "LC_MESSAGES",
					     "TERM",	  "TZ",		"CC",	  "CFLAGS",
					     "JAVA_HOME", "CARGO_HOME", "CI",	  "NO_COLOR",
					     "EDITOR",	  "VIRTUAL_ENV" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!environment_is_passed(names[i]))
			fail_msg("%s is not passed", names[i]);
}

/* Secrets, sockets of the host, and code that a program loads by itself. */
static void withheld(void **state)
{
	static const char *const names[] = {
		/* secrets */
		"AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN",
		"GITHUB_TOKEN",
		"GH_TOKEN",
		"NPM_TOKEN",
		"OPENAI_API_KEY",
		"ANTHROPIC_API_KEY",
		"DATABASE_URL",
		"PGPASSWORD",
		"KUBECONFIG",
		"GOOGLE_APPLICATION_CREDENTIALS",
		"VAULT_TOKEN",
		"CARGO_REGISTRY_TOKEN",
		"TWINE_PASSWORD",
		"NETRC",
		/* sockets and services */
		"SSH_AUTH_SOCK",
		"SSH_AGENT_PID",
		"GPG_AGENT_INFO",
		"DBUS_SESSION_BUS_ADDRESS",
		"XDG_RUNTIME_DIR",
		"DISPLAY",
		"WAYLAND_DISPLAY",
		"XAUTHORITY",
		"DOCKER_HOST",
		"TMUX",
		"STY",
		"PULSE_SERVER",
		"NOTIFY_SOCKET",
		"LISTEN_FDS",
		"SSH_CONNECTION",
		"HTTP_PROXY",
		"https_proxy",
		"ALL_PROXY",
		"GOPROXY",
		"PIP_INDEX_URL",
		/* code that is loaded */
		"LD_PRELOAD",
		"LD_LIBRARY_PATH",
		"LD_AUDIT",
		"GCONV_PATH",
		"BASH_ENV",
		"ENV",
		"PYTHONPATH",
		"PYTHONSTARTUP",
		"PYTHONHOME",
		"NODE_PATH",
		"NODE_OPTIONS",
		"PERL5LIB",
		"PERL5OPT",
		"RUBYOPT",
		"RUBYLIB",
		"JAVA_TOOL_OPTIONS",
		"_JAVA_OPTIONS",
		"PROMPT_COMMAND",
		"IFS",
		"GIT_SSH_COMMAND",
		"GIT_ASKPASS",
		"SSH_ASKPASS",
		"GIT_DIR",
		"GIT_CONFIG_GLOBAL",
		"GIT_EXEC_PATH",
		"LESSOPEN",
		/* what is not a name, or only looks like one that is passed */
		"",
		"path",
		"PATHS",
		"PAT",
		"LC",
		"LC_=",
		"LC_A=B",
		"LC_A B",
		"LC_\n",
		"LC_TOKEN",
		"LC_GITHUB_TOKEN",
		"LC_ALL2",
		" PATH",
		"BASH_FUNC_ls%%",
		"HOME",
		"USER",
		"SHELL",
		"PWD",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (environment_is_passed(names[i]))
			fail_msg("'%s' is passed", names[i]);
}

static void names(void **state)
{
	static const char *const good[] = { "A", "_", "a1", "_1", "PATH", "a_B_9" };
	static const char *const bad[] = { "",	  "1",	"1A",  "A=",   "=",	"A B", "A-B",
					   "A\n", "\t", "A.B", "\xc3", "A\xff", "%" };
	char name[258];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(environment_is_name(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (environment_is_name(bad[i]))
			fail_msg("'%s' is a name", bad[i]);
	memset(name, 'A', sizeof(name));
	name[257] = '\0';
	assert_false(environment_is_name(name));
	name[256] = '\0';
	assert_true(environment_is_name(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed),
		cmocka_unit_test(withheld),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
