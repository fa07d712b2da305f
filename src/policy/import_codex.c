/*
 * Codex's config.toml. Its sandbox is said in one of two ways: sandbox_mode with
 * sandbox_workspace_write, or default_permissions with a profile of [permissions], which counts
 * only without the former. What a selected profile ([profiles]) says counts before the rest.
 */
#include "policy/import_internal.h"

#include "base/arena.h"

#include <string.h>

/* A profile of permissions extends another one, and so on. */
#define CHAIN_LIMIT 8u

struct codex {
	struct importing *importing;
	const struct outline_node *root, *profile;
	/* [permissions.NAME] from the selected one on to what it extends */
	const struct outline_node *chain[CHAIN_LIMIT];
	size_t chain_count;
	const char *workspace; /* what was said of it first; NULL: nothing */
};

static const struct outline_node *in(const struct codex *codex, const struct outline_node *map,
				     const char *key)
{
	return map && map->kind == OUTLINE_MAP ? outline_find(codex->importing->outline, map, key) :
						 NULL;
}

static bool is_text(const struct outline_node *node, const char *text)
{
	return node && node->kind == OUTLINE_TEXT && strcmp(node->text, text) == 0;
}

static const struct outline_node *setting(const struct codex *codex, const char *key)
{
	const struct outline_node *own = in(codex, codex->profile, key);

	return own ? own : in(codex, codex->root, key);
}

/* What is said first counts: a profile speaks before what it extends. */
static void say_workspace(struct codex *codex, const struct outline_node *node, const char *word)
{
	if (codex->workspace)
		return;
	codex->workspace = word;
	import_add(codex->importing, IMPORT_WORKSPACE, node, word);
}

/* ---- sandbox_mode ---- */

static void take_network(struct importing *importing, const struct outline_node *node,
			 const char *text)
{
	import_remark(importing, node, "network_access",
		      strcmp(text, "true") == 0 ?
			      "the network as a whole: a policy lists hosts (network.allow)" :
			      "nothing is needed: hosts are denied unless they are listed");
}

static const struct import_key write_keys[] = {
	{ "writable_roots", import_allow_write, NULL },
	{ "network_access", take_network, NULL },
	{ "exclude_tmpdir_env_var", NULL, IMPORT_OWN_TMP },
	{ "exclude_slash_tmp", NULL, IMPORT_OWN_TMP },
};

static void read_mode(struct codex *codex, const struct outline_node *mode)
{
	struct importing *importing = codex->importing;
	const struct outline_node *more = setting(codex, "sandbox_workspace_write");

	if (!mode)
		import_remark(importing, codex->root, "sandbox_mode",
			      "not set: read-only, as for a project that is not trusted");
	else if (is_text(mode, "workspace-write"))
		say_workspace(codex, mode, "direct");
	else if (is_text(mode, "danger-full-access"))
		import_remark(importing, mode, "sandbox_mode", IMPORT_OUTSIDE);
	else if (!is_text(mode, "read-only"))
		import_remark(importing, mode, "sandbox_mode", "a mode that is not known here");
	if (more && is_text(mode, "workspace-write") && more->kind == OUTLINE_MAP)
		import_keys(importing, more, "", write_keys,
			    sizeof(write_keys) / sizeof(write_keys[0]));
	else if (more)
		import_remark(importing, more, "sandbox_workspace_write",
			      "says something with sandbox_mode workspace-write alone");
	say_workspace(codex, mode ? mode : codex->root, "read-only");
}

/* ---- default_permissions ---- */

static bool is_denial(const char *access)
{
	return strcmp(access, "deny") == 0 || strcmp(access, "none") == 0;
}

static bool is_builtin(const char *name)
{
	return name[0] == ':';
}

