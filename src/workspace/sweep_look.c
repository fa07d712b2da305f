#include "workspace/sweep_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "workspace/sweep_link.h"
#include "workspace/sweep_name.h"
#include "workspace/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

#define PART(class) (1u << (class))

/* The tag of a directory is its place. */
static enum sweep_place place_of(const struct sweeper *sweeper)
{
	return (enum sweep_place)sweeper->walk.tag;
}

static int note_seen(struct sweeper *sweeper, const struct stat *status)
{
	struct sweep_result *result = &sweeper->result;
	struct sweep_known *seen =
		arena_push(sweeper->arena, result->seen, result->seen_count, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	result->seen = seen;
	seen[result->seen_count++] = (struct sweep_known){
		.device = status->st_dev,
		.inode = status->st_ino,
		.changed_ns = sweeper->mode == SWEEP_SURVEY ? sweep_stamp_ns(status) : 0,
	};
	return 0;
}

static const struct sweep_known *known_of(const struct sweeper *sweeper, const struct stat *status)
{
	return sweeper->sweep ?
		       sweep_find(sweeper->sweep->known, sweeper->sweep->known_count, status) :
		       NULL;
}

/* Some file systems keep whole seconds (ext4 with small inodes). */
static bool is_since(const struct stat *status, int64_t since_ns)
{
	int64_t stamp_ns = sweep_stamp_ns(status);

	return status->st_ctim.tv_nsec ? stamp_ns >= since_ns :
					 stamp_ns >= since_ns - since_ns % SECOND_NS;
}

/* True where it may have become what it is, or come to where it is, since the start. */
static bool is_new(const struct sweeper *sweeper, const struct stat *status)
{
	const struct sweep_known *known;

	if (sweeper->mode == SWEEP_SURVEY)
		return false;
	if (sweeper->mode == SWEEP_STAMPS)
		return is_since(status, sweeper->since_ns) &&
		       (!sweeper->until_ns || sweep_stamp_ns(status) <= sweeper->until_ns);
	known = known_of(sweeper, status);
	return !known || known->changed_ns != sweep_stamp_ns(status);
}

static bool is_covered(const struct sweeper *sweeper, const struct stat *status)
{
	const struct sweep_order *order = sweeper->order;

	return order && sweep_find(order->covered, order->covered_count, status);
}

/*
 * A directory that was in its place at the start: it was not changed itself, or is known, or the
 * directory above it got no name since.
 */
static bool is_in_place(const struct sweeper *sweeper, const struct stat *status)
{
	struct stat above;

	if (!is_new(sweeper, status) || known_of(sweeper, status))
		return true;
	/* notes are of what was judged: a directory of work files has none */
	return sweeper->mode == SWEEP_STAMPS && fstat(sweeper->walk.fd, &above) == 0 &&
	       !is_new(sweeper, &above);
}

static const struct sweep_copy *copy_of(const struct sweeper *sweeper, const char *name)
{
	const struct sweep *sweep = sweeper->sweep;

	for (size_t i = 0; sweep && sweeper->walk.depth == 0 && i < sweep->copy_count; i++)
		if (strcmp(sweep->copies[i].name, name) == 0)
			return &sweep->copies[i];
	return NULL;
}

static int hold(struct sweeper *sweeper, const char *name, const struct stat *status,
		const struct sweep_name *row, const char *reason)
{
	/* many long paths use up the memory that shorter results need */
	size_t limit_bytes = sweeper->arena->used_bytes < ARENA_LIMIT_BYTES / 2 ?
				     GIT_HELD_TREE_LIMIT_PATH_BYTES :
				     0;
	struct sweep_spot spot = {
		.fd = sweeper->walk.fd,
		.name = name,
		.path = walk_path(&sweeper->walk, name, limit_bytes, sweeper->arena),
		.reason = reason,
		.is_git = row && row->class == SWEEP_GIT,
		.copy = copy_of(sweeper, name),
		.was_there = !sweep_is_tree(place_of(sweeper)),
		.status = *status,
	};

	return sweep_hold(sweeper, &spot);
}

static bool stat_name(const struct sweeper *sweeper, struct stat *ret_status)
{
	return fstatat(sweeper->walk.fd, sweeper->walk.name, ret_status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* No directory: it is run or obeyed as it is. */
static int judge_plain(struct sweeper *sweeper, const struct sweep_name *row, const char *reason)
{
	struct stat status;

	if (!stat_name(sweeper, &status) || is_covered(sweeper, &status))
		return 0;
	/* survey: what is compared later */
	if (!is_new(sweeper, &status))
		return sweeper->mode == SWEEP_SURVEY ? note_seen(sweeper, &status) : 0;
	if (row && row->class == SWEEP_GIT && sweep_is_link(sweeper, &status))
		return sweep_add_link(sweeper, walk_path(&sweeper->walk, sweeper->walk.name,
							 PATH_LIMIT_BYTES, sweeper->arena));
	return hold(sweeper, sweeper->walk.name, &status, row, reason);
}

/* A directory of which all counts: new as a whole, or looked into. */
static int judge_directory(struct sweeper *sweeper, const struct sweep_name *row,
			   enum sweep_place inside)
{
	struct stat status;

	if (!stat_name(sweeper, &status) || is_covered(sweeper, &status))
		return 0;
	if (!is_in_place(sweeper, &status))
		return hold(sweeper, sweeper->walk.name, &status, row, row->what);
	walk_descend(&sweeper->walk, (unsigned char)inside);
	return note_seen(sweeper, &status);
}

static int hold_new(struct sweeper *sweeper, const struct sweep_name *row)
{
	struct stat status;

	if (!stat_name(sweeper, &status) || is_covered(sweeper, &status))
		return 0;
	return hold(sweeper, sweeper->walk.name, &status, row, row->what);
}

static int judge(struct sweeper *sweeper, const struct sweep_name *row, enum sweep_place inside)
{
	if (place_of(sweeper) == SWEEP_IN_NEW_FORGE && row->places & SWEEP_IN_FORGE)
		return hold_new(sweeper, row);
	return sweeper->walk.type == DT_DIR ? judge_directory(sweeper, row, inside) :
					      judge_plain(sweeper, row, row->what);
}

/* Work, but for some names; of one that came as a whole these are new, whatever their stamps. */
static int judge_forge(struct sweeper *sweeper, const struct sweep_name *row)
{
	struct stat status;

	if (sweeper->walk.type != DT_DIR)
		return judge_plain(sweeper, row, row->what);
	if (!stat_name(sweeper, &status))
		return 0;
	walk_descend(&sweeper->walk, is_in_place(sweeper, &status) ?
					     (unsigned char)SWEEP_IN_FORGE :
					     (unsigned char)SWEEP_IN_NEW_FORGE);
	return note_seen(sweeper, &status);
}

/* What makes a repository of the directory that is being listed. */
static int take_part(struct sweeper *sweeper, const struct sweep_name *row, bool is_exact)
{
	struct stat status;

	if (sweeper->walk.type == DT_DIR)
		walk_descend(&sweeper->walk, SWEEP_IN_TREE);
	/* git reads HEAD; of the others it asks whether they are there */
	if ((row->class == SWEEP_HEAD && sweeper->walk.type == DT_DIR) ||
	    !stat_name(sweeper, &status))
		return 0;
	sweeper->parts |= PART(row->class);
	sweeper->is_inexact |= !is_exact;
	sweeper->is_part_new |= is_new(sweeper, &status);
	return sweeper->mode == SWEEP_SURVEY ? note_seen(sweeper, &status) : 0;
}

static int take_row(struct sweeper *sweeper, const struct sweep_name *row, bool is_exact)
{
	bool is_directory = sweeper->walk.type == DT_DIR;

	switch (row->class) {
	case SWEEP_GIT:
		return judge(sweeper, row, SWEEP_IN_GIT);
	case SWEEP_REPOSITORY:
		return judge(sweeper, row, SWEEP_IN_REPOSITORY);
	case SWEEP_SETTINGS:
	case SWEEP_OBEYED:
		return judge(sweeper, row, SWEEP_IN_SETTINGS);
	case SWEEP_HOOKS:
		return judge(sweeper, row, SWEEP_IN_HOOKS);
	case SWEEP_INFO:
		return judge(sweeper, row, SWEEP_IN_INFO);
	case SWEEP_INNER:
		if (!is_directory)
			return judge_plain(sweeper, row, row->what);
		/* repositories in a git directory are known by what is in them */
		walk_descend(&sweeper->walk, place_of(sweeper) == SWEEP_IN_GIT ?
						     SWEEP_IN_TREE :
						     SWEEP_IN_REPOSITORY);
		return 0;
	case SWEEP_PASSIVE:
		return 0;
	case SWEEP_FORGE:
		return judge_forge(sweeper, row);
	case SWEEP_HEAD:
	case SWEEP_OBJECTS:
	case SWEEP_REFS:
	case SWEEP_COMMONDIR:
		return take_part(sweeper, row, is_exact);
	}
	return 0;
}

/* git's own templates are never run. */
static bool is_sample(const char *name)
{
	size_t length = strlen(name);

	return length > 7 && strcmp(name + length - 7, ".sample") == 0;
}

/* A name that is in no table. */
static int take_other(struct sweeper *sweeper)
{
	enum sweep_place place = place_of(sweeper);
	bool is_directory = sweeper->walk.type == DT_DIR;

	switch (place) {
	case SWEEP_IN_SETTINGS:
		if (!is_directory)
			return judge_plain(sweeper, NULL, "settings");
		break;
	case SWEEP_IN_HOOKS:
		if (!is_directory && !is_sample(sweeper->walk.name))
			return judge_plain(sweeper, NULL, "a git hook");
		break;
	case SWEEP_IN_GIT:
		/* it may be a repository of its own */
	case SWEEP_IN_FORGE:
	case SWEEP_IN_NEW_FORGE:
		place = SWEEP_IN_TREE;
		break;
	case SWEEP_IN_TREE:
		break;
	case SWEEP_IN_INFO:
	case SWEEP_IN_REPOSITORY:
	case SWEEP_IN_ALL:
		return 0;
	}
	if (is_directory)
		walk_descend(&sweeper->walk, (unsigned char)place);
	return 0;
}

static int take_name(struct sweeper *sweeper)
{
	bool is_exact = false;
	const struct sweep_name *row =
		sweep_name_find(place_of(sweeper), sweeper->walk.name, &is_exact);

	return row ? take_row(sweeper, row, is_exact) : take_other(sweeper);
}

/* Directories in which a name is found by another spelling. */
static bool is_folding(int fd)
{
	static const unsigned long folding[] = {
		MSDOS_SUPER_MAGIC,	EXFAT_SUPER_MAGIC, SMB_SUPER_MAGIC,
		CIFS_SUPER_MAGIC,	SMB2_SUPER_MAGIC,  FUSE_SUPER_MAGIC,
		0x7366746e /* ntfs3 */, 0x4244 /* hfs */,  0x482b /* hfsplus */,
	};
	struct statfs status;
	int flags = 0;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL))
		return true;
	if (fstatfs(fd, &status) < 0)
		return true;
	for (size_t i = 0; i < sizeof(folding) / sizeof(folding[0]); i++)
		if ((unsigned long)status.f_type == folding[i])
			return true;
	return false;
}

/* is_git_directory() of git's setup.c, without looking into HEAD. */
static bool is_repository(const struct sweeper *sweeper)
{
	unsigned parts = sweeper->parts, both = PART(SWEEP_OBJECTS) | PART(SWEEP_REFS);

	return sweep_is_tree(place_of(sweeper)) && (parts & PART(SWEEP_HEAD)) &&
	       ((parts & PART(SWEEP_COMMONDIR)) || (parts & both) == both) &&
	       (!sweeper->is_inexact || is_folding(sweeper->walk.fd));
}

static int hold_head(struct sweeper *sweeper)
{
	static const struct sweep_name row = { SWEEP_IN_TREE, "HEAD", SWEEP_HEAD, "" };
	struct stat status;

	if (fstatat(sweeper->walk.fd, row.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return hold(sweeper, row.name, &status, &row, "HEAD of a bare git repository");
}

static struct tree *tree_of(const struct sweeper *sweeper)
{
	return sweeper->order ? sweeper->order->tree : NULL;
}

/* All names of the directory are known. One that is a repository is new, or there before. */
static int end_listing(struct sweeper *sweeper)
{
	struct stat status;

	if (!sweeper->parts || !is_repository(sweeper) || fstat(sweeper->walk.fd, &status) < 0)
		return 0;
	if (is_covered(sweeper, &status)) {
		walk_skip(&sweeper->walk);
		return 0;
	}
	if (sweeper->is_part_new && !known_of(sweeper, &status))
		return hold_head(sweeper);
	walk_again(&sweeper->walk, SWEEP_IN_GIT);
	if (tree_of(sweeper))
		tree_look_again(tree_of(sweeper));
	return note_seen(sweeper, &status);
}

static int step(struct sweeper *sweeper, enum walk_event event)
{
	struct tree *tree = tree_of(sweeper);
	int result;

	switch (event) {
	case WALK_ENTER:
		if (tree)
			tree_look_enter(tree, &sweeper->walk);
		sweeper->parts = 0;
		sweeper->is_inexact = sweeper->is_part_new = false;
		return 0;
	case WALK_NAME:
		result = take_name(sweeper);
		if (tree && result == 0)
			tree_look_name(tree, &sweeper->walk);
		return result;
	case WALK_LISTED:
		return end_listing(sweeper);
	case WALK_LEAVE:
	case WALK_END:
		break;
	}
	return 0;
}

static const char *unfinished(const struct sweeper *sweeper)
{
	const struct walk *walk = &sweeper->walk;

	switch (walk->code) {
	case 0:
		return walk->unread ? "a directory in it could not be read" : NULL;
	case -E2BIG:
		return walk->names > walk->limit_names ? "it has more names than are looked at" :
							 "it is deeper than what is looked at";
	case -ESTALE:
		return "directories in it were moved while it was looked at";
	default:
		return error_text(walk->code);
	}
}

int sweep_look(struct sweeper *sweeper, int fd)
{
	struct walk *walk = &sweeper->walk;
	enum walk_event event;
	int result = 0;

	walk_begin(walk, fd, SWEEP_IN_TREE);
	if (tree_of(sweeper))
		tree_look_begin(tree_of(sweeper));
	if (sweeper->order && sweeper->order->limit_names)
		walk->limit_names = sweeper->order->limit_names;
	/* a duplicate goes on where the other stopped */
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	while (result == 0 && (event = walk_next(walk)) != WALK_END)
		result = step(sweeper, event);
	sweeper->result.names += walk->names;
	sweeper->result.directories += walk->directories;
	if (result == 0)
		sweeper->result.unfinished = unfinished(sweeper);
	if (tree_of(sweeper))
		tree_look_end(tree_of(sweeper), result == 0 && walk->code == 0);
	walk_end(walk);
	return result;
}
