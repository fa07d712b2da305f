#include "broker/effective.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "broker/approval.h"
#include "broker/battery.h"
#include "broker/binding.h"
#include "broker/egress_request.h"
#include "broker/isolation.h"
#include "broker/runtime.h"
#include "broker/staging.h"
#include "broker/summary.h"
#include "broker/sweeping.h"
#include "isolate/diagnosis.h"
#include "kernel/landlock.h"
#include "policy/action.h"
#include "policy/danger.h"
#include "policy/environment.h"
#include "policy/glob.h"
#include "policy/input.h"
#include "policy/place.h"
#include "trace/recorder.h"
#include "workspace/cache.h"
#include "workspace/git_find.h"
#include "workspace/hide.h"
#include "workspace/identity.h"
#include "workspace/program_view.h"
#include "workspace/root.h"
#include "workspace/secret_find.h"
#include "workspace/system.h"
#include "workspace/toolchain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct maker {
	const struct request *request;
	struct arena *arena;
	struct effective *effective;
	struct root root;     /* the workspace */
	struct policy policy; /* before it is encoded */
	struct denial_list *denials;
	enum effective_failure failure;
	bool host_suspect; /* what failed may be for want of something in the host's kernel */
	struct error *error;
	bool state_is_exposed; /* to what was asked for: nothing is written there */
};

static struct probe_subject subject_of(const struct effective *effective, const char *directory)
{
	return (struct probe_subject){ .host_root = effective->host.root,
				       .uid = effective->host.uid,
				       .gid = effective->host.gid,
				       .directory = directory ? directory : "." };
}

/* A start opens more the more there is to show; a small project of git needs 54. */
#define FILES_LEAST 64u
#define FILES_REMEDY "raise it, as by `ulimit -n 1024`"

int effective_check_files(struct error *error)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= FILES_LEAST)
		return 0;
	return error_set(error, EMFILE,
			 "the limit of open files is %llu (ulimit -n), and a start needs more: %s",
			 (unsigned long long)files.rlim_cur, FILES_REMEDY);
}

/* Which limit it was that a step met. */
static void name_files_limit(struct error *error)
{
	struct error step = *error;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		(void)error_set(error, step.code,
				"the limit of open files is %llu (ulimit -n), and this start needs "
				"more: " FILES_REMEDY "; %s",
				(unsigned long long)files.rlim_cur, step.message);
}

static void diagnose(const struct effective *effective, const char *directory, struct error *error)
{
	const struct probe_subject subject = subject_of(effective, directory);

	if (error->code != -EMFILE)
		diagnosis_explain(&subject, error);
	else if (effective_check_files(error) == 0)
		name_files_limit(error);
}

static void note_answer(const struct approval_request *request, enum approval_answer answer,
			const char *why, void *context)
{
	(void)request;
	(void)why;
	*(enum approval_answer *)context = answer;
}

/* A request that no rule allows: a person would have to; deny where nobody can be asked. */
static int ask_about(struct maker *maker, enum denial_kind kind, struct rule_ref rule,
		     const char *target, const char *reason)
{
	struct approval_request request = {
		.verb = denial_text(kind)->verb, .target = target, .rule = rule, .reason = reason
	};
	enum approval_answer answer = APPROVAL_DENY;

	if (approval_ask(&request, 0, note_answer, &answer) == 0 && answer == APPROVAL_ONCE)
		return 0;
	maker->failure = EFFECTIVE_DENIED;
	if (maker->denials)
		(void)denial_add(maker->denials, kind, request.rule, target, true);
	return error_set(maker->error, EPERM, "%s: %s", target, reason);
}

static int ask(struct maker *maker, enum denial_kind kind, enum rule_builtin rule,
	       const char *target, const char *reason)
{
	return ask_about(maker, kind, rule_builtin(rule), target, reason);
}

static uint32_t flag_rule(struct maker *maker, const char *flag, uint32_t position)
{
	struct rule_ref rule = { .id = arena_format(maker->arena, "flag.%s", flag + 2),
				 .file = flag,
				 .line = position };

	return policy_rule(&maker->policy, maker->arena, rule);
}

static uint32_t path_rule(struct maker *maker, const struct request_path *given)
{
	return given->rule.id ? policy_rule(&maker->policy, maker->arena, given->rule) :
				flag_rule(maker, given->flag, given->position);
}

static int add_row(struct maker *maker, struct view_path row)
{
	if (!view_add(&maker->policy.view, maker->arena, row))
		return error_set(maker->error, E2BIG, "more than %u paths to show",
				 VIEW_LIMIT_PATHS);
	return 0;
}

