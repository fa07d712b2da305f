#include "broker/staging.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/effective.h"
#include "kernel/mount.h"
#include "plan/plan.h"
#include "workspace/stage_changes.h"
#include "workspace/stage_copy.h"
#include "workspace/stage_look.h"
#include "workspace/stage_store.h"
#include "workspace/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool staging_is_on(const struct effective *effective)
{
	return effective->policy.flags & POLICY_STAGE;
}

bool staging_is_layered(const struct effective *effective)
{
	return effective->policy.flags & POLICY_LAYERED;
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

/* ---- where it is a copy ---- */

/* In a stage a tracked secret has a mask on it (plan/build.c), for which there is to be a place. */
static int hidden_of(const struct effective *effective, struct arena *arena,
		     struct stage_copy *copy)
{
	const struct view *view = &effective->policy.view;

	copy->hidden = arena_array(arena, view->count + 1, sizeof(*copy->hidden));
	if (!copy->hidden)
		return -ENOMEM;
	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (row->class != PATH_HIDE || !path_is_under(row->target, copy->workspace) ||
		    !path_below(row->target, copy->workspace)[0])
			continue;
		copy->hidden[copy->hidden_count++] = (struct stage_copy_hidden){
			.path = path_below(row->target, copy->workspace),
			.has_mask = row->kind == PATH_KIND_FILE &&
				    !effective->policy.rules[row->rule].file,
		};
	}
	return 0;
}

/* Numbered as their layers are: by the rows of their class. */
static int parts_of(const struct effective *effective, struct arena *arena, struct stage_copy *copy)
{
	const struct view *view = &effective->policy.view;
	struct stage_part *parts = arena_array(arena, view->count + 1, sizeof(*parts));
	unsigned layer = 0;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];

		if (row->class != PATH_GIT)
			continue;
		if (path_is_under(row->target, copy->workspace))
			parts[copy->part_count++] =
				(struct stage_part){ path_below(row->target, copy->workspace),
						     layer };
		layer++;
	}
	copy->parts = parts;
	return 0;
}

/* A mount of the host's in it is in no layer, and in no copy. */
static int refuse_mounts(const struct stage_copy *copy, struct error *error)
{
	char path[PATH_MAX];
	int result = mount_find_below(copy->workspace, path);

	if (result <= 0)
		return result < 0 ? error_errno(error, result, "reading the list of mounts") : 0;
	return error_set(error, EXDEV,
			 "%.300s cannot be copied: something is mounted in it, at %.300s; unmount "
			 "it, or go on without --stage or --ephemeral",
			 copy->workspace, path);
}

static int copy_tree(struct stage_copy *copy, struct arena *arena, struct result_copied *copied,
		     bool is_workspace, struct error *error)
{
	struct stage_copied done;
	int result = refuse_mounts(copy, error);

	if (result < 0)
		return result;
	result = stage_copy_make(copy, arena, &done, error);
	if (result < 0)
		return result;
	copied->names += done.names;
	copied->bytes += done.bytes;
	copied->shared += done.shared;
	if (is_workspace) {
		copied->left = done.left;
		copied->left_count = done.left_count;
	}
	return 0;
}

