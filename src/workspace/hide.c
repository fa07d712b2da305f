/*
 * Theory of operation. An argument speaks of paths inside of the box; the view's rows tell which
 * path of the host stands behind each. Literal names are looked up there once. A pattern is
 * matched by walks: one for each shown tree it can match in. A walk keeps the directories that
 * are still to be read as paths relative to its root, not as open descriptors, so that neither
 * depth nor width uses up descriptors; each is opened anew beneath the root, no link followed, and
 * read to its end. What changes meanwhile is seen in its old or its new state.
 */
#include "workspace/hide.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/glob.h"
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct request {
	enum path_class class;
	const char *argument;
	uint32_t rule;
	struct arena *arena;
	struct policy *policy;
	struct error *error;
	size_t known; /* rows of the view before this request: what is shown */
	size_t added;
};

/* A tree to be searched, or one directory in it. */
struct walk {
	struct request *request;
	const char *target; /* of the root, inside of the box */
	const char *source; /* of the root, on the host */
	const char *pattern;
	const char *prefix; /* where the root stands in the pattern's paths: "" or "a/b/" */
	int root_fd;
	char **pending; /* directories below the root, still to be read */
	size_t pending_count, pending_room;
	unsigned *entries; /* of all walks of the request */
};

static const char *verb(const struct request *request)
{
	return request->class == PATH_HIDE ? "hide" : "protect";
}

/* The row that shows a path, among those that were there before the request. */
static const struct view_path *shown_by(const struct request *request, const char *target)
{
	struct view view = { .paths = request->policy->view.paths, .count = request->known };
	const struct view_path *row = view_lookup(&view, target);

	if (!row ||
	    (row->class != PATH_READ && row->class != PATH_WRITE && row->class != PATH_CACHE &&
	     row->class != PATH_COPY && row->class != PATH_STAGE))
		return NULL;
	return row;
}

/* The host's path behind a target that a row shows; NULL where there is none. */
static const char *source_of(const struct request *request, const struct view_path *row,
			     const char *target)
{
	const char *below = path_below(target, row->target);

	if (!row->source[0])
		return NULL;
	return below[0] ? path_clean(request->arena, row->source, below) : row->source;
}

static int no_memory(const struct request *request)
{
	return error_errno(request->error, ENOMEM, "--%s %s", verb(request), request->argument);
}

static int add_row(struct request *request, struct view_path row)
{
	row.class = request->class;
	row.rule = request->rule;
	if (request->policy->view.count >= VIEW_LIMIT_PATHS)
		return error_set(request->error, E2BIG,
				 "--%s %s: more than %u paths in all; hide a directory instead",
				 verb(request), request->argument, VIEW_LIMIT_PATHS);
	if (!row.target || !row.source || !view_add(&request->policy->view, request->arena, row))
		return no_memory(request);
	request->added++;
	return 0;
}

/*
 * Adds an existing object. A file is hidden by its name, in whatever tree: with a second hard link
 * it could be read by that other name, and changed by it in a tree that is written in place.
 */
static int add_object(struct request *request, const struct view_path *shown, const char *source,
		      const char *target, const struct stat *status)
{
	struct view_path row = { .source = source,
				 .target = target,
				 .device = status->st_dev,
				 .inode = status->st_ino,
				 .kind = S_ISDIR(status->st_mode) ? PATH_KIND_DIRECTORY :
								    PATH_KIND_FILE };

	if (shown && (shown->class == PATH_WRITE || request->class == PATH_HIDE) &&
	    !S_ISDIR(status->st_mode) && status->st_nlink > 1)
		return error_set(request->error, EMLINK,
				 "cannot %s %s: it has %lu hard links and stays reachable by the "
				 "others; replace it by a copy of its own",
				 verb(request), target, (unsigned long)status->st_nlink);
	return add_row(request, row);
}