static void say_builtin(struct codex *codex, const struct outline_node *node)
{
	if (strcmp(node->text, ":workspace") == 0)
		say_workspace(codex, node, "direct");
	else if (strcmp(node->text, ":read-only") == 0)
		say_workspace(codex, node, "read-only");
	else
		import_remark(codex->importing, node, node->text,
			      strcmp(node->text, ":danger-full-access") == 0 ?
				      IMPORT_OUTSIDE :
				      "a profile that is not known here");
}

/* The profiles from the selected one on; returns what the last one of them names. */
static const struct outline_node *follow(struct codex *codex, const struct outline_node *name)
{
	const struct outline_node *all = setting(codex, "permissions");

	while (name && name->kind == OUTLINE_TEXT && !is_builtin(name->text)) {
		const struct outline_node *profile = in(codex, all, name->text);

		if (!profile || codex->chain_count == CHAIN_LIMIT) {
			import_remark(codex->importing, name, name->text,
				      "a profile that is not there");
			return NULL;
		}
		codex->chain[codex->chain_count++] = profile;
		name = in(codex, profile, "extends");
	}
	return name;
}

/* Whether an earlier profile of the chain says something of the key in the section. */
static bool is_said(const struct codex *codex, size_t link, const char *section, const char *base,
		    const char *key)
{
	for (size_t i = 0; i < link; i++) {
		const struct outline_node *map = in(codex, codex->chain[i], section);

		if (base)
			map = in(codex, map, base);
		if (in(codex, map, key))
			return true;
	}
	return false;
}

static bool is_workspace(const char *base)
{
	return strcmp(base, ":workspace_roots") == 0 || strcmp(base, ":project_roots") == 0 ||
	       strcmp(base, ":cwd") == 0;
}

static void take_special(struct codex *codex, const struct outline_node *node, const char *name,
			 const char *access)
{
	const char *why = "a place that is not known here";

	if (strcmp(name, ":tmpdir") == 0 || strcmp(name, ":slash_tmp") == 0)
		why = IMPORT_OWN_TMP;
	else if (strcmp(name, ":minimal") == 0 || is_denial(access))
		why = "nothing is needed: of the host the system's programs are shown, and what is "
		      "listed";
	else if (strcmp(name, ":root") == 0)
		why = "the host as a whole: a policy lists paths (filesystem.read)";
	import_remark(codex->importing, node, name, why);
}

static void take_in_workspace(struct codex *codex, const struct outline_node *node,
			      const char *path, const char *access)
{
	struct importing *importing = codex->importing;
	bool is_whole = strcmp(path, ".") == 0;

	if (is_whole && strcmp(access, "write") == 0)
		say_workspace(codex, node, "direct");
	else if (is_whole && strcmp(access, "read") == 0)
		say_workspace(codex, node, "read-only");
	else if (is_whole)
		import_remark(importing, node, path, "a task always sees its workspace");
	else if (is_denial(access))
		import_deny_read(importing, node, path);
	else if (strcmp(access, "read") == 0)
		import_deny_write(importing, node, path);
	else
		import_remark(importing, node, path,
			      "a part of the workspace: it is written as a whole or not");
}

static void take_path(struct codex *codex, const struct outline_node *node, const char *path,
		      const char *access)
{
	struct importing *importing = codex->importing;

	if (is_denial(access))
		import_deny_read(importing, node, path);
	else if (!import_is_from_root(path))
		import_remark(importing, node, path, "a path: from / or ~/ on, or below a base");
	else if (strcmp(access, "read") == 0)
		import_allow_read(importing, node, path);
	else if (strcmp(access, "write") == 0)
		import_allow_write(importing, node, path);
	else
		import_remark(importing, node, path, "an access that is not known here");
}

static void take_access(struct codex *codex, const struct outline_node *node, const char *base,
			const char *below, const char *access)
{
	const char *path = below && strcmp(below, ".") != 0 ?
				   arena_format(codex->importing->arena, "%s/%s", base, below) :
				   base;

	if (is_workspace(base))
		take_in_workspace(codex, node, below ? below : ".", access);
	else if (base[0] == ':')
		take_special(codex, node, base, access);
	else if (path)
		take_path(codex, node, path, access);
}

