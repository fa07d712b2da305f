/*
 * What holds in every plan: of the fixed policies, and of some thousand random ones. The plan is
 * read as a list, in order, by a small model of what each operation leaves behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../golden/policies.h"

#include "base/buffer.h"
#include "base/path.h"

#include <errno.h>
#include <stdio.h>

#define RANDOM_PLANS 3000

struct subject {
	const struct policy *policy;
	struct plan plan;
	const char *name;
};

static const struct plan_op *op_at(const struct subject *subject, size_t index)
{
	return &subject->plan.ops[index];
}

/* Fails with the whole plan. */
static void refute(const struct subject *subject, const char *why, const char *what)
{
	struct buffer text = { 0 };

	plan_print(&subject->plan, subject->policy, &text);
	for (size_t i = 0; i < subject->policy->view.count; i++) {
		const struct view_path *path = &subject->policy->view.paths[i];

		buffer_format(&text, "%s %s kind %d\n", path_class_name(path->class), path->target,
			      path->kind);
	}
	(void)fwrite(text.data, 1, text.length, stderr);
	buffer_free(&text);
	fail_msg("%s: %s: %s", subject->name, why, what);
}

static void hold(const struct subject *subject, bool condition, const char *why, const char *what)
{
	if (!condition)
		refute(subject, why, what);
}

static bool is_below(const char *path, const char *root)
{
	return path_is_under(path, root) && strcmp(path, root) != 0;
}

/* Puts a mount on its target. */
static bool mounts(const struct plan_op *op)
{
	switch (op->kind) {
	case PLAN_BIND:
	case PLAN_AREA:
	case PLAN_OVERLAY:
	case PLAN_PROC:
	case PLAN_DEVPTS:
	case PLAN_MASK:
	case PLAN_PIN:
		return true;
	default:
		return false;
	}
}

/* Makes a name in the new root. */
static bool makes(const struct plan_op *op)
{
	return op->kind == PLAN_DIRECTORY || op->kind == PLAN_LINK || op->kind == PLAN_FILE ||
	       op->kind == PLAN_COPY;
}

/* Shows a tree that is not ours: nothing may be made in it. */
static bool shows(const struct plan_op *op)
{
	return op->kind == PLAN_BIND || op->kind == PLAN_OVERLAY || op->kind == PLAN_PROC ||
	       op->kind == PLAN_DEVPTS;
}

/* The mount in which a path lies before the operation at `limit`; a new mount covers older ones. */
static const struct plan_op *mount_of(const struct subject *subject, const char *path, size_t limit)
{
	const struct plan_op *best = NULL;

	for (size_t i = 0; i < limit; i++) {
		const struct plan_op *op = op_at(subject, i);

		/* a pin shows what was there already */
		if (mounts(op) && op->kind != PLAN_PIN && path_is_under(path, op->target))
			best = op;
	}
	return best;
}

static size_t only(const struct subject *subject, enum plan_kind kind)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < subject->plan.count; i++) {
		if (op_at(subject, i)->kind != kind)
			continue;
		hold(subject, found == SIZE_MAX, "twice", plan_kind_name(kind));
		found = i;
	}
	hold(subject, found != SIZE_MAX, "missing", plan_kind_name(kind));
	return found;
}

