#include "plan/builder.h"

#include "base/arena.h"
#include "base/path.h"

/* RLIMIT_*, fixed by the ABI (asm-generic/resource.h) */
#define RLIMIT_CORE_ 4u
#define RLIMIT_NPROC_ 6u
#define RLIMIT_NOFILE_ 7u
#define RLIMIT_SIGPENDING_ 11u
/* Before anything else of the host when memory runs out, but behind what was marked on purpose. */
#define OOM_SCORE 800u

static void allow(struct builder *builder, const char *target, enum plan_access access)
{
	bool is_strict = builder->policy->flags & POLICY_EXEC_STRICT;

	if (is_strict && access == PLAN_ACCESS_READ)
		access = PLAN_ACCESS_READ_DATA;
	if (is_strict && access == PLAN_ACCESS_WRITE)
		access = PLAN_ACCESS_WRITE_DATA;
	builder_emit_at(builder, PLAN_LANDLOCK_ALLOW, LAYER_LANDLOCK, target)->number = access;
}

/* Beside what is allowed above it: rights of a path and of those above add up. */
static void allow_programs(struct builder *builder)
{
	for (size_t i = 0; i < builder->row_count; i++)
		if (builder->rows[i]->class == PATH_PROGRAM)
			builder_emit_at(builder, PLAN_LANDLOCK_ALLOW, LAYER_LANDLOCK,
					builder->rows[i]->target)
				->number = PLAN_ACCESS_READ;
}

/* What belongs to a git directory lies below the rule of that, or of the tree that it lies in. */
static bool is_gits_own(const struct builder *builder, size_t index)
{
	const struct view_path *row = builder->rows[index];
	const struct view_path *above = builder_placed_before(builder, index);

	return row->class == PATH_GIT && above &&
	       (above->class == PATH_WRITE || above->class == PATH_GIT ||
		above->class == PATH_STAGE);
}

static void emit_landlock(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	struct plan_op *op;

	/* file rules forbid every mount, and a box that nests sandboxes needs mounts */
	if (!(policy->flags & POLICY_NESTED_USERNS)) {
		static const char *const writable[] = { "/tmp", "/var/tmp", "/dev/shm" };

		allow(builder, "/", PLAN_ACCESS_LIST);
		allow(builder, "/etc", PLAN_ACCESS_READ);
		allow(builder, "/proc", PLAN_ACCESS_DEVICE);
		allow(builder, "/dev", PLAN_ACCESS_DEVICE);
		allow(builder, PLAN_EVIDENCE "/policy.txt", PLAN_ACCESS_READ);
		allow(builder, PLAN_EVIDENCE "/policy.json", PLAN_ACCESS_READ);
		for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]); i++)
			allow(builder, writable[i], PLAN_ACCESS_WRITE);
		allow(builder, policy->home, PLAN_ACCESS_WRITE);
		allow(builder, arena_format(builder->arena, "/run/user/%u", policy->uid),
		      PLAN_ACCESS_WRITE);
		for (size_t i = 0; i < builder->row_count; i++) {
			const struct view_path *row = builder->rows[i];

			/* what lies below the home or a writable row is covered by it */
			if (row->class == PATH_DEVICE || row->class == PATH_PROGRAM ||
			    builder_is_redundant(builder, i) ||
			    path_is_under(row->target, policy->home) ||
			    path_is_under(row->target, "/etc") || is_gits_own(builder, i))
				continue;
			allow(builder, row->target,
			      builder_shown_class(row) == PATH_READ ? PLAN_ACCESS_READ :
								      PLAN_ACCESS_WRITE);
		}
		allow_programs(builder);
	}
	op = builder_emit_at(builder, PLAN_LANDLOCK, LAYER_LANDLOCK, PLAN_CANARY);
	op->number = builder->facts->landlock_abi;
	op->flags = policy->flags & POLICY_NESTED_USERNS ? PLAN_OPTIONAL : 0;
}

static void emit_limit(struct builder *builder, unsigned resource, uint64_t value)
{
	struct plan_op *op;

	if (value == LIMIT_NONE)
		return;
	op = builder_emit(builder, PLAN_LIMIT, LAYER_LIMITS);
	op->number = resource;
	op->flags = value;
}

void builder_emit_enter(struct builder *builder)
{
	const struct policy *policy = builder->policy;
	unsigned filter = (policy->flags & POLICY_ALLOW_PTRACE ? PLAN_FILTER_PTRACE : 0) |
			  (policy->flags & POLICY_NESTED_USERNS ? PLAN_FILTER_NESTED : 0);

	if (policy->flags & POLICY_EXEC_STRICT)
		filter = PLAN_FILTER_STRICT;
	builder_emit(builder, PLAN_JOIN, LAYER_PID);
	builder_emit(builder, PLAN_SESSION, LAYER_SESSION);
	builder_emit(builder, PLAN_STREAMS, LAYER_STREAMS);
	builder_emit(builder, PLAN_SIGNALS, LAYER_SESSION);
	builder_emit_at(builder, PLAN_DIRECTORY_CHANGE, LAYER_MOUNT, policy->cwd);
	/* 1 and not 0: only 1 also stops a core_pattern that is a pipe (core(5), do_coredump()) */
	emit_limit(builder, RLIMIT_CORE_, 1);
	emit_limit(builder, RLIMIT_NPROC_, policy->limits.values[LIMIT_PIDS]);
	emit_limit(builder, RLIMIT_SIGPENDING_, policy->limits.values[LIMIT_SIGNALS]);
	builder_emit(builder, PLAN_OOM_SCORE, LAYER_LIMITS)->number = OOM_SCORE;
	builder_emit(builder, PLAN_CAPABILITIES, LAYER_CAPABILITIES);
	builder_emit(builder, PLAN_NO_NEW_PRIVS, LAYER_NO_NEW_PRIVS);
	emit_landlock(builder);
	builder_emit(builder, PLAN_SECCOMP, LAYER_SECCOMP)->number = filter;
	/* last: a task that has as many descriptors on their way in sockets as a process may have
	 * open must not keep the filter's listener from being passed (message_send()) */
	emit_limit(builder, RLIMIT_NOFILE_, policy->limits.values[LIMIT_FILES]);
	builder_emit(builder, PLAN_EXEC, LAYER_ENVIRONMENT);
}
