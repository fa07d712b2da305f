#include "workspace/stage_changes.h"

#include "base/arena.h"
#include "base/fd.h"
#include "workspace/stage_internal.h"
#include "workspace/stage_look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beyond so many comparisons equal files are paired without a look at their names. */
#define PAIRS_LIMIT 1000000u

/* One end of what may be a rename. */
struct file {
	const char *path;
	const char *other_path; /* NULL: it has no other end */
	struct stage_side side, other_side;
	unsigned char digest[SHA256_BYTES];
	bool has_digest;
};

struct files {
	struct file *items;
	size_t count, path_bytes;
};

struct changes {
	const struct stage *stage;
	struct arena arena;
	struct files created, removed;
	uint64_t hashed_bytes;
	bool has_removed;
};

static int by_size(const void *a, const void *b)
{
	const struct file *left = a, *right = b;

	return left->side.size < right->side.size ? -1 : left->side.size > right->side.size;
}

static int by_path(const void *a, const void *b)
{
	const struct file *left = a, *right = b;

	return strcmp(left->path, right->path);
}

/* Equal contents beside each other, and in the order of their paths. */
static int by_digest(const void *a, const void *b)
{
	const struct file *left = a, *right = b;
	int order = (int)right->has_digest - (int)left->has_digest;

	order = order ? order : memcmp(left->digest, right->digest, sizeof(left->digest));
	return order ? order : strcmp(left->path, right->path);
}

static void sort(struct files *files, int (*compare)(const void *, const void *))
{
	if (files->count)
		qsort(files->items, files->count, sizeof(files->items[0]), compare);
}

static struct file *find_path(const struct files *files, const char *path)
{
	struct file key = { .path = path };

	return files->count ? bsearch(&key, files->items, files->count, sizeof(key), by_path) :
			      NULL;
}

static bool has_size(const struct files *files, uint64_t size)
{
	struct file key = { .side.size = size };

	return files->count && bsearch(&key, files->items, files->count, sizeof(key), by_size);
}

/* Beyond the limits, or without memory, it is none. */
static void add(struct changes *changes, struct files *files, const struct stage_change *change,
		const struct stage_side *side)
{
	size_t length = strlen(change->path) + 1;
	struct file *items;
	char *path;

	if (files->count == STAGE_LIMIT_RENAMES ||
	    files->path_bytes + length > STAGE_LIMIT_RENAME_PATHS_BYTES)
		return;
	path = arena_copy(&changes->arena, change->path);
	if (!files->items)
		files->items = calloc(STAGE_LIMIT_RENAMES, sizeof(*items));
	if (!path || !files->items)
		return;
	files->items[files->count++] = (struct file){ .path = path, .side = *side };
	files->path_bytes += length;
}

static bool is_candidate(const struct stage_side *side)
{
	return side->type == STAGE_FILE && side->size && side->size <= STAGE_LIMIT_HASH_BYTES;
}

static int take_created(void *context, const struct stage_change *change)
{
	struct changes *changes = context;

	if (change->kind == STAGE_CREATED && is_candidate(&change->after))
		add(changes, &changes->created, change, &change->after);
	changes->has_removed |= change->before.type != STAGE_NONE &&
				change->after.type == STAGE_NONE;
	changes->has_removed |= change->kind == STAGE_REPLACED;
	return 0;
}

static int take_removed(void *context, const struct stage_change *change)
{
	struct changes *changes = context;

	if (change->kind == STAGE_REMOVED && is_candidate(&change->before) &&
	    has_size(&changes->created, change->before.size))
		add(changes, &changes->removed, change, &change->before);
	return 0;
}