static void check_order(const struct subject *subject)
{
	static const enum plan_kind once[] = {
		PLAN_TASK_DIRECTORY,
		PLAN_SKELETON,
		PLAN_IDENTITY,
		PLAN_HOSTNAME,
		PLAN_LOOPBACK,
		PLAN_AREAS,
		PLAN_ROOT,
		PLAN_PROC,
		PLAN_DEVPTS,
		PLAN_PIVOT,
		PLAN_NESTED_USER,
		PLAN_INIT_CAPABILITIES,
		PLAN_INIT_NO_NEW_PRIVS,
		PLAN_INIT_LANDLOCK,
		PLAN_INIT_SECCOMP,
		PLAN_INIT,
		PLAN_JOIN,
		PLAN_SESSION,
		PLAN_STREAMS,
		PLAN_SIGNALS,
		PLAN_DIRECTORY_CHANGE,
		PLAN_CAPABILITIES,
		PLAN_NO_NEW_PRIVS,
		PLAN_LANDLOCK,
		PLAN_SECCOMP,
		PLAN_EXEC,
	};
	size_t areas = only(subject, PLAN_AREAS), root = only(subject, PLAN_ROOT);
	size_t pivot = only(subject, PLAN_PIVOT);
	size_t landlock = only(subject, PLAN_LANDLOCK);

	for (size_t i = 1; i < sizeof(once) / sizeof(once[0]); i++)
		hold(subject, only(subject, once[i - 1]) < only(subject, once[i]), "out of order",
		     plan_kind_name(once[i]));
	hold(subject, only(subject, PLAN_EXEC) == subject->plan.count - 1, "not the last", "exec");
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);

		hold(subject,
		     i == 0 || plan_kind_phase(op_at(subject, i - 1)->kind) <=
				       plan_kind_phase(op->kind),
		     "phases out of order", plan_kind_name(op->kind));
		if (mounts(op) || makes(op))
			hold(subject, i > root && i < pivot, "outside of root and pivot",
			     op->target);
		if (op->kind == PLAN_AREA_DIRECTORY || op->kind == PLAN_AREA_FILE ||
		    op->kind == PLAN_WHITEOUT)
			hold(subject, i > areas, "before the areas", op->target);
		if (op->kind == PLAN_LANDLOCK_ALLOW)
			hold(subject, i < landlock && i > only(subject, PLAN_NO_NEW_PRIVS),
			     "rule out of place", op->target);
	}
}

static void check_namespaces(const struct subject *subject)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < subject->plan.count; i++)
		if (op_at(subject, i)->kind == PLAN_NAMESPACE)
			flags |= op_at(subject, i)->number;
	/* user, mount, pid, net, ipc, uts, cgroup (clone(2)) */
	hold(subject,
	     flags == (0x10000000u | 0x20000u | 0x20000000u | 0x40000000u | 0x8000000u |
		       0x4000000u | 0x2000000u),
	     "not all namespaces", "");
}

/* Was the name made by an operation of ours before `limit` and not covered by a mount since? */
static bool is_made(const struct subject *subject, const char *path, size_t limit)
{
	bool made = strcmp(path, "/") == 0;

	for (size_t i = 0; i < limit; i++) {
		const struct plan_op *op = op_at(subject, i);

		if (makes(op) && strcmp(op->target, path) == 0)
			made = true;
		if (mounts(op) && op->kind != PLAN_PIN && is_below(path, op->target))
			made = false;
	}
	return made;
}

static bool is_shown(const struct subject *subject, const char *path, size_t limit)
{
	const struct plan_op *mount = mount_of(subject, path, limit);

	return mount && shows(mount);
}

/* Parents before children; nothing is made twice, nor in a tree of the host. */
static void check_making(const struct subject *subject, struct arena *arena)
{
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);

		if (makes(op)) {
			hold(subject, is_made(subject, path_parent(arena, op->target), i),
			     "made before its parent", op->target);
			hold(subject, !is_made(subject, op->target, i), "made twice", op->target);
			hold(subject, !is_shown(subject, op->target, i),
			     "a stub in a tree of the host", op->target);
		} else if (mounts(op)) {
			hold(subject,
			     is_made(subject, op->target, i) || is_shown(subject, op->target, i),
			     "mounted on nothing", op->target);
		}
	}
}

static void check_links(const struct subject *subject)
{
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *link = op_at(subject, i);

		for (size_t j = 0; link->kind == PLAN_LINK && j < subject->plan.count; j++) {
			const struct plan_op *op = op_at(subject, j);

			if (j != i && (mounts(op) || makes(op) || op->kind == PLAN_LANDLOCK_ALLOW ||
				       op->kind == PLAN_DIRECTORY_CHANGE))
				hold(subject, !path_is_under(op->target, link->target),
				     "a target with a link on the way", op->target);
		}
	}
}

