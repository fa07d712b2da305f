#include "workspace/toolchain.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include "workspace/host.h"
#include "workspace/place.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A configuration file of a toolchain is some lines; what is larger is not read and not shown. */
#define CONFIG_LIMIT_BYTES (64 * 1024)
/* Versions installed side by side; more directories than this are not looked at. */
#define VERSIONS_LIMIT 512u

enum check {
	CHECK_NONE,
	CHECK_PREFIX,	 /* every name in the parent that begins with the last component */
	CHECK_SECRETS,	 /* a file that is shown only while no word of a secret is in it */
	CHECK_VARIABLES, /* as before, and no environment variables either */
};

/*
 * Well-known places below the home. Where a tree may hold credentials only its parts without
 * them are named, since a hidden name costs an overlay where a plain bind would do.
 */
static const struct {
	const char *path;
	enum check check;
} places[] = {
	/* programs a user installed without a tool of their own, and pip's --user packages */
	{ ".local/bin", CHECK_NONE },
	{ ".local/lib", CHECK_NONE },
	{ ".npm-global", CHECK_NONE },
	{ ".nix-profile", CHECK_NONE },
	/* several languages at once */
	{ ".asdf", CHECK_NONE },
	{ ".asdfrc", CHECK_SECRETS },
	{ ".tool-versions", CHECK_SECRETS },
	{ ".local/share/mise/installs", CHECK_NONE },
	{ ".local/share/mise/plugins", CHECK_NONE },
	{ ".local/share/mise/shims", CHECK_NONE },
	{ ".config/mise/config.toml", CHECK_VARIABLES },
	{ ".sdkman", CHECK_NONE },
	/* JavaScript */
	{ ".nvm", CHECK_NONE },
	{ ".fnm", CHECK_NONE },
	{ ".local/share/fnm", CHECK_NONE },
	{ ".volta", CHECK_NONE },
	{ ".nodenv", CHECK_NONE },
	{ ".bun/bin", CHECK_NONE },
	{ ".bun/install/global", CHECK_NONE },
	{ ".deno/bin", CHECK_NONE },
	{ ".local/share/pnpm/global", CHECK_NONE },
	{ ".local/share/pnpm/nodejs", CHECK_NONE },
	{ ".local/share/pnpm/pnpm", CHECK_NONE },
	/* Python */
	{ ".pyenv", CHECK_NONE },
	{ ".local/share/uv/python", CHECK_NONE },
	{ ".local/share/uv/tools", CHECK_NONE },
	{ ".local/share/pipx", CHECK_NONE },
	{ ".local/pipx", CHECK_NONE },
	{ ".local/share/pypoetry/venv", CHECK_NONE },
	{ "miniconda3", CHECK_NONE },
	{ "miniforge3", CHECK_NONE },
	{ "anaconda3", CHECK_NONE },
	/* Rust: beside these lie credentials.toml and the registry, which is a cache */
	{ ".cargo/bin", CHECK_NONE },
	{ ".cargo/env", CHECK_SECRETS },
	{ ".cargo/config.toml", CHECK_SECRETS },
	{ ".cargo/config", CHECK_SECRETS },
	{ ".rustup", CHECK_NONE },
	/* Go */
	{ "go/bin", CHECK_NONE },
	{ "sdk/go", CHECK_PREFIX },
	{ ".go", CHECK_NONE },
	{ ".goenv", CHECK_NONE },
	{ ".config/go/env", CHECK_SECRETS },
	/* Ruby, the JVM, Haskell, Julia, .NET */
	{ ".rbenv", CHECK_NONE },
	{ ".rvm", CHECK_NONE },
	{ ".jenv", CHECK_NONE },
	{ ".jabba", CHECK_NONE },
	{ ".ghcup/bin", CHECK_NONE },
	{ ".ghcup/env", CHECK_SECRETS },
	{ ".ghcup/ghc", CHECK_NONE },
	{ ".ghcup/hls", CHECK_NONE },
	{ ".cabal/bin", CHECK_NONE },
	{ ".juliaup", CHECK_NONE },
	{ ".julia/juliaup", CHECK_NONE },
	{ ".dotnet/dotnet", CHECK_NONE },
	{ ".dotnet/host", CHECK_NONE },
	{ ".dotnet/packs", CHECK_NONE },
	{ ".dotnet/sdk", CHECK_NONE },
	{ ".dotnet/shared", CHECK_NONE },
	{ ".dotnet/tools", CHECK_NONE },
};

