/* The plan from its first operation to its last, and the name of its skeleton. */
#include "plan/builder.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "policy/place.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>

struct plan_op *builder_emit(struct builder *builder, enum plan_kind kind, enum layer layer)
{
	static struct plan_op nowhere;
	struct plan_op *ops = arena_push(builder->arena, builder->plan.ops, builder->plan.count,
					 sizeof(struct plan_op));

	if (!ops) {
		nowhere = (struct plan_op){ 0 };
		return &nowhere;
	}
	builder->plan.ops = ops;
	ops += builder->plan.count++;
	*ops = (struct plan_op){ .kind = kind, .layer = layer };
	return ops;
}

struct plan_op *builder_emit_at(struct builder *builder, enum plan_kind kind, enum layer layer,
				const char *target)
{
	struct plan_op *op = builder_emit(builder, kind, layer);

	op->target = target;
	return op;
}

static void emit_areas(struct builder *builder)
{
	struct plan_op *areas = builder_emit(builder, PLAN_AREAS, LAYER_MOUNT);

	areas->number = builder->policy->limits.values[LIMIT_AREA_SIZE];
	areas->flags = builder->policy->limits.values[LIMIT_AREA_INODES];
	for (size_t i = 0; i < builder->area_count; i++)
		builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT, builder->areas[i].name)
			->number = builder->areas[i].mode;
}

static void emit_namespaces(struct builder *builder)
{
	static const struct {
		uint64_t flag;
		enum layer layer;
	} namespaces[] = {
		{ CLONE_NEWUSER, LAYER_USER_NAMESPACE },
		{ CLONE_NEWNS, LAYER_MOUNT },
		{ CLONE_NEWPID, LAYER_PID },
		{ CLONE_NEWNET, LAYER_NETWORK },
		{ CLONE_NEWIPC, LAYER_IPC },
		{ CLONE_NEWUTS, LAYER_UTS },
		{ CLONE_NEWCGROUP, LAYER_CGROUP },
	};

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		builder_emit(builder, PLAN_NAMESPACE, namespaces[i].layer)->number =
			namespaces[i].flag;
}

static void emit_made_rows(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		struct plan_op *op;

		if (row->class != PATH_LINK && row->class != PATH_FILE)
			continue;
		if (builder_is_hidden(view, row->target) ||
		    builder_was_made(builder, row->target) ||
		    builder_mount_above(builder, row->target, builder->row_count))
			continue;
		builder_make_directories(builder, row->target, 0, false);
		op = builder_emit_at(builder, row->class == PATH_LINK ? PLAN_LINK : PLAN_FILE,
				     LAYER_MOUNT, row->target);
		op->source = row->source;
		op->number = row->class == PATH_FILE ? 0644 : 0;
		op->flags = builder_kept_flag(builder, row->target);
		op->rule = row->rule;
		builder_note_made(builder, row->target);
	}
}

static void emit_proc(struct builder *builder)
{
	/* world-readable facts about the host, or oracles for attacks on its kernel */
	static const char *const masked[] = { "/proc/kallsyms", "/proc/config.gz", "/proc/keys",
					      "/proc/cmdline", "/proc/modules" };
	bool nested = builder->policy->flags & POLICY_NESTED_USERNS;
	struct plan_op *op = builder_emit_at(builder, PLAN_PROC, LAYER_PROC, "/proc");

	if (nested)
		/* a nested sandbox mounts its own proc only where this one is wholly visible */
		return;
	op->flags = PLAN_READ_ONLY;
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++)
		builder_emit_at(builder, PLAN_MASK, LAYER_PROC, masked[i])->flags = PLAN_OPTIONAL |
										    PLAN_EMPTY;
}