static void check_areas(const struct subject *subject, struct arena *arena)
{
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);
		const char *needed = op->kind == PLAN_AREA    ? op->source :
				     op->kind == PLAN_OVERLAY ? op->shade :
								NULL;
		bool found = !needed;

		if (op->kind == PLAN_WHITEOUT || op->kind == PLAN_AREA_DIRECTORY ||
		    op->kind == PLAN_AREA_FILE) {
			const char *slash = strrchr(op->target, '/');

			hold(subject, op->target[0] != '/', "not in the areas", op->target);
			found = !slash;
			needed = slash ? arena_copy_bytes(arena, op->target,
							  (size_t)(slash - op->target)) :
					 op->target;
		}
		for (size_t j = 0; j < i && needed; j++)
			if (op_at(subject, j)->kind == PLAN_AREA_DIRECTORY &&
			    strcmp(op_at(subject, j)->target, needed) == 0)
				found = true;
		hold(subject, found, "without its area", needed ? needed : "");
	}
}

static bool has_whiteout(const struct subject *subject, const struct plan_op *overlay,
			 const char *path)
{
	const char *below = path_below(path, overlay->target);

	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);
		size_t length = overlay->shade ? strlen(overlay->shade) : 0;

		if (op->kind == PLAN_WHITEOUT && length &&
		    strncmp(op->target, overlay->shade, length) == 0 && op->target[length] == '/') {
			const char *name = op->target + length + 1;
			size_t end = strlen(name);

			/* the name itself, or a directory above it */
			if (strncmp(below, name, end) == 0 &&
			    (below[end] == '\0' || below[end] == '/'))
				return true;
		}
	}
	return false;
}

/* A hidden name is a whiteout in an overlay, under a mask, or nowhere. */
static void check_hidden(const struct subject *subject)
{
	const struct view *view = &subject->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *hide = &view->paths[i];
		const struct plan_op *mount;

		if (hide->class != PATH_HIDE)
			continue;
		for (size_t j = 0; j < subject->plan.count; j++) {
			const struct plan_op *op = op_at(subject, j);

			/* deny beats allow */
			if (((mounts(op) && op->kind != PLAN_MASK && op->kind != PLAN_PIN) ||
			     makes(op) || op->kind == PLAN_LANDLOCK_ALLOW) &&
			    path_is_under(op->target, hide->target))
				refute(subject, "shown although hidden", op->target);
		}
		mount = mount_of(subject, hide->target, subject->plan.count);
		if (!mount || mount->kind == PLAN_AREA || mount->kind == PLAN_MASK)
			continue;
		if (mount->kind == PLAN_OVERLAY)
			hold(subject, has_whiteout(subject, mount, hide->target),
			     "an overlay without its whiteout", hide->target);
		else
			/* what is not there yet is watched for */
			hold(subject,
			     hide->kind == PATH_KIND_MISSING && mount->kind == PLAN_BIND &&
				     !(mount->flags & PLAN_READ_ONLY),
			     "hidden by nothing", hide->target);
	}
}

/* In a tree that is written in place, what leads to a covered name cannot be moved. */
static void check_pinned(const struct subject *subject, struct arena *arena)
{
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i), *mount;

		if (op->kind != PLAN_MASK && !(op->kind == PLAN_PIN && op->layer == LAYER_PROTECT))
			continue;
		mount = mount_of(subject, op->target, i);
		for (const char *above = path_parent(arena, op->target);
		     mount && mount->kind == PLAN_BIND && is_below(above, mount->target);
		     above = path_parent(arena, above)) {
			bool pinned = false;

			for (size_t j = 0; j < i; j++)
				pinned |= op_at(subject, j)->kind == PLAN_PIN &&
					  strcmp(op_at(subject, j)->target, above) == 0;
			hold(subject, pinned, "not pinned", above);
		}
	}
}

