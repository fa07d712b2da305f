#include "workspace/stage_undo.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/stage_apply_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the host has at a step's path, and what is kept of it. */
struct standing {
	bool is_there, is_put; /* is_put: what the apply put there, unchanged */
	struct stat host;
	bool is_same; /* the object of the step, whatever was done to its mode since */
	bool is_kept;
};

static bool is_type(const struct stat *status, enum stage_type type)
{
	return type == STAGE_DIRECTORY ? S_ISDIR(status->st_mode) :
	       type == STAGE_FILE      ? S_ISREG(status->st_mode) :
	       type == STAGE_LINK      ? S_ISLNK(status->st_mode) :
					 false;
}

/* An identity alone: of a directory what is in it counts by itself. */
static bool is_put(const struct stage_step *step, const struct stage_item *item,
		   const struct stat *host)
{
	if (!stage_is_judged(item, host) || !is_type(host, step->after.type))
		return false;
	return S_ISDIR(host->st_mode) || !step->is_done || !step->ctime_ns ||
	       stage_file_ns(host->st_ctim) == step->ctime_ns;
}

static void look(const struct stage_kept *kept, int undo_fd, const struct stage_step *step,
		 const struct stage_item *item, char *parent, struct standing *ret_standing)
{
	const char *name;
	int CLEANUP_FD fd = stage_open_parent(kept->workspace_fd, item->path, parent, &name);
	char number[STAGE_UNDO_NAME_BYTES];
	struct stat status;

	*ret_standing = (struct standing){ 0 };
	ret_standing->is_there = fd >= 0 &&
				 fstatat(fd, name, &ret_standing->host, AT_SYMLINK_NOFOLLOW) == 0;
	ret_standing->is_same = ret_standing->is_there &&
				stage_is_judged(item, &ret_standing->host) &&
				is_type(&ret_standing->host, step->after.type);
	ret_standing->is_put = ret_standing->is_there && is_put(step, item, &ret_standing->host);
	stage_undo_name(step->number, number);
	ret_standing->is_kept = fstatat(undo_fd, number, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
				(!step->is_done || status.st_ino == step->kept_inode);
}

/* ---- what is to become of a step ---- */

static void settle(struct stage_item *item, enum stage_outcome outcome, const char *reason)
{
	item->outcome = outcome;
	item->reason = reason;
}

static void judge_mode(const struct stage_step *step, const struct standing *standing,
		       struct stage_item *item)
{
	mode_t kept = step->after.type == STAGE_DIRECTORY ? 01777 : 0777;

	if (!standing->is_put || (standing->host.st_mode & 07777) != (step->after.mode & kept))
		settle(item, STAGE_CONFLICT, "the host changed it since");
}

/* What was there before is to come back. */
static void judge_return(const struct stage_step *step, const struct standing *standing,
			 struct stage_item *item)
{
	bool is_free = !standing->is_there, is_removal = step->after.type == STAGE_NONE;

	if (step->before.type != STAGE_DIRECTORY && !standing->is_kept)
		settle(item, STAGE_REFUSED, "nothing was kept of it");
	else if (is_removal && !is_free)
		settle(item, STAGE_CONFLICT, "something stands there by now");
	else if (!is_removal && !is_free && !standing->is_put)
		settle(item, STAGE_CONFLICT, "the host changed it since");
}

/* Never done, or taken back before by one that was killed: nothing is to do. */
static bool is_over(const struct stage_step *step, const struct standing *standing)
{
	bool was_kept = step->before.type != STAGE_NONE && step->before.type != STAGE_DIRECTORY;

	if (step->is_undone)
		return true;
	/* also by one that was killed before it could say so, whose time the log has not */
	if (step->kind == STAGE_MODE)
		return standing->is_same &&
		       (standing->host.st_mode & 07777) == (step->before.mode & 07777);
	if (step->before.type == STAGE_NONE)
		return step->is_done ? !standing->is_there : !standing->is_put;
	if (was_kept)
		return !standing->is_kept && (!step->is_done || step->kept_inode);
	return standing->is_there && !standing->is_put && S_ISDIR(standing->host.st_mode);
}

static void judge(const struct stage_step *step, const struct standing *standing,
		  struct stage_item *item)
{
	item->outcome = STAGE_READY;
	if (step->kind == STAGE_MODE)
		judge_mode(step, standing, item);
	else if (step->before.type != STAGE_NONE)
		judge_return(step, standing, item);
	else if (!standing->is_put)
		settle(item, STAGE_CONFLICT, "the host changed it since");
}

/* ---- the work ---- */

struct undoing {
	const struct stage_undo *undo;
	struct stage_step *steps;
	size_t count;
	/* in the order of the items */
	const struct stage_step **of_items;
	int undo_fd;
	char *parent;
};

static struct stage_item item_of(const struct stage_step *step)
{
	return (struct stage_item){ .path = step->path,
				    .kind = step->kind,
				    .before = step->before,
				    .after = step->after,
				    .device = step->device,
				    .inode = step->inode,
				    .size = step->size,
				    .mtime_ns = step->mtime_ns };
}

/* Steps back: what was done last is judged first, and a later step of a path hides earlier ones. */
static int judge_all(struct undoing *undoing, struct stage_undo_log *log, struct arena *arena,
		     struct stage_applied *applied)
{
	const struct stage_undo *undo = undoing->undo;

	applied->items = arena_array(arena, undoing->count + 1, sizeof(*applied->items));
	undoing->of_items = arena_array(arena, undoing->count + 1, sizeof(struct stage_step *));
	if (!applied->items || !undoing->of_items)
		return -ENOMEM;
	for (size_t i = undoing->count; i-- > 0;) {
		const struct stage_step *step = &undoing->steps[i];
		struct stage_item item = item_of(step);
		struct standing standing;
		int result = 0;

		if (step->is_undone)
			continue;
		look(undo->kept, log->directory_fd, step, &item, undoing->parent, &standing);
		if (is_over(step, &standing)) {
			/* else it would be, when the path is applied again */
			if (!undo->is_dry)
				result = stage_undo_log_undone(log, step->number, NULL);
			if (result < 0)
				return result;
			continue;
		}
		judge(step, &standing, &item);
		undoing->of_items[applied->count] = step;
		applied->items[applied->count++] = item;
	}
	return 0;
}

/* Each is looked at again: what came before it may have made room for it. */
static int take_back(struct undoing *undoing, struct stage_writer *writer,
		     struct stage_applied *applied)
{
	int result = 0;

	for (size_t i = 0; i < applied->count && result == 0; i++) {
		const struct stage_step *step = undoing->of_items[i];
		struct stage_item *item = &applied->items[i];
		struct standing standing;

		if (item->outcome == STAGE_CONFLICT) {
			look(undoing->undo->kept, undoing->undo_fd, step, item, undoing->parent,
			     &standing);
			judge(step, &standing, item);
		}
		if (item->outcome == STAGE_READY)
			result = stage_writer_undo(writer, step, item);
	}
	return result;
}

static int work(struct undoing *undoing, struct stage_applied *applied, struct error *error)
{
	struct stage_writer writer;
	int ended;
	int result = stage_writer_begin(&writer, undoing->undo->kept, true, error);

	if (result == 0) {
		result = take_back(undoing, &writer, applied);
		if (result < 0)
			error_errno(error, result,
				    "taking an apply back; what is left of it can be");
	}
	ended = stage_writer_end(&writer);
	return result == 0 && ended < 0 ?
		       error_errno(error, ended,
				   "removing a directory of bawn's own from the workspace") :
		       result;
}

static int begin(const struct stage_undo *undo, const struct stage_applied *applied,
		 struct error *error)
{
	const struct stage_asked asked = { .paths = undo->paths,
					   .path_count = undo->path_count,
					   .is_undo = true };
	int result = undo->begin ? undo->begin(undo->context, applied, error) : 0;

	if (result < 0)
		return result;
	result = stage_asked_keep(undo->kept->fd, &asked);
	return result < 0 ? error_errno(error, result, "writing to the stage") : 0;
}

static int read_steps(const struct stage_undo *undo, struct arena *arena, struct undoing *undoing,
		      struct error *error)
{
	int result = stage_undo_log_read(undo->kept->fd, undo->paths, undo->path_count, arena,
					 &undoing->steps, &undoing->count);

	if (result == -ENOENT)
		return error_set(error, ENOENT,
				 "nothing of it was applied that could be taken back");
	undoing->parent = arena_allocate(arena, STAGE_LIMIT_PATH_BYTES);
	if (result == 0 && !undoing->parent)
		result = -ENOMEM;
	return result < 0 ? error_errno(error, result, "reading what was applied") : 0;
}

int stage_undo(const struct stage_undo *undo, struct arena *arena,
	       struct stage_applied *ret_applied, struct error *error)
{
	struct undoing undoing = { .undo = undo };
	struct stage_undo_log CLEANUP_STAGE_UNDO_LOG log = STAGE_UNDO_LOG_NONE;
	int result = undo->is_dry ? 0 : stage_apply_recover(undo->kept, error);

	*ret_applied = (struct stage_applied){ .is_left = true };
	if (result < 0)
		return error->code ? result : error_errno(error, result, "writing to the stage");
	result = read_steps(undo, arena, &undoing, error);
	if (result < 0)
		return result;
	result = stage_undo_log_open(undo->kept->fd, &log);
	undoing.undo_fd = log.directory_fd;
	if (result == 0)
		result = judge_all(&undoing, &log, arena, ret_applied);
	if (result < 0)
		return error_errno(error, result, "reading what was applied");
	if (!undo->is_dry)
		result = begin(undo, ret_applied, error);
	if (result == 0 && !undo->is_dry)
		result = work(&undoing, ret_applied, error);
	if (result == 0 && !undo->is_dry)
		stage_asked_forget(undo->kept->fd);
	ret_applied->is_left = stage_has_more(undo->kept);
	for (size_t i = 0; i < ret_applied->count; i++)
		ret_applied->outcomes[ret_applied->items[i].outcome]++;
	return result;
}

bool stage_undo_is_possible(const struct stage_kept *kept)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct stage_step *steps;
	size_t count = 0;

	/* what cannot be told may be */
	if (stage_undo_log_read(kept->fd, NULL, 0, &arena, &steps, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!steps[i].is_undone)
			return true;
	return false;
}

/* ---- what came back ---- */

struct stage_returned {
	const struct stage_step **steps; /* by path, a later one first */
	size_t count;
};

static int by_path(const void *left, const void *right)
{
	const struct stage_step *one = *(const struct stage_step *const *)left;
	const struct stage_step *other = *(const struct stage_step *const *)right;
	int order = strcmp(one->path, other->path);

	return order ? order : (one->number < other->number) - (one->number > other->number);
}

int stage_returned_load(int stage_fd, struct arena *arena, struct stage_returned **ret_returned)
{
	struct stage_returned *returned = arena_allocate(arena, sizeof(*returned));
	struct stage_step *steps;
	size_t count = 0;
	int result = stage_undo_log_read(stage_fd, NULL, 0, arena, &steps, &count);

	if (result < 0)
		return result;
	if (returned)
		returned->steps = arena_array(arena, count + 1, sizeof(*returned->steps));
	if (!returned || !returned->steps)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (steps[i].is_undone && steps[i].back_inode)
			returned->steps[returned->count++] = &steps[i];
	if (returned->count)
		qsort(returned->steps, returned->count, sizeof(*returned->steps), by_path);
	*ret_returned = returned;
	return 0;
}

bool stage_returned_is(const struct stage_returned *returned, const char *path, uint64_t device,
		       uint64_t inode, int64_t ctime_ns)
{
	size_t low = 0, high = returned ? returned->count : 0;

	/* the first of the path, which is the last that came back */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(returned->steps[middle]->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return returned && low < returned->count && strcmp(returned->steps[low]->path, path) == 0 &&
	       returned->steps[low]->back_device == device &&
	       returned->steps[low]->back_inode == inode &&
	       returned->steps[low]->back_ctime_ns == ctime_ns;
}
