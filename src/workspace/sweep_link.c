#include "workspace/sweep_link.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include "workspace/git_look.h"
#include "workspace/sweep_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#define NAME ".git"
#define WORD "gitdir: "
/* The word, a path and the line's end. */
#define TEXT_BYTES (sizeof(WORD) + PATH_LIMIT_BYTES)

/* A component of the path, which lies below a git directory. */
static bool has_component(const char *path, const char *name)
{
	size_t length = strlen(name);

	while (*path) {
		size_t part = strcspn(path, "/");

		if (part == length && strncmp(path, name, length) == 0)
			return true;
		path += part;
		path += *path == '/';
	}
	return false;
}

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Where all that the host has is the host's own or was looked through. */
static bool is_in_overlay(const struct sweep_order *order, const char *path)
{
	for (size_t i = 0; i < order->git_count; i++) {
		const char *below;

		if (!path_is_under(path, order->gits[i]))
			continue;
		below = path_below(path, order->gits[i]);
		if ((begins(below, "worktrees/") || begins(below, "modules/")) &&
		    !has_component(below, "objects"))
			return true;
	}
	return false;
}

/*
 * A path as git writes it: absolute, or up by ".." and then down. Folded as text, which is right
 * because the directory is real and nothing goes up after a name.
 */
static char *resolve(const char *directory, const char *text, struct arena *arena)
{
	char *base = arena_copy(arena, directory);

	while (base && begins(text, "../")) {
		base = path_parent(arena, base);
		text += 3;
	}
	return base ? path_clean(arena, base, text) : NULL;
}

/* What a git file in a directory (its path given) leads to; NULL where it is no plain one. */
static char *read_target(int fd, const char *directory, struct arena *arena)
{
	char text[TEXT_BYTES];

	return git_look_read(fd, NAME, text, sizeof(text)) == 0 && begins(text, WORD) ?
		       resolve(directory, text + strlen(WORD), arena) :
		       NULL;
}

static char *place_of(const struct sweep_order *order, const char *below, struct arena *arena)
{
	return below[0] ? arena_format(arena, "%s/%s", order->workspace, below) :
			  arena_copy(arena, order->workspace);
}

bool sweep_is_link(const struct sweeper *sweeper, const struct stat *status)
{
	const struct walk *walk = &sweeper->walk;
	const struct sweep_order *order = sweeper->order;
	const char *below, *directory, *target;

	/* what is beyond is held: a task that leaves so many has no worktrees in mind */
	if (!order->git_count || !S_ISREG(status->st_mode) || strcmp(walk->name, NAME) != 0 ||
	    sweeper->result.link_count == SWEEP_LIMIT_LINKS ||
	    sweeper->arena->used_bytes > ARENA_LIMIT_BYTES / 2)
		return false;
	below = walk_path(walk, "", PATH_LIMIT_BYTES, sweeper->arena);
	directory = below ? place_of(order, below, sweeper->arena) : NULL;
	target = directory ? read_target(walk->fd, directory, sweeper->arena) : NULL;
	return target && is_in_overlay(order, target);
}

int sweep_add_link(struct sweeper *sweeper, const char *path)
{
	struct sweep_result *result = &sweeper->result;
	struct sweep_link *links = path ? arena_push(sweeper->arena, result->links,
						     result->link_count, sizeof(*links)) :
					  NULL;

	if (!links)
		return -ENOMEM;
	result->links = links;
	links[result->link_count++] = (struct sweep_link){ .path = path };
	return 0;
}

/* --- deciding */

/* The git directory at the target says that its work tree is the place. */
static bool names_place(struct git_look *look, const char *target, int fd, const char *place)
{
	const char *parent = path_parent(look->arena, target), *tree = NULL;
	char text[TEXT_BYTES];

	if (parent && strcmp(path_name(parent), "worktrees") == 0)
		return git_look_read(fd, "gitdir", text, sizeof(text)) == 0 &&
		       begins(text, place) && strcmp(text + strlen(place), "/" NAME) == 0;
	return git_look_worktree(look, target, &tree) == 0 && tree && strcmp(tree, place) == 0;
}

