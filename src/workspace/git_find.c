#include "workspace/git_find.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "plan/plan.h"
#include "policy/danger.h"
#include "policy/policy.h"
#include "workspace/git_look.h"
#include "workspace/git_way.h"
#include "workspace/host.h"
#include "workspace/root.h"
#include "workspace/sweep_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "gitdir: " and a path. */
#define GITFILE_BYTES (PATH_LIMIT_BYTES + 16)

struct finder {
	struct git_look look;
	const char *state_path;
	struct git_found found;
	unsigned layers;
	uint32_t overlay_rule, objects_rule;
};

/* A worktree, and how a fault of its git directory is taken. */
struct place {
	const char *path;
	const char *git; /* its .git */
	bool is_top;	 /* a fault ends the start; below, git alone finds nothing there */
};

static int no_memory(const struct finder *finder)
{
	return error_errno(finder->look.error, ENOMEM, "looking for git directories");
}

static bool is_inside(const struct finder *finder, const char *path)
{
	return path_is_under(path, finder->look.policy->workspace);
}

static bool is_kind(int fd, const char *name, mode_t kind)
{
	struct stat status;

	return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (status.st_mode & S_IFMT) == kind;
}

/* HEAD may be a link (git-symbolic-ref(1)); a linked worktree has its objects elsewhere. */
static bool is_repository(int fd)
{
	return (is_kind(fd, "HEAD", S_IFREG) || is_kind(fd, "HEAD", S_IFLNK)) &&
	       is_kind(fd, "objects", S_IFDIR) && is_kind(fd, "refs", S_IFDIR);
}