/*
 * The real path of what a flag names. What lies in the workspace may be a link that a task made: it
 * is not the caller's word for the place outside that it leads to (ret_led_out). Goes by each step
 * of the path as it was written, since with ".." in it the text alone does not tell which names
 * lie in the workspace; and what was judged is what is returned, since names change meanwhile.
 */
static int resolve_given(const struct maker *maker, const char *written, const char **ret_real,
			 bool *ret_led_out)
{
	const char *workspace = maker->policy.workspace, *real, *at = "/";
	int result = path_is_absolute(written) ? 0 :
						 root_resolve(".", maker->arena, &at, maker->error);

	*ret_led_out = false;
	for (size_t length; *written && result == 0; written += length) {
		char *step;

		length = strspn(written, "/");
		if (length)
			continue;
		length = strcspn(written, "/");
		step = arena_format(maker->arena, "%s/%.*s", at[1] ? at : "", (int)length, written);
		if (!step)
			return error_errno(maker->error, ENOMEM, "resolving a path");
		result = root_resolve(step, maker->arena, &real, maker->error);
		if (result < 0)
			break;
		*ret_led_out |= path_is_clean(step) && path_is_under(step, workspace) &&
				!path_is_under(real, workspace);
		at = real;
	}
	*ret_real = at;
	return result;
}

/* Asked for by name, though nobody needs to. */
static bool in_every_box(const char *path)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					       "/dev/urandom" };

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strcmp(path, devices[i]) == 0)
			return true;
	return false;
}

/* A refusal is on record, but not where a task that was let in before could write. */
static int refuse_danger(struct maker *maker, const char *path, const char *danger)
{
	maker->state_is_exposed |= path_is_under(maker->effective->state.path, path);
	return ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, path, danger);
}

/* The caller's own path by flag: real path, what it is, whether it may be shown at all. */
static int show_path(struct maker *maker, const struct request_path *given)
{
	struct error *error = maker->error;
	const char *real = NULL, *danger, *home = maker->effective->host.real_home;
	struct view_path row = { .class = given->class };
	struct stat status;
	char *clean;
	bool led_out;
	int result = resolve_given(maker, given->path, &real, &led_out);

	if (result < 0 || !real)
		return error_context(error, "%s %.200s", given->flag, given->path);
	danger = danger_of_path(real, given->class, home, maker->effective->state.path);
	if (danger)
		return refuse_danger(maker, real, danger);
	if (led_out)
		return ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
			   "a link in the workspace leads there; give the path itself");
	if (lstat(real, &status) < 0)
		return error_errno(error, errno, "%s %s", given->flag, real);
	if (S_ISSOCK(status.st_mode))
		return ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
			   "it is a socket, which reaches a process outside of the box");
	if (given->class == PATH_DEVICE ? !S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode) :
					  !S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return error_set(error, EINVAL, "%s %s: %s", given->flag, real,
				 given->class == PATH_DEVICE ? "no device" :
							       "neither a file nor a directory");
	if (given->class == PATH_DEVICE && in_every_box(real))
		return 0;
	if (given->class == PATH_DEVICE && (S_ISBLK(status.st_mode) || major(status.st_rdev) == 1))
		/* block devices, and the memory devices of major 1 (mem(4)) */
		return ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
			   "it reaches the host's disks or memory");
	row.kind = S_ISDIR(status.st_mode) ? PATH_KIND_DIRECTORY : PATH_KIND_FILE;
	row.source = row.target = real;
	row.device = status.st_dev;
	row.inode = status.st_ino;
	row.rule = path_rule(maker, given);
	if (given->name)
		result = input_place(&maker->policy.view, real, given->name, maker->arena,
				     &row.target, error);
	if (result == 0)
		result = add_row(maker, row);
	clean = path_is_absolute(given->path) && !given->name ?
			path_clean(maker->arena, "/", given->path) :
			NULL;
	if (result == 0 && clean && strcmp(clean, real) != 0)
		/* the path as it was written leads there too */
		result = add_row(maker, (struct view_path){ .class = PATH_LINK,
							    .kind = PATH_KIND_FILE,
							    .source = real,
							    .target = clean,
							    .rule = row.rule });
	return result;
}

/* Where the box has something of its own, of which nothing is the host's; it cannot do without. */
static bool is_made_anew(const char *path)
{
	static const char *const places[] = { "/etc", "/dev", "/proc", "/run", PLAN_EVIDENCE };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strcmp(path, places[i]) == 0)
			return true;
	return false;
}

/* Names are meant from the workspace, and may lead up from it. */
static int cover_names(struct maker *maker, const struct request_path *given)
{
	const char *workspace = maker->policy.workspace;
	const char *path = path_clean_up(maker->arena, workspace, given->path);

	if (path && given->class == PATH_HIDE && is_made_anew(path))
		return error_set(maker->error, EINVAL,
				 "%s %s: the box has its own there, and of the host's only what it "
				 "shows; hide names in it",
				 given->flag, given->path);
	if (!path || path_is_absolute(given->path) || strncmp(given->path, "..", 2) != 0)
		path = given->path;
	return hide_view(given->class, path, path_rule(maker, given), maker->arena, &maker->policy,
			 maker->error);
}

