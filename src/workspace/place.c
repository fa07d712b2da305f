#include "workspace/place.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path of an open object, as the kernel has it now; NULL where it has none. */
static char *name_of(int fd, struct arena *arena)
{
	char link[32], text[PATH_LIMIT_BYTES];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, text, sizeof(text));
	if (length <= 0 || (size_t)length >= sizeof(text))
		return NULL;
	text[length] = '\0';
	return path_is_clean(text) ? arena_copy(arena, text) : NULL;
}

/* A home with more names than this is probed place by place. */
#define NAMES_LIMIT_BYTES 16384

/* One read of the directory costs less than a look-up for each of some sixty places. */
static void list_names(struct home *home, struct arena *arena)
{
	struct directory CLEANUP_DIRECTORY directory;
	char *names = arena_allocate(arena, NAMES_LIMIT_BYTES);
	const char *name;
	size_t used = 0;

	if (directory_open(&directory, home->fd, ".", 0) < 0)
		return;
	while (names && (name = directory_next(&directory))) {
		size_t length = strlen(name) + 1;

		if (used + length > NAMES_LIMIT_BYTES) {
			names = NULL;
			break;
		}
		memcpy(names + used, name, length);
		used += length;
	}
	home->names = directory.code < 0 ? NULL : names;
	home->names_length = used;
}

bool place_may_exist(const struct home *home, const char *below)
{
	size_t length = strcspn(below, "/");

	if (!home->names)
		return true;
	for (size_t at = 0; at < home->names_length; at += strlen(home->names + at) + 1)
		if (strncmp(home->names + at, below, length) == 0 &&
		    home->names[at + length] == '\0')
			return true;
	return false;
}

int place_home(const struct caller *host, const char *avoid, struct arena *arena,
	       struct home *ret_home, struct error *error)
{
	struct home home = { .fd = -1, .uid = host->uid, .avoid = avoid };

	if (host->home) {
		home.fd = fd_open_resolved(AT_FDCWD, host->home, O_PATH, 0);
		if (home.fd < 0)
			return error_errno(error, home.fd, "opening the home %s", host->home);
		home.path = name_of(home.fd, arena);
		if (!home.path) {
			fd_close(&home.fd);
			return error_set(error, ENOENT,
					 "the home %s has no path; is /proc mounted?", host->home);
		}
		list_names(&home, arena);
	}
	*ret_home = home;
	return 0;
}

static const char *plain_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return name + strspn(name, ".");
}

/*
 * A link on the way may be a task's of an earlier run (a directory of dotfiles that was its
 * workspace): it is not the caller's word for keys or bawn's state. It leads to what has the
 * place's own name, a dot before it aside, or to where programs are shown anyway.
 */
static bool is_led_alike(const char *path, const char *below)
{
	static const char *const systems[] = { "/usr", "/opt", "/nix", "/gnu" };

	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (path_is_under(path, systems[i]))
			return true;
	return strcmp(plain_name(path), plain_name(below)) == 0;
}

static bool may_be_shown(const struct home *home, const char *path, const char *below)
{
	static const char *const never[] = { "/proc", "/sys", "/dev", "/run" };

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (path_is_under(path, never[i]))
			return false;
	return is_led_alike(path, below) && !path_is_under(home->path, path) &&
	       !(home->avoid && path_is_under(home->avoid, path));
}

int place_find(const struct home *home, const char *below, struct arena *arena,
	       struct place *ret_place)
{
	struct place place = { .path = NULL };
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (!place_may_exist(home, below))
		return -ENOENT;
	fd = fd_open_beneath(home->fd, below, O_PATH);
	if (fd == -ELOOP) {
		place.linked = true;
		fd = fd_open_resolved(home->fd, below, O_PATH, 0);
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return -ENOENT;
	if (status.st_uid != home->uid && status.st_uid != 0)
		return -EPERM;
	place.path = place.linked ? name_of(fd, arena) : path_clean(arena, home->path, below);
	if (!place.path || (place.linked && !may_be_shown(home, place.path, below)))
		return -EPERM;
	place.kind = S_ISDIR(status.st_mode) ? PATH_KIND_DIRECTORY : PATH_KIND_FILE;
	place.device = status.st_dev;
	place.inode = status.st_ino;
	*ret_place = place;
	return 0;
}
