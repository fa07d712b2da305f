#include "broker/cover.h"

#include "base/clock.h"
#include "base/error.h"
#include "isolate/box.h"
#include "workspace/watch.h"

#include <errno.h>
#include <stdbool.h>

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