static void read_below(struct codex *codex, size_t link, const char *base,
		       const struct outline_node *map)
{
	const struct outline *outline = codex->importing->outline;
	const struct outline_node *value;

	for (const struct outline_node *key = outline_first(outline, map); key;
	     key = outline_next(outline, map, value)) {
		value = outline_next(outline, map, key);
		if (value->kind == OUTLINE_TEXT &&
		    !is_said(codex, link, "filesystem", base, key->text))
			take_access(codex, key, base, key->text, value->text);
	}
}

static void read_files(struct codex *codex, size_t link)
{
	const struct outline *outline = codex->importing->outline;
	const struct outline_node *map = in(codex, codex->chain[link], "filesystem"), *value;

	if (!map || map->kind != OUTLINE_MAP)
		return;
	for (const struct outline_node *key = outline_first(outline, map); key;
	     key = outline_next(outline, map, value)) {
		value = outline_next(outline, map, key);
		if (strcmp(key->text, "glob_scan_max_depth") == 0)
			import_remark(
				codex->importing, key, key->text,
				"nothing is needed: patterns go as deep as there is something");
		else if (value->kind == OUTLINE_MAP)
			read_below(codex, link, key->text, value);
		else if (value->kind == OUTLINE_TEXT &&
			 !is_said(codex, link, "filesystem", NULL, key->text))
			take_access(codex, key, key->text, NULL, value->text);
	}
}

/* "**.example.org" is the name and all below it. */
static void take_host(struct importing *importing, const struct outline_node *node,
		      const char *text)
{
	if (importing->no_hosts) {
		import_remark(importing, node, text, importing->no_hosts);
		return;
	}
	if (strncmp(text, "**.", 3) == 0)
		import_allow_host(importing, node, text + 3);
	import_allow_host(importing, node, text + (strncmp(text, "**.", 3) == 0));
}

static void refuse_host(struct importing *importing, const struct outline_node *node,
			const char *text)
{
	if (strncmp(text, "**.", 3) == 0)
		import_deny_host(importing, node, text + 3);
	import_deny_host(importing, node, text + (strncmp(text, "**.", 3) == 0));
}

static const struct import_key network_keys[] = {
	{ "enabled", NULL, NULL },
	{ "mode", NULL, NULL },
	{ "domains", NULL, NULL },
	{ "allowed_domains", take_host, NULL },
	{ "denied_domains", refuse_host, NULL },
	{ "unix_sockets", NULL, IMPORT_SOCKETS },
	{ "allow_unix_sockets", NULL, IMPORT_SOCKETS },
	{ "dangerously_allow_all_unix_sockets", NULL, IMPORT_SOCKETS },
	{ "allow_local_binding", NULL, IMPORT_LOOPBACK },
	{ "proxy_url", NULL, IMPORT_OWN_PROXY },
	{ "socks_url", NULL, IMPORT_OWN_PROXY },
	{ "enable_socks5", NULL, IMPORT_OWN_PROXY },
	{ "enable_socks5_udp", NULL, IMPORT_OWN_PROXY },
	{ "allow_upstream_proxy", NULL, IMPORT_OWN_PROXY },
	{ "dangerously_allow_non_loopback_proxy", NULL, IMPORT_OWN_PROXY },
};

/* The first profile of the chain that says it. */
static const struct outline_node *network_setting(const struct codex *codex, const char *key)
{
	const struct outline_node *found = NULL;

	for (size_t i = 0; i < codex->chain_count && !found; i++)
		found = in(codex, in(codex, codex->chain[i], "network"), key);
	return found;
}