static int add_flag_paths(struct maker *maker, bool names)
{
	int result = 0;

	for (size_t i = 0; i < maker->request->path_count && result == 0; i++) {
		const struct request_path *given = &maker->request->paths[i];
		bool is_name = given->class == PATH_HIDE || given->class == PATH_PROTECT;

		if (is_name != names)
			continue;
		result = names ? cover_names(maker, given) : show_path(maker, given);
		/* a policy is for many workspaces, and its glob for what there is in each */
		if (result == -ENOENT && names && given->rule.id && glob_is_pattern(given->path))
			result = 0;
		/* the rest names the place already */
		if (result < 0 && names && given->rule.id)
			(void)error_context(maker->error, "%s", given->flag);
	}
	return result;
}

/* --hide-strict: refuse where hiding is a mask that the host can lift by a rename. */
static int check_strict(struct maker *maker)
{
	const struct view *view = &maker->policy.view;

	if (!(maker->request->flags & POLICY_HIDE_STRICT))
		return 0;
	for (size_t i = 0; i < view->count; i++) {
		/* what no option asked for may be hidden as well as can be */
		if (view->paths[i].class != PATH_HIDE ||
		    !maker->policy.rules[view->paths[i].rule].file)
			continue;
		for (size_t j = 0; j < view->count; j++)
			if (view->paths[j].class == PATH_WRITE &&
			    path_is_under(view->paths[i].target, view->paths[j].target))
				return error_set(
					maker->error, ENOTSUP,
					"--hide-strict: %s lies in %s, which is written in "
					"place; hiding there is a mask that a rename on the "
					"host lifts for a moment",
					view->paths[i].target, view->paths[j].target);
	}
	return 0;
}

static bool set_variable(struct maker *maker, const char *name, const char *value, uint32_t rule)
{
	return policy_variable(&maker->policy, maker->arena, name, value, rule);
}

static void withhold(struct maker *maker, const char *name)
{
	struct effective *effective = maker->effective;
	const char **grown = arena_push(maker->arena, effective->withheld,
					effective->withheld_count, sizeof(*grown));

	if (!grown)
		return;
	effective->withheld = grown;
	grown[effective->withheld_count++] = name;
}

static void pass_caller_variables(struct maker *maker, uint32_t rule)
{
	for (char **at = environ; at && *at; at++) {
		const char *equals = strchr(*at, '=');
		char *name = equals ? arena_copy_bytes(maker->arena, *at, (size_t)(equals - *at)) :
				      NULL;

		if (!name || !name[0])
			continue;
		if (environment_is_passed(name))
			(void)set_variable(maker, name, equals + 1, rule);
		else if (!environment_is_own(name))
			withhold(maker, name);
	}
}

static void unwithhold(struct effective *effective, const char *name)
{
	for (size_t i = 0; i < effective->withheld_count; i++)
		if (strcmp(effective->withheld[i], name) == 0)
			effective->withheld[i] = effective->withheld[--effective->withheld_count];
}

static int add_policy_variables(struct maker *maker)
{
	const struct request *request = maker->request;

	for (size_t i = 0; i < request->variable_count; i++) {
		const struct request_variable *variable = &request->variables[i];
		uint32_t rule = policy_rule(&maker->policy, maker->arena, variable->rule);

		unwithhold(maker->effective, variable->name);
		if (!set_variable(maker, variable->name, variable->value, rule))
			return error_set(maker->error, E2BIG, "too many variables");
	}
	return 0;
}

/* --env NAME passes the caller's value, --env NAME=VALUE sets one. */
static int add_flag_variable(struct maker *maker, const char *given)
{
	size_t length = strcspn(given, "=");
	char *name = arena_copy_bytes(maker->arena, given, length);
	uint32_t rule = flag_rule(maker, "--env", 0);
	const char *value = given[length] ? given + length + 1 : NULL;

	if (!name || !environment_is_name(name))
		return error_set(maker->error, EINVAL,
				 "--env %.100s: not a variable's name; --env NAME or NAME=VALUE",
				 name ? name : "");
	for (char **at = environ; !value && at && *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			value = *at + length + 1;
	if (!value)
		return error_set(maker->error, EINVAL, "--env %s: the caller has no such variable",
				 name);
	unwithhold(maker->effective, name);
	return set_variable(maker, name, value, rule) ?
		       0 :
		       error_set(maker->error, E2BIG, "too many variables");
}

/* Tools that try again and again for what this network will never give, for a minute or more. */
static void set_offline(struct maker *maker)
{
	static const char *const variables[][2] = { { "npm_config_fetch_retries", "0" },
						    { "npm_config_update_notifier", "false" },
						    { "PIP_RETRIES", "0" },
						    { "PIP_DISABLE_PIP_VERSION_CHECK", "1" },
						    { "CARGO_NET_RETRY", "0" } };
	uint32_t rule =
		policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_NETWORK_LOOPBACK));

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		(void)set_variable(maker, variables[i][0], variables[i][1], rule);
}

