#include "workspace/collect.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/walk.h"
#include "policy/glob.h"
#include "policy/policy.h"
#include "workspace/root.h"
#include "workspace/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES 65536
/* A copy that is not whole yet; nothing that matches has this name in the end. */
#define PART_NAME ".bawn-artifact"

/* A name of the host's that the task does not see as the host does. */
struct hiding {
	const char *path;
	bool is_directory; /* the layer has a directory there, too: what is in it counts */
};

struct gather {
	const struct collect *collect;
	const struct policy *policy;
	struct arena *arena;
	struct arena scratch; /* of one name */
	struct artifact_list *list;
	struct error *error;
	bool matched[COLLECT_LIMIT_PATTERNS];
	uint64_t left; /* bytes */
	/* where a layer lies over the workspace: what it has another word about than the host */
	struct hiding *hidings; /* sorted by path */
	size_t hiding_count;
	int root_fd; /* of the copies; -1: not made yet */
};

int collect_check(const struct collect *collect, const struct policy *policy, struct error *error)
{
	for (size_t i = 0; i < collect->pattern_count; i++)
		if (glob_check(collect->patterns[i]) < 0)
			return error_set(error, EINVAL,
					 "--artifact %s: not a pattern of paths below the "
					 "workspace: no leading slash, no \"..\", \"**\" alone "
					 "between slashes, \"[\" closed",
					 collect->patterns[i]);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];
		bool is_written = row->class == PATH_WRITE || row->class == PATH_GIT ||
				  row->class == PATH_OBJECTS;

		if (is_written && path_is_under(collect->directory, row->source))
			return error_set(error, EINVAL,
					 "the directory of artifacts, %s, lies in %s, where the "
					 "task writes; --artifact-dir takes another",
					 collect->directory, row->source);
	}
	return 0;
}

int collect_directory(const char *given, struct arena *arena, const char **ret_path,
		      struct error *error)
{
	const char *parent = ".", *name = given, *slash;
	char *trimmed = arena_copy(arena, given);
	int result;

	if (!trimmed)
		return error_errno(error, ENOMEM, "--artifact-dir");
	if (access(given, F_OK) == 0)
		return root_resolve(given, arena, ret_path, error);
	for (size_t length = strlen(trimmed); length > 1 && trimmed[length - 1] == '/';)
		trimmed[--length] = '\0';
	slash = strrchr(trimmed, '/');
	name = slash ? slash + 1 : trimmed;
	if (slash)
		parent = slash == trimmed ?
				 "/" :
				 arena_copy_bytes(arena, trimmed, (size_t)(slash - trimmed));
	result = parent ? root_resolve(parent, arena, &parent, error) :
			  error_errno(error, ENOMEM, "--artifact-dir");
	if (result < 0)
		return error_context(error, "--artifact-dir %.200s", given);
	*ret_path = path_clean(arena, parent, name);
	return *ret_path ? 0 :
			   error_set(error, EINVAL, "--artifact-dir %.200s: no such place", given);
}

static bool is_match(struct gather *gather, const char *path)
{
	bool any = false;

	for (size_t i = 0; i < gather->collect->pattern_count; i++)
		if (glob_match(gather->collect->patterns[i], path)) {
			gather->matched[i] = true;
			any = true;
		}
	return any;
}

static bool may_match_below(const struct gather *gather, const char *path)
{
	for (size_t i = 0; i < gather->collect->pattern_count; i++)
		if (glob_can_match_below(gather->collect->patterns[i], path))
			return true;
	return false;
}

static bool is_hidden(struct gather *gather, const char *path)
{
	const char *full = path_clean(&gather->scratch, gather->policy->workspace, path);
	const struct view_path *row = full ? view_lookup(&gather->policy->view, full) : NULL;

	return !full || (row && row->class == PATH_HIDE);
}

/* NULL: beyond the limit, or no memory. */
static struct artifact *add(struct gather *gather, const char *path, const char *reason)
{
	struct artifact_list *list = gather->list;
	struct artifact *grown = NULL;

	if (list->count < COLLECT_LIMIT_FILES)
		grown = arena_push(gather->arena, list->items, list->count, sizeof(*grown));
	if (!grown) {
		list->dropped++;
		return NULL;
	}
	list->items = grown;
	grown += list->count++;
	*grown = (struct artifact){ .path = arena_copy(gather->arena, path), .reason = reason };
	return grown;
}