/* The host's path of an object that the kernel resolved, and what it is. -ENOENT: none. */
static int resolve(const struct request *request, const char *path, char **ret_path,
		   struct stat *ret_status)
{
	char link[32], text[PATH_LIMIT_BYTES];
	int CLEANUP_FD fd = fd_open_resolved(AT_FDCWD, path, O_PATH, 0);
	ssize_t length;

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_status) < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, text, sizeof(text));
	if (length <= 0)
		return -errno;
	if ((size_t)length >= sizeof(text))
		return -ENAMETOOLONG;
	text[length] = '\0';
	*ret_path = path_is_clean(text) ? arena_copy(request->arena, text) : NULL;
	return *ret_path ? 0 : -ENOENT;
}

/* The path inside of the box under which a path of the host is shown; NULL where it is not. */
static const char *target_of(const struct request *request, const char *source)
{
	for (size_t i = 0; i < request->known; i++) {
		const struct view_path *row = &request->policy->view.paths[i];
		const char *target;

		if (!row->source || !path_is_absolute(row->source) ||
		    !path_is_under(source, row->source))
			continue;
		target = path_clean(request->arena, "/",
				    arena_format(request->arena, "%s/%s", row->target,
						 path_below(source, row->source)));
		if (target && shown_by(request, target) == row)
			return target;
	}
	return NULL;
}

static int add_missing(struct request *request, const char *target, const char *reason)
{
	struct view_path row = { .kind = PATH_KIND_MISSING, .source = target, .target = target };

	if (request->class == PATH_HIDE)
		return add_row(request, row);
	return error_set(request->error, ENOENT,
			 "cannot protect %s: %s; make it first, or leave the option out", target,
			 reason);
}

/*
 * A link's name goes, and what it leads to as well where that is shown. In a tree that is written
 * in place nothing can be mounted on a link: there it stays, and leads to what is hidden.
 */
static int add_link(struct request *request, const struct view_path *shown, const char *source,
		    const char *target, const struct stat *status)
{
	size_t before = request->added;
	const char *other;
	struct stat behind;
	char *path;
	int result = 0;

	if (shown->class != PATH_WRITE)
		result = add_object(request, shown, source, target, status);
	else if (request->class == PATH_HIDE)
		/* the name all the same: a file may take the link's place later */
		result = add_missing(request, target, "it is a link");
	if (result < 0 || resolve(request, source, &path, &behind) < 0)
		return result;
	other = target_of(request, path);
	if (other)
		result = add_object(request, shown_by(request, other), path, other, &behind);
	if (result == 0 && request->class == PATH_PROTECT && request->added == before)
		result = error_set(request->error, ENOENT,
				   "cannot protect %s: it is a link to what the box does not show",
				   target);
	return result;
}

/* The path without links in the directories above its last name; the path itself if none is. */
static const char *resolve_parent(const struct request *request, const char *source)
{
	char *parent = path_parent(request->arena, source);
	struct stat status;
	char *resolved;

	if (!parent || resolve(request, parent, &resolved, &status) < 0)
		return source;
	return path_clean(request->arena, resolved, path_name(source));
}

static int add_literal(struct request *request, const char *target)
{
	const struct view_path *shown;
	const char *source, *real;
	struct stat status;

	if (path_is_under(request->policy->workspace ? request->policy->workspace : "/", target))
		return error_set(request->error, EINVAL, "cannot %s %s: the workspace lies in it",
				 verb(request), target);
	shown = shown_by(request, target);
	source = shown ? source_of(request, shown, target) : NULL;
	if (!source)
		return add_missing(request, target, "the box does not show it");
	real = resolve_parent(request, source);
	if (!real)
		return no_memory(request);
	if (strcmp(real, source) != 0) {
		/* the name is in another directory than it says: that one is what counts */
		const char *other = target_of(request, real);

		if (!other)
			return add_missing(request, target,
					   "a link leads it out of what the box shows");
		source = real;
		target = other;
		shown = shown_by(request, other);
	}
	if (lstat(source, &status) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return add_missing(request, target, "there is no such file or directory");
		return error_errno(request->error, errno, "looking at %s", source);
	}
	return S_ISLNK(status.st_mode) ? add_link(request, shown, source, target, &status) :
					 add_object(request, shown, source, target, &status);
}

