#include "workspace/tree_internal.h"

#include "base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Directories that came with all that is in them. */
#define LIMIT_ARRIVED 256u

struct comparison {
	struct tree *tree;
	struct tree_rows *rows;
	const char *arrived[LIMIT_ARRIVED]; /* their paths */
	unsigned arrived_count;
	bool no_memory;
};

/* A folder in one of the pictures from before. */
struct base {
	struct tree_picture *picture;
	uint32_t folder; /* TREE_NONE: it is not in it */
	enum change_seen seen;
	bool is_whole; /* a name that is not in it was not there */
};

static struct tree_row *add_row(struct comparison *comparison, const char *folder, const char *name)
{
	struct tree_rows *rows = comparison->rows;
	struct tree_row *items;

	if (rows->count == TREE_LIMIT_CHANGES) {
		rows->unlisted++;
		return NULL;
	}
	if (rows->count == rows->room) {
		size_t room = rows->room ? rows->room * 2 : 64;

		items = arena_array(rows->arena, room, sizeof(*items));
		if (!items) {
			comparison->no_memory = true;
			return NULL;
		}
		if (rows->count)
			memcpy(items, rows->items, rows->count * sizeof(*items));
		rows->items = items;
		rows->room = room;
	}
	items = &rows->items[rows->count];
	*items = (struct tree_row){ .before = TREE_NONE, .after = TREE_NONE };
	items->path = folder[0] ? arena_format(rows->arena, "%s/%s", folder, name) :
				  arena_copy(rows->arena, name);
	comparison->no_memory |= !items->path;
	if (!items->path)
		return NULL;
	rows->count++;
	return items;
}

/* The same directory, wherever it was; else the one of its path. */
static struct base base_of(struct tree *tree, struct tree_picture *picture,
			   const struct tree_folder *folder, enum change_seen seen)
{
	const char *path = tree_text(&tree->now, folder->path);
	struct base base = { .picture = picture, .seen = seen, .folder = TREE_NONE };

	if (!picture->folder_count)
		return base;
	if (!(folder->flags & TREE_BORN))
		base.folder = tree_picture_by_inode(picture, folder->device, folder->inode);
	if (base.folder == TREE_NONE)
		base.folder = tree_picture_by_path(picture, path);
	base.is_whole = base.folder != TREE_NONE &&
			!(picture->folders[base.folder].flags & TREE_VAGUE);
	return base;
}

/* TREE_NONE also where it had changed already when it was seen. */
static uint32_t find_base(const struct tree *tree, const struct base *base, const char *name)
{
	uint32_t entry = base->folder == TREE_NONE ?
				 TREE_NONE :
				 tree_picture_find(base->picture, base->folder, name);
	const struct tree_entry *found;

	if (entry == TREE_NONE)
		return TREE_NONE;
	found = &base->picture->entries[entry];
	if (found->flags & TREE_VAGUE)
		return TREE_NONE;
	/* of another task's look, which ended after this one began */
	if (base->seen == CHANGE_SEEN_EARLIER && tree->place.is_stamped &&
	    tree_is_since(tree, found->changed_ns))
		return TREE_NONE;
	return entry;
}

static bool is_directory(const struct tree_entry *entry)
{
	return S_ISDIR(entry->mode);
}

/* Both stand there. False: nothing is to be told. */
static bool judge(const struct tree_entry *before, const struct tree_entry *after,
		  struct change *change)
{
	if (tree_entry_is_same(before, after))
		return false;
	change->kind = CHANGE_MODIFIED;
	if ((before->mode & S_IFMT) != (after->mode & S_IFMT)) {
		change->kind = CHANGE_REPLACED;
	} else if (is_directory(after)) {
		change->kind = before->inode == after->inode ? CHANGE_ATTRIBUTES : CHANGE_REPLACED;
		/* names in it came and went: they are told */
		return change->kind == CHANGE_REPLACED || before->mode != after->mode;
	} else if (!S_ISREG(after->mode) && !S_ISLNK(after->mode)) {
		change->kind = before->inode == after->inode ? CHANGE_ATTRIBUTES : CHANGE_REPLACED;
	} else if (before->inode == after->inode && before->size == after->size &&
		   before->modified_ns == after->modified_ns) {
		/* content may have been changed all the same, and its time set back */
		change->is_inferred = true;
	}
	return true;
}