/*
 * For programs that like a proxy: the door in the box. Any other needs none of this. As HTTP for
 * all schemes, since several clients fail at once at a kind of proxy for which they lack a module.
 */
static void set_online(struct maker *maker)
{
	static const char *const names[] = { "http_proxy",  "HTTP_PROXY", "https_proxy",
					     "HTTPS_PROXY", "all_proxy",  "ALL_PROXY" };
	uint32_t rule =
		policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_NETWORK_LOOPBACK));

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)set_variable(maker, names[i], PLACE_DOOR_URL, rule);
	(void)set_variable(maker, "no_proxy", PLACE_NO_PROXY, rule);
	(void)set_variable(maker, "NO_PROXY", PLACE_NO_PROXY, rule);
}

static int add_environment(struct maker *maker)
{
	struct policy *policy = &maker->policy;
	uint32_t rule = policy_rule(policy, maker->arena, rule_builtin(RULE_ENVIRONMENT_ALLOWLIST));
	int result = 0;

	(void)set_variable(maker, "PATH", "/usr/local/bin:/usr/bin:/bin", rule);
	if (policy->egress.mode == EGRESS_POLICY)
		set_online(maker);
	else
		set_offline(maker);
	pass_caller_variables(maker, rule);
	(void)set_variable(maker, "HOME", policy->home, rule);
	(void)set_variable(maker, "USER", policy->user, rule);
	(void)set_variable(maker, "LOGNAME", policy->user, rule);
	(void)set_variable(maker, "SHELL", policy->shell, rule);
	(void)set_variable(maker, "TMPDIR", "/tmp", rule);
	(void)set_variable(maker, "PWD", policy->cwd, rule);
	(void)set_variable(maker, "XDG_RUNTIME_DIR",
			   arena_format(maker->arena, "/run/user/%u", policy->uid), rule);
	result = add_policy_variables(maker);
	for (size_t i = 0; i < maker->request->environment_count && result == 0; i++)
		result = add_flag_variable(maker, maker->request->environment[i]);
	return result;
}

/* Who the task is inside: the caller, or for the host's root an identity that is nobody's. */
static void set_identity(struct maker *maker)
{
	const struct caller *host = &maker->effective->host;
	struct policy *policy = &maker->policy;

	policy->uid = host->root ? PLAN_ROOT_CALLER_ID : host->uid;
	policy->gid = host->root ? PLAN_ROOT_CALLER_ID : host->gid;
	policy->user = host->root ? "agent" : host->user;
	policy->shell = host->shell;
	policy->home = host->home ? host->home : "/home/user";
}

static int add_git_identity(struct maker *maker)
{
	char *text = NULL;
	int result = identity_load(&maker->effective->host, maker->effective->state.fd,
				   maker->arena, &text, maker->error);

	if (result < 0) {
		/* its role is confined by the host's means, as the box is */
		maker->host_suspect = true;
		return error_context(maker->error, "the caller's git identity");
	}
	if (!text || !text[0])
		return 0;
	return add_row(maker,
		       (struct view_path){ .class = PATH_FILE,
					   .kind = PATH_KIND_FILE,
					   .source = text,
					   .target = arena_format(maker->arena, "%s/.gitconfig",
								  maker->policy.home),
					   .rule = policy_rule(&maker->policy, maker->arena,
							       rule_builtin(RULE_HOME_PRIVATE)) });
}

static enum path_class workspace_class(uint32_t flags)
{
	return flags & POLICY_READ_ONLY ? PATH_READ :
	       flags & POLICY_LAYERED	? PATH_STAGE :
					  PATH_WRITE;
}

static uint32_t workspace_rule(struct maker *maker)
{
	if (maker->request->workspace_rule.id)
		return policy_rule(&maker->policy, maker->arena, maker->request->workspace_rule);
	if (maker->policy.flags & POLICY_READ_ONLY)
		return flag_rule(maker, "--read-only", 0);
	if (maker->policy.flags & POLICY_STAGE)
		return flag_rule(maker, "--stage", 0);
	if (maker->policy.flags & POLICY_EMPTY)
		return flag_rule(maker, "--ephemeral=empty", 0);
	if (maker->policy.flags & POLICY_EPHEMERAL)
		return flag_rule(maker, "--ephemeral", 0);
	if (maker->request->workspace)
		return flag_rule(maker, "--workspace", 0);
	return policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_WORKSPACE_WRITE));
}

