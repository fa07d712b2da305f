#include "workspace/tree.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/stage_look.h"
#include "workspace/sweep_internal.h"
#include "workspace/tree_internal.h"
#include "workspace/tree_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
/* Of a survey, between two looks at what the action does. */
#define SLICE_NAMES 64u
#define SCRATCH_BYTES 8192u

/* Some file systems keep whole seconds (ext4 with small inodes). */
bool tree_is_since(const struct tree *tree, int64_t changed_ns)
{
	int64_t since_ns = tree->since_ns;

	if (!tree->place.is_stamped)
		return true;
	return changed_ns >= (changed_ns % SECOND_NS ? since_ns : since_ns - since_ns % SECOND_NS);
}

/* ---- taking pictures ---- */

static void enter(struct tree *tree, struct tree_picture *picture, const struct walk *walk,
		  uint32_t flags)
{
	struct stat status;
	const char *path;

	arena_reset(&tree->scratch);
	/* deeper than what a path can say: it is not in the picture, and that is told */
	path = walk->depth < PATH_LIMIT_BYTES / 2 ?
		       walk_path(walk, "", PATH_LIMIT_BYTES, &tree->scratch) :
		       NULL;
	tree->is_skipping = !path || fstat(walk->fd, &status) < 0;
	if (tree->is_skipping) {
		tree->has_skipped = true;
		return;
	}
	if (flags == TREE_VAGUE && !tree_is_since(tree, sweep_stamp_ns(&status)))
		flags = 0;
	tree_picture_enter(picture, path, &status, flags);
}

/* The time of its birth, where the file system has one. */
static bool is_born_since(const struct tree *tree, int fd, const char *name)
{
	struct statx status;

	if (statx(fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) < 0 ||
	    !(status.stx_mask & STATX_BTIME))
		return false;
	return tree->place.is_stamped &&
	       status.stx_btime.tv_sec * SECOND_NS + status.stx_btime.tv_nsec >= tree->since_ns;
}

void tree_look_begin_until(struct tree *tree, uint64_t deadline_ns)
{
	tree_picture_free(&tree->now);
	tree->has_skipped = false;
	tree->deadline_ns = deadline_ns;
}

void tree_look_begin(struct tree *tree)
{
	tree_look_begin_until(tree, clock_monotonic_ns() + TREE_LIMIT_LOOK_NS);
}

static void look_at_clock(struct tree *tree)
{
	if (!tree->now.code && clock_monotonic_ns() > tree->deadline_ns)
		tree->now.code = -ETIME;
}

void tree_look_enter(struct tree *tree, const struct walk *walk)
{
	look_at_clock(tree);
	if (!tree->now.code)
		enter(tree, &tree->now, walk, 0);
}