static void arrive(struct comparison *comparison, const struct tree_row *row,
		   const struct tree_entry *entry)
{
	struct tree *tree = comparison->tree;
	uint64_t device = tree->now.folders[0].device;

	/* one that was elsewhere in the tree is found by its inode */
	if (!is_directory(entry) || (entry->flags & TREE_BORN) ||
	    tree_picture_by_inode(&tree->before, device, entry->inode) != TREE_NONE ||
	    tree_picture_by_inode(&tree->earlier, device, entry->inode) != TREE_NONE)
		return;
	if (comparison->arrived_count < LIMIT_ARRIVED)
		comparison->arrived[comparison->arrived_count++] = row->path;
}

static void take_entry(struct comparison *comparison, const struct tree_folder *folder,
		       uint32_t number, const struct base *bases, size_t count)
{
	struct tree *tree = comparison->tree;
	const struct tree_entry *entry = &tree->now.entries[number];
	const char *name = tree_text(&tree->now, entry->name);
	uint32_t before = TREE_NONE;
	/* nothing was in a directory that was not there */
	bool is_absent = folder->flags & TREE_BORN;
	struct change change = { .kind = CHANGE_CREATED };
	struct tree_row *row;
	size_t at;

	for (at = 0; at < count && before == TREE_NONE && !is_absent; at++) {
		before = find_base(tree, &bases[at], name);
		is_absent = before == TREE_NONE && bases[at].is_whole;
	}
	if (before != TREE_NONE) {
		change.seen = bases[at - 1].seen;
		if (!judge(&bases[at - 1].picture->entries[before], entry, &change))
			return;
	} else if (!is_absent) {
		/* where stamps tell nothing, nothing is known of it; a directory has its rows */
		if (!tree->place.is_stamped || (is_directory(entry) && !(entry->flags & TREE_BORN)))
			return;
		change.is_inferred = true;
		change.kind = entry->flags & TREE_BORN ? CHANGE_CREATED : CHANGE_MODIFIED;
	}
	row = add_row(comparison, tree_text(&tree->now, folder->path), name);
	if (!row)
		return;
	row->change = change;
	row->after = number;
	row->before = before;
	row->picture = before == TREE_NONE ? NULL : bases[at - 1].picture;
	if (is_absent)
		arrive(comparison, row, entry);
}

/* It stands elsewhere by now, with what is in it. */
static bool has_moved(struct tree *tree, uint64_t device, uint64_t inode)
{
	uint32_t there = tree_picture_by_inode(&tree->now, device, inode);

	return there != TREE_NONE && !(tree->now.folders[there].flags & TREE_BORN);
}

static const struct tree_row *add_removed(struct comparison *comparison, const struct base *base,
					  const char *folder, uint32_t number)
{
	const struct tree_entry *entry = &base->picture->entries[number];
	struct tree_row *row = add_row(comparison, folder, tree_text(base->picture, entry->name));

	if (!row)
		return NULL;
	row->change = (struct change){ .kind = CHANGE_REMOVED, .seen = base->seen };
	row->picture = base->picture;
	row->before = number;
	return row;
}

/* What the first picture has of a folder, or that it is all there was. */
static bool is_in(struct tree_picture *first, const char *folder, const char *name)
{
	uint32_t there = first ? tree_picture_by_path(first, folder) : TREE_NONE;

	return there != TREE_NONE && (!(first->folders[there].flags & TREE_VAGUE) ||
				      tree_picture_find(first, there, name) != TREE_NONE);
}