static int add_workspace(struct maker *maker)
{
	const struct root root = maker->root;
	const struct state *state = &maker->effective->state;
	const char *danger;

	/* a task that could write there would write what later starts are made of */
	if (path_is_under(state->path, root.path))
		return refuse_danger(maker, state->path,
				     "bawn's own state (--state-dir) lies in the workspace, where "
				     "the task could write; give a directory outside of it");
	danger = danger_of_path(root.path, PATH_WRITE, maker->effective->host.real_home,
				state->path);
	if (danger)
		return refuse_danger(maker, root.path, danger);
	maker->policy.workspace = root.path;
	/* an empty one has no directories */
	maker->policy.cwd = maker->policy.flags & POLICY_EMPTY &&
					    path_is_under(root.cwd, root.path) ?
				    root.path :
				    root.cwd;
	return add_row(maker, (struct view_path){ .class = workspace_class(maker->policy.flags),
						  .kind = PATH_KIND_DIRECTORY,
						  .source = root.path,
						  .target = root.path,
						  .device = root.device,
						  .inode = root.inode,
						  .rule = workspace_rule(maker) });
}

/*
 * Limits that end a command by what it does tell nothing about a box: verify's own probe takes its
 * time, and says what it has to say.
 */
static void spare_probe(struct limits *limits)
{
	limits->values[LIMIT_CPU_TIME] = limit_text(LIMIT_CPU_TIME)->value;
	limits->values[LIMIT_OUTPUT] = limit_text(LIMIT_OUTPUT)->value;
}

/* Built in, then by flag; what was asked for and cannot be held here is refused. */
static int set_limits(struct maker *maker)
{
	const struct request *request = maker->request;
	struct effective *effective = maker->effective;
	struct limits *limits = &maker->policy.limits;
	struct limit_facts facts;
	int result = 0;

	capacity_gather(request->limit_count > 0, &effective->capacity);
	limits_init(&effective->capacity.facts, limits);
	for (size_t i = 0; i < request->limit_count && result == 0; i++)
		result = limits_take(limits, request->limits[i].option, request->limits[i].value,
				     maker->error);
	if (result < 0)
		return result;
	if (maker->policy.timeout_ns)
		limits->values[LIMIT_WALL_CLOCK] = maker->policy.timeout_ns;
	limits_settle(limits);
	capacity_consider_scope(&effective->capacity, limits);
	facts = effective->capacity.facts;
	/* a group holds what was asked for; what is built in is held as if there were none */
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (!limits_is_asked(limits, limit))
			facts.cgroup[limit] = 0;
	limits_means(&facts, effective->means);
	result = limits_check(limits, &facts, effective->means, maker->error);
	if (result == 0 && request->probe)
		spare_probe(limits);
	return result;
}

/* verify's: the program that tries the box out from inside. */
static int add_probe(struct maker *maker)
{
	const char *path = maker->request->probe;
	struct stat status;

	if (!path)
		return 0;
	if (lstat(path, &status) < 0)
		return error_errno(maker->error, errno, "the program %s", path);
	return add_row(maker,
		       (struct view_path){
			       .class = maker->policy.flags & POLICY_EXEC_STRICT ? PATH_PROGRAM :
										   PATH_READ,
			       .kind = PATH_KIND_FILE,
			       .source = path,
			       .target = BATTERY_PROGRAM,
			       .device = status.st_dev,
			       .inode = status.st_ino,
			       .rule = policy_rule(&maker->policy, maker->arena,
						   rule_builtin(RULE_SYSTEM_READ_ONLY)) });
}

/*
 * The workspace and the directory to start in: that may lead up from the current one, and be a
 * descriptor of the caller's, which is no link that a task could have made.
 */
static int find_root(struct maker *maker)
{
	const struct request *request = maker->request;
	const char *cwd = request->cwd;
	char current[PATH_LIMIT_BYTES];
	int result = 0;

	if (cwd && path_is_absolute(cwd) && path_is_clean(cwd) && path_is_under(cwd, "/proc")) {
		result = root_resolve(cwd, maker->arena, &cwd, maker->error);
		if (result < 0)
			return error_context(maker->error, "--cwd");
	} else if (cwd && strncmp(cwd, "..", 2) == 0 && getcwd(current, sizeof(current)) &&
		   current[0] == '/') {
		const char *above = path_clean_up(maker->arena, current, cwd);

		cwd = above ? above : cwd;
	}
	result = root_find(&maker->effective->host, request->workspace, cwd, maker->arena,
			   &maker->root, maker->error);
	/* as it was written */
	return result < 0 && cwd && strncmp(maker->error->message, "--cwd ", 6) == 0 &&
			       strcmp(cwd, request->cwd) != 0 ?
		       error_context(maker->error, "--cwd %.200s", request->cwd) :
		       result;
}

