#include "workspace/git_look.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include "workspace/git_config_read.h"
#include "workspace/git_way.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What git obeys in a directory of its own, besides the hooks. */
static const char *const obeyed[] = {
	"config",      "config.worktree", "commondir", "gitdir",	  "HEAD",
	"packed-refs", "index",		  "shallow",   "info/attributes", "info/grafts"
};

/* Configuration that is to be read. */
struct source {
	const char *path;
	const char *from; /* the directory that its includes are relative to */
};

struct reading {
	struct git_look *look;
	const char *worktree;
	struct source sources[GIT_LOOK_LIMIT_INCLUDES];
	size_t count;
};

static int no_memory(const struct git_look *look)
{
	return error_errno(look->error, ENOMEM, "looking for git directories");
}

static int check_links(const struct git_look *look, const char *path, const struct stat *status)
{
	if (!S_ISREG(status->st_mode) || status->st_nlink < 2)
		return 0;
	return error_set(
		look->error, EMLINK,
		"%s has %lu hard links: git obeys it, and a task could change it by another "
		"name; replace it by a copy of its own",
		path, (unsigned long)status->st_nlink);
}

/* Something that git would run or obey, which nothing covers. */
static int note(struct git_look *look, const char *path)
{
	const char **absent =
		arena_push(look->arena, look->absent, look->absent_count, sizeof(*absent));
	if (!absent)
		return no_memory(look);
	look->absent = absent;
	absent[look->absent_count++] = path;
	return 0;
}

int git_look_protect(struct git_look *look, const char *path, const struct stat *status)
{
	struct policy *policy = look->policy;
	const struct view_path *row = view_lookup(&policy->view, path);
	struct view_path protect = {
		.class = PATH_PROTECT,
		.kind = S_ISDIR(status->st_mode) ? PATH_KIND_DIRECTORY :
			S_ISLNK(status->st_mode) ? PATH_KIND_LINK :
						   PATH_KIND_FILE,
		.source = path,
		.target = path,
		.device = status->st_dev,
		.inode = status->st_ino,
		.rule = look->rule,
	};

	/* nothing of a stage is on the host before a person says so, and knows that it is this */
	if (row && row->class == PATH_STAGE)
		return note(look, path);
	/* a row of the same path is an option's word, and the workspace itself stays writable */
	if (!row || row->class != PATH_WRITE || strcmp(row->target, path) == 0 ||
	    strcmp(row->source, row->target) != 0)
		return 0;
	if (check_links(look, path, status) < 0)
		return look->error->code;
	return view_add(&policy->view, look->arena, protect) ?
		       0 :
		       error_set(look->error, E2BIG, "more than %u paths to show",
				 VIEW_LIMIT_PATHS);
}

static int note_absent(struct git_look *look, const char *path)
{
	const struct view_path *row = view_lookup(&look->policy->view, path);
	return row && (row->class == PATH_WRITE || row->class == PATH_STAGE) ? note(look, path) : 0;
}

/* husky(1) has git run what is in `_`, which runs what is in the directory above. */
static int widen(const struct git_look *look, struct git_way *way, struct stat *status)
{
	if (!S_ISDIR(status->st_mode) || strcmp(path_name(way->real), "_") != 0)
		return 0;
	way->real = path_parent(look->arena, way->real);
	if (!way->real)
		return no_memory(look);
	return lstat(way->real, status) < 0 ?
		       error_errno(look->error, errno, "looking at %s", way->real) :
		       0;
}

static int protect_links(struct git_look *look, const struct git_way *way)
{
	struct stat status;
	int result = 0;

	for (size_t i = 0; i < way->link_count && result == 0; i++)
		if (lstat(way->links[i], &status) == 0)
			result = git_look_protect(look, way->links[i], &status);
	return result;
}

/* What the text leads to, and all links on the way. */
static int protect_way(struct git_look *look, const char *from, const char *text,
		       struct git_way *ret_way, struct stat *ret_status)
{
	int found = git_way_find(look->arena, from, text, ret_way, ret_status);
	int result = found == -ENOMEM ? no_memory(look) : protect_links(look, ret_way);

	if (result < 0 || !ret_way->real)
		return result;
	if (found < 0)
		return note_absent(look, ret_way->real);
	result = widen(look, ret_way, ret_status);
	return result < 0 ? result : git_look_protect(look, ret_way->real, ret_status);
}

int git_look_way(struct git_look *look, const char *from, const char *text)
{
	struct git_way way;
	struct stat status;

	return protect_way(look, from, text, &way, &status);
}

