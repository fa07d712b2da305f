#include "workspace/cache_store.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "plan/plan.h"
#include "workspace/cache.h"
#include "workspace/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* What of a cache's directory is visited. */
enum { TAG_CACHE, TAG_LAYER };

struct gather {
	struct arena *arena;
	struct cache_entry *entries;
	size_t count;
};

static bool is_project(const char *name)
{
	return strlen(name) == CACHE_PROJECT_DIGITS &&
	       strspn(name, "0123456789abcdef") == CACHE_PROJECT_DIGITS;
}

static uint64_t wall_ns(const struct timespec *time)
{
	return time->tv_sec < 0 ? 0 :
				  (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

/* The layer's size; of a file with several names each counts a part. */
static void count_names(int cache_fd, struct cache_entry *entry)
{
	struct walk CLEANUP_WALK walk;
	enum walk_event event;

	walk_begin(&walk, openat(cache_fd, ".", OPEN_FLAGS), TAG_CACHE);
	walk.limit_names = CACHE_LIMIT_NAMES;
	while ((event = walk_next(&walk)) != WALK_END) {
		struct stat status;

		if (event != WALK_NAME)
			continue;
		if (walk.tag == TAG_CACHE) {
			if (strcmp(walk.name, "upper") == 0 && walk.type == DT_DIR)
				walk_descend(&walk, TAG_LAYER);
			continue;
		}
		entry->files++;
		if (fstatat(walk.fd, walk.name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			entry->bytes += (uint64_t)status.st_blocks * 512u /
					(S_ISDIR(status.st_mode) || !status.st_nlink ?
						 1u :
						 (uint64_t)status.st_nlink);
		if (walk.type == DT_DIR)
			walk_descend(&walk, TAG_LAYER);
	}
	entry->is_cut = walk.code < 0 || walk.unread;
}

/* True where a box holds it; it can be taken away from nobody by looking. */
static bool is_locked(int cache_fd)
{
	if (flock(cache_fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	(void)flock(cache_fd, LOCK_UN);
	return false;
}

static int add_cache(struct gather *gather, const struct cache_entry *project, int project_fd,
		     const char *name)
{
	int CLEANUP_FD cache_fd = openat(project_fd, name, OPEN_FLAGS);
	struct cache_entry entry = *project;
	struct cache_entry *grown;
	struct stat status;

	if (cache_fd < 0)
		return 0;
	count_names(cache_fd, &entry);
	if (!entry.files && !entry.is_cut)
		return 0;
	/* a lease on it sets it (isolate/host.c) */
	if (fstat(cache_fd, &status) == 0)
		entry.used_wall_ns = wall_ns(&status.st_mtim);
	entry.is_used = is_locked(cache_fd);
	entry.name = arena_copy(gather->arena, name);
	grown = gather->count < CACHE_LIMIT_LISTED ?
			arena_push(gather->arena, gather->entries, gather->count, sizeof(*grown)) :
			NULL;
	if (!grown || !entry.name)
		return -ENOMEM;
	gather->entries = grown;
	grown[gather->count++] = entry;
	return 0;
}

static int add_project(struct gather *gather, int caches_fd, const char *name)
{
	struct directory CLEANUP_DIRECTORY directory;
	struct cache_entry project = { 0 };
	const char *entry;
	int result = 0;

	if (directory_open(&directory, caches_fd, name, O_NOFOLLOW | O_CLOEXEC) < 0)
		return 0;
	project.project = arena_copy(gather->arena, name);
	project.workspace = cache_workspace(directory.fd, name, gather->arena);
	if (!project.project)
		return -ENOMEM;
	while (result == 0 && (entry = directory_next(&directory)))
		if (entry[0] != '.')
			result = add_cache(gather, &project, directory.fd, entry);
	return result < 0 ? result : directory.code;
}

static int by_name(const void *left, const void *right)
{
	const struct cache_entry *a = left, *b = right;
	int order = strcmp(a->workspace ? a->workspace : "", b->workspace ? b->workspace : "");

	if (order == 0)
		order = strcmp(a->project, b->project);
	return order ? order : strcmp(a->name, b->name);
}

int cache_list(int state_fd, struct arena *arena, struct cache_entry **ret_entries,
	       size_t *ret_count, struct error *error)
{
	struct directory CLEANUP_DIRECTORY directory;
	struct gather gather = { .arena = arena };
	int result = directory_open(&directory, state_fd, "caches", O_NOFOLLOW | O_CLOEXEC);
	const char *name;

	if (result == -ENOENT)
		result = 0;
	while (result == 0 && (name = directory_next(&directory)))
		if (is_project(name))
			result = add_project(&gather, directory.fd, name);
	if (result == 0)
		result = directory.code;
	if (result < 0)
		return error_errno(error, result, "listing the caches");
	if (gather.count)
		qsort(gather.entries, gather.count, sizeof(*gather.entries), by_name);
	*ret_entries = gather.entries;
	*ret_count = gather.count;
	return 0;
}

/* A layer goes as a whole, with what a task made of its mode and attributes. */
static int renew_layer(const struct caller *host, int cache_fd, const char *name)
{
	uint32_t owner = host->root ? PLAN_ROOT_HOST_ID : host->uid;
	struct stat status;

	directory_remove_tree(cache_fd, name);
	if (fstatat(cache_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return -ENOTEMPTY;
	/* a start may have made it just now: it finds the lock taken */
	if (mkdirat(cache_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (host->root && fchownat(cache_fd, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

int cache_discard(const struct caller *host, int state_fd, const struct cache_entry *entry,
		  struct error *error)
{
	static const char *const layers[] = { "upper", "work" };
	char path[PATH_LIMIT_BYTES];
	int CLEANUP_FD cache_fd = -1;
	int result = 0;

	if (snprintf(path, sizeof(path), "caches/%s/%s", entry->project, entry->name) >=
	    (int)sizeof(path))
		return error_errno(error, ENAMETOOLONG, "the cache %s", entry->name);
	cache_fd = fd_open_beneath(state_fd, path, O_RDONLY | O_DIRECTORY);
	if (cache_fd < 0)
		return error_errno(error, cache_fd, "opening %s", path);
	if (flock(cache_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ?
			       error_set(error, EBUSY,
					 "%s/%s is in use by a task; `bawn ps` lists them",
					 entry->project, entry->name) :
			       error_errno(error, errno, "locking %s", path);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]) && result == 0; i++)
		result = renew_layer(host, cache_fd, layers[i]);
	return result < 0 ? error_errno(error, result,
					"removing what is in %s of the state directory", path) :
			    0;
}