int staging_copy(const struct effective *effective, const struct plan_op *op, struct arena *arena,
		 struct result_copied *copied, struct error *error)
{
	bool is_workspace = strcmp(op->source, effective->policy.workspace) == 0;
	const char *layers = path_parent(arena, op->target);
	int CLEANUP_FD source = mount_source(op->source, op->device, op->inode);
	int CLEANUP_FD layers_fd =
		layers ? open(layers, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct stage_copy copy = { .workspace = op->source,
				   .workspace_fd = source,
				   .stage_fd = layers_fd,
				   .gives_owners = effective->host.root };

	if (source < 0 || layers_fd < 0)
		return error_errno(error, source < 0 ? -source : errno, "copying %s", op->source);
	if (hidden_of(effective, arena, &copy) < 0 ||
	    (is_workspace && parts_of(effective, arena, &copy) < 0))
		return error_errno(error, ENOMEM, "copying the workspace");
	if (!copied->started_ns)
		copied->started_ns = sweep_stamp_now_ns();
	return copy_tree(&copy, arena, copied, is_workspace, error);
}

const struct result_copied *staging_tell(const struct result_copied *copied, struct arena *arena)
{
	/* the workspace's is there once it has been copied, with or without a name in it */
	struct result_copied *told = copied->left ? arena_allocate(arena, sizeof(*told)) : NULL;
	const char **left = arena_array(arena, copied->left_count + 1, sizeof(*left));

	if (!told || !left)
		return NULL;
	*told = *copied;
	told->left = left;
	told->why = arena_copy(arena, copied->why ? copied->why : "");
	for (size_t i = 0; i < copied->left_count; i++)
		left[i] = arena_copy(arena, copied->left[i]);
	return arena_failed(arena) ? NULL : told;
}

int staging_settle(const struct effective *effective, int task_fd, struct error *error)
{
	return staging_is_layered(effective) && task_fd >= 0 ?
		       stage_settle(task_fd, STAGE_SETTLE_BETWEEN, error) :
		       0;
}

/* What was left out of a copy was not seen, as what is hidden was not. */
static int add_left(struct paths *hidden, const struct result_copied *copied, struct arena *arena)
{
	const char **all = arena_array(arena, hidden->count + copied->left_count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	if (hidden->count)
		memcpy(all, hidden->items, hidden->count * sizeof(*all));
	for (size_t i = 0; i < copied->left_count; i++)
		all[hidden->count++] = copied->left[i];
	hidden->items = all;
	return 0;
}

int staging_begin(const struct effective *effective, int task_fd,
		  const struct result_copied *copied, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct view_path *row = row_of(effective);
	struct paths hidden, obeyed;

	/* without this file whatever ends the task, or buries it, keeps nothing */
	if (!row || !staging_is_on(effective))
		return 0;
	if (gather(effective, &arena, &hidden, &obeyed) < 0 ||
	    add_left(&hidden, copied, &arena) < 0)
		return error_errno(error, ENOMEM, "staging the workspace");
	return stage_store_begin(task_fd,
				 &(struct stage_about){ .task = effective->task,
							.workspace = effective->policy.workspace,
							.device = row->device,
							.inode = row->inode,
							.started_ns = copied->started_ns,
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

int staging_open(const struct effective *effective, int task_fd)
{
	return staging_is_layered(effective) && task_fd >= 0 ?
		       openat(task_fd, PLAN_STAGE_LAYERS "/upper",
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) :
		       -1;
}

struct listing {
	const char *workspace;
	struct arena *arena;
	struct change *changes;
	size_t count;
	uint64_t read_bytes, unlisted;
	int upper_fd;
	int64_t since_ns; /* 0: all of it */
	enum change_state state;
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
	case STAGE_RENAMED:
		return CHANGE_RENAMED;
	case STAGE_MODE:
		return CHANGE_ATTRIBUTES;
	default:
		return CHANGE_MODIFIED;
	}
}

static const char *type_of(enum stage_type type)
{
	return type == STAGE_CHARACTER ? "character device" :
	       type == STAGE_BLOCK     ? "block device" :
					 stage_type_name(type);
}

/* Content is read as far as the limit that all of them share. */
static void digest_side(struct listing *listing, const struct stage_change *change,
			enum stage_which which, const struct stage_side *from,
			struct change_side *side)
{
	char target[PATH_MAX];
	int length;

	if (from->type == STAGE_LINK) {
		length = stage_link(change, which, target);
		if (length >= 0)
			sha256_text(target, (size_t)length, side->sha256);
	} else if (from->type == STAGE_FILE &&
		   listing->read_bytes + from->size <= STAGING_LIMIT_READ_BYTES) {
		listing->read_bytes += from->size;
		if (stage_hash(change, which, side->sha256))
			side->sha256[0] = '\0';
	}
}

static const struct change_side *side_of(struct listing *listing, const struct stage_change *change,
					 enum stage_which which)
{
	const struct stage_side *from = which == STAGE_BEFORE ? &change->before : &change->after;
	struct change_side *side;

	if (from->type == STAGE_NONE)
		return NULL;
	side = arena_allocate(listing->arena, sizeof(*side));
	if (!side)
		return NULL;
	*side = (struct change_side){ .type = type_of(from->type),
				      .mode = from->mode & 07777,
				      .bytes = from->size };
	digest_side(listing, change, which, from, side);
	return side;
}

/* By the change time of what the layer has of it, or of what hides it there. */
static bool is_since(const struct listing *listing, const char *path)
{
	char at[PATH_LIMIT_BYTES];
	struct stat status;
	size_t length = strlen(path);

	if (!listing->since_ns || length >= sizeof(at))
		return true;
	memcpy(at, path, length + 1);
	for (;;) {
		int CLEANUP_FD fd = fd_open_beneath(listing->upper_fd, at, O_PATH | O_NOFOLLOW);
		char *slash;

		if (fd >= 0)
			return fstat(fd, &status) < 0 ||
			       status.st_ctim.tv_sec * INT64_C(1000000000) +
					       status.st_ctim.tv_nsec >=
				       listing->since_ns;
		slash = strrchr(at, '/');
		if (!slash)
			return true;
		*slash = '\0';
	}
}

static int take(void *context, const struct stage_change *change)
{
	struct listing *listing = context;

	if (!is_since(listing, change->path))
		return 0;
	if (listing->count == CHANGE_LIMIT) {
		listing->unlisted++;
		return 0;
	}
	listing->changes[listing->count++] = (struct change){
		.path = arena_format(listing->arena, "%s/%s", listing->workspace, change->path),
		.from = change->from ? arena_format(listing->arena, "%s/%s", listing->workspace,
						    change->from) :
				       NULL,
		.kind = kind_of(change->kind),
		.state = listing->state,
		.reason = change->unread,
		.before = side_of(listing, change, STAGE_BEFORE),
		.after = side_of(listing, change, STAGE_AFTER),
	};
	return arena_failed(listing->arena) ? -ENOMEM : 0;
}

/* Of an empty workspace it is the directory beside the layer that no overlay uses. */
static int open_lower(const struct effective *effective, int task_fd)
{
	return effective->policy.flags & POLICY_EMPTY ?
		       fd_open_beneath(task_fd, PLAN_STAGE_LAYERS "/work",
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW) :
		       fd_open_resolved(AT_FDCWD, effective->policy.workspace,
					O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

int staging_list(const struct effective *effective, int task_fd, int64_t since_ns,
		 struct arena *arena, struct staging_list *ret_list, struct error *error)
{
	int CLEANUP_FD upper = staging_open(effective, task_fd);
	int CLEANUP_FD lower = -EBADF;
	struct listing listing = { .workspace = effective->policy.workspace,
				   .arena = arena,
				   .upper_fd = upper,
				   .since_ns = since_ns,
				   .state = staging_is_on(effective) ? CHANGE_STAGED :
								       CHANGE_DROPPED };
	struct stage stage = { .upper_fd = upper, .take = take, .context = &listing };
	int result;

	*ret_list = (struct staging_list){ 0 };
	if (upper < 0)
		return error_errno(error, errno, "reading the stage");
	stage.lower_fd = lower = open_lower(effective, task_fd);
	if (lower == -ENOENT || lower == -ENOTDIR) {
		ret_list->cut = "the workspace is not where it was";
		return 0;
	}
	if (lower < 0)
		return error_errno(error, -lower, "opening the workspace");
	listing.changes = arena_array(arena, CHANGE_LIMIT, sizeof(*listing.changes));
	if (!listing.changes)
		return error_errno(error, ENOMEM, "reading the stage");
	result = stage_changes(&stage, error);
	if (result < 0)
		return result;
	*ret_list = (struct staging_list){ .changes = listing.changes,
					   .count = listing.count,
					   .unlisted = listing.unlisted };
	return 0;
}

/* Bytes of ours: one that a power cut has torn will not be whole at the next start either. */
static int settle_last(int task_fd)
{
	struct error ignored = ERROR_NONE;
	int result = stage_settle(task_fd, STAGE_SETTLE_LAST, &ignored);

	return result == -EBADMSG ? 0 : result;
}

int staging_keep(const struct effective *effective, int task_fd)
{
	int result = settle_last(task_fd);

	if (result < 0)
		return result;
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

	if (result == 0)
		result = settle_last(task_fd);
	if (result < 0 && result != -ENOENT && result != -EBADMSG)
		return result;
	/* it had none, or was killed before anything of it could run */
	if (result == -ENOENT || result == -EBADMSG ||
	    (result == 0 && !stage_store_has_changes(task_fd)))
		return 0;
	if (result == 0)
		result = stage_store_keep(state->fd, state->tasks_fd, task_fd, &about);
	return result < 0 ? result : 1;
}