/* All that was in a directory that is gone; `first` has told what it knows of it. */
static void take_removed_folder(struct comparison *comparison, const struct base *base,
				const char *path, struct tree_picture *first)
{
	struct tree_picture *picture = base->picture;
	uint32_t number = tree_picture_by_path(picture, path);
	size_t length = strlen(path);

	/* those below it follow it, in the order of the walk */
	for (uint32_t i = number; number != TREE_NONE && i < picture->folder_count; i++) {
		const struct tree_folder *folder = &picture->folders[i];
		const char *here = tree_text(picture, folder->path);

		if (strncmp(here, path, length) != 0 || (here[length] && here[length] != '/'))
			break;
		if (has_moved(comparison->tree, folder->device, folder->inode))
			continue;
		tree_picture_sort(picture, i);
		for (uint32_t at = folder->first; at < folder->first + folder->count; at++)
			if (!(picture->entries[at].flags & TREE_VAGUE) &&
			    !is_in(first, here, tree_text(picture, picture->entries[at].name)))
				(void)add_removed(comparison, base, here, at);
	}
}

/* It went; where it is now, if it is, is found by its inode afterwards. */
static void take_removed(struct comparison *comparison, const struct base *base, uint32_t number)
{
	const struct tree_folder *folder = &base->picture->folders[base->folder];
	const struct tree_entry *entry = &base->picture->entries[number];
	const struct tree_row *row =
		add_removed(comparison, base, tree_text(base->picture, folder->path), number);

	struct base earlier = { .picture = &comparison->tree->earlier,
				.seen = CHANGE_SEEN_EARLIER };

	if (!row || !is_directory(entry) ||
	    has_moved(comparison->tree, folder->device, entry->inode))
		return;
	take_removed_folder(comparison, base, row->path, NULL);
	/* the survey may not have come to the end of it */
	if (base->seen == CHANGE_SEEN_START)
		take_removed_folder(comparison, &earlier, row->path, base->picture);
}

/* Names that were there before and are not now. */
static void take_gone(struct comparison *comparison, uint32_t number, const struct base *bases,
		      size_t count)
{
	struct tree *tree = comparison->tree;

	for (size_t i = 0; i < count; i++) {
		const struct base *base = &bases[i];
		const struct tree_folder *old;

		if (base->folder == TREE_NONE)
			continue;
		/* what is looked for by name sorts it: numbers have to stay those of their names */
		tree_picture_sort(base->picture, base->folder);
		old = &base->picture->folders[base->folder];
		for (uint32_t at = old->first; at < old->first + old->count; at++) {
			const char *name =
				tree_text(base->picture, base->picture->entries[at].name);

			/* a look that another task made meanwhile tells what came meanwhile */
			if ((base->picture->entries[at].flags & TREE_VAGUE) ||
			    find_base(tree, base, name) == TREE_NONE ||
			    tree_picture_find(&tree->now, number, name) != TREE_NONE ||
			    (i && find_base(tree, &bases[0], name) != TREE_NONE))
				continue;
			take_removed(comparison, base, at);
		}
		/* nothing else was there */
		if (base->is_whole)
			return;
	}
}

static bool is_arrived(const struct comparison *comparison, const char *path)
{
	for (unsigned i = 0; i < comparison->arrived_count; i++) {
		size_t length = strlen(comparison->arrived[i]);

		if (strncmp(path, comparison->arrived[i], length) == 0 &&
		    (!path[length] || path[length] == '/'))
			return true;
	}
	return false;
}

static void take_arrived(struct comparison *comparison, const struct tree_folder *folder)
{
	const struct tree_picture *now = &comparison->tree->now;

	for (uint32_t at = folder->first; at < folder->first + folder->count; at++) {
		struct tree_row *row = add_row(comparison, tree_text(now, folder->path),
					       tree_text(now, now->entries[at].name));

		if (!row)
			continue;
		row->change = (struct change){ .kind = CHANGE_CREATED };
		row->after = at;
	}
}

static bool has_news(const struct tree *tree, const struct tree_folder *folder)
{
	for (uint32_t at = folder->first; at < folder->first + folder->count; at++)
		if (tree_is_since(tree, tree->now.entries[at].changed_ns))
			return true;
	return tree_is_since(tree, folder->changed_ns);
}

