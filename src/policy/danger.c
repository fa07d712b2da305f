#include "policy/danger.h"

#include "base/path.h"

#include <string.h>

struct place {
	const char *path;
	const char *why;
};

/* These, and all that lies below them. */
static const struct place trees[] = {
	{ "/proc", "it is the kernel's view of every process of the host" },
	{ "/sys", "it is the kernel's control of devices and control groups" },
	{ "/dev", "it holds the host's devices; a single one is shown with --devices" },
	{ "/run", "it holds the sockets of the host's services" },
	{ "/var/run", "it holds the sockets of the host's services" },
	{ "/boot", "it holds the host's kernel" },
	{ "/lost+found", "it is no work" },
};

/* Not writable, and nothing below them is; programs and settings of the whole host. */
static const struct place read_only[] = {
	{ "/bin", "it holds the host's programs" },
	{ "/sbin", "it holds the host's programs" },
	{ "/lib", "it holds the host's libraries" },
	{ "/lib32", "it holds the host's libraries" },
	{ "/lib64", "it holds the host's libraries" },
	{ "/libx32", "it holds the host's libraries" },
	{ "/usr", "it holds the host's programs" },
	{ "/etc", "it holds the host's settings" },
};

static const char *under_one(const struct place *places, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (path_is_under(path, places[i].path))
			return places[i].why;
	return NULL;
}

/* True when showing `path` shows all of `place` too. */
static bool holds(const char *path, const char *place)
{
	return place && path_is_under(place, path);
}

const char *danger_of_path(const char *path, enum path_class class, const char *home,
			   const char *state)
{
	const char *why;

	if (class == PATH_HIDE || class == PATH_PROTECT)
		return NULL;
	if (class == PATH_DEVICE)
		return path_is_under(path, "/dev") && strcmp(path, "/dev") != 0 ?
			       NULL :
			       "only what is below /dev is a device";
	if (!path[1])
		return "it is the whole host";
	if (holds(path, home))
		return "it holds the caller's home, with keys and settings that the host runs";
	if (state && (holds(path, state) || path_is_under(path, state)))
		return "it holds bawn's own state";
	why = under_one(trees, sizeof(trees) / sizeof(trees[0]), path);
	if (why)
		return why;
	if (strcmp(path, "/var") == 0 || strcmp(path, "/home") == 0 || strcmp(path, "/root") == 0)
		return "it holds other people's and the system's own files";
	if (class == PATH_WRITE)
		return under_one(read_only, sizeof(read_only) / sizeof(read_only[0]), path);
	return NULL;
}
