#include "workspace/tree_store.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "trees"
#define SECRETS "secrets"
#define SECOND_NS INT64_C(1000000000)
/* Nobody writes one for so long. */
#define TEMPORARY_NS (3600 * SECOND_NS)

struct kept {
	char name[CACHE_PROJECT_DIGITS + 1];
	int64_t written_ns;
};

/* ---- those that nobody needs ---- */

static bool is_project(const char *name)
{
	return strlen(name) == CACHE_PROJECT_DIGITS &&
	       strspn(name, "0123456789abcdef") == CACHE_PROJECT_DIGITS;
}

/* True where it is known that nothing is there any more. */
static bool is_gone(const char *workspace)
{
	struct stat status;

	return lstat(workspace, &status) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static void remove_project(int state_fd, int place_fd, const char *name)
{
	char path[sizeof(SECRETS) + 1 + CACHE_PROJECT_DIGITS];

	(void)snprintf(path, sizeof(path), SECRETS "/%s", name);
	(void)unlinkat(state_fd, path, 0);
	(void)unlinkat(place_fd, name, 0);
}

/* What a supervisor that was killed had begun to write. */
static void look_at_temporary(int place_fd, const char *name)
{
	struct stat status;

	if (fstatat(place_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (int64_t)clock_wall_ns() - status.st_mtim.tv_sec * SECOND_NS > TEMPORARY_NS)
		(void)unlinkat(place_fd, name, 0);
}

/* False where it went, or is none. */
static bool look_at(int state_fd, int place_fd, const char *name, struct kept *ret_kept)
{
	char workspace[PATH_LIMIT_BYTES], project[SHA256_HEX_BYTES];
	int CLEANUP_FD fd = openat(place_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	/* one of an earlier format or torn is of no use to anybody */
	if (!tree_picture_workspace(fd, workspace)) {
		(void)unlinkat(place_fd, name, 0);
		return false;
	}
	cache_project(workspace, project);
	if (strcmp(project, name) != 0 || is_gone(workspace)) {
		remove_project(state_fd, place_fd, name);
		return false;
	}
	memcpy(ret_kept->name, name, sizeof(ret_kept->name));
	ret_kept->written_ns = status.st_mtim.tv_sec * SECOND_NS + status.st_mtim.tv_nsec;
	return true;
}

/* The newest ones stay; what is written down here is bounded by them. */
static void keep_newest(struct kept *kept, size_t *count, const struct kept *one, int place_fd)
{
	size_t oldest = 0;

	if (*count < TREE_STORE_LIMIT) {
		kept[(*count)++] = *one;
		return;
	}
	for (size_t i = 1; i < *count; i++)
		if (kept[i].written_ns < kept[oldest].written_ns)
			oldest = i;
	if (one->written_ns < kept[oldest].written_ns) {
		(void)unlinkat(place_fd, one->name, 0);
		return;
	}
	(void)unlinkat(place_fd, kept[oldest].name, 0);
	kept[oldest] = *one;
}

static void reap(int state_fd, int place_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	struct kept kept[TREE_STORE_LIMIT], one;
	size_t count = 0;
	const char *name;

	/* a descriptor of its own, for its place in the list */
	(void)directory_open(&directory, place_fd, ".", 0);
	for (unsigned seen = 0;
	     seen < TREE_STORE_LIMIT_NAMES && (name = directory_next(&directory)); seen++)
		if (strncmp(name, TREE_TEMPORARY, strlen(TREE_TEMPORARY)) == 0)
			look_at_temporary(place_fd, name);
		else if (is_project(name) && look_at(state_fd, place_fd, name, &one))
			keep_newest(kept, &count, &one, place_fd);
}

/* ---- one ---- */

static int open_place(int state_fd, bool is_made)
{
	int fd = openat(state_fd, PLACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && is_made && mkdirat(state_fd, PLACE, 0700) == 0)
		fd = openat(state_fd, PLACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tree_store_open(int state_fd, const char *workspace)
{
	int CLEANUP_FD place_fd = open_place(state_fd, false);
	char name[SHA256_HEX_BYTES];
	int fd;

	if (place_fd < 0)
		return place_fd;
	cache_project(workspace, name);
	fd = openat(place_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tree_store_save(const struct tree_picture *picture, int state_fd, const char *workspace)
{
	int CLEANUP_FD place_fd = open_place(state_fd, true);
	char name[SHA256_HEX_BYTES];

	if (place_fd < 0)
		return place_fd;
	cache_project(workspace, name);
	if (faccessat(place_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		reap(state_fd, place_fd);
	return tree_picture_save(picture, workspace, place_fd, name);
}