/* Each git directory has layers of its own, made before, and packs lie in such a one. */
static void check_git(const struct subject *subject)
{
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);
		unsigned made = 0, used = 0;

		if (op->kind == PLAN_OBJECTS) {
			const struct plan_op *mount = mount_of(subject, op->target, i);

			hold(subject, mount && mount->kind == PLAN_OVERLAY && mount->upper,
			     "packs on no layer", op->target);
			hold(subject, op->flags & PLAN_READ_ONLY, "packs to be written",
			     op->target);
		}
		if (op->kind != PLAN_LAYERS)
			continue;
		for (size_t j = 0; j < subject->plan.count; j++) {
			const struct plan_op *other = op_at(subject, j);

			made += other->kind == PLAN_LAYERS &&
				strcmp(other->target, op->target) == 0;
			used += other->kind == PLAN_OVERLAY && other->upper && j > i &&
				strcmp(other->upper, op->target) == 0;
		}
		hold(subject, made == 1 && used == 1, "layers that are not one overlay's",
		     op->target);
	}
}

/* What is shown and not written is mounted read-only, and what is written is the policy's. */
static void check_writable(const struct subject *subject)
{
	const struct view *view = &subject->policy->view;

	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);
		bool is_written = false;

		if ((op->kind != PLAN_BIND && op->kind != PLAN_OVERLAY) ||
		    (op->flags & PLAN_READ_ONLY))
			continue;
		for (size_t j = 0; j < view->count; j++)
			is_written |= (view->paths[j].class == PATH_WRITE ||
				       view->paths[j].class == PATH_CACHE ||
				       view->paths[j].class == PATH_GIT ||
				       view->paths[j].class == PATH_STAGE ||
				       view->paths[j].class == PATH_DEVICE) &&
				      strcmp(view->paths[j].target, op->target) == 0;
		hold(subject, is_written, "writable without a row", op->target);
	}
	hold(subject, op_at(subject, only(subject, PLAN_ROOT))->flags & PLAN_READ_ONLY,
	     "not read-only", "/");
	hold(subject,
	     !(op_at(subject, only(subject, PLAN_PROC))->flags & PLAN_READ_ONLY) ==
		     !!(subject->policy->flags & POLICY_NESTED_USERNS),
	     "proc", "read-only");
}

/* The skeleton is shared between tasks: nothing of a private area or of a host's tree is in it. */
static void check_skeleton(const struct subject *subject)
{
	const struct plan_op *skeleton = op_at(subject, only(subject, PLAN_SKELETON));

	hold(subject,
	     strcmp(op_at(subject, only(subject, PLAN_ROOT))->source, skeleton->target) == 0,
	     "another root", skeleton->target);
	for (size_t i = 0; i < subject->plan.count; i++) {
		const struct plan_op *op = op_at(subject, i);

		if (makes(op))
			hold(subject, plan_is_kept(op) == !mount_of(subject, op->target, i),
			     "kept or not", op->target);
	}
}

/* A copy stands where nobody but its own row speaks of the path; else the host's own is bound. */
static void check_copies(const struct subject *subject)
{
	const struct view *view = &subject->policy->view;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		unsigned copies = 0;
		bool is_alone = true;

		if (row->class != PATH_COPY)
			continue;
		for (size_t j = 0; j < view->count; j++)
			is_alone &= i == j || !path_is_under(view->paths[j].target, row->target);
		for (size_t j = 0; j < subject->plan.count; j++) {
			const struct plan_op *op = op_at(subject, j);

			if (op->kind != PLAN_COPY || strcmp(op->target, row->target) != 0)
				continue;
			copies++;
			hold(subject,
			     op->state == row->state && strcmp(op->source, row->source) == 0,
			     "another copy", op->target);
		}
		hold(subject, copies <= 1 && (!copies || is_alone), "copied", row->target);
	}
}

static void check_all(const struct subject *subject, struct arena *arena)
{
	check_order(subject);
	check_namespaces(subject);
	check_areas(subject, arena);
	check_making(subject, arena);
	check_links(subject);
	check_hidden(subject);
	check_pinned(subject, arena);
	check_git(subject);
	check_writable(subject);
	check_skeleton(subject);
	check_copies(subject);
}