static char *join(struct arena *arena, const char *directory, const char *name)
{
	return arena_format(arena, "%s%s%s", directory, directory[0] ? "/" : "", name);
}

static int too_large(const struct walk *walk, const char *what, unsigned limit)
{
	return error_set(walk->request->error, E2BIG,
			 "--%s %s: %s has more than %u %s; name the path, or a directory to search",
			 verb(walk->request), walk->request->argument, walk->source, limit, what);
}

static int push(struct walk *walk, char *directory)
{
	if (!directory)
		return no_memory(walk->request);
	if (walk->pending_count == walk->pending_room) {
		char **grown = arena_push(walk->request->arena, walk->pending, walk->pending_count,
					  sizeof(*grown));

		if (!grown)
			return no_memory(walk->request);
		walk->pending = grown;
		walk->pending_room++;
	}
	walk->pending[walk->pending_count++] = directory;
	return 0;
}

/* Adds one object below the root of a walk by its name. */
static int add_match(struct walk *walk, const char *below, const struct stat *status)
{
	struct request *request = walk->request;
	const char *target = path_clean(request->arena, walk->target, below);
	const char *source = path_clean(request->arena, walk->source, below);
	const struct view_path *shown;
	const char *behind;

	if (!target || !source)
		return error_set(request->error, ENAMETOOLONG,
				 "--%s %s: a path below %s is too long to be named", verb(request),
				 request->argument, walk->source);
	shown = shown_by(request, target);
	behind = shown ? source_of(request, shown, target) : NULL;
	/* hidden already, or another row stands in this place and has a walk of its own */
	if (!behind || strcmp(behind, source) != 0)
		return 0;
	return S_ISLNK(status->st_mode) ? add_link(request, shown, source, target, status) :
					  add_object(request, shown, source, target, status);
}

/* One name in a directory: matched, or a directory to be searched, or neither. */
static int look_at(struct walk *walk, int directory_fd, const char *directory,
		   const struct dirent *entry)
{
	struct arena *arena = walk->request->arena;
	char path[PATH_LIMIT_BYTES];
	struct stat status;
	char *below;
	bool matches, search;

	if (++*walk->entries > HIDE_LIMIT_ENTRIES)
		return too_large(walk, "entries", HIDE_LIMIT_ENTRIES);
	if (snprintf(path, sizeof(path), "%s%s%s%s", walk->prefix, directory,
		     directory[0] ? "/" : "", entry->d_name) >= (int)sizeof(path))
		return too_large(walk, "bytes in a path", PATH_LIMIT_BYTES);
	matches = glob_match(walk->pattern, path);
	search = !matches && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		 glob_can_match_below(walk->pattern, path);
	if (!matches && !search)
		return 0;
	if (entry->d_type == DT_DIR && search)
		return push(walk, join(arena, directory, entry->d_name));
	if (fstatat(directory_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 :
					 error_errno(walk->request->error, errno,
						     "looking at %s/%s", walk->source, path);
	below = join(arena, directory, entry->d_name);
	if (!below)
		return no_memory(walk->request);
	if (matches)
		return add_match(walk, below, &status);
	return S_ISDIR(status.st_mode) ? push(walk, below) : 0;
}

/* File systems of the kernel's that may be mounted in a tree: nothing of the caller's is there. */
static bool is_kernels(int fd)
{
	struct statfs system;

	return fstatfs(fd, &system) == 0 &&
	       (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC ||
		system.f_type == CGROUP_SUPER_MAGIC || system.f_type == CGROUP2_SUPER_MAGIC);
}

/*
 * A directory that cannot be read cannot be searched. The task cannot read a foreign one either;
 * the caller's own it could make readable, so that one is a match as a whole.
 */
static int add_unreadable(struct walk *walk, const char *directory)
{
	int CLEANUP_FD fd = fd_open_beneath(walk->root_fd, directory, O_PATH | O_NOFOLLOW);
	struct stat status;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES)
		return 0;
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(walk->request->error, fd < 0 ? fd : errno, "looking at %s/%s",
				   walk->source, directory);
	return status.st_uid == geteuid() ? add_match(walk, directory, &status) : 0;
}

static int read_directory(struct walk *walk, const char *directory)
{
	int fd = directory[0] ? fd_open_beneath(walk->root_fd, directory,
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK) :
				fd_open_beneath(walk->root_fd, ".", O_RDONLY | O_DIRECTORY);
	struct dirent *entry;
	int result = 0;
	DIR *stream;

	if (fd == -EACCES && directory[0])
		return add_unreadable(walk, directory);
	/* gone, or something else by now */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EACCES)
		return 0;
	if (fd >= 0 && is_kernels(fd)) {
		fd_close(&fd);
		return 0;
	}
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		result = error_errno(walk->request->error, fd < 0 ? fd : errno, "searching %s/%s",
				     walk->source, directory);
		fd_close(&fd);
		return result;
	}
	errno = 0;
	while (result == 0 && (entry = readdir(stream))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = look_at(walk, dirfd(stream), directory, entry);
		errno = 0;
	}
	if (result == 0 && errno)
		result = error_errno(walk->request->error, errno, "reading %s/%s", walk->source,
				     directory);
	(void)closedir(stream);
	return result;
}