/*
 * Credential files inside of the trees above, as a directory of versions and a name in each
 * ("" = in the directory itself). They are hidden where they exist: rare, and an overlay each.
 */
static const struct {
	const char *versions, *name;
} credentials[] = {
	/* npm's global configuration stands in the prefix of its node (npm-config(7)) */
	{ ".nvm/versions/node", "etc/npmrc" },
	{ ".fnm/node-versions", "installation/etc/npmrc" },
	{ ".local/share/fnm/node-versions", "installation/etc/npmrc" },
	{ ".volta/tools/image/node", "etc/npmrc" },
	{ ".nodenv/versions", "etc/npmrc" },
	{ ".asdf/installs/nodejs", "etc/npmrc" },
	{ ".asdf/installs/nodejs", ".npm/etc/npmrc" },
	{ ".local/share/mise/installs/node", "etc/npmrc" },
	{ ".npm-global/etc/npmrc", "" },
	/* pip's configuration of one interpreter (pip config, "site") */
	{ ".pyenv/versions", "pip.conf" },
	{ ".asdf/installs/python", "pip.conf" },
	{ ".local/share/mise/installs/python", "pip.conf" },
	{ ".local/share/uv/python", "pip.conf" },
	{ ".local/share/uv/tools", "pip.conf" },
	{ ".local/share/pipx/venvs", "pip.conf" },
	{ ".local/pipx/venvs", "pip.conf" },
	{ "miniconda3/.condarc", "" },
	{ "miniforge3/.condarc", "" },
	{ "anaconda3/.condarc", "" },
	{ ".sdkman/candidates/maven", "conf/settings.xml" },
	{ ".sdkman/candidates/gradle", "gradle.properties" },
	{ ".jabba/.netrc", "" },
};

static const char *const secret_words[] = { "token",	   "secret",	  "password", "passwd",
					    "credential",  "api_key",	  "api-key",  "apikey",
					    "private_key", "private-key", "auth" };

struct gather {
	struct home home;
	struct arena *arena;
	struct policy *policy;
	uint32_t rule, credential_rule;
	bool failed;
};

static void add(struct gather *gather, struct view_path row)
{
	if (!row.target || !row.source || !view_add(&gather->policy->view, gather->arena, row))
		gather->failed = true;
}

/* A name and a password in a URL: an '@' between "://" and the next slash, blank or quote. */
static bool has_url_secret(const char *text)
{
	for (const char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
		at += 3;
		if (at[strcspn(at, "@/ \t\r\n\"'")] == '@')
			return true;
	}
	return false;
}

static bool is_free_of_secrets(int home_fd, const char *path, bool variables)
{
	int CLEANUP_FD fd = openat(home_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[CONFIG_LIMIT_BYTES + 1];
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text));

	if (length < 0 || length > CONFIG_LIMIT_BYTES || memchr(text, '\0', (size_t)length))
		return false;
	text[length] = '\0';
	for (char *at = text; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	for (size_t i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++)
		if (strstr(text, secret_words[i]))
			return false;
	if (variables && strstr(text, "env"))
		return false;
	return !has_url_secret(text);
}

/* What exists is shown at its place in the home and, where links lead elsewhere, there too. */
static void add_existing(struct gather *gather, const char *below, enum check check)
{
	struct view_path row = { .class = PATH_READ, .rule = gather->rule };
	struct place place;

	if (place_find(&gather->home, below, gather->arena, &place) < 0)
		return;
	if (check >= CHECK_SECRETS &&
	    (place.kind != PATH_KIND_FILE ||
	     !is_free_of_secrets(gather->home.fd, below, check == CHECK_VARIABLES)))
		return;
	row.kind = place.kind;
	row.source = place.path;
	row.device = place.device;
	row.inode = place.inode;
	row.target = path_clean(gather->arena, gather->policy->home, below);
	add(gather, row);
	if (!place.linked)
		return;
	/* programs that look up their own real path find themselves there */
	row.target = place.path;
	add(gather, row);
}