static void fixed_policies(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct error error = ERROR_NONE;
		struct policy policy;
		struct subject subject = { .policy = &policy, .name = samples[i].name };

		samples[i].fill(&policy, &arena);
		if (sample_plan(&policy, samples[i].host_root, &arena, &subject.plan, &error) < 0)
			fail_msg("%s: %s", samples[i].name, error.message);
		check_all(&subject, &arena);
	}
}

/* xorshift (Marsaglia, 2003): the same plans in every run */
static unsigned draw(uint32_t *seed, unsigned below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % below;
}

/* Directories, and files whose names end in "f"; nothing lies in a file. */
static const char *const places[] = {
	"/data",	  "/data/a",	  "/data/a/b",	    "/data/a/b/f",  "/data/a/f",
	"/data/f",	  "/more",	  "/more/a",	    "/more/a/f",    WORK "/a",
	WORK "/a/b",	  WORK "/a/b/f",  WORK "/f",	    WORK "/c/d/f",  WORK "/c",
	HOME "/tool",	  HOME "/tool/a", HOME "/tool/a/f", HOME "/tool/f", "/usr/share",
	"/usr/share/a/f", "/etc/set",	  "/etc/set/f",	    "/opt/x/y/z",   "/opt/x",
};

#define PLACE_COUNT (sizeof(places) / sizeof(places[0]))

static void fill_random(struct policy *policy, struct arena *arena, uint32_t *seed)
{
	static const enum path_class classes[] = { PATH_READ, PATH_READ,    PATH_WRITE, PATH_HIDE,
						   PATH_HIDE, PATH_PROTECT, PATH_CACHE, PATH_GIT };
	unsigned count = 1 + draw(seed, 7);
	bool is_staged = draw(seed, 3) == 0;

	fill_default(policy, arena);
	for (size_t i = 0; i < policy->view.count && is_staged; i++)
		if (policy->view.paths[i].class == PATH_WRITE)
			policy->view.paths[i].class = PATH_STAGE;
	for (unsigned i = 0; i < count; i++) {
		const char *target = places[draw(seed, PLACE_COUNT)];
		enum path_class class = classes[draw(seed, sizeof(classes) / sizeof(classes[0]))];
		bool is_file = target[strlen(target) - 1] == 'f';

		const struct view_path *shown = view_lookup(&policy->view, target);
		/* as the front end does: what is hidden already is not there */
		bool hidden = shown && shown->class == PATH_HIDE;

		if (class == PATH_CACHE && (is_file || strncmp(target, HOME "/tool", 10) != 0))
			class = PATH_READ;
		if (class == PATH_GIT && is_file)
			class = PATH_PROTECT;
		(is_file ? file : directory)(policy, arena, class, target, "--read");
		if (class == PATH_CACHE)
			policy->view.paths[policy->view.count - 1].upper =
				arena_format(arena, "/state/cache/%u", i);
		if (class == PATH_GIT)
			directory(policy, arena, PATH_OBJECTS,
				  arena_format(arena, "%s/objects", target), "--read");
		if (class == PATH_HIDE && (hidden || draw(seed, 3) == 0))
			policy->view.paths[policy->view.count - 1].kind = PATH_KIND_MISSING;
	}
	policy->flags = draw(seed, 4);
}

static void random_policies(void **state)
{
	uint32_t seed = 2463534242u;
	unsigned built = 0;

	(void)state;
	for (unsigned i = 0; i < RANDOM_PLANS; i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct error error = ERROR_NONE;
		struct policy policy;
		char name[32];
		struct subject subject = { .policy = &policy, .name = name };

		(void)snprintf(name, sizeof(name), "random %u", i);
		fill_random(&policy, &arena, &seed);
		/* what has no place is refused, and that is fine */
		if (sample_plan(&policy, draw(&seed, 2), &arena, &subject.plan, &error) < 0) {
			assert_int_equal(error.code, -EINVAL);
			continue;
		}
		built++;
		check_all(&subject, &arena);
	}
	assert_true(built > RANDOM_PLANS / 2);
}

