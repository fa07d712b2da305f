/*
 * Fixed policies, as the front end would make them on some host: what the golden plans and the
 * properties of plans are made from. No host is looked at.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HOME "/home/user"
#define WORK HOME "/project"

struct sample {
	const char *name;
	void (*fill)(struct policy *policy, struct arena *arena);
	bool host_root;
};

static inline void row(struct policy *policy, struct arena *arena, struct view_path path)
{
	if (!path.source)
		path.source = path.target;
	if (!view_add(&policy->view, arena, path))
		abort();
}

static inline uint32_t builtin(struct policy *policy, struct arena *arena, enum rule_builtin rule)
{
	return policy_rule(policy, arena, rule_builtin(rule));
}

static inline uint32_t flag(struct policy *policy, struct arena *arena, const char *name,
			    uint32_t line)
{
	return policy_rule(policy, arena,
			   (struct rule_ref){ .id = arena_format(arena, "flag.%s", name + 2),
					      .file = name,
					      .line = line });
}

static inline void directory(struct policy *policy, struct arena *arena, enum path_class class,
			     const char *path, const char *name)
{
	row(policy, arena,
	    (struct view_path){ .class = class,
				.kind = PATH_KIND_DIRECTORY,
				.target = path,
				.device = 8,
				.inode = policy->view.count + 2,
				.rule = flag(policy, arena, name, 0) });
}

static inline void file(struct policy *policy, struct arena *arena, enum path_class class,
			const char *path, const char *name)
{
	directory(policy, arena, class, path, name);
	policy->view.paths[policy->view.count - 1].kind = PATH_KIND_FILE;
}

static inline void missing(struct policy *policy, struct arena *arena, const char *path)
{
	directory(policy, arena, PATH_HIDE, path, "--hide");
	policy->view.paths[policy->view.count - 1].kind = PATH_KIND_MISSING;
}

/* What every policy has: a reduced system and the workspace. */
static inline void fill_default(struct policy *policy, struct arena *arena)
{
	static const char *const links[][2] = { { "/bin", "usr/bin" }, { "/lib", "usr/lib" } };
	uint32_t system, work;

	*policy = (struct policy){ .uid = 1000,
				   .gid = 1000,
				   .user = "user",
				   .home = HOME,
				   .shell = "/bin/sh",
				   .workspace = WORK,
				   .cwd = WORK "/src" };
	limits_init(&(struct limit_facts){ .memory_bytes = LIMIT_GIB * 4 }, &policy->limits);
	(void)builtin(policy, arena, RULE_SYSTEM_ABSENT);
	system = builtin(policy, arena, RULE_SYSTEM_READ_ONLY);
	work = builtin(policy, arena, RULE_WORKSPACE_WRITE);
	row(policy, arena,
	    (struct view_path){ .class = PATH_READ,
				.target = "/usr",
				.device = 8,
				.inode = 2,
				.rule = system });
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		row(policy, arena,
		    (struct view_path){ .class = PATH_LINK,
					.kind = PATH_KIND_FILE,
					.target = links[i][0],
					.source = links[i][1],
					.rule = system });
	row(policy, arena,
	    (struct view_path){ .class = PATH_FILE,
				.kind = PATH_KIND_FILE,
				.target = "/etc/passwd",
				.source = "user:x:1000:1000::/home/user:/bin/sh\n",
				.rule = system });
	row(policy, arena,
	    (struct view_path){ .class = PATH_READ,
				.kind = PATH_KIND_FILE,
				.target = "/etc/ssl/certs/ca.crt",
				.device = 8,
				.inode = 3,
				.rule = system });
	row(policy, arena,
	    (struct view_path){ .class = PATH_COPY,
				.kind = PATH_KIND_FILE,
				.target = "/etc/services",
				.device = 8,
				.inode = 6,
				.state = 0x1234,
				.rule = system });
	row(policy, arena,
	    (struct view_path){ .class = PATH_COPY,
				.target = "/etc/set",
				.device = 8,
				.inode = 7,
				.state = 0x5678,
				.rule = system });
	row(policy, arena,
	    (struct view_path){ .class = PATH_DEVICE,
				.kind = PATH_KIND_FILE,
				.target = "/dev/null",
				.device = 5,
				.inode = 4,
				.rule = builtin(policy, arena, RULE_DEVICES_NONE) });
	row(policy, arena,
	    (struct view_path){
		    .class = PATH_WRITE, .target = WORK, .device = 8, .inode = 5, .rule = work });
}