static void read_domains(struct codex *codex, size_t link, const struct outline_node *map)
{
	struct importing *importing = codex->importing;
	const struct outline_node *value;

	for (const struct outline_node *key = outline_first(importing->outline, map); key;
	     key = outline_next(importing->outline, map, value)) {
		value = outline_next(importing->outline, map, key);
		if (is_said(codex, link, "network", "domains", key->text))
			continue;
		if (is_text(value, "allow"))
			take_host(importing, key, key->text);
		else
			refuse_host(importing, key, key->text);
	}
}

static void read_network(struct codex *codex, size_t link)
{
	const struct outline_node *map = in(codex, codex->chain[link], "network"), *domains;

	if (!map || map->kind != OUTLINE_MAP)
		return;
	domains = in(codex, map, "domains");
	import_keys(codex->importing, map, "", network_keys,
		    sizeof(network_keys) / sizeof(network_keys[0]));
	if (domains && domains->kind == OUTLINE_MAP)
		read_domains(codex, link, domains);
}

/* More workspaces: each is shown as the one is. */
static void read_roots(struct codex *codex, size_t link)
{
	struct importing *importing = codex->importing;
	const struct outline_node *map = in(codex, codex->chain[link], "workspace_roots"), *value;

	if (!map || map->kind != OUTLINE_MAP)
		return;
	for (const struct outline_node *key = outline_first(importing->outline, map); key;
	     key = outline_next(importing->outline, map, value)) {
		value = outline_next(importing->outline, map, key);
		if (is_text(value, "true") &&
		    !is_said(codex, link, "workspace_roots", NULL, key->text))
			take_path(codex, key, key->text,
				  strcmp(codex->workspace, "direct") == 0 ? "write" : "read");
	}
}

static void read_permissions(struct codex *codex, const struct outline_node *name)
{
	struct importing *importing = codex->importing;
	const struct outline_node *last = follow(codex, name);

	if (!is_text(network_setting(codex, "enabled"), "true"))
		importing->no_hosts = "the profile's network is not enabled";
	else if (is_text(network_setting(codex, "mode"), "limited"))
		importing->no_hosts = "only to be read from (mode limited): of TLS that needs "
				      "inspection, which there is none of";
	else if (!network_setting(codex, "domains") && !network_setting(codex, "allowed_domains"))
		import_remark(importing, name, "network",
			      "the network as a whole: a policy lists hosts (network.allow)");
	for (size_t i = 0; i < codex->chain_count; i++)
		read_files(codex, i);
	if (last && last->kind == OUTLINE_TEXT)
		say_builtin(codex, last);
	/* where nothing is said */
	say_workspace(codex, name, "read-only");
	for (size_t i = 0; i < codex->chain_count; i++) {
		read_network(codex, i);
		read_roots(codex, i);
	}
}

/* ---- the rest ---- */

static void read_approval(struct codex *codex, const struct outline_node *node)
{
	struct importing *importing = codex->importing;

	if (is_text(node, "never") || is_text(node, "on-request"))
		import_add(importing, IMPORT_APPROVAL, node, node->text);
	else if (is_text(node, "untrusted"))
		import_add(importing, IMPORT_APPROVAL, node, "always");
	else if (is_text(node, "on-failure"))
		import_remark(importing, node, "approval_policy",
			      "nothing runs a second time outside of the wall");
	else if (node)
		import_remark(importing, node, "approval_policy",
			      "questions by kind: approvals.ask has classes of commands");
}

static bool is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				     "0123456789");

	return text[0] && strchr(letters, text[0]) && !text[length];
}

static void take_variable(struct importing *importing, const struct outline_node *node,
			  const char *text)
{
	if (!is_name(text))
		import_remark(importing, node, text,
			      "a pattern of names: environment.pass lists names");
	else if (import_is_secret(text))
		import_remark(importing, node, text,
			      "named like a secret: --env passes it to a task that needs it");
	else
		import_add(importing, IMPORT_PASS, node, text);
}