/* Nothing that a plan says depends on the order of unrelated rows, nor on what ran before. */
static void same_policy_same_plan(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct buffer texts[2] = { { 0 }, { 0 } };
		struct error error = ERROR_NONE;

		for (unsigned j = 0; j < 2; j++) {
			struct policy policy;
			struct plan plan;

			samples[i].fill(&policy, &arena);
			assert_int_equal(
				sample_plan(&policy, samples[i].host_root, &arena, &plan, &error),
				0);
			plan_print(&plan, &policy, &texts[j]);
		}
		assert_int_equal(texts[0].length, texts[1].length);
		assert_memory_equal(texts[0].data, texts[1].data, texts[0].length);
		buffer_free(&texts[0]);
		buffer_free(&texts[1]);
	}
}

/* How a path is shown: the operation with this target that mounts or makes. */
static enum plan_kind shown_by(const struct plan *plan, const char *target)
{
	for (size_t i = 0; i < plan->count; i++)
		if ((mounts(&plan->ops[i]) || plan->ops[i].kind == PLAN_COPY) &&
		    strcmp(plan->ops[i].target, target) == 0)
			return plan->ops[i].kind;
	return PLAN_KIND_COUNT;
}

static void copies_give_way(void **state)
{
	static const struct {
		enum path_class class;
		const char *target;
		enum plan_kind services, set; /* how /etc/services and /etc/set are shown then */
	} rows[] = {
		{ PATH_READ, "/srv", PLAN_COPY, PLAN_COPY },
		{ PATH_READ, "/etc/services", PLAN_BIND, PLAN_COPY },
		{ PATH_HIDE, "/etc/services", PLAN_KIND_COUNT, PLAN_COPY },
		{ PATH_READ, "/etc/set/f", PLAN_COPY, PLAN_BIND },
		{ PATH_HIDE, "/etc/set/f", PLAN_COPY, PLAN_OVERLAY },
		{ PATH_HIDE, "/etc/set", PLAN_COPY, PLAN_KIND_COUNT },
		{ PATH_HIDE, "/etc", PLAN_KIND_COUNT, PLAN_KIND_COUNT },
		{ PATH_READ, "/etc", PLAN_KIND_COUNT, PLAN_KIND_COUNT }, /* with the tree */
		{ PATH_READ, "/etc/se", PLAN_COPY, PLAN_COPY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct error error = ERROR_NONE;
		struct policy policy;
		struct plan plan;

		fill_default(&policy, &arena);
		directory(&policy, &arena, rows[i].class, rows[i].target, "--read");
		if (sample_plan(&policy, i % 2, &arena, &plan, &error) < 0)
			fail_msg("row %zu: %s", i, error.message);
		if (shown_by(&plan, "/etc/services") != rows[i].services ||
		    shown_by(&plan, "/etc/set") != rows[i].set)
			fail_msg("row %zu: %s", i, rows[i].target);
	}
}

static const char *skeleton_with(struct arena *arena, uint64_t state)
{
	struct error error = ERROR_NONE;
	struct policy policy;
	struct plan plan;

	fill_default(&policy, arena);
	for (size_t i = 0; i < policy.view.count; i++)
		if (policy.view.paths[i].class == PATH_COPY)
			policy.view.paths[i].state = state;
	assert_int_equal(sample_plan(&policy, false, arena, &plan, &error), 0);
	for (size_t i = 0; i < plan.count; i++)
		if (plan.ops[i].kind == PLAN_SKELETON)
			return plan.ops[i].target;
	return "none";
}

/* A skeleton with a copy of yesterday is another one, every bit of the state counting. */
static void skeleton_by_state(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const char *first = skeleton_with(&arena, 1);

	(void)state;
	assert_string_equal(first, skeleton_with(&arena, 1));
	for (unsigned bit = 1; bit < 64; bit++)
		assert_string_not_equal(first, skeleton_with(&arena, 1 | (uint64_t)1 << bit));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_policies),	 cmocka_unit_test(random_policies),
		cmocka_unit_test(same_policy_same_plan), cmocka_unit_test(copies_give_way),
		cmocka_unit_test(skeleton_by_state),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
