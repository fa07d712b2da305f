#include "broker/staging.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/effective.h"
#include "plan/plan.h"
#include "workspace/stage.h"
#include "workspace/stage_store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

bool staging_is_on(const struct effective *effective)
{
	return effective->policy.flags & POLICY_STAGE;
}

/* What lies below the workspace, as paths below it. */
struct paths {
	const char *workspace;
	const char **items;
	size_t count;
};

static void add_path(struct paths *paths, const char *path)
{
	const char *below;

	if (!path_is_under(path, paths->workspace))
		return;
	below = path_below(path, paths->workspace);
	if (below[0])
		paths->items[paths->count++] = below;
}

static int gather(const struct effective *effective, struct arena *arena, struct paths *ret_hidden,
		  struct paths *ret_obeyed)
{
	const struct view *view = &effective->policy.view;
	struct paths hidden = { .workspace = effective->policy.workspace }, obeyed = hidden;

	hidden.items = arena_array(arena, view->count + 1, sizeof(*hidden.items));
	obeyed.items = arena_array(arena, effective->git.absent_count + 1, sizeof(*obeyed.items));
	if (!hidden.items || !obeyed.items)
		return -ENOMEM;
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE)
			add_path(&hidden, view->paths[i].target);
	for (size_t i = 0; i < effective->git.absent_count; i++)
		add_path(&obeyed, effective->git.absent[i]);
	*ret_hidden = hidden;
	*ret_obeyed = obeyed;
	return 0;
}

/* The identity that the plan checked when it mounted it. */
static const struct view_path *row_of(const struct effective *effective)
{
	const struct view *view = &effective->policy.view;

	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_STAGE)
			return &view->paths[i];
	return NULL;
}

int staging_begin(const struct effective *effective, int task_fd, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct view_path *row = row_of(effective);
	struct paths hidden, obeyed;

	/* without this file whatever ends the task, or buries it, keeps nothing */
	if (!row || !staging_is_on(effective))
		return 0;
	if (gather(effective, &arena, &hidden, &obeyed) < 0)
		return error_errno(error, ENOMEM, "staging the workspace");
	return stage_store_begin(task_fd,
				 &(struct stage_about){ .task = effective->task,
							.workspace = effective->policy.workspace,
							.device = row->device,
							.inode = row->inode,
							.wall_ns = clock_wall_ns(),
							.hidden = hidden.items,
							.hidden_count = hidden.count,
							.obeyed = obeyed.items,
							.obeyed_count = obeyed.count },
				 error);
}

bool staging_has_news(const struct effective *effective, int task_fd)
{
	return staging_is_on(effective) && stage_store_has_changes(task_fd);
}

bool staging_has_ephemeral(const struct effective *effective, int task_fd)
{
	return (effective->policy.flags & POLICY_EPHEMERAL) && stage_store_has_changes(task_fd);
}

struct listing {
	const char *workspace;
	struct arena *arena;
	struct change *changes;
	size_t count;
};

static enum change_kind kind_of(enum stage_kind kind)
{
	switch (kind) {
	case STAGE_CREATED:
		return CHANGE_CREATED;
	case STAGE_REMOVED:
		return CHANGE_REMOVED;
	case STAGE_REPLACED:
		return CHANGE_REPLACED;
	default:
		return CHANGE_MODIFIED;
	}
}

static int take(void *context, const struct stage_change *change)
{
	struct listing *listing = context;

	if (listing->count == CHANGE_LIMIT)
		return -ECANCELED;
	listing->changes[listing->count++] = (struct change){
		.path = arena_format(listing->arena, "%s/%s", listing->workspace, change->path),
		.kind = kind_of(change->kind),
		.state = CHANGE_STAGED,
		.reason = change->unread	     ? change->unread :
			  change->kind == STAGE_MODE ? "mode or attributes" :
						       NULL,
	};
	return arena_failed(listing->arena) ? -ENOMEM : 0;
}

int staging_list(const struct effective *effective, int task_fd, struct arena *arena,
		 struct change **ret_changes, size_t *ret_count, bool *ret_is_more,
		 struct error *error)
{
	struct listing listing = { .workspace = effective->policy.workspace, .arena = arena };
	int CLEANUP_FD upper = openat(task_fd, PLAN_STAGE_LAYERS "/upper",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int CLEANUP_FD lower = fd_open_resolved(AT_FDCWD, listing.workspace, O_RDONLY | O_DIRECTORY,
						RESOLVE_NO_SYMLINKS);
	struct stage stage = {
		.upper_fd = upper, .lower_fd = lower, .take = take, .context = &listing
	};
	int result;

	if (upper < 0 || lower < 0)
		return error_errno(error, upper < 0 ? errno : -lower, "reading the stage");
	listing.changes = arena_array(arena, CHANGE_LIMIT, sizeof(*listing.changes));
	if (!listing.changes)
		return error_errno(error, ENOMEM, "reading the stage");
	result = stage_walk(&stage, error);
	if (result < 0 && result != -ECANCELED)
		return result;
	*ret_changes = listing.changes;
	*ret_count = listing.count;
	*ret_is_more = result == -ECANCELED;
	return 0;
}

int staging_keep(const struct effective *effective, int task_fd)
{
	int result;

	if (!staging_has_news(effective, task_fd))
		return 0;
	result =
		stage_store_keep(effective->state.fd, effective->state.tasks_fd, task_fd,
				 &(struct stage_about){ .task = effective->task,
							.workspace = effective->policy.workspace });
	return result < 0 ? result : 1;
}

int staging_resume(const struct state *state, const char *task)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	int CLEANUP_FD task_fd =
		openat(state->tasks_fd, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stage_about about;
	int result = task_fd < 0 ? -errno : stage_store_read(task_fd, task, &arena, &about);

	/* it had none, or was killed before anything of it could run */
	if (result == -ENOENT || result == -EBADMSG ||
	    (result == 0 && !stage_store_has_changes(task_fd)))
		return 0;
	if (result == 0)
		result = stage_store_keep(state->fd, state->tasks_fd, task_fd, &about);
	return result < 0 ? result : 1;
}
