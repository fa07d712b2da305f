#include "workspace/stage_apply_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/stage_origin.h"
#include "workspace/stage_undo.h"
#include "workspace/sweep_name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct judge {
	const struct stage_apply *apply;
	struct arena *arena;
	struct stage_applied *applied;
	struct error *error;
	/* the last directory that was looked at for being a repository, and how far it is one */
	char *looked;
	size_t repository_length;
	bool was_repository;
	struct stage_origins origins;
	bool has_origins;
	struct stage_returned *returned; /* NULL: nothing came back */
};

bool stage_is_under(const char *path, const char *root)
{
	size_t length = strlen(root);

	return strncmp(path, root, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* ---- what was asked for ---- */

static bool makes_directory(const struct stage_change *change)
{
	return change->after.type == STAGE_DIRECTORY && change->before.type != STAGE_DIRECTORY;
}

/* A directory that does not stand there yet comes with what is in it. */
static bool is_asked(const struct judge *judge, const struct stage_change *change)
{
	const struct stage_apply *apply = judge->apply;

	for (size_t i = 0; i < apply->path_count; i++)
		if (stage_is_under(change->path, apply->paths[i]) ||
		    (makes_directory(change) && stage_is_under(apply->paths[i], change->path)))
			return true;
	return !apply->path_count;
}

/* A path that names the unit, or something in it, is a person's word about it. */
static bool is_named(const struct judge *judge, const char *path, size_t unit_length)
{
	for (size_t i = 0; i < judge->apply->path_count; i++) {
		const char *named = judge->apply->paths[i];

		if (strncmp(named, path, unit_length) == 0 &&
		    (named[unit_length] == '\0' || named[unit_length] == '/') &&
		    (stage_is_under(path, named) || stage_is_under(named, path)))
			return true;
	}
	return false;
}

/* ---- what the host's tools run or obey ---- */

/* How much of the path is the unit: ".vscode" of ".vscode/tasks.json"; 0: none. */
static size_t unit_by_name(const struct stage_change *change, const char **ret_what)
{
	const char *path = change->path;
	enum sweep_place place = SWEEP_IN_TREE;

	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");
		const struct sweep_name *row = NULL;
		char name[NAME_MAX + 1];
		bool is_exact;

		if (length < sizeof(name)) {
			memcpy(name, at, length);
			name[length] = '\0';
			row = sweep_name_find(place, name, &is_exact);
		}
		if (row && (row->class == SWEEP_GIT || row->class == SWEEP_REPOSITORY ||
			    row->class == SWEEP_SETTINGS ||
			    (row->class == SWEEP_FORGE && !at[length] &&
			     change->after.type == STAGE_LINK))) {
			*ret_what = row->what;
			return (size_t)(at - path) + length;
		}
		place = sweep_place_below(row);
		at += length;
		at += *at == '/';
	}
	return 0;
}

/* What was found at the start: targets of core.hooksPath, include.path and their kin. */
static size_t unit_by_start(const struct judge *judge, const struct stage_change *change,
			    const char **ret_what)
{
	const struct stage_about *about = &judge->apply->kept->about;
	bool is_merged = change->before.type == STAGE_DIRECTORY &&
			 change->after.type == STAGE_DIRECTORY;

	for (size_t i = 0; i < about->obeyed_count; i++) {
		const char *obeyed = about->obeyed[i];

		*ret_what = "the host's tools run or obey it here";
		if (stage_is_under(change->path, obeyed))
			return strlen(obeyed);
		/* what leads to it; a new directory may, as what is in it is looked at by itself */
		if (stage_is_under(obeyed, change->path) && !is_merged && !makes_directory(change))
			return strlen(change->path);
	}
	return 0;
}

static bool has_name(int root_fd, const char *directory, const char *name)
{
	int CLEANUP_FD fd = stage_open_path(root_fd, directory, O_PATH | O_DIRECTORY);
	struct stage_object object;

	return fd >= 0 && stage_object_at(fd, name, &object) == 0 &&
	       object.side.type != STAGE_NONE && !object.is_whiteout;
}

/* In the task's view at most: what it took away counts as there. */
static bool is_git_directory(const struct judge *judge, const char *directory, bool with_stage)
{
	const struct stage_kept *kept = judge->apply->kept;
	static const char *const names[] = { "HEAD", "objects", "refs", "commondir" };
	bool has[4] = { 0 };

	for (size_t i = 0; i < 4; i++) {
		has[i] = has_name(kept->workspace_fd, directory, names[i]) ||
			 (with_stage && has_name(kept->upper_fd, directory, names[i]));
		if (!has[0])
			return false;
	}
	return has[0] && ((has[1] && has[2]) || has[3]);
}

size_t stage_common_length(const char *left, const char *right, size_t right_length)
{
	size_t length = 0, at = 0;

	for (; at < right_length && left[at] && left[at] == right[at]; at++)
		if (left[at] == '/')
			length = at;
	if ((left[at] == '\0' || left[at] == '/') && (at == right_length || right[at] == '/'))
		length = at;
	return length;
}

/*
 * The topmost directory above the path that is a git repository, whatever it is called. What this
 * path has in common with the one before was looked at then.
 */
static void look_for_repository(struct judge *judge, const char *path, size_t parent_length)
{
	size_t common = stage_common_length(judge->looked, path, parent_length);

	memcpy(judge->looked + common, path + common, parent_length - common);
	judge->looked[parent_length] = '\0';
	if (judge->repository_length && judge->repository_length <= common)
		return;
	judge->repository_length = 0;
	for (size_t at = common + 1; at <= parent_length && !judge->repository_length; at++) {
		char saved = judge->looked[at];

		if (saved != '/' && saved != '\0')
			continue;
		judge->looked[at] = '\0';
		if (is_git_directory(judge, judge->looked, true)) {
			judge->repository_length = at;
			judge->was_repository = is_git_directory(judge, judge->looked, false);
		}
		judge->looked[at] = saved;
	}
}

/* Of one that becomes a repository it is enough to hold what makes it one. */
static size_t unit_by_repository(struct judge *judge, const char *path, const char **ret_what)
{
	static const char *const makers[] = { "HEAD", "objects", "refs", "commondir" };
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (!length)
		return 0;
	if (strncmp(judge->looked, path, length) != 0 || judge->looked[length] != '\0')
		look_for_repository(judge, path, length);
	if (!judge->repository_length)
		return 0;
	*ret_what = "a git repository";
	if (judge->was_repository)
		return judge->repository_length;
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (stage_is_under(path + judge->repository_length + 1, makers[i]))
			return judge->repository_length;
	return 0;
}

static const char *held_for(struct judge *judge, const struct stage_change *change)
{
	const char *what = NULL;
	size_t unit = unit_by_name(change, &what);

	if (!unit)
		unit = unit_by_start(judge, change, &what);
	if (!unit)
		unit = unit_by_repository(judge, change->path, &what);
	return unit && !is_named(judge, change->path, unit) ? what : NULL;
}

/* ---- what the host did meanwhile ---- */

static const char *conflict_of(const struct judge *judge, const struct stage_change *change,
			       struct stage_item *item)
{
	struct stat status;

	if (change->before.type == STAGE_NONE)
		return judge->has_origins && stage_origin_is_marked(change) &&
				       !stage_origin_is_renamed(&judge->origins, change->path) ?
			       "the host removed it meanwhile" :
			       NULL;
	if (change->before_fd < 0 ||
	    fstatat(change->before_fd, change->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return "the host changed it just now";
	item->device = status.st_dev;
	item->inode = status.st_ino;
	item->size = (uint64_t)status.st_size;
	item->mtime_ns = stage_file_ns(status.st_mtim);
	item->links = status.st_nlink;
	/* of directories what is in them counts */
	if (change->before.type == STAGE_DIRECTORY)
		return NULL;
	return stage_file_ns(status.st_ctim) > judge->apply->kept->about.started_ns &&
			       !stage_returned_is(judge->returned, change->path, status.st_dev,
						  status.st_ino, stage_file_ns(status.st_ctim)) ?
		       "the host changed it meanwhile" :
		       NULL;
}

/* ---- one change ---- */

static const char *refused_for(const struct stage_change *change)
{
	const struct stage_side *old = &change->before, *new = &change->after;

	if (change->kind == STAGE_UNREAD ||
	    (change->unread && (old->type == STAGE_DIRECTORY || new->type == STAGE_DIRECTORY)))
		return change->unread;
	if (new->type != STAGE_NONE &&new->type != STAGE_FILE &&new->type !=
	    STAGE_LINK &&new->type != STAGE_DIRECTORY)
		return "a FIFO, socket or device is not brought over";
	if (change->kind == STAGE_MODE && (old->mode & 01777) == (new->mode & 01777))
		return "set-id bits, ACLs and attributes are not brought over";
	return NULL;
}

/* What comes, but not all of it: a person is told. */
static const char *left_behind(const struct stage_change *change, const struct stage_item *item)
{
	if (change->kind == STAGE_REMOVED)
		return NULL;
	if (change->marks &
	    (STAGE_MARK_SET_ID | STAGE_MARK_CAPABILITY | STAGE_MARK_ACL | STAGE_MARK_ATTRIBUTE))
		return "but not what the task set of set-id bits, ACLs and attributes";
	if (change->marks & STAGE_MARK_LINKED)
		return "as a file of its own; the task's has other names";
	if (change->kind == STAGE_MODIFIED && change->after.type == STAGE_FILE && item->links > 1)
		return "as a file of its own; its other names here keep what was there";
	return NULL;
}

static void settle(struct stage_item *item, enum stage_outcome outcome, const char *reason)
{
	if (item->outcome != STAGE_READY || !reason)
		return;
	item->outcome = outcome;
	item->reason = reason;
}

static int take(void *context, const struct stage_change *change)
{
	struct judge *judge = context;
	struct stage_applied *applied = judge->applied;
	struct stage_item item = { .path = arena_copy(judge->arena, change->path),
				   .kind = change->kind,
				   .before = change->before,
				   .after = change->after,
				   .outcome = STAGE_READY };
	struct stage_item *items;
	const char *conflict;

	if (applied->count == STAGE_APPLY_LIMIT_ITEMS)
		return error_set(judge->error, E2BIG,
				 "the stage has more than %u changes; apply it in parts, by paths",
				 STAGE_APPLY_LIMIT_ITEMS);
	items = arena_push(judge->arena, applied->items, applied->count, sizeof(*items));
	if (!item.path || !items)
		return error_errno(judge->error, ENOMEM, "applying a stage");
	applied->items = items;
	if (!is_asked(judge, change))
		item.outcome = STAGE_WAITING;
	conflict = conflict_of(judge, change, &item);
	settle(&item, STAGE_REFUSED, refused_for(change));
	settle(&item, STAGE_HELD, held_for(judge, change));
	if (!judge->apply->overwrites)
		settle(&item, STAGE_CONFLICT, conflict);
	if (item.outcome == STAGE_READY)
		item.reason = left_behind(change, &item);
	items[applied->count++] = item;
	return 0;
}

/* In a directory that does not come nothing can. */
static void settle_from_above(struct stage_applied *applied)
{
	const struct stage_item *barrier = NULL;

	for (size_t i = 0; i < applied->count; i++) {
		struct stage_item *item = &applied->items[i];

		/* what is in a directory follows it at once */
		if (barrier && stage_is_under(item->path, barrier->path))
			settle(item, barrier->outcome, barrier->reason ? barrier->reason : "");
		else
			barrier = item->outcome != STAGE_READY &&
						  item->after.type == STAGE_DIRECTORY &&
						  item->before.type != STAGE_DIRECTORY ?
					  item :
					  NULL;
	}
}

/* A directory goes only with all that is in it, which follows it at once: the next says so. */
static void settle_removals(struct stage_applied *applied)
{
	const char *stays = NULL;

	for (size_t i = applied->count; i-- > 0;) {
		struct stage_item *item = &applied->items[i];

		if (item->before.type == STAGE_DIRECTORY && item->after.type != STAGE_DIRECTORY &&
		    stays && stage_is_under(stays, item->path))
			settle(item, STAGE_CONFLICT, "something in it stays");
		if (item->outcome != STAGE_READY)
			stays = item->path;
	}
}

int stage_apply_judge(const struct stage_apply *apply, struct arena *arena,
		      struct stage_applied *ret_applied, struct error *error)
{
	struct judge judge = { .apply = apply,
			       .arena = arena,
			       .applied = ret_applied,
			       .error = error,
			       .looked = arena_allocate(arena, STAGE_LIMIT_PATH_BYTES) };
	const struct stage stage = { .upper_fd = apply->kept->upper_fd,
				     .lower_fd = apply->kept->workspace_fd,
				     .hidden = apply->kept->about.hidden,
				     .hidden_count = apply->kept->about.hidden_count,
				     .take = take,
				     .context = &judge };
	int result;

	*ret_applied = (struct stage_applied){ 0 };
	if (!judge.looked)
		return error_errno(error, ENOMEM, "applying a stage");
	judge.has_origins = stage_origin_load(apply->kept->fd, arena, &judge.origins) == 0;
	result = stage_returned_load(apply->kept->fd, arena, &judge.returned);
	if (result < 0 && result != -ENOENT)
		return error_errno(error, result, "reading what was applied before");
	result = stage_walk(&stage, error);
	if (result < 0)
		return result;
	settle_from_above(ret_applied);
	settle_removals(ret_applied);
	return 0;
}