/* What the policies of the place say, and those that are named, becomes part of the request. */
static int bind_policies(struct maker *maker)
{
	const struct request *request = maker->request;
	struct effective *effective = maker->effective;
	struct binding_refusal refusal = { 0 };
	struct binding *binding;
	int result;

	effective->unrecorded = request->unrecorded;
	binding = arena_allocate(maker->arena, sizeof(*binding));
	if (!binding)
		return error_errno(maker->error, ENOMEM, "taking the policy in");
	result = binding_make(&effective->host, effective->state.fd, request, maker->root.path,
			      maker->arena, binding, &refusal, maker->error);
	if (result < 0 && refusal.target) {
		struct error why = *maker->error;

		result = ask_about(maker, DENIAL_POLICY_FLAG, refusal.rule, refusal.target, "");
		*maker->error = why;
	}
	if (result < 0)
		return result;
	effective->binding = binding;
	effective->proposal = adopt_look(binding->layers.store, maker->root.path, maker->arena);
	effective->unrecorded = binding->request.unrecorded;
	maker->request = &binding->request;
	return 0;
}

/* The rule of each limit that a policy set, for those who explain. */
static void add_limit_rules(struct maker *maker)
{
	const struct binding *binding = maker->effective->binding;

	for (enum limit limit = 0; binding && limit < LIMIT_COUNT; limit++)
		if (binding->limit_rules[limit].id)
			maker->policy.limit_rules[limit] = policy_rule(&maker->policy, maker->arena,
								       binding->limit_rules[limit]);
}

/* What policies say of the requests of an action. */
static int add_rulings(struct maker *maker)
{
	int result = ruling_compile(&maker->effective->binding->layers.document, &maker->policy,
				    maker->arena);

	return result < 0 ?
		       error_errno(maker->error, result, "taking the rules about requests in") :
		       0;
}

static void set_tier(struct maker *maker)
{
	const struct binding *binding = maker->effective->binding;
	struct tier_policy *tier = &maker->policy.tier;

	tier->floor = binding->floor;
	if (binding->floor_rule.id)
		tier->floor_rule = policy_rule(&maker->policy, maker->arena, binding->floor_rule);
	tier->change = binding->change;
	if (binding->change_rule.id)
		tier->change_rule = policy_rule(&maker->policy, maker->arena, binding->change_rule);
}

/* In an empty workspace no path of the host's has a place; what is built in goes without. */
static int leave_empty(struct maker *maker)
{
	struct view *view = &maker->policy.view;
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		bool is_below = path_is_under(row->target, maker->policy.workspace) &&
				strcmp(row->target, maker->policy.workspace) != 0;

		if (is_below && maker->policy.rules[row->rule].file &&
		    (row->class == PATH_READ || row->class == PATH_WRITE))
			return error_set(maker->error, EINVAL,
					 "%s lies in the workspace, which is empty "
					 "(--ephemeral=empty); --input PATH shows it elsewhere",
					 row->target);
		if (!is_below)
			view->paths[kept++] = *row;
	}
	view->count = kept;
	return 0;
}

/* What the workspace has that the host's tools, or nobody else, is to be kept from. */
static int look_into_workspace(struct maker *maker)
{
	struct effective *effective = maker->effective;
	struct policy *policy = &maker->policy;
	int result;

	if (policy->flags & POLICY_EMPTY)
		return leave_empty(maker);
	result = git_find(&effective->host, effective->state.path, maker->arena, policy,
			  &effective->git, maker->error);
	return result < 0 || policy->flags & POLICY_SHOW_SECRETS ?
		       result :
		       secret_find(&effective->git, effective->state.fd, maker->arena, policy,
				   &effective->secrets, maker->error);
}

