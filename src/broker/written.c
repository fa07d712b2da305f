#include "broker/written.h"

#include "base/clock.h"
#include "base/path.h"
#include "broker/effective.h"
#include "workspace/sweep.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A place of the host's own names, outside of the workspace and of every other such place. */
static bool is_root(const struct policy *policy, const struct view_path *row)
{
	return row->class == PATH_WRITE && row->inode && strcmp(row->source, row->target) == 0 &&
	       !path_is_under(row->target, policy->workspace);
}

static void cover(struct written *written, uint64_t device, uint64_t inode)
{
	if (inode)
		written->covered[written->covered_count++] =
			(struct sweep_known){ .device = device, .inode = inode };
}

static int prepare(struct written *written, const struct effective *effective)
{
	const struct policy *policy = &effective->policy;
	const struct view *view = &policy->view;
	struct stat status;

	written->effective = effective;
	written->covered = arena_array(&written->arena, view->count + 2, sizeof(*written->covered));
	written->roots = arena_array(&written->arena, WRITTEN_LIMIT, sizeof(*written->roots));
	if (!written->covered || !written->roots)
		return -ENOMEM;
	/* what another row speaks of is that row's; of the workspace the sweep tells */
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class != PATH_READ || view->paths[i].inode)
			cover(written, view->paths[i].device, view->paths[i].inode);
	if (fstat(effective->state.fd, &status) == 0)
		cover(written, status.st_dev, status.st_ino);
	sweep_sort(written->covered, written->covered_count);
	for (size_t i = 0; i < WRITTEN_LIMIT; i++)
		written->roots[i] = TREE_ROOT_NONE;
	return 0;
}

int written_begin(struct written *written, const struct effective *effective)
{
	const struct view *view = &effective->policy.view;
	int result = 0;

	written->count = 0;
	written->cut = NULL;
	for (size_t i = 0; i < view->count && result == 0; i++) {
		const struct view_path *row = &view->paths[i];
		const struct sweep_known identity = { .device = row->device, .inode = row->inode };
		struct tree_place place;

		if (!is_root(&effective->policy, row))
			continue;
		if (!written->effective)
			result = prepare(written, effective);
		if (result < 0)
			break;
		if (written->count == WRITTEN_LIMIT) {
			written->cut = "--write shows more than 16 places";
			break;
		}
		place = (struct tree_place){ .state_fd = effective->state.fd,
					     .workspace = row->target,
					     .covered = written->covered,
					     .covered_count = written->covered_count };
		result = tree_root_begin(&written->roots[written->count++], &place, &identity,
					 row->kind == PATH_KIND_FILE, &written->arena);
		if (result == -ENOMEM)
			break;
		/* it went, or another came: what changes there is not known */
		if (result < 0)
			written->cut = "a place that --write shows is another one by now";
		result = 0;
	}
	return result;
}

bool written_work(struct written *written)
{
	for (size_t i = 0; i < written->count; i++)
		if (written->roots[i].fd >= 0 && tree_work(&written->roots[i].tree))
			return true;
	return false;
}

/* What a rule does not let the task write there is another's work. */
static bool is_told(const struct view *view, const struct change *change)
{
	const struct view_path *row = view_lookup(view, change->path);

	return change->below || (row && row->class == PATH_WRITE);
}

static int append(const struct written *written, const struct tree_list *from, struct arena *arena,
		  struct tree_list *list)
{
	const struct view *view = &written->effective->policy.view;
	struct change *all = arena_array(arena, list->count + from->count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	if (list->count)
		memcpy(all, list->changes, list->count * sizeof(*all));
	for (size_t i = 0; i < from->count; i++) {
		if (!is_told(view, &from->changes[i]))
			continue;
		if (list->count < CHANGE_LIMIT)
			all[list->count++] = from->changes[i];
		else
			list->unlisted += 1 + from->changes[i].below;
	}
	list->changes = all;
	list->unlisted += from->unlisted;
	if (!list->cut)
		list->cut = from->cut;
	return 0;
}

int written_look(struct written *written, bool is_last, struct arena *arena, struct tree_list *list)
{
	uint64_t deadline_ns = clock_monotonic_ns() + TREE_LIMIT_LOOK_NS;
	int result = 0;

	if (!list->cut)
		list->cut = written->cut;
	for (size_t i = 0; i < written->count && result == 0; i++) {
		struct tree_list found = { 0 };

		if (written->roots[i].fd < 0)
			continue;
		result = tree_root_look(&written->roots[i], deadline_ns, arena, &found);
		if (result == 0)
			result = append(written, &found, arena, list);
		if (result == 0 && is_last)
			tree_keep(&written->roots[i].tree);
	}
	return result;
}

void written_end(struct written *written)
{
	for (size_t i = 0; written->roots && i < WRITTEN_LIMIT; i++)
		tree_root_end(&written->roots[i]);
	arena_free(&written->arena);
	*written = (struct written){ 0 };
}
