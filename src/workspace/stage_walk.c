/*
 * Theory of operation. The walk keeps one *level* for each directory on its way: the upper and the
 * lower directory that belong together, or one of them alone. Of a level's names a piece is in
 * memory, sorted, in a pool that all levels share: a level takes a quarter of what is left, so that
 * neither a wide directory nor a deep tree uses it up, and reads the next piece from where the
 * last one ended.
 *
 * Descriptors are kept for the last levels only; an earlier one is opened anew by its path when the
 * walk comes back to it and has names left there.
 */
#include "workspace/stage_internal.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/later.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Levels whose directories stay open; two descriptors each. */
#define OPEN_LEVELS 24u
/* What every level has for its names: one of the longest. */
#define LEAST_BYTES 320u

struct level {
	uint32_t path_length; /* of walk->path, which names this directory */
	uint32_t begin, end;  /* of its part of the pool */
	uint32_t list;	      /* where its list of names begins in the pool */
	uint32_t count, at;
	int64_t offset; /* where the next piece of names begins */
	bool has_upper, has_lower;
	bool is_pure;	   /* the upper directory hides all of the lower one */
	bool has_marks;	   /* empty files may be whiteouts */
	bool is_in_lower;  /* the names are the lower directory's */
	bool is_exhausted; /* there is no further piece */
	int upper_fd, lower_fd;
	const char *later; /* who executes what is in it; NULL: nobody */
};

struct walk {
	const struct stage *stage;
	struct error *error;
	char *pool, *path, *attributes;
	struct level *levels;
	unsigned depth; /* how many levels there are */
};

static int fail(struct walk *walk, int code, const char *what)
{
	return error_errno(walk->error, code, "%s", what);
}

/* ---- levels ---- */

static void close_level(struct level *level)
{
	fd_close(&level->upper_fd);
	fd_close(&level->lower_fd);
}

/* Opens what was closed meanwhile. What is gone by now has no names any more. */
static int reopen(struct walk *walk, struct level *level)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	char saved = walk->path[level->path_length];
	int result = 0;

	walk->path[level->path_length] = '\0';
	if (level->has_upper && level->upper_fd < 0)
		result = level->upper_fd =
			stage_open_path(walk->stage->upper_fd, walk->path, flags);
	if (result >= 0 && level->has_lower && level->lower_fd < 0)
		result = level->lower_fd =
			stage_open_path(walk->stage->lower_fd, walk->path, flags);
	walk->path[level->path_length] = saved;
	return result < 0 && !stage_reason(result) ? result : 0;
}

static int by_name(const void *a, const void *b, void *pool)
{
	uint32_t left, right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return strcmp((char *)pool + left, (char *)pool + right);
}

static uint32_t share(const struct level *level)
{
	const uint32_t kept = STAGE_LIMIT_DEPTH * LEAST_BYTES;
	uint32_t left = STAGE_POOL_BYTES - level->begin;

	left = left > kept ? (left - kept) / 4 & ~3u : 0;
	return left > LEAST_BYTES ? left : LEAST_BYTES;
}

/* Names from the front, the list of where they are from the back; then it is moved behind them. */
static int read_names(struct walk *walk, struct level *level, struct directory *directory)
{
	uint32_t names = level->begin, list = level->begin + share(level), size;
	const char *name;

	while ((name = directory_next(directory))) {
		size_t length = strlen(name) + 1;

		if (list - names < length + 2 * sizeof(uint32_t))
			break;
		memcpy(walk->pool + names, name, length);
		list -= sizeof(uint32_t);
		memcpy(walk->pool + list, &names, sizeof(names));
		names += (uint32_t)length;
		level->count++;
		level->offset = directory->offset;
	}
	level->is_exhausted = !name;
	size = level->count * (uint32_t)sizeof(uint32_t);
	level->list = (names + 3) & ~3u;
	memmove(walk->pool + level->list, walk->pool + list, size);
	level->end = level->list + size;
	if (size)
		qsort_r(walk->pool + level->list, level->count, sizeof(uint32_t), by_name,
			walk->pool);
	return name ? 0 : directory->code;
}