static int fill_policy(struct maker *maker)
{
	struct effective *effective = maker->effective;
	struct policy *policy = &maker->policy;
	struct arena *arena = maker->arena;
	int result;

	policy->flags = maker->request->flags;
	if (__builtin_popcount(policy->flags & POLICY_WORKSPACE) > 1)
		return error_set(maker->error, EINVAL,
				 "--stage, --ephemeral and --read-only exclude each other");
	policy->timeout_ns = maker->request->probe ? maker->request->probe_timeout_ns :
						     maker->request->timeout_ns;
	policy->listeners = (struct policy_listener *)(uintptr_t)maker->request->listeners;
	policy->listener_count = maker->request->listener_count;
	/* row and variable rules refer to this table; rule 0 answers where nothing else does */
	(void)policy_rule(policy, arena, rule_builtin(RULE_SYSTEM_ABSENT));
	(void)policy_rule(policy, arena, rule_builtin(RULE_HOME_PRIVATE));
	add_limit_rules(maker);
	set_identity(maker);
	result = set_limits(maker);
	if (result == 0)
		result = egress_request(maker->request, arena, &policy->egress, maker->error);
	if (result < 0)
		return result;
	result = system_view(&effective->host, arena, policy, maker->error);
	if (result == 0)
		result = add_workspace(maker);
	if (result == 0)
		result = toolchain_view(&effective->host, arena, policy, maker->error);
	if (result == 0)
		result = cache_view(&effective->host, effective->state.fd, effective->state.path,
				    arena, policy, maker->error);
	if (result == 0)
		result = add_git_identity(maker);
	if (result == 0)
		result = add_probe(maker);
	if (result == 0)
		result = add_flag_paths(maker, false);
	if (result == 0)
		result = add_flag_paths(maker, true);
	if (result == 0)
		result = look_into_workspace(maker);
	if (result == 0)
		result = hide_inputs(arena, policy, maker->error);
	if (result == 0)
		result = check_strict(maker);
	if (result == 0 && effective->binding)
		result = add_rulings(maker);
	if (result == 0 && effective->binding)
		set_tier(maker);
	if (result == 0 && effective->binding && !maker->request->only_decides)
		result = binding_check_place(effective->binding, policy, arena, maker->error);
	if (result == 0)
		result = add_environment(maker);
	if (result == 0 && (policy->flags & POLICY_EXEC_STRICT))
		result = program_view(arena, policy, maker->request->probe, maker->error);
	return result;
}

/* The policy is used only as it reads back from its blob: what is hashed is what is enforced. */
static int compile(struct maker *maker)
{
	struct effective *effective = maker->effective;
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;
	int result;

	if (arena_failed(maker->arena))
		return error_errno(maker->error, ENOMEM, "making the effective policy");
	result = policy_encode(&maker->policy, maker->arena, &effective->blob,
			       &effective->blob_length);
	if (result < 0)
		return error_errno(maker->error, result, "compiling the effective policy");
	sha256_begin(&hash);
	sha256_update(&hash, effective->blob, effective->blob_length);
	sha256_end(&hash, digest);
	sha256_hex(digest, effective->hash);
	return policy_decode(effective->blob, effective->blob_length, maker->arena,
			     &effective->policy, maker->error);
}

int effective_make_id(char kind, char ret_id[static ACTION_ID_BYTES])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char random[20];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	ret_id[0] = kind;
	ret_id[1] = '-';
	for (size_t i = 0; i < sizeof(random); i++)
		ret_id[2 + i] = letters[random[i] & 31];
	ret_id[2 + sizeof(random)] = '\0';
	return 0;
}

static int make_id(struct maker *maker, const char **ret_id)
{
	char id[ACTION_ID_BYTES];

	if (effective_make_id('t', id) < 0)
		return error_set(maker->error, EIO, "no random bytes for the task's id");
	*ret_id = arena_copy(maker->arena, id);
	return 0;
}

static int choose_tier(struct maker *maker)
{
	struct effective *effective = maker->effective;
	const struct policy *policy = &effective->policy;

	effective->tier = tier_choose(&policy->tier, tier_facts(policy, isolation_look(effective)));
	effective->tier_reason = tier_reason(&policy->tier, &effective->tier, maker->arena);
	return effective->tier_reason ? 0 : error_errno(maker->error, ENOMEM, "choosing a tier");
}

static int make_plan(struct maker *maker)
{
	struct effective *effective = maker->effective;
	struct plan_facts facts = {
		.host_root = effective->host.root,
		/* a scope's group is the caller's, as the task's processes are, but for root's */
		.owns_cgroup =
			(effective->policy.flags & POLICY_NESTED_USERNS) &&
			((!effective->host.root &&
			  capacity_needs_scope(&effective->capacity, &effective->policy.limits)) ||
			 host_owns_cgroup(&effective->host)),
	};
	int result = make_id(maker, &effective->task);

	if (result < 0)
		return result;
	effective->landlock_abi = landlock_abi();
	facts.landlock_abi = effective->landlock_abi;
	if (!facts.landlock_abi) {
		maker->host_suspect = true;
		return error_set(maker->error, EOPNOTSUPP, "this kernel has no Landlock");
	}
	facts.task_directory =
		arena_format(maker->arena, "%s/tasks/%s", effective->state.path, effective->task);
	facts.spares = arena_format(maker->arena, "%s/spares", effective->state.path);
	facts.skeletons = arena_format(maker->arena, "%s/skeletons", effective->state.path);
	facts.summary_text = summary_text(effective, maker->arena);
	facts.summary_json = summary_json(effective, maker->arena);
	if (!facts.task_directory || !facts.spares || !facts.skeletons || !facts.summary_text ||
	    !facts.summary_json)
		return error_errno(maker->error, ENOMEM, "planning");
	result = plan_build(&effective->policy, &facts, maker->arena, &effective->plan,
			    maker->error);
	/* an empty one has nothing below it that could refuse */
	if (result < 0 || !(effective->policy.flags & POLICY_LAYERED) ||
	    effective->policy.flags & POLICY_EMPTY)
		return result;
	facts.copies = true;
	return plan_build(&effective->policy, &facts, maker->arena, &effective->fallback,
			  maker->error);
}