/* Of those whose size one of the others has. */
static void hash(struct changes *changes, struct files *files, const struct files *others,
		 int root_fd)
{
	for (size_t i = 0; i < files->count; i++) {
		struct file *file = &files->items[i];
		int CLEANUP_FD fd = -1;

		if (!has_size(others, file->side.size) ||
		    changes->hashed_bytes + file->side.size > STAGE_LIMIT_RENAME_BYTES)
			continue;
		changes->hashed_bytes += file->side.size;
		fd = stage_open_file(root_fd, file->path);
		file->has_digest = fd >= 0 && !stage_digest(fd, file->side.size, file->digest);
	}
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void join(struct file *created, struct file *removed)
{
	created->other_path = removed->path;
	created->other_side = removed->side;
	removed->other_path = created->path;
}

/* Of equal contents, those of one name belong together first, then any. */
static void pair_group(struct file *created, size_t created_count, struct file *removed,
		       size_t removed_count)
{
	for (int round = created_count * removed_count > PAIRS_LIMIT; round < 2; round++)
		for (size_t i = 0, from = 0; i < created_count; i++)
			for (size_t k = round ? from : 0;
			     k < removed_count && !created[i].other_path; k++) {
				if (removed[k].other_path)
					continue;
				if (round)
					from = k + 1;
				if (round ||
				    strcmp(name_of(created[i].path), name_of(removed[k].path)) == 0)
					join(&created[i], &removed[k]);
			}
}

static size_t group(const struct files *files, size_t at)
{
	size_t count = 0;

	while (at + count < files->count && files->items[at + count].has_digest &&
	       memcmp(files->items[at].digest, files->items[at + count].digest, SHA256_BYTES) == 0)
		count++;
	return count;
}

/* Both sorted by digest. */
static void pair(struct files *created, struct files *removed)
{
	size_t i = 0, k = 0;

	while (i < created->count && k < removed->count && created->items[i].has_digest &&
	       removed->items[k].has_digest) {
		int order =
			memcmp(created->items[i].digest, removed->items[k].digest, SHA256_BYTES);
		size_t left = group(created, i), right = group(removed, k);

		if (order == 0)
			pair_group(created->items + i, left, removed->items + k, right);
		i += order <= 0 ? left : 0;
		k += order >= 0 ? right : 0;
	}
}

static int collect(struct changes *changes,
		   int (*take)(void *context, const struct stage_change *change),
		   struct error *error)
{
	struct stage names = *changes->stage;

	names.is_names_only = true;
	names.take = take;
	names.context = changes;
	return stage_walk(&names, error);
}

static int find_renames(struct changes *changes, struct error *error)
{
	int result = collect(changes, take_created, error);

	if (result < 0 || !changes->created.count || !changes->has_removed)
		return result;
	sort(&changes->created, by_size);
	result = collect(changes, take_removed, error);
	if (result < 0)
		return result;
	sort(&changes->removed, by_size);
	hash(changes, &changes->removed, &changes->created, changes->stage->lower_fd);
	hash(changes, &changes->created, &changes->removed, changes->stage->upper_fd);
	sort(&changes->created, by_digest);
	sort(&changes->removed, by_digest);
	pair(&changes->created, &changes->removed);
	sort(&changes->created, by_path);
	sort(&changes->removed, by_path);
	return 0;
}

static int take_all(void *context, const struct stage_change *change)
{
	struct changes *changes = context;
	const struct stage *stage = changes->stage;
	struct stage_change renamed = *change;
	const struct file *file;

	if (change->kind == STAGE_REMOVED && change->before.type == STAGE_FILE) {
		file = find_path(&changes->removed, change->path);
		if (file && file->other_path)
			return 0;
	}
	if (change->kind != STAGE_CREATED || change->after.type != STAGE_FILE)
		return stage->take(stage->context, change);
	file = find_path(&changes->created, change->path);
	if (!file || !file->other_path)
		return stage->take(stage->context, change);
	renamed.kind = STAGE_RENAMED;
	renamed.from = file->other_path;
	renamed.before = file->other_side;
	if (renamed.before.mode & 0111)
		renamed.marks &= ~(unsigned)STAGE_MARK_EXECUTABLE;
	return stage->take(stage->context, &renamed);
}

int stage_changes(const struct stage *stage, struct error *error)
{
	struct changes changes = { .stage = stage };
	struct stage all = *stage;
	int result = find_renames(&changes, error);

	all.take = take_all;
	all.context = &changes;
	if (result == 0)
		result = stage_walk(&all, error);
	free(changes.created.items);
	free(changes.removed.items);
	arena_free(&changes.arena);
	return result;
}