/* Its configuration and hooks, or those that it has in common with others. */
static char *configuration_of(const char *target, struct arena *arena)
{
	char *parent = path_parent(arena, target);

	return parent && strcmp(path_name(parent), "worktrees") == 0 ? path_parent(arena, parent) :
								       arena_copy(arena, target);
}

/* Nothing in the place is run or read by git, as it is configured there. */
static bool is_quiet(struct git_look *look, const char *target, const char *place)
{
	const char *path = configuration_of(target, look->arena);
	int CLEANUP_FD fd = path ? fd_open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY,
						    RESOLVE_NO_SYMLINKS) :
				   -ENOMEM;
	const struct view *view = &look->policy->view;

	if (fd < 0 || git_look_directory(look, path, fd, place) < 0 ||
	    git_look_callers(look, place) < 0)
		return false;
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_PROTECT &&
		    path_is_under(view->paths[i].target, place))
			return false;
	return true;
}

static bool is_good(const struct sweep_order *order, const char *target, int target_fd,
		    const char *place, struct arena *arena)
{
	struct error ignored = ERROR_NONE;
	struct policy policy = { .workspace = order->workspace };
	struct git_look look = {
		.host = order->host, .arena = arena, .policy = &policy, .error = &ignored
	};
	const struct view_path row = { .class = PATH_WRITE,
				       .kind = PATH_KIND_DIRECTORY,
				       .source = order->workspace,
				       .target = order->workspace };

	return order->host && view_add(&policy.view, arena, row) &&
	       names_place(&look, target, target_fd, place) && is_quiet(&look, target, place);
}

enum answer { STAYS, IS_HELD, WAITS };

static enum answer judge(const struct sweep_order *order, int fd, const char *below,
			 enum sweep_settling settling, struct arena *arena)
{
	const char *place = place_of(order, below, arena);
	const char *target = place ? read_target(fd, place, arena) : NULL;
	int CLEANUP_FD target_fd = -1;

	if (!target || !is_in_overlay(order, target))
		return IS_HELD;
	target_fd = fd_open_resolved(AT_FDCWD, target, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (target_fd == -ENOENT && settling == SWEEP_WAITING)
		return WAITS;
	return target_fd >= 0 && is_good(order, target, target_fd, place, arena) ? STAYS : IS_HELD;
}

static int settle_one(struct sweeper *sweeper, const struct sweep_link *link,
		      enum sweep_settling settling)
{
	size_t length = strlen(link->path) - strlen(NAME);
	char *below = arena_copy_bytes(sweeper->arena, link->path, length ? length - 1 : 0);
	int CLEANUP_FD fd = below ? fd_open_beneath(sweeper->sweep->root_fd, below[0] ? below : ".",
						    O_RDONLY | O_DIRECTORY) :
				    -ENOMEM;
	struct sweep_spot spot = { .fd = fd,
				   .name = NAME,
				   .path = link->path,
				   .reason = "a git repository",
				   .is_git = true };
	enum answer answer;

	if (!below)
		return -ENOMEM;
	/* it went meanwhile */
	if (fd < 0 || fstatat(fd, NAME, &spot.status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	answer = judge(sweeper->order, fd, below, settling, sweeper->arena);
	return answer == IS_HELD ? sweep_hold(sweeper, &spot) :
	       answer == WAITS	 ? sweep_add_link(sweeper, link->path) :
				   0;
}

int sweep_settle(const struct sweep_order *order, const struct sweep_link *links, size_t count,
		 enum sweep_settling settling, struct arena *arena, struct sweep_result *ret_result,
		 struct error *error)
{
	struct sweeper sweeper = { .order = order,
				   .sweep = order->sweep,
				   .arena = arena,
				   .error = error,
				   .store_fd = -1,
				   .walk = { .fd = -1 } };
	int result = 0;

	for (size_t i = 0; i < count && result == 0; i++)
		result = settle_one(&sweeper, &links[i], settling);
	fd_close(&sweeper.store_fd);
	if (result < 0)
		return error_errno(error, result, "looking at git files in %s", order->workspace);
	*ret_result = sweeper.result;
	return 0;
}