/* False: to be tried again by the next start, for want of room or rights now. */
static bool bury(void *context, const struct state *state, const char *task)
{
	struct effective *effective = context;
	struct error ignored = ERROR_NONE, unlanded = ERROR_NONE;
	int result = staging_resume(state, task);

	/* what its git did waits in the stage, too */
	if (result == 0)
		result = sweeping_resume(&effective->host, state, task, &unlanded);

	if (unlanded.code < 0)
		effective->unlanded = unlanded;
	if (result < 0)
		return false;
	result = recorder_bury(state->fd, task, &ignored);
	capacity_reap(task);
	/* a chain that is damaged stays so; `bawn trace verify` tells */
	return result == 0 || result == -EBADMSG;
}

/* Their sockets lie elsewhere, and are looked for only then. */
void effective_reap(struct effective *effective, struct arena *arena)
{
	struct runtime CLEANUP_RUNTIME runtime = RUNTIME_NONE;
	struct error ignored = ERROR_NONE;

	if (state_reap(&effective->state, bury, effective) &&
	    runtime_open(&effective->host, &effective->state, effective->state_is_default,
			 RUNTIME_LOOK, arena, &runtime, &ignored) == 0)
		runtime_reap(&runtime, &effective->state);
}

int effective_make(const struct request *request, struct arena *arena, struct effective *ret,
		   enum effective_failure *ret_failure, struct denial_list *denials,
		   struct error *error)
{
	struct maker maker = { .request = request,
			       .arena = arena,
			       .effective = ret,
			       .denials = denials,
			       .error = error };
	int result;

	*ret = EFFECTIVE_NONE;
	result = host_gather(arena, &ret->host, error);
	if (result == 0 && ret->host.inside && request->widening)
		result = ask(&maker, DENIAL_BOX_WIDENING, RULE_NARROW_ONLY, request->widening,
			     "inside of a box a request can only narrow");
	if (result == 0 && ret->host.inside)
		result = error_set(error, EOPNOTSUPP, EFFECTIVE_INSIDE);
	if (result == 0)
		result = effective_check_files(error);
	if (result == 0)
		result = state_open(&ret->host, request->state_path, arena, &ret->state, error);
	ret->state_is_default = !request->state_path;
	if (result == 0)
		effective_reap(ret, arena);
	if (result == 0)
		result = find_root(&maker);
	ret->workspace = maker.root.path;
	ret->cwd = maker.root.cwd;
	if (result == 0)
		result = bind_policies(&maker);
	if (result == 0)
		result = fill_policy(&maker);
	if (result == 0)
		result = compile(&maker);
	if (result == 0)
		result = choose_tier(&maker);
	if (result == 0)
		result = make_plan(&maker);
	/* a refusal is on record in it (broker/refusal.h) */
	if (result < 0 && ret->state.fd >= 0 &&
	    (maker.failure != EFFECTIVE_DENIED || maker.state_is_exposed)) {
		state_unmake(&ret->state);
		state_close(&ret->state);
	}
	/* much of the above needs /proc and openat2, and fails without in words of its own */
	if (result < 0 && (maker.host_suspect || result == -ENOSYS || result == -EMFILE ||
			   access("/proc/self", F_OK) < 0))
		diagnose(ret, maker.policy.workspace, error);
	*ret_failure = maker.failure;
	return result;
}

void effective_diagnose(const struct effective *effective, struct error *error)
{
	diagnose(effective, effective->policy.workspace, error);
}

int effective_probe(const struct effective *effective, uint32_t *ret_absent, struct error *refusal)
{
	const struct probe_subject subject = subject_of(effective, effective->policy.workspace);
	struct probe_report report;

	probe_run(&subject, &report);
	*ret_absent = 0;
	for (enum layer layer = 0; layer < LAYER_COUNT; layer++)
		if (diagnosis_layer(&report, layer) == ENFORCEMENT_ABSENT)
			*ret_absent |= UINT32_C(1) << layer;
	return diagnosis_refusal(&report, refusal);
}

void effective_free(struct effective *effective)
{
	capacity_close(&effective->capacity);
	state_close(&effective->state);
}