/* The next piece of a level's names. */
static int fill(struct walk *walk, struct level *level)
{
	int64_t begun = level->offset;
	struct directory directory;
	int result = reopen(walk, level);

	if (result < 0)
		return fail(walk, result, "opening a directory again");
	level->count = level->at = 0;
	directory_begin(&directory, level->is_in_lower ? level->lower_fd : level->upper_fd);
	directory_seek(&directory, begun);
	result = read_names(walk, level, &directory);
	if (result < 0 && !stage_reason(result))
		return fail(walk, result, "reading a directory");
	/* a file system that stays where it is would keep us for ever */
	if (!level->is_exhausted && level->offset == begun)
		return fail(walk, EIO, "reading a directory: its places do not advance");
	return 0;
}

/* Takes the descriptors of `level`. */
static void push(struct walk *walk, const struct level *level)
{
	struct level *next = &walk->levels[walk->depth];

	*next = *level;
	next->begin = walk->depth ? walk->levels[walk->depth - 1].end : 0;
	next->end = next->begin;
	next->is_in_lower = !level->has_upper;
	if (walk->depth >= OPEN_LEVELS)
		close_level(&walk->levels[walk->depth - OPEN_LEVELS]);
	walk->depth++;
}

/* ---- changes ---- */

/* Appends the name to the directory's path, which open_level() left room for. */
static uint32_t name_path(struct walk *walk, const struct level *level, const char *name)
{
	uint32_t at = level->path_length;
	size_t length = strlen(name);

	if (at)
		walk->path[at++] = '/';
	memcpy(walk->path + at, name, length + 1);
	return at + (uint32_t)length;
}

/* The path is in the directory of the last level. */
static const char *later_at(const struct walk *walk, bool is_directory)
{
	const char *above = walk->depth ? walk->levels[walk->depth - 1].later : NULL;

	return above ? above : later_of_last(walk->path, is_directory);
}

static void mark(struct walk *walk, struct stage_change *change, const struct stage_object *before,
		 const struct stage_object *after)
{
	const struct stage_side *old = &before->side, *new = &after->side;

	if (new->type == STAGE_NONE)
		return;
	change->later = later_at(walk, new->type == STAGE_DIRECTORY);
	if (change->later)
		change->marks |= STAGE_MARK_LATER;
	if (new->type != STAGE_FILE)
		return;
	if ((new->mode & 0111) && !(old->type == STAGE_FILE && (old->mode & 0111)))
		change->marks |= STAGE_MARK_EXECUTABLE;
	if (new->mode & 06000)
		change->marks |= STAGE_MARK_SET_ID;
	if (after->links > 1)
		change->marks |= STAGE_MARK_LINKED;
}

static int emit(struct walk *walk, enum stage_kind kind, const struct stage_object *before,
		const struct stage_object *after, unsigned marks, const char *unread)
{
	struct stage_change change = {
		.path = walk->path,
		.kind = kind,
		.before = before->side,
		.after = after->side,
		.marks = marks,
		.unread = unread,
		.lower_fd = walk->stage->lower_fd,
		.before_fd = before->directory_fd,
		.after_fd = after->directory_fd,
		.name = after->name,
	};

	mark(walk, &change, before, after);
	return walk->stage->take(walk->stage->context, &change);
}

/* The object where it is a directory that is to be walked, else NULL. */
static const struct stage_object *as_directory(const struct stage_object *object)
{
	return object->side.type == STAGE_DIRECTORY && !object->is_mount ? object : NULL;
}

static int open_side(const struct stage_object *object, int *ret_fd, const char **ret_unread)
{
	int fd = stage_open_beneath(object->directory_fd, object->name, O_RDONLY | O_DIRECTORY);

	if (fd < 0) {
		*ret_unread = stage_reason(fd);
		return *ret_unread ? 0 : fd;
	}
	*ret_fd = fd;
	return 0;
}