/* A hook that is a link runs what that leads to. */
static int check_hook(struct git_look *look, int fd, const char *directory, const char *name)
{
	const char *path = arena_format(look->arena, "%s/%s", directory, name);
	struct git_way way;
	struct stat status;

	if (!path)
		return no_memory(look);
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return S_ISLNK(status.st_mode) ? protect_way(look, directory, name, &way, &status) :
					 check_links(look, path, &status);
}

/* git's own templates are never run. */
static bool is_sample(const char *name)
{
	size_t length = strlen(name);

	return length > 7 && strcmp(name + length - 7, ".sample") == 0;
}

static int check_hooks(struct git_look *look, int parent_fd, const char *name, const char *path)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *entry;
	unsigned count = 0;
	int result = 0;

	(void)directory_open(&directory, parent_fd, name, O_NOFOLLOW);
	while (result == 0 && (entry = directory_next(&directory))) {
		if (is_sample(entry))
			continue;
		if (++count > GIT_LOOK_LIMIT_HOOKS)
			return error_set(look->error, E2BIG,
					 "%s has more than %u entries, which no directory of hooks "
					 "has",
					 path, GIT_LOOK_LIMIT_HOOKS);
		result = check_hook(look, directory.fd, path, entry);
	}
	return result;
}

int git_look_target(struct git_look *look, const char *from, const char *text)
{
	struct git_way way;
	struct stat status = { 0 };
	int result = protect_way(look, from, text, &way, &status);

	if (result == 0 && way.real && S_ISDIR(status.st_mode))
		result = check_hooks(look, AT_FDCWD, way.real, way.real);
	return result;
}

int git_look_read(int directory_fd, const char *name, char *ret_text, size_t room)
{
	int CLEANUP_FD fd = fd_open_beneath(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	ssize_t length;

	if (fd < 0)
		return fd == -ELOOP ? -EINVAL : fd;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -EINVAL;
	length = fd_read_all(fd, ret_text, room);
	if (length < 0)
		return (int)length;
	if ((size_t)length == room)
		return -EFBIG;
	while (length && (ret_text[length - 1] == '\n' || ret_text[length - 1] == '\r'))
		length--;
	ret_text[length] = '\0';
	return memchr(ret_text, '\0', (size_t)length) ? -EINVAL : 0;
}

/* --- configuration */

static int add_source(struct reading *reading, const char *from, const char *text)
{
	struct git_look *look = reading->look;
	struct git_way way;
	struct stat status = { 0 };
	int result = protect_way(look, from, text, &way, &status);
	const char *directory;

	if (result < 0 || !way.real || !S_ISREG(status.st_mode))
		return result;
	for (size_t i = 0; i < reading->count; i++)
		if (strcmp(reading->sources[i].path, way.real) == 0)
			return 0;
	if (reading->count == GIT_LOOK_LIMIT_INCLUDES)
		return error_set(look->error, E2BIG,
				 "git's configuration includes more than %u files",
				 GIT_LOOK_LIMIT_INCLUDES);
	directory = path_parent(look->arena, way.real);
	if (!directory)
		return no_memory(look);
	reading->sources[reading->count++] = (struct source){ .path = way.real, .from = directory };
	return 0;
}

/* git-config(1), "pathname": the caller's home; others' are none of the workspace's. */
static const char *expand(const struct git_look *look, const char *value)
{
	if (strncmp(value, "~/", 2) != 0)
		return value[0] == '~' || strncmp(value, "%(", 2) == 0 ? NULL : value;
	return look->host->home ? arena_format(look->arena, "%s/%s", look->host->home, value + 2) :
				  NULL;
}

static int take_entry(struct reading *reading, const struct source *source, const char *section,
		      const char *key, const char *value)
{
	bool is_include = strcmp(section, "include") == 0 ||
			  strncmp(section, "includeif.", 10) == 0;
	const char *path = value[0] ? expand(reading->look, value) : NULL;

	if (!path)
		return 0;
	if (is_include && strcmp(key, "path") == 0)
		return add_source(reading, source->from, path);
	if (strcmp(section, "core") == 0 && strcmp(key, "hookspath") == 0 &&
	    (path[0] == '/' || reading->worktree))
		return git_look_target(reading->look, reading->worktree, path);
	return 0;
}

/* Gives a text of length 0 where there is none to be read. */
static int load(const struct git_look *look, const char *path, struct git_text *ret_text)
{
	int CLEANUP_FD fd =
		fd_open_resolved(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, RESOLVE_NO_SYMLINKS);
	struct stat status;
	ssize_t length;
	char *bytes;

	*ret_text = (struct git_text){ .length = 0 };
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || !status.st_size)
		return 0;
	if (status.st_size > GIT_LOOK_LIMIT_CONFIG_BYTES)
		return error_set(look->error, EFBIG, "%s is larger than %u bytes", path,
				 GIT_LOOK_LIMIT_CONFIG_BYTES);
	bytes = arena_allocate(look->arena, (size_t)status.st_size);
	if (!bytes)
		return no_memory(look);
	length = fd_read_all(fd, bytes, (size_t)status.st_size);
	if (length > 0)
		*ret_text = (struct git_text){ .bytes = bytes, .length = (size_t)length };
	return 0;
}