static int open_directory(int parent_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent_fd, name, flags);

	if (fd < 0 && errno == ENOENT && (mkdirat(parent_fd, name, 0777) == 0 || errno == EEXIST))
		fd = openat(parent_fd, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Makes what is missing; in what leads to it links are the caller's own. */
static int open_root(const char *path)
{
	char part[PATH_LIMIT_BYTES];
	struct stat status;
	int fd;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (stat(part, &status) < 0 && mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The directory of a copy, below the root of copies; each step is opened by descriptor. */
static int open_parent(const struct gather *gather, const char *path)
{
	int CLEANUP_FD fd = openat(gather->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	for (const char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		int next;

		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		next = open_directory(fd, name);
		if (next < 0)
			return next;
		(void)close(fd);
		fd = next;
	}
	return fd < 0 ? -errno : TAKE_FD(fd);
}

/* At most as many bytes as the file had when it was opened: it may grow for ever. */
static int copy_bytes(int from_fd, int to_fd, uint64_t size, struct artifact *item)
{
	static unsigned char bytes[COPY_BYTES];
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	while (item->bytes < size) {
		uint64_t rest = size - item->bytes;
		ssize_t length = fd_read_all(from_fd, bytes,
					     rest < sizeof(bytes) ? (size_t)rest : sizeof(bytes));
		int result;

		if (length <= 0) {
			if (length < 0)
				return (int)length;
			break;
		}
		result = fd_write_all(to_fd, bytes, (size_t)length);
		if (result < 0)
			return result;
		sha256_update(&hash, bytes, (size_t)length);
		item->bytes += (uint64_t)length;
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, item->sha256);
	return 0;
}

/* A new file beside its name, then renamed to it. */
static int write_copy(const struct gather *gather, int from_fd, const struct stat *status,
		      const char *path, struct artifact *item)
{
	int CLEANUP_FD parent_fd = open_parent(gather, path);
	int CLEANUP_FD fd = -1;
	const char *name = strrchr(path, '/');
	char part[sizeof(PART_NAME) + 24];
	int result;

	if (parent_fd < 0)
		return parent_fd;
	(void)snprintf(part, sizeof(part), PART_NAME "-%d", (int)getpid());
	(void)unlinkat(parent_fd, part, 0);
	fd = openat(parent_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    status->st_mode & 0111 ? 0777 : 0666);
	if (fd < 0)
		return -errno;
	result = copy_bytes(from_fd, fd, (uint64_t)status->st_size, item);
	if (result == 0 && renameat(parent_fd, part, parent_fd, name ? name + 1 : path) < 0)
		result = -errno;
	if (result < 0)
		(void)unlinkat(parent_fd, part, 0);
	return result;
}

/* An open file, or why it could not be opened. */
static int copy_opened(struct gather *gather, int fd, const char *path)
{
	struct artifact *item;
	struct stat status;
	int result;

	/* gone again */
	if (fd == -ENOENT)
		return 0;
	item = add(gather, path, NULL);
	if (!item)
		return 0;
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		item->reason = fd == -EACCES ? "it cannot be read" : "it is no regular file";
		return 0;
	}
	if ((uint64_t)status.st_size > gather->left) {
		item->reason = "it is larger than what is left of the limit";
		return 0;
	}
	if (gather->root_fd < 0)
		gather->root_fd = open_root(gather->collect->directory);
	result = gather->root_fd < 0 ? gather->root_fd :
				       write_copy(gather, fd, &status, path, item);
	if (result < 0) {
		item->reason = "it could not be copied";
		return error_errno(gather->error, result, "copying the artifact %s to %s", path,
				   gather->collect->directory);
	}
	gather->left -= item->bytes;
	return 0;
}

static int copy_file(struct gather *gather, int directory_fd, const char *name, const char *path)
{
	int CLEANUP_FD fd =
		fd_open_beneath(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);

	return copy_opened(gather, fd, path);
}

/* ---- of a workspace that a layer lies over ---- */

static bool is_in_git(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, ".git", 4) == 0 && (!at[4] || at[4] == '/'))
			return true;
	}
	return false;
}