/*
 * Opens the directories of a name that are to be walked; either may be NULL. 1: there are some, 0:
 * there are none, or they cannot be looked into (ret_unread).
 */
static int open_level(struct walk *walk, const struct stage_object *lower,
		      const struct stage_object *upper, uint32_t path_length,
		      struct level *ret_level, const char **ret_unread)
{
	struct level level = { .path_length = path_length, .upper_fd = -1, .lower_fd = -1 };
	int result = 0;

	if (!lower && !upper)
		return 0;
	if (walk->depth == STAGE_LIMIT_DEPTH ||
	    path_length + NAME_MAX + 2 > STAGE_LIMIT_PATH_BYTES) {
		*ret_unread = "it is nested too deep";
		return 0;
	}
	if (upper)
		result = open_side(upper, &level.upper_fd, ret_unread);
	if (result == 0 && lower && !*ret_unread)
		result = open_side(lower, &level.lower_fd, ret_unread);
	if (result < 0 || *ret_unread) {
		close_level(&level);
		return result < 0 ? fail(walk, result, "opening a directory of the workspace") : 0;
	}
	level.has_upper = upper;
	level.has_lower = lower;
	level.later = path_length ? later_at(walk, true) : NULL;
	if (upper) {
		char opaque = stage_opaque(level.upper_fd);

		level.is_pure = opaque == 'y';
		level.has_marks = opaque == 'x';
	}
	*ret_level = level;
	return 1;
}

/* What became of a name, of which both sides are known. */
static int judge(struct walk *walk, const struct stage_object *lower,
		 const struct stage_object *upper, enum stage_kind *ret_kind, unsigned *ret_marks,
		 const char **ret_unread)
{
	const struct stage_side *old = &lower->side, *new = &upper->side;
	int result = 0;

	if (new->type == STAGE_NONE) {
		*ret_kind = STAGE_REMOVED;
		return 1;
	}
	if (!walk->stage->is_names_only)
		result = stage_compare_attributes(lower, upper, walk->attributes, ret_marks);
	if (result < 0)
		return fail(walk, result,
			    "the stage holds marks of an overlay that is none of ours");
	if (old->type == STAGE_NONE)
		*ret_kind = STAGE_CREATED;
	else if (old->type != new->type)
		*ret_kind = STAGE_REPLACED;
	else if (new->type != STAGE_DIRECTORY &&
		 (walk->stage->is_names_only || !stage_is_same_content(lower, upper, ret_unread)))
		*ret_kind = STAGE_MODIFIED;
	else if ((new->type != STAGE_LINK &&new->mode != old->mode) || *ret_marks)
		*ret_kind = STAGE_MODE;
	else
		return 0;
	return 1;
}

static bool is_hidden(const struct walk *walk)
{
	for (size_t i = 0; i < walk->stage->hidden_count; i++)
		if (strcmp(walk->path, walk->stage->hidden[i]) == 0)
			return true;
	return false;
}

/* One name with what stands there in both; then the walk goes into it. */
static int take(struct walk *walk, const struct stage_object *lower,
		const struct stage_object *upper, uint32_t path_length)
{
	enum stage_kind kind = STAGE_UNREAD;
	struct level next = { .upper_fd = -1, .lower_fd = -1 };
	const char *unread = lower->is_mount ? stage_reason(-EXDEV) : NULL;
	unsigned marks = 0;
	int has_level, result;

	if (is_hidden(walk))
		return upper->side.type == STAGE_NONE ?
			       0 :
			       emit(walk, STAGE_UNREAD, lower, upper, 0,
				    "the host's name was hidden from the task");
	result = judge(walk, lower, upper, &kind, &marks, &unread);
	if (result < 0)
		return result;
	has_level = open_level(walk, as_directory(lower), as_directory(upper), path_length, &next,
			       &unread);
	if (has_level < 0)
		return has_level;
	result = result || unread ? emit(walk, kind, lower, upper, marks, unread) : 0;
	if (result < 0)
		close_level(&next);
	else if (has_level)
		push(walk, &next);
	return result;
}