/* The base directories of the home (XDG Base Directory Specification), which programs expect. */
static void emit_home(struct builder *builder)
{
	static const char *const names[] = { ".cache", ".config", ".local/share" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		builder_make_directories(
			builder,
			arena_format(builder->arena, "%s/%s", builder->policy->home, names[i]), 0,
			true);
}

static void emit_count(struct builder *builder, const char *name, enum limit limit)
{
	struct plan_op *op = builder_emit_at(builder, PLAN_COUNT, LAYER_USER_NAMESPACE, name);

	op->number = builder->policy->limits.values[limit];
}

/* What the kernel counts by user namespace, and by the user around it (user_namespaces(7)). */
static void emit_counts(struct builder *builder)
{
	static const char *const kinds[] = {
		"max_cgroup_namespaces", "max_ipc_namespaces", "max_mnt_namespaces",
		"max_net_namespaces",	 "max_pid_namespaces", "max_time_namespaces",
		"max_user_namespaces",	 "max_uts_namespaces",
	};

	emit_count(builder, "max_inotify_instances", LIMIT_WATCHERS);
	emit_count(builder, "max_inotify_watches", LIMIT_WATCHES);
	/* the filter lets nobody else make one */
	if (!(builder->policy->flags & POLICY_NESTED_USERNS))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		emit_count(builder, kinds[i], LIMIT_NAMESPACES);
}

/* A home may lie in another one, /var/tmp/user, which is to be there first. */
static void emit_area_mounts(struct builder *builder, bool nested)
{
	for (size_t i = 0; i < builder->area_count; i++) {
		struct plan_op *op;

		/* what lies in an area is no part of the skeleton */
		if (!builder_kept_flag(builder, builder->areas[i].target) != nested)
			continue;
		builder_make_directories(builder, builder->areas[i].target, 0, true);
		op = builder_emit_at(builder, PLAN_AREA, LAYER_MOUNT, builder->areas[i].target);
		op->source = builder->areas[i].name;
		op->flags = builder->areas[i].flags;
	}
}

static void emit_view(struct builder *builder)
{
	struct plan_op *root;
	struct plan_op *terminals;

	emit_areas(builder);
	builder_emit_evidence(builder);
	root = builder_emit(builder, PLAN_ROOT, LAYER_MOUNT);
	root->flags = PLAN_READ_ONLY;
	emit_area_mounts(builder, false);
	emit_area_mounts(builder, true);
	emit_home(builder);
	emit_made_rows(builder);
	for (size_t i = 0; i < builder->row_count; i++)
		builder_emit_row(builder, i);
	builder_emit_stores(builder);
	builder_make_directories(builder, "/proc", 0, true);
	emit_proc(builder);
	builder_make_directories(builder, "/dev/pts", 0, true);
	terminals = builder_emit_at(builder, PLAN_DEVPTS, LAYER_SESSION, "/dev/pts");
	terminals->number = builder->policy->limits.values[LIMIT_TERMINALS];
	terminals->flags = builder->policy->flags & POLICY_TTY ? PLAN_HANDED : 0;
	builder_emit_in_place(builder);
	builder_emit(builder, PLAN_PIVOT, LAYER_MOUNT);
}

/* The name of the skeleton is the hash of what it is made of. */
static const char *skeleton_path(const struct builder *builder)
{
	unsigned char digest[SHA256_BYTES];
	char hex[SHA256_HEX_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	for (size_t i = 0; i < builder->plan.count; i++) {
		const struct plan_op *op = &builder->plan.ops[i];
		const unsigned char head[] = { (unsigned char)op->kind, (unsigned char)op->number,
					       (unsigned char)(op->number >> 8) };

		if (!plan_is_kept(op))
			continue;
		/* with their NULs, so that no two lists read the same */
		sha256_update(&hash, head, sizeof(head));
		sha256_update(&hash, op->target, strlen(op->target) + 1);
		if (op->source)
			sha256_update(&hash, op->source, strlen(op->source) + 1);
		if (op->kind == PLAN_COPY)
			sha256_update(&hash, &op->state, sizeof(op->state));
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, hex);
	return arena_format(builder->arena, "%s/%.32s", builder->facts->skeletons, hex);
}

static void name_skeleton(struct builder *builder)
{
	const char *path = skeleton_path(builder);

	for (size_t i = 0; i < builder->plan.count; i++) {
		struct plan_op *op = &builder->plan.ops[i];

		if (op->kind == PLAN_SKELETON)
			op->target = path;
		else if (op->kind == PLAN_ROOT)
			op->source = path;
	}
}

static void emit_identity(struct builder *builder, enum plan_kind kind)
{
	struct plan_op *op = builder_emit(builder, kind, LAYER_USER_NAMESPACE);

	op->number = builder->policy->uid;
	op->flags = builder->policy->gid;
}

static void emit_capture(struct builder *builder)
{
	struct plan_op *op = builder_emit(builder, PLAN_CAPTURE, LAYER_NETWORK);

	op->number = PLACE_LISTENER_PORT;
	op->flags = builder->policy->flags & POLICY_CAPTURE_ALL ? 0 : PLAN_OPTIONAL;
}

static void emit_box(struct builder *builder)
{
	const struct policy *policy = builder->policy;

	emit_namespaces(builder);
	emit_identity(builder, PLAN_IDENTITY);
	builder_emit(builder, PLAN_HOSTNAME, LAYER_UTS)->source = PLAN_BOX_HOSTNAME;
	builder_emit(builder, PLAN_LOOPBACK, LAYER_NETWORK);
	for (size_t i = 0; i < policy->listener_count; i++)
		builder_emit(builder, PLAN_LISTENER, LAYER_NETWORK)->number = i;
	if (policy->egress.mode == EGRESS_POLICY) {
		builder_emit(builder, PLAN_ROUTES, LAYER_NETWORK);
		emit_capture(builder);
	}
	emit_view(builder);
	emit_counts(builder);
	emit_identity(builder, PLAN_NESTED_USER);
	/* who owns one mounts cgroupfs, and could write to the caller's groups there */
	if ((policy->flags & POLICY_NESTED_USERNS) && builder->facts->owns_cgroup)
		builder_emit(builder, PLAN_NO_CGROUP_NAMESPACES, LAYER_CGROUP);
	builder_emit(builder, PLAN_INIT_CAPABILITIES, LAYER_CAPABILITIES);
	builder_emit(builder, PLAN_INIT_NO_NEW_PRIVS, LAYER_NO_NEW_PRIVS);
	builder_emit(builder, PLAN_INIT_LANDLOCK, LAYER_LANDLOCK);
	builder_emit(builder, PLAN_INIT_SECCOMP, LAYER_SECCOMP);
	builder_emit(builder, PLAN_INIT, LAYER_INIT);
}

int plan_build(const struct policy *policy, const struct plan_facts *facts, struct arena *arena,
	       struct plan *ret_plan, struct error *error)
{
	const struct area areas[] = {
		{ "home", policy->home, 0700, 0 },
		{ "tmp", "/tmp", 01777, 0 },
		{ "vartmp", "/var/tmp", 01777, 0 },
		{ "shm", "/dev/shm", 01777, PLAN_NO_EXEC },
		{ "runtime", arena_format(arena, "/run/user/%u", policy->uid), 0700, 0 },
		{ "bawn", PLAN_EVIDENCE, 0755, PLAN_READ_ONLY | PLAN_NO_EXEC },
	};
	struct builder builder = {
		.policy = policy,
		.facts = facts,
		.arena = arena,
		.idmap = facts->host_root ? PLAN_IDMAP : 0,
		.areas = areas,
		.area_count = sizeof(areas) / sizeof(areas[0]),
	};

	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "planning");

	builder_sort_rows(&builder);
	if (builder.rows) {
		builder_emit_at(&builder, PLAN_TASK_DIRECTORY, LAYER_MOUNT, facts->task_directory)
			->source = facts->spares;
		builder_emit_leases(&builder);
		builder_emit(&builder, PLAN_SKELETON, LAYER_MOUNT);
		emit_box(&builder);
		builder_emit_enter(&builder);
		if (policy->flags & POLICY_EXEC_STRICT)
			builder_make_strict(&builder);
		name_skeleton(&builder);
	}
	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "planning");
	if (builder.fault)
		return error_set(error, EINVAL,
				 "%s lies inside of another shown path and has no place there; "
				 "show it alone, or the path above it",
				 builder.fault);
	*ret_plan = builder.plan;
	return 0;
}