static void add_prefixed(struct gather *gather, const char *below)
{
	const char *name = strrchr(below, '/') + 1;
	char *parent = arena_copy_bytes(gather->arena, below, (size_t)(name - below - 1));
	struct directory CLEANUP_DIRECTORY directory = { .fd = -1 };
	const char *entry;

	if (!parent)
		return;
	(void)directory_open(&directory, gather->home.fd, parent, 0);
	for (unsigned left = VERSIONS_LIMIT; left && (entry = directory_next(&directory)); left--)
		if (strncmp(entry, name, strlen(name)) == 0)
			add_existing(gather, arena_format(gather->arena, "%s/%s", parent, entry),
				     CHECK_NONE);
}

static void hide_at(struct gather *gather, const char *source, const char *target,
		    const struct stat *status)
{
	add(gather, (struct view_path){
			    .class = PATH_HIDE,
			    .kind = S_ISDIR(status->st_mode) ? PATH_KIND_DIRECTORY : PATH_KIND_FILE,
			    .rule = gather->credential_rule,
			    .source = source,
			    .target = target,
			    .device = status->st_dev,
			    .inode = status->st_ino,
		    });
}

/* The row of ours that shows a place of the home; NULL where none does. */
static const struct view_path *shown_by(const struct gather *gather, const char *target)
{
	const struct view_path *row = view_lookup(&gather->policy->view, target);

	return row && row->class == PATH_READ && row->rule == gather->rule ? row : NULL;
}

/* A credential file is hidden at each place where its tree is shown. */
static void hide_existing(struct gather *gather, const char *below)
{
	char *source = below ? path_clean(gather->arena, gather->home.path, below) : NULL;
	char *target = below ? path_clean(gather->arena, gather->policy->home, below) : NULL;
	const struct view_path *shown;
	struct stat status;
	char *other;

	shown = target ? shown_by(gather, target) : NULL;
	if (!source || !shown || fstatat(gather->home.fd, below, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	other = arena_format(gather->arena, "%s/%s", shown->source,
			     path_below(target, shown->target));
	hide_at(gather, source, target, &status);
	if (other && strcmp(other, source) != 0)
		hide_at(gather, other, other, &status);
}

static void hide_versions(struct gather *gather, const char *versions, const char *name)
{
	char *target = path_clean(gather->arena, gather->policy->home, versions);
	struct directory CLEANUP_DIRECTORY directory = { .fd = -1 };
	const char *entry;

	if (!target || !shown_by(gather, target))
		return;
	(void)directory_open(&directory, gather->home.fd, versions, 0);
	for (unsigned left = VERSIONS_LIMIT; left && (entry = directory_next(&directory)); left--)
		if (entry[0] != '.')
			hide_existing(gather, arena_format(gather->arena, "%s/%s/%s", versions,
							   entry, name));
}

static bool same_first(const char *path, const char *other)
{
	size_t length = strcspn(path, "/");

	return strncmp(path, other, length) == 0 && strcspn(other, "/") == length;
}

static void add_places(struct gather *gather)
{
	bool present = false;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (i == 0 || !same_first(places[i].path, places[i - 1].path))
			present = !strchr(places[i].path, '/') ||
				  place_may_exist(&gather->home, places[i].path);
		if (!present)
			continue;
		if (places[i].check == CHECK_PREFIX)
			add_prefixed(gather, places[i].path);
		else
			add_existing(gather, places[i].path, places[i].check);
	}
}

int toolchain_view(const struct caller *host, struct arena *arena, struct policy *policy,
		   struct error *error)
{
	struct gather gather = { .arena = arena, .policy = policy };
	int CLEANUP_FD home_fd = -1;
	int result = place_home(host, policy->workspace, arena, &gather.home, error);

	home_fd = result < 0 ? -1 : gather.home.fd;
	if (home_fd < 0 || !policy->home)
		return result;
	gather.rule = policy_rule(policy, arena, rule_builtin(RULE_TOOLCHAIN_READ));
	gather.credential_rule =
		policy_rule(policy, arena, rule_builtin(RULE_TOOLCHAIN_CREDENTIAL));
	add_places(&gather);
	for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++) {
		if (credentials[i].name[0])
			hide_versions(&gather, credentials[i].versions, credentials[i].name);
		else
			hide_existing(&gather, credentials[i].versions);
	}
	if (gather.failed || arena_failed(arena))
		return error_errno(error, ENOMEM, "gathering the toolchains");
	return 0;
}
