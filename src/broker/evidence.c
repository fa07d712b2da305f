#include "broker/evidence.h"

#include "broker/effective.h"
#include "isolate/box.h"
#include "kernel/status.h"
#include "trace/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

struct gathering {
	const struct box *box;
	const struct entered *entered;
	const struct plan *plan;
	struct evidence_namespaces *namespaces;
	struct status status;
	bool has_status;
};

static bool is_planned(const struct plan *plan, enum layer layer)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].layer == layer)
			return true;
	return false;
}

/* Hiding and protecting in a tree that is written in place: the host can lift a mount on a name. */
static bool is_watched(const struct plan *plan, enum layer layer)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->layer == layer && (layer == LAYER_HIDE || layer == LAYER_PROTECT) &&
		    (op->kind == PLAN_MASK || op->kind == PLAN_PIN ||
		     (op->kind == PLAN_OVERLAY && layer == LAYER_PROTECT)))
			return true;
	}
	return false;
}

static const struct plan_op *landlock_of(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_LANDLOCK)
			return &plan->ops[i];
	return NULL;
}

static enum enforcement measured(bool in_force)
{
	return in_force ? ENFORCEMENT_EXACT : ENFORCEMENT_ABSENT;
}

static const char *namespace_kind(enum layer layer)
{
	switch (layer) {
	case LAYER_USER_NAMESPACE:
		return "user";
	case LAYER_MOUNT:
		return "mnt";
	case LAYER_PID:
		return "pid";
	case LAYER_NETWORK:
		return "net";
	case LAYER_IPC:
		return "ipc";
	case LAYER_UTS:
		return "uts";
	case LAYER_CGROUP:
		return "cgroup";
	default:
		return NULL;
	}
}

static void fill_landlock(const struct gathering *gathering, struct result_layer *row)
{
	const struct plan_op *op = landlock_of(gathering->plan);

	if (!op)
		return;
	if (op->flags & PLAN_OPTIONAL) {
		bool scopes = op->number >= 6;

		row->enforcement = measured(scopes);
		(void)snprintf(row->evidence, sizeof(row->evidence), "%s",
			       scopes ? "scopes only: the box may nest sandboxes" :
					"no scopes before ABI 6, no file rules in a nesting box");
		return;
	}
	/* the action would not have started with a canary that opens */
	row->enforcement = ENFORCEMENT_EXACT;
	(void)snprintf(row->evidence, sizeof(row->evidence), "ABI %u, canary refused",
		       (unsigned)op->number);
}

static void fill_status(const struct gathering *gathering, struct result_layer *row)
{
	const struct status *status = &gathering->status;

	if (!gathering->has_status) {
		row->enforcement = ENFORCEMENT_INFERRED;
		(void)snprintf(row->evidence, sizeof(row->evidence),
			       "set; the process ended before it was read back");
	} else if (row->layer == LAYER_SECCOMP) {
		row->enforcement = measured(status->seccomp == 2);
		(void)snprintf(row->evidence, sizeof(row->evidence), "Seccomp %d", status->seccomp);
	} else if (row->layer == LAYER_NO_NEW_PRIVS) {
		row->enforcement = measured(status->no_new_privs == 1);
		(void)snprintf(row->evidence, sizeof(row->evidence), "NoNewPrivs %d",
			       status->no_new_privs);
	} else {
		uint64_t all = 0;

		for (unsigned i = 0; i < 5; i++)
			all |= status->capabilities[i];
		row->enforcement = measured(all == 0);
		(void)snprintf(row->evidence, sizeof(row->evidence), "CapInh|Prm|Eff|Bnd|Amb %llx",
			       (unsigned long long)all);
	}
}

static const struct evidence_namespace *look_at_namespace(const struct gathering *gathering,
							  enum layer layer, const char *kind)
{
	struct evidence_namespace *one = &gathering->namespaces->of[layer];

	if (!one->is_known)
		one->is_other = status_is_other_namespace(
			gathering->box->proc_fd, gathering->box->init.pid, kind, &one->inode);
	one->is_known = one->inode != 0;
	return one;
}