static void take_folder(struct comparison *comparison, uint32_t number)
{
	struct tree *tree = comparison->tree;
	struct tree_picture *now = &tree->now;
	struct tree_folder *folder = &now->folders[number];
	struct base bases[2];

	if (is_arrived(comparison, tree_text(now, folder->path))) {
		take_arrived(comparison, folder);
		return;
	}
	if (!has_news(tree, folder))
		return;
	tree_picture_sort(now, number);
	bases[0] = base_of(tree, &tree->before, folder, CHANGE_SEEN_START);
	bases[1] = base_of(tree, &tree->earlier, folder, CHANGE_SEEN_EARLIER);
	for (uint32_t at = folder->first; at < folder->first + folder->count; at++)
		if (tree_is_since(tree, now->entries[at].changed_ns))
			take_entry(comparison, folder, at, bases, 2);
	if (tree_is_since(tree, folder->changed_ns))
		take_gone(comparison, number, bases, 2);
}

/* ---- renames ---- */

static int by_inode(const void *a, const void *b)
{
	const struct tree_row *left = *(struct tree_row *const *)a;
	const struct tree_row *right = *(struct tree_row *const *)b;
	uint64_t first = left->picture->entries[left->before].inode;
	uint64_t second = right->picture->entries[right->before].inode;

	return first < second ? -1 : first > second;
}

static struct tree_row *find_removed(struct tree_row **removed, size_t count, uint64_t inode)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t here = removed[middle]->picture->entries[removed[middle]->before].inode;

		if (here < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && removed[low]->picture->entries[removed[low]->before].inode == inode ?
		       removed[low] :
		       NULL;
}

/* What came under a new name without being born, and went under another. */
static int join_renames(struct comparison *comparison)
{
	struct tree_rows *rows = comparison->rows;
	struct tree_row **removed =
		arena_array(rows->arena, rows->count + 1, sizeof(struct tree_row *));
	size_t count = 0;

	if (!removed)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].change.kind == CHANGE_REMOVED)
			removed[count++] = &rows->items[i];
	if (count)
		qsort(removed, count, sizeof(struct tree_row *), by_inode);
	for (size_t i = 0; i < rows->count && count; i++) {
		struct tree_row *row = &rows->items[i], *from;
		const struct tree_entry *entry;

		if (row->after == TREE_NONE || row->before != TREE_NONE)
			continue;
		entry = &comparison->tree->now.entries[row->after];
		from = entry->flags & TREE_BORN ? NULL : find_removed(removed, count, entry->inode);
		if (!from || from->is_done ||
		    (from->picture->entries[from->before].mode & S_IFMT) != (entry->mode & S_IFMT))
			continue;
		row->change.kind = CHANGE_RENAMED;
		row->change.from = from->path;
		row->change.seen = from->change.seen;
		row->change.is_inferred = false;
		row->picture = from->picture;
		row->before = from->before;
		from->is_done = true;
	}
	return 0;
}

/* Directories whose names stand in `now` are known by what their parents say of their births. */
static void mark_born(struct tree *tree)
{
	struct tree_picture *now = &tree->now;

	for (uint32_t i = 0; i < now->entry_count; i++) {
		const struct tree_entry *entry = &now->entries[i];
		uint32_t folder;

		if (!is_directory(entry) || !(entry->flags & TREE_BORN))
			continue;
		folder = tree_picture_by_inode(now, now->folders[0].device, entry->inode);
		if (folder != TREE_NONE)
			now->folders[folder].flags |= TREE_BORN;
	}
}

int tree_compare(struct tree *tree, struct tree_rows *rows)
{
	struct comparison comparison = { .tree = tree, .rows = rows };
	int result;

	mark_born(tree);
	for (uint32_t i = 0; i < tree->now.folder_count && !comparison.no_memory; i++)
		take_folder(&comparison, i);
	result = comparison.no_memory ? -ENOMEM : join_renames(&comparison);
	return result;
}
