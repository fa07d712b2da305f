#include "broker/effective.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "broker/approval.h"
#include "broker/battery.h"
#include "broker/binding.h"
#include "broker/effective_internal.h"
#include "broker/egress_request.h"
#include "broker/isolation.h"
#include "broker/summary.h"
#include "kernel/landlock.h"
#include "policy/action.h"
#include "workspace/cache.h"
#include "workspace/hide.h"
#include "workspace/identity.h"
#include "workspace/program_view.h"
#include "workspace/system.h"
#include "workspace/toolchain.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

int maker_ask(struct maker *maker, enum denial_kind kind, enum rule_builtin rule,
	      const char *target, const char *reason)
{
	return ask_about(maker, kind, rule_builtin(rule), target, reason);
}

uint32_t maker_flag_rule(struct maker *maker, const char *flag, uint32_t position)
{
	struct rule_ref rule = { .id = arena_format(maker->arena, "flag.%s", flag + 2),
				 .file = flag,
				 .line = position };

	return policy_rule(&maker->policy, maker->arena, rule);
}

int maker_add_row(struct maker *maker, struct view_path row)
{
	if (!view_add(&maker->policy.view, maker->arena, row))
		return error_set(maker->error, E2BIG, "more than %u paths to show",
				 VIEW_LIMIT_PATHS);
	return 0;
}

/* A refusal is on record, but not where a task that was let in before could write. */
int maker_refuse_danger(struct maker *maker, const char *path, const char *danger)
{
	maker->state_is_exposed |= path_is_under(maker->effective->state.path, path);
	return maker_ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, path, danger);
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
	return maker_add_row(
		maker, (struct view_path){ .class = PATH_FILE,
					   .kind = PATH_KIND_FILE,
					   .source = text,
					   .target = arena_format(maker->arena, "%s/.gitconfig",
								  maker->policy.home),
					   .rule = policy_rule(&maker->policy, maker->arena,
							       rule_builtin(RULE_HOME_PRIVATE)) });
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
	return maker_add_row(
		maker, (struct view_path){
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
		result = maker_add_workspace(maker);
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
		result = maker_add_flag_paths(maker, false);
	if (result == 0)
		result = maker_add_flag_paths(maker, true);
	if (result == 0)
		result = maker_look_into_workspace(maker);
	if (result == 0)
		result = hide_inputs(arena, policy, maker->error);
	if (result == 0)
		result = maker_check_strict(maker);
	if (result == 0 && effective->binding)
		result = add_rulings(maker);
	if (result == 0 && effective->binding)
		set_tier(maker);
	if (result == 0 && effective->binding && !maker->request->only_decides)
		result = binding_check_place(effective->binding, policy, arena, maker->error);
	if (result == 0)
		result = maker_add_environment(maker);
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
		result = maker_ask(&maker, DENIAL_BOX_WIDENING, RULE_NARROW_ONLY, request->widening,
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
		result = maker_find_root(&maker);
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
		effective_diagnose_at(ret, maker.policy.workspace, error);
	*ret_failure = maker.failure;
	return result;
}

void effective_free(struct effective *effective)
{
	capacity_close(&effective->capacity);
	state_close(&effective->state);
}