static int open_directory(const char *path)
{
	return fd_open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

static bool is_read_only(const struct finder *finder)
{
	return finder->look.policy->flags & POLICY_READ_ONLY;
}

/* Options have spoken of it: hidden, protected, in a read-only tree, or written in place. */
static bool is_decided(const struct finder *finder, const char *path)
{
	const struct policy *policy = finder->look.policy;
	const struct view_path *row = view_lookup(&policy->view, path);

	if (!row)
		return false;
	switch (row->class) {
	case PATH_WRITE:
		return strcmp(row->target, path) == 0 && strcmp(path, policy->workspace) != 0;
	case PATH_READ:
		return is_inside(finder, row->target) &&
		       !(is_read_only(finder) && strcmp(row->target, policy->workspace) == 0);
	case PATH_GIT:
	case PATH_CACHE:
	case PATH_STAGE:
		return false;
	default:
		return true;
	}
}

static int add_row(struct finder *finder, struct view_path row)
{
	row.source = row.target;
	if (view_add(&finder->look.policy->view, finder->look.arena, row))
		return 0;
	return error_set(finder->look.error, E2BIG, "more than %u paths to show", VIEW_LIMIT_PATHS);
}

/* --- what is found */

static const struct git_directory *find_item(const struct finder *finder, const char *path)
{
	for (size_t i = 0; i < finder->found.count; i++)
		if (strcmp(finder->found.items[i].path, path) == 0)
			return &finder->found.items[i];
	return NULL;
}

static int add_item(struct finder *finder, struct git_directory item)
{
	struct git_directory *items;

	if (find_item(finder, item.path))
		return 0;
	if (finder->found.count == GIT_FIND_LIMIT)
		return error_set(finder->look.error, E2BIG,
				 "the workspace's repositories have more than %u modules and "
				 "worktrees; --protect %s/.git goes on without git",
				 GIT_FIND_LIMIT, finder->look.policy->workspace);
	items = arena_push(finder->look.arena, finder->found.items, finder->found.count,
			   sizeof(*items));
	if (!items)
		return no_memory(finder);
	finder->found.items = items;
	items[finder->found.count++] = item;
	return 0;
}

/* Of a read-only workspace: the option's. */
static uint32_t workspace_rule(const struct finder *finder)
{
	const struct policy *policy = finder->look.policy;
	const struct view_path *row = view_lookup(&policy->view, policy->workspace);

	return row ? row->rule : finder->overlay_rule;
}

/* An overlay of its own. */
static int add_root(struct finder *finder, const char *path, const struct stat *status,
		    enum git_directory_kind kind, const char *worktree)
{
	struct git_directory item = { .path = path,
				      .common = path,
				      .kind = kind,
				      .device = status->st_dev,
				      .inode = status->st_ino,
				      .layer = finder->layers,
				      .below = "",
				      .worktree = worktree };
	const struct view_path *row = view_lookup(&finder->look.policy->view, path);
	int result;

	/* a module's own checkout leads there too */
	if (find_item(finder, path) || (row && row->class == PATH_GIT))
		return 0;
	/* what is not written needs no layer, and its objects no place of their own */
	if (is_read_only(finder))
		return add_row(finder, (struct view_path){ .class = PATH_READ,
							   .kind = PATH_KIND_DIRECTORY,
							   .target = path,
							   .device = status->st_dev,
							   .inode = status->st_ino,
							   .rule = workspace_rule(finder) });
	result = add_item(finder, item);
	if (result < 0)
		return result;
	finder->layers++;
	return add_row(finder, (struct view_path){ .class = PATH_GIT,
						   .kind = PATH_KIND_DIRECTORY,
						   .target = path,
						   .device = status->st_dev,
						   .inode = status->st_ino,
						   .rule = finder->overlay_rule });
}

/* One that lies in another: it has the same overlay. */
static int add_inner(struct finder *finder, const struct git_directory *outer, const char *below,
		     const struct stat *status, enum git_directory_kind kind)
{
	struct arena *arena = finder->look.arena;
	struct git_directory item = *outer;

	item.kind = kind;
	item.device = status->st_dev;
	item.inode = status->st_ino;
	item.worktree = NULL;
	item.path = arena_format(arena, "%s/%s", outer->path, below);
	item.below = arena_format(arena, "%s%s%s", outer->below, outer->below[0] ? "/" : "", below);
	item.common = kind == GIT_DIRECTORY_WORKTREE ? outer->path : item.path;
	return item.path && item.below ? add_item(finder, item) : no_memory(finder);
}

/* The store of objects, whose large packs are bound. */
static int add_objects(struct finder *finder, const struct git_directory *item, int fd)
{
	const char *path = arena_format(finder->look.arena, "%s/objects", item->path);
	const struct view_path *row = path ? view_lookup(&finder->look.policy->view, path) : NULL;
	struct stat status;

	if (!path)
		return no_memory(finder);
	if (fstatat(fd, "objects", &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode) ||
	    !row || row->class != PATH_GIT)
		return 0;
	return add_row(finder, (struct view_path){ .class = PATH_OBJECTS,
						   .kind = PATH_KIND_DIRECTORY,
						   .target = path,
						   .device = status.st_dev,
						   .inode = status.st_ino,
						   .rule = finder->objects_rule });
}

/* --- what lies in a git directory */

/* Directories below modules/ that are no modules themselves: "a" where there is a module "a/b". */
struct modules {
	const char **pending;
	size_t count;
};

static int push(struct finder *finder, struct modules *modules, const char *below)
{
	const char **pending =
		arena_push(finder->look.arena, modules->pending, modules->count, sizeof(*pending));

	if (!pending || !below)
		return no_memory(finder);
	if (modules->count == GIT_FIND_LIMIT)
		return error_set(finder->look.error, E2BIG,
				 "a repository has more than %u directories of modules",
				 GIT_FIND_LIMIT);
	modules->pending = pending;
	pending[modules->count++] = below;
	return 0;
}

static int add_module(struct finder *finder, size_t outer, struct modules *modules, int fd,
		      const char *below)
{
	int CLEANUP_FD module = -1;
	struct stat status;

	if (!below)
		return no_memory(finder);
	module = fd_open_beneath(fd, below, O_PATH | O_DIRECTORY);
	if (module < 0 || fstat(module, &status) < 0)
		return 0;
	if (is_kind(module, "HEAD", S_IFREG) || is_kind(module, "HEAD", S_IFLNK))
		return add_inner(finder, &finder->found.items[outer], below, &status,
				 GIT_DIRECTORY_MODULE);
	return path_depth(below) < GIT_FIND_LIMIT_DEPTH ? push(finder, modules, below) : 0;
}

/* fd is that of the git directory; items move while their list grows. */
static int add_modules(struct finder *finder, size_t outer, int fd)
{
	struct modules modules = { 0 };
	int result = push(finder, &modules, "modules");

	for (size_t i = 0; i < modules.count && result == 0; i++) {
		struct directory CLEANUP_DIRECTORY directory;
		const char *name;

		directory_begin(&directory,
				fd_open_beneath(fd, modules.pending[i], O_RDONLY | O_DIRECTORY));
		while (result == 0 && (name = directory_next(&directory)))
			if (directory.type == DT_DIR || directory.type == DT_UNKNOWN)
				result = add_module(finder, outer, &modules, fd,
						    arena_format(finder->look.arena, "%s/%s",
								 modules.pending[i], name));
	}
	return result;
}

static int add_worktrees(struct finder *finder, size_t outer, int fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0;

	directory_begin(&directory, fd_open_beneath(fd, "worktrees", O_RDONLY | O_DIRECTORY));
	while (result == 0 && (name = directory_next(&directory))) {
		const char *below = arena_format(finder->look.arena, "worktrees/%s", name);
		struct stat status;

		if (!below)
			return no_memory(finder);
		if (fstatat(directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(status.st_mode))
			result = add_inner(finder, &finder->found.items[outer], below, &status,
					   GIT_DIRECTORY_WORKTREE);
	}
	return result;
}

/* The file `gitdir` of a linked worktree names the `.git` there; a module has core.worktree. */
static int find_worktree(struct finder *finder, struct git_directory *item, int fd)
{
	struct arena *arena = finder->look.arena;
	char text[PATH_LIMIT_BYTES];
	struct git_way way;
	struct stat status;

	if (item->kind == GIT_DIRECTORY_MODULE)
		return git_look_worktree(&finder->look, item->path, &item->worktree);
	if (item->kind != GIT_DIRECTORY_WORKTREE ||
	    git_look_read(fd, "gitdir", text, sizeof(text)) < 0 ||
	    git_way_find(arena, item->path, text, &way, &status) < 0)
		return arena_failed(arena) ? no_memory(finder) : 0;
	item->worktree = path_parent(arena, way.real);
	return item->worktree ? 0 : no_memory(finder);
}

/* What leads from a checkout in the workspace to this git directory is not to lead elsewhere. */
static int protect_gitfile(struct finder *finder, const struct git_directory *item)
{
	const char *path;
	struct stat status;

	if (!item->worktree || !is_inside(finder, item->worktree))
		return 0;
	path = arena_format(finder->look.arena, "%s/.git", item->worktree);
	if (!path)
		return no_memory(finder);
	if (lstat(path, &status) < 0 || S_ISDIR(status.st_mode))
		return 0;
	return git_look_protect(&finder->look, path, &status);
}

static int look_into(struct finder *finder, size_t index)
{
	struct git_directory *item = &finder->found.items[index];
	int CLEANUP_FD fd = open_directory(item->path);
	int result;

	if (fd < 0)
		return error_errno(finder->look.error, fd, "the git directory %s", item->path);
	result = find_worktree(finder, item, fd);
	if (result == 0)
		result = protect_gitfile(finder, item);
	if (result == 0)
		result = git_look_directory(&finder->look, item->path, fd,
					    item->worktree ? item->worktree :
							     finder->look.policy->workspace);
	if (result == 0 && item->kind != GIT_DIRECTORY_WORKTREE)
		result = add_objects(finder, item, fd);
	if (result == 0)
		result = add_modules(finder, index, fd);
	if (result == 0)
		result = add_worktrees(finder, index, fd);
	return result;
}

/* --- where a git directory is */

/* Not the start's to decide: said, with the way out. */
static int refuse(const struct finder *finder, const struct place *place, const char *real,
		  const char *why)
{
	if (!place->is_top)
		return 0;
	return error_set(finder->look.error, EPERM,
			 "%s leads to %s, and %s; correct it, or give --protect %s to go on "
			 "without git",
			 place->git, real, why, place->git);
}

/* Why a directory outside of the workspace must not be shown; NULL where it may. */
static const char *fault_outside(const struct finder *finder, const char *path, int fd,
				 const struct stat *status)
{
	const struct caller *host = finder->look.host;
	const char *danger = danger_of_path(path, PATH_WRITE, host->real_home, finder->state_path);

	if (danger)
		return danger;
	if (root_holds_keys(host->real_home, path))
		return "it is where programs keep the caller's keys";
	if (path_is_under(finder->look.policy->workspace, path))
		return "the workspace lies in it";
	if (status->st_uid != host->uid)
		return "it belongs to another user";
	return is_repository(fd) ? NULL : "it is no git directory (HEAD, objects, refs)";
}

/* A git directory that is no linked worktree's. */
static int take_plain(struct finder *finder, const struct place *place, const char *path, int fd,
		      const struct stat *status)
{
	const char *fault = NULL, *back = NULL;
	int result;

	if (is_inside(finder, path))
		fault = path_is_under(place->path, path) ? "the work tree lies in it" :
			is_repository(fd)		 ? NULL :
					    "it is no git directory (HEAD, objects, refs)";
	else if (!place->is_top)
		fault = "it lies outside";
	else
		fault = fault_outside(finder, path, fd, status);
	if (!fault && !is_inside(finder, path) && strcmp(path_name(path), ".git") == 0) {
		result = git_look_worktree(&finder->look, path, &back);
		if (result < 0)
			return result;
		if (!back || strcmp(back, place->path) != 0)
			fault = "it is the git directory of another checkout";
	}
	return fault ? refuse(finder, place, path, fault) :
		       add_root(finder, path, status, GIT_DIRECTORY_MAIN, place->path);
}

/* True where <git directory>/gitdir says that it belongs to this checkout. */
static bool leads_back(const struct finder *finder, const struct place *place, const char *path,
		       int fd)
{
	char text[PATH_LIMIT_BYTES];
	struct git_way way;
	struct stat status;

	return git_look_read(fd, "gitdir", text, sizeof(text)) == 0 &&
	       git_way_find(finder->look.arena, path, text, &way, &status) == 0 &&
	       strcmp(way.real, place->git) == 0;
}

/* The one place where git puts them: <common>/worktrees/<name>. */
static const char *common_of(const struct finder *finder, const char *path, const char *text)
{
	const char *above = path_parent(finder->look.arena, path);
	struct git_way way;
	struct stat status;

	if (!above || strcmp(path_name(above), "worktrees") != 0 ||
	    git_way_find(finder->look.arena, path, text, &way, &status) < 0 || way.link_count)
		return NULL;
	above = path_parent(finder->look.arena, above);
	return above && strcmp(above, way.real) == 0 ? above : NULL;
}

static int take_linked(struct finder *finder, const struct place *place, const char *path, int fd,
		       const char *text)
{
	const char *common = common_of(finder, path, text), *fault = NULL;
	int CLEANUP_FD common_fd = common ? open_directory(common) : -1;
	struct stat status;

	if (common_fd < 0 || fstat(common_fd, &status) < 0)
		return refuse(finder, place, path, "its commondir leads elsewhere than git's own");
	if (!leads_back(finder, place, path, fd))
		fault = "it belongs to another worktree";
	else if (!is_inside(finder, common))
		fault = place->is_top ? fault_outside(finder, common, common_fd, &status) :
					"it lies outside";
	return fault ? refuse(finder, place, path, fault) :
		       add_root(finder, common, &status, GIT_DIRECTORY_COMMON, NULL);
}

static int take_directory(struct finder *finder, const struct place *place, const char *path)
{
	int CLEANUP_FD fd = open_directory(path);
	char text[PATH_LIMIT_BYTES];
	struct stat status;
	int result;

	if (fd < 0 || fstat(fd, &status) < 0)
		return refuse(finder, place, path, "it cannot be opened");
	if (is_decided(finder, path))
		return 0;
	result = git_look_read(fd, "commondir", text, sizeof(text));
	if (result == 0)
		return take_linked(finder, place, path, fd, text);
	if (result != -ENOENT)
		return refuse(finder, place, path, "its commondir cannot be read");
	return take_plain(finder, place, path, fd, &status);
}

/* The path as it was written must lead there inside, too. */
static int add_written(struct finder *finder, const char *text, const char *real)
{
	const char *clean = path_is_absolute(text) ? path_clean(finder->look.arena, "/", text) :
						     NULL;

	if (!clean || strcmp(clean, real) == 0 || is_inside(finder, clean) ||
	    view_lookup(&finder->look.policy->view, clean))
		return 0;
	return view_add(&finder->look.policy->view, finder->look.arena,
			(struct view_path){ .class = PATH_LINK,
					    .kind = PATH_KIND_FILE,
					    .source = real,
					    .target = clean,
					    .rule = finder->overlay_rule }) ?
		       0 :
		       no_memory(finder);
}

/* A git file or a link: where the text leads, no further git file behind it. */
static int follow(struct finder *finder, const struct place *place, const char *text)
{
	struct git_way way;
	struct stat status;
	int found = git_way_find(finder->look.arena, place->path, text, &way, &status);
	int result = 0;

	if (found == -ENOMEM)
		return no_memory(finder);
	for (size_t i = 0; i < way.link_count && result == 0; i++) {
		struct stat link;

		if (lstat(way.links[i], &link) == 0)
			result = git_look_protect(&finder->look, way.links[i], &link);
	}
	if (result < 0)
		return result;
	/* git finds nothing there and says so; something may appear */
	if (found == -ENOENT && way.real)
		return git_look_target(&finder->look, place->path, text);
	if (found < 0 || !S_ISDIR(status.st_mode))
		return refuse(finder, place, text,
			      found < 0 ? "it cannot be followed" : "it is no directory");
	result = add_written(finder, text, way.real);
	return result < 0 ? result : take_directory(finder, place, way.real);
}

static int take_gitfile(struct finder *finder, const struct place *place, int fd)
{
	static const char word[] = "gitdir: ";
	char text[GITFILE_BYTES];

	if (git_look_read(fd, ".git", text, sizeof(text)) < 0 ||
	    strncmp(text, word, sizeof(word) - 1) != 0)
		return refuse(finder, place, place->git,
			      "it is neither a git directory nor a git "
			      "file");
	return follow(finder, place, text + sizeof(word) - 1);
}

/* The link itself is protected as one that lies on the way. */
static int take_link(struct finder *finder, const struct place *place)
{
	return follow(finder, place, place->git);
}

/* A directory `.git` of the workspace's is covered whatever is in it: a task could complete it. */
static int take_own(struct finder *finder, const struct place *place, int fd)
{
	struct stat status;

	if (fstatat(fd, ".git", &status, AT_SYMLINK_NOFOLLOW) < 0)
		return is_repository(fd) && fstat(fd, &status) == 0 &&
				       !is_decided(finder, place->path) ?
			       add_root(finder, place->path, &status, GIT_DIRECTORY_MAIN, NULL) :
			       0;
	if (is_decided(finder, place->git))
		return 0;
	if (S_ISDIR(status.st_mode))
		return add_root(finder, place->git, &status, GIT_DIRECTORY_MAIN, place->path);
	if (S_ISLNK(status.st_mode))
		return take_link(finder, place);
	if (!S_ISREG(status.st_mode))
		return 0;
	if (git_look_protect(&finder->look, place->git, &status) < 0)
		return finder->look.error->code;
	return take_gitfile(finder, place, fd);
}

static int take_place(struct finder *finder, const char *path, int fd, bool is_top)
{
	struct place place = { .path = path,
			       .git = arena_format(finder->look.arena, "%s/.git", path),
			       .is_top = is_top };

	return place.git ? take_own(finder, &place, fd) : no_memory(finder);
}

/* Most directories have neither: two look-ups tell. */
static bool may_be_one(int fd, const char *name)
{
	char path[NAME_MAX + sizeof("/HEAD")];
	size_t length = strlen(name);

	memcpy(path, name, length);
	memcpy(path + length, "/.git", sizeof("/.git"));
	if (faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	memcpy(path + length, "/HEAD", sizeof("/HEAD"));
	return faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Its content is run or obeyed by an editor or an agent that is started in the workspace. */
static bool is_settings(const struct sweep_name *row)
{
	/* husky's is read-only where git is configured to run it (git_look_callers()) */
	return row && row->class == SWEEP_SETTINGS && strcmp(row->name, ".husky") != 0;
}

static int protect_settings(struct finder *finder, int fd, const char *name)
{
	struct stat status;
	const char *path;

	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* the link stays, and so does what it leads to */
	if (S_ISLNK(status.st_mode))
		return git_look_way(&finder->look, finder->look.policy->workspace, name);
	if (!S_ISDIR(status.st_mode))
		return 0;
	path = arena_format(finder->look.arena, "%s/%s", finder->look.policy->workspace, name);
	return path ? git_look_protect(&finder->look, path, &status) : no_memory(finder);
}

/* What counts in the directory of a forge. */
static int protect_in_forge(struct finder *finder, int fd, const char *name)
{
	const char *workspace = finder->look.policy->workspace;
	struct stat status;
	int result = 0;

	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	for (size_t i = 0; result == 0 && sweep_name_row(i); i++) {
		const char *path;

		if (!(sweep_name_row(i)->places & SWEEP_IN_FORGE))
			continue;
		path = arena_format(finder->look.arena, "%s/%s", name, sweep_name_row(i)->name);
		if (!path)
			return no_memory(finder);
		/* a link of the host's stays; what it leads to is kept where it lies */
		result = S_ISLNK(status.st_mode) ? git_look_way(&finder->look, workspace, path) :
						   protect_settings(finder, fd, path);
	}
	return result;
}

static int protect_named(struct finder *finder, int fd, const char *name,
			 const struct sweep_name *row)
{
	if (is_settings(row))
		return protect_settings(finder, fd, name);
	return row && row->class == SWEEP_FORGE ? protect_in_forge(finder, fd, name) : 0;
}

static int take_repository(struct finder *finder, int fd, const char *name)
{
	const char *path =
		arena_format(finder->look.arena, "%s/%s", finder->look.policy->workspace, name);
	int CLEANUP_FD below = -1;

	if (!path)
		return no_memory(finder);
	below = fd_open_beneath(fd, name, O_PATH | O_DIRECTORY);
	return below < 0 ? 0 : take_place(finder, path, below, false);
}

/* A directory right below, or a link to one: a repository, settings, or both. */
static int take_name(struct finder *finder, int fd, const char *name, int type)
{
	bool is_exact;
	int result = type != DT_LNK && may_be_one(fd, name) ? take_repository(finder, fd, name) : 0;

	if (result == 0)
		result = protect_named(finder, fd, name,
				       sweep_name_find(SWEEP_IN_TREE, name, &is_exact));
	return result;
}

static int take_below(struct finder *finder, int fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name = "";
	unsigned count = 0;
	int result = 0;

	(void)directory_open(&directory, fd, ".", 0);
	while (result == 0 && count++ < GIT_FIND_LIMIT_ENTRIES &&
	       (name = directory_next(&directory)))
		if ((directory.type == DT_DIR || directory.type == DT_LNK ||
		     directory.type == DT_UNKNOWN) &&
		    strcmp(name, ".git") != 0)
			result = take_name(finder, fd, name, directory.type);
	/* those whose name says it are found among any number */
	for (size_t i = 0; name && result == 0 && sweep_name_row(i); i++)
		if (sweep_name_row(i)->places & SWEEP_IN_TREE)
			result = protect_named(finder, fd, sweep_name_row(i)->name,
					       sweep_name_row(i));
	return result;
}

int git_find(const struct caller *host, const char *state_path, struct arena *arena,
	     struct policy *policy, struct git_found *ret_found, struct error *error)
{
	struct finder finder = {
		.look = { .host = host, .arena = arena, .policy = policy, .error = error },
		.state_path = state_path
	};
	int CLEANUP_FD fd = open_directory(policy->workspace);
	int result;

	if (fd < 0)
		return error_errno(error, fd, "the workspace %s", policy->workspace);
	finder.overlay_rule = policy_rule(policy, arena, rule_builtin(RULE_GIT_OVERLAY));
	finder.objects_rule = policy_rule(policy, arena, rule_builtin(RULE_GIT_OBJECTS));
	finder.look.rule = policy_rule(policy, arena, rule_builtin(RULE_WORKSPACE_PROTECT));
	result = take_place(&finder, policy->workspace, fd, true);
	if (result == 0)
		result = take_below(&finder, fd);
	/* the list grows meanwhile */
	for (size_t i = 0; i < finder.found.count && result == 0; i++)
		result = look_into(&finder, i);
	if (result == 0 && finder.found.count)
		result = git_look_callers(&finder.look, policy->workspace);
	if (result < 0)
		return result;
	finder.found.absent = finder.look.absent;
	finder.found.absent_count = finder.look.absent_count;
	*ret_found = finder.found;
	return 0;
}

const char *git_find_upper(const struct git_directory *directory, const char *task_directory,
			   struct arena *arena)
{
	return arena_format(arena, "%s/" PLAN_GIT_LAYERS "/%u/upper%s%s", task_directory,
			    directory->layer, directory->below[0] ? "/" : "", directory->below);
}