static inline void fill_read(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	directory(policy, arena, PATH_READ, "/srv/data", "--read");
	directory(policy, arena, PATH_READ, "/srv/data/inner", "--read");
	file(policy, arena, PATH_READ, "/opt/tool/list", "--read");
	directory(policy, arena, PATH_READ, HOME "/.nvm", "--read");
	directory(policy, arena, PATH_WRITE, "/srv/data/out", "--write");
	directory(policy, arena, PATH_READ, WORK "/vendor", "--read");
}

static inline void fill_hide_read_only(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	directory(policy, arena, PATH_READ, "/srv/data", "--read");
	directory(policy, arena, PATH_READ, "/srv/more", "--read");
	directory(policy, arena, PATH_READ, HOME "/.cargo", "--read");
	file(policy, arena, PATH_HIDE, "/srv/data/secret", "--hide");
	directory(policy, arena, PATH_HIDE, "/srv/data/a/b", "--hide");
	file(policy, arena, PATH_HIDE, "/srv/data/a/key", "--hide");
	missing(policy, arena, "/srv/data/later/key");
	file(policy, arena, PATH_HIDE, HOME "/.cargo/credentials", "--hide");
	/* deny beats allow: at the place, above it and below it */
	directory(policy, arena, PATH_HIDE, "/srv/more", "--hide");
	directory(policy, arena, PATH_READ, "/srv/more/inner", "--read");
	directory(policy, arena, PATH_READ, "/srv/data/a/b/c", "--read");
	missing(policy, arena, "/nowhere/at/all");
}

static inline void fill_hide_writable(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	file(policy, arena, PATH_HIDE, WORK "/.env", "--hide");
	file(policy, arena, PATH_HIDE, WORK "/conf/deep/key", "--hide");
	directory(policy, arena, PATH_HIDE, WORK "/conf/keys", "--hide");
	missing(policy, arena, WORK "/later");
	file(policy, arena, PATH_PROTECT, WORK "/ci/build.yml", "--protect");
	directory(policy, arena, PATH_PROTECT, WORK "/.hooks", "--protect");
	directory(policy, arena, PATH_WRITE, WORK "/conf/keys/inner", "--write");
	file(policy, arena, PATH_PROTECT, WORK "/conf/keys/one", "--protect");
}

static inline void fill_caches(struct policy *policy, struct arena *arena)
{
	static const char *const names[] = { ".cache/pip", ".npm/_cacache", ".m2/repository" };
	uint32_t rule;

	fill_default(policy, arena);
	rule = builtin(policy, arena, RULE_CACHE_OVERLAY);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		row(policy, arena,
		    (struct view_path){
			    .class = PATH_CACHE,
			    /* the last one is not there on the host */
			    .source = i == 2 ? "" : arena_format(arena, HOME "/%s", names[i]),
			    .target = arena_format(arena, HOME "/%s", names[i]),
			    .upper = arena_format(arena, "/state/caches/project/%zu", i),
			    .rule = rule });
	file(policy, arena, PATH_HIDE, HOME "/.cache/pip/http/token", "--hide");
}

