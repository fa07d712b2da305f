#include "broker/cover.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "isolate/box.h"
#include "workspace/watch.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Names covered by one child; a task with more of them at once costs several. */
#define COVER_BATCH 256

/*
 * A task that may nest sandboxes can have mount namespaces of its own. They keep their copies of
 * the mounts, and what is covered later in the box's is not covered there.
 */
static int check_nested(const struct policy *policy, int started, const char *target,
			struct error *error)
{
	if (!(policy->flags & POLICY_NESTED_USERNS) || !started)
		return 0;
	return error_set(error, ENOTSUP,
			 "%s was replaced or made, and with --nested-userns the task may have "
			 "mounts of its own where it lies open",
			 target);
}

static size_t gather(struct watch *names, const struct view *view,
		     struct watch_change seen[static COVER_BATCH],
		     struct box_cover covers[static COVER_BATCH])
{
	size_t count = 0;

	while (count < COVER_BATCH && watch_next(names, &seen[count])) {
		const struct view_path *row = &view->paths[seen[count].row];

		if (seen[count].event == WATCH_REMOVED)
			continue;
		covers[count] = (struct box_cover){ .class = row->class,
						    .target = row->target,
						    .root = seen[count].root };
		count++;
	}
	return count;
}

int cover_names(struct watch *names, struct box *box, const struct policy *policy, int started,
		cover_told *told, void *context, struct error *error)
{
	uint64_t seen_ns = clock_monotonic_ns();
	struct watch_change seen[COVER_BATCH];
	struct box_cover covers[COVER_BATCH];
	size_t count = COVER_BATCH;
	int result;

	result = watch_read(names, error);
	while (result == 0 && count == COVER_BATCH) {
		count = gather(names, &policy->view, seen, covers);
		if (count)
			result = box_mask(box, covers, count, error);
		for (size_t i = 0; i < count && result == 0; i++)
			if (covers[i].covered)
				result = told(context, &seen[i], covers[i].covered_ns - seen_ns,
					      error);
		for (size_t i = 0; i < count && result == 0; i++)
			if (covers[i].covered)
				result = check_nested(policy, started, covers[i].target, error);
	}
	return result;
}

/* Built-in rules have no file; what is shown outside of a writable tree is nobody's to replace. */
static bool is_guarded(const struct policy *policy, const struct view_path *row)
{
	if (row->class == PATH_HIDE)
		return rule_is(&policy->rules[row->rule], RULE_WORKSPACE_SECRET);
	return (row->class == PATH_GIT || row->class == PATH_PROTECT) &&
	       !policy->rules[row->rule].file;
}

int cover_guard(const struct policy *policy, struct arena *arena, struct cover_guard *ret_guard,
		struct view *ret_watched, struct error *error)
{
	const struct view *view = &policy->view;
	struct cover_guard guard = {
		.names = arena_array(arena, view->count + 1, sizeof(*guard.names)),
	};
	struct view_path *rows = arena_array(arena, view->count + 1, sizeof(*rows));

	if (!guard.names || !rows)
		return error_errno(error, ENOMEM, "watching names");
	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		rows[i] = *row;
		if (!is_guarded(policy, row))
			continue;
		/* a git directory stays what other rows lie in, and has no name of its own */
		rows[i].class = row->class == PATH_GIT ? PATH_DEVICE : PATH_LINK;
		guard.names[guard.count++] = (struct cover_guarded){ .row = i,
								     .device = row->device,
								     .inode = row->inode };
	}
	*ret_guard = guard;
	*ret_watched = (struct view){ .paths = rows, .count = view->count };
	return 0;
}

/* The tree written in place that the row lies in; NULL where it lies in none. */
static const char *root_of(const struct view *view, const struct view_path *row)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *above = &view->paths[i];

		if (above->class == PATH_WRITE && strcmp(above->target, row->target) != 0 &&
		    path_is_under(row->target, above->target) &&
		    (!best || strlen(above->target) < strlen(best->target)))
			best = above;
	}
	return best ? best->target : NULL;
}

/* True when another object stands there than was seen last, and is to be covered. */
static bool has_changed(struct cover_guarded *name, const struct view_path *row)
{
	struct cover_guarded now = { .row = name->row };
	struct stat status;

	if (lstat(row->source, &status) == 0) {
		now.device = status.st_dev;
		now.inode = status.st_ino;
	}
	if (now.device == name->device && now.inode == name->inode)
		return false;
	*name = now;
	return now.inode != 0;
}

int cover_look(struct cover_guard *guard, struct box *box, const struct policy *policy, int started,
	       cover_told *told, void *context, struct error *error)
{
	uint64_t seen_ns = clock_monotonic_ns();
	int result = 0;

	for (size_t i = 0; i < guard->count && result == 0; i++) {
		const struct view_path *row = &policy->view.paths[guard->names[i].row];
		struct watch_change seen = { .row = guard->names[i].row,
					     .event = WATCH_REPLACED,
					     .root = root_of(&policy->view, row) };
		struct box_cover cover = { .class = row->class,
					   .target = row->target,
					   .root = seen.root };

		if (!seen.root || !has_changed(&guard->names[i], row))
			continue;
		result = box_mask(box, &cover, 1, error);
		if (result == 0 && cover.covered)
			result = told(context, &seen, cover.covered_ns - seen_ns, error);
		if (result == 0 && cover.covered)
			result = check_nested(policy, started, cover.target, error);
	}
	return result;
}