static const struct import_key variable_keys[] = {
	{ "inherit", NULL, IMPORT_LISTED },
	{ "ignore_default_excludes", NULL, IMPORT_LISTED },
	{ "exclude", NULL, IMPORT_LISTED },
	{ "include_only", take_variable, NULL },
	{ "set", NULL, NULL },
	{ "experimental_use_profile", NULL, "a shell's start: it runs in the box as any" },
};

static void read_environment(struct codex *codex, const struct outline_node *map)
{
	if (!map || map->kind != OUTLINE_MAP)
		return;
	if (is_text(in(codex, map, "inherit"), "none") && in(codex, map, "include_only"))
		import_remark(codex->importing, in(codex, map, "include_only"), "include_only",
			      "of none (inherit) none is left");
	else
		import_keys(codex->importing, map, "", variable_keys,
			    sizeof(variable_keys) / sizeof(variable_keys[0]));
	import_variables(codex->importing, in(codex, map, "set"));
}

/* Those that are not selected, and what is read elsewhere or says nothing here. */
static void read_rest(struct codex *codex)
{
	static const struct import_key keys[] = {
		{ "sandbox_mode", NULL, NULL },
		{ "sandbox_workspace_write", NULL, NULL },
		{ "approval_policy", NULL, NULL },
		{ "default_permissions", NULL, NULL },
		{ "shell_environment_policy", NULL, NULL },
		{ "profile", NULL, NULL },
		{ "permissions", NULL, NULL },
		{ "profiles", NULL, NULL },
		{ "approvals_reviewer", NULL, "who answers questions: a person does" },
		{ "projects", NULL, "trust in projects: `bawn policy adopt` is for that" },
		{ "hooks", NULL, "programs that the agent runs: they run in its box" },
		{ "mcp_servers", NULL, "programs that the agent runs: they run in its box" },
	};
	struct importing *importing = codex->importing;

	import_keys(importing, codex->root, "", keys, sizeof(keys) / sizeof(keys[0]));
	if (codex->profile && codex->profile->kind == OUTLINE_MAP)
		import_keys(importing, codex->profile, "", keys, sizeof(keys) / sizeof(keys[0]));
}

static void read_others(struct codex *codex, const char *section, const char *why)
{
	struct importing *importing = codex->importing;
	const struct outline_node *map = in(codex, codex->root, section), *value;

	if (!map || map->kind != OUTLINE_MAP)
		return;
	for (const struct outline_node *key = outline_first(importing->outline, map); key;
	     key = outline_next(importing->outline, map, value)) {
		bool is_used;

		value = outline_next(importing->outline, map, key);
		is_used = value == codex->profile;
		for (size_t i = 0; i < codex->chain_count; i++)
			is_used |= value == codex->chain[i];
		if (!is_used)
			import_remark(importing, key, key->text, why);
	}
}

void import_codex(struct importing *importing)
{
	struct codex codex = { .importing = importing, .root = importing->outline->nodes };
	const struct outline_node *name = in(&codex, codex.root, "profile"), *mode, *permissions;

	if (name && name->kind == OUTLINE_TEXT) {
		codex.profile = in(&codex, in(&codex, codex.root, "profiles"), name->text);
		if (!codex.profile)
			import_remark(importing, name, name->text, "a profile that is not there");
	}
	mode = setting(&codex, "sandbox_mode");
	permissions = setting(&codex, "default_permissions");
	if (!mode && permissions && permissions->kind == OUTLINE_TEXT)
		read_permissions(&codex, permissions);
	else
		read_mode(&codex, mode);
	read_approval(&codex, setting(&codex, "approval_policy"));
	read_environment(&codex, setting(&codex, "shell_environment_policy"));
	read_others(&codex, "profiles", "a profile that is not selected");
	read_others(&codex, "permissions",
		    mode ? "says something without sandbox_mode alone" :
			   "a profile that is not selected");
	read_rest(&codex);
}
