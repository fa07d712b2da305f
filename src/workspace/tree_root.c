#include "workspace/tree_root.h"

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/sweep_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the beginning ---- */

static int open_it(struct tree_root *root, const struct sweep_known *identity, struct arena *arena)
{
	struct stat status;
	int fd;

	if (root->parent)
		root->parent = path_parent(arena, root->path);
	if (arena_failed(arena))
		return -ENOMEM;
	fd = fd_open_resolved(AT_FDCWD, root->parent ? root->parent : root->path,
			      O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return fd;
	root->fd = fd;
	if (fstatat(fd, root->parent ? path_name(root->path) : "", &status,
		    AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return -errno;
	return status.st_dev == identity->device && status.st_ino == identity->inode ? 0 : -ESTALE;
}

int tree_root_begin(struct tree_root *root, const struct tree_place *place,
		    const struct sweep_known *identity, bool is_file, struct arena *arena)
{
	struct tree_place own = *place;
	int result;

	if (root->fd < 0) {
		root->path = place->workspace;
		root->parent = is_file ? "" : NULL;
		result = open_it(root, identity, arena);
		if (result < 0) {
			fd_close(&root->fd);
			return result;
		}
	}
	own.root_fd = root->fd;
	own.kept = root->path;
	own.workspace = root->parent ? root->parent : root->path;
	own.is_stamped = sweep_clock_of(root->fd) == SWEEP_CLOCK_KERNEL;
	root->wall_offset_ns = sweep_wall_offset().most_ns;
	root->begin_ns = sweep_stamp_now_ns();
	/* of a file there is one name to look at, and the host's picture is as good */
	tree_begin(&root->tree, &own, root->begin_ns,
		   root->parent ? TREE_BEGIN_BARE : TREE_BEGIN_SURVEY);
	if (root->parent)
		tree_begin_name(&root->tree, path_name(root->path));
	return 0;
}

/* ---- the look ---- */

static bool is_covered(const struct tree_root *root, const struct walk *walk)
{
	const struct tree_place *place = &root->tree.place;
	struct stat status;

	return fstatat(walk->fd, walk->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	       sweep_find(place->covered, place->covered_count, &status);
}

static void walk_all(struct tree_root *root, uint64_t deadline_ns)
{
	struct tree *tree = &root->tree;
	struct walk CLEANUP_WALK walk;
	enum walk_event event = WALK_ENTER;
	int fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);

	/* a duplicate goes on where the other stopped */
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	walk_begin(&walk, fd, 0);
	walk.leaves_modes = true;
	tree_look_begin_until(tree, deadline_ns);
	while (!tree->now.code && (event = walk_next(&walk)) != WALK_END) {
		if (event == WALK_ENTER)
			tree_look_enter(tree, &walk);
		if (event != WALK_NAME)
			continue;
		tree_look_name(tree, &walk);
		if (walk.type == DT_DIR && !is_covered(root, &walk))
			walk_descend(&walk, 0);
	}
	tree_look_end(tree, event == WALK_END && walk.code == 0);
	tree->has_skipped |= walk.unread;
}

int tree_root_look(struct tree_root *root, uint64_t deadline_ns, struct arena *arena,
		   struct tree_list *ret_list)
{
	struct tree *tree = &root->tree;
	int64_t back_ns = root->wall_offset_ns - sweep_wall_offset().least_ns;
	int64_t next_ns = sweep_stamp_now_ns();
	int result;

	tree_stop(tree);
	/* a wall clock that was set back has stamped what is new with times from before */
	tree->since_ns = root->begin_ns - (back_ns > 0 ? back_ns : 0);
	if (root->parent)
		tree_look_one(tree, path_name(root->path));
	else
		walk_all(root, deadline_ns);
	result = tree_tell(tree, arena, ret_list);
	root->begin_ns = tree->since_ns = next_ns;
	root->wall_offset_ns = sweep_wall_offset().most_ns;
	return result;
}

void tree_root_end(struct tree_root *root)
{
	tree_end(&root->tree);
	fd_close(&root->fd);
	*root = TREE_ROOT_NONE;
}
