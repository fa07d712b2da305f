#include "plan/access.h"

#include "base/path.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <string.h>

static const struct {
	const char *word;
	bool read, write;
	const char *text;
} ways[ACCESS_WAY_COUNT] = {
#define ACCESS_WAY(id, word, read, write, text) [ACCESS_##id] = { word, read, write, text },
#include "plan/access.def"
#undef ACCESS_WAY
};

const char *access_word(enum access_way way)
{
	return ways[way].word;
}

const char *access_text(enum access_way way)
{
	return ways[way].text;
}

bool access_reads(enum access_way way)
{
	return ways[way].read;
}

bool access_writes(enum access_way way)
{
	return ways[way].write;
}

/* A whiteout of an overlay leaves the name free; elsewhere it is masked, or nothing is written. */
static bool is_free(const struct policy *policy, const struct view_path *hidden)
{
	const struct view_path *above = NULL;

	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (row->class != PATH_HIDE && row->class != PATH_PROTECT &&
		    row->class != PATH_OBJECTS && path_is_under(hidden->target, row->target) &&
		    (!above || strlen(row->target) > strlen(above->target)))
			above = row;
	}
	return above && strcmp(above->target, hidden->target) != 0 &&
	       (above->class == PATH_STAGE || above->class == PATH_GIT ||
		above->class == PATH_CACHE);
}

static enum access_way way_of_class(const struct policy *policy, const struct view_path *row)
{
	static const enum access_way by_class[PATH_CLASS_COUNT] = {
		[PATH_READ] = ACCESS_READ_ONLY,	 [PATH_WRITE] = ACCESS_IN_PLACE,
		[PATH_HIDE] = ACCESS_HIDDEN,	 [PATH_PROTECT] = ACCESS_PROTECTED,
		[PATH_CACHE] = ACCESS_CACHE,	 [PATH_DEVICE] = ACCESS_DEVICE,
		[PATH_LINK] = ACCESS_LINK,	 [PATH_FILE] = ACCESS_MADE,
		[PATH_COPY] = ACCESS_COPY,	 [PATH_GIT] = ACCESS_GIT,
		[PATH_OBJECTS] = ACCESS_GIT,	 [PATH_STAGE] = ACCESS_STAGED,
		[PATH_PROGRAM] = ACCESS_PROGRAM,
	};

	if (row->class == PATH_STAGE && policy->flags & POLICY_EMPTY)
		return ACCESS_EMPTY;
	if (row->class == PATH_STAGE && policy->flags & POLICY_EPHEMERAL)
		return ACCESS_EPHEMERAL;
	if (row->class == PATH_HIDE && is_free(policy, row))
		return ACCESS_HIDDEN_OWN;
	return by_class[row->class];
}

/* The deepest operation that shows something of its own at the path or above it. */
static const struct plan_op *find_area(const struct plan *plan, const char *path)
{
	const struct plan_op *found = NULL;

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if ((op->kind == PLAN_AREA || op->kind == PLAN_PROC || op->kind == PLAN_DEVPTS) &&
		    path_is_under(path, op->target) &&
		    (!found || strlen(op->target) > strlen(found->target)))
			found = op;
	}
	return found;
}

static bool is_emptied(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_MASK && plan->ops[i].flags & PLAN_EMPTY &&
		    strcmp(plan->ops[i].target, path) == 0)
			return true;
	return false;
}

static bool is_let_by_landlock(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if ((op->kind == PLAN_LANDLOCK && op->flags & PLAN_OPTIONAL) ||
		    (op->kind == PLAN_LANDLOCK_ALLOW && op->number != PLAN_ACCESS_LIST &&
		     path_is_under(path, op->target)))
			return true;
	}
	return false;
}

/* Of the evidence: what has no mode bit, and files that no rule of Landlock's is for. */
static bool is_sealed(const struct plan *plan, const char *path)
{
	/* that area is named by where it stands, below /run */
	const char *name = path_is_under(path, "/run") ? path_below(path, "/run") : "";

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if ((op->kind == PLAN_AREA_FILE || op->kind == PLAN_AREA_DIRECTORY) &&
		    strcmp(op->target, name) == 0)
			return !op->number ||
			       (op->kind == PLAN_AREA_FILE && !is_let_by_landlock(plan, path));
	}
	return false;
}