/* What git would stop at it does not obey; what comes before counts all the same. */
static int read_source(struct reading *reading, const struct source *source)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader = { 0 };
	enum git_item item = GIT_ITEM_SECTION;
	struct git_text text;
	int result = load(reading->look, source->path, &text);

	if (result < 0 || !text.length)
		return result;
	git_config_begin(&reader, text, reading->look->arena);
	while (result == 0 && item != GIT_ITEM_END && item != GIT_ITEM_BAD) {
		item = git_config_next(&reader);
		if (item == GIT_ITEM_ENTRY)
			result = take_entry(reading, source, git_config_text(&reader.section),
					    git_config_text(&reader.key),
					    git_config_text(&reader.value));
	}
	return result;
}

static int read_all(struct reading *reading)
{
	int result = 0;

	/* the list grows meanwhile */
	for (size_t i = 0; i < reading->count && result == 0; i++)
		result = read_source(reading, &reading->sources[i]);
	return result;
}

static int look_at_obeyed(struct git_look *look, const char *path, int fd)
{
	struct stat status;
	int result = 0;

	for (size_t i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]) && result == 0; i++) {
		struct git_way way;

		if (fstatat(fd, obeyed[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		result = S_ISLNK(status.st_mode) ?
				 protect_way(look, path, obeyed[i], &way, &status) :
				 check_links(look,
					     arena_format(look->arena, "%s/%s", path, obeyed[i]),
					     &status);
	}
	return result;
}

int git_look_directory(struct git_look *look, const char *path, int fd, const char *worktree)
{
	struct reading reading = { .look = look, .worktree = worktree };
	struct stat status;
	int result = look_at_obeyed(look, path, fd);

	if (result == 0 && fstatat(fd, "hooks", &status, AT_SYMLINK_NOFOLLOW) == 0)
		result = S_ISLNK(status.st_mode) ?
				 git_look_target(look, path, "hooks") :
				 check_hooks(look, fd, "hooks",
					     arena_format(look->arena, "%s/hooks", path));
	if (result == 0)
		result = add_source(&reading, path, "config");
	if (result == 0)
		result = add_source(&reading, path, "config.worktree");
	return result == 0 ? read_all(&reading) : result;
}

int git_look_callers(struct git_look *look, const char *worktree)
{
	static const char *const files[] = { ".config/git/config", ".gitconfig" };
	struct reading reading = { .look = look, .worktree = worktree };
	int result = add_source(&reading, "/etc", "gitconfig");

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && result == 0; i++)
		if (look->host->real_home)
			result = add_source(&reading, look->host->real_home, files[i]);
	return result == 0 ? read_all(&reading) : result;
}

int git_look_worktree(struct git_look *look, const char *path, const char **ret_worktree)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader = { 0 };
	const char *config = arena_format(look->arena, "%s/config", path);
	enum git_item item = GIT_ITEM_SECTION;
	struct git_text text;
	struct git_way way;
	struct stat status;
	int result = config ? load(look, config, &text) : no_memory(look);

	*ret_worktree = NULL;
	if (result < 0 || !text.length)
		return result;
	git_config_begin(&reader, text, look->arena);
	while (item != GIT_ITEM_END && item != GIT_ITEM_BAD) {
		item = git_config_next(&reader);
		if (item == GIT_ITEM_ENTRY &&
		    strcmp(git_config_text(&reader.section), "core") == 0 &&
		    strcmp(git_config_text(&reader.key), "worktree") == 0 &&
		    git_way_find(look->arena, path, git_config_text(&reader.value), &way,
				 &status) == 0 &&
		    S_ISDIR(status.st_mode))
			*ret_worktree = way.real;
	}
	return 0;
}