static int note_hiding(struct gather *gather, const struct stage_change *change)
{
	struct hiding *grown =
		arena_push(gather->arena, gather->hidings, gather->hiding_count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	gather->hidings = grown;
	grown += gather->hiding_count++;
	*grown = (struct hiding){ .path = arena_copy(gather->arena, change->path),
				  .is_directory = change->after.type == STAGE_DIRECTORY };
	return grown->path ? 0 : -ENOMEM;
}

/* What the layer has there is the task's view of it, whether it changed or not. */
static int take_change(void *context, const struct stage_change *change)
{
	struct gather *gather = context;
	const char *path = change->path;
	bool matches;
	int CLEANUP_FD fd = -1;
	int result = 0;

	arena_reset(&gather->scratch);
	if (is_in_git(path) || is_hidden(gather, path))
		return 0;
	matches = change->after.type != STAGE_DIRECTORY && change->after.type != STAGE_NONE &&
		  is_match(gather, path);
	if (change->before.type != STAGE_NONE)
		result = note_hiding(gather, change);
	if (result < 0 || !matches)
		return result;
	if (change->after.type != STAGE_FILE) {
		(void)add(gather, path,
			  change->after.type == STAGE_LINK ? "it is a link" :
							     "it is no regular file");
		return 0;
	}
	fd = stage_open(change, STAGE_AFTER);
	return copy_opened(gather, fd, path);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hiding *)a)->path, ((const struct hiding *)b)->path);
}

static const struct hiding *find_hiding(const struct gather *gather, const char *path)
{
	const struct hiding key = { .path = path };

	return gather->hiding_count ?
		       bsearch(&key, gather->hidings, gather->hiding_count, sizeof(key), by_path) :
		       NULL;
}

static int take_layer(struct gather *gather, int upper_fd)
{
	int CLEANUP_FD lower_fd =
		open(gather->policy->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct stage stage = { .upper_fd = upper_fd,
				     .lower_fd = lower_fd,
				     .is_names_only = true,
				     .take = take_change,
				     .context = gather };
	int result;

	if (lower_fd < 0)
		return error_errno(gather->error, errno, "opening %s", gather->policy->workspace);
	result = stage_walk(&stage, gather->error);
	if (result < 0 && !gather->error->code)
		return error_errno(gather->error, result, "looking for artifacts");
	if (gather->hiding_count)
		qsort(gather->hidings, gather->hiding_count, sizeof(*gather->hidings), by_path);
	return result;
}

/* ---- of the host's ---- */

static int look_at(struct gather *gather, struct walk *walk)
{
	const char *name = walk->name, *path;
	const struct hiding *hiding;

	arena_reset(&gather->scratch);
	path = walk_path(walk, name, PATH_LIMIT_BYTES, &gather->scratch);
	/* one that is too long to be named is matched by nothing */
	if (!path || is_hidden(gather, path))
		return 0;
	hiding = find_hiding(gather, path);
	if (hiding && !(hiding->is_directory && walk->type == DT_DIR))
		return 0;
	if (walk->type == DT_DIR) {
		if (strcmp(name, ".git") != 0 && may_match_below(gather, path))
			walk_descend(walk, 0);
		return 0;
	}
	if (!is_match(gather, path))
		return 0;
	if (walk->type != DT_REG) {
		(void)add(gather, path,
			  walk->type == DT_LNK ? "it is a link" : "it is no regular file");
		return 0;
	}
	return copy_file(gather, walk->fd, name, path);
}

static int walk_tree(struct gather *gather, int whole_fd)
{
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	int fd = whole_fd >= 0 ?
			 openat(whole_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
			 open(gather->policy->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = 0;

	if (fd < 0)
		return error_errno(gather->error, errno, "opening %s", gather->policy->workspace);
	walk_begin(&walk, fd, 0);
	while (result == 0 && (event = walk_next(&walk)) != WALK_END)
		if (event == WALK_NAME)
			result = look_at(gather, &walk);
	if (result == 0 && walk.code < 0)
		result = error_errno(gather->error, walk.code, "looking for artifacts in %s",
				     gather->policy->workspace);
	return result;
}

int collect_run(const struct collect *collect, const struct policy *policy, int upper_fd,
		bool is_whole, struct arena *arena, struct artifact_list *ret_list,
		struct error *error)
{
	struct gather gather = { .collect = collect,
				 .policy = policy,
				 .arena = arena,
				 .list = ret_list,
				 .error = error,
				 .left = COLLECT_LIMIT_BYTES,
				 .root_fd = -1 };
	int result;

	*ret_list = (struct artifact_list){ .directory = collect->directory };
	result = upper_fd < 0 || is_whole ? 0 : take_layer(&gather, upper_fd);
	if (result == 0)
		result = walk_tree(&gather, is_whole ? upper_fd : -1);
	for (size_t i = 0; i < collect->pattern_count && result == 0; i++)
		if (!gather.matched[i])
			(void)add(&gather, collect->patterns[i], "nothing matches");
	fd_close(&gather.root_fd);
	arena_free(&gather.scratch);
	return result;
}