/*
 * A process that is not dumpable keeps what needs ptrace(2)'s right to itself (ptrace_may_access()
 * in fs/proc); these names do not need it.
 */
static bool is_closed_init(const char *path)
{
	static const char *const open[] = {
		"arch_status", "attr",	    "autogroup",       "cgroup",     "children",
		"cmdline",     "comm",	    "coredump_filter", "cpuset",     "gid_map",
		"limits",      "loginuid",  "mountinfo",       "mounts",     "net",
		"oom_adj",     "oom_score", "oom_score_adj",   "projid_map", "sched",
		"schedstat",   "sessionid", "setgroups",       "stat",	     "statm",
		"status",      "task",	    "timens_offsets",  "uid_map",    "wchan",
	};
	const char *name = path_below(path, "/proc/1");
	size_t length = strcspn(name, "/");

	if (strncmp(name, "task/1/", 7) == 0) {
		name += 7;
		length = strcspn(name, "/");
	}
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (strlen(open[i]) == length && memcmp(open[i], name, length) == 0)
			return false;
	return length > 0;
}

static struct access of_area(const struct plan_op *op)
{
	struct access access = { .rule = rule_builtin(op->kind == PLAN_PROC ? RULE_SYSTEM_ABSENT :
									      RULE_PRIVATE_AREA),
				 .enforcement = ENFORCEMENT_EXACT };

	if (op->kind == PLAN_PROC)
		access.way = op->flags & PLAN_READ_ONLY ? ACCESS_PROC : ACCESS_PROC_OPEN;
	else if (op->kind == PLAN_DEVPTS)
		access.way = ACCESS_TERMINALS;
	else
		access.way = op->flags & PLAN_READ_ONLY ? ACCESS_EVIDENCE : ACCESS_PRIVATE;
	return access;
}

static bool leads_somewhere(const struct policy *policy, const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < policy->view.count; i++)
		if (policy->view.paths[i].class != PATH_HIDE &&
		    path_is_under(policy->view.paths[i].target, path))
			return true;
	for (size_t i = 0; i < plan->count; i++) {
		enum plan_kind kind = plan->ops[i].kind;

		if ((kind == PLAN_AREA || kind == PLAN_PROC || kind == PLAN_DEVPTS ||
		     kind == PLAN_DIRECTORY || kind == PLAN_LINK || kind == PLAN_FILE) &&
		    path_is_under(plan->ops[i].target, path))
			return true;
	}
	return false;
}

/* In the home, and in directories that only lead there, the host has things which are not shown. */
static enum rule_builtin absent_rule(const struct policy *policy, const char *path)
{
	return path_is_under(path, policy->home) ? RULE_HOME_PRIVATE : RULE_SYSTEM_ABSENT;
}

struct access access_find(const struct policy *policy, const struct plan *plan, const char *path)
{
	const struct view_path *row = view_lookup(&policy->view, path);
	const struct plan_op *area = find_area(plan, path);
	/* what stands at the very path is more than what lies above */
	bool by_row = row && (row->class == PATH_HIDE || !area ||
			      strlen(row->target) >= strlen(area->target));
	struct access access = { .enforcement = ENFORCEMENT_EXACT };

	if (by_row) {
		access.way = way_of_class(policy, row);
		access.rule = policy->rules[row->rule];
		access.row = row;
		access.enforcement = explain_row(policy, plan, row);
		return access;
	}
	if (area) {
		access = of_area(area);
		if (access.way == ACCESS_PROC && is_emptied(plan, path))
			access.way = ACCESS_PROC_EMPTY;
		if (area->kind == PLAN_PROC && path_is_under(path, "/proc/1") &&
		    is_closed_init(path))
			access.way = ACCESS_PROC_INIT;
		if (access.way == ACCESS_EVIDENCE && is_sealed(plan, path))
			access.way = ACCESS_SEALED;
		/* of the caller's home nothing is there */
		if (access.way == ACCESS_PRIVATE && path_is_under(path, policy->home))
			access.rule = rule_builtin(RULE_HOME_PRIVATE);
		return access;
	}
	access.way = leads_somewhere(policy, plan, path) ? ACCESS_DIRECTORY : ACCESS_ABSENT;
	access.rule = rule_builtin(absent_rule(policy, path));
	return access;
}
