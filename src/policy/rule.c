#include "policy/rule.h"

#include "base/buffer.h"
#include "base/json.h"

#include <string.h>

static const struct {
	const char *id;
	const char *text;
} builtins[RULE_BUILTIN_COUNT] = {
	[RULE_SYSTEM_READ_ONLY] = { "system.read-only",
				    "programs, libraries and a reduced /etc of the host are "
				    "readable, never writable" },
	[RULE_SYSTEM_ABSENT] = { "system.absent", "every other path of the host is absent inside" },
	[RULE_HOME_PRIVATE] = { "home.private", "the caller's home is an empty private directory" },
	[RULE_WORKSPACE_WRITE] = { "workspace.write", "the workspace is writable" },
	[RULE_PRIVATE_AREA] = { "private.area",
				"/tmp, /var/tmp, /dev/shm and the runtime directory are private" },
	[RULE_TOOLCHAIN_READ] = { "toolchain.read",
				  "toolchains installed in the caller's home are readable" },
	[RULE_TOOLCHAIN_CREDENTIAL] = { "toolchain.credential",
					"credential files of toolchains and caches are absent" },
	[RULE_CACHE_OVERLAY] = { "cache.overlay",
				 "package caches are the host's for reading and the project's own "
				 "for writing" },
	[RULE_GIT_OVERLAY] = { "git.overlay",
			       "what a task writes to a git directory goes to a layer of its own" },
	[RULE_GIT_OBJECTS] = { "git.objects",
			       "git's objects stay, and new ones are looked through" },
	[RULE_WORKSPACE_PROTECT] = { "workspace.protect",
				     "settings of editors and agents, hooks, and the way to a git "
				     "directory are not changed by a task" },
	[RULE_WORKSPACE_SECRET] = { "workspace.secret",
				    "files of the workspace that are named like secrets are "
				    "hidden" },
	[RULE_NETWORK_LOOPBACK] = { "network.loopback",
				    "the only network is a loopback of the box's own" },
	[RULE_EGRESS_DEFAULT] = { "egress.default", "what no rule allows is not connected to" },
	[RULE_EGRESS_SPECIAL] = { "egress.special",
				  "the host, private networks, metadata services and other special "
				  "addresses are not connected to unless a rule names them" },
	[RULE_ENVIRONMENT_ALLOWLIST] = { "environment.allowlist",
					 "only variables on the allowlist are passed" },
	[RULE_SYSCALL_ALLOWLIST] = { "syscall.allowlist",
				     "only system calls of everyday programs are allowed" },
	[RULE_SYSCALL_NAMESPACE] = { "syscall.namespace",
				     "no namespaces or mounts are made inside" },
	[RULE_SYSCALL_PTRACE] = { "syscall.ptrace", "no process looks into another" },
	[RULE_DEVICES_NONE] = { "devices.none",
				"no device of the host beyond null, zero, full, random, tty" },
	[RULE_DANGEROUS_PATH] = { "dangerous.path",
				  "paths that would undo the wall are never shown" },
	[RULE_NARROW_ONLY] = { "narrow.only", "inside of a box a request can only narrow" },
	[RULE_RUN_ALLOWED] = { "run.allowed", "a command inside of the box may run" },
	[RULE_LIMIT_DEFAULT] = { "limit.default",
				 "what a task can use up where no option says so" },
	[RULE_TIER_DEFAULT] = { "tier.default",
				"a task runs in the weakest tier where no policy asks for more" },
};

struct rule_ref rule_builtin(enum rule_builtin rule)
{
	return (struct rule_ref){ .id = builtins[rule].id };
}

bool rule_is(const struct rule_ref *rule, enum rule_builtin builtin)
{
	return !rule->file && strcmp(rule->id, builtins[builtin].id) == 0;
}

const char *rule_builtin_text(enum rule_builtin rule)
{
	return builtins[rule].text;
}

static bool is_flag(const struct rule_ref *rule)
{
	return strncmp(rule->file, "--", 2) == 0;
}

bool rule_is_same(const struct rule_ref *a, const struct rule_ref *b)
{
	if (strcmp(a->id, b->id) != 0 || !a->file != !b->file)
		return false;
	return !a->file || (strcmp(a->file, b->file) == 0 && (a->line == b->line || is_flag(a)));
}

void rule_json(const struct rule_ref *rule, const char *name, struct json *json)
{
	json_object(json, name);
	json_string(json, "id", rule->id);
	json_string(json, "file", rule->file);
	json_unsigned(json, "line", rule->line);
	json_object_end(json);
}

void rule_print(const struct rule_ref *rule, struct buffer *buffer)
{
	if (!rule->file) {
		buffer_format(buffer, "built-in \"%s\"", rule->id);
	} else if (is_flag(rule)) {
		buffer_format(buffer, "flag %s", rule->file);
	} else {
		buffer_format(buffer, "\"%s\" ", rule->id);
		buffer_visible(buffer, rule->file);
		buffer_format(buffer, ":%u", rule->line);
	}
}