static void fill(const struct gathering *gathering, struct result_layer *row)
{
	const char *kind = namespace_kind(row->layer);

	row->enforcement = ENFORCEMENT_ABSENT;
	(void)snprintf(row->evidence, sizeof(row->evidence), "not in the plan");
	if (!is_planned(gathering->plan, row->layer))
		return;
	if (kind) {
		const struct evidence_namespace *found =
			look_at_namespace(gathering, row->layer, kind);

		row->enforcement = measured(found->is_other);
		(void)snprintf(row->evidence, sizeof(row->evidence),
			       "/proc/PID/ns/%s %" PRIu64 " %s", kind, found->inode,
			       found->is_other ? "differs" : "is the host's");
	} else if (row->layer == LAYER_LANDLOCK) {
		fill_landlock(gathering, row);
	} else if (row->layer == LAYER_SECCOMP || row->layer == LAYER_NO_NEW_PRIVS ||
		   row->layer == LAYER_CAPABILITIES) {
		fill_status(gathering, row);
	} else if (is_watched(gathering->plan, row->layer)) {
		row->enforcement = ENFORCEMENT_POLLED;
		(void)snprintf(row->evidence, sizeof(row->evidence),
			       "mounts on names, watched and put back");
	} else {
		row->enforcement = ENFORCEMENT_EXACT;
		(void)snprintf(row->evidence, sizeof(row->evidence), "every step succeeded");
	}
}

/* Rules of the policy that this run had nothing to do for: no row, rather than a gap. */
static bool is_wanted(const struct plan *plan, enum layer layer)
{
	return (layer != LAYER_HIDE && layer != LAYER_PROTECT) || is_planned(plan, layer);
}

void evidence_gather(const struct plan *plan, const struct box *box, const struct entered *entered,
		     struct evidence_namespaces *namespaces, struct result *result)
{
	struct gathering gathering = {
		.box = box, .entered = entered, .plan = plan, .namespaces = namespaces
	};

	gathering.has_status = status_read(box->proc_fd, entered->process.pid, &gathering.status) ==
			       0;
	result->layer_count = 0;
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++) {
		if (!is_wanted(plan, layer))
			continue;
		result->layers[result->layer_count].layer = layer;
		fill(&gathering, &result->layers[result->layer_count++]);
	}
}

/* What the kernel says of one process; a task may lower its own, never raise it. */
static void read_back(const struct entered *entered, int resource, uint64_t most, struct held *row)
{
	struct rlimit limit;

	/* refused or gone: what was set before the exec stands, since the exec would have failed */
	if (row->value == LIMIT_NONE ||
	    prlimit(entered->process.pid, (__rlimit_resource_t)resource, NULL, &limit) < 0)
		return;
	if (limit.rlim_max > most)
		row->means = (struct limit_means){ ENFORCEMENT_ABSENT, 0,
						   "the kernel has another value", "" };
	else if (row->limit != LIMIT_CORE)
		row->value = limit.rlim_max;
}

size_t evidence_limits(const struct effective *effective, const struct action *action,
		       const struct entered *entered, struct held ret_rows[LIMIT_COUNT])
{
	const struct limit_facts *facts = &effective->capacity.facts;
	size_t count = 0;
	bool by_group;

	held_fill(&effective->policy.limits, facts, ret_rows);
	/* of this action, where a live task has several */
	ret_rows[LIMIT_WALL_CLOCK].value = action->timeout_ns ? action->timeout_ns : LIMIT_NONE;
	by_group = ret_rows[LIMIT_PIDS].asked && facts->cgroup[LIMIT_PIDS];
	if (!by_group)
		read_back(entered, RLIMIT_NPROC, ret_rows[LIMIT_PIDS].value, &ret_rows[LIMIT_PIDS]);
	read_back(entered, RLIMIT_NOFILE, ret_rows[LIMIT_FILES].value, &ret_rows[LIMIT_FILES]);
	/* 1 and not 0: see PLAN_LIMIT in plan/build.c */
	read_back(entered, RLIMIT_CORE, 1, &ret_rows[LIMIT_CORE]);
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (held_concerns(limit, &effective->policy.view))
			ret_rows[count++] = ret_rows[limit];
	return count;
}