static inline void fill_git(struct policy *policy, struct arena *arena)
{
	static const struct {
		enum path_class class;
		const char *path;
	} rows[] = {
		{ PATH_GIT, WORK "/.git" },
		{ PATH_GIT, WORK "/vendor/.git" },
		{ PATH_GIT, "/srv/store/git" },
		{ PATH_OBJECTS, WORK "/.git/objects" },
		{ PATH_OBJECTS, WORK "/.git/modules/sub/objects" },
		{ PATH_OBJECTS, "/srv/store/git/objects" },
	};
	uint32_t protect;

	fill_default(policy, arena);
	protect = builtin(policy, arena, RULE_WORKSPACE_PROTECT);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row(policy, arena,
		    (struct view_path){ .class = rows[i].class,
					.target = rows[i].path,
					.device = 8,
					.inode = 20 + i,
					.rule = builtin(policy, arena,
							rows[i].class == PATH_GIT ?
								RULE_GIT_OVERLAY :
								RULE_GIT_OBJECTS) });
	directory(policy, arena, PATH_PROTECT, WORK "/.vscode", "--protect");
	policy->view.paths[policy->view.count - 1].rule = protect;
	file(policy, arena, PATH_PROTECT, WORK "/libs/sub/.git", "--protect");
	policy->view.paths[policy->view.count - 1].rule = protect;
	file(policy, arena, PATH_PROTECT, WORK "/tree/.git", "--protect");
	policy->view.paths[policy->view.count - 1].rule = protect;
	policy->view.paths[policy->view.count - 1].kind = PATH_KIND_LINK;
	/* options speak of what is in it */
	file(policy, arena, PATH_HIDE, WORK "/.git/credentials", "--hide");
	file(policy, arena, PATH_HIDE, WORK "/.git/objects/secret", "--hide");
	directory(policy, arena, PATH_PROTECT, WORK "/.git/hooks", "--protect");
}

static inline void fill_nested(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	policy->flags = POLICY_NESTED_USERNS;
}

static inline void fill_ptrace(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	policy->flags = POLICY_ALLOW_PTRACE;
}

static inline void fill_nested_ptrace(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	policy->flags = POLICY_NESTED_USERNS | POLICY_ALLOW_PTRACE;
}

static inline void fill_root(struct policy *policy, struct arena *arena)
{
	fill_caches(policy, arena);
	policy->uid = policy->gid = PLAN_ROOT_CALLER_ID;
	policy->user = "agent";
	directory(policy, arena, PATH_READ, "/srv/data", "--read");
	file(policy, arena, PATH_HIDE, "/srv/data/secret", "--hide");
}

static inline void fill_links(struct policy *policy, struct arena *arena)
{
	static const char *const links[][2] = {
		{ "/data", "/srv/data" },
		{ "/srv/data/link", "secret" },
		{ HOME "/.python", "/opt/python" },
		{ WORK "/link", "/etc/passwd" },
		{ "/etc/alternatives/cc", "/usr/bin/gcc" },
		{ "/hidden", "/usr" },
	};

	fill_default(policy, arena);
	directory(policy, arena, PATH_READ, "/srv/data", "--read");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		row(policy, arena,
		    (struct view_path){ .class = PATH_LINK,
					.kind = PATH_KIND_FILE,
					.target = links[i][0],
					.source = links[i][1],
					.rule = builtin(policy, arena, RULE_TOOLCHAIN_READ) });
	missing(policy, arena, "/hidden");
}

static inline void fill_devices(struct policy *policy, struct arena *arena)
{
	fill_default(policy, arena);
	file(policy, arena, PATH_DEVICE, "/dev/dri/renderD128", "--devices");
	file(policy, arena, PATH_DEVICE, "/dev/nvidia0", "--devices");
}

static inline void fill_listeners(struct policy *policy, struct arena *arena)
{
	static struct policy_listener listeners[] = {
		{ .family = AF_INET, .type = SOCK_STREAM, .port = 0 },
		{ .family = AF_INET6, .type = SOCK_DGRAM, .port = 53 },
	};

	fill_default(policy, arena);
	policy->listeners = listeners;
	policy->listener_count = sizeof(listeners) / sizeof(listeners[0]);
}

/* The workspace staged, with git directories in it and a name hidden. */
static inline void fill_stage(struct policy *policy, struct arena *arena)
{
	fill_git(policy, arena);
	for (size_t i = 0; i < policy->view.count; i++)
		if (strcmp(policy->view.paths[i].target, WORK) == 0) {
			policy->view.paths[i].class = PATH_STAGE;
			policy->view.paths[i].rule = flag(policy, arena, "--stage", 0);
		}
	file(policy, arena, PATH_HIDE, WORK "/.env", "--hide");
	policy->flags |= POLICY_STAGE;
}

/* The same, with nothing kept. */
static inline void fill_ephemeral(struct policy *policy, struct arena *arena)
{
	fill_stage(policy, arena);
	for (size_t i = 0; i < policy->view.count; i++)
		if (policy->view.paths[i].class == PATH_STAGE)
			policy->view.paths[i].rule = flag(policy, arena, "--ephemeral", 0);
	policy->flags ^= POLICY_STAGE | POLICY_EPHEMERAL;
}