void tree_look_name(struct tree *tree, const struct walk *walk)
{
	struct stat status;

	if (tree->now.entry_count % TREE_CLOCK_NAMES == 0)
		look_at_clock(tree);
	/* it was taken out, or went by itself */
	if (tree->now.code || tree->is_skipping ||
	    fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	tree_picture_add(&tree->now, walk->name, &status,
			 tree_is_since(tree, sweep_stamp_ns(&status)) &&
					 is_born_since(tree, walk->fd, walk->name) ?
				 TREE_BORN :
				 0);
}

void tree_look_again(struct tree *tree)
{
	if (!tree->is_skipping)
		tree_picture_again(&tree->now);
}

void tree_look_end(struct tree *tree, bool is_whole)
{
	tree->is_whole = is_whole && !tree->now.code;
}

/* ---- the survey ---- */

static bool is_covered(const struct tree *tree, const struct stat *status)
{
	return sweep_find(tree->place.covered, tree->place.covered_count, status);
}

static void survey_name(struct tree *tree)
{
	struct walk *walk = &tree->walk;
	struct stat status;
	bool is_vague;

	if (tree->is_skipping || fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	is_vague = !tree->is_starting && tree_is_since(tree, sweep_stamp_ns(&status));
	tree_picture_add(&tree->before, walk->name, &status, is_vague ? TREE_VAGUE : 0);
	if (S_ISDIR(status.st_mode) && !is_covered(tree, &status))
		walk_descend(walk, 0);
}

/* Returns how many names there were; the walk ends with TREE_HASH. */
static unsigned survey(struct tree *tree, unsigned names)
{
	struct walk *walk = &tree->walk;
	unsigned seen = 0;

	while (seen < names) {
		switch (walk_next(walk)) {
		case WALK_ENTER:
			seen++;
			enter(tree, &tree->before, walk, tree->is_starting ? 0 : TREE_VAGUE);
			break;
		case WALK_NAME:
			seen++;
			survey_name(tree);
			break;
		case WALK_LISTED:
		case WALK_LEAVE:
			break;
		case WALK_END:
			walk_end(walk);
			tree->phase = TREE_HASH;
			return seen;
		}
		if (tree->before.code)
			break;
	}
	return seen;
}

/* A folder that was begun and not ended says nothing of what is not in it. */
static void cut(struct tree *tree)
{
	struct tree_picture *before = &tree->before;

	if (tree->phase == TREE_SURVEY) {
		if (before->folder_count)
			before->folders[before->folder_count - 1].flags |= TREE_VAGUE;
		walk_end(&tree->walk);
	}
	tree->phase = TREE_IDLE;
	if (before->code)
		tree_picture_free(before);
}

void tree_begin(struct tree *tree, const struct tree_place *place, int64_t since_ns,
		enum tree_beginning beginning)
{
	int fd;

	tree_stop(tree);
	tree_picture_free(&tree->before);
	tree->scratch.first_bytes = SCRATCH_BYTES;
	tree->place = *place;
	tree->since_ns = since_ns;
	tree->at = tree->folder = 0;
	tree->hashed = tree->hashed_bytes = 0;
	fd = beginning == TREE_BEGIN_SURVEY ? fcntl(place->root_fd, F_DUPFD_CLOEXEC, 3) : -1;
	if (fd < 0)
		return;
	/* a duplicate goes on where the other stopped */
	(void)lseek(fd, 0, SEEK_SET);
	walk_begin(&tree->walk, fd, 0);
	tree->walk.limit_names = TREE_LIMIT_SURVEY;
	tree->walk.leaves_modes = true;
	tree->phase = TREE_SURVEY;
	tree->is_starting = true;
	(void)survey(tree, TREE_LIMIT_START);
	tree->is_starting = false;
}

/* ---- one file alone ---- */

/* Its folder is as new as it is: what else is done there is nobody's. */
static void take_one(const struct tree *tree, const char *name, struct tree_picture *picture)
{
	struct stat folder, status;

	tree_picture_free(picture);
	if (fstat(tree->place.root_fd, &folder) < 0 ||
	    fstatat(tree->place.root_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	folder.st_ctim = status.st_ctim;
	tree_picture_enter(picture, "", &folder, 0);
	tree_picture_add(picture, name, &status, 0);
}

void tree_begin_name(struct tree *tree, const char *name)
{
	take_one(tree, name, &tree->before);
	tree->phase = tree->before.folder_count ? TREE_HASH : TREE_IDLE;
}

void tree_look_one(struct tree *tree, const char *name)
{
	take_one(tree, name, &tree->now);
	tree->has_skipped = false;
	tree->is_whole = tree->now.folder_count && !tree->now.code;
}

/* ---- hashing beforehand ---- */

bool tree_digest(int root_fd, const char *path, const struct tree_entry *entry,
		 unsigned char ret_digest[static SHA256_BYTES])
{
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (S_ISLNK(entry->mode)) {
		char target[PATH_MAX];
		struct sha256 hash;
		ssize_t length;

		fd = fd_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW);
		length = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target));
		if (length < 0 || (size_t)length == sizeof(target))
			return false;
		sha256_begin(&hash);
		sha256_update(&hash, target, (size_t)length);
		sha256_end(&hash, ret_digest);
		return true;
	}
	if (!S_ISREG(entry->mode))
		return false;
	fd = fd_open_beneath(root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_ino == entry->inode && (uint64_t)status.st_size == entry->size &&
	       !stage_digest(fd, entry->size, ret_digest) && fstat(fd, &status) == 0 &&
	       sweep_stamp_ns(&status) == entry->changed_ns;
}

/* Digests of objects that are the same in both. */
static void carry(struct tree_picture *from, struct tree_picture *to)
{
	for (uint32_t i = 0; from->digest_count && i < from->folder_count; i++) {
		const struct tree_folder *folder = &from->folders[i];
		uint32_t there = TREE_NONE;

		for (uint32_t at = folder->first; at < folder->first + folder->count; at++) {
			const struct tree_entry *entry = &from->entries[at];
			uint32_t other;

			if (!entry->digest)
				continue;
			if (there == TREE_NONE)
				there = tree_picture_by_inode(to, folder->device, folder->inode);
			if (there == TREE_NONE)
				break;
			other = tree_picture_find(to, there, tree_text(from, entry->name));
			if (other != TREE_NONE && !to->entries[other].digest &&
			    tree_entry_is_same(entry, &to->entries[other]))
				tree_picture_set_digest(to, other, tree_picture_digest(from, at));
		}
	}
}

static bool is_worth(const struct tree_entry *entry)
{
	return S_ISREG(entry->mode) && !(entry->flags & TREE_VAGUE) && !entry->digest &&
	       entry->size <= TREE_LIMIT_HASH_FILE_BYTES;
}

/* The next file without a digest. False: there is none. */
static bool hash_one(struct tree *tree)
{
	struct tree_picture *before = &tree->before;

	while (tree->folder < before->folder_count && tree->hashed < TREE_LIMIT_HASHES &&
	       tree->hashed_bytes < TREE_LIMIT_HASH_BYTES) {
		const struct tree_folder *folder = &before->folders[tree->folder];
		unsigned char digest[SHA256_BYTES];
		struct tree_entry *entry;
		const char *path;

		if (tree->at >= folder->first + folder->count || tree->at < folder->first) {
			tree->folder += tree->at >= folder->first;
			tree->at = tree->folder < before->folder_count ?
					   before->folders[tree->folder].first :
					   0;
			continue;
		}
		entry = &before->entries[tree->at++];
		if (!is_worth(entry))
			continue;
		tree->hashed++;
		tree->hashed_bytes += entry->size;
		arena_reset(&tree->scratch);
		path = arena_format(&tree->scratch, "%s%s%s", tree_text(before, folder->path),
				    tree_text(before, folder->path)[0] ? "/" : "",
				    tree_text(before, entry->name));
		if (path && tree_digest(tree->place.root_fd, path, entry, digest))
			tree_picture_set_digest(before, tree->at - 1, digest);
		return true;
	}
	return false;
}

/* ---- kept for later tasks ---- */

/* What was born or vague then is neither now. */
static void age(struct tree_picture *picture)
{
	for (size_t i = 0; i < picture->folder_count; i++)
		picture->folders[i].flags &= TREE_SORTED;
	for (size_t i = 0; i < picture->entry_count; i++)
		picture->entries[i].flags = 0;
}

static void load(struct tree *tree)
{
	int CLEANUP_FD fd = -1;

	if (tree->is_loaded)
		return;
	tree->is_loaded = true;
	fd = tree_store_open(tree->place.state_fd, tree->place.kept);
	if (fd >= 0 && tree_picture_load(fd, &tree->earlier) == 0)
		age(&tree->earlier);
}

/* ---- in idle moments ---- */

bool tree_work(struct tree *tree)
{
	switch (tree->phase) {
	case TREE_IDLE:
		return false;
	case TREE_SURVEY:
		(void)survey(tree, SLICE_NAMES);
		if (tree->before.code)
			cut(tree);
		return tree->phase != TREE_IDLE;
	case TREE_HASH:
		break;
	}
	if (!tree->hashed) {
		load(tree);
		carry(&tree->earlier, &tree->before);
	}
	if (hash_one(tree))
		return true;
	tree->phase = TREE_IDLE;
	return false;
}

void tree_stop(struct tree *tree)
{
	cut(tree);
}

/* ---- telling ---- */

static bool has_news(const struct tree *tree)
{
	const struct tree_picture *now = &tree->now;

	for (size_t i = 0; i < now->folder_count; i++)
		if (tree_is_since(tree, now->folders[i].changed_ns))
			return true;
	for (size_t i = 0; i < now->entry_count; i++)
		if (tree_is_since(tree, now->entries[i].changed_ns))
			return true;
	return false;
}

static const char *type_of(uint32_t mode)
{
	static const struct {
		uint32_t type;
		const char *name;
	} types[] = { { S_IFREG, "file" },	  { S_IFLNK, "link" },
		      { S_IFDIR, "directory" },	  { S_IFIFO, "fifo" },
		      { S_IFSOCK, "socket" },	  { S_IFCHR, "character device" },
		      { S_IFBLK, "block device" } };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if ((mode & S_IFMT) == types[i].type)
			return types[i].name;
	return "unknown";
}

static struct change_side *side_of(const struct tree_picture *picture, uint32_t number,
				   struct arena *arena)
{
	const struct tree_entry *entry = &picture->entries[number];
	const unsigned char *digest = tree_picture_digest(picture, number);
	struct change_side *side = arena_allocate(arena, sizeof(*side));

	if (!side)
		return NULL;
	*side = (struct change_side){ .type = type_of(entry->mode),
				      .mode = entry->mode & 07777,
				      .bytes = entry->size };
	if (digest)
		sha256_hex(digest, side->sha256);
	return side;
}

/* The digest of what is there now, for this row and for later ones. */
static void digest_row(struct tree *tree, const struct tree_row *row, uint64_t *read_bytes)
{
	const struct tree_entry *entry = &tree->now.entries[row->after];
	unsigned char digest[SHA256_BYTES];

	if (entry->digest || entry->size > TREE_LIMIT_FILE_BYTES ||
	    *read_bytes + entry->size > TREE_LIMIT_READ_BYTES)
		return;
	if (S_ISREG(entry->mode))
		*read_bytes += entry->size;
	if (tree_digest(tree->place.root_fd, row->path, entry, digest))
		tree_picture_set_digest(&tree->now, row->after, digest);
}

/* Both contents are known to be one. */
static bool is_same_content(const struct change *change)
{
	return change->kind == CHANGE_MODIFIED && change->before && change->after &&
	       change->before->sha256[0] &&
	       strcmp(change->before->sha256, change->after->sha256) == 0;
}

static int finish_row(struct tree *tree, struct tree_row *row, uint64_t *read_bytes,
		      struct arena *arena)
{
	struct change *change = &row->change;

	change->state = CHANGE_APPLIED;
	change->path = arena_format(arena, "%s/%s", tree->place.workspace, row->path);
	if (change->from)
		change->from = arena_format(arena, "%s/%s", tree->place.workspace, change->from);
	if (row->after != TREE_NONE) {
		digest_row(tree, row, read_bytes);
		change->after = side_of(&tree->now, row->after, arena);
	}
	if (row->before != TREE_NONE)
		change->before = side_of(row->picture, row->before, arena);
	if (is_same_content(change))
		change->kind = CHANGE_ATTRIBUTES;
	if (change->before && change->before->sha256[0] && change->after &&
	    change->after->sha256[0])
		change->is_inferred = false;
	return arena_failed(arena) ? -ENOMEM : 0;
}

static int finish(struct tree *tree, struct tree_rows *rows, struct arena *arena,
		  struct tree_list *list)
{
	uint64_t read_bytes = 0;
	int result = 0;

	list->changes = arena_array(arena, rows->count + 1, sizeof(*list->changes));
	if (!list->changes)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count && result == 0; i++) {
		if (rows->items[i].is_done)
			continue;
		if (list->count >= CHANGE_LIMIT) {
			list->unlisted += 1 + rows->items[i].change.below;
			continue;
		}
		result = finish_row(tree, &rows->items[i], &read_bytes, arena);
		list->changes[list->count++] = rows->items[i].change;
	}
	return result;
}

/* What was seen now is what a later look has from before. */
static void go_on(struct tree *tree)
{
	carry(&tree->before, &tree->now);
	carry(&tree->earlier, &tree->now);
	tree_picture_free(&tree->before);
	tree_picture_free(&tree->earlier);
	tree->earlier = tree->now;
	tree->now = (struct tree_picture){ 0 };
	tree->is_loaded = true;
	age(&tree->earlier);
}

/* Losing it loses what was before a change, and nothing else. */
static void save(struct tree *tree, struct tree_picture *picture, bool with_digests)
{
	const struct tree_place *place = &tree->place;
	int CLEANUP_FD fd = tree_store_open(place->state_fd, place->kept);

	if (fd >= 0 && tree_picture_is_kept(picture, fd, with_digests))
		return;
	if (!with_digests) {
		/* the host changed something: those of what it did not are good still */
		load(tree);
		go_on(tree);
		picture = &tree->earlier;
	}
	(void)tree_store_save(picture, place->state_fd, place->kept);
}

void tree_keep(struct tree *tree)
{
	if (!tree->is_whole)
		return;
	if (tree->now.folder_count)
		save(tree, &tree->now, false);
	else if (tree->earlier.folder_count)
		save(tree, &tree->earlier, true);
}

static const char *cut_of(const struct tree *tree)
{
	switch (-tree->now.code) {
	case ETIME:
		return "looking through it took longer than 5 seconds";
	case E2BIG:
		return "it has more than 400,000 names";
	case ENOMEM:
		return "there was no memory for it";
	default:
		return !tree->is_whole	 ? "it could not be looked through to its end" :
		       tree->has_skipped ? "a directory in it is too deep for a path, or cannot be "
					   "read" :
					   NULL;
	}
}

int tree_tell(struct tree *tree, struct arena *arena, struct tree_list *ret_list)
{
	struct arena CLEANUP_ARENA scratch = { 0 };
	struct tree_rows rows = { .arena = &scratch };
	struct tree_list list = { .cut = cut_of(tree) };
	int result = 0;

	tree_stop(tree);
	if (tree->is_whole && has_news(tree)) {
		load(tree);
		result = tree_compare(tree, &rows);
		if (result == 0) {
			tree_group(&rows);
			list.unlisted = rows.unlisted;
			result = finish(tree, &rows, arena, &list);
		}
	}
	/* else what is kept is as good, or tree_keep() sees that it is not */
	if (result == 0 && tree->is_whole && tree->is_loaded)
		go_on(tree);
	if (result == 0)
		*ret_list = list;
	return result;
}

void tree_end(struct tree *tree)
{
	tree_stop(tree);
	tree_picture_free(&tree->before);
	tree_picture_free(&tree->earlier);
	tree_picture_free(&tree->now);
	arena_free(&tree->scratch);
	*tree = TREE_EMPTY;
}
