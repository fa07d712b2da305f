#include "policy/environment.h"

#include <stddef.h>
#include <string.h>

#define NAME_LIMIT_BYTES 256

/* Nothing here names a secret, a socket, or code that a program loads by itself. */
static const char *const names[] = {
	"PATH",
	"LANG",
	"LANGUAGE",
	/* each by its name (locale(7)): sshd takes every LC_*, so that tokens travel as one */
	"LC_ALL",
	"LC_ADDRESS",
	"LC_COLLATE",
	"LC_CTYPE",
	"LC_IDENTIFICATION",
	"LC_MEASUREMENT",
	"LC_MESSAGES",
	"LC_MONETARY",
	"LC_NAME",
	"LC_NUMERIC",
	"LC_PAPER",
	"LC_TELEPHONE",
	"LC_TIME",
	"TERM",
	"COLORTERM",
	"TZ",
	"NO_COLOR",
	"FORCE_COLOR",
	"CLICOLOR",
	"CLICOLOR_FORCE",
	"COLUMNS",
	"LINES",
	"CI",
	"DEBIAN_FRONTEND",
	"SOURCE_DATE_EPOCH",
	"MAKEFLAGS",
	"CC",
	"CXX",
	"CFLAGS",
	"CXXFLAGS",
	"CPPFLAGS",
	"LDFLAGS",
	"AR",
	"PKG_CONFIG_PATH",
	"CMAKE_BUILD_TYPE",
	"CMAKE_GENERATOR",
	"JAVA_HOME",
	"MAVEN_HOME",
	"M2_HOME",
	"GRADLE_HOME",
	"GOROOT",
	"GOPATH",
	"GOBIN",
	"GOFLAGS",
	"GOOS",
	"GOARCH",
	"CGO_ENABLED",
	"GOTOOLCHAIN",
	"CARGO_HOME",
	"RUSTUP_HOME",
	"RUSTUP_TOOLCHAIN",
	"RUSTFLAGS",
	"RUST_BACKTRACE",
	"RUST_LOG",
	"NVM_DIR",
	"NVM_BIN",
	"NODE_ENV",
	"PYENV_ROOT",
	"PYENV_VERSION",
	"PYTHONUNBUFFERED",
	"PYTHONDONTWRITEBYTECODE",
	"PYTHONHASHSEED",
	"PYTHONIOENCODING",
	"PYTHONUTF8",
	"VIRTUAL_ENV",
	"CONDA_PREFIX",
	"SDKMAN_DIR",
	"ASDF_DIR",
	"ASDF_DATA_DIR",
	"MISE_DATA_DIR",
	"RBENV_ROOT",
	"GEM_HOME",
	"GEM_PATH",
	"BUNDLE_PATH",
	"VOLTA_HOME",
	"BUN_INSTALL",
	"DENO_DIR",
	"PNPM_HOME",
	"EDITOR",
	"VISUAL",
	"PAGER",
	"LESS",
	"MANPATH",
	"GIT_AUTHOR_NAME",
	"GIT_AUTHOR_EMAIL",
	"GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME",
	"GIT_COMMITTER_EMAIL",
	"GIT_COMMITTER_DATE",
	"GIT_PAGER",
	"GIT_EDITOR",
};

bool environment_is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > NAME_LIMIT_BYTES || (name[0] >= '0' && name[0] <= '9'))
		return false;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
	       length;
}

bool environment_is_passed(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

bool environment_is_own(const char *name)
{
	static const char *const own[] = { "HOME", "USER",   "LOGNAME",	       "SHELL",
					   "PWD",  "TMPDIR", "XDG_RUNTIME_DIR" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}