static bool is_gone(const struct level *level, const struct stage_object *upper)
{
	return upper->is_whiteout || (level->has_marks && stage_is_marked_whiteout(upper));
}

/* Both sides of a name. */
static int look_up(const struct level *level, const char *name, struct stage_object *ret_lower,
		   struct stage_object *ret_upper)
{
	int result;

	*ret_lower = *ret_upper = (struct stage_object){ .directory_fd = -1, .name = name };
	result = stage_object_at(level->upper_fd, name, ret_upper);
	if (result == 0 && is_gone(level, ret_upper))
		*ret_upper = (struct stage_object){ .directory_fd = -1, .name = name };
	return result < 0 ? result : stage_object_at(level->lower_fd, name, ret_lower);
}

/* True where there is nothing to say of a name. */
static bool is_settled(const struct level *level, const struct stage_object *lower,
		       const struct stage_object *upper)
{
	if (upper->side.type != STAGE_NONE)
		/* of the lower directory's names those count that the upper one has not */
		return level->is_in_lower;
	return lower->side.type == STAGE_NONE || (level->is_pure && !level->is_in_lower);
}

static int step(struct walk *walk, struct level *level)
{
	struct stage_object lower, upper;
	uint32_t offset, length;
	const char *name;
	int result = reopen(walk, level);

	if (result < 0)
		return fail(walk, result, "opening a directory again");
	memcpy(&offset, walk->pool + level->list + level->at++ * sizeof(offset), sizeof(offset));
	name = walk->pool + offset;
	length = name_path(walk, level, name);
	result = look_up(level, name, &lower, &upper);
	if (result < 0 && stage_reason(result))
		return emit(walk, STAGE_UNREAD, &lower, &upper, 0, stage_reason(result));
	if (result < 0)
		return fail(walk, result, "looking at a name of the workspace");
	return is_settled(level, &lower, &upper) ? 0 : take(walk, &lower, &upper, length);
}

/* Where the last level has no more names: its lower directory's, or back to the one before. */
static void leave(struct walk *walk, struct level *level)
{
	if (!level->is_in_lower && level->is_pure && level->has_lower) {
		level->is_in_lower = true;
		level->is_exhausted = false;
		level->offset = 0;
		return;
	}
	close_level(level);
	walk->depth--;
}

static int go(struct walk *walk)
{
	int result = 0;

	while (walk->depth && result >= 0) {
		struct level *level = &walk->levels[walk->depth - 1];

		if (level->at < level->count)
			result = step(walk, level);
		else if (!level->is_exhausted)
			result = fill(walk, level);
		else
			leave(walk, level);
	}
	return result < 0 ? result : 0;
}

static int begin(struct walk *walk)
{
	const struct stage_object lower = { .directory_fd = walk->stage->lower_fd, .name = "." };
	const struct stage_object upper = { .directory_fd = walk->stage->upper_fd, .name = "." };
	const char *unread = NULL;
	struct level level;
	int result;

	walk->pool = malloc(STAGE_POOL_BYTES);
	walk->path = calloc(1, STAGE_LIMIT_PATH_BYTES);
	walk->attributes = malloc(STAGE_ATTRIBUTE_BYTES);
	walk->levels = malloc(STAGE_LIMIT_DEPTH * sizeof(*walk->levels));
	if (!walk->pool || !walk->path || !walk->attributes || !walk->levels)
		return fail(walk, ENOMEM, "reading the stage");
	result = open_level(walk, &lower, &upper, 0, &level, &unread);
	if (result == 0)
		return error_set(walk->error, EACCES, "the stage or the workspace: %s", unread);
	if (result > 0)
		push(walk, &level);
	return result;
}

int stage_walk(const struct stage *stage, struct error *error)
{
	struct walk walk = { .stage = stage, .error = error };
	int result = begin(&walk);

	if (result >= 0)
		result = go(&walk);
	while (walk.depth)
		close_level(&walk.levels[--walk.depth]);
	free(walk.pool);
	free(walk.path);
	free(walk.attributes);
	free(walk.levels);
	return result;
}