/* Listed programs alone, one of them in a toolchain of the home. */
static inline void fill_strict(struct policy *policy, struct arena *arena)
{
	static struct ruling rulings[] = {
		{ .kind = RULING_EXEC_ALLOW, .text = "cat" },
		{ .kind = RULING_EXEC_ALLOW, .text = "python3.11" },
		{ .kind = RULING_EXEC_ALLOW, .text = HOME "/.tools/bin/tool" },
	};
	const struct rule_ref listed = { .id = "exec.allow", .file = "/p.yaml", .line = 3 };
	uint32_t rule;

	fill_caches(policy, arena);
	directory(policy, arena, PATH_READ, HOME "/.tools", "--read");
	file(policy, arena, PATH_PROGRAM, "/usr/bin/cat", "--listed");
	file(policy, arena, PATH_PROGRAM, "/usr/bin/python3.11", "--listed");
	file(policy, arena, PATH_PROGRAM, "/usr/lib/libc.so.6", "--listed");
	file(policy, arena, PATH_PROGRAM, HOME "/.tools/bin/tool", "--listed");
	rule = policy_rule(policy, arena, listed);
	for (size_t i = 0; i < policy->view.count; i++)
		if (policy->view.paths[i].class == PATH_PROGRAM)
			policy->view.paths[i].rule = rule;
	for (size_t i = 0; i < sizeof(rulings) / sizeof(rulings[0]); i++)
		rulings[i].rule = rule;
	policy->rulings = rulings;
	policy->ruling_count = sizeof(rulings) / sizeof(rulings[0]);
	policy->flags |= POLICY_EXEC_STRICT;
}

/* A network that is the policy's. */
static inline void fill_network(struct policy *policy, struct arena *arena)
{
	static struct egress_ports web[] = { { 80, 80 }, { 443, 443 } };
	static struct egress_rule rules[] = {
		{ .ref = { .id = "--allow-host" },
		  .verdict = EGRESS_ALLOW,
		  .kind = EGRESS_EXACT,
		  .name = "example.org",
		  .ports = web,
		  .port_count = 2,
		  .protocols = EGRESS_PROTOCOLS_DEFAULT,
		  .tool = "",
		  .purpose = "" },
	};

	fill_default(policy, arena);
	policy->egress = (struct egress_policy){
		.mode = EGRESS_POLICY, .purpose = "", .rules = rules, .rule_count = 1
	};
}

/* The same, where less than the capture of all connections is not enough. */
static inline void fill_network_all(struct policy *policy, struct arena *arena)
{
	fill_network(policy, arena);
	policy->flags |= POLICY_CAPTURE_ALL;
}

static const struct sample samples[] = {
	{ "default", fill_default, false },
	{ "read", fill_read, false },
	{ "hide-read-only", fill_hide_read_only, false },
	{ "hide-writable", fill_hide_writable, false },
	{ "caches", fill_caches, false },
	{ "nested-userns", fill_nested, false },
	{ "ptrace", fill_ptrace, false },
	{ "nested-ptrace", fill_nested_ptrace, false },
	{ "root", fill_root, true },
	{ "links", fill_links, false },
	{ "devices", fill_devices, false },
	{ "listeners", fill_listeners, false },
	{ "git", fill_git, true },
	{ "stage", fill_stage, false },
	{ "ephemeral", fill_ephemeral, false },
	{ "strict", fill_strict, true },
	{ "network", fill_network, false },
	{ "network-all", fill_network_all, false },
};

#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

static inline int sample_plan(const struct policy *policy, bool host_root, struct arena *arena,
			      struct plan *ret_plan, struct error *error)
{
	const struct plan_facts facts = { .host_root = host_root,
					  .owns_cgroup = !host_root,
					  .landlock_abi = 7,
					  .task_directory = "/state/tasks/t-sample",
					  .spares = "/state/spares",
					  .skeletons = "/state/skeletons",
					  .summary_text = "summary\n",
					  .summary_json = "{}\n" };

	return plan_build(policy, &facts, arena, ret_plan, error);
}