static size_t depth_of(const char *directory)
{
	size_t depth = directory[0] != '\0';

	for (const char *at = strchr(directory, '/'); at; at = strchr(at + 1, '/'))
		depth++;
	return depth;
}

static int run_walk(struct walk *walk)
{
	int CLEANUP_FD root_fd =
		fd_open_resolved(AT_FDCWD, walk->source, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	int result;

	if (root_fd == -ENOENT || root_fd == -ENOTDIR || root_fd == -EACCES)
		return 0;
	if (root_fd < 0)
		return error_errno(walk->request->error, root_fd, "opening %s", walk->source);
	walk->root_fd = root_fd;
	result = push(walk, arena_copy(walk->request->arena, ""));
	while (result == 0 && walk->pending_count) {
		const char *directory = walk->pending[--walk->pending_count];

		result = depth_of(directory) > HIDE_LIMIT_DEPTH ?
				 too_large(walk, "levels", HIDE_LIMIT_DEPTH) :
				 read_directory(walk, directory);
	}
	return result;
}

/* True when a walk from `base` comes by this row's target by itself. */
static bool is_covered(const struct request *request, const struct view_path *row, const char *base)
{
	const char *parent = path_parent(request->arena, row->target);
	const struct view_path *above = parent ? shown_by(request, parent) : NULL;
	const char *source;

	if (!above || !path_is_under(parent, base))
		return false;
	source = source_of(request, above, parent);
	source = source ? path_clean(request->arena, source, path_name(row->target)) : NULL;
	return source && strcmp(source, row->source) == 0;
}

/* A row whose target lies below the base: itself a match, or a tree to be searched. */
static int search_row(struct request *request, struct walk walk, const struct view_path *row,
		      const char *base)
{
	const char *below = path_below(row->target, base);
	struct stat status;

	if (glob_match(walk.pattern, below))
		return lstat(row->source, &status) == 0 ?
			       add_object(request, row, row->source, row->target, &status) :
		       errno == ENOENT ?
			       0 :
			       error_errno(request->error, errno, "looking at %s", row->source);
	if (row->kind != PATH_KIND_DIRECTORY || !glob_can_match_below(walk.pattern, below))
		return 0;
	walk.target = row->target;
	walk.source = row->source;
	walk.prefix = arena_format(request->arena, "%s/", below);
	return walk.prefix ? run_walk(&walk) : no_memory(request);
}

/* Where a directory really is inside of the box, no link on the way; as it is if not shown. */
static const char *real_base(const struct request *request, const char *base)
{
	const struct view_path *shown = shown_by(request, base);
	const char *source = shown ? source_of(request, shown, base) : NULL;
	const char *other;
	struct stat status;
	char *path;

	if (!source || resolve(request, source, &path, &status) < 0 || strcmp(path, source) == 0)
		return base;
	other = target_of(request, path);
	return other ? other : base;
}

static int search(struct request *request, const char *base, const char *pattern)
{
	unsigned entries = 0;
	struct walk walk = { .request = request,
			     .pattern = pattern,
			     .prefix = "",
			     .root_fd = -1,
			     .entries = &entries };
	const struct view_path *shown = shown_by(request, base);
	int result = 0;

	if (shown && shown->kind == PATH_KIND_DIRECTORY) {
		struct walk first = walk;

		first.target = base;
		first.source = source_of(request, shown, base);
		if (first.source)
			result = run_walk(&first);
	}
	for (size_t i = 0; i < request->known && result == 0; i++) {
		/* by value: the array moves when rows are added */
		struct view_path row = request->policy->view.paths[i];

		if (!path_is_under(row.target, base) || strcmp(row.target, base) == 0)
			continue;
		if ((row.class != PATH_READ && row.class != PATH_WRITE && row.class != PATH_CACHE &&
		     row.class != PATH_COPY && row.class != PATH_STAGE) ||
		    !row.source[0] || is_covered(request, &row, base))
			continue;
		result = search_row(request, walk, &row, base);
	}
	if (result == 0 && request->class == PATH_PROTECT && request->added == 0)
		result = error_set(request->error, ENOENT,
				   "cannot protect %s: nothing that the box shows matches it",
				   request->argument);
	return result;
}

/*
 * Splits at the last slash before the first pattern character: the directory to start from, and
 * the pattern below it. A relative argument starts from the workspace.
 */
static int add_pattern(struct request *request)
{
	const char *argument = request->argument, *pattern, *base;
	size_t literal = strcspn(argument, "?*[\\"), length = 0;
	char *head;

	for (size_t i = 0; i < literal; i++)
		if (argument[i] == '/')
			length = i + 1;
	head = arena_copy_bytes(request->arena, argument, length);
	pattern = argument + length;
	if (!head)
		return no_memory(request);
	base = length ? path_clean(request->arena, request->policy->workspace, head) :
			request->policy->workspace;
	if (!base || glob_check(pattern) < 0)
		return error_set(request->error, EINVAL,
				 "--%s %s: not a pattern: no \"..\", \"**\" alone between slashes, "
				 "\"[\" closed",
				 verb(request), argument);
	return search(request, real_base(request, base), pattern);
}

int hide_view(enum path_class class, const char *argument, uint32_t rule, struct arena *arena,
	      struct policy *policy, struct error *error)
{
	struct request request = { .class = class,
				   .argument = argument,
				   .rule = rule,
				   .arena = arena,
				   .policy = policy,
				   .error = error,
				   .known = policy->view.count };
	const char *target;

	if (glob_is_pattern(argument))
		return add_pattern(&request);
	target = path_clean(arena, policy->workspace, argument);
	if (!target)
		return error_set(error, EINVAL, "--%s %s: not a path without \"..\"",
				 verb(&request), argument);
	return add_literal(&request, target);
}

int hide_inputs(struct arena *arena, struct policy *policy, struct error *error)
{
	size_t known = policy->view.count;

	for (size_t i = 0; i < known; i++) {
		for (size_t j = 0; j < known; j++) {
			/* by value: the array moves when rows are added */
			struct view_path hidden = policy->view.paths[i];
			struct view_path input = policy->view.paths[j];

			if (hidden.class != PATH_HIDE || !view_is_input(&input) ||
			    !path_is_under(hidden.source, input.source) ||
			    strcmp(hidden.source, input.source) == 0 ||
			    path_is_under(hidden.target, VIEW_INPUTS))
				continue;
			hidden.target = path_clean(arena, input.target,
						   path_below(hidden.source, input.source));
			if (!hidden.target || !view_add(&policy->view, arena, hidden))
				return error_errno(error, ENOMEM, "hiding in %s", input.target);
		}
	}
	return 0;
}
